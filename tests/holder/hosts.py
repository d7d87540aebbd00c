# SPDX-License-Identifier: BSD-3-Clause
"""zc-hold on hosts: listeners, requests, and a job of tests/detach in which one rank is held."""
import concurrent.futures
import contextlib
import ctypes
import dataclasses
import json
import os
import pathlib
import re
import select
import shutil
import signal
import socket
import stat
import subprocess
import time

from testbed import mpi, network, process
from testbed.outcome import Fail, Skip, check
from testbed.statistics import CVAR
from tests.detach.job import Job

PORT = 7474
SIZE = 3
MOVER = 1       # its rank; it begins on h1
ANSWER_SECONDS = 120
# Of the user nobody, in a group of others, too.
AS_USER = ("setpriv", "--reuid", "65534", "--regid", "65534", "--groups", "65534,100")
# Stands for CRIU: does to it what the file says that $ZC_TEST_FAULT names, once, though several may read it at once:
# only one of them can rename it.
WRAPPER = """#!/bin/sh
verb=$1
fault=$(cat "$ZC_TEST_FAULT" 2> /dev/null)
case $fault in
"$verb "*) mv "$ZC_TEST_FAULT" "$ZC_TEST_FAULT.was" 2> /dev/null || exec {criu} "$@" ;;
*) exec {criu} "$@" ;;
esac
case $fault in
*fails) exit 1 ;;
*late) sleep 3; exec {criu} "$@" ;;
*lingers) {criu} "$@"; sleep 3; exit 1 ;;
*slowly) {criu} "$@"; status=$?; sleep 1; exit $status ;;
esac
"""


def need_user_namespaces():
    done = subprocess.run([*AS_USER, "unshare", "--user", "--map-current-user", "true"], capture_output=True,
                          text=True, check=False)
    if done.returncode != 0:
        raise Skip(f"users without privilege can have no user namespace: {done.stderr.strip()}")


def host_of(rank):
    """Where a rank begins."""
    return {0: 3, MOVER: 1, 2: 2}[rank]


def has_child(holder):
    return next(process.children(holder), None) is not None


def has_store(holder):
    """Memory of a rank has come to HOLDER before its image."""
    for entry in pathlib.Path(f"/proc/{holder}/fd").iterdir():
        with contextlib.suppress(OSError):
            if re.search(r"/zc-hold-[^/]*/#\d+ \(deleted\)$", os.readlink(entry)) and entry.stat().st_size:
                return True
    return False


@dataclasses.dataclass
class Means:
    """Of the moves that went well, each field of their answers."""
    moves: int = 0
    sums: dict = dataclasses.field(default_factory=dict)

    def add(self, answer):
        self.moves += 1
        for name, value in answer.items():
            if name.endswith("ms") or name in ("bytes", "copied"):
                self.sums[name] = self.sums.get(name, 0) + value

    def __str__(self):
        def text(name, value):
            names = {"bytes": "image", "copied": "copied while it ran"}
            return f"{names[name]} {value / self.moves / 2 ** 20:.1f} MiB" if name in names else \
                f"{name.removesuffix('_ms').replace('ms', 'in all')} {value / self.moves:.0f} ms"
        return f"{self.moves} moves" + "".join(f", {text(*each)}" for each in self.sums.items())


class Hosts:
    """Listeners on hosts, and requests. A subclass has the job.

    before: words in front of every zc-hold, AS_USER for one
    """

    def __init__(self, setup, patience=20, hold_options=(), before=()):
        self.setup = setup
        self.patience = patience
        self.hold_options = hold_options
        self.before = before
        bin_folder = pathlib.Path(setup.options.library).resolve() / "bin"
        self.hold = str(bin_folder / "zc-hold")
        check(os.access(self.hold, os.X_OK), f"{self.hold} is not built")
        self.folder = setup.scratch / f"held-{time.monotonic_ns()}"
        (self.folder / "runtime").mkdir(parents=True, mode=0o700)
        self.fault_file = self.folder / "fault"
        self.key = self.folder / "key"
        subprocess.run([bin_folder / "zcmd", "keygen", "--key", self.key], check=True, capture_output=True)
        self.criu = self.folder / "criu"
        self.criu.write_text(WRAPPER.format(criu=setup.criu), encoding="ascii")
        self.criu.chmod(self.criu.stat().st_mode | stat.S_IXUSR)
        self.environment = {**setup.environment, **setup.network.environment(),
                            "XDG_RUNTIME_DIR": str(self.folder / "runtime"), "ZC_TEST_FAULT": str(self.fault_file)}
        self.listeners = {}
        self.means = Means()
        if before:
            self._give_away(setup)

    def _give_away(self, setup):
        """All that a zc-hold of another user needs, where that user can read it."""
        for folder in (setup.scratch, self.folder):
            folder.chmod(0o755)
        criu = shutil.copy(setup.criu, self.folder / "criu-itself")
        self.criu.write_text(WRAPPER.format(criu=criu), encoding="ascii")
        self.hold = shutil.copy(self.hold, self.folder)
        for library in pathlib.Path(setup.prefix, "lib").glob("*.so*"):
            shutil.copy(library, self.folder, follow_symlinks=False)
        self.environment["LD_LIBRARY_PATH"] = str(self.folder)
        for path in (self.folder, self.folder / "runtime", self.key, self.criu):
            os.chown(path, 65534, 65534)

    def readable(self, program):
        """PROGRAM, or a copy that the user of zc-hold can read."""
        return shutil.copy(program, self.folder) if self.before else program

    def words(self, *words):
        """zc-hold, with the options of this job."""
        return [*self.before, self.hold, "--key", str(self.key), "--criu", str(self.criu), "--patience",
                str(self.patience), *self.hold_options, *map(str, words)]

    def check_alive(self):
        """The job has not ended."""
        raise NotImplementedError

    def errors(self):
        """What the job has printed that tells why not."""
        raise NotImplementedError

    def listen(self, host, before=()):
        """BEFORE: words in front of zc-hold."""
        words = [*before, *self.words("--listen", f"{network.address(host)}:{PORT}")]
        started = subprocess.Popen(self.setup.network.on(host, *words), stdin=subprocess.DEVNULL,
                                   env={**os.environ, **self.environment}, stderr=subprocess.PIPE,
                                   start_new_session=True)
        check(select.select([started.stderr], [], [], ANSWER_SECONDS)[0], "no listener")
        line = started.stderr.readline()
        check(b"listening" in line, f"no listener on h{host}: {line!r}")
        os.set_blocking(started.stderr.fileno(), False)
        self.listeners[host] = started

    def end_listener(self, host):
        """What it held lives on."""
        listener = self.listeners.pop(host)
        listener.terminate()
        listener.wait()
        listener.stderr.close()

    def _end_listeners(self):
        for host in list(self.listeners):
            self.end_listener(host)

    def said(self):
        """What listeners and their holders have logged since."""
        return b"".join(each.stderr.read() or b"" for each in self.listeners.values()).decode()

    def _asked(self, *words):
        return subprocess.run(self.setup.network.on(1, *self.words(*words, "--json")), text=True,
                              env={**os.environ, **self.environment}, capture_output=True, check=False,
                              timeout=ANSWER_SECONDS * self.setup.patience)

    def ask(self, *words):
        done = self._asked(*words)
        if not done.stdout.strip():
            raise Fail(f"zc-hold {words[0]} gives no answer ({done.returncode})", done.stderr + self.said())
        return json.loads(done.stdout.splitlines()[-1])

    def status(self):
        """Of the rank that was started last."""
        return self.ask("--status")

    def all_statuses(self):
        return [json.loads(line) for line in self._asked("--status").stdout.splitlines()]

    @staticmethod
    def _order(host, rank):
        return ["--move", rank, "--to", f"{network.address(host)}:{PORT}"]

    def start_move(self, host, rank=MOVER):
        """A request that is not waited for."""
        return subprocess.Popen(self.setup.network.on(1, *self.words(*self._order(host, rank), "--json")),
                                env={**os.environ, **self.environment}, stdout=subprocess.PIPE,
                                stderr=subprocess.DEVNULL, text=True)

    def move(self, host, rank=MOVER, options=()):
        """RANK to HOST, which must succeed; what zc-hold says of it."""
        answer = self.ask(*self._order(host, rank), *options)
        if not answer["ok"]:
            raise Fail(f"no move of rank {rank} to h{host}: {answer.get('why')}", self.said() + self.errors())
        self.means.add(answer)
        self.check_alive()
        return answer

    def holders(self, which):
        """Those on hosts where the rank did not begin, and of which WHICH(process number) is true."""
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if entry.name.isdigit() and b"--arrival" in (entry / "cmdline").read_bytes().split(b"\0") and \
                        str(self.folder).encode() in (entry / "environ").read_bytes() and which(int(entry.name)):
                    found.append(int(entry.name))
        return found

    def wait_until_it_moves(self):
        end = time.monotonic() + ANSWER_SECONDS
        while not self.status()["moving"]:
            check(time.monotonic() < end, "the move does not begin", self.said())

    def wait_for_fault(self):
        """Of which it is the time: see WRAPPER."""
        end = time.monotonic() + ANSWER_SECONDS
        while self.fault_file.exists():
            check(time.monotonic() < end, "CRIU does not begin", self.said())
            time.sleep(0.005)

    def wait_for_holder(self, which, request=None):
        """The first of which WHICH(process number) is true, while REQUEST, of a move, is not answered."""
        end = time.monotonic() + ANSWER_SECONDS
        while not (found := self.holders(which)):
            check(time.monotonic() < end, "the move does not begin", self.said())
            if request and request.poll() is not None:
                raise Fail("the move has ended", request.stdout.read() + self.said())
            time.sleep(0.005)
        return found[0]

    def move_disturbed(self, host, act, copying=False):
        """ACT(process number of the target's holder) when that runs CRIU, or while memory is COPYING; what
        zc-hold says of the move."""
        before = self.holders(lambda pid: True)

        def is_new(pid):
            return pid not in before and (has_store(pid) if copying else has_child(pid))

        with self.start_move(host) as request:
            try:
                found = self.wait_for_holder(is_new, request)
                if not copying:
                    time.sleep(1)       # CRIU itself may have something to do
                act(found)
                said, _ = request.communicate(timeout=ANSWER_SECONDS)
            except BaseException:
                request.kill()          # or its end would be waited for
                raise
        return json.loads(said)

    def move_fails(self, host, why, rank=MOVER):
        """The job goes on where it was, and the answer names WHY."""
        answer = self.ask(*self._order(host, rank))
        check(not answer["ok"], "the move went well")
        check(why in answer.get("why", ""), f"the reason is {answer.get('why')!r}, not {why!r}", self.said())
        self.check_alive()
        return answer

    def fault(self, what):
        """What happens to CRIU the next time: see WRAPPER."""
        self.fault_file.write_text(what + "\n", encoding="ascii")


class Held(Hosts):
    """A job of tests/detach, whose rank MOVER has a zc-hold on h1; listeners wait on h1 and h2."""

    def __init__(self, setup, options=(), of_all=(), **more):
        super().__init__(setup, **more)
        self.options, self.of_all = options, of_all
        self.program = self.readable(setup.program)
        self.job = None
        self.pid = None     # of the origin

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            stack.callback(self._end_listeners)
            for host in (1, 2):
                self.listen(host)
            self.job = stack.enter_context(Job(SIZE, self._command, self.environment, self.folder,
                                               pair=self._pair))
            self.pid = self.status()["pid"]
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *exception):
        self._stack.__exit__(*exception)

    def check_alive(self):
        self.job.check_alive()

    def errors(self):
        return "".join(self.job.ranks[MOVER].err)

    def _command(self, rank, descriptor):
        words = [self.program, rank, SIZE, descriptor, *self.of_all]
        if rank == MOVER:
            words = ["env", f"PMI_FD={descriptor}", f"PMI_RANK={rank}", *self.words(*words), "--held",
                     *self.options]
        return self.setup.network.on(host_of(rank), *words)

    def _pair(self, rank):
        """A socket of the host's, as launchers make it: CRIU finds no other there."""
        def make():
            namespace = os.open(f"/run/netns/{self.setup.network.name}-h{host_of(rank)}", os.O_RDONLY)
            try:
                check(ctypes.CDLL(None, use_errno=True).setns(namespace, 0) == 0, "setns fails")
            finally:
                os.close(namespace)
            return socket.socketpair()
        # The thread alone enters the host, and ends there.
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            return pool.submit(make).result()

    def finish(self):
        """The end of the job, which has lost nothing. The results of the ranks."""
        time.sleep(1)       # it runs, too
        incarnation = self.status()["incarnation"]
        os.kill(self.pid, signal.SIGUSR1)
        results = self.job.wait(60 * self.setup.patience)
        mover = results[MOVER]
        check(mover["incarnation"] == incarnation, f"incarnation {mover['incarnation']}, not {incarnation}")
        check(mover["pings"] > 0 and mover["lines"] > 0, "nothing came by the standard streams")
        return results


class HeldJob(Hosts):
    """An MPI job of WORDS, its ranks below zc-hold on one host after the other; listeners wait on all.

    ranks:  go to the hosts in turn
    launch: what makes a command of zc-hold's words (default: mpiexec)
    """

    def __init__(self, setup, words, ranks=SIZE, launch=None, environment=(), directory=None, **more):
        super().__init__(setup, **more)
        self.program, self.ranks, self.directory = [*map(str, words)], ranks, directory or self.folder
        self.program[0] = str(self.readable(self.program[0]))
        self.launch = launch or self._by_mpiexec
        # What a rank needs to be able to move is zc-hold's to set.
        for name in ("UCX_TLS", "MPIR_CVAR_NOLOCAL"):
            self.environment.pop(name, None)
        self.environment |= {CVAR + "LANDING_THREAD": "1", "MPIR_CVAR_CH4_NETMOD": "zc", **dict(environment)}
        self.running = None

    def __enter__(self):
        mark = str(time.monotonic_ns())
        with contextlib.ExitStack() as stack:
            stack.callback(self._end_listeners)
            for host in range(1, 1 + len(self.setup.network.addresses())):
                self.listen(host)
            self.running = stack.enter_context(process.Running(
                [*map(str, self.launch(self.words(*self.program)))], mark,
                {**os.environ, **self.environment, process.MARK: mark}, self.directory))
            self.wait_until("the job begins", self.has_begun)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *exception):
        self._stack.__exit__(*exception)

    def _by_mpiexec(self, words):
        return [*self.setup.network.command(mpi.find_tool(self.setup.prefix, "mpiexec"), self.ranks), *words]

    def has_begun(self):
        """Every rank can be asked to move."""
        return len(self.all_statuses()) == self.ranks

    def wait_until(self, what, happens):
        end = time.monotonic() + ANSWER_SECONDS
        while not happens():
            self.check_alive()
            check(time.monotonic() < end, f"not within {ANSWER_SECONDS} s: {what}", self.errors())
            time.sleep(0.1)

    def check_alive(self):
        check(self.running.process.poll() is None, "the job has ended", self.errors())

    def errors(self):
        return self.running.said()

    def wait(self, timeout):
        """The job's end, which must be a good one; its output."""
        status = self.running.wait(timeout)
        check(status == 0, "the job does not end" if status is None else f"the job ends with {status}",
              self.said() + self.errors())
        return self.running.said()


class HeldMpi(HeldJob):
    """The ring of ring.c. MIB: memory of each rank, which is checked in the end. STEP: 0, or each sends
    most to the one that is so much further."""

    def __init__(self, setup, words, mib=0, step=0, **more):
        super().__init__(setup, words, **more)
        self.over = self.folder / "over"
        self.program += [str(self.over), str(mib), str(step)]

    def has_begun(self):
        """They are through MPI_Init."""
        return len(self.running.out) >= self.ranks

    def finish(self):
        """Rounds of the ring, whose contents were right."""
        before = len(self.running.out)
        # It runs, and its output comes.
        self.wait_until("more is printed", lambda: len(self.running.out) >= before + self.ranks)
        self.over.touch()
        self.wait(60 * self.setup.patience)
        ends = [line.split() for line in self.running.out if "ends after" in line]
        check(sorted(int(words[1]) for words in ends) == list(range(self.ranks)), "a rank does not end well",
              self.errors())
        return int(ends[0][4])
