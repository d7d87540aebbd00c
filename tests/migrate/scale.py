# SPDX-License-Identifier: BSD-3-Clause
"""Jobs of more ranks than two hosts have processors: they start, drain a host, and go on moving."""
import time

from testbed.migration import H1, H2, STOP, Job
from testbed.outcome import check
from testbed.suite import Note
from tests.migrate.jobs import IDENTICAL, ends_well, hosts_of, moved, suite

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
