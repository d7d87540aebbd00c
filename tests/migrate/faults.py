# SPDX-License-Identifier: BSD-3-Clause
"""What goes wrong with a move, or with a rank: no rank is lost, and no error."""
import contextlib
import copy
import os
import pathlib
import re
import signal
import threading
import time

from testbed.beside import Beside
from testbed.memory import LimitedMemory
from testbed.migration import H1, H2, SAID, STOP, Job
from testbed.outcome import check, wait_for
from testbed.process import children
from tests.migrate.jobs import (ANY_HOST, IDENTICAL, LAUNCHED, answer_at_socket,
                                cut_off, ends_well, ends_with_error, heat, moved, mpich_only,
                                parent_of, refused, state_of, suite)


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
    """As the launcher says, where there is one to ask, or else the kernel."""
    says = {"mpich": r"\S+ (has ended with exit status|was killed by signal) \d+", "openmpi": "No route to host"}
    with heat(stage, environment=ANY_HOST) as job:
        before = job.until_running()["ranks"]
        refused(job, "move", "--rank", 1, "--to", "10.111.0.9",
                says=f"10.111.0.9 cannot be reached: {says[stage.family]}")
        check(job.status()["ranks"] == before, "ranks are not where they were")
        ends_well(stage, job, IDENTICAL)


@suite.test()
@mpich_only("mpirun starts its daemons in another way")
def first_world_launched_in_part(stage):
    """The launcher fails for one host: mpiexec says so, and what it has started elsewhere ends."""
    part = copy.copy(stage)
    part.rsh = pathlib.Path(stage.new_directory(), "rsh")
    part.rsh.write_text(f'#!/bin/bash\n[[ " $* " == *" {H2} "* ]] && exit 255\nexec {stage.rsh} "$@"\n',
                        encoding="utf-8")
    part.rsh.chmod(0o700)
    for migrate in (False, True):
        with heat(part, migrate=migrate) as job:
            ends_with_error(job, f"launcher has failed before the proxy on {H2} has connected", 30)


@suite.test()
def host_outside_the_allocation(stage):
    """The job goes nowhere but where mpiexec, or the user, has said that it may."""
    beyond = "10.111.0.9"
    says = (f"host {beyond} is not one of this job's: it may use .*"
            r"\({}; ZC_MIGRATE_HOSTS says otherwise\)")
    for environment, source in (({}, "mpiexec's option -hosts"),
                                ({"ZC_MIGRATE_HOSTS": f"{H1},{H2}"}, "ZC_MIGRATE_HOSTS"),
                                ({"SLURM_JOB_NODELIST": "h[1-2]"}, "SLURM_JOB_NODELIST")):
        with heat(stage, environment=environment) as job:
            before = job.until_running()["ranks"]
            refused(job, "move", "--rank", 1, "--to", beyond, says=says.format(source))
            check(job.status()["ranks"] == before, "ranks are not where they were")
            moved(job, [1], H1)
            ends_well(stage, job, IDENTICAL)


@suite.test()
def host_unreachable_by_address(stage):
    """Without a launcher to ask: an address where no host is."""
    with heat(stage, environment={"ZC_MIGRATE_PROBE": "ping -c1 -W1 %h", **ANY_HOST}) as job:
        job.until_running()
        refused(job, "move", "--rank", 1, "--to", "10.111.0.77",
                says="10.111.0.77 cannot be reached")
        ends_well(stage, job, IDENTICAL)


@suite.test()
@mpich_only("no probe: MPI_Comm_spawn itself says so")
def program_missing_there(stage):
    fault_is_survived(stage, "no-program", "has no program .*heat2d.missing")


@suite.test()
@mpich_only(LAUNCHED)
def library_missing_there(stage):
    """One that cannot be loaded: the program there finds an empty file in its place."""
    with heat(stage, environment={"ZC_MIGRATE_FAULT": "no-library"}) as job:
        before = job.until_running()["ranks"]
        broken = pathlib.Path(job.directory) / "saved"
        broken.mkdir(exist_ok=True)
        for name in ("libzcm-mpich.so", "libzcm-mpich.so.0"):
            (broken / name).touch()
        refused(job, "move", "--rank", 1, "--to", H1,
                says="host .* cannot run .*heat2d.*error while loading shared libraries: .*libzcm")
        check(job.status()["ranks"] == before, "ranks are not where they were")
        ends_well(stage, job, IDENTICAL)


@suite.test()
@mpich_only(LAUNCHED)
def other_build_there(stage):
    """Found before anything is started there; and, if it comes later, when the successor is met."""
    for fault, needed in (("other-build", "[0-9a-f]{40}"), ("other-build-late", "another")):
        fault_is_survived(stage, fault,
                          f"host .* has another build of the program: found .*, needed {needed}")


@suite.test()
@mpich_only(LAUNCHED)
def other_processor_there(stage):
    fault_is_survived(stage, "other-processor", "the processor of host .* lacks .*sse")


@suite.test()
def no_memory_there(stage):
    fault_is_survived(stage, "no-memory",
                      "host .* has too little memory: found 1 MiB .*, needed [0-9]+ MiB")


@suite.test()
@mpich_only(LAUNCHED)
def no_memory_there_before_ranks_meet(stage):
    """It is rank 0 that finds it, and no leaver: no rank has been called."""
    fault_is_survived(stage, "no-memory-told",
                      r"(?<!rank 1: )host \S+ has too little memory: found 1 MiB .*, needed [0-9]+ MiB")


@suite.test()
@mpich_only(LAUNCHED)
def status_while_a_host_is_probed(stage):
    """The socket answers others meanwhile; a second request is told that one is under way."""
    with heat(stage, environment={"ZC_MIGRATE_PROBE": "sleep 3; test %h"}) as job:
        job.until_running()
        asking = Beside(moved, job, [1], H1)
        begin = time.monotonic()
        asking.start()
        time.sleep(0.5)
        check(job.status()["moves"] == 0, "it has moved already")
        refused(job, "move", "--rank", 2, "--to", H2, code=4, says="under way")
        check(time.monotonic() - begin < 3, "the socket did not answer while it probed")
        asking.join()
        check(job.status()["moves"] == 1, "it has not moved")
        ends_well(stage, job, IDENTICAL)


@suite.test()
def one_of_two_cannot_move(stage):
    """All or nothing."""
    with heat(stage, environment=ANY_HOST) as job:
        before = job.until_running()["ranks"]
        answer = answer_at_socket(job, {"command": "move", "moves": [
            {"rank": 1, "host": H1}, {"rank": 2, "host": "nowhere"}]})
        check(not answer["ok"] and "nowhere" in answer["error"], f"{answer}")
        check(job.status()["ranks"] == before, "ranks are not where they were")
        ends_well(stage, job, IDENTICAL)


@suite.test(tags={"openmpi"})
def image_corrupted_in_transit(stage):
    fault_is_survived(stage, "corrupt", "corrupted in transit")


@suite.test()
def successor_exits_before_acknowledging(stage):
    fault_is_survived(stage, "successor-exits", "the successor has ended with exit status 3",
                      environment={"ZC_MIGRATE_TIMEOUT": "10"})


def stopped_on(job, host):
    """The successor that has stopped itself there."""
    found = []

    def look():
        found[:] = [pid for pid, _ in job.processes_on(host) if state_of(pid) == "T"]
        return found

    wait_for(f"a process stops on {host}", look, 60)
    return found[0]


KILLED_BEFORE_GO = ("successor-killed-early", "successor-killed-data", "successor-killed",
                    "successor-killed-ready")


@suite.test(tags={"openmpi"})
def successor_killed_before_go(stage):
    """In each phase before go, with the clean-up that mpiexec has by default: the move fails ..."""
    for fault in KILLED_BEFORE_GO:
        fault_is_survived(stage, fault,
                          r"rank 1: the successor was killed by signal 9 \(Killed\)")


@suite.test()
def successor_killed_for_lack_of_memory(stage):
    """By the kernel, while the data comes: its cgroup has no room for what it has asked for."""
    with contextlib.closing(LimitedMemory(stage.network.name, 16 << 20)) as group, \
            heat(stage, "--ballast", 64, ranks=3, environment={
                "ZC_MIGRATE_FAULT": "successor-stops", "ZC_MIGRATE_TIMEOUT": "20"}) as job:
        before = job.until_running()["ranks"]
        asking = Beside(refused, job, "move", "--rank", 1, "--to", H1,
                        says=r"the successor was killed by signal 9 \(Killed\)")
        asking.start()
        successor = stopped_on(job, "h1")
        group.add(successor)
        os.kill(successor, signal.SIGCONT)
        asking.join()
        check(group.kills() == 1, f"the kernel has killed {group.kills()}: the test shows nothing")
        check(job.status()["ranks"] == before, "ranks are not where they were")
        ends_well(stage, job, IDENTICAL)


@suite.test()
@mpich_only(LAUNCHED)
def successor_killed_without_cleanup(stage):
    """... and so without."""
    fault_is_survived(stage, "successor-killed-data", "the successor was killed by signal 9",
                      mpiexec=["-disable-auto-cleanup"])


@suite.test(tags={"long"})
@mpich_only("either successor may be the first to stop there")
def one_of_two_successors_killed(stage):
    """All or nothing; and a later move is made."""
    with Job(stage, "state", "room", 100000, STOP, ranks=3,
             environment={"ZC_MIGRATE_FAULT": "successor-stops", "ZC_MIGRATE_TIMEOUT": "20"}) as job:
        before = job.until_running()["ranks"]
        asking = Beside(refused, job, "move", "--rank", "1,2", "--to", H1,
                        says="the successor was killed by signal 9")
        asking.start()
        os.kill(stopped_on(job, "h1"), signal.SIGKILL)
        asking.join()
        check(job.status()["ranks"] == before, "ranks are not where they were")
        ends_well(stage, job, "all right")


@suite.test()
@mpich_only(LAUNCHED)
def launcher_killed_before_go(stage):
    """Its successors end with it, and nothing else does: the guard above it sees to that."""
    with Job(stage, "state", "room", 100000, STOP, ranks=3,
             environment={"ZC_MIGRATE_FAULT": "successor-stops", "ZC_MIGRATE_TIMEOUT": "20"}) as job:
        before = job.until_running()["ranks"]
        asking = Beside(refused, job, "move", "--rank", 1, "--to", H1,
                        says="the successor has ended with its launcher")
        asking.start()
        os.kill(parent_of(stopped_on(job, "h1")), signal.SIGKILL)
        asking.join()
        check(job.status()["ranks"] == before, "ranks are not where they were")
        ends_well(stage, job, "all right")


@suite.test(tags={"openmpi"})
def rank_killed_ends_the_job(stage):
    """A successor that has become the rank: its end is the job's, as that of any process."""
    with heat(stage) as job:
        job.until_running()
        moved(job, [1], H1)
        os.kill(job.status()["ranks"][1]["pid"], signal.SIGSEGV)
        ends_with_error(job, r"rank 1 on \S+, process \d+, was killed by signal 11 \(\w", 30 * stage.patience)
        launcher_s = "BAD TERMINATION" if stage.family == "mpich" else "exited on signal 11"
        check(launcher_s in job.said(), "mpiexec does not say so", job.said()[-SAID:])


@suite.test()
@mpich_only("Hydra's messages")
def a_signal_reaches_all_after_moves(stage):
    """mpiexec passes it on, though some of its proxies have ended: it gave up at the first."""
    with heat(stage) as job:
        job.until_running()
        moved(job, [1, 3], H1)
        moved(job, [1], H2)
        os.kill(job.process.pid, signal.SIGTERM)
        cannot_go_on(stage, job, r"EXIT CODE: 15\b|\(signal 15\)")
        check("downstream" not in job.said(), "mpiexec has given up", job.said()[-SAID:])
        for host in ("h1", "h2"):
            job.until_free(host)


@suite.test()
@mpich_only("Hydra")
def a_killed_mpiexec_leaves_nothing(stage):
    """Neither what was started before, nor a proxy that it had not heard of yet."""
    with heat(stage) as job:
        job.until_running()
        moved(job, [1, 3], H1)      # h2 has no launcher then, and needs a proxy
        mpiexec = job.process.pid
        before, there = set(children(mpiexec)), job.processes_on("h2")
        asking = threading.Thread(target=job.ask, args=("move", "--rank", 0, "--to", H2))
        asking.start()
        wait_for("a proxy is started", lambda: set(children(mpiexec)) - before, 30, 1e-4)
        os.kill(mpiexec, signal.SIGSTOP)
        wait_for("it is there", lambda: any(
            "hydra_pmi_proxy" in one[1].split()[0] and one not in there
            for one in job.processes_on("h2")), 30)
        time.sleep(1)       # it connects to mpiexec, which does not accept it any more
        os.kill(mpiexec, signal.SIGKILL)
        job.wait(30)
        for host in ("h1", "h2"):
            job.until_free(host)
        asking.join()


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
    """From go on it is the rank, and there is no way back: an error."""
    for ranks in ("1", "1,2"):
        with heat(stage, environment={"ZC_MIGRATE_FAULT": "successor-killed-late",
                                      "ZC_MIGRATE_WORLD": "5"},
                  mpiexec=["-disable-auto-cleanup"]) as job:
            job.until_running()
            refused(job, "move", "--rank", ranks, "--to", H1, says="")
            cannot_go_on(stage, job, "a process died")


@suite.test()
@mpich_only("Hydra's messages")
def successor_killed_after_go_ends_the_job_by_default(stage):
    """... which is mpiexec's with its clean-up."""
    with heat(stage, environment={"ZC_MIGRATE_FAULT": "successor-killed-late"}) as job:
        job.until_running()
        refused(job, "move", "--rank", 1, "--to", H1, says="")
        ends_with_error(job, "BAD TERMINATION", 30 * stage.patience)


def status_of(stage, program_s):
    """Of mpiexec, where that of the PROGRAM_S reaches it; None: any but 0."""
    return program_s if stage.family == "mpich" else None


@suite.test(tags={"openmpi"})
def a_rank_that_has_moved_aborts(stage):
    """With the error that it hands to MPI_Abort(). Launched by mpiexec, by the launcher of another rank, and
    not moved."""
    for moves in ((1, H1),), ((0, H2), (1, H1), (1, H2)), ():
        with Job(stage, "state", "abort", 100000, STOP, ranks=3) as job:
            job.until_running()
            for rank, host in moves:
                moved(job, [rank], host)
            job.stop()
            ends_with_error(job, r"rank 1: MPI_Abort\(\) with error 7", 60 * stage.patience,
                            status_of(stage, 7))
            for host in ("h1", "h2"):
                job.until_free(host, timeout=20 * stage.patience)


@suite.test()
def a_successor_that_aborts(stage):
    """It is no rank yet: the move is refused."""
    with Job(stage, "state", "abort", 100000, STOP, ranks=3) as job:
        job.until_running()
        at_once = pathlib.Path(job.stop_file + ".at-once")
        at_once.touch()
        refused(job, "move", "--rank", 1, "--to", H1, says=r"MPI_Abort\(\) with error 8")
        at_once.unlink()
        moved(job, [1], H1)
        job.stop()
        ends_with_error(job, "with error 7", 60 * stage.patience, 7)


@suite.test()
@mpich_only("Hydra's -disable-auto-cleanup")
def rank_killed_while_others_compute(stage):
    """MPI finds it, in a call of the program's, and has no name for it: all that have moved are number 0. Rank 1
    has the launcher of rank 2, and ends with it."""
    with heat(stage, ranks=4, mpiexec=["-disable-auto-cleanup"]) as job:
        job.until_running()
        moved(job, [0, 3], H2)
        moved(job, [1, 2], H1)
        os.kill(job.until_running()["ranks"][2]["pid"], signal.SIGKILL)
        cannot_go_on(stage, job, r"zcm: rank \d: an error of MPI on host .*; rank [12] on h1 is gone")


@suite.test()
@mpich_only("Hydra's messages")
def leaver_killed_after_acknowledgement(stage):
    """Never two, never none without an error: the job ends, and says so."""
    for mpiexec in ([], ["-disable-auto-cleanup"]):
        with heat(stage, mpiexec=mpiexec, environment={"ZC_MIGRATE_FAULT": "leaver-dies",
                                                       "ZC_MIGRATE_WORLD": "10"}) as job:
            job.until_running()
            refused(job, "move", "--rank", 1, "--to", H1, says="")
            status = cannot_go_on(stage, job,
                                  "BAD TERMINATION|predecessor (is|was) gone|a process died")
            if not mpiexec:
                check(status != 0, f"exit status {status}")


def dies_before_go(stage, leaver, host, victim, left, by=signal.SIGKILL):
    """While the data of LEAVER is on its way VICTIM is ended: the ranks LEFT end, and name it."""
    with Job(stage, "state", "room", 100000, STOP, ranks=3, mpiexec=["-disable-auto-cleanup"],
             environment={"ZC_MIGRATE_FAULT": "successor-stops", "ZC_MIGRATE_TIMEOUT": "20",
                          "ZC_MIGRATE_SILENCE": "8"}) as job:
        pids = [rank["pid"] for rank in job.until_running()["ranks"]]
        asking = threading.Thread(target=job.ask, args=("move", "--rank", leaver, "--to", host))
        asking.start()
        stopped_on(job, "h1" if host == H1 else "h2")
        os.kill(pids[victim], by)
        wait_for("the ranks that are left end",
                 lambda: not any(os.path.exists(f"/proc/{pids[rank]}") for rank in left), 60)
        asking.join()
        if by == signal.SIGSTOP:
            os.kill(pids[victim], signal.SIGKILL)
        status = job.wait(60)
        check(status is not None, "the job hangs", job.said()[-SAID:])
        check(re.search(rf"rank {victim} on \S+ (has not answered for 8 s|is gone)", job.said()),
              f"it does not name rank {victim}", job.said()[-SAID:])


@suite.test()
@mpich_only("Hydra's -disable-auto-cleanup")
def leaver_killed_before_go(stage):
    """Ranks that stay do not wait for it for ever, where Hydra does not end the job."""
    dies_before_go(stage, leaver=1, host=H1, victim=1, left=(0, 2))


@suite.test()
@mpich_only("Hydra's -disable-auto-cleanup")
def stayer_killed_before_go(stage):
    """Nor does a leaver wait for one that stays."""
    dies_before_go(stage, leaver=0, host=H2, victim=1, left=(0, 2))


@suite.test()
@mpich_only("Hydra's -disable-auto-cleanup")
def stayer_stopped_before_go(stage):
    """MPI cannot know of it: it does not answer, and that has a limit."""
    dies_before_go(stage, leaver=0, host=H2, victim=1, left=(0, 2), by=signal.SIGSTOP)


@suite.test()
@mpich_only("Hydra's -disable-auto-cleanup")
def rank_killed_while_all_save(stage):
    """In a checkpoint, while all ranks wait for the one that takes longest."""
    with heat(stage, "--ballast", 60, ranks=3, mpiexec=["-disable-auto-cleanup"],
              environment={"ZC_MIGRATE_FAULT": "slow-disk", "ZC_MIGRATE_SAVING": "stream",
                           "ZC_MIGRATE_SILENCE": "6"}) as job:
        pids = [rank["pid"] for rank in job.until_running()["ranks"]]
        asking = threading.Thread(target=job.ask, args=("checkpoint",))
        asking.start()
        wait_for("rank 1 saves", lambda: any(
            file.stat().st_size > 1 << 20
            for file in pathlib.Path(job.directory, "saved").glob("*/rank-1*")), 30)
        os.kill(pids[1], signal.SIGKILL)
        wait_for("the ranks that are left end",
                 lambda: not any(os.path.exists(f"/proc/{pids[rank]}") for rank in (0, 2)), 90)
        asking.join()
        check(job.wait(60) is not None, "the job hangs", job.said()[-SAID:])
        check(re.search(r"rank 1 on \S+ (has not answered for 6 s|is gone)", job.said()),
              "it does not name rank 1", job.said()[-SAID:])


def room(job):
    """How many communicators MPI could still make."""
    said = len(re.findall(r"room for \d+", job.said()))
    pathlib.Path(job.stop_file + ".count").touch()
    wait_for("a count", lambda: len(re.findall(r"room for \d+", job.said())) > said, timeout=60)
    return int(re.findall(r"room for (\d+)", job.said())[-1])


@suite.test()
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


@suite.test()
def stopped_successor(stage):
    """It is silent, so the move fails, and its launcher ends it: it cannot wake up later."""
    with Job(stage, "state", "room", 100000, STOP, ranks=3,
             environment={"ZC_MIGRATE_FAULT": "successor-stops", "ZC_MIGRATE_TIMEOUT": "3"}) as job:
        job.until_running()
        asking = Beside(refused, job, "move", "--rank", 1, "--to", H1,
                        says="the successor has been silent for 3 s")
        asking.start()
        stopped = stopped_on(job, "h1")
        asking.join()
        wait_for("it ends", lambda: not os.path.exists(f"/proc/{stopped}"), 30)
        room(job)   # rank 1 has given it up and goes on
        ends_well(stage, job, "all right")


@suite.test(tags={"long"})
def host_cut_off_during_a_transfer(stage):
    """The job has no rank there: it goes on, and the successor, which cannot know, ends."""
    with Job(stage, "state", "room", 100000, STOP, ranks=2, hosts=[H1],
             environment={**ANY_HOST, "ZC_MIGRATE_FAULT": "successor-stops",
                          "ZC_MIGRATE_TIMEOUT": "5"}) as job:
        before = job.until_running()["ranks"]
        asking = Beside(refused, job, "move", "--rank", 1, "--to", H2, says="silent for 5 s")
        asking.start()
        stopped = stopped_on(job, "h2")
        with cut_off(stage, 2):
            os.kill(stopped, signal.SIGCONT)
            asking.join()
            status = job.status()
            check(status["ranks"] == before, "ranks are not where they were")
            job.until_running(safe_points=status["safe_points"] + 10)
            wait_for("the successor ends", lambda: not os.path.exists(f"/proc/{stopped}"), 60)
        ends_well(stage, job, "all right")


def mismatch(stage, kind, says):
    with Job(stage, "state", kind, 100000, STOP, ranks=2) as job:
        before = job.until_running()["ranks"]
        refused(job, "move", "--rank", 1, "--to", H1, says=says)
        check(job.status()["ranks"] == before, "ranks are not where they were")
        ends_well(stage, job, "all right")


@suite.test()
def other_type_in_the_successor(stage):
    mismatch(stage, "types", "type of 'x' is float32 in the successor, int32 before")


@suite.test()
def other_count_in_the_successor(stage):
    mismatch(stage, "count", "'x' has 99 elements in the successor, 100 before")


@suite.test()
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
        ends_with_error(job, "rank 1: ended with exit status 5", 60 * stage.patience, status_of(stage, 5))


@suite.test()
def the_only_rank_fails(stage):
    """Nor once the process that mpiexec started has ended well, and no other is left to fail."""
    with Job(stage, "state", "exit", 100000, STOP, ranks=1, hosts=(H1,)) as job:
        job.until_running()
        wait_for("the process that mpiexec started has ended", lambda: all(
            sum(program in line.split()[0] for _, line in job.processes_on("h1")) < 2
            for program in (stage.programs["state"], "hydra_pmi_proxy")), 30)
        job.stop()
        ends_with_error(job, "rank 0: ended with exit status 5", 60 * stage.patience, status_of(stage, 5))


@suite.test()
def a_reason_of_any_length(stage):
    """All ranks have the same reason, however long it is: here of 1,300 characters."""
    place = pathlib.Path(stage.new_directory(), *["d" * 250] * 5)
    place.mkdir(parents=True)
    (place / "in-the-way").touch()
    with heat(stage, environment={"ZC_MIGRATE_DIR": str(place / "in-the-way")}) as job:
        job.until_running()
        refused(job, "move", "--rank", 2, "--to", H2, "--via", "disk",
                says="rank 2: .*/d{250}/in-the-way")
        moved(job, [2], H2)
        ends_well(stage, job, IDENTICAL)
