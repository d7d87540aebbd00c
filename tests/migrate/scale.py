# SPDX-License-Identifier: BSD-3-Clause
"""Jobs of more ranks than two hosts have processors: they start, drain a host, go on moving, and end for a
reason."""
import os
import re
import signal
import time

from testbed.migration import H1, H2, SAID, STOP, Job
from testbed.outcome import check
from testbed.suite import Note
from tests.migrate.jobs import IDENTICAL, ends_well, ends_with_error, hosts_of, moved, mpich_only, suite

# UCX asks after its peers often then, and would ask after one at a time if libzcm let it.
WATCHED = {"UCX_KEEPALIVE_INTERVAL": "1ms", "UCX_KEEPALIVE_NUM_EPS": "1"}


def job_of(stage, ranks, **how):
    return Job(stage, "heat2d", "--rows", 4 * ranks, "--columns", 64, "--iterations", 10000000,
               "--until", STOP, ranks=ranks, **how)


def patient(seconds):
    """All limits of the job: as many processes as that share two processors."""
    return {name: str(seconds) for name in
            ("ZC_MIGRATE_START", "ZC_MIGRATE_TIMEOUT", "ZC_MIGRATE_PATIENCE", "ZC_MIGRATE_WORLD")}


def drained(stage, ranks, moves, environment):
    """A job of RANKS leaves one host altogether, and then MOVES times one rank moves."""
    begin = time.monotonic()
    with job_of(stage, ranks, environment=environment) as job:
        job.until_running(timeout=600)
        started = time.monotonic() - begin
        where = hosts_of(job)
        check(len(where) == ranks and set(where) == {"h1", "h2"}, f"hosts {where}")
        answer = moved(job, [r for r in range(ranks) if where[r] == "h2"], H1)
        check(set(hosts_of(job)) == {"h1"}, f"hosts {hosts_of(job)}")
        begin = time.monotonic()
        for i in range(moves):
            moved(job, [i * 7 % ranks], H2)
        each = (time.monotonic() - begin) / moves
        check(hosts_of(job).count("h2") == len({i * 7 % ranks for i in range(moves)}),
              f"hosts {hosts_of(job)}")
        ends_well(stage, job, IDENTICAL, timeout=600)
    drain_s = answer["response_ms"] / 1e3
    return Note(f"started in {started:.1f} s, half of them moved in {drain_s:.1f} s, one in "
                f"{each:.1f} s", ranks=ranks, start_s=started, drain_s=drain_s, move_s=each)


@suite.test()
def sixteen_ranks(stage):
    return drained(stage, 16, 3, patient(120))


@suite.test()
def eight_watched_ranks(stage):
    """Peers are asked after while connections to some are closed, at the end of each process."""
    for _ in range(6):
        with job_of(stage, 8, hosts=(H1,), environment={**patient(120), **WATCHED}) as job:
            job.until_running(timeout=120)
            ends_well(stage, job, IDENTICAL)


@suite.test(tags={"long"})
def thirty_two_ranks(stage):
    return drained(stage, 32, 10, patient(300))


@suite.test(tags={"long"})
def sixty_four_ranks(stage):
    return drained(stage, 64, 10, patient(600))


@suite.test(tags={"long"})
def one_hundred_and_twenty_eight_ranks(stage):
    return drained(stage, 128, 10, patient(900))


@suite.test(tags={"long"})
def sixty_four_ranks_where_others_run(stage):
    """Half of them move together: as many successors stand by, and are linked up without their data."""
    return drained(stage, 64, 10, {**patient(600), "ZC_MIGRATE_OTHERS": "run"})


@suite.test(tags={"long"})
def one_hundred_and_twenty_eight_ranks_where_others_run(stage):
    return drained(stage, 128, 10, {**patient(900), "ZC_MIGRATE_OTHERS": "run"})


def lost(stage, ranks):
    """A rank of RANKS is killed, where nothing but MPI ends those on other hosts; half of them have moved before,
    and have one launcher, with which they end: each of these may be found to be gone."""
    with job_of(stage, ranks, environment=patient(600), mpiexec=["-disable-auto-cleanup"]) as job:
        before = job.until_running(timeout=600)["ranks"]
        leavers = [rank for rank, one in enumerate(before) if one["host"] == "h2"]
        moved(job, leavers, H1)
        victim = leavers[len(leavers) // 2]
        pids = [one["pid"] for one in job.until_running(timeout=600)["ranks"]]
        begin = time.monotonic()
        os.kill(pids[victim], signal.SIGKILL)
        status = job.wait(300 * stage.patience)
        took = time.monotonic() - begin
        check(status not in (0, None), f"exit status {status}", job.said()[-SAID:])
        killed = re.findall(r"rank (\d+) on h1, process \d+, was killed by signal 9", job.said())
        gone = {int(rank) for rank in re.findall(r"rank (\d+) on h1 is gone", job.said())}
        check(killed == [str(victim)] or not killed and victim in gone,
              f"rank {victim} was killed, and {killed} is named", job.said()[-SAID:])
        check(gone <= set(leavers), f"{gone - set(leavers)} are called gone", job.said()[-SAID:])
        for host in ("h1", "h2"):
            job.until_free(host)
    return Note(f"ended {took:.1f} s after the rank", ranks=ranks, end_s=took)


def aborted(stage, ranks):
    """A rank of RANKS that has moved calls MPI_Abort()."""
    with Job(stage, "state", "abort", 1000, STOP, ranks=ranks, environment=patient(600)) as job:
        job.until_running(timeout=600)
        moved(job, [1], H1)
        job.stop()
        ends_with_error(job, r"rank 1: MPI_Abort\(\) with error 7", 300 * stage.patience, 7)
        for host in ("h1", "h2"):
            job.until_free(host)


@suite.test()
@mpich_only("Hydra's -disable-auto-cleanup")
def sixteen_ranks_lose_one(stage):
    return lost(stage, 16)


@suite.test(tags={"long"})
@mpich_only("Hydra's -disable-auto-cleanup")
def one_hundred_and_twenty_eight_ranks_lose_one(stage):
    return lost(stage, 128)


@suite.test(tags={"long"})
@mpich_only("the exit status of Hydra's mpiexec")
def one_hundred_and_twenty_eight_ranks_are_aborted(stage):
    aborted(stage, 128)
