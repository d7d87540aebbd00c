# SPDX-License-Identifier: BSD-3-Clause
"""Signals of a program are handled by threads of the program, never by one that libzcm makes."""
import copy
import pathlib
import signal
import threading
import time

from testbed.migration import H1, H2
from testbed.outcome import check
from tests.migrate.jobs import ANY_HOST, IDENTICAL, ends_well, heat, moved, mpich_only, saved, suite


def bit(number):
    """Of a signal in a mask, as proc(5) has it."""
    return 1 << number - 1


# SIGKILL and SIGSTOP cannot be blocked, two more are the C library's, and those of a thread's own faults
# are for the program's handler.
OTHERS = (signal.SIGKILL, signal.SIGSTOP, 32, 33, signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE,
          signal.SIGILL, signal.SIGTRAP, signal.SIGSYS)
EVERY = (1 << 64) - 1 & ~sum(map(bit, OTHERS))
INHERITED = "heat2d"    # what libzcm makes has the name of the thread that makes it
NAMED_LATE = 0.1        # seconds; a thread of UCX gives itself a name


def facts_of(task):
    """As proc(5) has them; {}: it has ended."""
    try:
        lines = (task / "status").read_text(encoding="utf-8").splitlines()
    except OSError:
        return {}
    return dict(line.split(":\t", 1) for line in lines if ":\t" in line)


def open_threads(pid):
    """{thread: what it blocks} of those that libzcm has made in PID and that take signals; and how many
    others it has made."""
    takes, quiet = {}, 0
    for task in pathlib.Path(f"/proc/{pid}/task").glob("*"):
        facts = facts_of(task)
        if facts.get("Name") != INHERITED or task.name == str(pid):
            continue
        if int(facts["SigBlk"], 16) & EVERY == EVERY:
            quiet += 1
            continue
        time.sleep(NAMED_LATE)
        if facts_of(task).get("Name", INHERITED) == INHERITED:
            takes[task.name] = facts["SigBlk"]
    return takes, quiet


class Watch(threading.Thread):
    """Looks at all threads of the ranks of JOB, until it is told to end."""

    def __init__(self, job):
        super().__init__()
        self.job, self.over, self.takes, self.quiet = job, False, {}, 0
        self.start()

    def run(self):
        while not self.over:
            for host in ("h1", "h2"):
                for pid, line in self.job.processes_on(host):
                    if line.split()[0] == self.job.stage.programs["heat2d"]:
                        takes, quiet = open_threads(pid)
                        self.takes.update(takes)
                        self.quiet = max(self.quiet, quiet)
            time.sleep(0.001)

    def end(self):
        self.over = True
        self.join()


@suite.test()
@mpich_only("Open MPI's own threads take signals, and have no names by which they could be told from libzcm's")
def threads_of_the_library_take_no_signals(stage):
    """While ranks move by either way, and while they are saved."""
    with heat(stage, "--ballast", 4) as job:
        job.until_running()
        watch = Watch(job)
        try:
            moved(job, [1, 3], H1)
            moved(job, [0], H2, via="disk")
            saved(job)
        finally:
            watch.end()
        check(watch.quiet, "no thread was seen: the test shows nothing")
        check(not watch.takes, f"threads take signals of the program: {watch.takes}")
        ends_well(stage, job, IDENTICAL)


@suite.test()
@mpich_only("no launcher can be asked before")
def what_asks_a_host_takes_signals(stage):
    """The launcher that is run by a thread which takes none: it may time out, or be told to end."""
    told = pathlib.Path(stage.new_directory(), "blocked")
    asks = copy.copy(stage)
    asks.rsh = pathlib.Path(stage.new_directory(), "rsh")
    asks.rsh.write_text(f'#!/bin/bash\ngrep SigBlk: /proc/self/status >> {told}\nexec {stage.rsh} "$@"\n',
                        encoding="utf-8")
    asks.rsh.chmod(0o700)
    with heat(asks, ranks=2, hosts=[H1], environment=ANY_HOST) as job:
        job.until_running()
        told.unlink(missing_ok=True)    # of the start
        moved(job, [1], H2)
        lines = told.read_text(encoding="utf-8").splitlines()
        check(len(lines) > 1, f"the launcher was run {len(lines)} times, not to ask and to start")
        blocked = {int(line.split()[1], 16) & ~bit(signal.SIGUSR1) for line in lines}
        check(blocked == {0}, f"it blocks signals: {lines}")
        ends_well(stage, job, IDENTICAL)


@suite.test()
@mpich_only("Hydra's signal")
def what_asks_a_host_is_not_ended_by_hydras_signal(stage):
    """Which tells a group of processes that one has ended, and reaches what a rank of it has just started."""
    asks = copy.copy(stage)
    asks.rsh = pathlib.Path(stage.new_directory(), "rsh")
    asks.rsh.write_text('#!/bin/bash\n[[ "$*" == *hydra_pmi_proxy* ]] || kill -USR1 $$\n'
                        f'exec {stage.rsh} "$@"\n', encoding="utf-8")
    asks.rsh.chmod(0o700)
    with heat(asks, ranks=2, hosts=[H1], environment=ANY_HOST) as job:
        job.until_running()
        moved(job, [1], H2)
        ends_well(stage, job, IDENTICAL)
