# SPDX-License-Identifier: BSD-3-Clause
"""Agents (zcmd) on hosts of one machine.

    with AgentHosts(4, tools, directory) as hosts:
        agents = hosts.start_agents()
        hosts.network.cut(4)
        hosts.wait_for("h4 is dead", lambda: agents[0].states()["h4"] == "dead")
"""
import contextlib
import json
import os
import pathlib
import signal
import subprocess

from testbed import outcome
from testbed.network import Network, address, own_name
from testbed.outcome import Fail, Skip

# Faster than the defaults, so that a test takes seconds.
QUICK = {"membership": {"period": 0.5, "ping_timeout": 0.4, "suspicion": 3, "probe_period": 1}}
# Seconds: what agents without a memory find in them they leave alone for a minute.
FIRST_MOMENTS = 4
LOG_LINES = 30      # of all agents, shown when a test fails


class Agent:
    """zcmd on one host, with a directory of its own as $HOME and $XDG_RUNTIME_DIR."""

    def __init__(self, network, host, tools, directory, key, tables, *, seeds=(1,), name=None,
                 port=None, user=None, seed_port=None, environment=None):
        """TABLES: of its configuration, but for "agent".

        user:      the uid it runs as, which owns KEY; None: ours
        port:      None: what zcmd takes by itself
        seed_port: of the agents it joins by; None: as its own
        """
        self.network, self.host, self.tools = network, host, pathlib.Path(tools)
        self.user, self.environment = user, environment or {}
        self.name = name or f"h{host}"
        self.home = pathlib.Path(directory) / self.name
        self.run_dir = self.home / "run"
        self.run_dir.mkdir(parents=True, exist_ok=True)
        self.run_dir.chmod(0o700)
        if user is not None:
            for place in (self.home, self.run_dir):
                os.chown(place, user, user)
        self.record = self.home / "record.jsonl"
        self.log = self.home / "log"
        self.process = None
        at = f":{port}" if port else ""
        seed_at = f":{seed_port}" if seed_port else at
        agent = {"host": self.name, "mode": "move", **({"listen": f"tcp://*{at}"} if port else {}),
                 "advertise": f"tcp://{address(host)}{at}", "key_file": str(key),
                 "state_file": str(self.home / "state.json"), "record_file": str(self.record),
                 "log_level": "debug",
                 "seeds": [f"tcp://{address(seed)}{seed_at}" for seed in seeds]}
        self.config = self.home / "zcmd.toml"
        self.config.write_text("".join(
            f"[{table}]\n" + "".join(f"{k} = {json.dumps(v)}\n" for k, v in entries.items())
            for table, entries in {"agent": agent, **tables}.items()), encoding="utf-8")

    @property
    def socket(self):
        return self.run_dir / "zcm" / "zcmd.sock"

    @property
    def profiles(self):
        return self.run_dir / "zcm" / "ranks"

    def start(self):
        words = [self.tools / "zcmd", "--config", self.config, "run"]
        environment = {**os.environ, "HOME": str(self.home), "XDG_RUNTIME_DIR": str(self.run_dir),
                       "LD_LIBRARY_PATH": str(self.tools.parent / "lib"), **self.environment}
        with open(self.log, "a", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                self.network.on(self.host, *as_user(self.user, words)),
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment)
        return self

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process = None

    def stop(self):
        """Politely. Returns the exit status."""
        self.process.send_signal(signal.SIGTERM)
        try:
            status = self.process.wait(timeout=30)
        finally:
            if self.process.poll() is None:
                self.process.kill()
                self.process.wait()
            self.process = None
        return status

    def ask(self, verb):
        """The agent's page of that name, or None while there is none."""
        text = self.page(f"/{verb}")
        return json.loads(text) if text else None

    def page(self, name):
        done = subprocess.run(["curl", "-sf", "--max-time", "10", "--unix-socket", str(self.socket),
                               f"http://zcmd{name}"], capture_output=True, text=True, check=False)
        return done.stdout if done.returncode == 0 else None

    def states(self):
        """{host: state} as this agent sees it."""
        answer = self.ask("nodes")
        return {n["host"]: n["state"] for n in answer["nodes"]} if answer else {}

    def ranks(self):
        """What it knows of the ranks on its host."""
        return self.ask("ranks")["ranks"]

    def decisions(self):
        """What it has put on record about moves."""
        for line in self.record.read_text(encoding="utf-8").splitlines() \
                if self.record.exists() else []:
            # The last line may be half written.
            one = json.loads(line) if line.endswith("}") else {}
            if one.get("kind") == "decision":
                yield one

    def logged(self):
        return self.log.read_text(encoding="utf-8", errors="replace")


def as_user(uid, words):
    """WORDS, to be run by another user."""
    if uid is None:
        return words
    return ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", *words]


def make_key(tools, path):
    subprocess.run([pathlib.Path(tools) / "zcmd", "keygen", "--key", path], check=True,
                   capture_output=True)
    return path


def all_alive(agents):
    """Whether each of AGENTS knows that all of them are alive."""
    names = {agent.name for agent in agents}
    return all({host for host, state in agent.states().items() if state == "alive"} >= names
               for agent in agents)


class AgentHosts:
    """Hosts behind a bridge, and agents on them that share a key; all ends with the block.

    The hosts are always new ones, whatever $ZC_HOSTS says: agents are on all of them.
    """

    user = None     # the uid that agents run as; None: our own
    port = None     # of agents; None: what zcmd takes by itself
    limit = 20      # seconds that most things may take, times the patience
    quick = QUICK   # tables of every agent's configuration

    def __init__(self, count, tools, directory, *, patience=3.0, environment=None):
        """PATIENCE: factor of time limits, as tests/run has it. ENVIRONMENT: of all processes."""
        self.count, self.patience, self.added = count, patience, environment or {}
        self.tools, self.directory = pathlib.Path(tools).resolve(), pathlib.Path(directory)
        self.network = Network(str(count), name=own_name(), bridge=True)
        self.key = None
        self.agents, self.notes = [], []
        self.stack = contextlib.ExitStack()

    def __enter__(self):
        with self.stack:
            self.stack.enter_context(self.network)
            if not self.network.between_hosts:
                raise Skip(self.network.why)
            self.prepare()
            self.stack.callback(self.kill_agents)
            self.stack = self.stack.pop_all()
        return self

    def __exit__(self, kind, error, trace):
        if error:
            self.add_logs(error)
        return self.stack.__exit__(kind, error, trace)

    def prepare(self):
        """What there is before the first agent; `stack` is for what ends it."""
        self.key = make_key(self.tools, self.directory / "key")

    def kill_agents(self):
        for agent in self.agents:
            if agent.process:
                agent.kill()

    def add_logs(self, error):
        """Show the last lines of each agent's log below what ERROR says."""
        lines = max(1, LOG_LINES // max(2, len(self.agents)))
        text = "".join(
            "\n  ".join([f"-- {agent.name}:", *agent.logged().splitlines()[-lines:]]) + "\n"
            for agent in self.agents)
        if isinstance(error, Fail):
            error.output += text
        else:
            error.add_note(text)

    def note(self, text):
        """For the test's line of the report."""
        self.notes.append(text)

    def wait_for(self, what, condition, seconds=None):
        """Seconds it took; Fail after SECONDS (default: limit) times the patience."""
        return outcome.wait_for(what, condition, (seconds or self.limit) * self.patience, every=0.2)

    def agent(self, host, *, settings=None, tools=None, key=None, **words):
        """zcmd on HOST. SETTINGS: tables of its configuration, in addition to the quick ones."""
        tables = {name: dict(table) for name, table in self.quick.items()}
        for name, table in (settings or {}).items():
            tables.setdefault(name, {}).update(table)
        agent = Agent(self.network, host, tools or self.tools, self.directory, key or self.key,
                      tables, environment=self.added,
                      **{"port": self.port, "user": self.user, **words})
        self.agents.append(agent)
        return agent.start()

    def decisions(self, *what):
        """What agents have put on record of these kinds, in the order of time."""
        return sorted((one for agent in self.agents for one in agent.decisions()
                       if one["what"] in what), key=lambda one: one["time"])

    def until_together(self, agents):
        """Seconds until AGENTS know each other."""
        return self.wait_for("all agents see each other", lambda: all_alive(agents), 20)

    def start_agents(self, hosts=None, settings=None):
        """Those of HOSTS (default: all), once they know each other."""
        agents = [self.agent(host, settings=settings) for host in hosts or range(1, self.count + 1)]
        took = self.until_together(agents)
        self.note(f"{len(agents)} agents knew each other after {took:.1f} s")
        return agents
