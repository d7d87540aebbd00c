# SPDX-License-Identifier: BSD-3-Clause
"""Agents and living jobs: heat2d on two hosts (network namespaces, with shares of the processors by
cgroups) is moved by zcmd alone, and ends with the result it always has."""
import contextlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

from testbed import migration
from testbed.agents import as_user
from testbed.cluster import NEVER, Cluster, Job
from testbed.migration import STOP
from testbed.outcome import check
from testbed.profiles import BUSY
from testbed.suite import Bed, Suite

IDENTICAL = "bit-identical to the serial solution"
HEAT = ["heat2d", "--rows", 32, "--columns", 512, "--iterations", NEVER, "--until", STOP]


@contextlib.contextmanager
def with_programs(setup):
    # Ranks of another user have to reach their folders below it.
    setup.scratch.chmod(0o711)
    setup.programs = migration.build(
        setup.prefix, ["examples/heat2d.c", "tests/migrate/state.c"],
        pathlib.Path(setup.options.library).resolve(), setup.build_dir)
    yield setup


suite = Suite("living", "heat2d on two hosts is moved by agents alone",
              beds=[Bed("two-hosts", tags=frozenset({"fast"})),
                    Bed("long", tags=frozenset({"nightly"}), only="long", long=True)],
              needs=("mpich", "root", "ip", "curl"), open=with_programs)
SUITES = [suite]


def test(name, tags=()):
    """Decorates a test of two hosts with half a processor each."""
    def add(function):
        @suite.test(name, tags)
        def with_cluster(setup):
            directory = tempfile.mkdtemp(prefix=f"{name}-", dir=setup.scratch)
            with Cluster(2, f"{setup.options.library}/bin", directory, prefix=setup.prefix,
                         shares=[0.5, 0.5], programs=setup.programs, patience=setup.patience,
                         environment={"MPIR_CVAR_CH4_NETMOD": setup.options.netmod,
                                      **setup.environment}) as cluster:
                function(cluster)
            return "; ".join(cluster.notes)
        return with_cluster
    return add


def ends_well(job, says=IDENTICAL):
    job.stop()
    status = job.wait(40 * job.cluster.patience)
    check(status == 0 and says in job.said(), f"exit status {status}: {job.said()[-1500:]}")


def moved_by_itself(cluster, job):
    took = cluster.wait_for("ranks are moved", lambda: cluster.decisions("moved"))
    one = cluster.decisions("moved")[0]
    cluster.note(f"moved after {took:.1f} s: {one['why']}")
    cluster.wait_for("ranks tell of their new place", lambda: all(
        job.where()[rank] == one["to_host"] for rank in one["ranks"]))
    return one


def says(cluster, host, *texts):
    """zcctl why on HOST; agents publish once a second."""
    def said():
        code, out, problem = cluster.zcctl(host, "why")
        check(code == 0, problem)
        return all(text in out for text in texts)
    cluster.wait_for(f"zcctl why says {texts}", said, 10 / 3)


@test("overloaded")
def overloaded(cluster):
    """One host is overloaded: a rank goes to the other, which has room for one; the result is
    what it always is."""
    agents = [cluster.agent(1, settings={"decision": {"max_ranks": 3}}), cluster.agent(2)]
    cluster.until_together(agents)
    with Job(cluster, *HEAT, hosts=[1, 1, 2, 2]) as job:
        job.until_running()
        check(job.where() == ["h1", "h1", "h2", "h2"], f"{job.where()}")
        time.sleep(6)
        check(not cluster.decisions("asked"), "moved without need")
        cluster.busy(2, 4)
        one = moved_by_itself(cluster, job)
        check(one["to_host"] == "h1" and set(one["ranks"]) <= {2, 3}, f"{one}")
        check(one["bytes"] > 2 * 32 * 512 * 8 and one["phases_ms"]["spawn"] > 0, f"{one}")
        status = job.status()
        check(status["epoch"] == 2 and status["ranks"][one["ranks"][0]]["host"] == "h1",
              f"{status}")
        # What zcctl says of it, in words and as JSON, where the decision was taken.
        says(cluster, 2, "moved rank", one["why"])
        code, out, _ = cluster.zcctl(2, "history", "--json")
        check(code == 0 and any(r["what"] == "moved" for r in json.loads(out)["records"]), out)
        ranks = {}

        def shown():
            code, out, problem = cluster.zcctl(1, "--json", "ranks")
            check(code == 0, problem)
            ranks.clear()
            ranks.update({r["rank"]: r for r in json.loads(out)["ranks"]})
            # While they move, ranks may be in MPI for none of the second that is shown.
            return set(ranks) >= {0, 1, one["ranks"][0]} and ranks[0]["epoch"] == 2 and \
                0 < ranks[0]["mpi_share"] <= 1
        cluster.wait_for("zcctl ranks shows who came", shown, 10 / 3)
        check(ranks[0]["peers"] and ranks[0]["job_name"] == "test", f"{ranks}")
        check(ranks[0]["iterations_per_s"] > 0, f"{ranks}")
        for verb in ("nodes", "groups", "ranks"):
            check(cluster.zcctl(1, verb)[0] == 0, verb)
        ends_well(job)
    # No agent is there any more, and zcctl says so.
    agents[0].stop()
    code, _, said = cluster.zcctl(1, "nodes")
    check(code == 3 and "no agent at" in said, f"{code} {said}")


@test("rank-zero")
def rank_zero_and_its_socket(cluster):
    """All four on one host, another free: some go; then rank 0, and the next request finds it."""
    agents = cluster.start_agents()
    with Job(cluster, *HEAT, hosts=[1, 1, 1, 1]) as job:
        job.until_running()
        moved_by_itself(cluster, job)
        host = job.where()
        # The operator may do so as well; the agents learn of it.
        old, new = (1, "h2") if host[0] == "h1" else (2, "h1")
        going = [r for r in range(4) if host[r] == host[0]]
        code, out, said = cluster.zcctl(old, "--json", "move", "--rank", ",".join(map(str, going)),
                                        "--to", new)
        check(code == 0 and json.loads(out)["epoch"] == 3, f"{out} {said}")
        check(all(job.where()[r] == new for r in going), f"{job.where()}")
        # Agents may have moved others by now, that have been here all the time.
        status = job.status()
        check(status and status["epoch"] >= 3, f"{status}")
        cluster.wait_for("agents see where ranks are", lambda: all(
            len(a.ranks()) == job.where().count(a.name) for a in agents), 10)
        ends_well(job)


# Heat's ranks send to their neighbours, and every 16th iteration down the tree of MPI_Bcast, which has
# these pairs as well; few patterns have such a message.
BROADCAST = {(0, 2), (1, 3)}


def teiresias(cluster, grouping):
    """Four ranks on one host; the two that go to the other one are neighbours."""
    # Short samples: ranks of this program send some hundred messages a second.
    one = {"policy": {"grouping": grouping, "pattern_period": 128}}
    agents = [cluster.agent(1, settings={"decision": {"max_ranks": 2}, **one}),
              cluster.agent(2, settings=one)]
    cluster.until_together(agents)
    with Job(cluster, *HEAT, hosts=[2, 2, 2, 2]) as job:
        job.until_running()
        page = {}

        def foretold():
            page.update(agents[1].ask("groups") or {})
            return any(job["flows"] for job in page.get("jobs", []))
        cluster.wait_for(f"{grouping} foretells messages", foretold)
        check(page["grouping"] == grouping and page["jobs"][0]["no_groups"] is None, f"{page}")
        for flow in page["jobs"][0]["flows"]:
            check(abs(flow["src"] - flow["dst"]) == 1 or (flow["src"], flow["dst"]) in BROADCAST,
                  f"ranks that do not communicate: {flow}; {page}")
        one = moved_by_itself(cluster, job)
        check(one["to_host"] == "h1", f"{one}")
        cluster.note(f"{grouping}: ranks {one['ranks']}")
        ranks = sorted(one["ranks"])
        check(ranks == list(range(ranks[0], ranks[-1] + 1)), f"no neighbours: {ranks}")
        ends_well(job)


@test("teiresias-levenshtein")
def teiresias_levenshtein(cluster):
    """Groups by a predictor of Singh & Graham, in a living job."""
    teiresias(cluster, "teiresias-levenshtein")


@test("teiresias-collects")
def teiresias_collects(cluster):
    """Each agent learns from the messages of all ranks, and foretells those of ranks that it does not have."""
    agents = cluster.start_agents(settings={"policy": {
        "grouping": "teiresias-basic", "pattern_period": 128, "collect": "job"}})
    with Job(cluster, *HEAT, hosts=[1, 1, 2, 2], mode="observe") as job:
        job.until_running()
        for agent, others in zip(agents, ({2, 3}, {0, 1})):
            def foretold(agent=agent, others=others):
                page = agent.ask("groups") or {}
                return any(flow["src"] in others for job in page.get("jobs", []) for flow in job["flows"])
            cluster.wait_for(f"{agent.name} foretells messages of {others}", foretold)
            before = agent.ask("status")["traffic_of_jobs"]
            time.sleep(3)
            after = agent.ask("status")["traffic_of_jobs"]
            gained = {word: after[word] - before[word] for word in after}
            check(gained["told"] > 0 and gained["learned"] > gained["refused"] + gained["late"],
                  f"{before}, then {after}")
        ends_well(job)


@test("teiresias-basic", tags={"long"})
def teiresias_basic(cluster):
    """As teiresias-levenshtein."""
    teiresias(cluster, "teiresias-basic")


@test("teiresias-specific", tags={"long"})
def teiresias_specific(cluster):
    """As teiresias-levenshtein."""
    teiresias(cluster, "teiresias-specific")


@test("lost-rank")
def lost_rank(cluster):
    """A rank that reaches no safe point: the request times out, which is said, and no harm done."""
    cluster.start_agents()
    with Job(cluster, "state", "lost", 2, STOP, hosts=[1, 1, 1, 1],
             environment={"ZC_MIGRATE_PATIENCE": "5"}) as job:
        job.until_running()
        cluster.wait_for("the attempt fails", lambda: cluster.decisions("failed"))
        one = cluster.decisions("failed")[0]
        cluster.note(one["why"])
        check("rank 2 did not come to a safe point in time" in one["why"], f"{one}")
        check(job.status()["epoch"] == 1 and set(job.where()) == {"h1"}, "something was moved")
        says(cluster, 1, "did not come to a safe point")
        ends_well(job, "all right")


@test("agents-killed")
def agents_killed(cluster):
    """Decider or target killed in the middle of a move: the job goes on; the agent comes back."""
    agents = cluster.start_agents()
    for victim, role in zip(agents, ("decider", "target")):
        before = len(cluster.decisions("asked"))
        with Job(cluster, *HEAT, "--ballast", 32, hosts=[1, 1, 1, 1]) as job:
            job.until_running()
            cluster.wait_for("a move is asked for",
                             lambda: len(cluster.decisions("asked")) > before)  # noqa: B023
            # The record comes first: an agent killed before the job has heard of it asks nothing.
            cluster.wait_for("the move is under way", lambda: any(
                one.flags & BUSY or one.epoch > 1
                for _, one in job.profiles().values()))     # noqa: B023
            victim.kill()
            began = job.iterations()
            cluster.wait_for("the move is made",
                             lambda: (job.status() or {}).get("epoch", 1) >= 2)  # noqa: B023
            cluster.wait_for("the job goes on",
                             lambda: job.iterations() > began + 20)  # noqa: B023
            victim.start()
            cluster.wait_for("the agent sees its ranks again", lambda: len(
                (victim.ask("ranks") or {"ranks": [None] * 9})["ranks"]) ==     # noqa: B023
                job.where().count(victim.name))     # noqa: B023
            if role == "decider":
                cluster.wait_for("the restarted agent remembers its move",
                                 lambda: cluster.decisions("resumed"), 10 / 3)
            ends_well(job)
            cluster.note(f"{role} killed: {job.said().strip()}")


def killed_in(cluster, agents, phase, victim, comes_back):
    """VICTIM is killed while the job is in PHASE of the move, and is back before or after its end."""
    saved = cluster.directory / f"{phase}-{victim.name}"
    sign = saved / "waits"
    with Job(cluster, *HEAT, hosts=[1, 1, 1, 1], environment={
            "ZC_MIGRATE_FAULT": f"waits-in-{phase}", "ZC_MIGRATE_DIR": str(saved)}) as job:
        job.until_running()
        cluster.wait_for(f"the move is in {phase}", sign.exists)
        victim.kill()
        began = job.iterations()
        if comes_back:
            victim.start()
        sign.unlink()
        cluster.wait_for("the move is made", lambda: (job.status() or {}).get("epoch", 1) >= 2)
        cluster.wait_for("the job goes on", lambda: job.iterations() > began + 20)
        if not comes_back:
            victim.start()
        cluster.wait_for("each rank is seen by the agent of its host, and by no other", lambda: all(
            len((one.ask("ranks") or {"ranks": [None] * 9})["ranks"]) == job.where().count(one.name)
            for one in agents))
        pids = [rank["pid"] for rank in job.status()["ranks"]]
        check(len(set(pids)) == 4, f"{pids}")
        cluster.wait_for("the move is closed", lambda: all(
            (one.ask("status") or {"busy_with": "?"})["busy_with"] == "" for one in agents))
        ends_well(job)


@test("agents-killed-in-each-phase", tags={"long"})
def agents_killed_in_each_phase(cluster):
    """Of a move that the job is making: the job makes it without them."""
    agents = cluster.start_agents()
    for turn, phase in enumerate(("spawn", "data", "verdict", "link-up", "rebuild")):
        for victim in agents:
            killed_in(cluster, agents, phase, victim, comes_back=(turn + victim.host) % 2 == 0)


@test("full-target")
def full_target(cluster):
    """No room at the other host: refused before anything moves."""
    cluster.until_together([cluster.agent(1),
                            cluster.agent(2, settings={"decision": {"max_ranks": 1}})])
    with Job(cluster, *HEAT, hosts=[1, 1, 1, 2]) as job:
        job.until_running()
        cluster.busy(1, 4)
        time.sleep(12)
        check(not cluster.decisions("asked"), "asked for a move to a full host")
        untouched(job, ["h1", "h1", "h1", "h2"])
        # An operator's word is not an agent's: the job obeys.
        ends_well(job)


@test("observed")
def observed(cluster):
    """ZC_MIGRATE=observe: the decision, with its reason, in log, zcctl why and report; no move."""
    agents = cluster.start_agents()
    with Job(cluster, *HEAT, hosts=[1, 1, 2, 2], mode="observe") as job:
        job.until_running()
        cluster.busy(2, 4)
        cluster.wait_for("a move would have been made", lambda: cluster.decisions("would_move"))
        one = cluster.decisions("would_move")[0]
        cluster.note(one["why"])
        time.sleep(3)
        check(job.where() == ["h1", "h1", "h2", "h2"] and not cluster.decisions("asked"),
              "it did move")
        says(cluster, 2, "would_move rank", one["why"])
        check("would_move rank" in agents[1].logged(), "not in the log")
        ends_well(job)
    html = cluster.directory / "report.html"
    subprocess.run([cluster.tools / "zcctl", "report", *[a.record for a in agents], "-o", html],
                   check=True)
    text = html.read_text(encoding="utf-8")
    check("would_move" in text and "id=\"rate\"" in text, "not in the report")


def untouched(job, host_of):
    check(job.status()["epoch"] == 1 and job.where() == host_of,
          f"{job.name} was moved: {job.where()}")


def load_of(agent, host):
    """Of HOST, as AGENT knows it."""
    return next(n["load"] for n in agent.ask("nodes")["nodes"] if n["host"] == host)


def leave(*all_agents):
    """Before several jobs start: for agents that see one of them, what starts the other is load."""
    for agent in all_agents:
        agent.stop()


def come_back(cluster, agents, *jobs):
    """AGENTS, when JOBS run; they remember that they have lent no rank."""
    for job in jobs:
        job.until_running()
    for agent in agents:
        agent.start()
    cluster.until_together(agents)


@test("two-jobs")
def two_jobs(cluster):
    """Two jobs of one user on the same hosts: that which gains is moved, and their room is one."""
    agents = [cluster.agent(1, settings={"decision": {"max_ranks": 5}}), cluster.agent(2)]
    cluster.until_together(agents)
    leave(*agents)
    with Job(cluster, *HEAT, hosts=[1, 2, 2]) as job, \
            Job(cluster, *HEAT, hosts=[1, 1], name="other") as other:
        come_back(cluster, agents, job, other)
        cluster.wait_for("room is what both leave", lambda: [
            load_of(a, "h1")[k] for a in agents for k in ("ranks", "room")] == [3, 2, 3, 2])
        check(not cluster.decisions("asked"), "moved without need")
        # So many that, when the load has lasted, what is seen of it is enough for both to go.
        cluster.busy(2, 10)
        one = moved_by_itself(cluster, job)
        ids = {r["rank"]: r["job"] for r in agents[0].ranks() if r["job_name"] == "test"}
        check(one["to_host"] == "h1" and set(one["ranks"]) == {1, 2} and one["job"] in ids.values(),
              f"{one} {ids}")
        untouched(other, ["h1", "h1"])
        # A third one comes to the overloaded host, and stays: the other is full of ranks of two.
        with Job(cluster, *HEAT, hosts=[2, 1], name="third") as third:
            third.until_running()
            cluster.wait_for("the host is full", lambda: load_of(agents[1], "h1")["room"] == 0)
            time.sleep(10)
            untouched(third, ["h2", "h1"])
            ends_well(third)
        check(len(cluster.decisions("asked")) == 1, f"{cluster.decisions('asked')}")
        for host in (1, 2):
            code, _, said = cluster.zcctl(host, "--job", "nobody", "status")
            check(code != 0 and "nobody" in said, f"{code} {said}")
        ends_well(other)
        ends_well(job)


STRANGER = """
import socket, sys
s = socket.socket(socket.AF_UNIX)
s.settimeout(20)
try:
    s.connect(sys.argv[1])
    s.sendall(b'{"command":"status"}\\n')
    said = s.recv(100)
    print(f"was answered {said}" if said and b'"ok":false' not in said.replace(b" ", b"")
          else "turned away")
except PermissionError:
    print("no entry")
except (ConnectionResetError, BrokenPipeError):
    print("turned away")
"""


def knock(uid, path):
    """What another user hears at the socket PATH."""
    return subprocess.run(as_user(uid, [sys.executable, "-c", STRANGER, path]), text=True,
                          capture_output=True, timeout=60, check=False).stdout.strip()


@test("two-users")
def two_users(cluster):
    """Two users on the same hosts: each has agents, keys and jobs, and sees none of the other's."""
    theirs = cluster.of_user(54321, 7422)
    agents, other_agents = cluster.start_agents(), theirs.start_agents()
    leave(*agents, *other_agents)
    with Job(cluster, *HEAT, hosts=[1, 2, 2]) as job, \
            Job(theirs, *HEAT, hosts=[1, 1], start=2) as other:
        come_back(cluster, agents, job, other)
        come_back(theirs, other_agents)
        owners = {os.stat(f"/proc/{one.pid}").st_uid for _, one in other.profiles().values()}
        check(owners == {54321}, f"ranks of the other user run as {owners}")
        cluster.busy(2, 6)
        one = moved_by_itself(cluster, job)
        check(one["to_host"] == "h1" and set(one["ranks"]) <= {1, 2}, f"{one}")
        untouched(other, ["h1", "h1"])
        mine, his = ({r["job"] for a in all_of for r in a.ranks()}
                     for all_of in (agents, other_agents))
        check(len(mine) == 1 and len(his) == 1 and mine != his, f"{mine} {his}")
        check(all(r["job"] in his for r in theirs.decisions("asked")),
              "asked for a job that is not theirs")

        # To the other user our sockets are closed, and so they are when the directories are not.
        host = int(job.where()[0][1:])
        door = job.socket(host)
        locked = [d for d in door.parents if cluster.directory in d.parents]
        said = knock(54321, door)
        check(said == "no entry", said)
        for directory in locked:
            directory.chmod(0o711)
        door.chmod(0o666)
        said = knock(54321, door)
        for directory in locked:
            directory.chmod(0o700)
        door.chmod(0o600)
        check(said == "turned away", said)
        code, _, said = theirs.zcctl(host, "nodes", "--agent", agents[host - 1].socket)
        check(code == 3, f"{code} {said}")

        # An agent of theirs that is given the address of ours is a stranger there.
        stranger = theirs.agent(2, name="stranger", port=7500, seed_port=cluster.port)
        cluster.wait_for("strangers are counted",
                         lambda: agents[0].ask("status")["strangers"] > 0)
        check(set(stranger.states()) <= {"stranger"}, f"the stranger learnt of {stranger.states()}")
        for agent in agents + other_agents:
            check(set(agent.states()) <= {"h1", "h2"}, f"{agent.name} sees {agent.states()}")
        ends_well(other)
        ends_well(job)
