# SPDX-License-Identifier: BSD-3-Clause
"""Hosts with agents, limited shares of processors, and MPI jobs that can move between them.

    with Cluster(2, tools, directory, prefix=prefix, shares=[0.5, 0.5], programs=programs) as it:
        agents = it.start_agents()
        with Job(it, "heat2d", "--iterations", 1000, hosts=[1, 1, 2, 2]) as job:
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
import tempfile
import time
import uuid

from testbed import mpi, process
from testbed.agents import FIRST_MOMENTS, QUICK, AgentHosts, make_key
from testbed.migration import STOP
from testbed.network import INTERFACE
from testbed.outcome import Fail, Skip
from testbed.profiles import Profile
from testbed.shares import Shares

HERE = pathlib.Path(__file__).resolve().parent
ON_HOST = HERE / "on-host"
NEVER = 100000000  # iterations


def barrier(path):
    """The first directory on the way to PATH that only its owner may pass, or None."""
    for one in [*reversed(pathlib.Path(path).parents), pathlib.Path(path)]:
        if one.is_dir() and not one.stat().st_mode & 0o001:
            return one
    return None


class Cluster(AgentHosts):
    """Hosts, their shares, and what is needed to run jobs and agents on them."""

    port = 7421
    limit = 30
    # Quick to decide, too; nothing that would make an agent decide otherwise.
    quick = {**QUICK, "decision": {"settle": 2, "max_ranks": 16}, "cost": {"spawn": 1}}

    def __init__(self, count, tools, directory, *, prefix, shares, programs, **more):
        """SHARES: processors of each host. PROGRAMS: {name: path} of what jobs run, by migration.build()."""
        super().__init__(count, tools, directory, **more)
        self.prefix, self.programs = prefix, programs
        self.library = self.tools.parent / "lib"
        self.wanted, self.shares = shares, None
        self.load = {}

    def prepare(self):
        self.shares = Shares(self.network.name, self.wanted, self.directory / "cgroups")
        self.stack.callback(self.shares.close)
        self.furnish()
        self.stack.callback(lambda: [self.unload(host) for host in list(self.load)])

    def furnish(self):
        """What the hosts see of our directory."""
        (self.directory / "here").mkdir()
        (self.directory / "way").mkdir()
        for host in range(1, self.count + 1):
            (self.directory / f"h{host}/run").mkdir(parents=True)
            for place in (f"h{host}", f"h{host}/run"):
                (self.directory / place).chmod(0o700)
                self.give(self.directory / place)
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
                raise Skip(f"{barrier(path)} keeps another user from {path}")
        other = copy.copy(self)
        other.user, other.port, other.agents, other.load = uid, port, [], {}
        self.stack.callback(other.kill_agents)
        self.directory.chmod(0o711)
        other.directory = self.directory / f"user-{uid}"
        other.directory.mkdir()
        other.directory.chmod(0o711)
        other.furnish()
        return other

    def environment(self):
        """Of what on-host starts."""
        user = {}
        if self.user is not None:
            user = {"ZCA_USER": str(self.user), "ZCA_PREFIX": str(self.prefix),
                    "ZCA_BARRIER": str(barrier(self.prefix) or "")}
        return {**os.environ, **self.network.environment(), **user,
                "ZCA_DIRECTORY": str(self.directory), "ZCA_CGROUP": str(self.shares.place),
                "HOME": str(self.directory / "here"),
                "XDG_RUNTIME_DIR": str(self.directory / "here/run"),
                "LD_LIBRARY_PATH": str(self.library), "MPIR_CVAR_CH4_NETMOD": "zc",
                "MPIR_CVAR_CH4_ZC_LANDING_THREAD": "0", **self.added}

    def command(self, host, words):
        return [str(ON_HOST), f"h{host}", shlex.join(map(str, words))]

    def agent(self, host, *, settings=None, **words):
        """zcmd on HOST; it watches the cgroup of its host, and is not in it. All hosts are this
        machine: what an agent measures of its speed in one moment or another would decide by chance."""
        node = {"speed": 1, "cgroup": str(self.shares.seen(host))}
        return super().agent(host, settings={"node": node, **(settings or {})}, **words)

    def until_together(self, agents):
        """Seconds until AGENTS know each other; afterwards they would decide."""
        took = super().until_together(agents)
        time.sleep(FIRST_MOMENTS)
        return took

    def busy(self, host, processes):
        """Others want the processors of HOST."""
        self.load.setdefault(host, []).extend(
            subprocess.Popen(self.command(host, ["sh", "-c", "while :; do :; done"]),
                             env=self.environment(), start_new_session=True)
            for _ in range(processes))

    def unload(self, host):
        for one in self.load.pop(host, []):
            os.killpg(one.pid, signal.SIGKILL)
            one.wait()

    def profiles_on(self, host):
        for path in sorted((self.directory / f"h{host}/run").glob("zcm*/ranks/*")):
            try:
                if path.suffix != ".new":
                    yield Profile(path)
            except (FileNotFoundError, struct.error):
                continue  # gone meanwhile, or being made

    def zcctl(self, host, *words):
        """(exit status, standard output, standard error) of zcctl on HOST."""
        environment = {**self.environment(), "ZCA_CGROUP": ""}
        done = subprocess.run(self.command(host, [self.tools / "zcctl", *words]), env=environment,
                              capture_output=True, text=True, timeout=40 * self.patience,
                              check=False)
        return done.returncode, done.stdout, done.stderr.strip()


class Job(process.Running):
    """A run of mpiexec on h1; jobs of one user at a time need names of their own.

    Another user's mpiexec is ours, as it has to enter hosts, and ranks beside it would be so too:
    START names a host without ranks for it. LAUNCHER: the words of zcm-run, which runs MPIEXEC.
    """

    def __init__(self, cluster, program, *arguments, hosts, mode="1", environment=None, name="test",
                 start=1, launcher=(), mpiexec=None):
        self.cluster, self.hosts, self.name = cluster, hosts, name
        mark = uuid.uuid4().hex
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="job-", dir=cluster.directory))
        cluster.give(self.directory)
        self.stop_file = self.directory / "stop"
        env = {**cluster.environment(), process.MARK: mark}
        if mode:
            env["ZC_MIGRATE"] = mode
        if mode or launcher:
            env["ZC_MIGRATE_JOB"] = name
            env["ZC_MIGRATE_HOSTS"] = "any"     # agents move ranks to hosts that join later
        env.update(environment or {})
        # One block of ranks after the other, as the list says.
        blocks = []
        for host in hosts:
            if blocks and blocks[-1][0] == host:
                blocks[-1][1] += 1
            else:
                blocks.append([host, 1])
        tool = mpiexec or mpi.find_tool(cluster.prefix, "mpiexec")
        begin = [*launcher, "--mpiexec", tool, "--"] if launcher else [tool]
        words = [*begin, "-launcher", "ssh",
                 "-launcher-exec", ON_HOST, "-iface", INTERFACE,
                 "-hosts", ",".join(f"h{host}:{count}" for host, count in blocks), "-n", len(hosts),
                 cluster.programs[program],
                 *(self.stop_file if word is STOP else word for word in arguments)]
        super().__init__(cluster.command(start, words), mark, env, self.directory)

    def socket(self, host):
        """Where its control socket is while rank 0 is on HOST."""
        return self.cluster.directory / f"h{host}/run/zcm/{self.name}.sock"

    def stop(self):
        self.stop_file.touch()

    def wait(self, timeout):
        """Exit status; Fail after TIMEOUT."""
        status = super().wait(timeout)
        if status is None:
            raise Fail(f"the job does not end: {self.said()[-1500:]}")
        return status

    def status(self):
        """What the job says of itself, wherever its rank 0 is; None while it says nothing."""
        for host in range(1, self.cluster.count + 1):
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
        for host in range(1, self.cluster.count + 1):
            for one in self.cluster.profiles_on(host):
                if one.job_name == self.name and (
                        one.rank not in found or found[one.rank][1].epoch < one.epoch):
                    found[one.rank] = (host, one)
        return found

    def iterations(self):
        """Of the rank that is farthest behind; 0 before all have begun."""
        found = self.profiles()
        return min((one.iterations for _, one in found.values()), default=0) \
            if len(found) == len(self.hosts) else 0

    def until_running(self):
        def running():
            if self.process.poll() is not None:
                raise Fail(f"ended early: {self.said()[-1500:]}")
            return self.iterations() > 3
        try:
            return self.cluster.wait_for("the job runs", running, 40)
        except Fail as problem:
            raise Fail(f"{problem}: {self.name}, ranks on {self.where()}, {self.iterations()} "
                       f"iterations: {self.said()[-1000:]}") from None
