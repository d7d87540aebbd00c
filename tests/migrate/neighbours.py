# SPDX-License-Identifier: BSD-3-Clause
"""Hosts that have ranks of the job: their launcher starts what is to come there, below itself."""
import contextlib
import copy
import os
import pathlib
import shutil
import signal

from testbed.beside import Beside
from testbed.migration import H1, H2, STOP, Job
from testbed.outcome import check, wait_for
from tests.migrate.faults import stopped_on
from tests.migrate.hydra import proxies_on
from tests.migrate.jobs import (HEAT, IDENTICAL, ends_well, heat, hosts_of, moved, mpich_only, parent_of, refused, suite)

LAUNCHERS = "mpirun has no launchers of ours"


class Remote:
    """A stage whose hosts are reached by a command that counts its calls, and fails while it is told to."""

    def __init__(self, stage):
        self.stage = copy.copy(stage)
        self.directory = pathlib.Path(stage.new_directory())
        self.stage.rsh = self.directory / "rsh"
        self.stage.rsh.write_text(f'#!/bin/bash\necho "$*" >> {self.directory}/calls\n'
                                  f'[[ -e {self.directory}/broken ]] && exit 255\nexec {stage.rsh} "$@"\n',
                                  encoding="utf-8")
        self.stage.rsh.chmod(0o700)

    def calls(self):
        return (self.directory / "calls").read_text(encoding="utf-8").splitlines()

    @contextlib.contextmanager
    def broken(self):
        (self.directory / "broken").touch()
        yield
        (self.directory / "broken").unlink()


def launcher_of(job, rank):
    return parent_of(job.status()["ranks"][rank]["pid"])


def ends_by_death_of(stage, job, pid):
    os.kill(pid, signal.SIGKILL)
    check(job.wait(60 * stage.patience) not in (0, None), "the job has not ended with an error")
    for host in ("h1", "h2"):
        job.until_free(host)


def with_stopped_successors(stage):
    """A job whose successors stop before they are ranks."""
    return Job(stage, "state", "room", 100000, STOP, ranks=3,
               environment={"ZC_MIGRATE_FAULT": "successor-stops", "ZC_MIGRATE_TIMEOUT": "60"})


def kill_successor(job):
    """That of rank 1, on h1. The move is refused, and says how it has ended."""
    asking = Beside(refused, job, "move", "--rank", 1, "--to", H1,
                    says=r"was killed by signal 9 \(Killed\)")
    asking.start()
    os.kill(stopped_on(job, "h1"), signal.SIGKILL)
    asking.join()


def is_below(job, rank, other):
    """Has the launcher of OTHER started that of RANK?"""
    return parent_of(launcher_of(job, rank)) == launcher_of(job, other)


@suite.test()
@mpich_only(LAUNCHERS)
def a_launcher_takes_more_ranks(stage):
    """Its host gets no other proxy, and nothing is asked by ssh; a host without ranks is reached as ever."""
    remote = Remote(stage)
    with heat(remote.stage) as job:
        job.until_running()
        for turn in range(2):
            before, proxies = len(remote.calls()), proxies_on(job, "h1")
            moved(job, [1, 3], H1)
            check(len(remote.calls()) == before, f"asked by ssh: {remote.calls()[before:]}")
            check(proxies_on(job, "h1") == proxies, f"on h1: {job.processes_on('h1')}")
            check(is_below(job, 1, 0) and launcher_of(job, 1) == launcher_of(job, 3), "not below that of rank 0")
            job.until_free("h2")
            if turn == 0:
                moved(job, [3, 1], H2)
                check(len(remote.calls()) > before, "nobody has asked h2")
        moved(job, [2], H2)
        moved(job, [2], H1)
        check(is_below(job, 2, 0), "not all are below the first")
        ends_well(stage, job, IDENTICAL)


@suite.test()
@mpich_only(LAUNCHERS)
def a_host_with_ranks_needs_no_ssh(stage):
    """Nor does it have to be rank 0's."""
    remote = Remote(stage)
    with heat(remote.stage, ranks=3) as job:
        job.until_running()
        with remote.broken():
            moved(job, [2], H2)
            check(hosts_of(job) == ["h1", "h2", "h2"], f"hosts {hosts_of(job)}")
            check(is_below(job, 2, 1), "another launcher")
            moved(job, [0], "h2")   # by its name; from now on rank 0 asks from there
            job.until_free("h1")
            refused(job, "move", "--rank", 0, "--to", H1, says=f"host {H1} cannot be reached")
        moved(job, [0], H1)
        ends_well(stage, job, IDENTICAL)


@suite.test()
@mpich_only(LAUNCHERS)
def program_that_a_launcher_does_not_find(stage):
    """It has gone since the job began: said by what is asked there afterwards. Nothing stays there."""
    program = pathlib.Path(stage.new_directory(), "heat")
    shutil.copy(stage.programs["heat2d"], program)
    with Job(stage, str(program), *HEAT, "--iterations", 10000000, "--until", STOP) as job:
        before = job.until_running()["ranks"]

        def on_h1():
            return {pid for pid, _ in job.processes_on("h1")}
        there = on_h1()
        program.rename(program.with_name("away"))
        for ranks in (1, "1,3"):
            refused(job, "move", "--rank", ranks, "--to", H1, says=f"host {H1} has no program .*heat$")
            wait_for("nothing is left of it", lambda: on_h1() <= there, 20)
        check(job.status()["ranks"] == before, "ranks are not where they were")
        program.with_name("away").rename(program)
        moved(job, [1], H1)
        ends_well(stage, job, IDENTICAL)


@suite.test()
@mpich_only(LAUNCHERS)
def a_launcher_that_does_not_answer(stage):
    """Another one is started then."""
    with heat(stage, ranks=3) as job:
        job.until_running()
        launcher = launcher_of(job, 1)
        os.kill(launcher, signal.SIGSTOP)
        try:
            moved(job, [2], H2)
            moved(job, [2], H1)
            moved(job, [2], H2)
        finally:
            os.kill(launcher, signal.SIGCONT)
        check(not is_below(job, 2, 1), "a launcher that was stopped has started it")
        said = job.said().count("is not used any more")
        check(said == 1, f"that it does not answer is said {said} times")
        ends_well(stage, job, IDENTICAL)


@suite.test()
@mpich_only(LAUNCHERS)
def a_rank_that_was_taken_in_is_one(stage):
    """Its end is that of the job, and those who stay with the launcher are no reason to go on."""
    with heat(stage) as job:
        job.until_running()
        moved(job, [1], H1)
        ends_by_death_of(stage, job, job.status()["ranks"][1]["pid"])


@suite.test()
@mpich_only(LAUNCHERS)
def a_launcher_whose_own_ranks_have_left(stage):
    """It stays as the guard of those below, whose end comes with its own: the job knows of it."""
    with heat(stage, ranks=2) as job:
        job.until_running()
        moved(job, [1], H1)
        first = parent_of(launcher_of(job, 1))
        moved(job, [0], H2)
        check(parent_of(launcher_of(job, 1)) == first, "rank 1 has another launcher")
        ends_by_death_of(stage, job, first)


@suite.test()
@mpich_only(LAUNCHERS)
def a_successor_that_ends_where_ssh_does_not_lead(stage):
    """What is said is how it has ended: that the host cannot be reached by ssh is not why."""
    remote = Remote(stage)
    with with_stopped_successors(remote.stage) as job:
        job.until_running()
        with remote.broken():
            kill_successor(job)
        ends_well(stage, job, "all right")


@suite.test()
@mpich_only(LAUNCHERS)
def a_launcher_ends_with_the_last_that_is_below(stage):
    """Its host is free then."""
    with heat(stage, ranks=2) as job:
        job.until_running()
        moved(job, [1], H1)
        moved(job, [0], H2)
        moved(job, [1], H2)
        job.until_free("h1")
        ends_well(stage, job, IDENTICAL)


@suite.test()
@mpich_only(LAUNCHERS)
def a_successor_killed_in_a_launcher_with_ranks(stage):
    """Before it is the rank: its launcher says how it has ended, and its ranks go on."""
    with with_stopped_successors(stage) as job:
        before = job.until_running()["ranks"]
        kill_successor(job)
        check(job.status()["ranks"] == before, "ranks are not where they were")
        ends_well(stage, job, "all right")
