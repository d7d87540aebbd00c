# SPDX-License-Identifier: BSD-3-Clause
"""Ranks move, and what they had and what was under way goes with them."""
import errno
import json
import os
import re
import socket
import time

from testbed.migration import H1, H2, SAID, STOP, Job
from testbed.outcome import check
from tests.migrate.jobs import (ANY_HOST, IDENTICAL, ends_well, heat, hosts_of,
                                moved, mpich_only, refused, suite)


@suite.test()
def off_without_switch(stage):
    """ZC_MIGRATE unset: nothing is spawned, opened or listened on, and zcctl finds no job."""
    place = stage.new_directory() + "/ranks"
    with heat(stage, migrate=False, environment={"ZC_MIGRATE_SOCKETS": "/nonexistent",
                                                 "ZCM_PROFILE_DIR": place}) as job:
        time.sleep(0.5)
        ranks = [pid for pid, line in job.processes_on("h1") + job.processes_on("h2")
                 if "heat2d" in line and "hydra" not in line and "rsh" not in line]
        for pid in ranks:
            try:
                threads = len(os.listdir(f"/proc/{pid}/task"))
                unix = [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]
            except OSError:
                continue
            check(not any("zcm" in name for name in unix), f"open: {unix}")
            check(threads <= 3, f"{threads} threads")
        check(len(ranks) <= 4, f"{len(ranks)} processes for 4 ranks")
        check(job.ask("status")[0] == 3, "zcctl found a job")
        check(not os.path.exists(place), "profiles were written")
        ends_well(stage, job, IDENTICAL)


@suite.test(tags={"openmpi"})
def one_rank(stage):
    with heat(stage) as job:
        job.until_running()
        check(hosts_of(job) == ["h1", "h2", "h1", "h2"], f"hosts {hosts_of(job)}")
        answer = moved(job, [1], H1)
        check(hosts_of(job) == ["h1", "h1", "h1", "h2"], f"hosts {hosts_of(job)}")
        check(set(answer["phases_ms"]) ==
              {"negotiation", "start", "checkpoint", "spawn", "transfer", "restore", "rebuild"}, f"{answer}")
        check(answer["bytes"]["data"] > 0 and answer["stall_ms"] > 0, f"{answer}")
        ends_well(stage, job, IDENTICAL)


@suite.test()
@mpich_only("mpirun's daemon stays on every host until the end")
def host_is_drained(stage):
    """zcctl drain HOST: all ranks of h2 leave it; to no host, and to one that is not there."""
    with heat(stage) as job:
        check({one["way"] for one in job.until_running()["ranks"]} == {"zcm"}, "the way of ranks")
        code, said, problem = job.ask("drain", "h2")
        check(code == 0 and said["ok"] and not said["stayed"], f"{said} {problem}")
        check([(one["rank"], one["way"], one["host"]) for one in said["moved"]] ==
              [(1, "zcm", "h1"), (3, "zcm", "h1")], f"{said}")
        check(hosts_of(job) == ["h1"] * 4, f"hosts {hosts_of(job)}")
        job.until_free("h2")
        # Empty: nothing is left to do. The last host of a job keeps it, unless another is named.
        code, said, problem = job.ask("drain", "h2")
        check(code == 3 and "no job here has a rank on h2" in problem, f"{code} {problem}")
        code, said, problem = job.ask("drain", "h1")
        check(code == 1 and len(said["stayed"]) == 4 and "no other host" in problem, f"{said} {problem}")
        code, said, problem = job.ask("drain", "h1", "--to", H2)
        check(code == 0 and len(said["moved"]) == 4, f"{said} {problem}")
        ends_well(stage, job, IDENTICAL)


@suite.test()
@mpich_only("mpirun's daemon stays on every host until the end")
def host_is_really_free(stage):
    """All ranks of h2 leave it: no process of the job stays there, nor a launcher's."""
    with heat(stage) as job:
        job.until_running()
        check(len(job.processes_on("h2")) > 0, "nothing on h2 to begin with")
        moved(job, [1, 3], H1)
        job.until_free("h2")
        ends_well(stage, job, IDENTICAL)


@suite.test(tags={"openmpi"})
def rank_zero(stage):
    with heat(stage) as job:
        job.until_running()
        moved(job, [0], H2)
        check(hosts_of(job) == ["h2", "h2", "h1", "h2"], f"hosts {hosts_of(job)}")
        moved(job, [0], H1)
        ends_well(stage, job, IDENTICAL)


@suite.test()
def asked_at_the_old_socket(stage):
    """A request that rank 0's old process reads after its move is refused, with the reason."""
    with heat(stage) as job:
        job.until_running()
        path = job.sockets + "/test.sock"
        with socket.socket(socket.AF_UNIX) as mover, socket.socket(socket.AF_UNIX) as late:
            mover.connect(path)
            mover.sendall(json.dumps({"command": "move", "moves": [
                {"rank": 0, "host": job.stage.name(H2)}]}).encode() + b"\n")
            late.connect(path)
            mover.settimeout(0.3)
            said = b""
            while not said.endswith(b"\n"):
                try:
                    got = mover.recv(4096)
                    check(got, "no answer")
                    said += got
                except TimeoutError:
                    late.sendall(b" ")      # a client that says nothing for 2 s is turned away
            answer = json.loads(said)
            check(answer["ok"], f"{answer}")
            late.sendall(b'{"command":"checkpoint"}\n')
            refusal = json.loads(late.makefile().readline())
        check(refusal["code"] == errno.ESHUTDOWN and "rank 0 has moved" in refusal["error"],
              f"{refusal}")
        check(job.ask("checkpoint")[0] == 0, "no checkpoint by the new socket")
        ends_well(stage, job, IDENTICAL)


@suite.test()
@mpich_only("mpirun cannot add a host for several spawns at once")
def all_ranks(stage):
    with heat(stage, hosts=(H1,), environment=ANY_HOST) as job:
        job.until_running()
        moved(job, [0, 1, 2, 3], H2)
        check(hosts_of(job) == ["h2"] * 4, f"hosts {hosts_of(job)}")
        job.until_free("h1")
        moved(job, [3, 2, 1, 0], H1)
        check(hosts_of(job) == ["h1"] * 4, f"hosts {hosts_of(job)}")
        ends_well(stage, job, IDENTICAL)


@suite.test(tags={"openmpi"})
def host_not_in_the_list(stage):
    with heat(stage, hosts=(H1,), ranks=2, environment=ANY_HOST) as job:
        job.until_running()
        moved(job, [1], H2)
        check(hosts_of(job) == ["h1", "h2"], f"hosts {hosts_of(job)}")
        ends_well(stage, job, IDENTICAL)


@suite.test(tags={"openmpi"})
def ten_in_a_row(stage):
    with heat(stage) as job:
        job.until_running()
        for turn in range(10):
            rank = turn * 3 % 4
            moved(job, [rank], H2 if hosts_of(job)[rank] == "h1" else H1)
        check(job.status()["moves"] >= 1, "no move counted")
        ends_well(stage, job, IDENTICAL, timeout=120)


@suite.test()
def back_to_a_host_that_all_have_left(stage):
    with heat(stage, ranks=2) as job:
        job.until_running()
        for host in (H1, H2, H1, H2):
            moved(job, [1], host)
        check(hosts_of(job) == ["h1", "h2"], f"hosts {hosts_of(job)}")
        ends_well(stage, job, IDENTICAL)


@suite.test()
def one_rank_job_moves(stage):
    with heat(stage, ranks=1, hosts=(H1,), environment=ANY_HOST) as job:
        job.until_running()
        moved(job, [0], H2)
        job.until_free("h1")
        ends_well(stage, job, IDENTICAL)


@suite.test(tags={"openmpi"})
def all_kinds_of_state_and_messages(stage):
    with Job(stage, "state", "run", 100000, STOP) as job:
        job.until_running()
        moved(job, [1, 2], H1)
        moved(job, [0], H2)
        moved(job, [2], H2)
        ends_well(stage, job, "all right", timeout=120)
        check(len(re.findall(r"resumed at", job.said())) == 4, "four processes should have resumed",
              job.said())


@suite.test()
def zero_blocks_are_left_out(stage):
    with Job(stage, "state", "run", 100000, STOP) as job:
        job.until_running()
        answer = moved(job, [1], H1)
        check(answer["bytes"]["zero"] > (4 << 20), f"{answer}")
        check(answer["bytes"]["image"] < answer["bytes"]["data"] / 2, f"{answer}")
        ends_well(stage, job, "all right", timeout=120)


@suite.test()
def uneven_ranks(stage):
    """Ranks that do not wait for each other meet at the number of the one farthest ahead."""
    with Job(stage, "state", "uneven", 1500) as job:
        job.until_running()
        moved(job, [2], H2)
        moved(job, [1], H1)
        ends_well(stage, job, "all right", timeout=120)


@suite.test()
def ballast_of_64_mib(stage):
    with heat(stage, "--ballast", 64, ranks=2) as job:
        job.until_running()
        answer = moved(job, [1], H1)
        check(answer["bytes"]["image"] > (64 << 20), f"{answer}")
        ends_well(stage, job, IDENTICAL, timeout=120)


@suite.test(tags={"openmpi"})
def by_way_of_the_disk(stage):
    with heat(stage) as job:
        job.until_running()
        answer = moved(job, [1], H1, via="disk")
        check(answer["via"] == "disk", f"{answer}")
        ends_well(stage, job, IDENTICAL)
        check(not os.listdir(job.directory + "/saved"), "files left behind")


@suite.test(tags={"openmpi"})
def as_one_image(stage):
    """As the paper does by memory: made whole, then sent, then read. It has as many bytes as the arrays and
    little more, and a checkpoint phase, since it is made before the successor is asked for."""
    with heat(stage, "--ballast", 64, ranks=2) as job:
        job.until_running()
        answer = moved(job, [1], H1, via="image")
        check(answer["via"] == "image", f"{answer}")
        check((64 << 20) < answer["bytes"]["image"] < (72 << 20), f"{answer}")
        check(answer["phases_ms"]["checkpoint"] > 0, f"{answer}")
        moved(job, [0, 1], H2, via="image")
        moved(job, [1], H1)
        ends_well(stage, job, IDENTICAL, timeout=120)


@suite.test()
def failed_as_one_image(stage):
    """Damaged on its way it is refused, and the job goes on as it was."""
    with heat(stage, environment={"ZC_MIGRATE_FAULT": "corrupt"}) as job:
        job.until_running()
        refused(job, "move", "--rank", "1,2", "--to", H1, "--via", "image", says="checksum differs")
        ends_well(stage, job, IDENTICAL)


@suite.test()
def refused_where_a_whole_image_has_no_room(stage):
    """Before any is made, as the kernel would end a process when the memory is written."""
    with heat(stage, environment={"ZC_MIGRATE_FAULT": "no-room"}) as job:
        job.until_running()
        refused(job, "move", "--rank", "1,2", "--to", H1, "--via", "image", says="no memory for whole images")
        moved(job, [1, 2], H1)
        ends_well(stage, job, IDENTICAL)


@suite.test()
def failed_by_way_of_the_disk(stage):
    with heat(stage, environment={"ZC_MIGRATE_FAULT": "successor-exits"}) as job:
        job.until_running()
        refused(job, "move", "--rank", "1,2", "--to", H1, "--via", "disk",
                says="the successor has ended with exit status 3")
        ends_well(stage, job, IDENTICAL)
        check(not os.listdir(job.directory + "/saved"), "files left behind")


@suite.test()
@mpich_only("MPICH looks at all devices, and uses none of them over ch4:ucx and ch4:zc")
def devices_are_not_looked_at(stage):
    """Which takes half of the time in which MPI is initialised. The program finds the variable as it was;
    what the user has set counts, and a job whose ranks do not move begins as ever."""
    for given, migrate, looks in ((None, True, False), ("-opencl", True, True), (None, False, True)):
        environment = {"HWLOC_COMPONENTS_VERBOSE": "1", **({"HWLOC_COMPONENTS": given} if given else {})}
        with Job(stage, "devices", ranks=1, hosts=(H1,), migrate=migrate, environment=environment) as job:
            check(job.wait(60 * stage.patience) == 0, "it has failed", job.said()[-SAID:])
            said = job.said()
        check(f"HWLOC_COMPONENTS: {given or 'none'}\n" in said, "the variable is another", said[-SAID:])
        lists = re.findall("Final list of enabled discovery components: (.*)", said)
        check(lists and all(("pci" in one) == looks for one in lists), f"hwloc has used {lists}", said[-SAID:])
