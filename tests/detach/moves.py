# SPDX-License-Identifier: BSD-3-Clause
"""Holders of a rank (shim.py), and a move from one to the other: what an agent would do."""
import contextlib
import dataclasses
import json
import os
import pathlib
import select
import shutil
import subprocess
import tempfile

from testbed import network
from testbed.outcome import Fail

HERE = pathlib.Path(__file__).resolve().parent
SHIM = HERE / "shim.py"
ANSWER_SECONDS = 180


class Holder:
    """One on HOST, in a PID namespace of its own, as the tests give it commands."""

    def __init__(self, net, host, port, environment):
        self.host = host
        words = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "python3", SHIM, "hold",
                 network.address(1), port]
        self.process = subprocess.Popen(net.on(host, *words), env=environment, text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, start_new_session=True)

    def __call__(self, do, **more):
        """Give the command; its answer."""
        try:
            self.process.stdin.write(json.dumps({"do": do, **more}) + "\n")
            self.process.stdin.flush()
            if not select.select([self.process.stdout], [], [], ANSWER_SECONDS)[0]:
                raise Fail(f"the holder on h{self.host} does not answer to {do}")
            line = self.process.stdout.readline()
        except OSError:
            line = ""
        if not line:
            raise Fail(f"the holder on h{self.host} has ended at {' '.join([do, more.get('line', '')]).rstrip()}",
                       self.process.stderr.read())
        answer = json.loads(line)
        if "error" in answer:
            raise Fail(f"{do} on h{self.host}: {answer['error'].splitlines()[0]}", answer["error"])
        return answer

    def lines(self):
        """What it writes on standard error, and its rank while it has no origin, to its end."""
        pending = ""
        while select.select([self.process.stderr], [], [], ANSWER_SECONDS)[0]:
            data = os.read(self.process.stderr.fileno(), 1 << 16).decode()
            if not data:
                return
            *lines, pending = (pending + data).split("\n")
            yield from lines
        raise Fail(f"the holder on h{self.host} does not end")

    def end(self):
        """What it holds ends with it."""
        with contextlib.suppress(BrokenPipeError):      # it has ended already
            self.process.stdin.close()
        try:
            self.process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        self.process.stderr.close()


@dataclasses.dataclass
class Step:
    """Sums of the milliseconds of all moves."""
    detach: float = 0
    dump: float = 0
    frozen: float = 0       # of the dump, the time in which the rank stood still
    restore: float = 0
    attach: float = 0
    bytes: int = 0
    moves: int = 0
    thaws: int = 0

    def means(self):
        nr = max(self.moves + self.thaws, 1)
        return {"detach_ms": self.detach / nr, "dump_ms": self.dump / nr,
                "frozen_ms": self.frozen / nr,
                "restore_ms": self.restore / max(self.moves, 1), "attach_ms": self.attach / nr,
                "image_bytes": self.bytes // nr}


class Moving:
    """One rank of a job, which moves between hosts.

        RUN ── detach ──▶ DETACHED ── dump ──▶ two copies, both without a token
                                                  │ restore
                                                  ├──▶ commit: the source is killed, the copy gets the token
                                                  └──▶ else:   the copy is killed, the source gets the token

    The token is the next incarnation. It is given once, after the other copy has ended.
    """

    def __init__(self, net, criu, scratch, port, environment):
        self.net, self.criu, self.port, self.environment = net, str(criu), port, environment
        self.scratch = pathlib.Path(tempfile.mkdtemp(prefix="images-", dir=scratch))
        self.incarnation = 0
        self.steps = Step()
        self.holder = Holder(net, 1, port, environment)
        self.image = None

    def start(self, program):
        self.holder("connect")
        self.holder("start", program=[str(word) for word in program])

    def dump_attached(self):
        """What CRIU says of the rank while it is connected with its peers."""
        directory = tempfile.mkdtemp(dir=self.scratch)
        try:
            self.holder("dump", criu=self.criu, directory=directory)
        except Fail as failure:
            return failure.output
        raise Fail("CRIU dumps a rank that has connections")

    def leave(self):
        """Detach, and dump. The image's folder."""
        directory = pathlib.Path(tempfile.mkdtemp(dir=self.scratch))
        self.steps.detach += self.holder("order", line="LEAVE", notice="DETACHED")["ms"]
        answer = self.holder("dump", criu=self.criu, directory=str(directory))
        self.steps.dump += answer["ms"]
        self.steps.frozen += answer["frozen_ms"]
        self.steps.bytes += answer["bytes"]
        self.holder("release")
        return directory

    def give_token(self, holder):
        self.incarnation += 1
        self.steps.attach += holder("order", line=f"BIND {self.incarnation}",
                                    notice=f"BOUND {self.incarnation}")["ms"]

    def move(self, host, keep=False):
        """To HOST. KEEP: the image, for a stale copy."""
        target = Holder(self.net, host, self.port, self.environment)
        directory = self.leave()
        self.steps.restore += target("restore", criu=self.criu, directory=str(directory))["ms"]
        self.holder("drop")
        target("connect")
        self.give_token(target)
        self.holder.end()
        self.holder = target
        self.steps.moves += 1
        if not keep:
            shutil.rmtree(directory)
        return directory

    def thaw(self, host):
        """To HOST, which fails after the rank has been restored there: the source goes on."""
        target = Holder(self.net, host, self.port, self.environment)
        directory = self.leave()
        target("restore", criu=self.criu, directory=str(directory))
        target("drop")
        target.end()
        self.holder("thaw")
        self.holder("connect")
        self.give_token(self.holder)
        self.steps.thaws += 1
        shutil.rmtree(directory)

    def wake_stale_copy(self, directory, host, order="BIND"):
        """Of an image that has been used: it is given the token that was used. What it says, to its end."""
        stale = Holder(self.net, host, self.port, self.environment)
        try:
            stale("restore", criu=self.criu, directory=str(directory))
            stale("order", line=f"{order} {self.incarnation}", notice=None)
            yield from stale.lines()
        finally:
            stale.end()
