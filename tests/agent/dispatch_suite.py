# SPDX-License-Identifier: BSD-3-Clause
"""zcm-run --agents: agents are started on the hosts of a job, move its ranks, and end with it, however
it ends. Two hosts (network namespaces, with shares of the processors by cgroups)."""
import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess
import tempfile

from testbed import migration, process
from testbed.cluster import NEVER, ON_HOST, Cluster, Job
from testbed.migration import STOP
from testbed.outcome import check
from testbed.suite import Bed, Suite

IDENTICAL = "bit-identical to the serial solution"
HEAT = ["heat2d", "--rows", 32, "--columns", 512, "--iterations", NEVER, "--until", STOP]
# The hosts' cgroups are seen by this name; agents are not in them.
CONFIG = """
[membership]
period = 0.5
ping_timeout = 0.4
suspicion = 3
probe_period = 1
[decision]
settle = 2
max_ranks = 16
[cost]
spawn = 1
[node]
cgroup = "{cgroup}"
"""


@contextlib.contextmanager
def with_programs(setup):
    setup.programs = migration.build(
        setup.prefix, ["examples/heat2d.c", "tests/migrate/state.c"],
        pathlib.Path(setup.options.library).resolve(), setup.build_dir)
    yield setup


suite = Suite("dispatch", "zcm-run --agents starts agents with a job, and ends them with it",
              beds=[Bed("two-hosts", tags=frozenset({"fast"}))],
              needs=("mpich", "root", "ip"), open=with_programs)
SUITES = [suite]


class Dispatched(Job):
    """A job with agents that zcm-run has started on its hosts, h1 and h2.

    OPTIONS are zcm-run's. `launcher` is what starts them: None as mpiexec does it.
    SETTINGS are more of the agents' configuration.
    """

    def __init__(self, cluster, program, *arguments, options=(), launcher="", logged=False, place=None,
                 hosts=(1, 1, 2, 2), settings="", **more):
        self.logs = pathlib.Path(tempfile.mkdtemp(prefix="logs-", dir=cluster.directory))
        config = self.logs / "agents.toml"
        config.write_text(CONFIG.format(cgroup=cluster.directory / "here/cgroup")
                          + settings if launcher is not None else settings, encoding="utf-8")
        words = [cluster.tools / "zcm-run", "--agents", "--agents-dir",
                 place or cluster.directory / "here/run", "--agents-config", config]
        if launcher is not None:
            # Not in the cgroup of the host, which they watch.
            words += ["--agents-launcher", launcher or f"env ZCA_CGROUP= {ON_HOST}"]
        if logged:
            words += ["--agents-log", self.logs]
        super().__init__(cluster, program, *arguments, hosts=hosts, launcher=[*words, *options],
                         mode="", name="test", **more)

    def agents(self):
        """Their sockets, by host."""
        return {host: sockets[0] for host in (1, 2) if (sockets := list(
            (self.cluster.directory / f"h{host}/run").glob("zcm-*/zcmd.sock")))}

    def known_ranks(self, host):
        """How many the agent there knows; a rank joins some time after it has begun to run."""
        code, out, said = self.cluster.zcctl(host, "ranks", "--json", "--agent", self.agents()[host])
        check(code == 0, said)
        return len(json.loads(out)["ranks"])

    def pid_of(self, program, host=None):
        """Of what this run has started by that name."""
        for pid, _ in process.processes(self.mark):
            with contextlib.suppress(OSError):
                words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
                space = os.stat(f"/proc/{pid}/ns/net").st_ino
                if pathlib.Path(words[0].decode()).name == program and host in (
                        None, self.host_of(space)):
                    return pid
        return None

    def host_of(self, space):
        for host in (1, 2):
            if os.stat(f"/run/netns/{self.cluster.network.name}-h{host}").st_ino == space:
                return host
        return None

    def log(self, host):
        path = self.logs / f"h{host}.log"
        return path.read_text(encoding="utf-8") if path.exists() else ""

    def until_nothing_is_left(self):
        self.cluster.wait_for("all processes have ended",
                              lambda: not list(process.processes(self.mark)))
        left = [*self.cluster.directory.glob("h*/run/zcm-*")]
        check(not left, f"left behind: {left}")


def test(name, **more):
    """Decorates a test of two hosts with half a processor each."""
    def add(function):
        @suite.test(name, **more)
        def with_cluster(setup):
            directory = tempfile.mkdtemp(prefix=f"{name}-", dir=setup.scratch)
            with Cluster(2, f"{setup.options.library}/bin", directory, prefix=setup.prefix,
                         shares=[0.5, 0.5], programs=setup.programs, patience=setup.patience,
                         environment={"MPIR_CVAR_CH4_NETMOD": setup.options.netmod,
                                      **setup.environment}) as cluster:
                for host in (1, 2):
                    (cluster.directory / f"h{host}/cgroup").symlink_to(cluster.shares.seen(host))
                function(cluster)
            return "; ".join(cluster.notes)
        return with_cluster
    return add


def ends(job, status, *texts):
    """With that exit status (None: any but 0), having said TEXTS; nothing is left."""
    found = job.wait(40 * job.cluster.patience)
    check(found == status if status is not None else found != 0,
          f"exit status {found}: {job.said()[-1500:]}")
    for text in texts:
        check(text in job.said(), f"not said: {text}: {job.said()[-1500:]}")
    job.until_nothing_is_left()


@test("normal")
def normal(cluster):
    """Started as mpiexec starts its own; they know each other before the job runs, are apart from
    other agents and jobs, and are gone when it has ended."""
    with Dispatched(cluster, *HEAT, launcher=None) as job:
        job.until_running()
        sockets = job.agents()
        check(set(sockets) == {1, 2}, f"agents: {sockets}")
        check(all(path.parent.stat().st_mode & 0o777 == 0o700 for path in sockets.values()),
              "directories of agents are open to others")
        code, out, said = cluster.zcctl(1, "nodes", "--json", "--agent", sockets[1])
        check(code == 0, said)
        check({n["host"]: n["state"] for n in json.loads(out)["nodes"]} ==
              {"h1": "alive", "h2": "alive"}, out)
        for host in (1, 2):
            cluster.wait_for(f"2 ranks are known to the agent on h{host}",
                             lambda: job.known_ranks(host) == 2)    # noqa: B023
        check("agents on h1, h2" in job.said(), job.said())
        job.stop()
        ends(job, 0, IDENTICAL)


@test("moved")
def moved(cluster):
    """They move ranks away from an overloaded host; speeds are measured, what agents log is kept."""
    with Dispatched(cluster, *HEAT, logged=True) as job:
        job.until_running()
        code, out, said = cluster.zcctl(2, "nodes", "--json", "--agent", job.agents()[2])
        check(code == 0, said)
        speeds = [n["relative_speed"] for n in json.loads(out)["nodes"]]
        check(len(speeds) == 2 and all(0.5 < speed < 2 for speed in speeds),
              f"speeds of the same processors: {speeds}")
        cluster.busy(2, 4)
        took = cluster.wait_for("ranks are moved", lambda: (job.status() or {"epoch": 1})["epoch"] > 1,
                                40)
        cluster.note(f"moved after {took:.1f} s")
        cluster.wait_for("it is logged", lambda: re.search(r"asked rank [23]", job.log(2)))
        check("zcmd info" not in job.said(), job.said()[-1500:])
        job.stop()
        ends(job, 0, IDENTICAL)


@test("job-fails")
def job_fails(cluster):
    """The exit status is that of the job."""
    with Dispatched(cluster, "state", "exit", NEVER, STOP) as job:
        job.until_running()
        job.stop()
        ends(job, None, "rank 1: ended with exit status 5")
    done = subprocess.run([cluster.tools / "zcm-run", "--agents", "--mpiexec", "sh", "--",
                           "-c", "exit 7"], capture_output=True, text=True,
                          timeout=20 * cluster.patience, check=False)
    check(done.returncode == 7, f"{done.returncode}: {done.stderr}")


@test("no-program")
def no_program(cluster):
    """mpiexec itself cannot be run: the agents end, and it is said."""
    with Dispatched(cluster, *HEAT, mpiexec="/nonexistent/mpiexec") as job:
        ends(job, 1, "/nonexistent/mpiexec: No such file")


@test("signals")
def signals(cluster):
    """zcm-run is told to end, or killed: so does the job, and so do the agents."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGKILL):
        with Dispatched(cluster, *HEAT) as job:
            job.until_running()
            os.kill(job.pid_of("zcm-run"), number)
            ends(job, None)


@test("signal-before")
def signal_before(cluster):
    """The same before the job has been started."""
    with Dispatched(cluster, *HEAT, launcher=silent(cluster)) as job:
        cluster.wait_for("it waits for its agents", lambda: job.pid_of("sleep"))
        os.kill(job.pid_of("zcm-run"), signal.SIGTERM)
        ends(job, 128 + signal.SIGTERM)
        check("iterations" not in job.said(), job.said())


def script(cluster, name, text):
    path = cluster.directory / name
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)
    return str(path)


def silent(cluster):
    """A launcher that starts nothing, and does not end with its input."""
    return script(cluster, "silent", "#!/bin/sh\nexec sleep 1000\n")


FAILS_ON_H2 = """#!/bin/sh
[ "$1" = h2 ] && {{ echo "no way to h2" >&2; exit 255; }}
exec env ZCA_CGROUP= {on_host} "$@"
"""


@test("cannot-start")
def cannot_start(cluster):
    """An agent cannot be started, or does not answer: no job, and it is said which, and why."""
    fails = script(cluster, "fails-on-h2", FAILS_ON_H2.format(on_host=ON_HOST))
    with Dispatched(cluster, *HEAT, launcher=fails) as job:
        ends(job, 1, "zcm-run: h2: no way to h2",
             "the agent on h2 has ended with exit status 255, and so the job is not started")
        check("bit-identical" not in job.said(), "the job has run")
    with Dispatched(cluster, *HEAT, launcher=silent(cluster), options=["--agents-wait", "2"]) as job:
        ends(job, 1, "the agent on h1 does not answer", "the agent on h1 does not end")
    with Dispatched(cluster, *HEAT, place="/nonexistent") as job:
        ends(job, 1, "/nonexistent/zcm-", "No such file or directory")


@test("agent-dies")
def agent_dies(cluster):
    """One agent is killed: the job goes on, and ends well."""
    with Dispatched(cluster, *HEAT) as job:
        job.until_running()
        victim = job.pid_of("zcmd", host=2)
        check(victim, "no agent on h2")
        os.kill(victim, signal.SIGKILL)
        cluster.wait_for("it is said", lambda: "the agent on h2 " in job.said())
        began = job.iterations()
        cluster.wait_for("the job goes on", lambda: job.iterations() > began + 20)
        check(job.pid_of("zcmd", host=1), "the other agent has ended, too")
        job.stop()
        check(job.wait(40 * cluster.patience) == 0 and IDENTICAL in job.said(),
              job.said()[-1500:])
        # A killed agent cannot remove its directory.
        for left in (cluster.directory / "h2/run").glob("zcm-*"):
            subprocess.run(["rm", "-r", left], check=True)
        job.until_nothing_is_left()


def key_of(cluster):
    return f'\n[agent]\nkey_file = "{cluster.key}"\n'


def kill_all(agent):
    """The shell that on-host has started it by, too."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(agent.pid, signal.SIGKILL)
    agent.wait()


@contextlib.contextmanager
def agents_that_run(cluster, *hosts):
    """By host, as their user has started them; they are stopped at the end."""
    config = cluster.directory / "running.toml"
    config.write_text(CONFIG.format(cgroup=cluster.directory / "here/cgroup") + key_of(cluster),
                      encoding="utf-8")
    with contextlib.ExitStack() as stack:
        agents = {}
        for host in hosts:
            agents[host] = subprocess.Popen(
                cluster.command(host, [cluster.tools / "zcmd", "--config", config, "run", "--mode", "move",
                                       "--host", f"h{host}", "--seed", f"h{hosts[0]}"]),
                env={**cluster.environment(), "ZCA_CGROUP": ""}, stderr=subprocess.DEVNULL,
                start_new_session=True)
            stack.callback(kill_all, agents[host])
            cluster.wait_for(f"the agent on h{host} answers",
                             lambda: cluster.zcctl(host, "nodes")[0] == 0)     # noqa: B023
        yield agents


def seen_from(cluster, host, verb="nodes"):
    """What the agent of the user says that runs on HOST, whatever zcm-run has started."""
    code, out, said = cluster.zcctl(host, verb, "--json")
    check(code == 0, said)
    return json.loads(out)[verb]


def alive_from(cluster, host):
    return {node["host"] for node in seen_from(cluster, host) if node["state"] == "alive"}


@test("found-one")
def found_one(cluster):
    """An agent runs on a host already: it has the job's ranks there, the other one is started and
    joins it, and it is still there when the job has ended."""
    with agents_that_run(cluster, 2):
        with Dispatched(cluster, *HEAT, options=["--agents-find"], settings=key_of(cluster)) as job:
            job.until_running()
            check("not to be ended: those on h2" in job.said(), job.said())
            check(set(job.agents()) == {1}, f"started: {job.agents()}")
            check(alive_from(cluster, 2) == {"h1", "h2"}, "the agent that was found knows no other")
            cluster.wait_for("it knows the ranks on its host",
                             lambda: len(seen_from(cluster, 2, "ranks")) == 2)
            cluster.wait_for("the other one knows its own", lambda: job.known_ranks(1) == 2)
            job.stop()
            ends(job, 0, IDENTICAL)
        cluster.wait_for("the other one has left", lambda: alive_from(cluster, 2) == {"h2"})


@test("found-all")
def found_all(cluster):
    """Agents run on all hosts: none is started; they move ranks of the job, and go on after it. One
    that dies meanwhile is reported, and costs the job nothing."""
    with agents_that_run(cluster, 1, 2) as running:
        with Dispatched(cluster, *HEAT, options=["--agents-find"], settings=key_of(cluster)) as job:
            job.until_running()
            check(not job.agents(), f"started: {job.agents()}")
            check("those on h1, h2" in job.said(), job.said())
            cluster.busy(2, 4)
            cluster.wait_for("ranks are moved",
                             lambda: (job.status() or {"epoch": 1})["epoch"] > 1, 40)
            kill_all(running[1])
            cluster.wait_for("it is said", lambda: "the agent on h1 has ended" in job.said())
            job.stop()
            ends(job, 0, IDENTICAL)
        check(alive_from(cluster, 2) >= {"h2"}, "the agent that was found has ended with the job")


@test("found-without-key")
def found_without_key(cluster):
    """The key of an agent that runs already is not where it is said to be: no job."""
    with agents_that_run(cluster, 2):
        with Dispatched(cluster, *HEAT, options=["--agents-find"],
                        settings='\n[agent]\nkey_file = "/nonexistent/key"\n') as job:
            ends(job, 1, "/nonexistent/key", "and so the job is not started")
        check(alive_from(cluster, 2) == {"h2"}, "the agent that was found has ended")


@test("open-mpi")
def open_mpi(cluster):
    """Open MPI's mpirun, by whatever name, has what it needs set, unless the user has set it."""
    place = cluster.directory / "mpi"
    place.mkdir()
    for name in ("orterun", "hydra"):
        (place / name).write_text('#!/bin/sh\necho "$EVENT_NOEPOLL,$OMPI_MCA_osc,'
                                  '$OMPI_MCA_orte_allowed_exit_without_sync"\n', encoding="utf-8")
        (place / name).chmod(0o755)
    (place / "mpiexec").symlink_to("mpirun")
    (place / "mpirun").symlink_to("orterun")
    tool = cluster.tools / "zcm-run"
    for words, more, says in (
            ([], {}, "1,pt2pt,1"),
            (["--mpiexec", place / "mpirun"], {}, "1,pt2pt,1"),
            ([], {"EVENT_NOEPOLL": "", "OMPI_MCA_osc": "rdma",
                  "OMPI_MCA_orte_allowed_exit_without_sync": "0"}, ",rdma,0"),
            (["--mpiexec", "hydra"], {}, ",,")):
        done = subprocess.run([tool, *words, "--", "program"], env={"PATH": str(place), **more},
                              capture_output=True, text=True, timeout=60, check=False)
        check(done.returncode == 0 and done.stdout.strip() == says,
              f"{words} {more}: {done.returncode}: {done.stdout}{done.stderr}")


@test("bad-options")
def bad_options(cluster):
    """Wrong usage is 2, what is not right for agents 1; nothing is started."""
    tool = cluster.tools / "zcm-run"
    for words, status, text in (
            (["--agents-log", "x", "true"], 2, "--agents"),
            (["--agents-find", "true"], 2, "--agents"),
            (["--agents", "--verify", "true"], 2, "--verify"),
            (["--agents", "--agents-mode", "off", "true"], 2, "off"),
            (["--agents", "--agents-wait", "0", "true"], 2, "0"),
            (["--agents"], 2, "no program given"),
            (["--agents", "--agents-dir", "here", "true"], 1, "wants a path from / on"),
            (["--agents", "--agents-dir", "/" + "x" * 100, "true"], 1, "too long"),
            (["--agents", "--agents-config", "/nonexistent", "true"], 1, "/nonexistent"),
            (["--agents", "--zcmd", "/nonexistent/zcmd", "true"], 1, "/nonexistent/zcmd"),
            (["--agents", "--zcmd", "/a b/zcmd", "true"], 1, "a shell on another host"),
            (["--agents", "-launcher", "lsf", "true"], 1, "--agents-launcher")):
        done = subprocess.run([tool, "--mpiexec", "/nonexistent/mpiexec", *words],
                              capture_output=True, text=True, timeout=60, check=False)
        check(done.returncode == status and text in done.stderr,
              f"{words}: {done.returncode}: {done.stderr}")
    done = subprocess.run([cluster.tools / "zcmd", "dispatched"], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=60, check=False)
    check(done.returncode == 1 and "started by zcm-run" in done.stderr, done.stderr)
