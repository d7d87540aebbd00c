# SPDX-License-Identifier: BSD-3-Clause
"""What mpiexec makes of processes that have ended while it had something for them."""
import contextlib
import os
import pathlib
import re
import signal
import subprocess
import time

from testbed.migration import H2, SAID, STOP, Job
from testbed.outcome import check, wait_for
from tests.migrate.jobs import (IDENTICAL, ends_well, ends_with_error, heat, hosts_of, moved, mpich_only,
                                stop, suite, wait_channel)


def is_asleep(pid):
    """It does not run for a while."""
    def time_used():
        return pathlib.Path(f"/proc/{pid}/schedstat").read_text(encoding="ascii").split()[0]
    before = time_used()
    time.sleep(0.2)
    return time_used() == before


def stops_unanswered(job, pid):
    """Is mpiexec stopped when it has not begun with an answer for the process PID, on h2?"""
    stop(job.process.pid)
    [proxy] = [pid for pid, line in job.processes_on("h2") if "hydra_pmi_proxy" in line.split()[0]]
    if is_asleep(pid) and "poll" in wait_channel(proxy):
        return True
    os.kill(job.process.pid, signal.SIGCONT)    # its proxy waits for the rest
    return False


@contextlib.contextmanager
def ended_before_its_answer(stage, *options):
    """A job whose rank 1 has been killed, and whose proxy has ended, before mpiexec answers what it has
    asked."""
    with Job(stage, "asks", STOP, ranks=2, migrate=False, mpiexec=options) as job:
        wait_for("both ranks run", lambda: job.said().count("rank ") == 2, 30)
        rank_1 = int(re.search(r"rank 1 is (\d+)", job.said())[1])
        wait_for("it waits for an answer, and so far has none", lambda: stops_unanswered(job, rank_1), 30)
        os.kill(rank_1, signal.SIGKILL)
        job.until_free("h2")
        os.kill(job.process.pid, signal.SIGCONT)
        yield job


@suite.test()
@mpich_only("Hydra")
def an_answer_for_an_ended_proxy_is_dropped(stage):
    """mpiexec was ended by SIGPIPE, without a word; now it says what has ended the job."""
    with ended_before_its_answer(stage) as job:
        ends_with_error(job, "BAD TERMINATION", 30)


@suite.test()
@mpich_only("Hydra's -disable-auto-cleanup")
def others_go_on_without_an_answer_for_an_ended_proxy(stage):
    with ended_before_its_answer(stage, "-disable-auto-cleanup") as job:
        time.sleep(0.5)
        check(job.process.poll() is None, "the job has ended", job.said()[-SAID:])
        job.stop()
        check(job.wait(30) is not None and "all right" in job.said(), "rank 0 has ended", job.said()[-SAID:])


@suite.test()
@mpich_only("Hydra")
def standard_input_of_a_rank_that_has_moved(stage):
    """Nothing reads it any more; mpiexec ended the job for that."""
    for text, says in (("a line\n", 1), ("", 0)):
        with heat(stage, ranks=2, stdin=subprocess.PIPE) as job:
            job.until_running()
            moved(job, [0], H2)
            check(hosts_of(job) == ["h2", "h2"], f"hosts {hosts_of(job)}")
            job.until_free("h1")
            with contextlib.suppress(BrokenPipeError):
                job.process.stdin.write(text)
                job.process.stdin.close()
            ends_well(stage, job, IDENTICAL)
            check(job.said().count("standard input is read no more") == says, f"of '{text}'", job.said()[-SAID:])
