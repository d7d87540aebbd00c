# SPDX-License-Identifier: BSD-3-Clause
"""What mpiexec makes of processes that have ended, or do not take what it has for them."""
import contextlib
import copy
import hashlib
import os
import pathlib
import random
import re
import signal
import socket
import string
import subprocess
import sys
import threading
import time

from testbed.migration import H1, H2, SAID, STOP, Job
from testbed.outcome import Fail, check, wait_for
from tests.migrate.jobs import (ANY_HOST, IDENTICAL, ends_well, ends_with_error, finishes, heat, hosts_of, moved,
                                mpich_only, parent_of, state_of, stop, suite, wait_channel)


def is_asleep(pid):
    """It does not run for a while."""
    def time_used():
        return pathlib.Path(f"/proc/{pid}/schedstat").read_text(encoding="ascii").split()[0]
    before = time_used()
    time.sleep(0.2)
    return time_used() == before


def proxies_on(job, host):
    return [pid for pid, line in job.processes_on(host) if "hydra_pmi_proxy" in line.split()[0]]


def process_of(job, rank):
    """Which RANK has said that it is."""
    return int(re.search(rf"rank {rank} is (\d+)", job.said())[1])


def stops_unanswered(job, pid):
    """Is mpiexec stopped when it has not begun with an answer for the process PID, on h2?"""
    stop(job.process.pid)
    [proxy] = proxies_on(job, "h2")
    if is_asleep(pid) and "poll" in wait_channel(proxy):
        return True
    os.kill(job.process.pid, signal.SIGCONT)    # its proxy waits for the rest
    return False


@contextlib.contextmanager
def ended_before_its_answer(stage, *options):
    """A job whose rank 1 has been killed, and whose proxy has ended, before mpiexec answers what it has
    asked."""
    with Job(stage, "asks", STOP, ranks=2, migrate=False, mpiexec=options) as job:
        wait_for("both ranks run", lambda: job.said().count("rank ") == 2, 30 * stage.patience)
        rank_1 = process_of(job, 1)
        wait_for("it waits for an answer, and so far has none", lambda: stops_unanswered(job, rank_1),
                 30 * stage.patience)
        os.kill(rank_1, signal.SIGKILL)
        job.until_free("h2", timeout=20 * stage.patience)
        os.kill(job.process.pid, signal.SIGCONT)
        yield job


@suite.test()
@mpich_only("Hydra")
def an_answer_for_an_ended_proxy_is_dropped(stage):
    """mpiexec was ended by SIGPIPE, without a word; now it says what has ended the job."""
    with ended_before_its_answer(stage) as job:
        ends_with_error(job, "BAD TERMINATION", 30 * stage.patience)


@suite.test()
@mpich_only("Hydra's -disable-auto-cleanup")
def others_go_on_without_an_answer_for_an_ended_proxy(stage):
    with ended_before_its_answer(stage, "-disable-auto-cleanup") as job:
        time.sleep(0.5)
        check(job.process.poll() is None, "the job has ended", job.said()[-SAID:])
        job.stop()
        check(job.wait(30 * stage.patience) is not None and "all right" in job.said(), "rank 0 has ended", job.said()[-SAID:])


# Speaks PMI-1 itself. Rank 1 is killed before its proxy, which it stops, has answered it.
UNANSWERED = """
import os, signal, sys, time
signal.signal(signal.SIGUSR1, signal.SIG_IGN)   # by which Hydra says that another process has ended
proxy, pmi, rank = os.getppid(), int(os.environ["PMI_FD"]), os.getpid()
open(sys.argv[1] + ".ready-" + os.environ["PMI_RANK"], "w").close()
if os.environ["PMI_RANK"] == "1":
    while not os.path.exists(sys.argv[1] + ".ready-0"):
        time.sleep(0.01)
    os.kill(proxy, signal.SIGSTOP)
    os.write(pmi, b"cmd=init pmi_version=1 pmi_subversion=1\\n")
    if os.fork():
        os.kill(rank, signal.SIGKILL)
    os.close(pmi)
    while os.getppid() == rank:
        time.sleep(0.01)
    os.kill(proxy, signal.SIGCONT)
else:
    while not os.path.exists(sys.argv[1]):
        time.sleep(0.01)
    print("all right")
"""

# Rank 1 has ended, and its proxy, before the barrier that it has come to is over.
IN_A_BARRIER = """
import os, signal, sys, time
signal.signal(signal.SIGUSR1, signal.SIG_IGN)
pmi = int(os.environ["PMI_FD"])
open(sys.argv[1] + ".ready-" + os.environ["PMI_RANK"], "w").close()
os.write(pmi, b"cmd=init pmi_version=1 pmi_subversion=1\\n")
os.read(pmi, 1000)
while os.environ["PMI_RANK"] == "0" and not os.path.exists(sys.argv[1]):
    time.sleep(0.01)
os.write(pmi, b"cmd=barrier_in\\n")
if os.environ["PMI_RANK"] == "0":
    assert b"barrier_out" in os.read(pmi, 1000)
    print("all right")
else:
    while not os.path.exists(sys.argv[1] + ".ready-0"):
        time.sleep(0.01)
    time.sleep(0.2)
"""


READ_NO_MORE = "standard input is read no more"


def give(job, text):
    """To the standard input of JOB, and no more; what is not taken at once is given while the job runs."""
    def write():
        with contextlib.suppress(OSError), job.process.stdin:
            job.process.stdin.write(text)
    threading.Thread(target=write, daemon=True).start()


def others_go_on(stage, program):
    with Job(stage, sys.executable, "-c", program, STOP, ranks=2, migrate=False,
             mpiexec=["-disable-auto-cleanup"]) as job:
        wait_for("both ranks have begun", lambda: all(
            os.path.exists(f"{job.stop_file}.ready-{rank}") for rank in (0, 1)), 30 * stage.patience)
        job.until_free("h2", timeout=20 * stage.patience)
        check(job.process.poll() is None, "the job has ended", job.said()[-SAID:])
        job.stop()
        check(job.wait(30 * stage.patience) is not None and "all right" in job.said(), "rank 0 has ended",
              job.said()[-SAID:])


@suite.test()
@mpich_only("Hydra's -disable-auto-cleanup")
def others_go_on_without_a_proxy_s_answer(stage):
    """The proxy gave up when it could not send its own answer."""
    others_go_on(stage, UNANSWERED)


@suite.test()
@mpich_only("Hydra's -disable-auto-cleanup")
def others_come_out_of_a_barrier_with_an_ended_proxy(stage):
    """mpiexec gave up at the first proxy that could not be told."""
    others_go_on(stage, IN_A_BARRIER)


@suite.test()
@mpich_only("Hydra")
def standard_input_of_a_rank_that_has_moved(stage):
    """Nothing reads it any more; mpiexec ended the job for that."""
    for text, says in (("a line\n", 1), ("", 0)):
        with heat(stage, ranks=2, stdin=subprocess.PIPE) as job:
            job.until_running()
            moved(job, [0], H2)
            check(hosts_of(job) == ["h2", "h2"], f"hosts {hosts_of(job)}")
            job.until_free("h1", timeout=20 * stage.patience)
            give(job, text)
            ends_well(stage, job, IDENTICAL)
            check(job.said().count(READ_NO_MORE) == says, f"of '{text}'", job.said()[-SAID:])


# Each line in one piece: those of others may come between two.
RANK_0_ENDS = """
import os, sys, time
os.write(1, f"rank {os.environ['PMI_RANK']} is {os.getpid()}\\n".encode())
while os.environ["PMI_RANK"] == "1" and not os.path.exists(sys.argv[1]):
    time.sleep(0.01)
print("all right")
"""


@contextlib.contextmanager
def rank_0_has_ended(stage, stderr=subprocess.PIPE):
    """Its proxy has another rank, and mpiexec's standard input is still open."""
    with Job(stage, sys.executable, "-c", RANK_0_ENDS, STOP, ranks=2, hosts=(H1,), migrate=False,
             stdin=subprocess.PIPE, stderr=stderr) as job:
        wait_for("both ranks run", lambda: job.said().count("rank ") == 2, 30 * stage.patience)
        rank_0 = process_of(job, 0)
        wait_for("rank 0 has ended", lambda: state_of(rank_0) in ("Z", ""), 20 * stage.patience)
        yield job
        job.stop()
        check(job.wait(30 * stage.patience) == 0 and job.said().count("all right") == 2, "it does not end well",
              job.said()[-SAID:])


@suite.test()
@mpich_only("Hydra")
def standard_input_of_a_rank_that_has_ended(stage):
    """Its proxy ended the other rank, too, and the job, when it could not pass a line on."""
    with rank_0_has_ended(stage) as job:
        give(job, "a line\n")
        wait_for("it is said", lambda: READ_NO_MORE in job.said(), 20 * stage.patience)


@suite.test()
@mpich_only("Hydra")
def a_word_for_a_socket_without_a_reader(stage):
    """mpiexec tried to write it for ever, and never saw the job end."""
    reader, end = socket.socketpair()
    with reader, end, rank_0_has_ended(stage, stderr=end) as job:
        reader.close()
        give(job, "a line\n")


# May have closed its output and what it does not know, as daemons do; then it says all to a file.
READS_LATE = """
import hashlib, os, sys, time
print("begins", flush=True)
if len(sys.argv) > 2:
    said = os.open(sys.argv[2], os.O_WRONLY | os.O_CREAT)
    os.dup2(said, 1)
    os.dup2(said, 2)
    os.closerange(3, 1 << 16)
while not os.path.exists(sys.argv[1]):
    time.sleep(0.01)
data = sys.stdin.buffer.read()
print("took", len(data), hashlib.sha256(data).hexdigest())
"""
PIPES = 1 << 20         # more than pipes and pieces between us and the program hold


def give_what_is_taken(job, data):
    """How much of DATA mpiexec takes, until it has taken nothing for a second."""
    fd, taken = job.process.stdin.fileno(), 0
    os.set_blocking(fd, False)
    last = time.monotonic()
    while time.monotonic() < last + 1:
        try:
            taken += os.write(fd, data[taken:taken + PIPES].encode())
            last = time.monotonic()
        except BlockingIOError:
            time.sleep(0.01)
    os.set_blocking(fd, True)
    return taken


def took(data):
    return f"took {len(data)} {hashlib.sha256(data.encode()).hexdigest()}"


def until_hydra_sleeps(stage, job):
    for pid in [job.process.pid, *proxies_on(job, "h1")]:
        wait_for("Hydra sleeps", lambda pid=pid: is_asleep(pid), 10 * stage.patience)


def read_late(stage, *options, said=None):
    """The program reads 64 MiB, but nothing until mpiexec reads nothing either, and all is there."""
    data = "".join(random.Random(1).choices(string.printable[:95], k=1 << 20)) * 64
    with Job(stage, sys.executable, "-c", READS_LATE, STOP, *([said] if said else []), ranks=1, hosts=(H1,),
             migrate=False, mpiexec=options, stdin=subprocess.PIPE) as job:
        wait_for("it begins", lambda: "begins" in job.said(), 30 * stage.patience)
        taken = give_what_is_taken(job, data)
        check(0 < taken <= PIPES, f"mpiexec has read {taken} bytes that the program has not")
        until_hydra_sleeps(stage, job)
        job.stop()
        give(job, data[taken:])
        finishes(stage, job, "begins")
        text = pathlib.Path(said).read_text(encoding="ascii") if said else job.said()
        check(took(data) in text, f"not '{took(data)}'", text[-SAID:])


@suite.test()
@mpich_only("Hydra")
def standard_input_waits_for_its_reader(stage):
    """"process reading stdin too slowly; can't keep up" ended the job."""
    read_late(stage)
    read_late(stage, "-demux", "select")


@suite.test()
@mpich_only("Hydra")
def standard_input_of_what_has_closed_its_output(stage):
    """Its proxy waited for its end, and for nothing else."""
    read_late(stage, said=pathlib.Path(stage.new_directory(), "said"))


@suite.test()
@mpich_only("Hydra")
def standard_input_of_which_a_line_is_read(stage):
    """The rest has no reader: the job ends as it would without it."""
    with Job(stage, sys.executable, "-c", "print('took', input())", ranks=1, hosts=(H1,), migrate=False,
             stdin=subprocess.PIPE) as job:
        give(job, "a line\n" * (1 << 20))
        finishes(stage, job, "took a line", 30)


CLOSES_ITS_INPUT = """
import os, sys, time
if os.environ["PMI_RANK"] == "0":
    print("took", input(), flush=True)
    os.close(0)
while not os.path.exists(sys.argv[1]):
    time.sleep(0.01)
"""


@suite.test()
@mpich_only("Hydra")
def standard_input_that_has_been_closed(stage):
    """What writes it learns that, and does not wait while the job runs."""
    for program in CLOSES_ITS_INPUT, CLOSES_ITS_INPUT.replace("os.close(0)", "sys.exit()"):
        with Job(stage, sys.executable, "-c", program, STOP, ranks=2, hosts=(H1,), migrate=False,
                 stdin=subprocess.PIPE) as job:
            try:
                job.process.stdin.write("a line\n" * (1 << 20))
            except BrokenPipeError:
                pass
            else:
                raise Fail("all has been read, by nobody")
            check(job.process.poll() is None, "the job has ended", job.said()[-SAID:])
            ends_well(stage, job, "took a line", 30)
            check(job.said().count(READ_NO_MORE) == 1, "it is not said once", job.said()[-SAID:])


# Speaks PMI-1 at a port, whose connection may get the number that standard input had.
AT_A_PORT = """
import os, socket, sys
rank = int(os.environ["PMI_ID"])
if rank == 0:
    print("took", len(sys.stdin.buffer.read()), flush=True)
place, number = os.environ["PMI_PORT"].rsplit(":", 1)
pmi = socket.create_connection((place, int(number)))
for command in (b"cmd=init pmi_version=1 pmi_subversion=1", b"cmd=initack pmiid=%d" % rank, b"cmd=finalize"):
    pmi.sendall(command + b"\\n")
    assert pmi.recv(4000)
"""


@suite.test()
@mpich_only("Hydra's -pmi-port")
def a_connection_after_the_end_of_standard_input(stage):
    """Its number was that of the standard input, which the proxy listened to still."""
    with Job(stage, sys.executable, "-c", AT_A_PORT, ranks=3, hosts=(H1,), migrate=False, mpiexec=["-pmi-port"],
             stdin=subprocess.PIPE) as job:
        give(job, "x" * PIPES)
        finishes(stage, job, f"took {PIPES}", 30)


CLOSES_WHAT_IT_DOES_NOT_KNOW = """
import os, sys, time
os.closerange(3, 1 << 16)
print("closed", flush=True)
while not os.path.exists(sys.argv[1]):
    time.sleep(0.01)
print("all right")
"""


@suite.test()
@mpich_only("Hydra")
def a_program_that_closes_what_it_does_not_know(stage):
    """As ssh and sudo do. Its proxy used up a processor while it ran on."""
    with Job(stage, sys.executable, "-c", CLOSES_WHAT_IT_DOES_NOT_KNOW, STOP, ranks=1, hosts=(H1,),
             migrate=False) as job:
        wait_for("it runs", lambda: "closed" in job.said(), 30 * stage.patience)
        until_hydra_sleeps(stage, job)
        ends_well(stage, job, "all right", 30)


HALF_A_COMMAND = """
import os, signal, sys, time
signal.signal(signal.SIGUSR1, signal.SIG_IGN)
pmi, rank = int(os.environ["PMI_FD"]), os.environ["PMI_RANK"]
os.write(1, f"rank {rank} is {os.getpid()}\\n".encode())

def wait_for(path):
    while not os.path.exists(path):
        time.sleep(0.01)

if rank == "1":
    wait_for(sys.argv[1] + ".0")    # rank 0 gets the signal for its end, and ignores it by now
    os.write(pmi, sys.argv[2].encode())
else:
    open(sys.argv[1] + ".0", "w").close()
    wait_for(sys.argv[1])
    for command in b"cmd=init pmi_version=1 pmi_subversion=1\\n", b"cmd=finalize\\n":
        os.write(pmi, command)
        assert os.read(pmi, 1000)
    print("all right")
"""


@suite.test()
@mpich_only("Hydra's -disable-auto-cleanup")
def half_a_command_of_a_process_that_has_ended(stage):
    """The next command of another was taken for its other half; or one of its own was freed twice."""
    for half in "cmd=in", "cmd=init pmi_version=1 pmi_subversion=1\ncmd=":
        with Job(stage, sys.executable, "-c", HALF_A_COMMAND, STOP, half, ranks=2, hosts=(H1,), migrate=False,
                 mpiexec=["-disable-auto-cleanup"]) as job:
            wait_for("both ranks run", lambda: job.said().count("rank ") == 2, 30 * stage.patience)
            rank_1 = process_of(job, 1)
            wait_for("rank 1 has ended", lambda: state_of(rank_1) in ("Z", ""), 20 * stage.patience)
            job.stop()
            check(job.wait(30 * stage.patience) is not None and "all right" in job.said(), "it does not end well",
                  job.said()[-SAID:])


SPAWNS = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
signal.signal(signal.SIGUSR1, lambda *_: print("a signal", flush=True))
pmi = int(os.environ["PMI_FD"])
print("rank 0 is", os.getpid(), flush=True)
os.write(pmi, b"cmd=init pmi_version=1 pmi_subversion=1\\n")
assert os.read(pmi, 1000)
os.write(pmi, f'''mcmd=spawn
nprocs=1
execname={sys.argv[3]}
totspawns=1
spawnssofar=1
arg1={sys.argv[4]}
argcnt=1
preput_num=0
info_num=1
info_key_0=host
info_val_0={sys.argv[2]}
endcmd
'''.encode())
assert os.read(pmi, 1000)
while not os.path.exists(sys.argv[1]):
    time.sleep(0.01)
os.write(pmi, b"cmd=finalize\\n")
assert os.read(pmi, 1000)
"""


# Speaks PMI-1 itself. Rank 1 spawns when rank 0 has said the first of its two commands.
SPAWN_AT_ONCE = """
import os, sys, time
pmi, rank = int(os.environ["PMI_FD"]), os.environ["PMI_RANK"]
def command(number, of):
    os.write(pmi, f"mcmd=spawn\\nnprocs=1\\nexecname=true\\ntotspawns={of}\\nspawnssofar={number}\\n"
                  "argcnt=0\\npreput_num=0\\ninfo_num=0\\nendcmd\\n".encode())
def wait_for(suffix):
    while not os.path.exists(sys.argv[1] + suffix):
        time.sleep(0.01)
def answer():
    assert b"rc=0" in os.read(pmi, 1000)
    open(sys.argv[1] + ".answered-" + rank, "w").close()
os.write(pmi, b"cmd=init pmi_version=1 pmi_subversion=1\\n")
assert os.read(pmi, 1000)
if rank == "0":
    command(1, 2)
    # It has gone the same way as the first command.
    os.write(pmi, b"cmd=publish_name service=zcm port=zcm\\n")
    assert b"publish_result" in os.read(pmi, 1000)
    open(sys.argv[1] + ".first", "w").close()
    wait_for(".answered-1")
    command(2, 2)
else:
    wait_for(".first")
    command(1, 1)
answer()
os.write(pmi, b"cmd=finalize\\n")
assert os.read(pmi, 1000)
print("all right")
"""


@suite.test()
@mpich_only("Hydra")
def two_processes_spawn_at_once(stage):
    """What one had said of its commands was taken for a part of the other's, and it was never answered."""
    with Job(stage, sys.executable, "-c", SPAWN_AT_ONCE, STOP, ranks=2, hosts=(H1,), migrate=False) as job:
        check(job.wait(30 * stage.patience) is not None and job.said().count("all right") == 2, "it does not end well",
              job.said()[-SAID:])


# Speaks PMI-1 itself: gives a spawn of two commands up after the first one, and makes another.
SPAWN_GIVEN_UP = """
import os, sys
pmi = int(os.environ["PMI_FD"])
def command(number, of, makes):
    os.write(pmi, f"mcmd=spawn\\nnprocs=1\\nexecname=touch\\ntotspawns={of}\\nspawnssofar={number}\\n"
                  f"arg1={sys.argv[1]}.{makes}\\nargcnt=1\\npreput_num=0\\ninfo_num=0\\nendcmd\\n".encode())
os.write(pmi, b"cmd=init pmi_version=1 pmi_subversion=1\\n")
assert os.read(pmi, 1000)
command(1, 2, "given-up")
command(1, 2, "first")
command(2, 2, "second")
assert b"rc=0" in os.read(pmi, 1000)
os.write(pmi, b"cmd=finalize\\n")
assert os.read(pmi, 1000)
print("all right")
"""


@suite.test()
@mpich_only("Hydra")
def a_spawn_that_was_given_up(stage):
    """Its first command was taken for a part of the next spawn."""
    with Job(stage, sys.executable, "-c", SPAWN_GIVEN_UP, STOP, ranks=1, hosts=(H1,), migrate=False) as job:
        check(job.wait(30 * stage.patience) is not None and "all right" in job.said(), "it does not end well",
              job.said()[-SAID:])
        made = [what for what in ("given-up", "first", "second") if os.path.exists(f"{job.stop_file}.{what}")]
        check(made == ["first", "second"], f"{made} have been spawned", job.said()[-SAID:])


# Is between a process and its process manager, in whose stead it does not say what has become of a spawn. When it
# has been asked that, argv[1] is made some seconds later.
SAYS_NOTHING = """
import os, select, socket, subprocess, sys, time
manager = int(os.environ["PMI_FD"])
ours, its = socket.socketpair()
process = subprocess.Popen(sys.argv[2:], pass_fds=[its.fileno()], env={**os.environ, "PMI_FD": str(its.fileno())})
its.close()
questions, said, end = 0, b"", None
while True:
    ready = select.select([ours, manager], [], [], 0.1)[0]
    if end and time.monotonic() > end:
        open(sys.argv[1], "w").close()
    if manager in ready:
        words = os.read(manager, 65536)
        if words:
            ours.sendall(words)
    if ours in ready:
        words = ours.recv(65536)
        if not words:
            break
        *lines, said = (said + words).split(b"\\n")
        for line in lines:
            if not line.startswith(b"cmd=spawn_state"):
                os.write(manager, line + b"\\n")
                continue
            questions += 1
            end = end or time.monotonic() + 3
            ours.sendall(b"cmd=spawn_state_result rc=-1 msg=lost\\n")
print(f"it was asked {questions} times", flush=True)
sys.exit(process.wait())
"""


@suite.test()
@mpich_only("questions of MPI_Comm_spawn of this MPICH")
def a_process_manager_that_does_not_say_what_it_has_spawned(stage):
    """It is asked no more, which is said. It was asked each second, and what it said was that nothing had failed."""
    with Job(stage, sys.executable, "-c", SAYS_NOTHING, STOP, stage.programs["asks"], STOP, "spawns", ranks=1, hosts=(H1,),
             migrate=False) as job:
        check(job.wait(60 * stage.patience) == 0 and "parent: all right" in job.said(), "it does not end well",
              job.said()[-SAID:])
        check("it was asked 1 times" in job.said(), "it goes on asking", job.said()[-SAID:])
        check(job.said().count("the process manager does not tell") == 1, "it is not said once", job.said()[-SAID:])


@contextlib.contextmanager
def slow_launcher(stage):
    """A stage whose mpiexec reaches another host only when `go` is called; `begun`: it is about to."""
    slow = copy.copy(stage)
    slow.rsh = pathlib.Path(stage.new_directory(), "rsh")
    begun, go = (pathlib.Path(f"{slow.rsh}.{what}") for what in ("begun", "go"))
    slow.rsh.write_text(f"""#!/bin/sh
: > {begun}
while ! [ -e {go} ]; do sleep 0.05; done
exec {stage.rsh} "$@"
""", encoding="utf-8")
    slow.rsh.chmod(0o755)
    slow.until_begun = lambda: wait_for("a host is about to be reached", begun.exists, 30 * stage.patience)
    slow.go = go.touch
    try:
        yield slow
    finally:
        slow.go()


def spawns(stage, program="touch", argument=STOP):
    """It ends when its stop file is there."""
    return Job(stage, sys.executable, "-c", SPAWNS, STOP, H2, program, argument, ranks=1, hosts=(H1,),
               migrate=False)


# Speaks PMI-1 itself: spawns two processes, of which the first one ends, and asks for them until it is said that they
# have failed.
ASKS = """
import os, sys, time
pmi = int(os.environ["PMI_FD"])
def say(words):
    os.write(pmi, words.encode())
    return os.read(pmi, 1000).decode()
say("cmd=init pmi_version=1 pmi_subversion=1\\n")
answer = say(f'''mcmd=spawn
nprocs=2
execname=sh
totspawns=1
spawnssofar=1
arg1=-c
arg2={sys.argv[2]}
argcnt=2
preput_num=1
preput_key_0=PARENTS_ASK
preput_val_0=1
info_num=2
info_key_0=host
info_val_0={sys.argv[3]}
info_key_1=wdir
info_val_1={sys.argv[4]}
endcmd
''')
number = answer.split("spawned=")[1].split()[0]
print("it has spawned", flush=True)
while "failed=1" not in say(f"cmd=spawn_state spawned={number}\\n"):
    time.sleep(0.05)
print("it has failed", flush=True)
while not os.path.exists(sys.argv[1]):
    time.sleep(0.01)
say("cmd=finalize\\n")
print("all right")
"""
# When the launcher of the other has begun, which is ended then.
ONE_ENDS = "if [ $PMI_RANK = 0 ]; then while ! [ -e {begun} ]; do sleep 0.02; done; else : > {ran}; sleep 1000; fi"
BOTH_STAY = ": > {ran}; sleep 1000"


@contextlib.contextmanager
def spawns_in_vain(stage, program, hosts=(H2,), wdir="/"):
    """A job whose spawn has failed when the body is over, and which goes on then. PROGRAM has `job.ran` made when it
    runs."""
    ran = pathlib.Path(stage.new_directory(), "ran")
    program = program.format(ran=ran, begun=f"{stage.rsh}.begun")
    with Job(stage, sys.executable, "-c", ASKS, STOP, program, ",".join(hosts), wdir, ranks=1, hosts=(H1,), migrate=False) as job:
        job.ran = ran
        wait_for("it has spawned", lambda: "it has spawned" in job.said(), 30 * stage.patience)
        yield job
        wait_for("it has failed", lambda: "it has failed" in job.said(), 30 * stage.patience)
        ends_well(stage, job, "all right", 30)


@suite.test()
@mpich_only("Hydra's answers to those that have spawned")
def a_launcher_that_starts_nothing(stage):
    """It ends well, and no proxy comes."""
    idle = copy.copy(stage)
    idle.rsh = pathlib.Path(stage.new_directory(), "rsh")
    idle.rsh.write_text("#!/bin/sh\n", encoding="utf-8")
    idle.rsh.chmod(0o755)
    with spawns_in_vain(idle, BOTH_STAY) as job:
        pass
    check("a launcher has ended before the proxy" in job.said(), "it does not say why", job.said()[-SAID:])


@suite.test()
@mpich_only("Hydra's answers to those that have spawned")
def a_launcher_that_tries_still(stage):
    """Another process of what it is to start has ended: it is ended, too, and mpiexec does not wait for it."""
    with slow_launcher(stage) as slow:
        with spawns_in_vain(slow, ONE_ENDS, hosts=(H1, H2)) as job:
            pass
        check(not job.ran.exists(), "what was spawned has run", job.said()[-SAID:])


@suite.test()
@mpich_only("Hydra's answers to those that have spawned")
def a_proxy_that_comes_late(stage):
    """Its world has been given up: it starts nothing."""
    late = copy.copy(stage)
    late.rsh = pathlib.Path(stage.new_directory(), "rsh")
    begun, go = (pathlib.Path(f"{late.rsh}.{what}") for what in ("begun", "go"))
    late.rsh.write_text(f"""#!/bin/bash
setsid bash -c ': > {begun}; while ! [ -e {go} ]; do sleep 0.05; done; exec {stage.rsh} "$@"' rsh "$@" &
wait
""", encoding="utf-8")
    late.rsh.chmod(0o755)
    try:
        with spawns_in_vain(late, ONE_ENDS, hosts=(H1, H2)) as job:
            wait_for("it has failed", lambda: "it has failed" in job.said(), 30 * stage.patience)
            go.touch()
        check(not job.ran.exists(), "what was spawned has run", job.said()[-SAID:])
    finally:
        go.touch()


@suite.test()
@mpich_only("Hydra's answers to those that have spawned")
def a_folder_that_is_not_there_to_spawn_in(stage):
    """The proxy fails. The job ended with it."""
    with spawns_in_vain(stage, BOTH_STAY, wdir="/is-not-there") as job:
        pass
    check("/is-not-there" in job.said(), "it does not say why", job.said()[-SAID:])


@suite.test()
@mpich_only("Hydra's answers to those that have spawned")
def a_time_limit_while_processes_are_spawned(stage):
    """Those that ask for them have no answer any more."""
    with slow_launcher(stage) as slow, \
            Job(slow, sys.executable, "-c", ASKS, STOP, "sleep 1000", H2, "/", ranks=1, hosts=(H1,), migrate=False,
                environment={"MPIEXEC_TIMEOUT": "3"}) as job:
        slow.until_begun()
        wait_for("its time is over", lambda: "APPLICATION TIMED OUT" in job.said(), 30 * stage.patience)
        slow.go()
        check(job.wait(30 * stage.patience) is not None and job.process.returncode >= 0, "mpiexec has crashed, or goes on",
              job.said()[-SAID:])


@suite.test()
@mpich_only("Hydra")
def what_was_launched_for_a_job_that_has_ended(stage):
    """Its proxy connects after the end of what has spawned it: it began all the same."""
    with slow_launcher(stage) as slow, spawns(slow) as job:
        slow.until_begun()
        os.kill(process_of(job, 0), signal.SIGKILL)
        wait_for("its end is noticed", lambda: "BAD TERMINATION" in job.said(), 20 * stage.patience)
        slow.go()
        ends_with_error(job, "BAD TERMINATION", 30 * stage.patience)
        check(not os.path.exists(job.stop_file), "what was spawned has run", job.said()[-SAID:])


@suite.test()
@mpich_only("Hydra")
def a_signal_while_processes_are_spawned(stage):
    """Those that run get it. It ended the job."""
    with slow_launcher(stage) as slow, spawns(slow) as job:
        slow.until_begun()
        os.kill(job.process.pid, signal.SIGUSR1)
        wait_for("it has come", lambda: "a signal" in job.said(), 20 * stage.patience)
        slow.go()
        finishes(stage, job, "a signal", 30)
        check(os.path.exists(job.stop_file), "what was spawned has not run", job.said()[-SAID:])


@suite.test()
@mpich_only("Hydra")
def a_signal_for_processes_that_are_about_to_begin(stage):
    """A handler of their proxy took it at times, before they were programs of their own."""
    for _ in range(10):
        with slow_launcher(stage) as slow, spawns(slow, "sleep", 1000) as job:
            slow.until_begun()
            os.kill(job.process.pid, signal.SIGTERM)
            slow.go()
            ends_with_error(job, "BAD TERMINATION", 30 * stage.patience)


@suite.test()
@mpich_only("Hydra")
def a_signal_before_a_host_is_reached(stage):
    """The job is to end, and has not begun: it ends at once, and does not wait for the host."""
    for number in signal.SIGTERM, signal.SIGINT:
        with slow_launcher(stage) as slow, \
                Job(slow, "sleep", 1000, ranks=2, hosts=(H1, H2), migrate=False) as job:
            slow.until_begun()
            os.kill(job.process.pid, number)
            ends_with_error(job, f"signal {int(number)} before all hosts have been reached", 20 * stage.patience)
            slow.go()
            wait_for("nothing is left", lambda: not job.processes_on("h1") + job.processes_on("h2"),
                     20 * stage.patience)


@suite.test()
@mpich_only("Hydra")
def a_process_killed_before_a_proxy_here_has_connected(stage):
    """mpiexec crashed: the proxy is its child, and has a connection before it says which one it is."""
    slow = copy.copy(stage)
    slow.prefix = pathlib.Path(stage.new_directory())
    real, ours, go = pathlib.Path(stage.prefix, "bin"), slow.prefix / "bin", slow.prefix / "go"
    ours.mkdir()
    (ours / "mpiexec").symlink_to(real / "mpiexec")
    (ours / "hydra_pmi_proxy").write_text(f"""#!/bin/bash
while [ "${{@: -1}}" = 1 ] && ! [ -e {go} ]; do sleep 0.05; done
exec {real}/hydra_pmi_proxy "$@"
""", encoding="utf-8")
    (ours / "hydra_pmi_proxy").chmod(0o755)
    with Job(slow, "sh", "-c", "kill -KILL $$", ranks=2, hosts=(H1, "127.0.0.1"), migrate=False) as job:
        wait_for("its end is noticed", lambda: "BAD TERMINATION" in job.said(), 20 * stage.patience)
        go.touch()
        ends_with_error(job, "BAD TERMINATION", 30 * stage.patience)
        check(job.process.returncode > 0, "mpiexec has crashed", job.said()[-SAID:])


KILLS_ITSELF = """
import os, signal, sys, time
if os.environ["PMI_RANK"] == "1":
    os.kill(os.getpid(), signal.SIGKILL)
while not os.path.exists(sys.argv[1]):
    time.sleep(0.01)
print("all right")
"""


@suite.test()
@mpich_only("Hydra's -disable-auto-cleanup")
def a_process_killed_beside_another(stage):
    """Its proxy killed the other, too, which the user does not want."""
    with Job(stage, sys.executable, "-c", KILLS_ITSELF, STOP, ranks=2, hosts=(H1,), migrate=False,
             mpiexec=["-disable-auto-cleanup"]) as job:
        time.sleep(0.5)
        job.stop()
        check(job.wait(30 * stage.patience) is not None and "all right" in job.said(), "the other was killed",
              job.said()[-SAID:])


EXITS_WITH_3 = """
import os, signal, sys
signal.signal(signal.SIGUSR1, lambda *_: sys.exit(3))
print("ready", flush=True)
signal.pause()
"""


@suite.test()
@mpich_only("Hydra")
def exit_status_after_a_signal(stage):
    """It was 0 at times, since a signal was taken for the end of the job."""
    with Job(stage, sys.executable, "-c", EXITS_WITH_3, ranks=1, hosts=(H1,), migrate=False) as job:
        wait_for("it is ready", lambda: "ready" in job.said(), 30 * stage.patience)
        os.kill(job.process.pid, signal.SIGUSR1)
        check(job.wait(30 * stage.patience) == 3, f"exit status {job.process.returncode}", job.said()[-SAID:])


@suite.test()
@mpich_only("Hydra")
def what_a_process_has_left_behind_is_ended(stage):
    """It has the output still, and is reached by the group of the process, which has ended."""
    for number in signal.SIGTERM, signal.SIGUSR1:
        with Job(stage, "sh", "-c", "sleep 1000 & exit 0", ranks=1, hosts=(H1,), migrate=False) as job:
            wait_for("it has ended", lambda job=job: [line for _, line in job.processes_on("h1")
                                                      if "hydra_pmi_proxy" not in line] == ["sleep 1000"],
                     20 * stage.patience)
            os.kill(job.process.pid, number)
            finishes(stage, job, "", 20)
            job.until_free("h1", timeout=20 * stage.patience)


@suite.test()
@mpich_only("Hydra's -disable-auto-cleanup")
def a_job_that_has_moved_and_was_killed_has_failed(stage):
    """mpiexec's exit status was that of the processes it had started: all right, they had moved. And the same
    where all end well."""
    for killed in True, False:
        with heat(stage, ranks=2, mpiexec=["-disable-auto-cleanup"]) as job:
            before = job.until_running()["ranks"]
            for rank, host in enumerate((H2, H1)):
                moved(job, [rank], host)
            wait_for("the first processes have ended",
                     lambda before=before: not any(os.path.exists(f"/proc/{rank['pid']}") for rank in before),
                     20 * stage.patience)
            if not killed:
                ends_well(stage, job, IDENTICAL)
                continue
            for rank in job.until_running()["ranks"]:
                with contextlib.suppress(ProcessLookupError):   # without the other it ends itself
                    os.kill(rank["pid"], signal.SIGKILL)
            ends_with_error(job, "was killed by signal 9", 60 * stage.patience, signal.SIGKILL)


@suite.test()
@mpich_only("Hydra's -disable-auto-cleanup")
def a_killed_launcher_of_ranks_is_named(stage):
    """It was for the ranks' end that its guard ended, without a word, and so mpiexec."""
    with heat(stage, ranks=2, hosts=(H1,), mpiexec=["-disable-auto-cleanup"], environment=ANY_HOST) as job:
        job.until_running()
        moved(job, [0, 1], H2)
        launchers = {parent_of(rank["pid"]) for rank in job.until_running()["ranks"]}
        check(len(launchers) == 1, f"the launchers of two ranks of one host are {launchers}")
        launcher = launchers.pop()
        os.kill(launcher, signal.SIGKILL)
        ends_with_error(job, rf"a launcher of ranks, process {launcher}, was killed by signal 9",
                        60 * stage.patience, signal.SIGKILL)


CLOSES_ALL = """
import os, time
os.closerange(0, 1 << 16)
time.sleep(0.3)
"""


@suite.test()
@mpich_only("Hydra")
def an_end_where_its_signal_is_blocked(stage):
    """As by a daemon that reads signals from a descriptor, and starts mpiexec."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    try:
        job = Job(stage, sys.executable, "-c", CLOSES_ALL, ranks=4, hosts=(H1,), migrate=False)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    with job:
        finishes(stage, job, "", 30)
