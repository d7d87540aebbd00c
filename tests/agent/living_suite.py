#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Agents and living jobs: heat2d on two hosts (network namespaces, with shares of the processors by
cgroups) is moved by zcmd alone, and ends with the result it always has.

usage: tests/agent/living TOOLS --mpich PREFIX [--only NAME]

TOOLS: directory of zcmd and zcctl; libzcm is beside it. Exit status: 0 all held; 1 one did not;
77 no right to make hosts here, or no MPICH.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import traceback

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from cluster import STOP, Cluster, Job, launch  # noqa: E402
from network import Failed, NOT_PERMITTED, as_user, need, wait_for  # noqa: E402

PATIENCE = 90  # the machine may be busy
IDENTICAL = "bit-identical to the serial solution"
HEAT = ["heat2d", "--rows", 32, "--columns", 512, "--iterations", 100000000, "--until", STOP]


def check(condition, text):
    if not condition:
        raise Failed(text)


def records(agents, what):
    """What the agents have written down of that kind, in the order of time."""
    found = []
    for agent in agents:
        for line in agent.record.read_text(encoding="utf-8").splitlines() if agent.record.exists() else []:
            try:
                one = json.loads(line)
            except ValueError:
                continue  # being written
            if one["kind"] == "decision" and one["what"] == what:
                found.append(one)
    return sorted(found, key=lambda one: one["time"])


def ends_well(job, says=IDENTICAL):
    job.stop()
    status = job.wait(120)
    check(status == 0 and says in job.said(), f"exit status {status}: {job.said()[-1500:]}")


def moved_by_itself(agents, job):
    took = wait_for("ranks are moved", lambda: records(agents, "moved"), PATIENCE)
    one = records(agents, "moved")[0]
    print(f"    after {took:.1f} s: {one['why']}")
    wait_for("ranks tell of their new place", lambda: all(
        job.where()[rank] == one["to_host"] for rank in one["ranks"]), PATIENCE)
    return one


def says(cluster, host, *texts):
    """zcctl why on HOST; agents publish once a second."""
    def said():
        code, out, problem = cluster.zcctl(host, "why")
        check(code == 0, problem)
        return all(text in out for text in texts)
    wait_for(f"zcctl why says {texts}", said, 10)


def overloaded(cluster):
    """One host is overloaded: its ranks go to the other, and the result is what it always is."""
    agents = cluster.start_agents()
    with Job(cluster, *HEAT, hosts=[1, 1, 2, 2]) as job:
        job.until_running()
        check(job.where() == ["h1", "h1", "h2", "h2"], f"{job.where()}")
        time.sleep(6)
        check(not records(agents, "asked"), "moved without need")
        cluster.busy(2, 4)
        one = moved_by_itself(agents, job)
        check(one["to_host"] == "h1" and set(one["ranks"]) <= {2, 3}, f"{one}")
        check(one["bytes"] > 2 * 32 * 512 * 8 and one["phases_ms"]["spawn"] > 0, f"{one}")
        status = job.status()
        check(status["epoch"] == 2 and status["ranks"][one["ranks"][0]]["host"] == "h1", f"{status}")
        # What zcctl says of it, in words and as JSON, where the decision was taken.
        says(cluster, 2, "moved rank", one["why"])
        code, out, _ = cluster.zcctl(2, "history", "--json")
        check(code == 0 and any(r["what"] == "moved" for r in json.loads(out)["records"]), out)
        code, out, _ = cluster.zcctl(1, "--json", "ranks")
        ranks = {r["rank"]: r for r in json.loads(out)["ranks"]}
        check(set(ranks) >= {0, 1, one["ranks"][0]}, out)
        check(ranks[0]["peers"] and ranks[0]["job_name"] == "test" and ranks[0]["epoch"] == 2, out)
        check(0 < ranks[0]["mpi_share"] <= 1 and ranks[0]["iterations_per_s"] > 0, out)
        for verb in ("nodes", "groups", "ranks"):
            check(cluster.zcctl(1, verb)[0] == 0, verb)
        ends_well(job)
    # No agent there: said so.
    agents[0].stop()
    code, _, said = cluster.zcctl(1, "nodes")
    check(code == 3 and "no agent at" in said, f"{code} {said}")


def rank_zero_and_its_socket(cluster):
    """All four on one host, another free: some go; then rank 0 too, and the next request finds it."""
    agents = cluster.start_agents()
    with Job(cluster, *HEAT, hosts=[1, 1, 1, 1]) as job:
        job.until_running()
        one = moved_by_itself(agents, job)
        host = job.where()
        # The operator may do so as well; the agents learn of it.
        old, new = (1, "h2") if host[0] == "h1" else (2, "h1")
        going = [r for r in range(4) if host[r] == host[0]]
        code, out, said = cluster.zcctl(old, "--json", "move", "--rank", ",".join(map(str, going)), "--to", new)
        check(code == 0, f"{out} {said}")
        check(all(job.where()[r] == new for r in going), f"{job.where()}")
        check(job.status()["epoch"] == 3, f"{job.status()}")
        wait_for("agents see where ranks are", lambda: all(
            len(a.ask("ranks")["ranks"]) == job.where().count(a.name) for a in agents), 30)
        ends_well(job)


def lost_rank(cluster):
    """A rank that reaches no safe point: the request times out, which is said, and no harm done."""
    agents = cluster.start_agents()
    with Job(cluster, "state", "lost", 2, STOP, hosts=[1, 1, 1, 1],
             environment={"ZC_MIGRATE_PATIENCE": "5"}) as job:
        job.until_running()
        wait_for("the attempt fails", lambda: records(agents, "failed"), PATIENCE)
        one = records(agents, "failed")[0]
        print(f"    {one['why']}")
        check("rank 2 did not come to a safe point in time" in one["why"], f"{one}")
        check(job.status()["epoch"] == 1 and set(job.where()) == {"h1"}, "something was moved")
        says(cluster, 1, "did not come to a safe point")
        ends_well(job, "all right")


def agents_killed(cluster):
    """Decider or target killed in the middle of a move: the job goes on; the agent comes back."""
    for victim_is_decider in (True, False):
        agents = [cluster.agents[i] for i in range(2)] if cluster.agents else cluster.start_agents()
        before = len(records(agents, "asked"))
        with Job(cluster, *HEAT, "--ballast", 32, hosts=[1, 1, 1, 1]) as job:
            job.until_running()
            wait_for("a move is asked for", lambda: len(records(agents, "asked")) > before, PATIENCE)
            victim = agents[0] if victim_is_decider else agents[1]
            victim.kill()
            began = job.iterations()
            wait_for("the move is made", lambda: (job.status() or {}).get("epoch", 1) >= 2, PATIENCE)
            wait_for("the job goes on", lambda: job.iterations() > began + 20, PATIENCE)
            victim.start()
            wait_for("the agent sees its ranks again", lambda: len(
                (victim.ask("ranks") or {"ranks": [None] * 9})["ranks"]) == job.where().count(victim.name), PATIENCE)
            if victim_is_decider:
                wait_for("the restarted agent remembers its move", lambda: records(agents, "resumed"), 10)
            ends_well(job)
            print(f"    {'decider' if victim_is_decider else 'target'} killed: {job.said().strip()}")


def full_target(cluster):
    """No room at the other host: refused before anything moves."""
    agents = [cluster.agent(1), cluster.agent(2, settings={"decision": {"max_ranks": 1}})]
    wait_for("agents see each other", lambda: agents[0].states().get("h2") == "alive", PATIENCE)
    time.sleep(4)
    with Job(cluster, *HEAT, hosts=[1, 1, 1, 2]) as job:
        job.until_running()
        cluster.busy(1, 4)
        time.sleep(12)
        check(not records(agents, "asked"), "asked for a move to a full host")
        check(job.status()["epoch"] == 1 and job.where() == ["h1", "h1", "h1", "h2"], f"{job.where()}")
        # An operator's word is not an agent's: the job obeys.
        ends_well(job)


def observed(cluster):
    """ZC_MIGRATE=observe: the decision, with its reason, in log, zcctl why and report; no move."""
    agents = cluster.start_agents()
    with Job(cluster, *HEAT, hosts=[1, 1, 2, 2], mode="observe") as job:
        job.until_running()
        cluster.busy(2, 4)
        wait_for("a move would have been made", lambda: records(agents, "would_move"), PATIENCE)
        one = records(agents, "would_move")[0]
        print(f"    {one['why']}")
        time.sleep(3)
        check(job.where() == ["h1", "h1", "h2", "h2"] and not records(agents, "asked"), "it did move")
        says(cluster, 2, "would_move rank", one["why"])
        check("would_move rank" in agents[1].log.read_text(encoding="utf-8"), "not in the log")
        ends_well(job)
    html = cluster.directory / "report.html"
    subprocess.run([cluster.tools / "zcctl", "report", *[a.record for a in agents], "-o", html], check=True)
    text = html.read_text(encoding="utf-8")
    check("would_move" in text and "id=\"rate\"" in text, "not in the report")


def untouched(job, host_of):
    check(job.status()["epoch"] == 1 and job.where() == host_of, f"{job.name} was moved: {job.where()}")


def load_of(agent, host):
    """Of HOST, as AGENT knows it."""
    return next(n["load"] for n in agent.ask("nodes")["nodes"] if n["host"] == host)


def two_jobs(cluster):
    """Two jobs of one user on the same hosts: the one that gains is moved, and their room is one."""
    agents = [cluster.agent(1, settings={"decision": {"max_ranks": 5}}), cluster.agent(2)]
    wait_for("agents see each other", lambda: all(len(a.states()) == 2 for a in agents), PATIENCE)
    time.sleep(4)
    with Job(cluster, *HEAT, hosts=[1, 2, 2]) as job, Job(cluster, *HEAT, hosts=[1, 1], name="other") as other:
        job.until_running()
        other.until_running()
        wait_for("room is what both leave", lambda: [load_of(a, "h1")[k] for a in agents for k in ("ranks", "room")]
                 == [3, 2, 3, 2], PATIENCE)
        check(not records(agents, "asked"), "moved without need")
        cluster.busy(2, 6)
        one = moved_by_itself(agents, job)
        ids = {r["rank"]: r["job"] for r in agents[0].ask("ranks")["ranks"] if r["job_name"] == "test"}
        check(one["to_host"] == "h1" and set(one["ranks"]) == {1, 2} and one["job"] in ids.values(), f"{one} {ids}")
        untouched(other, ["h1", "h1"])
        # A third one comes to the overloaded host, and stays: the other is full of ranks of two jobs.
        with Job(cluster, *HEAT, hosts=[2, 1], name="third") as third:
            third.until_running()
            wait_for("the host is full", lambda: load_of(agents[1], "h1")["room"] == 0, PATIENCE)
            time.sleep(10)
            untouched(third, ["h2", "h1"])
            ends_well(third)
        check(len(records(agents, "asked")) == 1, f"{records(agents, 'asked')}")
        for host in (1, 2):
            code, _, said = cluster.zcctl(host, "--job", "nobody", "status")
            check(code != 0 and "nobody" in said, f"{code} {said}")
        ends_well(other)
        ends_well(job)


STRANGER = """
import socket, sys
for path in sys.argv[1:]:
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(20)
    try:
        s.connect(path)
        s.sendall(b'{"command":"status"}\\n')
        said = s.recv(100)
        print("turned away" if not said or b'"ok":false' in said.replace(b" ", b"") else f"was told {said}")
    except PermissionError:
        print("no entry")
    except (ConnectionResetError, BrokenPipeError):
        print("turned away")
"""


def two_users(cluster):
    """Two users on the same hosts: each has agents, keys and jobs, and sees none of the other's."""
    theirs = cluster.of_user(54321, 7422)
    try:
        agents, other_agents = cluster.start_agents(), theirs.start_agents()
        with Job(cluster, *HEAT, hosts=[1, 2, 2]) as job, Job(theirs, *HEAT, hosts=[1, 1], start=2) as other:
            job.until_running()
            other.until_running()
            owners = {os.stat(f"/proc/{one.pid}").st_uid for _, one in other.profiles().values()}
            check(owners == {54321}, f"ranks of the other user run as {owners}")
            cluster.busy(2, 6)
            one = moved_by_itself(agents, job)
            check(one["to_host"] == "h1" and set(one["ranks"]) <= {1, 2}, f"{one}")
            untouched(other, ["h1", "h1"])
            mine, his = ({r["job"] for a in all_of for r in a.ask("ranks")["ranks"]} for all_of in (agents, other_agents))
            check(len(mine) == 1 and len(his) == 1 and mine != his, f"{mine} {his}")
            check(all(r["job"] in his for r in records(other_agents, "asked")), "asked for a job that is not theirs")

            # To the other user our sockets are closed, and so they are when the directories are not.
            host = int(job.where()[0][1:])
            doors = [job.socket(host), agents[host - 1].socket]
            locked = [d for d in [*doors[0].parents] if cluster.directory in d.parents]

            def knock():
                return subprocess.run(as_user(54321, [sys.executable, "-c", STRANGER, *doors[:1]]), capture_output=True,
                                      text=True, timeout=60, check=False).stdout.strip()
            check(knock() == "no entry", knock())
            for directory in locked:
                directory.chmod(0o711)
            doors[0].chmod(0o666)
            said = knock()
            for directory in locked:
                directory.chmod(0o700)
            doors[0].chmod(0o600)
            check(said == "turned away", said)
            code, _, said = theirs.zcctl(host, "nodes", "--agent", doors[1])
            check(code == 3, f"{code} {said}")

            # Their agent, told where ours are, is a stranger there.
            stranger = theirs.agent(2, name="stranger", port=7500, seed_port=cluster.port)
            wait_for("strangers are counted", lambda: agents[0].ask("status")["strangers"] > 0, PATIENCE)
            check(set(stranger.states()) <= {"stranger"}, f"the stranger learnt of {stranger.states()}")
            for all_of in (agents, other_agents):
                for agent in all_of:
                    check(set(agent.states()) <= {"h1", "h2"}, f"{agent.name} sees {agent.states()}")
            ends_well(other)
            ends_well(job)
    finally:
        for agent in theirs.agents:
            if agent.process:
                agent.kill()


TESTS = {"overloaded": overloaded, "rank-zero": rank_zero_and_its_socket, "lost-rank": lost_rank,
         "agents-killed": agents_killed, "full-target": full_target, "observed": observed,
         "two-jobs": two_jobs, "two-users": two_users}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tools")
    parser.add_argument("--mpich", metavar="PREFIX", help="MPICH to use (default: $ZC_MPICH)")
    parser.add_argument("--only", choices=TESTS, action="append")
    options = parser.parse_args()
    launch.exit_on_sigterm()
    why = need("ip", "curl")
    if not why and not (options.mpich or os.environ.get("ZC_MPICH")):
        why = "no MPICH given (--mpich or ZC_MPICH)"
    if why:
        print(f"SKIPPED: {why}")
        return NOT_PERMITTED
    prefix = launch.prefix_or_die(options.mpich)
    failed = 0
    for name in options.only or TESTS:
        test = TESTS[name]
        print(f"{name}: {test.__doc__.splitlines()[0]}", flush=True)
        begin = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="zca-") as directory:
            try:
                with Cluster(2, options.tools, prefix, pathlib.Path(directory), [0.5, 0.5]) as cluster:
                    try:
                        test(cluster)
                    except Exception:
                        for agent in cluster.agents:
                            lines = agent.log.read_text(errors="replace").splitlines()[-15:]
                            print(f"  -- {agent.name}:\n    " + "\n    ".join(lines))
                        raise
                print(f"  ok ({time.monotonic() - begin:.0f} s)", flush=True)
            except PermissionError as error:
                print(f"SKIPPED: {error}")
                return NOT_PERMITTED
            except Failed as error:
                failed += 1
                print(f"  FAILED: {error}", flush=True)
            except Exception:  # pylint: disable=broad-except
                failed += 1
                traceback.print_exc()
                print("  FAILED", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
