# SPDX-License-Identifier: BSD-3-Clause
"""Hosts with agents, limited shares of processors, and MPI jobs that can move between them.

    with Cluster(2, options, directory, shares=[0.5, 0.5]) as cluster:
        agents = cluster.start_agents()
        with Job(cluster, "heat2d", "--iterations", 1000, hosts=[1, 1, 2, 2]) as job:
            ...
"""
import copy
import json
import os
import pathlib
import shlex
import signal
import struct
import subprocess
import sys
import tempfile
import time
import uuid

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
TOP = HERE.parents[1]
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(TOP / "tests/hosts"))
sys.path.insert(0, str(TOP / "tests/migrate"))
import launch  # noqa: E402
import profiles  # noqa: E402
from network import Agent, Failed, Network, make_key, wait_for  # noqa: E402

STOP = object()  # among a program's arguments: the file that ends it
NEVER = 100000000  # iterations
PERIOD_US = 2500  # of a cgroup's share: short against an iteration, as ranks wait for each other
# Quick to decide, so that a test takes seconds; nothing that would make it decide otherwise.
QUICK = {"membership": {"period": 0.5, "ping_timeout": 0.4, "suspicion": 3, "probe_period": 1},
         "decision": {"settle": 2, "max_ranks": 16}, "cost": {"spawn": 1}}


class Shares:
    """Cgroups NAME/h1, NAME/h2 … with so many processors each, by version 1 or 2.

    They are also seen below PLACE: hosts have another /sys.
    """

    def __init__(self, name, processors, place):
        root = pathlib.Path("/sys/fs/cgroup")
        self.old = (root / "cpu").is_dir()
        if not self.old and "cpu" not in self._read(root / "cgroup.controllers").split():
            raise PermissionError("no cgroup controller for processors here")
        self.top = root / "cpu" / name if self.old else root / name
        self.place = place
        self.groups = [self.top / f"h{i + 1}" for i in range(len(processors))]
        try:
            if not self.old:
                (root / "cgroup.subtree_control").write_text("+cpu")
            self.top.mkdir()
            if not self.old:
                (self.top / "cgroup.subtree_control").write_text("+cpu")
            # What we may use is limited below; of that, what else runs here shall take little.
            if self.old:
                (self.top / "cpu.shares").write_text("20480")
            else:
                (self.top / "cpu.weight").write_text("2000")
            for group, share in zip(self.groups, processors):
                group.mkdir()
                self.limit(group, share)
            place.mkdir()
            subprocess.run(["mount", "--bind", self.top, place], check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError) as error:
            self.close()
            raise PermissionError(f"cannot limit shares of processors: {error}") from None

    def seen(self, host):
        return self.place / f"h{host}"

    @staticmethod
    def _read(path):
        try:
            return path.read_text()
        except OSError:
            return ""

    def limit(self, group, processors):
        quota = int(processors * PERIOD_US)
        if self.old:
            (group / "cpu.cfs_period_us").write_text(str(PERIOD_US))
            (group / "cpu.cfs_quota_us").write_text(str(quota))
        else:
            (group / "cpu.max").write_text(f"{quota} {PERIOD_US}")

    def close(self):
        """What is still in them is ended."""
        subprocess.run(["umount", "-l", self.place], check=False, capture_output=True)
        for group in [*self.groups, self.top]:
            for _ in range(100):
                try:
                    group.rmdir()
                    break
                except FileNotFoundError:
                    break
                except OSError:
                    for pid in self._read(group / "cgroup.procs").split():
                        try:
                            os.kill(int(pid), signal.SIGKILL)
                        except ProcessLookupError:
                            pass
                    time.sleep(0.02)


def barrier(path):
    """The first directory on the way to PATH that only its owner may pass, or None."""
    for one in [*reversed(pathlib.Path(path).parents), pathlib.Path(path)]:
        if one.is_dir() and not one.stat().st_mode & 0o001:
            return one
    return None


class Cluster:
    """Hosts, their shares, and what is needed to run jobs and agents on them."""

    user = None  # the uid that agents and ranks run as; None: our own
    port = 7421

    def __init__(self, count, tools, prefix, directory, shares, build_dir=TOP / "build/mpi/agent"):
        self.tools, self.prefix = pathlib.Path(tools).resolve(), prefix
        self.directory = pathlib.Path(directory)
        self.network = Network(count)
        self.wanted = shares
        self.shares = self.key = None
        self.agents, self.load = [], {}
        self.library = self.tools.parent / "lib"
        self.programs = launch.build(
            prefix, [TOP / "examples/heat2d.c", TOP / "tests/migrate/state.c",
                     TOP / "bench/agent/phases.c"], build_dir,
            flags=["-include", f"{TOP}/migrate/include/zcm/zcm.h", f"-I{TOP}/migrate/include",
                   "-Wl,--no-as-needed", str(self.library / "libzcm-mpich.so")],
            headers=[TOP / "migrate/include/zcm/zcm.h", self.library / "libzcm-mpich.so"])

    def __enter__(self):
        self.network.__enter__()
        try:
            self.shares = Shares(self.network.name, self.wanted, self.directory / "cgroups")
        except PermissionError:
            self.network.__exit__()
            raise
        self.furnish()
        return self

    def furnish(self):
        """What the hosts see of our directory."""
        (self.directory / "here").mkdir()
        (self.directory / "way").mkdir()
        lines = ["127.0.0.1 localhost"]
        for host in range(1, self.network.count + 1):
            (self.directory / f"h{host}/run").mkdir(parents=True)
            for place in (f"h{host}", f"h{host}/run"):
                (self.directory / place).chmod(0o700)
                self.give(self.directory / place)
            lines.append(f"{self.network.address(host)} h{host}")
        (self.directory / "hosts").write_text("\n".join(lines) + "\n", encoding="utf-8")
        self.key = make_key(self.tools, self.directory / "key")
        self.give(self.key)

    def give(self, path):
        """To the user."""
        if self.user is not None:
            os.chown(path, self.user, self.user)

    def of_user(self, uid, port):
        """The same hosts for another user, with directories, agents and a key of its own."""
        for path in (self.tools, self.library, *self.programs.values()):
            if barrier(path):
                raise PermissionError(f"{barrier(path)} keeps another user from {path}")
        other = copy.copy(self)
        other.user, other.port, other.agents, other.load = uid, port, [], {}
        self.directory.chmod(0o711)
        other.directory = self.directory / f"user-{uid}"
        other.directory.mkdir()
        other.directory.chmod(0o711)
        other.furnish()
        return other

    def __exit__(self, *_):
        for host in list(self.load):
            self.unload(host)
        for agent in self.agents:
            if agent.process:
                agent.kill()
        self.shares.close()
        self.network.__exit__()

    def environment(self):
        """Of what on-host starts."""
        user = {}
        if self.user is not None:
            user = {"ZCA_USER": str(self.user), "ZCA_PREFIX": str(self.prefix),
                    "ZCA_BARRIER": str(barrier(self.prefix) or "")}
        return {**os.environ, **user, "ZCA_NETWORK": self.network.name, "ZCA_DIRECTORY": str(self.directory),
                "ZCA_CGROUP": str(self.shares.place), "HOME": str(self.directory / "here"),
                "XDG_RUNTIME_DIR": str(self.directory / "here/run"),
                "LD_LIBRARY_PATH": str(self.library), "UCX_TLS": "tcp,self",
                "UCX_NET_DEVICES": "zc0", "MPIR_CVAR_CH4_NETMOD": "zc",
                "MPIR_CVAR_CH4_ZC_LANDING_THREAD": "0"}

    def command(self, host, words):
        return [str(HERE / "on-host"), f"h{host}", shlex.join(map(str, words))]

    def agent(self, host, settings=None, **words):
        """zcmd on HOST; it watches the cgroup of its host, and is not in it."""
        tables = {name: dict(table) for name, table in QUICK.items()}
        for name, table in {"node": {"cgroup": str(self.shares.seen(host))},
                            **(settings or {})}.items():
            tables.setdefault(name, {}).update(table)
        one = Agent(self.network, host, self.tools, self.directory, self.key,
                    **{"port": self.port, "user": self.user, **words}, **tables)
        self.agents.append(one)
        return one.start()

    def start_agents(self, hosts=None, settings=None, seeds=(1,)):
        """Those of HOSTS (default: all), once they know each other and would decide."""
        agents = [self.agent(host, settings=settings, seeds=seeds)
                  for host in hosts or range(1, self.network.count + 1)]
        names = {agent.name for agent in agents}
        wait_for("all agents see each other", lambda: all(
            {h for h, s in a.states().items() if s == "alive"} >= names for a in agents), 60)
        # Agents without a memory leave alone for a minute what they find in their first moments.
        time.sleep(4)
        return agents

    def busy(self, host, processes):
        """Others want the processors of HOST."""
        self.load.setdefault(host, []).extend(
            subprocess.Popen(self.command(host, ["sh", "-c", "while :; do :; done"]),
                             env=self.environment(), start_new_session=True)
            for _ in range(processes))

    def unload(self, host):
        for process in self.load.pop(host, []):
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def told(self, host):
        """The profiles on HOST."""
        for path in sorted((self.directory / f"h{host}/run/zcm/ranks").glob("*")):
            try:
                if path.suffix != ".new":
                    yield profiles.Profile(path)
            except (FileNotFoundError, struct.error):
                continue  # gone meanwhile, or being made

    def zcctl(self, host, *words, timeout=120):
        """(exit status, standard output, standard error) of zcctl on HOST."""
        environment = {**self.environment(), "ZCA_CGROUP": ""}
        done = subprocess.run(self.command(host, [self.tools / "zcctl", *words]), env=environment,
                              capture_output=True, text=True, timeout=timeout, check=False)
        return done.returncode, done.stdout, done.stderr.strip()


class Job(launch.Running):
    """A run of mpiexec on h1; jobs of one user at a time need names of their own.

    Another user's mpiexec is ours, as it has to enter hosts, and ranks beside it would be so too:
    START names a host without ranks for it.
    """

    def __init__(self, cluster, program, *arguments, hosts, mode="1", environment=None, name="test", start=1):
        self.cluster, self.hosts, self.name = cluster, hosts, name
        mark = uuid.uuid4().hex
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="job-", dir=cluster.directory))
        cluster.give(self.directory)
        self.stop_file = self.directory / "stop"
        env = {**cluster.environment(), launch.MARK: mark}
        if mode:
            env["ZC_MIGRATE"] = mode
            env["ZC_MIGRATE_JOB"] = name
        env.update(environment or {})
        # One block of ranks after the other, as the list says.
        blocks = []
        for host in hosts:
            if blocks and blocks[-1][0] == host:
                blocks[-1][1] += 1
            else:
                blocks.append([host, 1])
        words = [launch.find_tool(cluster.prefix, "mpiexec"), "-launcher", "ssh", "-launcher-exec",
                 HERE / "on-host", "-iface", "zc0", "-hosts",
                 ",".join(f"h{host}:{count}" for host, count in blocks), "-n", len(hosts),
                 cluster.programs[program],
                 *(self.stop_file if word is STOP else word for word in arguments)]
        super().__init__(cluster.command(start, words), mark, env, self.directory)

    def socket(self, host):
        """Where its control socket is while rank 0 is on HOST."""
        return self.cluster.directory / f"h{host}/run/zcm/{self.name}.sock"

    def stop(self):
        self.stop_file.touch()

    def wait(self, timeout):
        """Exit status; Failed after TIMEOUT."""
        status = super().wait(timeout)
        if status is None:
            raise Failed(f"the job does not end: {self.said()[-1500:]}")
        return status

    def status(self):
        """What the job says of itself, wherever its rank 0 is; None while it says nothing."""
        for host in range(1, self.cluster.network.count + 1):
            if self.socket(host).exists():
                code, out, _ = self.cluster.zcctl(host, "--json", "--job", self.name, "status")
                if code == 0:
                    return json.loads(out)
        return None

    def where(self):
        """Host of each rank, as ranks tell their agents."""
        found = self.profiles()
        return [f"h{found[rank][0]}" if rank in found else None for rank in range(len(self.hosts))]

    def profiles(self):
        """{rank: (host, profile)}"""
        found = {}
        for host in range(1, self.cluster.network.count + 1):
            for one in self.cluster.told(host):
                if one.job_name == self.name and (one.rank not in found or found[one.rank][1].epoch < one.epoch):
                    found[one.rank] = (host, one)
        return found

    def iterations(self):
        """Of the rank that is farthest behind; 0 before all have begun."""
        found = self.profiles()
        return min((one.iterations for _, one in found.values()), default=0) \
            if len(found) == len(self.hosts) else 0

    def until_running(self, timeout=120):
        def running():
            if self.process.poll() is not None:
                raise Failed(f"ended early: {self.said()[-1500:]}")
            return self.iterations() > 3
        try:
            return wait_for("the job runs", running, timeout)
        except Failed as problem:
            raise Failed(f"{problem}: {self.name}, ranks on {self.where()}, {self.iterations()} iterations: "
                         f"{self.said()[-1000:]}") from None
