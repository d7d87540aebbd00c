# SPDX-License-Identifier: BSD-3-Clause
"""Successors are started before the ranks meet, and stand by: whatever becomes of one of them, or of
the request, costs the move at most, and leaves nothing behind."""
import os
import signal
import threading

from testbed.migration import H1, H2, STOP, Job
from testbed.outcome import check, wait_for
from tests.migrate.jobs import IDENTICAL, ends_well, heat, hosts_of, moved, mpich_only, suite, wait_channel

LATE = "rank 0 did not come to a safe point"


class Asked(threading.Thread):
    """A move of rank 1 to h1, asked for meanwhile."""

    def __init__(self, job):
        super().__init__()
        self.job = job
        self.answer = None
        self.start()

    def run(self):
        self.answer = self.job.ask("move", "--rank", 1, "--to", H1)

    def says(self, code, words):
        self.join()
        got, _, said = self.answer
        check(got == code and words in said, f"exit status {got}, not {code}: {said}")


def lost_rank_0(stage, patience=60, start=60):
    """A job whose rank 0 comes to no safe point until it is stopped; no rank runs on h1 but it."""
    job = Job(stage, "state", "lost", 0, STOP, ranks=2, hosts=(H1, H2),
              environment={"ZC_MIGRATE_PATIENCE": str(patience), "ZC_MIGRATE_START": str(start)})
    job.until_running()
    return job


def standing_by(job, before):
    """The successor's pid, once it has come to zcm_init(): then it waits for what it is told. The program
    has run there before, and ended, to show that it can."""
    found = []

    def looked():
        found[:] = [pid for pid in programs_on_h1(job) - before if "poll" in wait_channel(pid)]
        return found
    wait_for("a successor stands by", looked, 30)
    return found[0]


def programs_on_h1(job):
    return {pid for pid, line in job.processes_on("h1") if line.split()[0].endswith("/state")}


@suite.test()
@mpich_only("mpirun starts successors when the ranks have met")
def killed_while_it_stands_by(stage):
    """The launcher tells the leaver, when that is known, how its successor has ended."""
    with lost_rank_0(stage) as job:
        before = programs_on_h1(job)
        asked = Asked(job)
        os.kill(standing_by(job, before), signal.SIGKILL)
        job.stop()
        asked.says(1, "was killed by signal 9 (Killed)")
        check(hosts_of(job) == ["h1", "h2"], f"hosts {hosts_of(job)}")
        ends_well(stage, job, "all right", timeout=120)


@suite.test()
@mpich_only("mpirun starts successors when the ranks have met")
def successors_of_a_late_request_end(stage):
    """The request times out before the ranks meet: what stood by is not left there."""
    with lost_rank_0(stage, patience=5 * stage.patience) as job:
        before = programs_on_h1(job)
        asked = Asked(job)
        pid = standing_by(job, before)
        asked.says(1, LATE)
        wait_for("the successor has ended", lambda: not os.path.exists(f"/proc/{pid}"), 20)
        check(job.process.poll() is None, "the job has ended, too")


@suite.test()
@mpich_only("mpirun starts successors when the ranks have met")
def job_ends_while_successors_stand_by(stage):
    """What stands by is neither waited for nor left, and the request is answered."""
    with lost_rank_0(stage) as job:
        before = programs_on_h1(job)
        asked = Asked(job)
        standing_by(job, before)
        for pid in before:
            os.kill(pid, signal.SIGKILL)
        check(job.wait(60) != 0, "a killed rank ends the job")
        asked.join()
        check(asked.answer[0] != 0, f"moved: {asked.answer}")
        job.until_free("h1")
        job.until_free("h2")


@suite.test(tags={"long"})
@mpich_only("mpirun starts successors when the ranks have met")
def stopped_while_it_stands_by(stage):
    """A successor that is stopped costs the move, after the limit for a start; then one is made."""
    with lost_rank_0(stage, start=8 * stage.patience) as job:
        before = programs_on_h1(job)
        asked = Asked(job)
        pid = standing_by(job, before)
        os.kill(pid, signal.SIGSTOP)
        job.stop()
        asked.says(1, "")
        wait_for("the successor has ended", lambda: not os.path.exists(f"/proc/{pid}"), 60)
        moved(job, [1], H1)


@suite.test()
@mpich_only("mpirun starts successors when the ranks have met")
def successors_stand_by_before_ranks_meet(stage):
    """What the start of the successors takes is no part of the time that ranks stand still."""
    with heat(stage) as job:
        job.until_running()
        phases = moved(job, [1, 3], H1)["phases_ms"]
        check(phases["start"] > 0, f"{phases}")
        ends_well(stage, job, IDENTICAL)
