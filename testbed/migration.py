# SPDX-License-Identifier: BSD-3-Clause
"""Jobs whose ranks can move between two hosts of a network, for tests and benchmarks.

    with Job(stage, "heat2d", "--iterations", 1000, ranks=2) as job:
        job.until_running()
        job.ask("move", "--rank", 1, "--to", H1)
"""
import json
import os
import pathlib
import subprocess
import tempfile
import time
import uuid

from testbed import mpi
from testbed import process as processes
from testbed.network import ADDRESSES, HERE, HOSTS, INTERFACE
from testbed.outcome import Fail, wait_for

TOP = pathlib.Path(__file__).resolve().parents[1]
H1, H2 = ADDRESSES
STOP = object()     # among a program's arguments: the file that ends it
SAID = 3000         # characters of a job's output that a failure shows


def build(prefix, sources, library, directory, family="mpich", flags=()):
    """{name: program} of SOURCES, which can migrate by the libzcm of LIBRARY.

    MPICH's own folders come first, and may hold an older libzcm that was installed there: ours
    is named outright, here and (LD_LIBRARY_PATH) where programs run.
    """
    header, zcm = TOP / "migrate/include/zcm/zcm.h", library / f"lib/libzcm-{family}.so"
    return mpi.build(prefix, [TOP / source for source in sources], directory,
                     flags=["-include", str(header), f"-I{TOP}/migrate/include",
                            "-Wl,--no-as-needed", str(zcm), *flags],
                     headers=[header, zcm, *(TOP / "tests/migrate").glob("*.h")], family=family)


class Stage:
    """Where jobs run (NETWORK) and with what (PREFIX of an MPI of FAMILY, LIBRARY: our build).

    SOURCES are built in BUILD_DIR, with FLAGS; SCRATCH is for the jobs' folders. All jobs get
    ENVIRONMENT; `patience` is the factor of time limits, for tests.
    """

    def __init__(self, prefix, network, library, build_dir, sources, *, scratch, family="mpich",
                 netmod="zc", flags=(), environment=None, patience=1.0):
        self.prefix = prefix
        self.family = family
        self.netmod = netmod
        self.network = network
        self.library = pathlib.Path(library).resolve()
        self.scratch = str(scratch)
        self.environment = dict(environment or {})
        self.patience = patience
        self.rsh = HERE / "rsh"     # how MPICH's mpiexec reaches a host
        self.programs = build(prefix, sources, self.library, build_dir, family, flags)
        # The network namespaces of the hosts, to tell where a process is.
        self.spaces = {os.stat(f"/run/netns/{network.name}-{host}").st_ino: host
                       for host in ("h1", "h2")}

    def new_directory(self):
        return tempfile.mkdtemp(dir=self.scratch)

    def name(self, host):
        """What the launcher calls HOST: Open MPI 4.1 takes a second name for another host."""
        return {H1: "h1", H2: "h2"}.get(host, host) if self.family == "openmpi" else host

    def mpiexec(self, hosts, ranks, options, launcher, environment):
        """The words before the program's own."""
        tool = mpi.find_tool(self.prefix, "mpiexec", self.family)
        # docs/migration.md says why.
        event = ["env", "EVENT_NOEPOLL=1"] if self.family == "openmpi" else []
        start = [str(HOSTS), "--name", self.network.name, "exec", "h1", *event,
                 *([*launcher, "--mpiexec", tool, "--"] if launcher else [tool]), *options]
        if self.family == "mpich":
            return [*start, "-launcher", "ssh", "-launcher-exec", str(self.rsh),
                    "-iface", INTERFACE, "-hosts", ",".join(hosts), "-n", str(ranks)]
        settings = {"plm_rsh_agent": HERE / "rsh", "pml": "ob1", "btl": "tcp,self",
                    "osc": "pt2pt", "orte_allowed_exit_without_sync": 1,
                    "btl_tcp_if_include": INTERFACE,
                    "oob_tcp_if_include": INTERFACE}
        exported = [word for name in environment
                    if name.startswith("ZC_") or name in (processes.MARK, *self.environment)
                    for word in ("-x", name)]
        return [*start, "--allow-run-as-root", "--oversubscribe", "--bind-to", "none",
                *(str(word) for name, value in settings.items() for word in ("--mca", name, value)),
                *exported, "--host", ",".join(f"{self.name(host)}:64" for host in hosts),
                "--map-by", "node", "-n", str(ranks)]

    def zcctl(self, *words, sockets, timeout=120):
        """(exit status, answer as an object or None, what was said on stderr)"""
        done = subprocess.run(
            [str(self.library / "bin/zcctl"), "--sockets", sockets, "--json", *map(str, words)],
            capture_output=True, text=True, timeout=timeout, check=False)
        try:
            answer = json.loads(done.stdout)
        except ValueError:
            answer = None
        return done.returncode, answer, done.stderr.strip()


class Job(processes.Running):
    """One run of a program that can migrate."""

    def __init__(self, stage, program, *args, ranks=4, hosts=(H1, H2), environment=None,
                 mpiexec=(), migrate=True, launcher=None, stdin=subprocess.DEVNULL,
                 stderr=subprocess.PIPE):
        self.stage = stage
        mark = uuid.uuid4().hex
        self.directory = tempfile.mkdtemp(prefix="job-", dir=stage.scratch)
        self.sockets = self.directory + "/sockets"
        self.stop_file = self.directory + "/stop"
        args = [self.stop_file if word is STOP else word for word in args]
        env = {**os.environ, **stage.network.environment(),
               "LD_LIBRARY_PATH": str(stage.library / "lib"),
               "MPIR_CVAR_CH4_NETMOD": stage.netmod, processes.MARK: mark,
               "MPIR_CVAR_CH4_ZC_LANDING_THREAD": "0"}
        if migrate:
            env.update({"ZC_MIGRATE": "1", "ZC_MIGRATE_SOCKETS": self.sockets,
                        "ZC_MIGRATE_JOB": "test", "ZC_MIGRATE_DIR": self.directory + "/saved"})
        env.update(stage.environment)
        env.update(environment or {})
        super().__init__([*stage.mpiexec(hosts, ranks, mpiexec, launcher, env),
                          stage.programs.get(program, program), *map(str, args)],
                         mark, env, self.directory, stdin, stderr)

    def stop(self):
        pathlib.Path(self.stop_file).touch()

    def ask(self, *words, timeout=120):
        try:
            return self.stage.zcctl(*map(self.stage.name, words), sockets=self.sockets,
                                    timeout=timeout)
        except subprocess.TimeoutExpired:
            raise Fail(f"zcctl {' '.join(map(str, words))}: no answer within {timeout} s; there are "
                       + "; ".join(self.keep_stacks()), self.said()[-SAID:]) from None

    def keep_stacks(self):
        """What each process of the job does; stacks (gdb) are in the job's folder, which --keep keeps."""
        there = [(pid, f"on {host}") for host in ("h1", "h2") for pid, _ in self.processes_on(host)]
        pathlib.Path(self.directory, "stacks").write_text(processes.stacks(there), encoding="utf-8")
        return [processes.describe(pid, name) for pid, name in there]

    def status(self):
        return self.ask("status")[1]

    def until_running(self, timeout=60, safe_points=3):
        """The status once some safe points have been passed."""
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise Fail("it ended early", self.said()[-SAID:])
            code, status, _ = self.ask("status")
            if code == 0 and status["safe_points"] >= safe_points:
                return status
            time.sleep(0.05)
        raise Fail(f"it does not run after {timeout} s", self.said()[-SAID:])

    def processes_on(self, host):
        """[(pid, command line)] of what belongs to this run there; mpiexec lives on h1."""
        found = []
        for pid, _ in processes.processes(self.mark):
            try:
                if self.stage.spaces.get(os.stat(f"/proc/{pid}/ns/net").st_ino) != host:
                    continue
                words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
                line = b" ".join(words).decode(errors="replace").strip()
            except OSError:
                continue
            if line and "mpiexec" not in words[0].decode(errors="replace"):
                found.append((pid, line))
        return found

    def until_free(self, host, timeout=20):
        """Seconds until no process of this run is on HOST."""
        try:
            return wait_for(f"{host} is free", lambda: not self.processes_on(host), timeout, 0.01)
        except Fail as failure:
            raise Fail(f"{failure}: {self.processes_on(host)}") from None
