# SPDX-License-Identifier: BSD-3-Clause
"""A disk slowed down to a stated rate, for what is started while it is: by the kernel's block
throttling (blkio.throttle of cgroup 1, io.max of cgroup 2). Direct or synced writes and reads that
miss the page cache are held to it."""
import contextlib
import mmap
import os
import pathlib
import time

V1 = pathlib.Path("/sys/fs/cgroup/blkio")
V2 = pathlib.Path("/sys/fs/cgroup")


class Unlimited(Exception):
    """It cannot be slowed down here; the text says why."""


def device_of(directory):
    """MAJOR:MINOR of the whole disk that DIRECTORY is on."""
    number = os.stat(directory).st_dev
    name = f"{os.major(number)}:{os.minor(number)}"
    device = pathlib.Path("/sys/dev/block", name)
    if not device.exists():
        raise Unlimited(f"{directory} is on no block device ({name})")
    device = device.resolve()
    if (device / "partition").exists():
        device = device.parent
    return (device / "dev").read_text().strip()


def move_here(group):
    (group / "cgroup.procs").write_text(str(os.getpid()))


class LimitedDisk:
    """The disk of DIRECTORY at BYTES_PER_S, reading and writing each."""

    def __init__(self, directory, bytes_per_s):
        self.directory = directory
        device = device_of(directory)
        name = f"zc-bench-{os.getpid()}-{bytes_per_s}"
        try:
            if (V1 / "blkio.throttle.write_bps_device").exists():
                self.home, self.group = V1, V1 / name
                limits = {f"blkio.throttle.{way}_bps_device": f"{device} {bytes_per_s}"
                          for way in ("read", "write")}
            elif (V2 / "cgroup.controllers").exists():
                (V2 / "cgroup.subtree_control").write_text("+io")
                self.home, self.group = V2, V2 / name
                limits = {"io.max": f"{device} rbps={bytes_per_s} wbps={bytes_per_s}"}
            else:
                raise Unlimited("no blkio or io controller is mounted")
            self.group.mkdir()
            try:
                for file, text in limits.items():
                    (self.group / file).write_text(text)
            except OSError:
                self.close()
                raise
        except OSError as problem:
            raise Unlimited(f"cannot limit {device}: {problem}") from problem

    def close(self):
        """What ran in it must have ended."""
        for _ in range(100):
            try:
                self.group.rmdir()
                return
            except OSError:
                time.sleep(0.1)

    @contextlib.contextmanager
    def around(self):
        """What this process starts within finds the disk slow, until its end."""
        move_here(self.group)
        try:
            yield
        finally:
            move_here(self.home)

    def measured(self, size=32 << 20):
        """Bytes per second of a direct, synced write."""
        path = os.path.join(self.directory, "rate")
        with self.around(), mmap.mmap(-1, 1 << 20) as block:
            file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_DIRECT, 0o600)
            try:
                begin = time.monotonic()
                for _ in range(size >> 20):
                    os.write(file, block)
                os.fsync(file)
                return size / (time.monotonic() - begin)
            finally:
                os.close(file)
                os.unlink(path)
