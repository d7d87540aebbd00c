# SPDX-License-Identifier: BSD-3-Clause
"""Programs that use MPI_COMM_WORLD and communicators made of it, with no line for moves."""
import pathlib
import re

from testbed.migration import H1, H2, SAID, STOP, Job
from testbed.outcome import Skip, check
from tests.migrate.jobs import (ANY_HOST, ends_well, ends_with_error, finishes, hosts_of, moved, mpich_only,
                                refused, suite)


def run(stage, mode, **how):
    return Job(stage, "communicators", mode, STOP, **how)


def go(job):
    pathlib.Path(job.stop_file + ".go").touch()


@suite.test(tags={"openmpi"})
def communicators_of_every_kind(stage):
    """Groups, attributes, error handlers, names and persistent requests, too; moved twice."""
    with run(stage, "all") as job:
        job.until_running()
        moved(job, [1], H1)
        job.until_running(safe_points=job.status()["safe_points"] + 3)
        moved(job, [0], H2)
        moved(job, [1], H2)
        check(hosts_of(job) == ["h2", "h2", "h1", "h2"], f"hosts {hosts_of(job)}")
        job.until_running(safe_points=job.status()["safe_points"] + 3)
        ends_well(stage, job, "all right", timeout=120)


@suite.test(tags={"openmpi"})
def an_error_of_mpi_names_the_rank(stage):
    """To MPI each rank that has moved is number 0. The program finds MPI_ERRORS_ARE_FATAL all the time. MPICH's
    own words come after ours; mpirun loses Open MPI's now and then, of any program."""
    says, modes = r"zcm: rank 1: an error of MPI in MPI_Send on host \S+: .*invalid rank", [()]
    if stage.family == "mpich":     # of Debian's Open MPI no rank can move at MPI_THREAD_MULTIPLE
        says = (r"zcm: rank 1: an error of MPI on host \S+: Invalid rank[\s\S]*MPI_Send\(.* failed\n"
                ".*Invalid rank has value 6 but must be")
        modes = [(), ("multiple",)]
    for threads in modes:
        with Job(stage, "state", "wrong", 100000, STOP, *threads, ranks=3) as job:
            job.until_running()
            moved(job, [1], H1)
            moved(job, [0], H2)
            job.until_running(safe_points=job.status()["safe_points"] + 3)
            pathlib.Path(job.stop_file).touch()
            ends_with_error(job, says, 60 * stage.patience)


@suite.test(tags={"openmpi"})
def attributes_of_mpi_1(stage):
    """And error handlers, by the calls that later versions have replaced."""
    with Job(stage, "mpi_1", STOP) as job:
        job.until_running()
        moved(job, [1], H1)
        moved(job, [0], H2)
        ends_well(stage, job, "all right")


@suite.test()
@mpich_only("mpirun cannot add a host for several spawns at once")
def communicators_of_ranks_that_move_together(stage):
    with run(stage, "all", hosts=(H1,), environment=ANY_HOST) as job:
        job.until_running()
        moved(job, [0, 1, 2, 3], H2)
        moved(job, [3, 1], H1)
        job.until_running(safe_points=job.status()["safe_points"] + 3)
        ends_well(stage, job, "all right", timeout=120)


@suite.test()
@mpich_only("the counter is ch4:zc's")
def processes_that_have_ended_are_known_no_more(stage):
    """Else they would count among those that share the processors, and ranks give way to them."""
    if stage.netmod != "zc":
        raise Skip("the counter is ch4:zc's")
    with Job(stage, "known", STOP) as job:
        job.until_running()
        for ranks, host in (([1], H1), ([0, 3], H2), ([0, 1, 2, 3], H1)):
            moved(job, ranks, host)
            job.until_running(safe_points=job.status()["safe_points"] + 3)
        ends_well(stage, job, "know each other, and no others: all right")


@suite.test()
@mpich_only("the counter is ch4:zc's")
def threads_have_a_vci_each_after_moves(stage):
    """A pair of ranks uses all VCIs, whatever processes they are in by now."""
    if stage.netmod != "zc":
        raise Skip("the counter is ch4:zc's")
    with Job(stage, "threads", STOP, environment={"MPIR_CVAR_CH4_NUM_VCIS": "4"}) as job:
        job.until_running()
        for ranks, host in (([1], H1), ([0, 3], H2), ([0, 1, 2, 3], H1), ([2], H2), ([2], H1)):
            moved(job, ranks, host)
            job.until_running(safe_points=job.status()["safe_points"] + 3)
        ends_well(stage, job, "have a connection each: all right", timeout=120)


@suite.test(tags={"openmpi"})
def initialisation_that_communicates(stage):
    """A resumed rank runs it, too, and has the input that was drawn at the start."""
    with run(stage, "input") as job:
        job.until_running()
        moved(job, [1, 0] if stage.family == "mpich" else [1], H1)
        moved(job, [1], H2)
        job.until_running(safe_points=job.status()["safe_points"] + 3)
        ends_well(stage, job, "all right", timeout=120)
        values = set(re.findall(r"resumed with (\d+)", job.said()))
        check(len(values) == 1, f"resumed with {values}", job.said()[-SAID:])


@suite.test()
def initialisation_after_a_restart(stage):
    """All ranks are resumed then, and communicate; a rank that moves after that does not."""
    with run(stage, "input") as job:
        job.until_running()
        check(job.ask("checkpoint")[0] == 0, "no checkpoint", job.said()[-SAID:])
        ends_well(stage, job, "all right", timeout=120)
        saved = job.directory + "/saved"
    with run(stage, "input", environment={"ZC_MIGRATE_RESTART": saved}) as job:
        job.until_running()
        moved(job, [2], H2)
        ends_well(stage, job, "all right", timeout=120)


@suite.test()
def communicator_in_registered_memory(stage):
    """Handles stay what they are, in a process that did not make the communicator, too."""
    with run(stage, "late") as job:
        job.until_running()
        moved(job, [2], H2)
        moved(job, [0], H2)
        ends_well(stage, job, "all right", timeout=120)


@suite.test(tags={"openmpi"})
def library_with_a_communicator_of_its_own(stage):
    with run(stage, "library") as job:
        job.until_running()
        moved(job, [1], H1)
        moved(job, [1], H2)
        ends_well(stage, job, "all right", timeout=120)


@suite.test()
def live_requests(stage):
    """A receive that is posted, and a send that is not waited for: the job goes on, and can move."""
    for mode, says in (("irecv", r"rank 1 has 1 live request \(first: MPI_Irecv from rank 0, tag 4"),
                       ("isend", r"rank 1 has 1 live request \(first: MPI_Isend to rank 0, tag 4")):
        with run(stage, mode) as job:
            job.until_running()
            refused(job, "move", "--rank", 2, "--to", H2, says=says)
            refused(job, "checkpoint", says=says)
            go(job)
            moved(job, [1], H1)
            ends_well(stage, job, "all right")


@suite.test(tags={"openmpi"})
def requests_that_outlive_communicators(stage):
    """They are counted to whom they went, long after the communicator of each is gone."""
    with run(stage, "freed") as job:
        # Eight communicators to each, so more than libzcm keeps the members of.
        job.until_running(safe_points=10)
        refused(job, "move", "--rank", 2, "--to", H2,
                says=r"rank 1 has 1 live request \(first: MPI_Irecv from rank 0, tag 4")
        go(job)
        moved(job, [1], H1)
        job.until_running(safe_points=job.status()["safe_points"] + 10)
        moved(job, [0], H2)
        ends_well(stage, job, "all right", timeout=120)


@suite.test()
def messages_on_other_communicators(stage):
    """What crosses safe points on a derived communicator is counted, and not lost."""
    with run(stage, "derived") as job:
        job.until_running()
        refused(job, "move", "--rank", 2, "--to", H2,
                says=r"rank 1 has not received a message of rank 0 \(tag 4, 4 bytes")
        ends_well(stage, job, "all right")


@suite.test()
def windows_and_files(stage):
    """Open ones refuse a move, and say so, unless the program closes them for it."""
    for mode, says in (("window", "1 window open"), ("file", "1 file open")):
        with run(stage, mode) as job:
            job.until_running()
            refused(job, "move", "--rank", 2, "--to", H2, says=says)
            check(job.ask("checkpoint")[0] == 0, "no checkpoint", job.said()[-SAID:])
            ends_well(stage, job, "all right")
    with run(stage, "released") as job:
        job.until_running()
        moved(job, [2], H2)
        moved(job, [0], H2)
        job.until_running(safe_points=job.status()["safe_points"] + 3)
        ends_well(stage, job, "all right")


@suite.test()
@mpich_only("MPI_Comm_disconnect of Open MPI hangs with three worlds")
def communicator_with_a_stranger(stage):
    with run(stage, "stranger", ranks=2) as job:
        job.until_running()
        refused(job, "move", "--rank", 1, "--to", H1, says="processes that are not of the job")
        go(job)
        job.until_running(safe_points=job.status()["safe_points"] + 5)
        moved(job, [1], H1)
        ends_well(stage, job, "all right")


@suite.test()
@mpich_only("a rank that mpirun has moved is no child of its launcher")
def a_rank_that_has_moved_spawns_two_commands(stage):
    """Its launcher handed on the first one, and waited for the answer that comes after the second."""
    with run(stage, "spawns", ranks=2) as job:
        job.until_running()
        moved(job, [1], H1)
        job.until_running(safe_points=job.status()["safe_points"] + 3)
        ends_well(stage, job, "all right")


@suite.test()
def initialisation_that_differs(stage):
    with run(stage, "differs") as job:
        job.until_running()
        refused(job, "move", "--rank", 1, "--to", H1,
                says=r"is MPI_Barrier\(\), and the predecessor's was MPI_Bcast\(\)")
        ends_well(stage, job, "all right")


@suite.test()
def initialisation_without_a_record(stage):
    """Too long to be kept: said once by each rank, and what then does communicate is refused."""
    with run(stage, "input", environment={"ZC_MIGRATE_RECORD": "500"}) as job:
        job.until_running()
        refused(job, "move", "--rank", 1, "--to", H1, says="and the predecessor's had ended")
        ends_well(stage, job, "all right")
        check(job.said().count("is longer than ZC_MIGRATE_RECORD allows") == 4,
              "not four complaints", job.said()[-SAID:])


def rank_1_stays(stage, mode, says):
    """It has made something after its first safe point, and is refused; others move."""
    with run(stage, mode) as job:
        job.until_running()
        refused(job, "move", "--rank", 1, "--to", H1, says=says)
        moved(job, [2], H2)
        ends_well(stage, job, "all right")


@suite.test()
def persistent_request_made_later(stage):
    rank_1_stays(stage, "persists", "1 persistent request")


@suite.test(tags={"openmpi"})
def attribute_set_later(stage):
    """Its successor would not have it, and a library that finds nothing would make it anew alone."""
    rank_1_stays(stage, "caches", "1 attribute of MPI_COMM_WORLD")


@suite.test(tags={"openmpi"})
def attribute_set_later_and_by_rebuild(stage):
    with run(stage, "recaches") as job:
        job.until_running()
        for rank, host in ((1, H1), (2, H2), (1, H2)):
            moved(job, [rank], host)
            job.until_running(safe_points=job.status()["safe_points"] + 3)
        ends_well(stage, job, "all right")


@suite.test(tags={"openmpi"})
def program_without_calls_of_libzcm(stage):
    """ZC_MIGRATE=1: MPI_COMM_WORLD is the job, from MPI_Init to MPI_Finalize."""
    with run(stage, "plain") as job:
        finishes(stage, job, "4 ranks, all right")
