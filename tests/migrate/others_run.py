# SPDX-License-Identifier: BSD-3-Clause
"""ZC_MIGRATE_OTHERS=run: while the state of ranks that move is on its way, the others go on, and wait
only where they need a rank that moves."""
import contextlib
import os
import pathlib
import signal
import threading

from testbed import profiles
from testbed.migration import H1, H2, SAID, STOP, Job
from testbed.outcome import check, wait_for
from tests.migrate.jobs import (IDENTICAL, ends_well, ends_with_error, heat, hosts_of, moved,
                                mpich_only, refused, suite)

RUN = {"ZC_MIGRATE_OTHERS": "run"}
RANKS = 8               # in cliques of two; even ranks begin on h1
ENOUGH = 20             # steps, of ranks that go on


class InData:
    """A job of cliques of WIDTH ranks, ALL_RANKS together, on HOSTS; RANKS of it move to HOST, and the
    first waits before its data."""

    def __init__(self, stage, ranks, host, via="memory", fault="waits-in-data", width=2,
                 all_ranks=RANKS, hosts=(H1, H2)):
        self.place = stage.new_directory() + "/ranks"
        self.all_ranks = all_ranks
        self.job = Job(stage, "cliques", width, 1, STOP, ranks=all_ranks, hosts=hosts,
                       environment={**RUN, "ZC_MIGRATE_FAULT": fault,
                                    "ZCM_PROFILE_DIR": self.place})
        self.sign = pathlib.Path(self.job.directory, "saved/waits")
        self.words = ("move", "--rank", ",".join(map(str, ranks)), "--to", host, "--via", via)
        self.first = ranks[0]
        self.leaver = self.answer = self.began_on = None
        self.asked = threading.Thread(target=self.ask)

    def ask(self):
        self.answer = self.job.ask(*self.words)

    def __enter__(self):
        self.job.__enter__()
        status = self.job.until_running(safe_points=30)
        self.leaver = next(one["pid"] for one in status["ranks"] if one["rank"] == self.first)
        self.began_on = [one["host"] for one in status["ranks"]]
        self.asked.start()
        wait_for("the leaver waits with its data", self.sign.exists, 60)
        return self

    def __exit__(self, *what):
        with contextlib.suppress(FileNotFoundError):
            self.sign.unlink()
        self.asked.join()
        self.job.__exit__(*what)

    def steps(self):
        """By rank, of the rank's newest process."""
        return {rank: one.iterations for rank, one in profiles.read(self.place).items()}

    def go_on_but(self, waiting):
        """All ranks make steps, but those that need one that moves."""
        stood = self.steps()
        others = [rank for rank in range(self.all_ranks) if rank not in waiting]
        wait_for("the others go on",
                 lambda: all(self.steps()[rank] > stood[rank] + ENOUGH for rank in others), 30)
        now = self.steps()
        for rank in waiting & stood.keys() & now.keys(): # one that moves may have no page yet
            check(now[rank] <= stood[rank] + 1, f"rank {rank} goes on: {stood} and then {now}")

    def goes_on(self):
        """The data comes, and it is said."""
        self.sign.unlink()
        self.asked.join()
        code, report, said = self.answer
        check(code == 0, f"exit status {code}: {said}", self.job.said()[-SAID:])
        check(report["others"] == "run" and report["bytes"]["data"] > 1 << 20, f"{report}")
        return report


@suite.test(tags={"openmpi"})
def others_run_while_data_is_on_its_way(stage):
    """Only the other rank of its clique waits for the one that moves; the job is busy meanwhile."""
    with InData(stage, [3], H1) as move:
        move.go_on_but({2, 3})
        refused(move.job, "move", "--rank", 5, "--to", H1, code=4,
                says="another request is under way")
        move.goes_on()
        check(hosts_of(move.job) == ["h1", "h2", "h1", "h1", "h1", "h2", "h1", "h2"],
              f"hosts {hosts_of(move.job)}")
        moved(move.job, [3, 5], H2)
        ends_well(stage, move.job, "all right")


@suite.test()
def others_run_while_rank_0_moves(stage):
    with InData(stage, [0], H2) as move:
        move.go_on_but({0, 1})
        move.goes_on()
        moved(move.job, [0], H1)
        ends_well(stage, move.job, "all right")


@suite.test()
def others_run_while_a_clique_moves(stage):
    """Both ranks of one: no rank of another waits."""
    with InData(stage, [4, 5], H2) as move:
        move.go_on_but({4, 5})
        move.goes_on()
        ends_well(stage, move.job, "all right")


@suite.test()
@mpich_only("it is not given ranks of one host one after the other")
def others_run_while_one_of_four_cliques_moves(stage):
    """All four ranks of it, from one host to the other: the twelve of the other three go on, on the
    host that is left and on the one that is gone to."""
    with InData(stage, [12, 13, 14, 15], H1, width=4, all_ranks=16,
                hosts=(f"{H1}:4", f"{H2}:4")) as move:
        # The new world may have been made by now, and with it the job's status.
        check(move.began_on == (["h1"] * 4 + ["h2"] * 4) * 2, f"hosts {move.began_on}")
        move.go_on_but({12, 13, 14, 15})
        move.goes_on()
        check(hosts_of(move.job) == ["h1"] * 4 + ["h2"] * 4 + ["h1"] * 8,
              f"hosts {hosts_of(move.job)}")
        ends_well(stage, move.job, "all right", timeout=120)


@suite.test()
def others_run_while_data_goes_by_way_of_the_disk(stage):
    with InData(stage, [3], H1, via="disk") as move:
        move.go_on_but({2, 3})
        move.goes_on()
        ends_well(stage, move.job, "all right")


@suite.test()
def others_run_until_the_end_of_the_job(stage):
    """All others come to zcm_finalize() while the data of one is on its way: it is waited for."""
    with InData(stage, [3], H1) as move:
        move.job.stop()
        wait_for("the other cliques have ended", lambda: move.job.said().count("longest step") >= 6,
                 30)
        check(move.job.process.poll() is None, "the job has ended without its rank")
        move.goes_on()
        ends_well(stage, move.job, "all right")


@suite.test(tags={"openmpi"})
def others_run_in_a_program_where_all_need_all(stage):
    """One rank, two, rank 0, and back: as where the others wait, but for the time."""
    with heat(stage, environment=RUN) as job:
        job.until_running()
        for ranks, host in (([1], H1), ([0, 2], H2), ([0], H1), ([2, 1], H1)):
            moved(job, ranks, host)
        ends_well(stage, job, IDENTICAL)


@suite.test()
def all_ranks_move_where_others_run(stage):
    """None is left that could run."""
    with heat(stage, environment=RUN) as job:
        job.until_running()
        moved(job, [0, 2], H2)
        moved(job, [0, 1, 2, 3], H1)
        ends_well(stage, job, IDENTICAL)


@suite.test()
def refused_before_others_run(stage):
    """What goes wrong before the new world is made costs the move alone."""
    with heat(stage, environment={**RUN, "ZC_MIGRATE_FAULT": "other-build-late"}) as job:
        job.until_running()
        refused(job, "move", "--rank", 1, "--to", H1, says="build")
        check(hosts_of(job) == ["h1", "h2", "h1", "h2"], f"hosts {hosts_of(job)}")
        ends_well(stage, job, IDENTICAL)


@suite.test()
def data_lost_while_others_run(stage):
    """The others have gone on: the job ends, and says that it was the data."""
    with heat(stage, environment={**RUN, "ZC_MIGRATE_FAULT": "corrupt"}) as job:
        job.until_running()
        job.ask("move", "--rank", "1", "--to", H1)
        ends_with_error(job, "was corrupted in transit", 60)


@suite.test()
def successor_lost_while_others_run(stage):
    """It is the rank: its launcher says how it has ended, and the job ends. Open MPI's mpirun may be first, and says
    of one that exits without MPI_Finalize only that it has."""
    exits = {"mpich": "has ended with exit status 3: the job ends",
             "openmpi": r"(?s)returned\s+a non-zero exit code.*the successor has ended with its launcher|"
                        "has ended with exit status 3: the job ends"}
    for fault, says in (("successor-killed-data", "killed by signal 9.*the job ends"),
                        ("successor-exits", exits[stage.family])):
        with heat(stage, environment={**RUN, "ZC_MIGRATE_FAULT": fault}) as job:
            job.until_running()
            job.ask("move", "--rank", "1", "--to", H1)
            ends_with_error(job, says, 60)


@suite.test()
def leaver_killed_while_others_run(stage):
    """Its state is lost, and its successor says so."""
    with InData(stage, [3], H1) as move:
        os.kill(move.leaver, signal.SIGKILL)
        ends_with_error(move.job, "killed by signal 9|the predecessor", 60)
