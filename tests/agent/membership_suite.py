#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Agents on 2 and on 4 hosts (network namespaces): joins, deaths, cuts, strangers, moves.

usage: tests/agent/membership TOOLS RANK_PROGRAM [--only NAME] [--keep]

TOOLS: directory of zcmd and zcctl. Exit status: 0 all held; 1 one did not;
77 no right to make hosts here.
"""
import argparse
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
import traceback

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from network import Agent, Failed, Network, NOT_PERMITTED, make_key, need, wait_for  # noqa: E402

PATIENCE = 60  # the machine may be busy
DEFAULT_PORT = 20000 + os.geteuid() % 12000
# Faster than the defaults, so that a test takes seconds.
QUICK = {"membership": {"period": 0.5, "ping_timeout": 0.4, "suspicion": 3, "probe_period": 1}}


class Setting:
    """Hosts, agents and a key that belong together."""

    def __init__(self, options, hosts, directory):
        self.options, self.directory = options, pathlib.Path(directory)
        self.network = Network(hosts)
        self.key = None
        self.agents = []
        self.extra = []

    def __enter__(self):
        self.network.__enter__()
        self.key = make_key(self.options.tools, self.directory / "key")
        return self

    def __exit__(self, *_):
        for agent in self.agents:
            if agent.process:
                agent.kill()
        for process in self.extra:
            process.kill()
            process.wait()
        self.network.__exit__()

    def agent(self, host, **words):
        settings = {**QUICK, **words.pop("settings", {})}
        agent = Agent(self.network, host, words.pop("tools", self.options.tools), self.directory,
                      words.pop("key", self.key), **words, **settings)
        self.agents.append(agent)
        return agent.start()

    def all_alive(self, agents):
        names = {a.name for a in agents}
        return all({h for h, s in a.states().items() if s == "alive"} >= names for a in agents)


def together(setting):
    agents = [setting.agent(host) for host in range(1, setting.network.count + 1)]
    took = wait_for("all agents see each other", lambda: setting.all_alive(agents), PATIENCE)
    print(f"    {len(agents)} agents knew each other after {took:.1f} s")
    return agents


def death(setting):
    """An agent is killed: the others notice; it comes back as the one it was."""
    agents = together(setting)
    victim, others = agents[-1], agents[:-1]
    identity = {n["host"]: n["id"] for n in agents[0].ask("nodes")["nodes"]}[victim.name]
    victim.kill()
    took = wait_for("the killed agent is seen to be dead",
                    lambda: all(a.states().get(victim.name) == "dead" for a in others), PATIENCE)
    print(f"    a killed agent was dead to all others after {took:.1f} s")
    victim.start()
    took = wait_for("the restarted agent is back", lambda: setting.all_alive(agents), PATIENCE)
    again = {n["host"]: n["id"] for n in agents[0].ask("nodes")["nodes"]}[victim.name]
    if again != identity:
        raise Failed(f"the restarted agent has another name: {again}, was {identity}")
    print(f"    restarted, it was back after {took:.1f} s")


def cut(setting):
    """The network to one host is cut for 10 s: both sides notice, and find each other again."""
    agents = together(setting)
    lonely, others = agents[-1], agents[:-1]
    begin = time.monotonic()
    setting.network.cut(lonely.host)
    wait_for("the cut is noticed by the others",
             lambda: all(a.states().get(lonely.name) == "dead" for a in others), 30)
    noticed = time.monotonic() - begin
    time.sleep(max(0.0, 10 - noticed))
    if any(s == "alive" for h, s in lonely.states().items() if h != lonely.name):
        raise Failed("the lonely agent believes others to be alive after 10 s")
    setting.network.heal(lonely.host)
    took = wait_for("all see each other again", lambda: setting.all_alive(agents), PATIENCE)
    if any(a.process.poll() is not None for a in agents):
        raise Failed("an agent ended")
    print(f"    a cut of 10 s was noticed after {noticed:.1f} s, and healed {took:.1f} s after its end")


def leaving(setting):
    """An agent that is told to go says so, and is not waited for."""
    agents = together(setting)
    status = agents[-1].stop()
    if status != 0:
        raise Failed(f"SIGTERM: exit status {status}")
    took = wait_for("it is known to have left",
                    lambda: all(a.states().get(agents[-1].name) == "left" for a in agents[:-1]), PATIENCE)
    print(f"    known to have left after {took:.1f} s")


def strangers(setting):
    """Without our key nobody gets anything: another key, no key, and plain noise."""
    agents = together(setting)
    other_key = make_key(setting.options.tools, setting.directory / "other-key")
    # It listens at another port and knows where ours are.
    stranger = setting.agent(2, key=other_key, name="stranger", port=7500, seed_port=DEFAULT_PORT)
    wait_for("the stranger runs", lambda: stranger.states() != {}, PATIENCE)
    noise = subprocess.run(setting.network.command(2, [
        sys.executable, "-c",
        "import socket,os\n"
        f"for i in range(20):\n"
        f"    s = socket.create_connection(('{setting.network.address(1)}', {DEFAULT_PORT}), 5)\n"
        "    s.sendall(os.urandom(200)); s.close()\n"]), check=False, timeout=60)
    if noise.returncode != 0:
        raise Failed("could not make noise")
    wait_for("strangers are counted", lambda: agents[0].ask("status")["strangers"] > 0, PATIENCE)
    time.sleep(3)
    if len(stranger.states()) != 1:
        raise Failed(f"the stranger learnt of {stranger.states()}")
    for agent in agents:
        if "stranger" in agent.states():
            raise Failed("the stranger was let in")
    if not setting.all_alive(agents):
        raise Failed("strangers disturbed the network")
    count = agents[0].ask("status")["strangers"]
    print(f"    {count} connections of strangers turned away; they learnt nothing")


class Job:
    """Plays libzcm: the job's socket at the host of rank 0, and its ranks, moved when asked."""

    def __init__(self, setting, name, job, placement, agents):
        self.setting, self.name, self.job, self.epoch = setting, name, job, 1
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
            [self.setting.options.rank_program, agent.profiles, f"{self.job:x}", self.name, str(rank),
             str(self.epoch), *self.placement], stdin=subprocess.DEVNULL)

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
        # Everybody is in a new world, so everybody tells anew.
        for rank, process in list(self.processes.items()):
            process.terminate()
            process.wait()
            self.launch(rank)
        phases = dict(zip(["negotiation", "checkpoint", "spawn", "transfer", "restore", "rebuild"],
                          [12, 34, 560, 78, 9, 10]))
        return {"ok": True, "epoch": self.epoch, "bytes": 4194304 * len(request["moves"]), "phases": phases}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.close()
        for process in self.processes.values():
            process.kill()
            process.wait()


def moving(setting):
    """Four ranks on one processor, another node free: two of them go, in one step, and stay."""
    settings = {"node": {"cpus": 1, "speed": 1}, "decision": {"settle": 1, "oversubscribe": 4},
                "cost": {"spawn": 0.1}}
    # An empty cgroup: nobody else's load, whatever the machine is doing.
    empty = setting.directory / "cgroup"
    empty.mkdir(exist_ok=True)
    (empty / "cgroup.threads").write_text("")
    settings["node"]["cgroup"] = str(empty)
    agents = [setting.agent(host, settings=settings) for host in range(1, setting.network.count + 1)]
    wait_for("all agents see each other", lambda: setting.all_alive(agents), PATIENCE)
    # Agents without a memory leave alone for a minute what they find in their first moments.
    time.sleep(4)
    with Job(setting, "heat", 0xabc1, ["h1"] * 4, agents) as job:
        took = wait_for("ranks are moved", lambda: job.requests, PATIENCE)
        wait_for("the move is reported", lambda: any(
            r["what"] == "moved" for r in agents[0].ask("history")["records"]), PATIENCE)
        wait_for("the ranks are seen at their new place", lambda: all(
            len(a.ask("ranks")["ranks"]) == job.placement.count(a.name) for a in agents), PATIENCE)
        moved = [r for r in agents[0].ask("history")["records"] if r["what"] == "moved"][0]
        print(f"    after {took:.1f} s: {moved['why']}")
        spread = sorted(job.placement.count(a.name) for a in agents)
        if setting.network.count == 2 and spread != [2, 2]:
            raise Failed(f"placed {job.placement}")
        ranks = {r: h for r, h in enumerate(job.placement)}
        if setting.network.count == 2 and ranks[0] != ranks[1]:
            raise Failed(f"partners were parted: {job.placement}")
        time.sleep(15)
        # With two nodes one move is all there is to do; with four there are a few.
        if len(job.requests) > (1 if setting.network.count == 2 else 4):
            raise Failed(f"not quiet: {len(job.requests)} requests")
        if any(a.ask("groups") is None for a in agents):
            raise Failed("no answer about groups")
        report(setting, agents, moved)


def report(setting, agents, moved):
    """The records make a report that a browser draws."""
    html = setting.directory / "report.html"
    subprocess.run([pathlib.Path(setting.options.tools) / "zcctl", "report",
                    *[a.record for a in agents], "-o", html], check=True)
    text = html.read_text(encoding="utf-8")
    for wanted in ("id=\"rate\"", "id=\"load\"", "id=\"moves\"", "id=\"groups\"", "spawn 560 ms",
                   moved["why"].replace("&", "&amp;")[:40]):
        if wanted not in text:
            raise Failed(f"the report lacks {wanted}")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if not chromium:
        print("    SKIPPED: the report in a browser (chromium is missing)")
        return
    picture = setting.directory / "report.png"
    done = subprocess.run([chromium, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
                           f"--user-data-dir={setting.directory}/chromium", "--window-size=1100,2200",
                           f"--screenshot={picture}", html.as_uri()], capture_output=True, text=True,
                          timeout=300, check=False)
    if done.returncode != 0 or not picture.exists() or picture.stat().st_size < 10000:
        raise Failed(f"chromium drew nothing: {done.stderr[-300:]}")
    if setting.options.keep:
        shutil.copy(picture, setting.options.keep)
    print(f"    report drawn by chromium, {picture.stat().st_size} bytes of picture")


def two_users(setting):
    """Two networks of agents on the same hosts: neither sees nodes or ranks of the other."""
    other_key = make_key(setting.options.tools, setting.directory / "other-key")
    mine = [setting.agent(host) for host in (1, 2)]
    theirs = [setting.agent(host, key=other_key, name=f"u{host}", port=7422) for host in (1, 2)]
    wait_for("mine see each other", lambda: setting.all_alive(mine), PATIENCE)
    # A second one of ours at the port that all of ours have says what is wrong, and ends.
    again = setting.agent(1, name="again")
    wait_for("the second agent at one port ends", lambda: again.process.poll() is not None, PATIENCE)
    said = again.log.read_text(encoding="utf-8")
    if again.process.returncode == 0 or f"tcp://*:{DEFAULT_PORT}: Address already in use" not in said:
        raise Failed(f"exit status {again.process.returncode}: {said}")
    wait_for("theirs see each other", lambda: setting.all_alive(theirs), PATIENCE)
    with Job(setting, "a", 0xa, ["h1", "h2"], mine), Job(setting, "b", 0xb, ["u1", "u2"], theirs):
        wait_for("ranks are seen", lambda: all(len(a.ask("ranks")["ranks"]) == 1 for a in mine + theirs),
                 PATIENCE)
        for agents, job in ((mine, "000000000000000a"), (theirs, "000000000000000b")):
            for agent in agents:
                if {r["job"] for r in agent.ask("ranks")["ranks"]} != {job}:
                    raise Failed(f"{agent.name} sees ranks of the other")
                if set(agent.states()) != {a.name for a in agents}:
                    raise Failed(f"{agent.name} sees {agent.states()}")


def default_ports(setting):
    """Users with nothing but defaults on one host: each at a port of its own, which its other agents know."""
    uids = (None, 54321, 54322)
    # Where other users can run it, wherever this tree lies.
    setting.directory.chmod(0o711)
    tools = setting.directory / "bin"
    for place, names in (("bin", "zcmd"), ("lib", "libzcgroups.so*")):
        (setting.directory / place).mkdir()
        (setting.directory / place).chmod(0o755)
        for file in (pathlib.Path(setting.options.tools).parent / place).glob(names):
            shutil.copy(file, setting.directory / place)
    networks = []
    for uid in uids:
        key = make_key(setting.options.tools, setting.directory / f"key-{uid}")
        if uid is not None:
            os.chown(key, uid, uid)
        networks.append([setting.agent(host, key=key, user=uid, name=f"u{uid}-{host}", tools=tools)
                         for host in (1, 2)])
    for agents in networks:
        wait_for("those of one user see each other", lambda: setting.all_alive(agents), PATIENCE)  # noqa: B023
    for agents in networks:
        for agent in agents:
            if set(agent.states()) != {one.name for one in agents}:
                raise Failed(f"{agent.name} sees {agent.states()}")
    # A seed where nobody of ours listens is not passed over in silence.
    lost = setting.agent(2, name="lost", port=7600, seed_port=7601)
    wait_for("it says that nobody answers", lambda: "no agent answers at" in lost.log.read_text(encoding="utf-8"), PATIENCE)


def metrics(setting):
    """Prometheus text on the socket and, if asked for, on loopback; commands not on loopback."""
    agent = setting.agent(1, settings={"status": {"prometheus_port": 7999}})
    wait_for("there are metrics", lambda: agent.page("/metrics"), PATIENCE)
    text = agent.page("/metrics")
    for line in text.splitlines():
        if not line.startswith("#"):
            float(line.rsplit(" ", 1)[1])
    for name in ("zcmd_cpus", "zcmd_demand", "zcmd_messages_refused_total", "zcmd_peers"):
        if f"\n{name}" not in "\n" + text:
            raise Failed(f"no {name}")

    def loopback(path, *words):
        return subprocess.run(setting.network.command(1, ["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}",
                                                          *words, f"http://127.0.0.1:7999{path}"]),
                              capture_output=True, text=True, check=False).stdout
    got = [loopback("/metrics"), loopback("/history"), loopback("/leave", "-X", "POST")]
    if got != ["200", "404", "404"]:
        raise Failed(f"on loopback: {got}")
    if agent.page("/nowhere") is not None:
        raise Failed("a page that does not exist was served")
    mode = os.stat(agent.socket).st_mode & 0o777
    if mode != 0o600:
        raise Failed(f"socket has mode {mode:o}")


def watched(setting):
    """zcctl --watch: page after page, JSON line by line, until told to stop, or the agent is gone."""
    agent = setting.agent(1)
    wait_for("the agent answers", lambda: agent.states(), PATIENCE)

    def watch(*words):
        process = subprocess.Popen([pathlib.Path(setting.options.tools) / "zcctl", *words, "--watch", "--interval",
                                    "0.2", "--agent", agent.socket], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   text=True)
        setting.extra.append(process)
        return process
    for verb in ("nodes", "ranks", "groups", "history", "why"):
        process = watch(verb, "--json")
        pages = [json.loads(process.stdout.readline()) for _ in range(3)]
        if any(page.keys() != pages[0].keys() for page in pages):
            raise Failed(f"{verb}: pages differ in kind: {pages}")
        process.terminate()
        process.communicate(timeout=PATIENCE)
    process = watch("nodes")
    lines = [process.stdout.readline() for _ in range(6)]
    heads = [line for line in lines if line.startswith("host")]
    if len(heads) != 3 or any("\x1b" in line for line in lines):
        raise Failed(f"three tables without control characters were wanted: {lines}")
    process.stdout.close()  # as `zcctl nodes --watch | head` does
    process.stdout = None
    process.communicate(timeout=PATIENCE)
    if process.returncode == 0:
        raise Failed("nobody reads any more, and that is no error")
    process = watch("nodes", "--json")
    process.stdout.readline()
    agent.kill()
    _, said = process.communicate(timeout=PATIENCE)
    if process.returncode != 3 or "no agent at" not in said:
        raise Failed(f"the agent is gone: exit status {process.returncode}, {said!r}")
    done = subprocess.run([pathlib.Path(setting.options.tools) / "zcctl", "nodes", "--watch", "--interval", "0"],
                          capture_output=True, text=True, check=False)
    if done.returncode == 0 or "interval" not in done.stderr:
        raise Failed(f"an interval of 0: exit status {done.returncode}, {done.stderr!r}")


TESTS = {"death": (death, 4), "cut": (cut, 4), "leaving": (leaving, 2), "strangers": (strangers, 2),
         "moving-2": (moving, 2), "moving-4": (moving, 4), "two-users": (two_users, 2),
         "default-ports": (default_ports, 2), "metrics": (metrics, 1),
         "watched": (watched, 1)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tools")
    parser.add_argument("rank_program")
    parser.add_argument("--only", choices=TESTS, action="append")
    parser.add_argument("--keep", metavar="PNG", help="keep the picture of the report")
    options = parser.parse_args()
    why = need("ip", "curl")
    if why:
        print(f"SKIPPED: {why}")
        return NOT_PERMITTED
    failed = 0
    for name in options.only or TESTS:
        test, hosts = TESTS[name]
        print(f"{name}: {test.__doc__.splitlines()[0]}", flush=True)
        with tempfile.TemporaryDirectory(prefix="zca-") as directory:
            try:
                with Setting(options, hosts, directory) as setting:
                    try:
                        test(setting)
                    except Exception:
                        for agent in setting.agents:
                            with contextlib.suppress(OSError):
                                tail = agent.log.read_text(errors="replace").splitlines()[-12:]
                                print(f"  -- {agent.name}:\n    " + "\n    ".join(tail))
                        raise
                print("  ok", flush=True)
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
