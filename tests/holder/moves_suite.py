# SPDX-License-Identifier: BSD-3-Clause
"""zc-hold moves a rank between hosts, by CRIU, while the others go on; and what goes wrong.

The ranks are those of tests/detach: plain UCX, every message, line and question numbered and checked.
"""
import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess
import time

from testbed import mpi, network, process, statistics
from testbed.outcome import EXIT_SKIPPED, Fail, Skip, check
from testbed.suite import Bed, Note, Suite
from tests.detach.suite import build, find_criu
from tests.holder.hosts import AS_USER, MOVER, PORT, Held, HeldMpi, has_store, need_user_namespaces

HERE = pathlib.Path(__file__).resolve().parent
TOP = HERE.parents[1]


def add_options(parser):
    parser.add_argument("--moves-held", type=int, help="how often a rank is moved (default: of the bed)")


@contextlib.contextmanager
def prepared(setup):
    setup.criu = find_criu()
    setup.program = build(setup.prefix, setup.build_dir)
    yield setup


suite = Suite("hold-moves", "zc-hold moves a rank of plain UCX between hosts, whatever fails meanwhile",
              beds=[Bed("three-hosts", tags=frozenset({"fast"}), hosts="3", only="fast", options={"moves_held": 4}),
                    Bed("long", tags=frozenset({"nightly"}), hosts="3", options={"moves_held": 100}),
                    Bed("thousand", tags=frozenset({"nightly"}), hosts="3", only="thousand",
                        options={"moves_held": 1000})],
              needs=("mpich", "ip", "pkg-config"), open=prepared, options=add_options)
SUITES = [suite]


def held(setup, **more):
    return Held(setup, **more)


def note(job, results):
    mover = results[MOVER]
    return Note(f"{job.means}; {mover['received']} messages, {mover['lines']} lines, {mover['pings']} questions",
                results=results)


@suite.test("moves-between-hosts", tags={"fast"})
def moves_between_hosts(setup):
    with held(setup) as job:
        for move in range(setup.options.moves_held):
            job.move(2 - move % 2)
        return note(job, job.finish())


@suite.test("its-clock-goes-on-where-another-runs", tags={"fast"})
def its_clock_goes_on_where_another_runs(setup):
    """Monotonic time of h2 is a day ahead, as if it had been booted then. The rank looks at its own."""
    with held(setup) as job:
        job.end_listener(2)
        job.listen(2, before=["unshare", "--time", "--monotonic", 86400, "--boottime", 86400])
        for host in (2, 1, 2):
            job.move(host)
        return note(job, job.finish())


# ---- users without privilege: a user namespace gives CRIU what it needs ----

def identity_of(pid):
    """What the kernel lets a process do."""
    status = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return re.findall(r"^(?:Uid|Gid|Groups|CapInh|CapPrm|CapEff|CapAmb|NoNewPrivs|Seccomp):.*$", status, re.MULTILINE)


@suite.test("moves-without-privilege", tags={"fast"})
def moves_without_privilege(setup):
    """An ordinary user's rank, to a host whose clocks are others, and back. It has no privilege then, either."""
    need_user_namespaces()
    with held(setup, before=AS_USER) as job:
        job.end_listener(2)
        job.listen(2, before=["unshare", "--time", "--monotonic", 86400, "--boottime", 86400])
        before = identity_of(rank_processes(job)[0])
        check("CapEff:\t0000000000000000" in before and "Uid:\t65534\t65534\t65534\t65534" in before, f"it has {before}")
        for host in (2, 1, 2):
            job.move(host)
            after = identity_of(rank_processes(job)[0])
            check(after == before, f"it had {before}, and has {after}")
        return note(job, job.finish())


@suite.test("moves-without-privilege-if-it-is-to-be-lazy", tags={"fast"})
def moves_without_privilege_if_it_is_to_be_lazy(setup):
    """To be told of a fork, as userfaultfd(2) does, needs CAP_SYS_PTRACE of the host's."""
    need_user_namespaces()
    with held(setup, before=AS_USER, hold_options=LAZY, options=CHANGING) as job:
        said = job.move(2)
        check(not said["lazy"] and "cannot fill the memory" in said["not_lazy"], f"it says {said}")
        return note(job, job.finish())


@suite.test("comes-to-hosts-of-its-own-groups-only", tags={"fast"})
def comes_to_hosts_of_its_own_groups_only(setup):
    """In a user namespace groups have no numbers, so CRIU would give it those that are there."""
    need_user_namespaces()
    others = ["setpriv", "--reuid", "65534", "--regid", "65534"]
    with held(setup, before=AS_USER) as job:
        job.end_listener(2)
        before, job.before = job.before, [*others, "--groups", "65534,200"]
        job.listen(2)
        job.move_fails(2, "groups [200,65534], and the rank of user 65534, group 65534, groups [100,65534]")
        job.end_listener(2)
        given = "+checkpoint_restore,+sys_ptrace"
        job.before = [*before, "--inh-caps", given, "--ambient-caps", given]
        job.listen(2)
        job.before = before
        job.move_fails(2, "has the privilege to move ranks, and the rank's has not")
        job.end_listener(2)
        job.listen(2)
        job.move(2)
        return note(job, job.finish())


@suite.test("says-why-it-has-no-user-namespace", tags={"fast"})
def says_why_it_has_no_user_namespace(setup):
    need_user_namespaces()
    with held(setup, before=AS_USER, hold_options=["--no-user-namespace"]) as job:
        job.move_fails(2, "has no privilege, and --no-user-namespace")
        refused = note(job, job.finish())
    # Of another user namespace, in which no more of them are allowed.
    none = ["unshare", "--user", "--map-current-user", "--keep-caps", "sh", "-c",
            'echo 0 > /proc/sys/user/max_user_namespaces && exec setpriv --ambient-caps -all --inh-caps -all "$@"', "sh"]
    with held(setup, before=[*AS_USER, *none]) as job:
        job.move_fails(2, "has no privilege, and cannot have a user namespace: No space left on device")
        job.finish()
    return refused


@suite.test("ranks-of-mpi-move-without-privilege", tags={"fast"})
def ranks_of_mpi_move_without_privilege(setup):
    need_user_namespaces()
    with ring(setup, before=AS_USER) as job:
        go_round(setup, job)
        rounds = job.finish()
        return Note(f"{job.means}; {rounds} rounds", rounds=rounds)


# ---- ranks of MPI: every one of them, PMI and standard streams included ----

def ring(setup, *options, kind=HeldMpi, program="ring", **more):
    library = pathlib.Path(setup.prefix) / "lib/libmpi.so"
    if b"CH4_ZC_DETACH_FD" not in library.read_bytes():
        raise Skip("ranks of this MPICH's ch4:zc cannot leave UCX")
    programs = mpi.build(setup.prefix, [HERE / f"{program}.c"], setup.build_dir / "mpi")
    return kind(setup, [programs[program], *options], **more)


def go_round(setup, job):
    """Each rank goes round the hosts, and comes back where it was started."""
    for move in range(setup.options.moves_held):
        rank, turn = move % 3, move // 3
        job.move((rank + turn + 1) % 3 + 1, rank)


@suite.test("ranks-of-mpi-move", tags={"fast", "thousand"})
def ranks_of_mpi_move(setup):
    with ring(setup) as job:
        go_round(setup, job)
        rounds = job.finish()
        return Note(f"{job.means}; {rounds} rounds", rounds=rounds)


def waits_for_the_launcher(job):
    """Rank 0 of names.c has asked, and reads a socket until the answer comes."""
    [rank] = [pid for pid, environment in process.processes(job.running.mark)
              if environment.get(b"PMI_RANK") == b"0" and pathlib.Path(f"/proc/{pid}/exe").resolve().name == "names"]
    return "unix" in pathlib.Path(f"/proc/{rank}/wchan").read_text(encoding="ascii")


@suite.test("waits-for-its-launcher-on-another-host", tags={"fast"})
def waits_on_another_host(setup):
    """It moves between what it has asked and the answer, which is the right one, and the landing thread does that."""
    with ring(setup, program="names") as job:
        mpiexec = job.running.process.pid
        for move in range(setup.options.moves_held):
            os.kill(mpiexec, signal.SIGSTOP)
            try:
                job.wait_until("it waits for an answer", lambda: waits_for_the_launcher(job))
                job.move((move + 1) % 3 + 1, 0)
            finally:
                os.kill(mpiexec, signal.SIGCONT)
        rounds = job.finish()
        return Note(f"{job.means}; {rounds} rounds", rounds=rounds)


@suite.test("windows-go-on-where-they-were", tags={"fast"})
def windows_go_on(setup):
    """UCX reaches them before a move, and after it: windows.c checks contents, this one by what was counted."""
    file = setup.scratch / f"windows-{time.monotonic_ns()}"
    with ring(setup, program="windows", environment={statistics.CVAR + "STATS_FILE": str(file)}) as job:
        go_round(setup, job)
        rounds = job.finish()
        told = statistics.add_up(file)
        check(told["window_keys"] > 0, "no key to a window was received anew")
        check(told["window_refusals"] == 0, "a key to a window was not to be had")
        return Note(f"{job.means}; {rounds} rounds, {told['window_keys']} keys received anew", rounds=rounds)


class Log:
    """Of a rank of files.c, to which others append as well."""

    def __init__(self, folder, rank):
        self.path, self.rank, self.others = folder / f"log-{rank}", rank, 0

    def append(self):
        with open(self.path, "a", encoding="ascii") as file:
            file.write(f"other {self.others}\n")
        self.others += 1

    def rounds(self):
        return [line for line in self.path.read_text(encoding="ascii").splitlines() if line.startswith("rank")]

    def check(self, rounds):
        """No line is missing, or is not whole: nobody has written where another had."""
        lines = self.path.read_text(encoding="ascii").splitlines()
        wanted = [*(f"rank {self.rank} round {each}" for each in range(rounds)),
                  *(f"other {each}" for each in range(self.others))]
        if sorted(lines) != sorted(wanted) or self.rounds() != wanted[:rounds]:
            odd = [line for line in lines if line not in set(wanted)]
            raise Fail(f"{self.path.name} has {len(lines)} lines, not {len(wanted)}, and {len(odd)} others: {odd[:5]}")


@suite.test("open-files-go-on-where-they-were", tags={"fast"})
def open_files_go_on(setup):
    """They are on a file system of all hosts. files.c checks places and contents. Another process appends to
    the logs when their ranks have come: who has lost that it appends writes over it."""
    folder = setup.scratch / f"files-{time.monotonic_ns()}"
    folder.mkdir()
    with ring(setup, folder, program="files") as job:
        logs = [Log(folder, rank) for rank in range(job.ranks)]
        for move in range(min(setup.options.moves_held, 12)):
            rank, turn = move % 3, move // 3
            job.move((rank + turn + 1) % 3 + 1, rank)
            before = len(logs[rank].rounds())
            logs[rank].append()
            job.wait_until(f"rank {rank} writes", lambda log=logs[rank], least=before: len(log.rounds()) > least + 1)
        rounds = job.finish()
        for log in logs:
            log.check(rounds)
        return Note(f"{job.means}; {rounds} rounds", rounds=rounds)


@suite.test("open-files-of-mpi-go-on", tags={"fast"})
def open_files_of_mpi_go_on(setup):
    """All ranks have one open, on a file system of all hosts, and write it together."""
    if not (pathlib.Path(setup.prefix) / "include/mpio.h").exists():
        raise Skip("this MPICH was built without MPI-IO")
    folder = setup.scratch / f"shared-{time.monotonic_ns()}"
    folder.mkdir()
    with ring(setup, folder / "data", program="shared_file") as job:
        for move in range(min(setup.options.moves_held, 6)):
            rank, turn = move % 3, move // 3
            job.move((rank + turn + 1) % 3 + 1, rank)
        rounds = job.finish()
        return Note(f"{job.means}; {rounds} rounds", rounds=rounds)


# ---- what goes wrong: the job goes on where it was, and can be moved afterwards ----

SHORT = 6       # seconds of patience, where the test has to wait for its end


def goes_on(setup, fault, why, patience=20):
    """What the wrapper of CRIU does to the first move."""
    with held(setup, patience=patience) as job:
        job.fault(fault)
        job.move_fails(2, why)
        check(job.status()["place"] == "", "the rank is elsewhere")
        job.move(2)
        job.fault(fault)
        job.move_fails(1, why)
        check(job.status()["place"] != "", "the rank is elsewhere")
        return note(job, job.finish())


@suite.test("goes-on-if-it-cannot-be-dumped", tags={"fast"})
def goes_on_if_it_cannot_be_dumped(setup):
    return goes_on(setup, "dump fails", "criu dump: status 1")


@suite.test("goes-on-if-it-cannot-be-restored", tags={"fast"})
def goes_on_if_it_cannot_be_restored(setup):
    return goes_on(setup, "restore fails", "criu restore: status 1")


def goes_on_without_target(setup, fault, number):
    """Signal NUMBER to the target's holder, of a first and of a second move."""
    disturbed = []

    def disturb(pid):
        disturbed.append(pid)
        os.kill(pid, number)

    with held(setup, patience=SHORT) as job:
        for host in (2, 1):
            job.fault(fault)
            said = job.move_disturbed(host, disturb)
            check(not said["ok"] and "gives no sign" in said["why"], f"it says {said}", job.said())
            job.check_alive()
            job.move(host)
            # If it was only stopped it has a copy, perhaps, which must end with it.
            if number == signal.SIGSTOP:
                os.kill(disturbed[-1], signal.SIGCONT)
            wait_for_end(setup, disturbed[-1])
            check(len(rank_processes(job)) == 1, f"copies: {rank_processes(job)}")
        return note(job, job.finish())


@suite.test("goes-on-if-the-target-s-holder-is-killed", tags={"fast"})
def goes_on_if_the_targets_holder_is_killed(setup):
    return goes_on_without_target(setup, "restore late", signal.SIGKILL)


@suite.test("goes-on-if-the-target-is-killed-when-it-has-restored-it")
def goes_on_if_killed_when_restored(setup):
    return goes_on_without_target(setup, "restore lingers", signal.SIGKILL)


@suite.test("goes-on-if-the-target-s-holder-is-stopped")
def goes_on_if_the_targets_holder_is_stopped(setup):
    return goes_on_without_target(setup, "restore late", signal.SIGSTOP)


@suite.test("goes-on-if-no-host-answers")
def goes_on_if_no_host_answers(setup):
    with held(setup, patience=SHORT) as job:
        job.end_listener(2)
        job.move_fails(2, "the other host does not answer")
        job.listen(2)
        job.move(2)
        return note(job, job.finish())


@suite.test("strangers-take-no-rank")
def strangers_take_no_rank(setup):
    """A listener with another key."""
    with held(setup, patience=SHORT) as job:
        job.end_listener(2)
        key, job.key = job.key, job.folder / "other-key"
        subprocess.run([pathlib.Path(job.hold).parent / "zcmd", "keygen", "--key", job.key], check=True,
                       capture_output=True)
        job.listen(2)
        job.key = key
        job.move_fails(2, "the other host does not answer")
        return note(job, job.finish())


@suite.test("goes-on-if-the-target-s-memory-is-full")
def goes_on_if_the_targets_memory_is_full(setup):
    """The folder in which the image arrives."""
    with held(setup) as job:
        job.end_listener(2)
        job.listen(2, ["unshare", "--mount", "sh", "-c",
                       "mount -t tmpfs -o size=300k tmpfs /dev/shm && exec \"$@\"", "sh"])
        job.move_fails(2, "No space left on device")
        job.end_listener(2)
        job.listen(2)
        job.move(2)
        return note(job, job.finish())


@suite.test("goes-on-if-the-network-is-cut")
def goes_on_if_the_network_is_cut(setup):
    """While the rank is detached: the image does not arrive."""
    with held(setup, patience=SHORT) as job:
        job.fault("dump late")
        with job.start_move(2) as request:
            job.wait_until_it_moves()
            setup.network.cut(2)
            time.sleep(SHORT + 4)
            setup.network.heal(2)
            said, _ = request.communicate(timeout=60 * setup.patience)
        check('"ok":false' in said, f"the move: {said}", job.said())
        job.move(2)
        return note(job, job.finish())


@suite.test("goes-on-without-what-asked", tags={"fast"})
def goes_on_without_what_asked(setup):
    """The request is killed: the move goes on."""
    with held(setup) as job:
        job.fault("dump late")
        with job.start_move(2) as request:
            job.wait_until_it_moves()
            request.kill()
        end = time.monotonic() + 60 * setup.patience
        while job.status()["moving"] and time.monotonic() < end:
            time.sleep(0.1)
        check(job.status()["place"] != "", "the rank is where it was")
        return note(job, job.finish())


@suite.test("signal-in-the-middle-reaches-the-copy-that-lives")
def signal_in_the_middle(setup):
    with held(setup) as job:
        job.fault("dump late")
        with job.start_move(2) as request:
            job.wait_for_fault()
            os.kill(job.pid, signal.SIGUSR1)
            said, _ = request.communicate(timeout=60 * setup.patience)
        check('"ok":true' in said, f"the move: {said}", job.said())
        results = job.job.wait(60 * setup.patience)
        check(results[MOVER]["incarnation"] == 1, f"incarnation {results[MOVER]['incarnation']}")
        return note(job, results)


# ---- what ends the rank ----

def rank_processes(job, rank=MOVER, program="detached_rank"):
    """The copies of the rank that are there, wherever."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            words = (entry / "environ").read_bytes().split(b"\0") if entry.name.isdigit() else []
            if b"PMI_RANK=%d" % rank in words and f"XDG_RUNTIME_DIR={job.folder}/runtime".encode() in words \
                    and (entry / "comm").read_text().strip() == program:
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def parent_of(pid):
    return int(pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[1])


def wait_for_end(setup, pid):
    end = time.monotonic() + 30 * setup.patience
    while pathlib.Path(f"/proc/{pid}/exe").exists():     # a zombie has none
        check(time.monotonic() < end, f"{pid} does not end")
        time.sleep(0.1)


def wait_for_no_copy(setup, job, *which):
    end = time.monotonic() + 30 * setup.patience
    while copies := rank_processes(job, *which):
        if time.monotonic() > end:
            raise Fail(f"copies of the rank are left: {copies}")
        time.sleep(0.1)


@suite.test("no-copy-outlives-its-origin")
def no_copy_outlives_its_origin(setup):
    """Killed when the rank is here, elsewhere, and in the middle of a move."""
    for where in ("here", "elsewhere", "copying", "between"):
        with held(setup, patience=SHORT, options=["--ballast", 512 if where == "copying" else 0]) as job:
            if where != "here":
                job.move(2)
            if where == "copying":
                job.start_move(1)
                job.wait_for_holder(has_store)
            if where == "between":
                job.fault("restore late")
                job.start_move(1)
                job.wait_until_it_moves()
                time.sleep(1)
            check(rank_processes(job), "there is no rank")
            os.kill(job.pid, signal.SIGKILL)
            wait_for_no_copy(setup, job)


def peer_is_killed(setup, fault, ranks, options=()):
    """The last rank, in the middle of a move of rank 0; its end is the job's. OPTIONS: of mpiexec. What the job says."""
    def launch(words):
        return [*setup.network.command(mpi.find_tool(setup.prefix, "mpiexec"), ranks, options), *words]

    with ring(setup, ranks=ranks, launch=launch, patience=SHORT) as job:
        job.fault(fault)
        with job.start_move(5 - ranks, 0) as request:
            job.wait_for_fault()
            check(rank_processes(job, 0, "ring"), f"{fault}: there is no rank 0", job.errors() + job.said())
            os.kill(rank_processes(job, ranks - 1, "ring")[0], signal.SIGKILL)
            status = job.running.wait(60 * setup.patience)
            request.kill()      # whom it has asked may be no more
        check(status is not None, "the job does not end", job.errors())
        check(status != 0, "the job ends as if nothing had happened", job.errors())
        for rank in range(ranks):
            wait_for_no_copy(setup, job, rank, "ring")
        end = time.monotonic() + 30 * setup.patience
        while holders := job.holders(lambda pid: True):
            check(time.monotonic() < end, f"holders are left: {holders}")
            time.sleep(0.1)
        return job.errors()


@suite.test("no-copy-outlives-a-job-that-another-rank-ends", tags={"fast"})
def no_copy_outlives_a_job(setup):
    """That one is killed while CRIU is about to freeze the rank, and to restore it."""
    for fault in ("dump late", "restore late"):
        peer_is_killed(setup, fault, ranks=3)


@suite.test("rank-that-has-moved-finds-that-another-is-dead")
def rank_finds_that_another_is_dead(setup):
    """The only other one was killed meanwhile, and the launcher leaves it at that."""
    for fault in ("dump late", "restore late"):
        said = peer_is_killed(setup, fault, ranks=2, options=["-disable-auto-cleanup"])
        # UCX tells at once, or when something is sent.
        check(re.search("has lost its connection to rank 1|Destination is unreachable", said),
              f"{fault}: it does not say why", said)


def is_lost(setup, job, why):
    """The origin ends, with 1, and says WHY; no copy is left."""
    rank = job.job.ranks[MOVER]
    rank.process.wait(30 * setup.patience)
    for reader in rank.readers:
        reader.join(timeout=5)
    said = "".join(rank.err)
    check(rank.process.returncode == 1, f"it ends with {rank.process.returncode}", said)
    check(f"zc-hold: rank {MOVER}: is lost: " in said and why in said, "it does not say why", said)
    wait_for_no_copy(setup, job)


@suite.test("says-that-a-rank-is-lost-with-its-host")
def rank_is_lost_with_its_host(setup):
    """The holder that has the rank is killed; and one that is about to give it away."""
    with held(setup, patience=SHORT) as job:
        job.move(2)
        os.kill(parent_of(rank_processes(job)[0]), signal.SIGKILL)
        is_lost(setup, job, "has given no sign")
    with held(setup, patience=SHORT) as job:
        job.move(2)
        job.fault("dump late")
        with job.start_move(1) as request:
            job.wait_until_it_moves()
            os.kill(parent_of(rank_processes(job)[0]), signal.SIGKILL)
            is_lost(setup, job, "has given no sign")
            request.communicate(timeout=60)


@suite.test("refuses-what-does-not-leave")
def refuses_what_does_not_leave(setup):
    """A program that knows nothing of it goes on."""
    with held(setup, patience=SHORT) as job:
        with subprocess.Popen(setup.network.on(1, "env", "PMI_RANK=7", *job.words("sleep", "300")),
                              env={**os.environ, **job.environment}, start_new_session=True) as sleeper:
            try:
                time.sleep(1)
                said = job.ask("--move", 7, "--to", f"{setup.network.addresses()[1]}:{PORT}")
                check("does not leave" in said.get("why", ""), f"it says {said}")
                check(sleeper.poll() is None, "the program has ended")
            finally:
                sleeper.terminate()
        check(sleeper.returncode == -signal.SIGTERM, f"it has ended with {sleeper.returncode}")
        return note(job, job.finish())


# ---- memory, which is sent while the rank runs: see pre_copy.h ----

BALLAST = 64        # MiB
CHANGING = ("--ballast", BALLAST, "--changes")


def sent_ahead(job, host):
    said = job.move(host)
    check(said["copied"] >= BALLAST << 20, f"{said['copied']} bytes were sent while it ran")
    check(said["bytes_there"] > 0, "nothing of that was of use")


@suite.test("memory-is-sent-while-it-changes", tags={"fast"})
def memory_is_sent_while_it_changes(setup):
    with held(setup, options=CHANGING) as job:
        sent_ahead(job, 2)
        sent_ahead(job, 1)
        return note(job, job.finish())


@suite.test("a-move-ends-in-time-or-says-how-late-it-is", tags={"fast"})
def a_move_ends_in_time(setup):
    """However little time there is, it moves."""
    with held(setup, options=CHANGING) as job:
        said = job.move(2, options=["--within", 600])
        check(said["copy_ended"] != "no time" and said["late_ms"] == 0, f"it says {said}")
        said = job.move(1, options=["--within", 0.1])
        check(said["copy_ended"] == "no time" and said["rounds"] == 1, f"it says {said}")
        check(said["late_ms"] > 0, f"it says {said}")
        said = job.move(2)
        check("late_ms" not in said, f"it says {said}")
        return note(job, job.finish())


def sent_at_once(setup, hold_options):
    with held(setup, options=CHANGING, hold_options=hold_options) as job:
        said = job.move(2)
        check("copied" not in said and said["bytes"] >= BALLAST << 20, f"it says {said}")
        return note(job, job.finish())


@suite.test("memory-is-sent-at-once-if-that-is-asked-for")
def memory_is_sent_at_once(setup):
    return sent_at_once(setup, ["--no-pre-copy"])


@suite.test("memory-of-512-mib-moves")
def memory_moves(setup):
    with held(setup, options=["--ballast", 512]) as job:
        for host in (2, 1):
            said = job.move(host)
            check(said["bytes"] < BALLAST << 20, f"{said['bytes']} bytes were sent when it stood still")
        return note(job, job.finish())


# ---- memory that the rank has when it runs: see page_filler.h ----

LAZY = ("--lazy",)


def moves_lazily(setup, moves, **more):
    """The rank goes back and forth, its memory after it."""
    with held(setup, hold_options=LAZY, **more) as job:
        for move in range(moves):
            said = job.move(2 - move % 2)
            check(said["left_out"] > 0, f"CRIU has left nothing out: {said}")
        return note(job, job.finish())


@suite.test("rank-runs-before-it-has-its-memory", tags={"fast"})
def runs_before_it_has_its_memory(setup):
    """It is asked to move on before it has all: then that waits."""
    return moves_lazily(setup, setup.options.moves_held)


@suite.test("rank-runs-before-it-has-memory-that-changes", tags={"fast"})
def runs_before_it_has_memory(setup):
    with held(setup, options=CHANGING, hold_options=LAZY) as job:
        for host in (2, 1, 2):
            said = job.move(host)
            check(said["left_out"] >= BALLAST << 20, f"{said['left_out']} bytes were left out")
            check(said["bytes_there"] > 0, "nothing of what was sent before was of use")
            check(said["unread"] > 0 and "not_tracked" not in said, f"all was read again: {said}")
        return note(job, job.finish())


@suite.test("reads-all-memory-if-it-is-told-to")
def reads_all_memory(setup):
    with held(setup, options=CHANGING, hold_options=[*LAZY, "--no-tracking"]) as job:
        said = job.move(2)
        check(said["bytes_there"] > 0 and said["unread"] == 0, f"it says {said}")
        return note(job, job.finish())


@suite.test("reads-all-memory-if-something-may-write-it-unseen", tags={"fast"})
def reads_all_memory_if_something_may_write(setup):
    """As a ring of io_uring may, which the rank has until it leaves."""
    with held(setup, options=CHANGING, of_all=["--lanes", "uring"], hold_options=LAZY) as job:
        said = job.move(2)
        check(said["bytes_there"] > 0 and said["unread"] == 0, f"it says {said}")
        check("io_uring" in said["not_tracked"], f"it says {said}")
        check(job.errors().count("is read while it stands still") == 1, f"it is not said, or not once: {job.errors()}")
        return note(job, job.finish())


@suite.test("rank-runs-before-it-has-memory-that-was-sent-at-once")
def runs_before_it_has_memory_at_once(setup):
    return sent_at_once(setup, [*LAZY, "--no-pre-copy"])


@suite.test("takes-its-memory-along-if-criu-cannot-leave-it-out", tags={"fast"})
def takes_its_memory_along(setup):
    with held(setup, options=CHANGING, hold_options=LAZY) as job:
        job.fault("dump fails")
        said = job.move(2)
        check(said["left_out"] == 0 and not said["lazy"] and "criu dump" in said["not_lazy"], f"it says {said}")
        said = job.move(1)
        check(said["left_out"] > 0 and said["lazy"] and "not_lazy" not in said, f"it does not try again: {said}")
        results = job.finish()
        check(job.errors().count("not --lazy: criu dump") == 1, f"it is not said, or not once: {job.errors()}")
        return note(job, results)


@suite.test("knows-what-a-rank-of-mpi-writes", tags={"fast"})
def knows_what_a_rank_of_mpi_writes(setup):
    with ring(setup, mib=128, hold_options=LAZY) as job:
        for host in (2, 3, 1):
            said = job.move(host, 0)
            check("not_tracked" not in said, f"it is not told: {said}")
            check(said["unread"] > 100 << 20, f"it reads what was not written: {said}")
        rounds = job.finish()
        return Note(f"{job.means}; {rounds} rounds", rounds=rounds)


@suite.test("ranks-of-mpi-run-before-they-have-their-memory", tags={"fast"})
def ranks_of_mpi_run_before_they_have_their_memory(setup):
    with ring(setup, hold_options=LAZY) as job:
        for move in range(setup.options.moves_held):
            rank, turn = move % 3, move // 3
            said = job.move((rank + turn + 1) % 3 + 1, rank)
            check(said["left_out"] > 0, f"CRIU has left nothing out: {said}; {job.errors()}")
        rounds = job.finish()
        return Note(f"{job.means}; {rounds} rounds", rounds=rounds)


def child_with(holder, word):
    """A process that HOLDER has started and that has WORD in its command line; None: there is none."""
    for child in process.children(holder):
        with contextlib.suppress(OSError):
            if word.encode() in pathlib.Path(f"/proc/{child}/cmdline").read_bytes().split(b"\0"):
                return child
    return None


def state_of(pid):
    """As proc(5) has it; "": it is no more."""
    with contextlib.suppress(OSError):
        return pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0]
    return ""


def is_stopped(pid):
    """By a signal that this sends; False: it had ended before."""
    with contextlib.suppress(OSError):
        os.kill(pid, signal.SIGSTOP)
    while (state := state_of(pid)) not in ("T", "Z", "X", ""):
        time.sleep(0.001)
    return state == "T"


def filler_of(holder):
    """The process that gives the rank of HOLDER its memory; None: there is none."""
    for child in process.children(holder):
        with contextlib.suppress(OSError):
            folder = pathlib.Path(f"/proc/{child}")
            if b"--arrival" in (folder / "cmdline").read_bytes().split(b"\0") and \
                    any("userfaultfd" in os.readlink(entry) for entry in (folder / "fd").iterdir()):
                return child
    return None


def has_begun_to_fill(filler):
    """It does when it has heard that all else is restored, and has told the holder; before, CRIU may
    have touched some pages."""
    with contextlib.suppress(OSError):
        status = pathlib.Path(f"/proc/{filler}/status").read_text(encoding="ascii")
        return int(re.search(r"RssShmem:\s+(\d+) kB", status)[1]) > 16 << 10     # of the store
    return False


TIMES_TO_HIT = 10   # a move whose memory is there before it can be disturbed goes well: then the next is
BALLAST_AT_ONCE = {"options": ["--ballast", 512], "hold_options": [*LAZY, "--no-pre-copy"]}


@suite.test("goes-on-if-it-cannot-be-given-its-memory", tags={"fast"})
def goes_on_if_it_cannot_be_given_its_memory(setup):
    """It is not told to go on at the target, where CRIU has restored it, or is about to."""
    def kill_filler(holder):
        end = time.monotonic() + 60
        while not (filler := filler_of(holder)):
            check(time.monotonic() < end, "nothing gives the rank its memory", job.said())
        # As long as CRIU has not ended the rank is given no token.
        restoring = child_with(holder, "restore")
        if restoring and is_stopped(restoring):
            with contextlib.suppress(OSError):
                os.kill(filler, signal.SIGKILL)
            os.kill(restoring, signal.SIGCONT)

    with held(setup, **BALLAST_AT_ONCE) as job:
        for time_to_hit in range(TIMES_TO_HIT):
            host = 2 - time_to_hit % 2
            job.fault("restore slowly")     # so that there is time for it
            said = job.move_disturbed(host, kill_filler, copying=True)
            job.check_alive()
            if not said["ok"]:
                break
        check(not said["ok"], f"it says {said}")
        check("cannot be given its memory" in said["why"] or "criu restore" in said["why"], f"it says {said}")
        check(len(rank_processes(job)) == 1, f"copies: {rank_processes(job)}")
        job.move(host)
        return note(job, job.finish())


def goes_on_without_dump(setup, number):
    """CRIU gets the signal NUMBER while the rank's memory is read."""
    def disturb(_):
        dumping = child_with(job.pid, "dump")
        check(dumping, "CRIU has ended", job.said())
        os.kill(dumping, number)

    with held(setup, **BALLAST_AT_ONCE) as job:
        said = job.move_disturbed(2, disturb, copying=True)
        check(not said["ok"] and "criu dump" in said["why"], f"it says {said}")
        job.check_alive()
        check(len(rank_processes(job)) == 1, f"copies: {rank_processes(job)}")
        job.move(2)
        return note(job, job.finish())


@suite.test("goes-on-if-it-does-not-stay-frozen", tags={"fast"})
def goes_on_if_it_does_not_stay_frozen(setup):
    """What has been read may be older than what comes."""
    return goes_on_without_dump(setup, signal.SIGKILL)


@suite.test("goes-on-if-criu-does-not-end", tags={"fast"})
def goes_on_if_criu_does_not_end(setup):
    """Nothing says that the rank is stopped at the source: there may be two copies of it."""
    return goes_on_without_dump(setup, signal.SIGSTOP)


def read_record(job):
    """What the origin has decided last; {}: nothing."""
    with contextlib.suppress(FileNotFoundError):
        return json.loads((job.folder / "runtime/zcm" / f"hold-{job.pid}.record").read_text(encoding="ascii"))
    return {}


@suite.test("is-lost-if-it-is-no-longer-given-its-memory", tags={"fast"})
def is_lost_if_it_is_no_longer_given_its_memory(setup):
    """It would find zeros where its memory was, from the time on when the target has the token."""
    def lose_memory(holder):
        """Its filler is stopped when it has begun to fill, and killed when the target has the token."""
        end = time.monotonic() + 60
        filler = None
        while (record := read_record(job)).get("incarnation", 0) <= incarnation:
            check(time.monotonic() < end, "the move does not end", job.said())
            time.sleep(0.001)
            filler = filler or filler_of(holder)
            if filler and has_begun_to_fill(filler) and not is_stopped(filler):
                break
        if filler and is_stopped(filler) and record["place"] == f"tcp://{network.address(host)}:{PORT}":
            os.kill(filler, signal.SIGKILL)
            hit.append(filler)

    hit, host = [], 2
    with held(setup, **BALLAST_AT_ONCE) as job:
        for incarnation in range(TIMES_TO_HIT):
            said = job.move_disturbed(host, lose_memory, copying=True)
            if hit:
                break
            job.check_alive()
            host = 3 - host if said["ok"] else host
        check(hit, "each time the rank had all its memory before it could be taken from it")
        rank = job.job.ranks[MOVER]
        rank.process.wait(30 * setup.patience)
        for reader in rank.readers:
            reader.join(timeout=5)
        said = "".join(rank.err)
        check(rank.process.returncode != 0, "it ends well", said)
        check("cannot be given its memory" in said, "it does not say why", said)
        wait_for_no_copy(setup, job)


# The origin notices it, or the holder that sends.
NO_SIGN = ("gives no sign", "does not answer")


def stays(setup, why, disturb, mend=None, before=None):
    """DISTURB(job, the target's holder) while memory is sent: the rank has not left."""
    with held(setup, patience=SHORT, options=["--ballast", 512]) as job:
        if before:
            before(job)
        incarnation = job.status()["incarnation"]
        said = job.move_disturbed(2, lambda pid: disturb(job, pid), copying=True)
        check(not said["ok"] and any(each in said["why"] for each in why), f"it says {said}", job.said())
        check(said["other_host"], "another host would do as well")
        job.check_alive()
        check(job.status()["incarnation"] == incarnation, "the rank had left")
        if mend:
            mend(job)
        check(len(rank_processes(job)) == 1, f"copies: {rank_processes(job)}")
        job.move(2)
        return note(job, job.finish())


@suite.test("stays-if-the-target-is-killed-while-memory-is-sent")
def stays_if_the_target_is_killed(setup):
    return stays(setup, NO_SIGN, lambda job, pid: os.kill(pid, signal.SIGKILL))


@suite.test("stays-if-the-target-is-stopped-while-memory-is-sent")
def stays_if_the_target_is_stopped(setup):
    stopped = []

    def stop(_, pid):
        os.kill(pid, signal.SIGSTOP)
        stopped.append(pid)

    def go_on(_):
        os.kill(stopped[0], signal.SIGCONT)
        wait_for_end(setup, stopped[0])

    return stays(setup, NO_SIGN, stop, go_on)


@suite.test("stays-if-the-network-is-cut-while-memory-is-sent")
def stays_if_the_network_is_cut(setup):
    """Both are there, and no longer hear of each other."""
    return stays(setup, NO_SIGN, lambda job, pid: setup.network.cut(2), lambda job: setup.network.heal(2))


def listen_with_room(job, mib):
    """The folder in which memory arrives on h2 has so much room."""
    job.end_listener(2)
    job.listen(2, ["unshare", "--mount", "sh", "-c",
                   f"mount -t tmpfs -o size={mib}m tmpfs /dev/shm && exec \"$@\"", "sh"])


@suite.test("stays-if-the-target-s-memory-fills-while-memory-is-sent")
def stays_if_the_targets_memory_fills(setup):
    def fill(_, pid):
        os.kill(pid, signal.SIGSTOP)
        subprocess.run(["nsenter", "--mount", "--target", str(pid), "sh", "-c",
                        "head -c 2G /dev/zero > /dev/shm/filled"], stderr=subprocess.DEVNULL, check=False)
        os.kill(pid, signal.SIGCONT)

    def mend(job):
        job.end_listener(2)
        job.listen(2)

    return stays(setup, ["No space left on device"], fill, mend, before=lambda job: listen_with_room(job, 1300))


@suite.test("no-memory-is-sent-ahead-where-there-is-no-room", tags={"fast"})
def no_memory_is_sent_ahead(setup):
    """For the image there is: the rank moves as it does without."""
    with held(setup, options=CHANGING) as job:
        listen_with_room(job, 2 * BALLAST)
        said = job.move(2)
        check("copied" not in said and said["bytes"] >= BALLAST << 20, f"it says {said}")
        return note(job, job.finish())


def resident_mib(job, rank):
    """Of RANK, which is where it was started."""
    origin = next(each["pid"] for each in job.all_statuses() if each["rank"] == str(rank))
    status = pathlib.Path(f"/proc/{next(process.children(origin))}/status").read_text(encoding="ascii")
    return int(re.search(r"VmRSS:\s+(\d+) kB", status)[1]) >> 10


@suite.test("memory-is-promised-to-one-rank-only", tags={"fast"})
def memory_is_promised_to_one_rank_only(setup):
    """A second one does not find room that the first has not taken yet, and stays, until the first is no more."""
    with ring(setup, mib=256) as job:
        mib = resident_mib(job, 0)
        listen_with_room(job, 5 * mib // 2)
        with job.start_move(2, 0) as request:
            try:
                holder = job.wait_for_holder(has_store, request)
                os.kill(holder, signal.SIGSTOP)
                try:
                    refused = job.move_fails(2, "are promised to other ranks", 2)
                finally:
                    os.kill(holder, signal.SIGKILL)
                check("leave_ms" not in refused and refused["incarnation"] == 0, f"the rank has left: {refused}")
                said = job.move(2, 2)
                check("copied" in said, f"what was promised is not free: {said}")
                first = json.loads(request.communicate(timeout=60 * setup.patience)[0])
            except BaseException:
                request.kill()          # or its end would be waited for
                raise
        check(not first["ok"] and any(each in first["why"] for each in NO_SIGN), f"it says {first}")
        job.move(2, 0)
        rounds = job.finish()
        return Note(f"{refused['why']}; {rounds} rounds", rounds=rounds)


@suite.test("moves-where-nothing-can-be-promised", tags={"fast"})
def moves_where_nothing_can_be_promised(setup):
    """The file is another user's: the rank moves as if it were the only one, and the listener says so once."""
    with held(setup) as job:
        job.end_listener(2)
        job.listen(2, ["unshare", "--mount", "sh", "-c",
                       "mount -t tmpfs tmpfs /dev/shm && file=/dev/shm/zc-hold-promises-$(id -u) && : > $file && "
                       "chown 54321 $file && exec \"$@\"", "sh"])
        for host in (2, 1, 2):
            job.move(host)
        said = job.said()
        check(said.count("may be promised to another") == 1, "it is not said, or not once", said)
        return note(job, job.finish())


@suite.test("rank-ends-while-its-memory-is-sent")
def rank_ends_while_its_memory_is_sent(setup):
    """By a signal, which reaches it at once; and the job with it, as it would without a move."""
    def tell_to_end(pid):
        os.kill(pid, signal.SIGSTOP)        # so that not all is sent before
        os.kill(job.pid, signal.SIGUSR1)
        wait_for_end(setup, rank[0])
        os.kill(pid, signal.SIGCONT)

    with held(setup, options=["--ballast", 512]) as job:
        rank = rank_processes(job)
        said = job.move_disturbed(2, tell_to_end, copying=True)
        check(not said["ok"], f"it says {said}", job.said())
        results = job.job.wait(60 * setup.patience)
        check(results[MOVER]["incarnation"] == 0, f"incarnation {results[MOVER]['incarnation']}")
        return note(job, results)


@suite.test("benchmark", tags={"fast"})
def benchmark(setup):
    """bench/run hold, shortened: its rank obeys what zc-hold orders, and it finds what it is to measure."""
    out = setup.scratch / "hold.jsonl"
    ways = ("ahead", "lazy", "plain")
    done = subprocess.run([TOP / "bench/run", "hold", "--library", setup.options.library, "--rounds", "1", "--links",
                           "10gbit", "--sizes", "64", "--ways", *ways, "--json-out", out], cwd=TOP,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode == EXIT_SKIPPED:
        raise Skip(done.stderr.strip())
    check(done.returncode == 0, f"exit status {done.returncode}", done.stderr)
    found = {(line["impl"], line["metric"]): line["median"]
             for line in map(json.loads, out.read_text(encoding="utf-8").splitlines()) if "impl" in line}
    for way in ways:
        for name in ("ms", "still_ms", "bytes", "source_bytes", "target_bytes"):
            check(found.get((way, name), 0) > 0, f"{way}: {name} is not measured", done.stdout)
