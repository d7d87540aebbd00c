# SPDX-License-Identifier: BSD-3-Clause
"""What goes wrong with a move, or with a rank: no rank is lost, and no error."""
import os
import pathlib
import re
import signal
import time

from testbed.migration import H1, H2, SAID, STOP, Job
from testbed.outcome import check, wait_for
from tests.migrate.jobs import (IDENTICAL, NO_LOOSE_ENDS, answer_at_socket, ends_well,
                                ends_with_error, heat, moved, mpich_only, refused, suite)


def fault_is_survived(stage, fault, says, mpiexec=(), environment=None):
    """The move fails with a clear error, all ranks are where they were, the result is right."""
    with heat(stage, environment={"ZC_MIGRATE_FAULT": fault, **(environment or {})},
              mpiexec=mpiexec) as job:
        before = job.until_running()["ranks"]
        refused(job, "move", "--rank", 1, "--to", H1, says=says)
        check(job.status()["ranks"] == before, "ranks are not where they were")
        ends_well(stage, job, IDENTICAL, timeout=90)


@suite.test()
def host_unreachable(stage):
    with heat(stage) as job:
        before = job.until_running()["ranks"]
        refused(job, "move", "--rank", 1, "--to", "10.111.0.9", says="10.111.0.9 cannot be reached")
        check(job.status()["ranks"] == before, "ranks are not where they were")
        ends_well(stage, job, IDENTICAL)


@suite.test()
def host_unreachable_by_address(stage):
    """Without a launcher to ask: an address where no host is."""
    with heat(stage, environment={"ZC_MIGRATE_PROBE": "ping -c1 -W1 %h"}) as job:
        job.until_running()
        refused(job, "move", "--rank", 1, "--to", "10.111.0.77",
                says="10.111.0.77 cannot be reached")
        ends_well(stage, job, IDENTICAL)


@suite.test()
@mpich_only("no probe: MPI_Comm_spawn itself says so")
def program_missing_there(stage):
    fault_is_survived(stage, "no-program", "has no program .*heat2d.missing")


@suite.test()
def one_of_two_cannot_move(stage):
    """All or nothing."""
    with heat(stage) as job:
        before = job.until_running()["ranks"]
        answer = answer_at_socket(job, {"command": "move", "moves": [
            {"rank": 1, "host": H1}, {"rank": 2, "host": "nowhere"}]})
        check(not answer["ok"] and "nowhere" in answer["error"], f"{answer}")
        check(job.status()["ranks"] == before, "ranks are not where they were")
        ends_well(stage, job, IDENTICAL)


@suite.test()
@mpich_only(NO_LOOSE_ENDS)
def image_corrupted_in_transit(stage):
    fault_is_survived(stage, "corrupt", "corrupted in transit")


@suite.test()
@mpich_only(NO_LOOSE_ENDS)
def successor_exits_before_acknowledging(stage):
    fault_is_survived(stage, "successor-exits", "the successor (is gone|has been silent)",
                      environment={"ZC_MIGRATE_TIMEOUT": "10"})


@suite.test()
@mpich_only("Hydra's -disable-auto-cleanup")
def successor_killed_before_acknowledging(stage):
    """With Hydra's clean-up off the old rank goes on ..."""
    fault_is_survived(stage, "successor-killed", "the successor (is gone|has been silent)",
                      mpiexec=["-disable-auto-cleanup"], environment={"ZC_MIGRATE_TIMEOUT": "10"})


@suite.test()
@mpich_only("Hydra's -disable-auto-cleanup")
def successor_killed_before_linking_up(stage):
    """The same of one that ends before it has said that it is there ..."""
    fault_is_survived(stage, "successor-killed-early", "the successor (is gone|has been silent)",
                      mpiexec=["-disable-auto-cleanup"], environment={"ZC_MIGRATE_TIMEOUT": "10"})


def cannot_go_on(stage, job, says):
    """The exit status of JOB, which ends without a result, and says why."""
    status = job.wait(60 * stage.patience)
    check(status is not None, "the job hangs", job.said()[-SAID:])
    check(IDENTICAL not in job.said(), "went on as if nothing had happened")
    check(re.search(says, job.said()), f"it does not say '{says}'", job.said()[-SAID:])
    return status


@suite.test()
@mpich_only("Hydra's -disable-auto-cleanup")
def successor_killed_while_linking_up(stage):
    """... but once all have begun to make communicators with it there is no way back: an error."""
    for ranks in ("1", "1,2"):
        with heat(stage, environment={"ZC_MIGRATE_FAULT": "successor-killed-late",
                                      "ZC_MIGRATE_TIMEOUT": "5"},
                  mpiexec=["-disable-auto-cleanup"]) as job:
            job.until_running()
            refused(job, "move", "--rank", ranks, "--to", H1, says="")
            cannot_go_on(stage, job, "a process died")


@suite.test()
@mpich_only("Hydra's messages")
def successor_killed_ends_the_job_by_default(stage):
    """... and by default Hydra ends the job, with an error."""
    with heat(stage, environment={"ZC_MIGRATE_FAULT": "successor-killed"}) as job:
        job.until_running()
        refused(job, "move", "--rank", 1, "--to", H1, says="")
        ends_with_error(job, "BAD TERMINATION", 30 * stage.patience)


@suite.test()
@mpich_only("Hydra's messages")
def leaver_killed_after_acknowledgement(stage):
    """Never two, never none without an error: the job ends, and says so."""
    for mpiexec in ([], ["-disable-auto-cleanup"]):
        with heat(stage, mpiexec=mpiexec, environment={"ZC_MIGRATE_FAULT": "leaver-dies",
                                                       "ZC_MIGRATE_TIMEOUT": "10"}) as job:
            job.until_running()
            refused(job, "move", "--rank", 1, "--to", H1, says="")
            status = cannot_go_on(stage, job,
                                  "BAD TERMINATION|predecessor is gone|a process died")
            if not mpiexec:
                check(status != 0, f"exit status {status}")


def room(job):
    """How many communicators MPI could still make."""
    said = len(re.findall(r"room for \d+", job.said()))
    pathlib.Path(job.stop_file + ".count").touch()
    wait_for("a count", lambda: len(re.findall(r"room for \d+", job.said())) > said, timeout=60)
    return int(re.findall(r"room for (\d+)", job.said())[-1])


@suite.test()
@mpich_only(NO_LOOSE_ENDS)
def failed_moves_cost_no_communicators(stage):
    """MPICH has 2048 context ids: they come back when a move fails, with data in flight too."""
    for fault, what in (("corrupt", "i"), ("corrupt-large", "data")):
        with Job(stage, "state", "room", 100000, STOP, ranks=3,
                 environment={"ZC_MIGRATE_FAULT": fault}) as job:
            job.until_running()
            before = room(job)
            for turn in range(6):
                refused(job, "move", "--rank", "1,2" if turn % 3 == 2 else 1, "--to", H1,
                        says=f"image of '{what}' was corrupted in transit")
            after = room(job)
            check(before > 1000 and after == before, f"{fault}: room for {before}, then {after}")
            ends_well(stage, job, "all right")


@suite.test()
@mpich_only(NO_LOOSE_ENDS)
def a_failed_successor_waits_for_the_others(stage):
    """It says good-bye though another leaver takes long, which costs no communicator either."""
    with Job(stage, "state", "room", 100000, STOP, ranks=3,
             environment={"ZC_MIGRATE_FAULT": "corrupt-early"}) as job:
        job.until_running()
        before = room(job)
        begin = time.monotonic()
        refused(job, "move", "--rank", "1,2", "--to", H1, says="rank 1: image of 'i' was corrupted")
        check(time.monotonic() - begin > 12, "the other did not take long")
        after = room(job)
        check(after == before, f"room for {before}, then {after}")
        ends_well(stage, job, "all right")


def is_stopped(pid):
    return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


@suite.test()
@mpich_only(NO_LOOSE_ENDS)
def successor_wakes_up_after_its_move_failed(stage):
    """What it was being sent when it fell silent is sent then: it must still be there."""
    with Job(stage, "state", "room", 100000, STOP, ranks=3,
             environment={"ZC_MIGRATE_FAULT": "successor-stops", "ZC_MIGRATE_TIMEOUT": "3"}) as job:
        job.until_running()
        refused(job, "move", "--rank", 1, "--to", H1, says="the successor has been silent for 3 s")
        stopped = [pid for pid, _ in job.processes_on("h1") if is_stopped(pid)]
        check(len(stopped) == 1, f"stopped: {stopped}")
        room(job)   # rank 1 has given it up and goes on
        os.kill(stopped[0], signal.SIGCONT)
        wait_for("it ends", lambda: not os.path.exists(f"/proc/{stopped[0]}"), 30)
        ends_well(stage, job, "all right")


def mismatch(stage, kind, says):
    with Job(stage, "state", kind, 100000, STOP, ranks=2) as job:
        before = job.until_running()["ranks"]
        refused(job, "move", "--rank", 1, "--to", H1, says=says)
        check(job.status()["ranks"] == before, "ranks are not where they were")
        ends_well(stage, job, "all right")


@suite.test()
@mpich_only(NO_LOOSE_ENDS)
def other_type_in_the_successor(stage):
    mismatch(stage, "types", "type of 'x' is float32 in the successor, int32 before")


@suite.test()
@mpich_only(NO_LOOSE_ENDS)
def other_count_in_the_successor(stage):
    mismatch(stage, "count", "'x' has 99 elements in the successor, 100 before")


@suite.test()
@mpich_only(NO_LOOSE_ENDS)
def not_registered_in_the_successor(stage):
    mismatch(stage, "missing", "has not registered 'x'")


@suite.test()
def registered_data_freed(stage):
    with Job(stage, "state", "freed", 100000, STOP, ranks=2) as job:
        job.until_running(safe_points=10)
        refused(job, "move", "--rank", 0, "--to", H2, says="memory of 'x' is not there")
        refused(job, "checkpoint", says="memory of 'x' is not there")
        moved(job, [1], H1)
        ends_well(stage, job, "all right")


@suite.test()
def messages_across_safe_points(stage):
    with Job(stage, "state", "crossing", 100000, STOP, ranks=3) as job:
        job.until_running()
        refused(job, "move", "--rank", 2, "--to", H2,
                says=r"rank 1 has not received a message of rank 0 \(tag 4, 4 bytes\)")
        ends_well(stage, job, "all right")


@suite.test()
def a_rank_that_fails_ends_the_job(stage):
    """A singleton's exit status is nothing to Hydra; it must not be lost."""
    with Job(stage, "state", "exit", 100000) as job:
        ends_with_error(job, "rank 1: ended with exit status 5", 60 * stage.patience)


@suite.test()
def the_only_rank_fails(stage):
    """Nor once the process that mpiexec started has ended well, and no other is left to fail."""
    with Job(stage, "state", "exit", 100000, STOP, ranks=1, hosts=(H1,)) as job:
        job.until_running()
        wait_for("the process that mpiexec started has ended", lambda: all(
            sum(program in line.split()[0] for _, line in job.processes_on("h1")) < 2
            for program in (stage.programs["state"], "hydra_pmi_proxy")), 30)
        job.stop()
        ends_with_error(job, "rank 0: ended with exit status 5", 60 * stage.patience)
