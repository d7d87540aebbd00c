# SPDX-License-Identifier: BSD-3-Clause
"""What ranks report to the agents of their nodes: profiles."""
import errno
import os
import pathlib

from testbed import profiles
from testbed.migration import H1, H2, STOP, Job
from testbed.outcome import check, wait_for
from tests.migrate.jobs import (IDENTICAL, answer_at_socket, ends_well, heat, moved, mpich_only,
                                suite)

# Of `state talk` with four ranks: bytes from one to another in one iteration. To the next one
# 2000; of the exchange with all 16; of the reduction 4 to rank xor 1 and xor 2; of two broadcasts
# 4 each from 0 to 1 and 2, from 1 to 3.
TALK = {(0, 1): 2000 + 16 + 4 + 8, (0, 2): 16 + 4 + 8, (0, 3): 16,
        (1, 2): 2000 + 16, (1, 0): 16 + 4, (1, 3): 16 + 4 + 8,
        (2, 3): 2000 + 16 + 4, (2, 0): 16 + 4, (2, 1): 16,
        (3, 0): 2000 + 16, (3, 1): 16 + 4, (3, 2): 16 + 4}


def until_iterations(place, before, more):
    """Wait until the rank of the profile BEFORE is MORE iterations on."""
    wait_for(f"{more} iterations",
             lambda: profiles.read(place)[before.rank].iterations > before.iterations + more, 30)


def check_traffic(before, after):
    """What was sent between two readings is what so many iterations send."""
    for (rank, peer), each in TALK.items():
        passed = after[rank].iterations - before[rank].iterations
        sent = after[rank].sent.get(peer, 0) - before[rank].sent.get(peer, 0)
        # Counters are read while the rank is at work.
        check(passed > 20 and abs(sent - each * passed) <= 3 * each,
              f"rank {rank} sent {sent} bytes to {peer} in {passed} iterations of {each}")


@suite.test()
def profiles_report_traffic(stage):
    """Job, hosts, progress, size, and which rank sends which how much; after moves, too."""
    place = stage.new_directory() + "/ranks"
    with Job(stage, "state", "talk", 100000, STOP, environment={"ZCM_PROFILE_DIR": place}) as job:
        job.until_running()
        before = profiles.read(place)
        check(sorted(before) == [0, 1, 2, 3], f"profiles of {sorted(before)}")
        check(len({one.job for one in before.values()}) == 1, "another job's name in some rank")
        for rank, one in before.items():
            check((one.job_name, one.world, one.epoch, one.flags, one.image, one.total) ==
                  ("test", 4, 1, profiles.MOVABLE, 8, 100000), f"rank {rank}: {vars(one)}")
            check(one.hosts == ["h1", "h2", "h1", "h2"], f"{one.hosts}")
        until_iterations(place, before[1], 30)
        after = profiles.read(place)
        check_traffic(before, after)
        # A coarse clock, which may not have gone on in so few iterations.
        wait_for("all ranks have been in MPI", lambda: all(
            one.mpi_ns > before[rank].mpi_ns for rank, one in profiles.read(place).items()), 30)
        check(job.status()["epoch"] == 1, f"{job.status()}")

        answer = moved(job, [1], H1)
        check(answer["epoch"] == 2 and job.status()["epoch"] == 2, f"{answer} {job.status()}")
        moved(job, [0, 2], H2)
        check(job.status()["moves"] == 2, "a new rank 0 does not know how many moves there were")
        wait_for("profiles of ranks that moved are gone", lambda: len(os.listdir(place)) == 4, 30)
        last = profiles.read(place)
        for rank, one in last.items():
            check((one.job, one.epoch, one.flags) == (before[0].job, 3, profiles.MOVABLE),
                  f"rank {rank}: {vars(one)}")
            check(one.hosts == ["h2", "h1", "h2", "h2"], f"{one.hosts}")
            check(one.iterations >= after[rank].iterations, "iterations start anew")
            check((one.pid != before[rank].pid) == (rank != 3), f"process of rank {rank}")
        check(abs(last[0].start_ns - before[0].start_ns) < 2e9, "the job's age was forgotten")
        until_iterations(place, last[1], 30)
        check_traffic(last, profiles.read(place))

        refusal = answer_at_socket(job, {"command": "move", "epoch": 2,
                                         "moves": [{"rank": 1, "host": "h2"}]})
        check(refusal["code"] == errno.ESTALE, f"{refusal}")
        ends_well(stage, job, "all right", timeout=90)
        check(os.listdir(place) == [], f"left behind: {os.listdir(place)}")


@suite.test()
def profiles_count_each_call(stage):
    """Bytes, messages and peers of every kind of call, MPI_PROC_NULL included; time in MPI.

    On communicators made in every way there is, of ranks of one world and of a world each.
    """
    for switch in ("observe", "1"):
        place = stage.new_directory() + "/ranks"
        with Job(stage, "profile_calls",
                 environment={"ZC_MIGRATE": switch, "ZCM_PROFILE_DIR": place}) as job:
            ends_well(stage, job, "all right", timeout=120)


@suite.test()
@mpich_only("Open MPI's Fortran calls the profiling names, past all wrappers")
def profiles_count_fortran_calls(stage):
    """The Fortran binding of MPICH calls the functions of C, ours among them."""
    own = pathlib.Path(stage.prefix) / "lib"
    fortran = own / "libmpifort.so.12"
    if not fortran.exists():    # Debian's, which wraps the functions of whatever MPICH is loaded
        fortran = pathlib.Path("/usr/lib/x86_64-linux-gnu/libmpichfort.so.12")
    check(fortran.exists(), f"no {fortran} (package libmpich12)")
    names = pathlib.Path(stage.new_directory())
    (names / "libmpich.so.12").symlink_to((own / "libmpi.so.12").resolve())
    with Job(stage, "profile_calls",
             environment={"ZC_MIGRATE": "observe", "ZCM_PROFILE_DIR": str(names / "ranks"),
                          "PROFILE_CALLS_FORTRAN": str(fortran),
                          "LD_LIBRARY_PATH": f"{stage.library}/lib:{names}"}) as job:
        ends_well(stage, job, "all right", timeout=120)
        check("Fortran calls were counted" in job.said(), "no call from Fortran", job.said())


@suite.test()
def observed_only(stage):
    """ZC_MIGRATE=observe: there are profiles; nothing is spawned or listened on, nothing moves."""
    place = stage.new_directory() + "/ranks"
    with heat(stage, environment={"ZC_MIGRATE": "observe", "ZCM_PROFILE_DIR": place}) as job:
        wait_for("profiles", lambda: len(profiles.read(place)) == 4, 30)
        wait_for("iterations", lambda: all(one.iterations > 10
                                           for one in profiles.read(place).values()), 30)
        for rank, one in profiles.read(place).items():
            check(one.flags == profiles.MOVABLE | profiles.OBSERVE, f"flags {one.flags}")
            check(one.image > 2 * 32 * 512 * 8, f"image {one.image}")
            check(one.hosts == ["h1", "h2", "h1", "h2"], f"{one.hosts}")
            check(all(one.sent.get(peer, 0) >= 10 * 512 * 8 for peer in (rank - 1, rank + 1)
                      if 0 <= peer < 4), f"rank {rank} sent {one.sent}")
        check(job.ask("status")[0] == 3, "zcctl found a job")
        ends_well(stage, job, IDENTICAL)
        check(os.listdir(place) == [], f"left behind: {os.listdir(place)}")


@suite.test()
def without_a_place_for_profiles(stage):
    """A profile that cannot be made is complained of, once, and not needed."""
    place = stage.new_directory()
    os.chmod(place, 0o755)
    with heat(stage, ranks=2, environment={"ZCM_PROFILE_DIR": place}) as job:
        job.until_running()
        moved(job, [1], H1)
        ends_well(stage, job, IDENTICAL)
        check(job.said().count("agents will not see this job") == 1, "not one complaint",
              job.said())
