# SPDX-License-Identifier: BSD-3-Clause
"""Processes that may have so much memory and no more, by cgroups."""
import contextlib
import pathlib

from testbed import cgroup
from testbed.outcome import Skip

ROOT = pathlib.Path("/sys/fs/cgroup")


class LimitedMemory:
    """The cgroup NAME, of version 1 or 2, whose processes get BYTES at most from when they are in it: what they
    have by then is not counted."""

    def __init__(self, name, limit):
        self.old = (ROOT / "memory").is_dir()
        self.group = (ROOT / "memory" if self.old else ROOT) / f"{name}-memory"
        try:
            if not self.old:
                (ROOT / "cgroup.subtree_control").write_text("+memory")
            self.group.mkdir()
        except OSError as error:
            raise Skip(f"cannot limit memory: {error}") from None
        try:
            (self.group / ("memory.limit_in_bytes" if self.old else "memory.max")).write_text(str(limit))
            with contextlib.suppress(FileNotFoundError):    # a kernel that does not count what is swapped
                (self.group / ("memory.swappiness" if self.old else "memory.swap.max")).write_text("0")
        except OSError as error:
            self.close()
            raise Skip(f"cannot limit memory: {error}") from None

    def add(self, pid):
        (self.group / "cgroup.procs").write_text(str(pid))

    def kills(self):
        """So many of its processes have been killed by the kernel."""
        told = self.group / ("memory.oom_control" if self.old else "memory.events")
        return int(dict(line.split() for line in told.read_text().splitlines())["oom_kill"])

    def close(self):
        cgroup.remove(self.group)
