# SPDX-License-Identifier: BSD-3-Clause
"""Processes of one run: found by a mark in their environment, and ended with the run."""
import concurrent.futures
import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import uuid

MARK = "ZC_LAUNCH"


class Running:
    """A run that others look at while it goes on; ended with its block, and all that it started.

    COMMAND's processes are known by MARK, which is in ENVIRONMENT. STDIN: as of subprocess; STDERR,
    too, and `err` stays empty if it is not a pipe.
    """

    def __init__(self, command, mark, environment, directory, stdin=subprocess.DEVNULL,
                 stderr=subprocess.PIPE):
        self.mark = mark
        self.out, self.err = [], []
        self.begin = time.monotonic()
        self.process = subprocess.Popen(command, env=environment, cwd=directory,
                                        stdin=stdin, stdout=subprocess.PIPE,
                                        stderr=stderr, text=True, start_new_session=True)
        self.readers = [threading.Thread(target=self._read, args=pair, daemon=True)
                        for pair in ((self.process.stdout, self.out),
                                     (self.process.stderr, self.err)) if pair[0]]
        for reader in self.readers:
            reader.start()

    @staticmethod
    def _read(pipe, lines):
        for line in pipe:
            lines.append(Line(line))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        end(self.process, self.mark)

    def said(self):
        return "".join(self.out) + "".join(self.err)

    def wait(self, timeout):
        """Exit status, or None when time is up."""
        try:
            status = self.process.wait(timeout=timeout)
        except subprocess.TimeoutExpired:
            return None
        for reader in self.readers:
            reader.join(timeout=5)
        return status


class Line(str):
    """What was said, and when it was read."""

    def __new__(cls, text):
        line = super().__new__(cls, text)
        line.at = time.monotonic()
        return line


def processes(mark):
    """Yield (pid, environment) of every process that carries MARK."""
    wanted = f"{MARK}={mark}".encode()
    for entry in os.scandir("/proc"):
        if not entry.name.isdigit():
            continue
        try:
            with open(f"/proc/{entry.name}/environ", "rb") as file:
                words = file.read().split(b"\0")
        except OSError:
            continue
        if wanted in words:
            yield int(entry.name), dict(word.split(b"=", 1) for word in words if b"=" in word)


def rank_processes(mark):
    """[(pid, "rank N")] of the ranks of MARK; a rank's own children are left out."""
    found = {}
    for pid, environment in processes(mark):
        rank = environment.get(b"PMI_RANK", environment.get(b"OMPI_COMM_WORLD_RANK"))
        if rank is not None:
            found.setdefault(int(rank), []).append(pid)
    return [(min(pids), f"rank {rank}") for rank, pids in sorted(found.items())]


def describe(pid, name):
    """NAME, and what the process does."""
    def read(file):
        try:
            return pathlib.Path(f"/proc/{pid}/{file}").read_text().strip()
        except OSError:
            return ""
    state = read("stat").rpartition(")")[2].split()[:1]
    cpu = "running" if state == ["R"] else "asleep" if state == ["S"] else "".join(state)
    return f"{name} ({read('comm')}, pid {pid}, {cpu or 'gone'})"


def stacks(named):
    """Of processes, [(pid, name)]."""
    gdb = shutil.which("gdb")
    if not gdb:
        return "(no stacks: gdb is not installed)\n"
    text = ""
    for pid, name in named:
        try:
            done = subprocess.run([gdb, "-p", str(pid), "-batch", "-ex", "thread apply all bt 25"],
                                  stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                  timeout=60, check=False)
        except subprocess.TimeoutExpired:
            continue
        kept = [line for line in done.stdout.splitlines() if line.startswith(("#", "Thread"))]
        text += f"{describe(pid, name)}:\n  " + "\n  ".join(kept) + "\n"
    return text


def end(process, mark):
    """End what is left of a run: mpiexec politely, then every process that carries the mark."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(timeout=2)
        except subprocess.TimeoutExpired:
            pass
    # Proxies need a moment to go by themselves after a normal end.
    give_up = time.monotonic() + (0.5 if process.poll() is not None else 0.0)
    while any(True for _ in processes(mark)) and time.monotonic() < give_up:
        time.sleep(0.02)
    for _ in range(3):      # what is being started meanwhile shows up later
        for pid, _ in list(processes(mark)):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
    process.wait()


def exit_on_sigterm():
    """Let clean-up run when SIGTERM comes."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))


def run(command, directory, environment, timeout, at_end=lambda: None):
    """(exit status or None when time was up, output) of COMMAND.

    Afterwards AT_END is called and every process that carries the run's mark is ended:
    ranks and proxies are often in sessions and groups of their own.
    """
    mark = uuid.uuid4().hex
    # A file, not a pipe: what outlives its starter would keep a pipe open.
    with tempfile.TemporaryFile(dir=directory) as output:
        process = subprocess.Popen([str(word) for word in command], cwd=directory,
                                   env={**environment, MARK: mark}, stdin=subprocess.DEVNULL,
                                   stdout=output, stderr=subprocess.STDOUT, start_new_session=True)
        try:
            status = process.wait(timeout=timeout)
        except subprocess.TimeoutExpired:
            status = None
        finally:
            with undisturbed():
                if process.poll() is None:
                    process.terminate()
                at_end()
                kill(pid for pid, _ in list(processes(mark)))
                process.wait()
        output.seek(0)
        return status, output.read().decode(errors="replace")


def end_daemons(daemons, network, hosts):
    """End DAEMONS by SIGTERM, then whatever still runs on HOSTS of NETWORK, which is ours alone."""
    for daemon in reversed(daemons):
        daemon.terminate()
    for daemon in daemons:
        try:
            daemon.wait(timeout=5)
        except subprocess.TimeoutExpired:
            daemon.kill()
            daemon.wait()
    for host in hosts:
        listed = subprocess.run(["ip", "netns", "pids", f"{network.name}-{host}"],
                                stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                check=False)
        kill(map(int, listed.stdout.split()))


def kill(pids):
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def exit_on_first_signal():
    """Clear up at the first signal, and only once: half a clear-up would leave daemons behind."""
    def go(number, _):
        for signal_number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(signal_number, signal.SIG_IGN)
        sys.exit(128 + number)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, go)


@contextlib.contextmanager
def undisturbed():
    """Signals wait until the block has ended: it must not be left half done."""
    kept = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, kept)


def in_parallel(jobs, items, function, done):
    """Call FUNCTION with each of ITEMS, JOBS at a time, and DONE with an item and what came of it.

    An exception ends it, and whatever the calls that have begun wait for or start yet.
    """
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        at_work = {pool.submit(function, item): item for item in items}
        try:
            for future in concurrent.futures.as_completed(at_work):
                done(at_work[future], future.result())
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            while any(future.running() for future in at_work):
                kill(children())
                time.sleep(0.1)
            raise


def children(pid="self"):
    """The processes that this one has started, or the one of PID."""
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):      # the thread may be gone
            yield from map(int, (task / "children").read_text(encoding="ascii").split())
