# SPDX-License-Identifier: BSD-3-Clause
"""Requests to a job: those that are refused, its socket, and the settings it begins with."""
import copy
import json
import os
import pathlib
import socket
import subprocess
import sys
import threading
import time

from testbed import profiles
from testbed.migration import H1, H2, SAID, STOP, Job
from testbed.outcome import check, wait_for
from tests.migrate.jobs import (IDENTICAL, ends_well, ends_with_error, heat, hosts_of, moved,
                                mpich_only, refused, suite)


def goes_on_without(stage, lost):
    """A move is asked for while rank LOST comes to no safe point."""
    place = stage.new_directory() + "/ranks"
    patience = 6 * stage.patience
    with Job(stage, "state", "lost", lost, STOP,
             environment={"ZCM_PROFILE_DIR": place, "ZC_MIGRATE_PATIENCE": str(patience)}) as job:
        job.until_running()
        begin = time.monotonic()
        refused(job, "move", "--rank", 1, "--to", H1,
                says=f"rank {lost} did not come to a safe point")
        took = time.monotonic() - begin
        check(took < patience + 10, f"refused after {took:.1f} s")
        # The others were ahead, waited for it, and go on without it.
        stood = profiles.read(place)
        wait_for("the others go on",
                 lambda: all(one.iterations > stood[rank].iterations + 10
                             for rank, one in profiles.read(place).items() if rank != lost),
                 timeout=patience + 10)
        check(profiles.read(place)[lost].iterations == stood[lost].iterations, "it is not lost")
        job.stop()
        # A late rank 0 has to come and see first that no rank waits any more.
        wait_for("the request is done with",
                 lambda: job.ask("move", "--rank", 1, "--to", H1)[0] == 0, 30)
        check(hosts_of(job) == ["h1", "h1", "h1", "h2"], f"hosts {hosts_of(job)}")
        ends_well(stage, job, "all right", timeout=120)


@suite.test(tags={"long"})
def rank_without_safe_points(stage):
    """A rank comes to no safe point: the request times out, naming it, and the job goes on."""
    for lost in (2, 0):
        goes_on_without(stage, lost)


@suite.test()
def bad_requests(stage):
    with heat(stage) as job:
        job.until_running()
        refused(job, "move", "--rank", 9, "--to", H1, says="unknown rank 9")
        refused(job, "move", "--rank", "1,1", "--to", H1, says="rank 1 is named twice")
        refused(job, "move", "--rank", 1, "--to", "a b", says="not the name of a host")
        refused(job, "move", "--rank", "x", "--to", H1, code=2, says="")
        refused(job, "move", "--rank", 1, "--to", "no-such-host", says="no-such-host")
        refused(job, "--job", "other", "status", code=3, says="other")
        moved(job, [1], H1)
        ends_well(stage, job, IDENTICAL)


@suite.test()
def two_requests_at_once(stage):
    """One is carried out, the answer to the others is that the job is busy."""
    with heat(stage) as job:
        job.until_running()
        codes = []
        askers = [threading.Thread(target=lambda r=rank: codes.append(
            job.ask("move", "--rank", r, "--to", H1)[0])) for rank in (1, 3, 1)]
        for asker in askers:
            asker.start()
        for asker in askers:
            asker.join()
        check(0 in codes and set(codes) <= {0, 4}, f"exit statuses {codes}")
        ends_well(stage, job, IDENTICAL)


@suite.test()
def requests_one_after_the_other(stage):
    """Rank 0 proposes a place for the next while the others have not settled the one before."""
    with Job(stage, "state", "freed", 100000, STOP, ranks=3,
             environment={"ZC_MIGRATE_FAULT": "settles-late", "ZC_MIGRATE_PATIENCE": "8"}) as job:
        job.until_running(safe_points=10)
        for _ in range(4):
            refused(job, "checkpoint", says="memory of 'x' is not there")
        ends_well(stage, job, "all right")


@suite.test()
def socket_is_the_owners(stage):
    with heat(stage) as job:
        job.until_running()
        path = job.sockets + "/test.sock"
        check(os.stat(path).st_mode & 0o777 == 0o600, oct(os.stat(path).st_mode))
        check(os.stat(job.sockets).st_mode & 0o777 == 0o700, oct(os.stat(job.sockets).st_mode))
        # Even with the door open another user is turned away.
        os.chmod(job.sockets, 0o755)
        os.chmod(path, 0o666)
        os.chmod(stage.scratch, 0o755)
        os.chmod(job.directory, 0o755)
        # It may be turned away before it has said anything.
        script = f"""
import os, socket
os.setgid(65534)
os.setuid(65534)
s = socket.socket(socket.AF_UNIX)
s.settimeout(5)
s.connect({path!r})
try:
    s.send(b'{{"command":"status"}}\\n')
except BrokenPipeError:
    pass
print(s.recv(1000))
"""
        said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True,
                              check=False)
        check("belongs to another user" in said.stdout, said.stdout + said.stderr)
        # Nonsense does not hurt.
        for nonsense in (b"\n", b"{}\n", b"\xff\xfe\n", b'{"command":"move"}\n',
                         b'{"command":"move","moves":[{"rank":"x","host":3}]}\n', b"x" * 70000):
            with socket.socket(socket.AF_UNIX) as talk:
                talk.settimeout(10)
                talk.connect(path)
                try:
                    talk.sendall(nonsense)
                    check(b'"ok":false' in talk.recv(1000), f"{nonsense[:20]} accepted")
                except (BrokenPipeError, ConnectionResetError):
                    pass
        ends_well(stage, job, IDENTICAL)
        check(not os.path.exists(path), "socket left behind")


@suite.test()
def runtime_directory_is_gone(stage):
    """Rank 0 comes to a host without $XDG_RUNTIME_DIR: it can be asked all the same, says where."""
    otherwise = f"/tmp/zcm-{os.geteuid()}"
    for given in (False, True):
        runtime = stage.new_directory() + "/run"
        os.makedirs(runtime + "/own", 0o700)
        os.chmod(runtime, 0o700)
        name = f"test-{os.getpid()}-{int(given)}"
        with heat(stage, environment={
                "XDG_RUNTIME_DIR": runtime, "ZC_MIGRATE_JOB": name,
                "ZC_MIGRATE_SOCKETS": runtime + "/own/sockets" if given else ""}) as job:
            job.sockets = runtime + ("/own/sockets" if given else "/zcm")
            job.until_running()
            with socket.socket(socket.AF_UNIX) as talk:
                talk.connect(f"{job.sockets}/{name}.sock")
                os.rename(runtime, runtime + ".gone")   # as a logout does
                talk.sendall(json.dumps({"command": "move", "moves": [
                    {"rank": 0, "host": job.stage.name(H2)}]}).encode() + b"\n")
                answer = json.loads(talk.makefile().readline())
            check(answer["ok"], f"{answer}", job.said()[-SAID:])
            job.sockets = otherwise
            code, status, said = job.ask("--job", name, "status")
            check(code == 0 and status["ranks"][0]["host"] == "h2", f"{status} {said}",
                  job.said()[-SAID:])
            for said in [f"XDG_RUNTIME_DIR={runtime}: it does not exist, so {otherwise} is used",
                         *([f"can be asked to move in {otherwise} instead"] if given else [])]:
                check(said in job.said(), f"it does not say '{said}'", job.said())
            check(job.ask("--job", name, "checkpoint")[0] == 0, "no checkpoint")
            ends_well(stage, job, IDENTICAL)
        check(not os.path.exists(f"{otherwise}/{name}.sock"), "socket left behind")


def without_place_for_sockets(stage, sockets):
    """STAGE with a host h2 where no process of a job can make a socket for requests."""
    poor = copy.copy(stage)
    poor.rsh = pathlib.Path(stage.new_directory(), "rsh")
    last = f"/tmp/zcm-{os.geteuid()}"
    # The mounts are those of what is started there, and end with it.
    poor.rsh.write_text(f"""#!/bin/bash
[[ " $* " =~ " "({H2}|h2)" " ]] || exec {stage.rsh} "$@"
mkdir -p -m 700 {last} {sockets}
exec unshare --mount sh -c 'mount -t tmpfs -o ro,mode=700 none {last} &&
    mount -t tmpfs -o ro,mode=700 none {sockets} && exec "$@"' sh {stage.rsh} "$@"
""", encoding="utf-8")
    poor.rsh.chmod(0o700)
    return poor


@suite.test()
@mpich_only("the stage's rsh starts what is mounted, and mpirun's daemons are there before")
def no_place_for_rank_0s_socket(stage):
    """Its successor could not be asked for anything: the move is undone, and the job goes on where it
    was. Other ranks need no socket there."""
    sockets = stage.new_directory() + "/sockets"
    with heat(without_place_for_sockets(stage, sockets),
              environment={"ZC_MIGRATE_SOCKETS": sockets}) as job:
        job.sockets = sockets
        job.until_running()
        for ranks in ("0", "0,2"):
            refused(job, "move", "--rank", ranks, "--to", H2,
                    says="has no place for the job's socket: .*[Rr]ead-only file system")
            check(hosts_of(job) == ["h1", "h2", "h1", "h2"], f"hosts {hosts_of(job)}")
        moved(job, [2], H2)
        moved(job, [0, 2], H1)
        check(hosts_of(job) == ["h1", "h2", "h1", "h2"], f"hosts {hosts_of(job)}")
        ends_well(stage, job, IDENTICAL)


@suite.test()
def asked_while_finalizing(stage):
    """Asked over and over until its end: the answer is yes, or no with a reason, and it ends."""
    for turn in range(4):
        with Job(stage, "state", "uneven", 60 + 20 * turn) as job:
            job.until_running(safe_points=1)
            asked = 0
            while job.process.poll() is None and asked < 200:
                code, _, said = job.ask("checkpoint")
                asked += 1
                check(code in (0, 1, 3, 4), f"{code} {said}")
            ends_well(stage, job, "all right")


@suite.test()
def mistakes_of_the_caller(stage):
    with Job(stage, "state", "bad", ranks=2) as job:
        ends_well(stage, job, "all right")
        check("memory of 'b' overlaps that of 'a'" in job.said(), "no word of memory that overlaps",
              job.said()[-SAID:])


@suite.test()
def bad_settings(stage):
    for name, value in (("ZC_MIGRATE", "yes"), ("ZC_MIGRATE_TIMEOUT", "-1"),
                        ("ZC_MIGRATE_ATTEMPTS", "many"), ("ZC_MIGRATE_PATIENCE", "0"),
                        ("ZC_MIGRATE_CALLBACK", "0"), ("ZC_MIGRATE_SILENCE", "1h"),
                        ("ZC_MIGRATE_JOB", "a/b"), ("ZC_MIGRATE_JOB", "zcmd"),
                        ("ZC_MIGRATE_OTHER_LIBRARIES", "yes"),
                        ("ZC_MIGRATE_FAULT", "successor-kiled")):
        with heat(stage, ranks=1, environment={name: value}) as job:
            ends_with_error(job, f"bad value of {name}: {value}", 30 * stage.patience)
