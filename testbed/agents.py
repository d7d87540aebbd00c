# SPDX-License-Identifier: BSD-3-Clause
"""Hosts for agents on one machine: network namespaces behind one bridge, and agents in them.

    with Network(4) as network:
        agent = Agent(network, 1, tools, directory)
"""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time

NOT_PERMITTED = 77


class Failed(Exception):
    """A test that did not hold, in words."""


def ip(*words, check=True):
    return subprocess.run(["ip", *map(str, words)], check=check, capture_output=True, text=True)


class Network:
    """Namespaces NAME-1 … NAME-N, all on 10.113.0.0/24, behind a bridge in NAME-switch."""

    def __init__(self, count, name=None):
        self.count = count
        self.name = name or f"zca-{os.getuid()}-{os.getpid()}"

    def namespace(self, host):
        return f"{self.name}-{host}"

    @staticmethod
    def address(host):
        return f"10.113.0.{host}"

    def __enter__(self):
        remove_orphans()
        try:
            switch = self.namespace("switch")
            ip("netns", "add", switch)
            ip("-n", switch, "link", "add", "br0", "type", "bridge")
            ip("-n", switch, "link", "set", "br0", "up")
            for host in range(1, self.count + 1):
                own = self.namespace(host)
                ip("netns", "add", own)
                ip("-n", own, "link", "set", "lo", "up")
                ip("link", "add", "zc0", "netns", own, "type", "veth", "peer", "name", f"p{host}",
                   "netns", switch)
                ip("-n", switch, "link", "set", f"p{host}", "master", "br0", "up")
                ip("-n", own, "address", "add", f"{self.address(host)}/24", "dev", "zc0")
                ip("-n", own, "link", "set", "zc0", "up")
        except subprocess.CalledProcessError as error:
            self.__exit__()
            raise PermissionError(error.stderr.strip()) from None
        return self

    def __exit__(self, *_):
        for host in [*range(1, self.count + 1), "switch"]:
            ip("netns", "delete", self.namespace(host), check=False)

    def cut(self, host):
        ip("-n", self.namespace("switch"), "link", "set", f"p{host}", "down")

    def heal(self, host):
        ip("-n", self.namespace("switch"), "link", "set", f"p{host}", "up")

    def command(self, host, words):
        return ["ip", "netns", "exec", self.namespace(host), *map(str, words)]


def remove_orphans():
    """Those of callers that were killed."""
    for line in ip("netns", "list", check=False).stdout.splitlines():
        name = line.split()[0] if line.split() else ""
        match = re.fullmatch(rf"zca-{os.getuid()}-(\d+)-\w+", name)
        if match and not os.path.exists(f"/proc/{match[1]}"):
            ip("netns", "delete", name, check=False)


class Agent:
    """zcmd on one host, with a directory of its own as $HOME and $XDG_RUNTIME_DIR."""

    def __init__(self, network, host, tools, directory, key, seeds=(1,), name=None, port=None, user=None,
                 seed_port=None, **extra):
        """USER: the uid it runs as, which owns KEY; None: ours. PORT: None: what zcmd takes by itself.
        SEED_PORT: of the agents it joins by."""
        self.network, self.host, self.tools, self.port = network, host, pathlib.Path(tools), port
        self.user = user
        self.name = name or f"h{host}"
        self.home = pathlib.Path(directory) / self.name
        self.run_dir = self.home / "run"
        self.run_dir.mkdir(parents=True, exist_ok=True)
        self.run_dir.chmod(0o700)
        if user is not None:
            for place in (self.home, self.run_dir):
                os.chown(place, user, user)
        self.key = key
        self.record = self.home / "record.jsonl"
        self.log = self.home / "log"
        self.process = None
        at = f":{port}" if port else ""
        agent = {"host": self.name, **({"listen": f"tcp://*{at}"} if port else {}),
                 "advertise": f"tcp://{network.address(host)}{at}", "key_file": str(key),
                 "state_file": str(self.home / "state.json"), "record_file": str(self.record),
                 "log_level": "debug",
                 "seeds": [f"tcp://{network.address(seed)}" + (f":{seed_port}" if seed_port else at) for seed in seeds]}
        tables = {"agent": agent, **extra}
        text = ""
        for table, entries in tables.items():
            text += f"[{table}]\n" + "".join(f"{k} = {json.dumps(v)}\n" for k, v in entries.items())
        self.config = self.home / "zcmd.toml"
        self.config.write_text(text, encoding="utf-8")

    @property
    def socket(self):
        return self.run_dir / "zcm" / "zcmd.sock"

    @property
    def profiles(self):
        return self.run_dir / "zcm" / "ranks"

    def environment(self):
        return {**os.environ, "HOME": str(self.home), "XDG_RUNTIME_DIR": str(self.run_dir),
                "LD_LIBRARY_PATH": str(self.tools.parent / "lib")}

    def start(self):
        words = [self.tools / "zcmd", "--config", self.config, "run"]
        with open(self.log, "a", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                self.network.command(self.host, as_user(self.user, words)),
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self.environment())
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


def as_user(uid, words):
    """WORDS, to be run by another user."""
    if uid is None:
        return words
    return ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", *words]


def wait_for(what, condition, timeout):
    """Seconds it took; Failed, saying what, after TIMEOUT."""
    begin = time.monotonic()
    while time.monotonic() - begin < timeout:
        if condition():
            return time.monotonic() - begin
        time.sleep(0.2)
    raise Failed(f"not within {timeout} s: {what}")


def make_key(tools, path):
    subprocess.run([pathlib.Path(tools) / "zcmd", "keygen", "--key", path], check=True,
                   capture_output=True)
    return path


def need(*programs):
    """Why the tests cannot run here, or nothing."""
    for program in programs:
        if shutil.which(program) is None:
            return f"{program} is missing"
    return "" if os.getuid() == 0 else "no right to make network namespaces"
