# SPDX-License-Identifier: BSD-3-Clause
"""Build MPI programs and run them across the hosts of a network, always with a time limit.

    with Network("2") as network:
        mpi = Mpi("/opt/zc", network, netmod="zc")
        result = mpi.run(["./order"], ranks=2, timeout=60)

Every process that is started carries a mark in its environment, so that after a hang
the ranks that did not finish can be named, and nothing outlives its run.
"""
import os
import pathlib
import select
import subprocess
import sys
import threading
import time
import uuid

from testbed import process as processes
from testbed.outcome import Error

# Programs print this line when only MPI_Finalize is left to do.
FINALIZING = "# finalizing"
# MPI_STATUSES_IGNORE is (void *)1 in MPICH, which gcc takes for an overflow.
WARNINGS = ["-Wall", "-Wextra", "-Wno-stringop-overflow"]

EXIT_HUNG_IN_FINALIZE = 123
EXIT_TIMEOUT = 124


def find_tool(prefix, tool, family="mpich"):
    """PREFIX/bin/TOOL; where several MPIs share a prefix, Debian calls MPICH's TOOL.mpich."""
    for name in (f"{tool}.{family}", tool):
        path = pathlib.Path(prefix) / "bin" / name
        if os.access(path, os.X_OK):
            return str(path)
    raise Error(f"no {tool} in {prefix}/bin")


def prefix_or_die(prefix):
    prefix = prefix or os.environ.get("ZC_MPICH")
    if not prefix:
        raise Error("no MPICH given: use --mpich PREFIX or set ZC_MPICH")
    if not pathlib.Path(prefix).is_dir():
        raise Error(f"no such directory: {prefix}")
    return os.path.abspath(prefix)


class Result:
    """What became of one run."""

    def __init__(self):
        self.status = None       # exit status, or EXIT_*
        self.timed_out = False
        self.hung_in_finalize = False
        self.unfinished = []     # one line per rank still there when time was up
        self.stacks = ""
        self.seconds = 0.0
        self.out = ""
        self.err = ""

    @property
    def ok(self):
        return self.status == 0

    def reason(self):
        """Why it is not ok, in one line."""
        if self.timed_out:
            ranks = ", ".join(self.unfinished) or "no rank left, mpiexec itself hangs"
            return f"no end after {self.seconds:.0f} s; not finished: {ranks}"
        if self.hung_in_finalize:
            return f"hung in MPI_Finalize; not finished: {', '.join(self.unfinished)}"
        return "" if self.ok else f"exit status {self.status}"


class Mpi:
    """One MPICH on one network."""

    family = "mpich"

    def __init__(self, prefix, network, netmod=None, environment=None):
        self.prefix = prefix
        self.mpiexec = find_tool(prefix, "mpiexec", self.family)
        self.network = network
        self.netmod = netmod
        self.environment = dict(environment or {})

    def command(self, ranks, options=()):
        return self.network.command(self.mpiexec, ranks, options)

    def run(self, program, ranks=2, timeout=60, environment=None, finalize_grace=None, echo=None,
            directory=None, stacks=False, interrupt=None, launcher=(),
            settled=lambda line: line.strip() == FINALIZING):
        """Run PROGRAM (a list of words) and wait for its end, at most TIMEOUT seconds.

        finalize_grace: seconds allowed after a line for which SETTLED is true; None is no limit
        echo:           called with (stream, line) as output comes; stream is "out" or "err"
        stacks:         on a hang, collect the stacks of the ranks (gdb)
        launcher:       further options of mpiexec
        interrupt:      called with the run's mark 10 times a second; for tests that kill a rank
        """
        mark = uuid.uuid4().hex
        env = dict(os.environ)
        env.update(self.network.environment())
        if self.netmod:
            env["MPIR_CVAR_CH4_NETMOD"] = self.netmod
        env.update(self.environment)
        env.update(environment or {})
        env[processes.MARK] = mark

        result = Result()
        begin = time.monotonic()
        process = subprocess.Popen(
            self.command(ranks, launcher) + [str(word) for word in program],
            env=env, cwd=directory, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, start_new_session=True)
        finalizing = threading.Event()
        lines = {"out": [], "err": []}

        def read(stream, pipe):
            for raw in pipe:
                line = raw.decode(errors="replace")
                if settled(line):
                    finalizing.set()
                if line.strip() == FINALIZING:
                    continue
                lines[stream].append(line)
                if echo:
                    echo(stream, line)

        readers = [threading.Thread(target=read, args=pair, daemon=True)
                   for pair in (("out", process.stdout), ("err", process.stderr))]
        for reader in readers:
            reader.start()
        try:
            result.status = _wait(process, begin + timeout, finalizing, finalize_grace, result,
                                  (lambda: interrupt(mark)) if interrupt else None)
            result.seconds = time.monotonic() - begin
            if result.status is None:
                ranks_left = processes.rank_processes(mark)
                result.unfinished = [processes.describe(pid, name) for pid, name in ranks_left]
                if stacks:
                    result.stacks = processes.stacks(ranks_left)
                result.status = (EXIT_HUNG_IN_FINALIZE if result.hung_in_finalize
                                 else EXIT_TIMEOUT)
        finally:
            processes.end(process, mark)
        for reader in readers:
            reader.join(timeout=5)
        result.out, result.err = "".join(lines["out"]), "".join(lines["err"])
        return result


class OpenMpi(Mpi):
    """One Open MPI on one network."""

    family = "openmpi"

    def command(self, ranks, options=()):
        return self.network.open_mpi_command(self.mpiexec, ranks)


def _wait(process, deadline, finalizing, grace, result, tick):
    """Exit status of PROCESS; None, and why in RESULT, when it does not end in time."""
    # Popen.wait(timeout) looks every 50 ms only; this wakes at the end itself.
    pidfd = os.pidfd_open(process.pid)
    try:
        return _wait_on(pidfd, process, deadline, finalizing, grace, result, tick)
    finally:
        os.close(pidfd)


def _wait_on(pidfd, process, deadline, finalizing, grace, result, tick):
    ended = select.poll()
    ended.register(pidfd, select.POLLIN)
    grace_end = None
    while True:
        patience = 0.1 if tick or grace is not None else \
            max(0.0, min(1.0, deadline - time.monotonic()))
        if ended.poll(1000 * patience):
            status = process.wait()
            return status if status >= 0 else 128 - status
        now = time.monotonic()
        if tick:
            tick()
        if grace is not None and grace_end is None and finalizing.is_set():
            grace_end = now + grace
        if grace_end is not None and now > grace_end:
            result.hung_in_finalize = True
            return None
        if now > deadline:
            result.timed_out = True
            return None


def build(prefix, sources, directory, flags=(), headers=(), family="mpich"):
    """Compile SOURCES with PREFIX's mpicc, one program each; those up to date are kept."""
    mpicc = find_tool(prefix, "mpicc", family)
    directory = pathlib.Path(directory)
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Error(f"cannot build there: {error}") from None
    stamp = directory / ".mpicc"
    if not stamp.exists() or stamp.read_text() != mpicc:
        for old in directory.iterdir():
            if old.is_file():
                old.unlink()
        stamp.write_text(mpicc)
    programs = {}
    for source in map(pathlib.Path, sources):
        program = directory / source.stem
        inputs = [source, *map(pathlib.Path, headers)]
        if not program.exists() or \
                program.stat().st_mtime < max(path.stat().st_mtime for path in inputs):
            command = [mpicc, "-std=gnu11", "-O2", "-g", *WARNINGS, *flags,
                       str(source), "-o", str(program), "-lpthread", "-lm"]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise Error(f"cannot build {source.name}:\n{done.stdout}{done.stderr}")
            if done.stderr:
                sys.stderr.write(done.stderr)
        programs[source.stem] = str(program)
    return programs
