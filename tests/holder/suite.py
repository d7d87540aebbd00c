# SPDX-License-Identifier: BSD-3-Clause
"""zc-hold between a launcher and its ranks: a job is as it would be without it."""
import contextlib
import hashlib
import os
import pathlib
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from testbed import mpi, process
from testbed.outcome import Fail, check
from testbed.suite import Bed, Note, Suite
from tests.holder.hosts import AS_USER, need_user_namespaces

MPI_TESTS = pathlib.Path(__file__).resolve().parents[1] / "mpi"
MIB = 1 << 20
END_SECONDS = 20
STREAM_MIB = 32
HYDRA_INPUT = 48 << 10
READS_ALL = "import hashlib,sys,time; d=hashlib.sha256(); [d.update(b) or time.sleep(0.001) for b in " \
    "iter(lambda: sys.stdin.buffer.read(65536), b'')]; print(d.hexdigest())"
WRITES = f"import os; [os.write(1, bytes([i % 251]) * {MIB}) for i in range({STREAM_MIB})]"


class Stage:
    """zc-hold, and mpiexec."""

    def __init__(self, setup):
        self.setup = setup
        self.hold = str(pathlib.Path(setup.options.library).resolve() / "bin/zc-hold")
        check(os.access(self.hold, os.X_OK), f"{self.hold} is not built")
        self.mpi = (mpi.OpenMpi if setup.family == "openmpi" else mpi.Mpi)(
            setup.prefix, setup.network)
        self.mpi.mpiexec = mpi.find_tool(setup.prefix, "mpirun" if setup.family == "openmpi" else
                                         "mpiexec", setup.family)
        self.patience = setup.patience

    def mpiexec(self, ranks, *words):
        return self.mpi.command(ranks) + [str(word) for word in words]

    @contextlib.contextmanager
    def running(self, *words, **more):
        """A process that is started so, and ended."""
        mark = str(time.monotonic_ns())
        with subprocess.Popen(words, env={**os.environ, process.MARK: mark}, start_new_session=True,
                              **more) as started:
            try:
                yield started
            finally:
                process.end(started, mark)

    def wait_until(self, what, happens, seconds=END_SECONDS):
        end = time.monotonic() + seconds * self.patience
        while not (found := happens()):
            if time.monotonic() > end:
                raise Fail(f"within {seconds * self.patience:.0f} s: not {what}")
            time.sleep(0.02)
        return found

    def status(self, words, **more):
        """The exit status of WORDS, and what they have written."""
        done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
                              timeout=60 * self.patience, **more)
        return done.returncode, done.stdout, done.stderr


@contextlib.contextmanager
def staged(setup):
    yield Stage(setup)


suite = Suite("hold", "ranks below zc-hold are as without it",
              beds=[Bed("one-host", tags=frozenset({"fast"}), hosts="1")],
              needs=("mpich",), families=("mpich", "openmpi"), open=staged)
SUITES = [suite]


def child_of(pid):
    """The one that it has; None if there is none yet."""
    return next(iter(process.children(pid)), None)


def state_of(pid):
    """As ps(1) has it; None if it has ended."""
    try:
        text = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="ascii")
    except OSError:
        return None
    letter = text.rpartition(")")[2].split()[0]
    return None if letter == "Z" else letter


def wait_channel(pid):
    """The function of the kernel that it sleeps in."""
    return pathlib.Path(f"/proc/{pid}/wchan").read_text(encoding="ascii")


@suite.test("ends-as-the-rank-does")
def ends_as_the_rank_does(stage):
    exits = ["exit 0", "exit 3", "exit 127"]
    signals = ["kill -TERM $$", "kill -SEGV $$", "kill -ABRT $$", "kill -KILL $$"]
    for words in exits + signals:
        # A launcher of two ranks terminates the other when a signal has ended one: its status may be of either.
        for before in ([], stage.mpiexec(2 if words in exits else 1)):
            plain = stage.status([*before, "sh", "-c", words])[0]
            held = stage.status([*before, stage.hold, "sh", "-c", words])[0]
            check(held == plain, f"{words}{' below mpiexec' if before else ''}: {held}, without it {plain}")
    return f"{len(exits + signals)} ends"


@suite.test("says-what-cannot-be-executed")
def says_what_cannot_be_executed(stage):
    for words, expected, named in ((["./nothing-there"], 127, b"nothing-there"), (["/"], 126, b"/"),
                                   ([], 2, b"PROGRAM"), (["--nonsense", "true"], 2, b"--nonsense")):
        status, _, said = stage.status([stage.hold, *words])
        check(status == expected and named in said, f"{words}: {status}, not {expected}: {said!r}")
    status, _, said = stage.status([stage.hold, "true"], env={**os.environ, "PMI_FD": "777"})
    check(status == 1 and b"PMI_FD=777" in said, f"PMI_FD that is closed: {status} {said!r}")


@suite.test("says-why-agents-do-not-know-what-it-sends")
def says_why_agents_do_not_know(stage):
    """The rank is as it would be otherwise."""
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
    for mode, before, why in ((0o777, None, "there is no folder"), (0o700, limit, "its limit of the size of files")):
        with tempfile.TemporaryDirectory() as place:
            folder = pathlib.Path(place, "zcm")
            folder.mkdir()
            folder.chmod(mode)
            errors, go = pathlib.Path(place, "errors"), pathlib.Path(place, "go")
            # Of a program that has ended it cannot say anything: the launcher does not read its streams any more.
            words = stage.mpiexec(1, "env", f"XDG_RUNTIME_DIR={place}", stage.hold, "sh", "-c",
                                  "until [ -e $1 ]; do sleep 0.02; done; echo done", "sh", go)
            with open(errors, "wb") as to, \
                    stage.running(*words, preexec_fn=before, stdout=subprocess.PIPE, stderr=to) as job:
                try:
                    stage.wait_until("it says why", lambda: why in errors.read_text(encoding="utf-8"))
                finally:
                    go.touch()
                said, _ = job.communicate(timeout=END_SECONDS * stage.patience)
            check(job.returncode == 0 and said == b"done\n", f"status {job.returncode}: {said!r}")
            said = errors.read_text(encoding="utf-8")
            check(f"rank 0: agents do not know what it sends: {why}" in said, f"it says {said!r}")


# A rank, which looks at another as those do that copy from each other's memory.
LOOKS = """
echo $$ > $1/pid-$2
until [ -s $1/pid-$3 ]; do sleep 0.02; done
ls /proc/$(cat $1/pid-$3)/fd > /dev/null && id -u && readlink /proc/self/ns/user
echo > $1/done-$2
until [ -e $1/done-$3 ]; do sleep 0.02; done
"""


@suite.test("ranks-of-a-user-may-look-at-each-other")
def ranks_of_a_user_look_at_each_other(stage):
    """Without privilege they are in a user namespace, and of different ones the kernel would not let them."""
    need_user_namespaces()
    with tempfile.TemporaryDirectory() as place:
        hold = shutil.copy(stage.hold, place)
        os.chown(place, 65534, 65534)
        words = [*AS_USER, "env", f"XDG_RUNTIME_DIR={place}", hold, "sh", "-c", LOOKS, "sh", place]
        with stage.running(*words, "a", "b", stdout=subprocess.PIPE, text=True) as one, \
                stage.running(*words, "b", "a", stdout=subprocess.PIPE, text=True) as other:
            said = [each.communicate(timeout=END_SECONDS * stage.patience)[0].split() for each in (one, other)]
    check(said[0] == said[1] and said[0][0] == "65534", f"they say {said}")
    check(said[0][1] != os.readlink("/proc/self/ns/user"), f"they are in no user namespace: {said}")


def ignore_no_signals():
    for number in (signal.SIGINT, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)


@suite.test("signals-reach-the-rank")
def signals_reach_the_rank(stage):
    numbers = [signal.SIGUSR1, signal.SIGUSR2, signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGALRM,
               signal.SIGRTMIN + 3]
    # The next signal may come before the handler of the last one has left print(), which cannot be entered again.
    program = "import signal,os\n" \
        f"for n in {[int(n) for n in numbers]}: signal.signal(n, lambda n, _: os.write(1, b'%d\\n' % n))\n" \
        "os.write(1, b'ready\\n')\nwhile True: signal.pause()"
    # A shell has its background jobs ignore some, and what is ignored stays so in a new program.
    with stage.running(stage.hold, sys.executable, "-c", program, stdout=subprocess.PIPE, text=True,
                       preexec_fn=ignore_no_signals) as held:
        check(held.stdout.readline() == "ready\n", "the program does not begin")
        for number in numbers:
            held.send_signal(number)
            said = held.stdout.readline()
            check(said == f"{int(number)}\n", f"signal {int(number)}: {said!r}")
        rank = child_of(held.pid)
        held.send_signal(signal.SIGTSTP)
        stage.wait_until("stopped", lambda: state_of(rank) == "T")
        held.send_signal(signal.SIGCONT)
        stage.wait_until("going on", lambda: state_of(rank) in ("S", "R"))
        held.send_signal(signal.SIGQUIT)
        check(held.wait(END_SECONDS) == -signal.SIGQUIT, "SIGQUIT has not ended it")


@suite.test("mpiexec-s-signals-reach-the-ranks")
def mpiexecs_signals_reach_the_ranks(stage):
    # A line is one write: where Python does not buffer, print() makes two, and those of ranks mix.
    program = "import signal,os\n" \
        "signal.signal(signal.SIGUSR1, lambda *_: (os.write(1, b'got it\\n'), os._exit(0)))\n" \
        "os.write(1, b'ready\\n')\nwhile True: signal.pause()"
    with stage.running(*stage.mpiexec(2, stage.hold, sys.executable, "-c", program), stdout=subprocess.PIPE,
                       text=True) as job:
        begun = [job.stdout.readline() for _ in range(2)]
        check(begun == ["ready\n"] * 2, f"the program does not begin: {begun}")
        job.send_signal(signal.SIGUSR1)
        told = [job.stdout.readline() for _ in range(2)]
        check(told == ["got it\n"] * 2, f"no signal has come: {told}, status {job.poll()}")
        check(job.wait(END_SECONDS) == 0, f"mpiexec ends with {job.returncode}")


@suite.test("inherits-what-is-its-own")
def inherits_what_is_its_own(stage):
    """Hydra's ranks have pipes of the proxy, and of other ranks; without zc-hold this test fails."""
    program = "import os\nfor n in sorted(os.listdir('/proc/self/fd'), key=int):\n" \
        " try: os.fstat(int(n)); print(n, end=' ')\n except OSError: pass\n" \
        "print('|', os.environ['MPIR_CVAR_CH4_ZC_DETACH_FD'], os.environ.get('PMI_FD', ''))"
    _, out, said = stage.status(stage.mpiexec(3, stage.hold, sys.executable, "-c", program))
    lines = out.decode().splitlines()
    check(len(lines) == 3, "not three ranks", said.decode())
    for line in lines:
        has, _, own = line.partition("|")
        check(len(own.split()) == (2 if stage.setup.family == "mpich" else 1), f"a rank is given {own}")
        check(set(has.split()) == {"0", "1", "2", *own.split()}, f"a rank has {has}, of which {own} are its own")


@suite.test("streams-are-whole")
def streams_are_whole(stage):
    """Standard input of rank 0, which reads slowly, and output of all ranks."""
    given = os.urandom(STREAM_MIB * MIB)
    # Hydra itself ends a job that reads more slowly than a pipe fills.
    for before, part in (([], given), (stage.mpiexec(1), given[:HYDRA_INPUT])):
        status, out, said = stage.status([*before, stage.hold, sys.executable, "-c", READS_ALL], input=part)
        check(status == 0 and out.decode().strip() == hashlib.sha256(part).hexdigest(),
              f"standard input of {len(part)} bytes has changed ({status})", said.decode())
    status, out, _ = stage.status(stage.mpiexec(1, stage.hold, sys.executable, "-c", WRITES))
    check(status == 0 and out == b"".join(bytes([i % 251]) * MIB for i in range(STREAM_MIB)),
          f"of standard output {len(out)} bytes have come, or others")
    status, out, _ = stage.status(stage.mpiexec(4, stage.hold, sys.executable, "-c", WRITES))
    check(status == 0 and len(out) == 4 * STREAM_MIB * MIB, f"of four ranks {len(out)} bytes have come")
    return f"{STREAM_MIB} MiB each way"


@suite.test("streams-end-one-by-one")
def streams_end_one_by_one(stage):
    with stage.running(stage.hold, "sh", "-c", "exec >&-; read line; echo $line >&2; exec 2>&-; sleep 300",
                       stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as held:
        check(held.stdout.read() == b"", "standard output has something")
        held.stdin.write(b"still there\n")
        held.stdin.flush()
        check(held.stderr.read() == b"still there\n", "standard error has something else")
        check(held.poll() is None, "the rank has ended")


@suite.test("takes-no-part")
def takes_no_part(stage):
    """What the rank reads and writes does not pass through zc-hold, which sleeps all the time."""
    def switches(pid):
        text = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="ascii")
        return sum(int(line.split()[1]) for line in text.splitlines() if "ctxt_switches" in line)

    program = "import os,sys; os.read(0, 1); " + WRITES.removeprefix("import os; ") + "; os.read(0, 1)"
    with stage.running(stage.hold, sys.executable, "-c", program, stdin=subprocess.PIPE,
                       stdout=subprocess.PIPE) as held:
        # Its own streams are given up when the program runs; then it waits.
        stage.wait_until("started", lambda: os.path.samefile(f"/proc/{held.pid}/fd/0", "/dev/null"))
        stage.wait_until("asleep", lambda: "poll" in wait_channel(held.pid))
        before = switches(held.pid)
        held.stdin.write(b"1")
        held.stdin.flush()
        check(len(held.stdout.read(STREAM_MIB * MIB)) == STREAM_MIB * MIB, "output is missing")
        check(switches(held.pid) == before, f"zc-hold has run {switches(held.pid) - before} times")
        resident = pathlib.Path(f"/proc/{held.pid}/statm").read_text(encoding="ascii").split()[1]
        held.stdin.write(b"2")
        held.stdin.close()
    return Note(f"{int(resident) * 4} KiB resident", resident_kib=int(resident) * 4)


@suite.test("none-outlives-the-other")
def none_outlives_the_other(stage):
    with stage.running(stage.hold, "sleep", "300") as held:
        rank = stage.wait_until("started", lambda: child_of(held.pid))
        held.kill()
        stage.wait_until("the rank ended", lambda: state_of(rank) is None)
    # Not by their output: Open MPI does not keep the lines of ranks apart.
    folder = pathlib.Path(tempfile.mkdtemp(dir=stage.setup.scratch))
    program = f"import os,time; open(f'{folder}/{{os.getppid()}}-{{os.getpid()}}', 'w'); time.sleep(300)"
    with stage.running(*stage.mpiexec(2, stage.hold, sys.executable, "-c", program)) as job:
        stage.wait_until("started", lambda: len(list(folder.iterdir())) == 2)
        pids = [list(map(int, path.name.split("-"))) for path in folder.iterdir()]
        os.kill(pids[0][0], signal.SIGKILL)
        check(job.wait(END_SECONDS * stage.patience) != 0, "mpiexec ends well")
        for pid in sum(pids, []):
            stage.wait_until(f"{pid} ended", lambda pid=pid: state_of(pid) is None)


@suite.test("mpi-programs-run")
def mpi_programs_run(stage):
    """Of ch4:zc and ch4:ucx; or of Open MPI, whose connections to its own server are not zc-hold's."""
    family = stage.setup.family
    programs = mpi.build(stage.setup.prefix, [MPI_TESTS / "collectives.c"], stage.setup.build_dir / "mpi",
                         headers=MPI_TESTS.glob("*.h"), family=family)
    netmods = ("zc", "ucx") if family == "mpich" else (None,)
    for netmod in netmods:
        stage.mpi.netmod = netmod
        result = stage.mpi.run([stage.hold, programs["collectives"]], ranks=4, timeout=60 * stage.patience)
        check(result.ok, f"{netmod or family}: {result.reason()}", result.out + result.err)
    return ", ".join(netmod or family for netmod in netmods)
