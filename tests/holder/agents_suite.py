# SPDX-License-Identifier: BSD-3-Clause
"""Agents (zcmd) move ranks of unmodified MPI programs below zc-hold, without any command.

Hosts have shares of the processors, as in tests/agent/living_suite.py, and runtime folders of their
own, as in tools_suite.py.
"""
import os
import pathlib
import signal
import subprocess
import time

from testbed import outcome
from testbed.agents import FIRST_MOMENTS, QUICK, Agent, all_alive
from testbed.outcome import check
from testbed.shares import Shares
from testbed.suite import Bed, Note, Suite
from tests.holder.hosts import PORT
from tests.holder.moves_suite import ring
from tests.holder.tools_suite import DONE, Apart, prepared

suite = Suite("hold-agents", "agents move ranks of unmodified programs below zc-hold",
              beds=[Bed("three-hosts", tags=frozenset({"fast"}), hosts="3", only="fast"),
                    Bed("nightly", tags=frozenset({"nightly"}), hosts="3")],
              needs=("mpich", "root", "ip", "curl"), open=prepared)
SUITES = [suite]

HOSTS = (1, 2, 3)
SHARE = 0.5         # of a processor, for each host
BURNERS = 3
# Agents count what runs at a low priority, as the tests themselves may, for the little that it takes.
APART = """#!/bin/sh
echo $$ > {cgroups}/$(hostname)/cgroup.procs
renice -n 0 -p $$ > /dev/null
"""
BURN = "while :; do :; done"
# Quick to decide; nothing that would make an agent decide otherwise.
SETTINGS = {**QUICK, "decision": {"settle": 2, "max_ranks": 64, "residence": 5}, "cost": {"spawn": 1},
            "jobs": {"holder_port": PORT}}


class Watched(Apart):
    """A ring of ranks below zc-hold, and an agent on each host."""

    def __init__(self, setup, words, settings=None, environment_of_agents=None, **more):
        """SETTINGS: tables of the agents' configuration, in addition to the usual ones."""
        super().__init__(setup, words, **more)
        self.settings, self.of_agents = settings or {}, environment_of_agents or {}
        self.agents, self.burners = {}, []
        self.shares = Shares(f"{setup.network.name}-{self.folder.name[-9:]}", [SHARE] * len(HOSTS),
                             self.folder / "cgroups")
        script = self.apart.read_text(encoding="ascii").removeprefix("#!/bin/sh\n")
        self.apart.write_text(APART.format(cgroups=self.shares.place) + script, encoding="ascii")

    def __enter__(self):
        try:
            for host in HOSTS:
                self.agents[host] = self._agent(host)
            outcome.wait_for("agents know each other", lambda: all_alive(self.agents.values()),
                             20 * self.setup.patience)
            time.sleep(FIRST_MOMENTS)
            super().__enter__()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, *exception):
        try:
            super().__exit__(*exception)
        finally:
            self._end()

    def _end(self):
        for one in self.burners:
            os.killpg(one.pid, signal.SIGKILL)
            one.wait()
        for one in self.agents.values():
            if one.process:
                one.kill()
        self.shares.close()

    def _agent(self, host):
        tables = {name: dict(table) for name, table in SETTINGS.items()}
        # All hosts are this machine: what is measured of its speed, moment by moment, decides nothing.
        tables["node"] = {"speed": 1, "cgroup": str(self.shares.seen(host))}
        for name, table in self.settings.items():
            tables.setdefault(name, {}).update(table)
        one = Agent(self.setup.network, host, pathlib.Path(self.hold).parent, self.folder / "agents", self.key,
                    tables, environment=self.of_agents)
        one.run_dir = self.folder / "runtime" / f"h{host}"
        one.run_dir.mkdir(exist_ok=True, mode=0o700)
        return one.start()

    def overload(self, host, processes=BURNERS):
        for _ in range(processes):
            self.burners.append(subprocess.Popen(
                self.setup.network.on(host, self.apart, "sh", "-c", BURN), stdin=subprocess.DEVNULL,
                env={**os.environ, **self.environment}, start_new_session=True))

    def errors(self):
        logs = "".join("\n  ".join([f"-- {one.name}:", *one.logged().splitlines()[-12:], str(one.ask("nodes")),
                                     str(one.ask("ranks"))]) + "\n" for one in self.agents.values())
        return super().errors() + self.said() + logs

    def decisions(self, *what, of=1):
        """Of the agent on host OF: others may find reasons of their own, afterwards."""
        return [one for one in self.agents[of].decisions() if one["what"] in what]

    def ranks_of_agents(self):
        """{rank: what the agent of its host shows}"""
        return {one["rank"]: one for agent in self.agents.values() for one in (agent.ask("ranks") or {"ranks": []})[
            "ranks"]}

    def tells(self, host, *texts):
        """zcctl why on HOST does; agents publish once a second."""
        def said():
            done = subprocess.run(self.setup.network.on(host, self.apart, self.tool, "why"), text=True, check=False,
                                  env={**os.environ, **self.environment}, capture_output=True)
            check(done.returncode == DONE, "zcctl why fails", done.stderr)
            return all(text in done.stdout for text in texts)
        self.wait_until(f"zcctl why says {texts}", said)


def watched(setup, **more):
    return ring(setup, kind=Watched, **more)


def shown(job, ranks):
    """The agents know all of them, as ranks that move without help of their program."""
    def known():
        found = job.ranks_of_agents()
        return len(found) == ranks and all(one["way"] == "transparent" for one in found.values())
    job.wait_until("agents know the ranks", known)


@suite.test("agents-move-a-rank", tags={"fast"})
def agents_move_a_rank(setup):
    """Others take the processors of its host: it goes, nobody has told it to, and the ring is right."""
    with watched(setup) as job:
        shown(job, 3)
        job.overload(1)
        job.wait_until("an agent moves the rank", lambda: job.decisions("moved"))
        one = job.decisions("moved")[0]
        check(one["ranks"] == [0] and one["to_host"] in ("h2", "h3"), f"it says {one}")
        check(one["bytes"] > 1 << 20 and one["phases_ms"]["checkpoint"] > 0, f"it says {one}")
        check(job.where()[0] == one["to_host"], f"they are on {job.where()}")
        job.tells(1, "moved rank 0", one["why"])
        # It is the ranks' new host that knows it now.
        new = job.agents[int(one["to_host"][1:])]
        job.wait_until("its new host knows it", lambda: 0 in {each["rank"] for each in new.ranks()})
        rounds = job.finish()
        return Note(f"moved in {sum(one['phases_ms'].values()):.0f} ms: {one['why']}; {rounds} rounds", rounds=rounds)


@suite.test("agents-know-what-ranks-send", tags={"fast"})
def agents_know_what_ranks_send(setup):
    """Each of three ranks sends to both others, and still does when it has moved."""
    with watched(setup) as job:
        shown(job, 3)

        def partners(rank):
            return {one["rank"] for one in job.ranks_of_agents().get(rank, {}).get("peers", ())
                    if one["bytes_per_s"] > 1000}

        def known():
            return all(partners(rank) == {0, 1, 2} - {rank} for rank in range(3))
        job.wait_until("agents know what ranks send", known)
        job.moves([0], 2)
        job.wait_until("its new host knows it", lambda: 0 in {each["rank"] for each in job.agents[2].ranks()})
        job.wait_until("its new host knows what it sends", known)
        job.finish()


@suite.test("agents-move-a-group", tags={"fast"})
def agents_move_a_group(setup):
    """Twelve ranks, each of which sends most to the one six further: two such go, and together."""
    with watched(setup, ranks=12, step=6, settings={"decision": {"most_at_once": 2}}) as job:
        shown(job, 12)

        def groups():
            told = job.agents[1].ask("groups") or {"jobs": []}
            return {one["rank"]: one["group"][:2] for each in told["jobs"] for one in each["groups"]}
        job.wait_until("the agent knows the groups",
                       lambda: groups() == {0: [0, 6], 6: [6, 0], 3: [3, 9], 9: [9, 3]})
        # 8 threads here become 6, and 4 there: a quarter less. Of 7 it were 14 %, and an agent wants 15.
        job.overload(1, BURNERS + 1)
        job.wait_until("an agent moves ranks", lambda: job.decisions("moved"))
        one = job.decisions("moved")[0]
        check(sorted(one["ranks"]) in ([0, 6], [3, 9]), f"it says {one}")
        where = job.where()
        check({where[rank] for rank in one["ranks"]} == {one["to_host"]}, f"they are on {where}")
        rounds = job.finish()
        return Note(f"ranks {one['ranks']} in {sum(one['phases_ms'].values()):.0f} ms; {rounds} rounds", rounds=rounds)


@suite.test("agents-move-a-rank-on", tags={"fast"})
def agents_move_a_rank_on(setup):
    """From a host where it was not started: its zc-hold is on another one, and decides. One that was started there
    may go with it, by the same request."""
    with watched(setup) as job:
        shown(job, 3)
        job.moves([0], 2)
        job.wait_until("its new host knows it", lambda: 0 in {each["rank"] for each in job.agents[2].ranks()})
        job.overload(2, 2 * BURNERS)

        def moved_on():
            return [one for one in job.decisions("moved", of=2) if 0 in one["ranks"]]
        job.wait_until("an agent moves the rank", moved_on)
        check(moved_on()[0]["to_host"] != "h2", f"it says {moved_on()}")
        # The rank that was there before may have gone with it.
        job.tells(2, f"moved rank {','.join(map(str, moved_on()[0]['ranks']))}")
        rounds = job.finish()
        return Note(f"{rounds} rounds", rounds=rounds)


def only_wishes(setup, **more):
    with watched(setup, **more) as job:
        shown(job, 3)
        job.overload(1)
        job.wait_until("an agent would move the rank", lambda: job.decisions("would_move"))
        one = job.decisions("would_move")[0]
        check(one["ranks"] == [0], f"it says {one}")
        job.tells(1, "would_move rank 0")
        job.wait_until("the next wish", lambda: len(job.decisions("would_move")) > 1)
        check(not job.decisions("asked", "moved"), f"it has moved: {job.decisions('asked', 'moved')}")
        check(job.where() == {0: "h1", 1: "h2", 2: "h3"}, f"they are on {job.where()}")
        job.finish()


@suite.test("agents-that-observe-move-nothing", tags={"fast"})
def agents_that_observe(setup):
    """What they would do is shown."""
    only_wishes(setup, environment_of_agents={"ZC_MIGRATE": "observe"})


@suite.test("policy-transparent-is-observe")
def policy_transparent_is_observe(setup):
    """The agents may move ranks of libzcm alone."""
    only_wishes(setup, settings={"policy": {"transparent": "observe"}})


@suite.test("policy-transparent-is-no")
def policy_transparent_is_no(setup):
    """Ranks below zc-hold are load of others, as before."""
    with watched(setup, settings={"policy": {"transparent": "no"}}) as job:
        job.overload(1)

        def loaded():
            nodes = job.agents[1].ask("nodes") or {"nodes": []}
            return any(one["self"] and one["load"]["demand"] > BURNERS for one in nodes["nodes"])
        job.wait_until("the agent sees the load", loaded)
        check(not job.ranks_of_agents(), f"agents know {job.ranks_of_agents()}")
        check(not job.decisions("planned", "would_move", "moved"), f"{job.decisions('planned', 'moved')}")
        job.finish()


@suite.test("agents-back-off-from-a-rank-that-refuses", tags={"fast"})
def agents_back_off(setup):
    """It cannot be dumped, twice: it is not asked every round, which is counted and told; then it moves."""
    with watched(setup) as job:
        shown(job, 3)
        job.fault("dump fails")
        job.overload(1)
        job.wait_until("the rank refuses", lambda: job.decisions("failed"))
        job.wait_until("it is told of the rank", lambda: job.ranks_of_agents().get(0, {}).get("refusals") == 1)
        check("criu dump: status 1" in job.ranks_of_agents()[0]["refused"], f"{job.ranks_of_agents()[0]}")
        job.tells(1, "failed rank 0", "criu dump: status 1", "not again before 5 s")
        job.wait_until("the agent asks again", lambda: job.decisions("moved"))
        failed, moved = job.decisions("failed")[0], job.decisions("moved")[0]
        check(moved["time"] - failed["time"] > 4, f"it was asked again after {moved['time'] - failed['time']:.1f} s")
        job.finish()


@suite.test("agents-say-what-is-missing")
def agents_say_what_is_missing(setup):
    """No zc-hold --listen is at the targets."""
    with watched(setup) as job:
        shown(job, 3)
        for host in (2, 3):
            job.end_listener(host)
        job.overload(1)
        job.wait_until("both targets have failed",
                       lambda: len({one["to_host"] for one in job.decisions("failed")}) == 2)
        job.tells(1, "failed rank 0", "no zc-hold --listen answers at tcp://")
        check(job.where()[0] == "h1", f"they are on {job.where()}")
        job.finish()


def emptied(setup, ranks):
    """zcctl drain without a host, of its own agent: all ranks there go."""
    with watched(setup, ranks=ranks) as job:
        shown(job, ranks)
        done = subprocess.run(setup.network.on(1, job.apart, job.tool, "drain"), check=False, text=True,
                              env={**os.environ, **job.environment}, capture_output=True)
        check(done.returncode == DONE, "zcctl drain fails", done.stderr)
        job.wait_until("no rank is on h1", lambda: "h1" not in job.where().values())
        moved = sorted(rank for one in job.decisions("moved") for rank in one["ranks"])
        check(moved == list(range(0, ranks, len(HOSTS))), f"{job.decisions('moved')}")
        job.finish()


@suite.test("agents-empty-a-host", tags={"fast"})
def agents_empty_a_host(setup):
    emptied(setup, 4)


@suite.test("agents-empty-a-host-of-many")
def agents_empty_a_host_of_many(setup):
    """Eight ranks on half a processor."""
    emptied(setup, 24)


# ---- agents that zcm-run has started for the job ----

# Hosts share files here: each has its own folder at the place that is told to all agents.
AGENT_OF_A_HOST = """#!/bin/sh
XDG_RUNTIME_DIR={runtime}/$(hostname)
export XDG_RUNTIME_DIR
mkdir -p -m 700 "$XDG_RUNTIME_DIR" {place}/$(hostname)
exec unshare --mount sh -c 'mount --bind {place}/$0 {place}/here && exec {zcmd} "$@"' "$(hostname)" "$@"
"""


class Dispatched(Apart):
    """A ring of ranks below zc-hold, with agents of its own."""

    def __init__(self, setup, words, **more):
        super().__init__(setup, words, launch=self._by_zcm_run, **more)
        self.place = self.folder / "agents"
        (self.place / "here").mkdir(parents=True)
        self.agent = self.folder / "agent"
        self.agent.write_text(AGENT_OF_A_HOST.format(
            runtime=self.folder / "runtime", place=self.place, zcmd=pathlib.Path(self.hold).parent / "zcmd"),
            encoding="ascii")
        self.agent.chmod(0o700)
        self.settings = self.folder / "agents.toml"
        self.settings.write_text(f'[agent]\nkey_file = "{self.key}"\n[jobs]\nholder_port = {PORT}\n',
                                 encoding="ascii")

    def _by_zcm_run(self, words):
        command = self._by_mpiexec(words)
        at = len(self.setup.network.on(1))
        host, mpiexec, rest = command[:at], command[at], command[at + 1:]
        return [*host, pathlib.Path(self.hold).parent / "zcm-run", "--agents", "--zcmd", self.agent,
                "--agents-dir", self.place / "here", "--agents-config", self.settings, "--mpiexec", mpiexec, "--", *rest]

    def socket(self, host):
        return next((self.place / f"h{host}").glob("zcm-*/zcmd.sock"))


@suite.test("agents-of-a-job-move-its-ranks", tags={"fast"})
def agents_of_a_job(setup):
    """They have a key of their own; for zc-hold they have the user's."""
    with ring(setup, kind=Dispatched) as job:
        done = subprocess.run(setup.network.on(1, job.apart, job.tool, "drain", "--agent", job.socket(1)), text=True,
                              env={**os.environ, **job.environment}, capture_output=True, check=False)
        check(done.returncode == DONE, "zcctl drain fails", done.stderr)
        job.wait_until("no rank is on h1", lambda: "h1" not in job.where().values())
        rounds = job.finish()
        return Note(f"{rounds} rounds", rounds=rounds)
