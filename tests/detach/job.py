# SPDX-License-Identifier: BSD-3-Clause
"""A job of detached_rank processes, and the part of a launcher in it: sockets and standard streams."""
import json
import os
import pathlib
import signal
import socket
import subprocess
import threading
import time
import uuid

from testbed import process
from testbed.outcome import Fail, check

LINE_SECONDS = 0.01     # between lines on standard input


class Rank:
    """One process, as its launcher has it."""

    def __init__(self, number, command, environment, directory, pair):
        self.number = number
        self.ours, theirs = pair
        self.out, self.err = [], []
        self.pongs = 0
        self.lines = 0
        self.stop = threading.Event()
        self.process = subprocess.Popen(
            [*map(str, command(theirs.fileno()))], env=environment, cwd=directory,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            pass_fds=[theirs.fileno()], start_new_session=True)
        theirs.close()
        self.readers = [threading.Thread(target=self._read, args=pair, daemon=True)
                        for pair in ((self.process.stdout, self.out), (self.process.stderr, self.err))]
        for reader in self.readers:
            reader.start()

    @staticmethod
    def _read(pipe, lines):
        for line in pipe:
            lines.append(line)

    def read_address(self, timeout):
        """The words of the line in which the process gives its address."""
        self.ours.settimeout(timeout)
        self.file = self.ours.makefile("r")
        try:
            words = self.file.readline().split()
        except OSError as error:
            raise Fail(f"rank {self.number} does not give its address", "".join(self.err)) from error
        check(words[:2] == ["address", str(self.number)], f"rank {self.number} says {words}",
              "".join(self.err))
        self.ours.settimeout(None)
        return words[2]

    def serve(self, addresses):
        """Give it the addresses of all; answer its questions, write its standard input, to its end."""
        self.ours.sendall(f"addresses {' '.join(addresses)}\n".encode())
        for target in (self._answer, self._write_lines):
            threading.Thread(target=target, daemon=True).start()

    def _answer(self):
        try:
            for line in self.file:
                if line != f"ping {self.pongs + 1}\n":
                    self.err.append(f"launcher: rank {self.number} asks {line!r}, not {self.pongs + 1}\n")
                    return
                self.pongs += 1
                self.ours.sendall(f"pong {self.pongs}\n".encode())
        except OSError:
            pass

    def _write_lines(self):
        try:
            while not self.stop.wait(LINE_SECONDS):
                self.process.stdin.write(f"in {self.lines + 1}\n")
                self.process.stdin.flush()
                self.lines += 1
        except OSError:
            pass

    def result(self):
        """What its last line says, after it has ended."""
        said = "".join(self.err)
        check(self.process.returncode == 0, f"rank {self.number} has ended with {self.process.returncode}",
              said)
        check(self.out and self.out[-1].startswith("result "), f"rank {self.number} gives no result", said)
        result = json.loads(self.out[-1].removeprefix("result "))
        for number, line in enumerate(self.out[:-1], 1):
            check(line == f"out {number}\n", f"line {number} of rank {self.number} is {line!r}")
        check(len(self.out) - 1 == result["lines"], f"rank {self.number} has written {len(self.out) - 1} "
              f"lines, not {result['lines']}")
        check(result["pings"] == self.pongs, f"the launcher has answered {self.pongs}, rank {self.number} "
              f"has read {result['pings']}")
        return result


class Job:
    """SIZE ranks, of which COMMAND(rank, descriptor of the socket) gives the words.

    BEGUN() is called when they have been started, and before they are given what they wait for. PAIR(rank)
    makes the socket, and the launcher's half before it.
    """

    def __init__(self, size, command, environment, directory, begun=lambda: None, timeout=60,
                 pair=lambda _: socket.socketpair()):
        self.mark = uuid.uuid4().hex
        environment = {**os.environ, **environment, process.MARK: self.mark}
        self.environment = environment
        self.ranks = [Rank(number, lambda fd, number=number: command(number, fd), environment,
                           pathlib.Path(directory), pair(number)) for number in range(size)]
        try:
            begun()
            addresses = [rank.read_address(timeout) for rank in self.ranks]
            for rank in self.ranks:
                rank.serve(addresses)
        except BaseException:
            self.__exit__()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for rank in self.ranks:
            rank.stop.set()
        for pid, _environment in process.processes(self.mark):
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass
        for rank in self.ranks:
            rank.process.wait()

    def stop(self, rank):
        os.killpg(self.ranks[rank].process.pid, signal.SIGSTOP)

    def go_on(self, rank):
        os.killpg(self.ranks[rank].process.pid, signal.SIGCONT)

    def said(self):
        """What the ranks have written on standard error."""
        return "".join(f"rank {rank.number}: {line}" for rank in self.ranks for line in rank.err)

    def check_alive(self):
        for rank in self.ranks:
            if rank.process.poll() not in (None, 0):
                raise Fail(f"rank {rank.number} has ended with {rank.process.returncode}",
                           "".join(rank.err))

    def wait(self, timeout):
        """The results of all ranks, each checked with the launcher's count."""
        end = time.monotonic() + timeout
        while any(rank.process.poll() is None for rank in self.ranks):
            self.check_alive()
            if time.monotonic() > end:
                raise Fail(f"not at an end after {timeout:g} s", self.said())
            time.sleep(0.02)
        for rank in self.ranks:
            for reader in rank.readers:
                reader.join(timeout=5)
        results = [rank.result() for rank in self.ranks]
        sent = sum(result["sent"] for result in results)
        received = sum(result["received"] for result in results)
        check(sent == received and sent > 0, f"{sent} messages were sent, {received} arrived")
        return results
