#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What stands between a launcher and a rank that may move: two kinds of processes.

   launcher ══ socket, standard streams ══ origin ══ TCP ══ holder ══ socket, pipes ══ rank
                                              ╚════════════ holder on another host, later

The *origin* is what the launcher has started, and waits for. It stays where it is, passes on what the launcher
and the rank send each other, and ends as the rank ends. A *holder* is on the host where the rank is: the
first process of a PID namespace, and the rank's parent. It gives the rank a socket for the launcher's, and a
pipe for each standard stream; so what CRIU finds in a rank that has detached are ends of those, and nothing
that is bound to a host. On the next host they are replaced by those of another holder.

   holder                                      origin
     (connects)                                  bytes that the last holder gave back, then the launcher's
     RELEASE ────────────────────────────────▶   sends nothing more to this one
       ◀──────────────────────────────── RELEASED
     BACK  what the rank has not read ────────▶  keeps it for the next
     (closes)

usage: shim.py origin SOCKET ADDRESS PORT        SOCKET: a descriptor
       shim.py hold ADDRESS PORT                 commands and answers are JSON, a line each, on its standard
                                                 streams; class Holder has them
"""
import contextlib
import json
import os
import pathlib
import re
import select
import selectors
import signal
import socket
import struct
import subprocess
import sys
import time

LAUNCHER, STDIN, STDOUT, STDERR, EXIT, BACK, RELEASE, RELEASED = range(8)
HEAD = struct.Struct("!BI")
CHUNK = 1 << 16
RANK_PID = 1000     # no process of a new PID namespace has it
CRIU_SECONDS = 120


def send_frame(connection, kind, data=b""):
    connection.sendall(HEAD.pack(kind, len(data)) + data)


class Frames:
    """What arrives on a connection, frame by frame."""

    def __init__(self, connection):
        self.connection = connection
        self.pending = b""

    def read(self):
        """[(kind, data)] of what is there; None at the end of the connection."""
        try:
            data = self.connection.recv(CHUNK)
        except ConnectionError:
            data = b""
        if not data:
            return None
        self.pending += data
        frames = []
        while len(self.pending) >= HEAD.size:
            kind, length = HEAD.unpack_from(self.pending)
            if len(self.pending) < HEAD.size + length:
                break
            frames.append((kind, self.pending[HEAD.size:HEAD.size + length]))
            self.pending = self.pending[HEAD.size + length:]
        return frames


def write_all(fd, data):
    while data:
        data = data[os.write(fd, data):]


def handle(selector, timeout=None, but=None):
    """Call what is registered for what is ready, except BUT; one may unregister another, or read for it."""
    for key, _ in selector.select(timeout):
        if key.data != but and selector.get_map().get(key.fd) == key and \
                select.select([key.fd], [], [], 0)[0]:
            key.data()


class Origin:
    """Between the launcher and the holder that has the rank now."""

    def __init__(self, descriptor, address, port):
        self.launcher = socket.socket(fileno=descriptor)
        self.server = socket.create_server((address, port))
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.server, selectors.EVENT_READ, self.accept)
        self.holder = None
        self.frames = None
        self.kept = {LAUNCHER: b"", STDIN: b""}     # for the next holder
        self.sources = {LAUNCHER: self.launcher, STDIN: sys.stdin.buffer.raw}
        self.status = None

    def run(self):
        while self.status is None:
            handle(self.selector)
        return self.status

    def accept(self):
        self.holder, _ = self.server.accept()
        self.holder.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.frames = Frames(self.holder)
        # One at a time: another one waits in the listener's queue.
        self.selector.unregister(self.server)
        self.selector.register(self.holder, selectors.EVENT_READ, self.from_holder)
        for kind, source in self.sources.items():
            if self.kept[kind]:
                send_frame(self.holder, kind, self.kept[kind])
                self.kept[kind] = b""
            self.selector.register(source, selectors.EVENT_READ,
                                   lambda kind=kind, source=source: self.from_launcher(kind, source))

    def stop_sending(self):
        for source in self.sources.values():
            with contextlib.suppress(KeyError):
                self.selector.unregister(source)

    def from_launcher(self, kind, source):
        data = os.read(source.fileno(), CHUNK)
        if not data:
            self.selector.unregister(source)
        send_frame(self.holder, kind, data)

    def from_holder(self):
        frames = self.frames.read()
        if frames is None:
            self.stop_sending()
            self.selector.unregister(self.holder)
            self.holder.close()
            self.selector.register(self.server, selectors.EVENT_READ, self.accept)
            return
        for kind, data in frames:
            if kind == LAUNCHER:
                self.launcher.sendall(data)
            elif kind in (STDOUT, STDERR):
                write_all(1 if kind == STDOUT else 2, data)
            elif kind == RELEASE:
                self.stop_sending()
                send_frame(self.holder, RELEASED)
            elif kind == BACK:
                self.kept[data[0]] += data[1:]
            elif kind == EXIT:
                self.status = struct.unpack("!i", data)[0]


class Holder:
    """The rank's parent on one host.

    Commands: {"do": NAME, ...}; the answer is {"ms": how long it took, ...} or {"error": text}.
      start    program: words; "{socket}", "{orders}" and "{notices}" in them become descriptors
      order    line: for the rank; notice: what it must answer
      dump     criu, directory: the rank, which stays stopped
      release  give the connection to the origin back
      restore  criu, directory: the rank, from there
      connect  to the origin
      thaw     let the rank that was dumped go on here
      drop     kill it
    """

    def __init__(self, address, port):
        self.address = address, port
        self.origin = None
        self.frames = None
        self.selector = selectors.DefaultSelector()
        self.ends = {}          # this side's, by name
        self.theirs = {}        # the rank's, until it has them
        self.inodes = {}        # of those
        self.released = False
        self.pid = None
        self.notices = b""
        self.make_ends()
        self.selector.register(sys.stdin.buffer.raw, selectors.EVENT_READ, self.obey)

    # -- what the rank has --

    def make_ends(self):
        ours, theirs = socket.socketpair()
        self.ends["socket"], self.theirs["socket"] = ours.detach(), theirs.detach()
        for name in ("stdin", "orders"):
            self.theirs[name], self.ends[name] = os.pipe()
        for name in ("stdout", "stderr", "notices"):
            self.ends[name], self.theirs[name] = os.pipe()
        # What is in the pipe when the rank leaves is taken back.
        self.ends["stdin-back"] = os.dup(self.theirs["stdin"])
        os.set_blocking(self.ends["stdin-back"], False)
        for name, descriptor in self.theirs.items():
            self.inodes[name] = os.fstat(descriptor).st_ino
        for name, kind in (("socket", LAUNCHER), ("stdout", STDOUT), ("stderr", STDERR)):
            self.selector.register(self.ends[name], selectors.EVENT_READ,
                                   lambda name=name, kind=kind: self.from_rank(name, kind))
        self.selector.register(self.ends["notices"], selectors.EVENT_READ, self.note)

    def give_ends_away(self):
        for descriptor in self.theirs.values():
            os.close(descriptor)
        self.theirs = {}

    def from_rank(self, name, kind):
        try:
            data = os.read(self.ends[name], CHUNK)
        except ConnectionResetError:    # it has ended, and has not read all that was written to it
            data = b""
        if not data:
            self.selector.unregister(self.ends[name])
        elif self.origin:
            send_frame(self.origin, kind, data)
        elif kind == STDERR:
            sys.stderr.buffer.write(data)
            sys.stderr.buffer.flush()

    def note(self):
        try:
            data = os.read(self.ends["notices"], CHUNK)
        except ConnectionResetError:    # likewise
            data = b""
        if not data:
            self.selector.unregister(self.ends["notices"])
        self.notices += data

    def reap(self):
        """Has the rank ended? Then the origin is told, and this process ends."""
        if not self.pid:
            return
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        if pid:
            self.drain()
            if self.origin:
                send_frame(self.origin, EXIT, struct.pack("!i", os.waitstatus_to_exitcode(status) & 0xff))
                sys.exit(0)
            for line in self.notices.decode().splitlines():
                print(f"shim: the rank notes {line}", file=sys.stderr)
            sys.exit(f"shim: the rank has ended, with {os.waitstatus_to_exitcode(status)}")

    def drain(self):
        """Pass on what the rank has written."""
        names = [self.ends[name] for name in ("socket", "stdout", "stderr", "notices")]
        while ready := [key for key, _ in self.selector.select(0) if key.fd in names]:
            for key in ready:
                key.data()

    # -- the origin --

    def do_connect(self):
        for _ in range(200):
            try:
                self.origin = socket.create_connection(self.address)
                break
            except ConnectionRefusedError:
                time.sleep(0.02)
        self.origin.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.frames = Frames(self.origin)
        self.released = False
        self.selector.register(self.origin, selectors.EVENT_READ, self.from_origin)

    def from_origin(self):
        frames = self.frames.read()
        if frames is None:
            sys.exit("shim: the origin has gone")
        for kind, data in frames:
            if kind == RELEASED:
                self.released = True
            elif kind == LAUNCHER:
                write_all(self.ends["socket"], data)
            elif kind == STDIN and data:
                write_all(self.ends["stdin"], data)

    def do_release(self):
        self.drain()
        send_frame(self.origin, RELEASE)
        while not self.released:
            self.from_origin()
        with contextlib.suppress(BlockingIOError):
            while data := os.read(self.ends["stdin-back"], CHUNK):
                send_frame(self.origin, BACK, bytes([STDIN]) + data)
        self.selector.unregister(self.origin)
        self.origin.close()
        self.origin = None

    # -- the rank --

    def do_start(self, program):
        words = [word.format(**self.theirs) for word in program]
        set_next_pid(RANK_PID)
        process = subprocess.Popen(
            words, stdin=self.theirs["stdin"], stdout=self.theirs["stdout"], stderr=self.theirs["stderr"],
            pass_fds=[self.theirs[name] for name in ("socket", "orders", "notices")],
            start_new_session=True)
        self.pid = process.pid
        process.returncode = 0      # reap() waits for it
        self.give_ends_away()
        return {"pid": self.pid}

    def do_order(self, line, notice, timeout=60):
        write_all(self.ends["orders"], line.encode() + b"\n")
        begin = time.monotonic()
        while notice and b"\n" not in self.notices:
            self.step(1)
            if time.monotonic() - begin > timeout:
                raise TimeoutError(f"no notice within {timeout} s after {line}")
        if notice:
            said, _, self.notices = self.notices.partition(b"\n")
            if said.decode() != notice:
                raise ValueError(f"the rank notes {said.decode()}, not {notice}")

    def criu(self, program, action, directory, options):
        log = pathlib.Path(directory) / f"{action}.log"
        done = subprocess.run(
            [program, action, "--images-dir", directory, "--log-file", log.name, "-v4",
             "--manage-cgroups=ignore", *options],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=CRIU_SECONDS, check=False,
            close_fds=False)
        if done.returncode != 0:
            lines = log.read_text(errors="replace").splitlines() if log.exists() else []
            wrong = [line for line in lines if "Error" in line or "Warn" in line]
            raise RuntimeError(f"criu {action}: {done.returncode}: {done.stdout}{done.stderr}"
                               + "\n".join(wrong[-12:]))

    def do_dump(self, criu, directory):
        self.criu(criu, "dump", directory, ["--tree", str(self.pid), "--leave-stopped",
                                            "--external", f"unix[{self.inodes['socket']}]"])
        (pathlib.Path(directory) / "inodes.json").write_text(
            json.dumps({"pid": self.pid, **self.inodes}), encoding="utf-8")
        log = (pathlib.Path(directory) / "dump.log").read_text(errors="replace")
        seized, thawed = (float(re.search(rf"\(([0-9.]+)\) {words}", log)[1])
                          for words in ("Seized task", "Unfreezing tasks"))
        return {"frozen_ms": (thawed - seized) * 1e3, "bytes": sum(file.stat().st_size for file in pathlib.Path(directory).glob("*.img"))}

    def do_restore(self, criu, directory):
        before = json.loads((pathlib.Path(directory) / "inodes.json").read_text(encoding="utf-8"))
        options = ["--restore-detached", "--restore-sibling"]
        for name, descriptor in self.theirs.items():
            kind = "socket" if name == "socket" else "pipe"
            os.set_inheritable(descriptor, True)
            options += ["--inherit-fd", f"fd[{descriptor}]:{kind}:[{before[name]}]"]
        self.criu(criu, "restore", directory, options)
        self.pid = before["pid"]
        self.give_ends_away()
        return {"pid": self.pid}

    def do_thaw(self):
        os.kill(self.pid, signal.SIGCONT)

    def do_drop(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        self.pid = None

    # -- the loop --

    def obey(self):
        line = sys.stdin.readline()
        if not line:
            sys.exit(0)
        command = json.loads(line)
        begin = time.monotonic()
        try:
            answer = getattr(self, f"do_{command.pop('do')}")(**command) or {}
        except (OSError, RuntimeError, ValueError, KeyError, subprocess.SubprocessError) as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        answer["ms"] = (time.monotonic() - begin) * 1e3
        print(json.dumps(answer), flush=True)

    def step(self, timeout):
        handle(self.selector, timeout, but=self.obey)       # which may be what is under way

    def run(self):
        while True:
            handle(self.selector, 0.1)
            self.reap()


def set_next_pid(pid):
    pathlib.Path("/proc/sys/kernel/ns_last_pid").write_text(str(pid - 1), encoding="ascii")


def main():
    if sys.argv[1] == "origin":
        return Origin(int(sys.argv[2]), sys.argv[3], int(sys.argv[4])).run()
    Holder(sys.argv[2], int(sys.argv[3])).run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
