# SPDX-License-Identifier: BSD-3-Clause
"""Agents on 2 and on 4 hosts (network namespaces): joins, deaths, cuts, strangers, moves.

Their ranks are played by a program without MPI, rank_program.
"""
import contextlib
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time

from testbed.agents import FIRST_MOMENTS, AgentHosts, all_alive, make_key
from testbed.network import address
from testbed.outcome import Error, check
from testbed.suite import Bed, Suite

DEFAULT_PORT = 20000 + os.geteuid() % 12000


@contextlib.contextmanager
def with_tools(setup):
    setup.tools = pathlib.Path(setup.options.library).resolve() / "bin"
    for tool in ("zcmd", "zcctl", "rank_program"):
        if not os.access(setup.tools / tool, os.X_OK):
            raise Error(f"{setup.tools} lacks {tool} (make checks)")
    # Agents of other users have to reach their folders below it.
    setup.scratch.chmod(0o711)
    yield setup


suite = Suite("membership", "agents on two and four hosts: joins, deaths, cuts, strangers, moves",
              beds=[Bed("two-and-four-hosts", tags=frozenset({"nightly"}))],
              needs=("root", "ip", "curl"), open=with_tools)
SUITES = [suite]


def test(name, count=2):
    """Decorates a test of COUNT hosts."""
    def add(function):
        def with_hosts(setup):
            directory = tempfile.mkdtemp(prefix=f"{name}-", dir=setup.scratch)
            with AgentHosts(count, setup.tools, directory, patience=setup.patience,
                            environment=setup.environment) as hosts:
                function(hosts)
            return "; ".join(hosts.notes)
        suite.test(name)(with_hosts)
        return function
    return add


@test("death", 4)
def death(hosts):
    """An agent is killed: the others notice; it comes back as the one it was."""
    agents = hosts.start_agents()
    victim, others = agents[-1], agents[:-1]

    def identity():
        return {n["host"]: n["id"] for n in agents[0].ask("nodes")["nodes"]}[victim.name]
    before = identity()
    victim.kill()
    took = hosts.wait_for("the killed agent is seen to be dead", lambda: all(
        a.states().get(victim.name) == "dead" for a in others))
    hosts.note(f"a killed agent was dead to all others after {took:.1f} s")
    victim.start()
    took = hosts.wait_for("the restarted agent is back", lambda: all_alive(agents))
    check(identity() == before,
          f"the restarted agent has another name: {identity()}, was {before}")
    hosts.note(f"restarted, it was back after {took:.1f} s")


@test("cut", 4)
def cut(hosts):
    """The network to one host is cut for 10 s: both sides notice, and find each other again."""
    agents = hosts.start_agents()
    lonely, others = agents[-1], agents[:-1]
    begin = time.monotonic()
    hosts.network.cut(lonely.host)
    hosts.wait_for("the cut is noticed by the others", lambda: all(
        a.states().get(lonely.name) == "dead" for a in others), 10)
    noticed = time.monotonic() - begin
    time.sleep(max(0.0, 10 - noticed))
    check(all(s != "alive" for h, s in lonely.states().items() if h != lonely.name),
          "the lonely agent believes others to be alive after 10 s")
    hosts.network.heal(lonely.host)
    took = hosts.wait_for("all see each other again", lambda: all_alive(agents))
    check(all(a.process.poll() is None for a in agents), "an agent ended")
    hosts.note(f"a cut of 10 s was noticed after {noticed:.1f} s, "
               f"and healed {took:.1f} s after its end")


@test("leaving")
def leaving(hosts):
    """An agent that is asked to go says so, and is not waited for."""
    agents = hosts.start_agents()
    status = agents[-1].stop()
    check(status == 0, f"SIGTERM: exit status {status}")
    took = hosts.wait_for("it is known to have left", lambda: all(
        a.states().get(agents[-1].name) == "left" for a in agents[:-1]))
    hosts.note(f"known to have left after {took:.1f} s")


@test("strangers")
def strangers(hosts):
    """Nothing gets in without our key: another key, no key, and plain noise."""
    agents = hosts.start_agents()
    other_key = make_key(hosts.tools, hosts.directory / "other-key")
    # It listens at another port and knows where ours are.
    stranger = hosts.agent(2, key=other_key, name="stranger", port=7500, seed_port=DEFAULT_PORT)
    hosts.wait_for("the stranger runs", lambda: stranger.states() != {})
    noise = subprocess.run(hosts.network.on(
        2, sys.executable, "-c",
        "import socket,os\n"
        "for i in range(20):\n"
        f"    s = socket.create_connection(('{address(1)}', {DEFAULT_PORT}), 5)\n"
        "    s.sendall(os.urandom(200)); s.close()\n"), check=False, timeout=20 * hosts.patience)
    check(noise.returncode == 0, "could not make noise")
    hosts.wait_for("strangers are counted", lambda: agents[0].ask("status")["strangers"] > 0)
    time.sleep(3)
    check(len(stranger.states()) == 1, f"the stranger learnt of {stranger.states()}")
    check(all("stranger" not in agent.states() for agent in agents), "the stranger was let in")
    check(all_alive(agents), "strangers disturbed the network")
    count = agents[0].ask("status")["strangers"]
    hosts.note(f"{count} connections of strangers turned away; they learnt nothing")


class Job:
    """Plays libzcm: the job's socket at the host of rank 0, and its ranks, moved when asked."""

    def __init__(self, hosts, name, job, placement, agents, messages=1):
        self.hosts, self.name, self.job, self.epoch = hosts, name, job, 1
        self.environment = {**os.environ, "RANK_PROGRAM_MESSAGES": str(messages)}
        self.placement, self.agents = list(placement), {a.name: a for a in agents}
        self.processes, self.requests = {}, []
        self.lock = threading.Lock()
        for agent in agents:
            agent.profiles.mkdir(parents=True, exist_ok=True)
            for directory in (agent.profiles, agent.profiles.parent):
                directory.chmod(0o700)
        for rank in range(len(placement)):
            self.launch(rank)
        self.path = self.agents[placement[0]].profiles.parent / f"{name}.sock"
        self.server = socket.socket(socket.AF_UNIX)
        self.server.bind(str(self.path))
        self.server.listen()
        threading.Thread(target=self.serve, daemon=True).start()

    def launch(self, rank):
        agent = self.agents[self.placement[rank]]
        self.processes[rank] = subprocess.Popen(
            [self.hosts.tools / "rank_program", agent.profiles, f"{self.job:x}", self.name,
             str(rank), str(self.epoch), *self.placement], stdin=subprocess.DEVNULL,
            env=self.environment)

    def serve(self):
        while True:
            try:
                client, _ = self.server.accept()
            except OSError:
                return
            with client, self.lock:
                request = json.loads(client.makefile().readline())
                if request["command"] == "status":
                    reply = {"ok": True, "epoch": self.epoch}
                else:
                    reply = self.move(request)
                client.sendall(json.dumps(reply).encode() + b"\n")

    def move(self, request):
        self.requests.append(request)
        if request.get("epoch") != self.epoch:
            return {"ok": False, "code": 116, "error": "reconfigured since"}
        for one in request["moves"]:
            if one["host"] not in self.agents:
                return {"ok": False, "code": 22, "error": f"unknown host {one['host']}"}
        self.epoch += 1
        for one in request["moves"]:
            self.placement[one["rank"]] = one["host"]
        # All ranks are in a new world, so all tell their agents anew.
        for rank, process in list(self.processes.items()):
            process.terminate()
            process.wait()
            self.launch(rank)
        phases = dict(zip(["negotiation", "checkpoint", "spawn", "transfer", "restore", "rebuild"],
                          [12, 34, 560, 78, 9, 10]))
        return {"ok": True, "epoch": self.epoch, "bytes": 4194304 * len(request["moves"]),
                "phases": phases}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.close()
        for process in self.processes.values():
            process.kill()
            process.wait()


@test("moving-4", 4)
@test("moving-2")
def moving(hosts):
    """Four ranks on one processor, another node free: two of them go, in one step, and stay."""
    # An empty cgroup: no load of others, whatever the machine is doing.
    empty = hosts.directory / "cgroup"
    empty.mkdir()
    (empty / "cgroup.threads").write_text("")
    agents = hosts.start_agents(settings={
        "node": {"cpus": 1, "speed": 1, "cgroup": str(empty)},
        "decision": {"settle": 1, "oversubscribe": 4}, "cost": {"spawn": 0.1}})
    time.sleep(FIRST_MOMENTS)
    with Job(hosts, "heat", 0xabc1, ["h1"] * 4, agents) as job:
        took = hosts.wait_for("ranks are moved", lambda: job.requests)
        hosts.wait_for("the move is reported", lambda: any(
            r["what"] == "moved" for r in agents[0].ask("history")["records"]))
        hosts.wait_for("the ranks are seen at their new place", lambda: all(
            len(a.ranks()) == job.placement.count(a.name) for a in agents))
        moved = [r for r in agents[0].ask("history")["records"] if r["what"] == "moved"][0]
        hosts.note(f"moved after {took:.1f} s: {moved['why']}")
        if hosts.count == 2:
            check(sorted(job.placement.count(a.name) for a in agents) == [2, 2],
                  f"placed {job.placement}")
            check(job.placement[0] == job.placement[1], f"partners were parted: {job.placement}")
        time.sleep(15)
        # With two nodes one move is all there is to do; with four there are a few.
        check(len(job.requests) <= (1 if hosts.count == 2 else 4),
              f"not quiet: {len(job.requests)} requests")
        check(all(a.ask("groups") is not None for a in agents), "no answer about groups")
        report(hosts, agents, moved)


def report(hosts, agents, moved):
    """The records make a report that a browser draws."""
    html = hosts.directory / "report.html"
    subprocess.run([hosts.tools / "zcctl", "report", *[a.record for a in agents], "-o", html],
                   check=True)
    text = html.read_text(encoding="utf-8")
    for wanted in ("id=\"rate\"", "id=\"load\"", "id=\"moves\"", "id=\"groups\"", "spawn 560 ms",
                   moved["why"].replace("&", "&amp;")[:40]):
        check(wanted in text, f"the report lacks {wanted}")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if not chromium:
        hosts.note("the report was not seen in a browser (chromium is missing)")
        return
    picture = hosts.directory / "report.png"
    done = subprocess.run(
        [chromium, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
         f"--user-data-dir={hosts.directory}/chromium", "--window-size=1100,2200",
         f"--screenshot={picture}", html.as_uri()], capture_output=True, text=True,
        timeout=100 * hosts.patience, check=False)
    check(done.returncode == 0 and picture.exists() and picture.stat().st_size >= 10000,
          f"chromium drew nothing: {done.stderr[-300:]}")
    hosts.note(f"report drawn by chromium, {picture.stat().st_size} bytes of picture")


@test("missed-messages")
def missed_messages(hosts):
    """A rank sends more than is kept until the agent reads it: counted, and logged once."""
    agents = hosts.start_agents()
    said = "ranks send more messages than are read in time"
    with Job(hosts, "calm", 0xc, ["h1", "h1"], agents):
        hosts.wait_for("ranks are seen", lambda: len(agents[0].ranks()) == 2)
        time.sleep(5)
        check(agents[0].ask("status")["rank_messages_missed"] == 0, "messages of calm ranks are missed")
    with Job(hosts, "busy", 0xb, ["h1", "h1"], agents, messages=1000):
        hosts.wait_for("they are counted",
                       lambda: agents[0].ask("status")["rank_messages_missed"] > 10000)
        check("zcmd_rank_messages_missed_total " in agents[0].page("/metrics"), "no such metric")
    check(agents[0].logged().count(said) == 1, f"not logged once: {agents[0].logged()[-1000:]}")
    check(agents[1].ask("status")["rank_messages_missed"] == 0, "the other host has none")


@test("two-users")
def two_users(hosts):
    """Two networks of agents on the same hosts: neither sees nodes or ranks of the other."""
    other_key = make_key(hosts.tools, hosts.directory / "other-key")
    mine = [hosts.agent(host) for host in (1, 2)]
    theirs = [hosts.agent(host, key=other_key, name=f"u{host}", port=7422) for host in (1, 2)]
    hosts.until_together(mine)
    # A second one of ours at the port that all of ours have says what is wrong, and ends.
    again = hosts.agent(1, name="again")
    hosts.wait_for("the second agent at one port ends", lambda: again.process.poll() is not None)
    check(again.process.returncode != 0 and
          f"tcp://*:{DEFAULT_PORT}: Address already in use" in again.logged(),
          f"exit status {again.process.returncode}: {again.logged()}")
    hosts.until_together(theirs)
    with Job(hosts, "a", 0xa, ["h1", "h2"], mine), Job(hosts, "b", 0xb, ["u1", "u2"], theirs):
        hosts.wait_for("ranks are seen", lambda: all(len(a.ranks()) == 1 for a in mine + theirs))
        for agents, job in ((mine, "000000000000000a"), (theirs, "000000000000000b")):
            for agent in agents:
                check({r["job"] for r in agent.ranks()} == {job},
                      f"{agent.name} sees ranks of the other")
                check(set(agent.states()) == {a.name for a in agents},
                      f"{agent.name} sees {agent.states()}")


@test("default-ports")
def default_ports(hosts):
    """Users with nothing but defaults: each has a port of its own, which its other agents know."""
    # Where other users can run it, wherever this tree lies.
    hosts.directory.chmod(0o711)
    for place, names in (("bin", "zcmd"), ("lib", "libzcgroups.so*")):
        (hosts.directory / place).mkdir()
        (hosts.directory / place).chmod(0o755)
        for file in (hosts.tools.parent / place).glob(names):
            shutil.copy(file, hosts.directory / place)
    networks = []
    for uid in (None, 54321, 54322):
        key = make_key(hosts.tools, hosts.directory / f"key-{uid}")
        if uid is not None:
            os.chown(key, uid, uid)
        networks.append([hosts.agent(host, key=key, user=uid, name=f"u{uid}-{host}",
                                     tools=hosts.directory / "bin") for host in (1, 2)])
    for agents in networks:
        hosts.until_together(agents)
    for agents in networks:
        for agent in agents:
            check(set(agent.states()) == {one.name for one in agents},
                  f"{agent.name} sees {agent.states()}")
    # A seed where none of ours listens is not passed over in silence.
    lost = hosts.agent(2, name="lost", port=7600, seed_port=7601)
    hosts.wait_for("it says that no agent answers", lambda: "no agent answers at" in lost.logged())


@test("metrics")
def metrics(hosts):
    """Prometheus text on the socket and, if asked for, on loopback; commands not on loopback."""
    agent = hosts.agent(1, settings={"status": {"prometheus_port": 7999}})
    hosts.wait_for("there are metrics", lambda: agent.page("/metrics"))
    text = agent.page("/metrics")
    for line in text.splitlines():
        if not line.startswith("#"):
            float(line.rsplit(" ", 1)[1])
    for name in ("zcmd_cpus", "zcmd_demand", "zcmd_messages_refused_total", "zcmd_peers"):
        check(f"\n{name}" in "\n" + text, f"no {name}")

    def loopback(path, *words):
        return subprocess.run(hosts.network.on(
            1, "curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", *words,
            f"http://127.0.0.1:7999{path}"), capture_output=True, text=True, check=False).stdout
    got = [loopback("/metrics"), loopback("/history"), loopback("/leave", "-X", "POST")]
    check(got == ["200", "404", "404"], f"on loopback: {got}")
    check(agent.page("/nowhere") is None, "a page that does not exist was served")
    mode = os.stat(agent.socket).st_mode & 0o777
    check(mode == 0o600, f"socket has mode {mode:o}")


@test("watched")
def watched(hosts):
    """zcctl --watch: page after page, JSON line by line, until it is ended or the agent is gone."""
    agent = hosts.agent(1)
    hosts.wait_for("the agent answers", agent.states)
    limit = hosts.limit * hosts.patience

    def watch(*words):
        process = subprocess.Popen([hosts.tools / "zcctl", *words, "--watch", "--interval", "0.2",
                                    "--agent", agent.socket], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        hosts.stack.callback(process.wait)
        hosts.stack.callback(process.kill)
        return process
    for verb in ("nodes", "ranks", "groups", "history", "why"):
        process = watch(verb, "--json")
        pages = [json.loads(process.stdout.readline()) for _ in range(3)]
        check(all(page.keys() == pages[0].keys() for page in pages),
              f"{verb}: pages differ in kind: {pages}")
        process.terminate()
        process.communicate(timeout=limit)
    process = watch("nodes")
    lines = [process.stdout.readline() for _ in range(6)]
    heads = [line for line in lines if line.startswith("host")]
    check(len(heads) == 3 and not any("\x1b" in line for line in lines),
          f"three tables without control characters were wanted: {lines}")
    process.stdout.close()  # as `zcctl nodes --watch | head` does
    process.stdout = None
    process.communicate(timeout=limit)
    check(process.returncode != 0, "its output is not read any more, and that is no error")
    process = watch("nodes", "--json")
    process.stdout.readline()
    agent.kill()
    _, said = process.communicate(timeout=limit)
    check(process.returncode == 3 and "no agent at" in said,
          f"the agent is gone: exit status {process.returncode}, {said!r}")
    done = subprocess.run([hosts.tools / "zcctl", "nodes", "--watch", "--interval", "0"],
                          capture_output=True, text=True, check=False)
    check(done.returncode != 0 and "interval" in done.stderr,
          f"an interval of 0: exit status {done.returncode}, {done.stderr!r}")
