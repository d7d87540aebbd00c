# SPDX-License-Identifier: BSD-3-Clause
"""Start MPI programs across the hosts of `hosts`, always time-limited.

    with launch.Network("2") as network:
        mpi = launch.Mpi("/opt/zc", network, netmod="zc")
        result = mpi.run(["./order"], ranks=2, timeout=60)

Every process started carries a mark in its environment, so that after a hang
the ranks that did not finish can be named, and nothing outlives its run.
"""
import argparse
import os
import pathlib
import re
import select
import shutil
import signal
import subprocess
import sys
import threading
import time
import uuid

from autogroup import NoAutogroup

HERE = pathlib.Path(__file__).resolve().parent
HOSTS = HERE / "hosts"
MOST_HOSTS = 32


def addresses(count):
    return [f"10.111.0.{host}" for host in range(1, count + 1)]


ADDRESSES = addresses(2)
INTERFACE = "zc0"
MARK = "ZC_LAUNCH"
# Programs print this line when only MPI_Finalize is left to do.
FINALIZING = "# finalizing"

# MPI_STATUSES_IGNORE is (void *)1 in MPICH, which gcc takes for an overflow.
WARNINGS = ["-Wall", "-Wextra", "-Wno-stringop-overflow"]

EXIT_USAGE = 2
EXIT_NOT_PERMITTED = 4
EXIT_HUNG_IN_FINALIZE = 123
EXIT_TIMEOUT = 124


class Error(Exception):
    """Something about the set-up, in words for the user."""


class Network:
    """Where ranks run: "2" hosts or more, "1" host (as MPICH likes), or "loopback" (one host, TCP only).

    link, cores: as `hosts up` has them; None: as they are, and of new hosts "bare" and "spare". Once
    entered, they tell what is up; hosts that were up before are left as they were. With full cores
    the hosts confine their ranks: nobody need bind them.

    Hosts that cannot be made become loopback, and `why` says so; but with a link or cores asked for
    that is an error, since loopback has neither. While there are hosts, they are no groups to the
    scheduler, if that is permitted: `autogroup` tells.
    """

    def __init__(self, hosts="2", name=None, link=None, cores=None):
        if hosts not in ("1", "loopback") and not \
                (hosts.isdecimal() and 2 <= int(hosts) <= MOST_HOSTS):
            raise Error(f"no such set of hosts: {hosts} (1, loopback, or 2 to {MOST_HOSTS})")
        self.hosts = hosts
        self.link, self.cores = link, cores
        if not self.between_hosts and (link or cores):
            raise Error(f"a link or cores are of two or more hosts, not of --hosts {hosts}")
        self.why = ""
        self.autogroup = NoAutogroup()
        self.name = name or os.environ.get("ZC_HOSTS") or f"zc-{os.getuid()}-{os.getpid()}"
        self._ours = False
        self._before = None     # link and cores of hosts that were up

    @property
    def between_hosts(self):
        return self.hosts not in ("1", "loopback")

    @property
    def kind(self):
        """What is common to any number of hosts: "2", "1" or "loopback"."""
        return "2" if self.between_hosts else self.hosts

    def addresses(self):
        return addresses(int(self.hosts))

    def __enter__(self):
        if not self.between_hosts:
            return self
        there = self._call("status").returncode == 0
        if there:
            asked = self.link, self.cores
            self._look()
            self._before = self.link, self.cores
            self.link, self.cores = asked
        made = self._up(["--hosts", self.hosts])
        if made.returncode == EXIT_NOT_PERMITTED and not (self.link or self.cores):
            self.hosts = "loopback"
            self.why = made.stderr.strip().removeprefix("hosts: ")
            return self
        if made.returncode != 0:
            raise Error(made.stderr.strip().removeprefix("hosts: ") or "cannot make the hosts")
        self._ours = not there
        self._look()
        self.autogroup.__enter__()
        return self

    def __exit__(self, *_):
        self.autogroup.__exit__()
        if self._ours:
            self._call("down")
            self._ours = False
        elif self._before and self._before != (self.link, self.cores):
            self.change(*self._before)

    def change(self, link, cores):
        """Give the hosts that are up other links and cores; for what is started afterwards."""
        before = self.link, self.cores
        self.link, self.cores = link, cores
        made = self._up([])
        if made.returncode != 0:
            self.link, self.cores = before
            raise Error(made.stderr.strip().removeprefix("hosts: ") or "cannot change the hosts")
        self._look()

    def _up(self, words):
        if self.link:
            words = [*words, "--link", self.link]
        if self.cores:
            words = [*words, "--cores", self.cores]
        return self._call("up", *words)

    def _look(self):
        said = self._call("status").stdout
        found = re.search(r"link (\S+), cores (\w+)", said)
        if not found:
            raise Error(f"the hosts do not tell their links and cores: {said.strip()}")
        self.link, self.cores = found.groups()

    def describe(self):
        if self.between_hosts:
            number = "two" if self.hosts == "2" else self.hosts
            pair = self.hosts == "2" and "," not in (self.link or "")
            joined = "a veth pair" if pair else "a bridge"
            link = "" if self.link in (None, "bare") else f", links of {self.link}"
            return f"{number} hosts (network namespaces, TCP over {joined}{link}{self._describe_cores()})"
        if self.hosts == "1":
            return "one host"
        return "one host, TCP over loopback" + (f" ({self.why})" if self.why else "")

    def _describe_cores(self):
        if self.cores in (None, "spare"):
            return ""
        processors = len(os.sched_getaffinity(0))
        return ", one processor for each host" + \
            (f", of {processors} in all" if int(self.hosts) > processors else "")

    def command(self, mpiexec, ranks, options=()):
        """The words before the program's own: MPICH's mpiexec with OPTIONS."""
        if not self.between_hosts:
            return [mpiexec, *options, "-launcher", "fork", "-n", str(ranks)]
        return [*self._on_first_host(), mpiexec, *options,
                "-launcher", "rsh", "-launcher-exec", str(HERE / "rsh"), "-iface", INTERFACE,
                "-hosts", ",".join(self.addresses()), "-n", str(ranks)]

    def open_mpi_command(self, mpirun, ranks):
        """The same for Open MPI's mpirun; ranks go to the hosts in turn, as Hydra does it."""
        interface = INTERFACE if self.between_hosts else "lo"
        transport = [] if self.hosts == "1" else [
            "--mca", "pml", "ob1", "--mca", "btl", "tcp,self",
            "--mca", "btl_tcp_if_include", interface, "--mca", "oob_tcp_if_include", interface]
        # Bound, the ranks of both hosts would share the first core of the one machine.
        words = [mpirun, "--allow-run-as-root", "--bind-to", "none", *transport]
        if not self.between_hosts:
            return [*words, "--oversubscribe", "-n", str(ranks)]
        slots = -(-ranks // len(self.addresses()))
        return [*self._on_first_host(), *words, "--mca", "plm_rsh_agent", str(HERE / "rsh"),
                "--host", ",".join(f"{address}:{slots}" for address in self.addresses()),
                "--map-by", "node", "-n", str(ranks)]

    def _on_first_host(self):
        return [str(HOSTS), "--name", self.name, "exec", "h1"]

    def environment(self):
        if self.between_hosts:
            return {"ZC_HOSTS": self.name, "UCX_TLS": "tcp,self", "UCX_NET_DEVICES": INTERFACE,
                    "FI_TCP_IFACE": INTERFACE}
        if self.hosts == "loopback":
            return {"UCX_TLS": "tcp,self", "UCX_NET_DEVICES": "lo", "FI_TCP_IFACE": "lo",
                    "MPIR_CVAR_NOLOCAL": "1"}
        return {}

    def _call(self, *words):
        return subprocess.run([str(HOSTS), "--name", self.name, *words], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, check=False)


def add_network_options(parser, default="2"):
    """--hosts, --link and --cores, for network_of()."""
    parser.add_argument("--hosts", type=hosts_name, default=default, metavar="HOSTS",
                        help="2 or more: namespaces, TCP, ranks go to them in turn; 1: as MPICH"
                             f" likes; loopback: one host, TCP (default {default})")
    add_link_options(parser)


def add_link_options(parser):
    parser.add_argument("--link", metavar="LINK",
                        help="bare, or the rate of the hosts' links, such as 10gbit;"
                             " LINK,LINK,...: one for each host (default: as they are, new ones bare)")
    parser.add_argument("--cores", choices=["spare", "full"],
                        help="full: each host has one processor for all its ranks"
                             " (default: as they are, new ones spare)")


def hosts_name(text):
    """An argument that names hosts, for argparse."""
    if text not in ("1", "loopback") and not (text.isdecimal() and 2 <= int(text) <= MOST_HOSTS):
        raise argparse.ArgumentTypeError(f"{text}: not 1, loopback, or 2 to {MOST_HOSTS}")
    return text


def network_of(options):
    """The Network that was asked for, in a namespace where an ordinary user may make hosts."""
    network = Network(options.hosts, link=options.link, cores=options.cores)
    if network.between_hosts:
        enter_private_namespace()
    return network


def enter_private_namespace():
    """Start this program again where an ordinary user may make hosts, if that is possible."""
    if os.getuid() == 0 or os.environ.get("ZC_HOSTS_PRIVATE"):
        return
    probe = subprocess.run([str(HOSTS), "private", "true"], stdin=subprocess.DEVNULL,
                           capture_output=True, check=False)
    if probe.returncode == 0:
        os.environ["ZC_HOSTS_PRIVATE"] = "1"
        sys.stdout.flush()
        os.execv(str(HOSTS), [str(HOSTS), "private", sys.executable, *sys.argv])


def find_tool(prefix, tool, family="mpich"):
    """PREFIX/bin/TOOL; where several MPIs share a prefix, Debian calls MPICH's TOOL.mpich."""
    for name in (f"{tool}.{family}", tool):
        path = pathlib.Path(prefix) / "bin" / name
        if os.access(path, os.X_OK):
            return str(path)
    raise Error(f"no {tool} in {prefix}/bin")


def prefix_or_die(prefix):
    prefix = prefix or os.environ.get("ZC_MPICH")
    if not prefix:
        raise Error("no MPICH given: use --mpich PREFIX or set ZC_MPICH")
    if not pathlib.Path(prefix).is_dir():
        raise Error(f"no such directory: {prefix}")
    return os.path.abspath(prefix)


class Result:
    """What became of one run."""

    def __init__(self):
        self.status = None       # exit status, or EXIT_*
        self.timed_out = False
        self.hung_in_finalize = False
        self.unfinished = []     # one line per rank still there when time was up
        self.stacks = ""
        self.seconds = 0.0
        self.out = ""
        self.err = ""

    @property
    def ok(self):
        return self.status == 0

    def reason(self):
        """Why it is not ok, in one line."""
        if self.timed_out:
            ranks = ", ".join(self.unfinished) or "no rank left, mpiexec itself hangs"
            return f"no end after {self.seconds:.0f} s; not finished: {ranks}"
        if self.hung_in_finalize:
            return f"hung in MPI_Finalize; not finished: {', '.join(self.unfinished)}"
        return "" if self.ok else f"exit status {self.status}"


class Mpi:
    """One MPICH on one network."""

    family = "mpich"

    def __init__(self, prefix, network, netmod=None, environment=None):
        self.prefix = prefix
        self.mpiexec = find_tool(prefix, "mpiexec", self.family)
        self.network = network
        self.netmod = netmod
        self.environment = dict(environment or {})

    def command(self, ranks, options=()):
        return self.network.command(self.mpiexec, ranks, options)

    def run(self, program, ranks=2, timeout=60, environment=None, finalize_grace=None, echo=None,
            directory=None, stacks=False, interrupt=None, launcher=(),
            settled=lambda line: line.strip() == FINALIZING):
        """Run PROGRAM (a list of words) and wait for its end, at most TIMEOUT seconds.

        finalize_grace: seconds allowed after a line for which SETTLED is true; None is no limit
        echo:           called with (stream, line) as output comes; stream is "out" or "err"
        stacks:         on a hang, collect the stacks of the ranks (gdb)
        launcher:       further options of mpiexec
        interrupt:      called with the run's mark 10 times a second; for tests that kill a rank
        """
        mark = uuid.uuid4().hex
        env = dict(os.environ)
        env.update(self.network.environment())
        if self.netmod:
            env["MPIR_CVAR_CH4_NETMOD"] = self.netmod
        env.update(self.environment)
        env.update(environment or {})
        env[MARK] = mark

        result = Result()
        begin = time.monotonic()
        process = subprocess.Popen(
            self.command(ranks, launcher) + [str(word) for word in program],
            env=env, cwd=directory, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, start_new_session=True)
        finalizing = threading.Event()
        lines = {"out": [], "err": []}

        def read(stream, pipe):
            for raw in pipe:
                line = raw.decode(errors="replace")
                if settled(line):
                    finalizing.set()
                if line.strip() == FINALIZING:
                    continue
                lines[stream].append(line)
                if echo:
                    echo(stream, line)

        readers = [threading.Thread(target=read, args=pair, daemon=True)
                   for pair in (("out", process.stdout), ("err", process.stderr))]
        for reader in readers:
            reader.start()
        try:
            result.status = _wait(process, begin + timeout, finalizing, finalize_grace, result,
                                  (lambda: interrupt(mark)) if interrupt else None)
            result.seconds = time.monotonic() - begin
            if result.status is None:
                ranks_left = _ranks(mark)
                result.unfinished = [_describe(pid, rank) for pid, rank in ranks_left]
                if stacks:
                    result.stacks = _stacks(ranks_left)
                result.status = (EXIT_HUNG_IN_FINALIZE if result.hung_in_finalize
                                 else EXIT_TIMEOUT)
        finally:
            _end(process, mark)
        for reader in readers:
            reader.join(timeout=5)
        result.out, result.err = "".join(lines["out"]), "".join(lines["err"])
        return result


class OpenMpi(Mpi):
    """One Open MPI on one network."""

    family = "openmpi"

    def command(self, ranks, options=()):
        return self.network.open_mpi_command(self.mpiexec, ranks)


def _wait(process, deadline, finalizing, grace, result, tick):
    """Exit status of PROCESS; None, and why in RESULT, when it does not end in time."""
    # Popen.wait(timeout) looks every 50 ms only; this wakes at the end itself.
    pidfd = os.pidfd_open(process.pid)
    try:
        return _wait_on(pidfd, process, deadline, finalizing, grace, result, tick)
    finally:
        os.close(pidfd)


def _wait_on(pidfd, process, deadline, finalizing, grace, result, tick):
    ended = select.poll()
    ended.register(pidfd, select.POLLIN)
    grace_end = None
    while True:
        patience = 0.1 if tick or grace is not None else \
            max(0.0, min(1.0, deadline - time.monotonic()))
        if ended.poll(1000 * patience):
            status = process.wait()
            return status if status >= 0 else 128 - status
        now = time.monotonic()
        if tick:
            tick()
        if grace is not None and grace_end is None and finalizing.is_set():
            grace_end = now + grace
        if grace_end is not None and now > grace_end:
            result.hung_in_finalize = True
            return None
        if now > deadline:
            result.timed_out = True
            return None


class Running:
    """A run that others look at while it goes on; ended with its block, and all that it started.

    COMMAND's processes are known by MARK, which is in ENVIRONMENT.
    """

    def __init__(self, command, mark, environment, directory):
        self.mark = mark
        self.out, self.err = [], []
        self.begin = time.monotonic()
        self.process = subprocess.Popen(command, env=environment, cwd=directory,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True, start_new_session=True)
        self.readers = [threading.Thread(target=self._read, args=pair, daemon=True)
                        for pair in ((self.process.stdout, self.out),
                                     (self.process.stderr, self.err))]
        for reader in self.readers:
            reader.start()

    @staticmethod
    def _read(pipe, lines):
        for line in pipe:
            lines.append(Line(line))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        _end(self.process, self.mark)

    def said(self):
        return "".join(self.out) + "".join(self.err)

    def wait(self, timeout):
        """Exit status, or None when time is up."""
        try:
            status = self.process.wait(timeout=timeout)
        except subprocess.TimeoutExpired:
            return None
        for reader in self.readers:
            reader.join(timeout=5)
        return status


class Line(str):
    """What was said, and when it was read."""

    def __new__(cls, text):
        line = super().__new__(cls, text)
        line.at = time.monotonic()
        return line


def processes(mark):
    """Yield (pid, environment) of every process that carries MARK."""
    wanted = f"{MARK}={mark}".encode()
    for entry in os.scandir("/proc"):
        if not entry.name.isdigit():
            continue
        try:
            with open(f"/proc/{entry.name}/environ", "rb") as file:
                words = file.read().split(b"\0")
        except OSError:
            continue
        if wanted in words:
            yield int(entry.name), dict(word.split(b"=", 1) for word in words if b"=" in word)


def _ranks(mark):
    """[(pid, rank)] of the ranks of MARK; a rank's own children are left out."""
    found = {}
    for pid, environment in processes(mark):
        rank = environment.get(b"PMI_RANK", environment.get(b"OMPI_COMM_WORLD_RANK"))
        if rank is not None:
            found.setdefault(int(rank), []).append(pid)
    return [(min(pids), rank) for rank, pids in sorted(found.items())]


rank_processes = _ranks


def _describe(pid, rank):
    def read(name):
        try:
            return pathlib.Path(f"/proc/{pid}/{name}").read_text().strip()
        except OSError:
            return ""
    state = read("stat").rpartition(")")[2].split()[:1]
    cpu = "running" if state == ["R"] else "asleep" if state == ["S"] else "".join(state)
    return f"rank {rank} ({read('comm')}, pid {pid}, {cpu or 'gone'})"


def _stacks(ranks):
    gdb = shutil.which("gdb")
    if not gdb:
        return "(no stacks: gdb is not installed)\n"
    text = ""
    for pid, rank in ranks:
        try:
            done = subprocess.run([gdb, "-p", str(pid), "-batch", "-ex", "thread apply all bt 25"],
                                  stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                  timeout=60, check=False)
        except subprocess.TimeoutExpired:
            continue
        kept = [line for line in done.stdout.splitlines() if line.startswith(("#", "Thread"))]
        text += f"rank {rank}:\n  " + "\n  ".join(kept) + "\n"
    return text


def _end(process, mark):
    """End what is left of a run: mpiexec politely, then every process that carries the mark."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(timeout=2)
        except subprocess.TimeoutExpired:
            pass
    # Proxies need a moment to go by themselves after a normal end.
    give_up = time.monotonic() + (0.5 if process.poll() is not None else 0.0)
    while any(True for _ in processes(mark)) and time.monotonic() < give_up:
        time.sleep(0.02)
    for _ in range(3):      # what is being started meanwhile shows up later
        for pid, _ in list(processes(mark)):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
    process.wait()


def build(prefix, sources, directory, flags=(), headers=(), family="mpich"):
    """Compile SOURCES with PREFIX's mpicc, one program each; those up to date are kept."""
    mpicc = find_tool(prefix, "mpicc", family)
    directory = pathlib.Path(directory)
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Error(f"cannot build there: {error}") from None
    stamp = directory / ".mpicc"
    if not stamp.exists() or stamp.read_text() != mpicc:
        for old in directory.iterdir():
            if old.is_file():
                old.unlink()
        stamp.write_text(mpicc)
    programs = {}
    for source in map(pathlib.Path, sources):
        program = directory / source.stem
        inputs = [source, *map(pathlib.Path, headers)]
        if not program.exists() or \
                program.stat().st_mtime < max(path.stat().st_mtime for path in inputs):
            command = [mpicc, "-std=gnu11", "-O2", "-g", *WARNINGS, *flags,
                       str(source), "-o", str(program), "-lpthread", "-lm"]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise Error(f"cannot build {source.name}:\n{done.stdout}{done.stderr}")
            if done.stderr:
                sys.stderr.write(done.stderr)
        programs[source.stem] = str(program)
    return programs


def exit_on_sigterm():
    """Let clean-up run when we are told to go."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
