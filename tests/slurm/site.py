# SPDX-License-Identifier: BSD-3-Clause
"""Two hosts with daemons of the tests' own, which end with it, and so does all that runs there."""
import contextlib
import os
import shutil
import subprocess
import time

from testbed import network, process
from testbed.outcome import Skip
from testbed.suite import Bed

HOSTS = ("h1", "h2")
# The folder HERE of a Site is another one on h2.
OWN_FOLDER = 'mount --bind "$1" "$2" && shift 2 && exec "$@"'
# Debian keeps the daemons where an ordinary PATH does not look.
PATH = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
BEDS = [Bed("two-hosts", tags=frozenset({"nightly"}), hosts="2")]


class Site:
    """The hosts of a Setup's network; a context.

    What it is made of is in its folder: nothing of the machine's own set-up is read or written.
    """
    commands = ()       # that must be there
    packages = ""       # which have them

    def __init__(self, setup):
        missing = [command for command in self.commands if not shutil.which(command, path=PATH)]
        if missing:
            raise Skip(f"{', '.join(missing)} not installed (packages {self.packages})")
        if setup.network.hosts != "2":
            raise Skip(setup.network.why or "it needs two hosts")
        # Whatever runs on the hosts is ended with the site.
        if not setup.network.ours:
            raise Skip(f"the hosts {setup.network.name} were up before (unset ZC_HOSTS)")
        self.setup, self.network, self.folder = setup, setup.network, setup.scratch
        self.environment = dict(os.environ)
        self.daemons = []
        self.until_its_end = contextlib.ExitStack()
        self.here, self.here_on_h2 = self.folder / "here", self.folder / "here-on-h2"

    def __enter__(self):
        try:
            for folder in (self.here, self.here_on_h2):
                folder.mkdir()
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        with process.undisturbed():
            process.end_daemons(self.daemons, self.network, HOSTS)
            self.daemons = []
            self.until_its_end.close()

    def start(self):
        raise NotImplementedError

    def finish(self):
        """End what a command may have left to the daemons."""

    def command(self, host, words):
        return [str(network.HOSTS), "--name", self.network.name, "exec", host, *map(str, words)]

    def daemon_command(self, host, words):
        """Of a daemon that starts processes on HOST: like those of two machines, they do not share
        all files. What is in the folder `here` is the host's own."""
        if host == "h2":
            words = ["unshare", "--mount", "sh", "-c", OWN_FOLDER, "sh", self.here_on_h2, self.here,
                     *words]
        return self.command(host, words)

    def run(self, words, timeout, environment):
        """(exit status or None when time was up, output) of WORDS on h1."""
        return process.run(self.command("h1", words), self.folder,
                           {**self.environment, **environment, **self.setup.environment},
                           timeout * self.setup.patience, at_end=self.finish)

    def daemon(self, what, command):
        log = self.folder / f"{what.replace(' ', '-')}.out"
        with open(log, "wb") as file:
            daemon = subprocess.Popen([str(word) for word in command], env=self.environment,
                                      stdin=subprocess.DEVNULL, stdout=file,
                                      stderr=subprocess.STDOUT, cwd=self.folder,
                                      start_new_session=True)
        daemon.what, daemon.log = what, log
        self.daemons.append(daemon)
        return daemon

    def wait(self, what, ready, seconds):
        """Until READY(); Skip where the daemons cannot run."""
        give_up = time.monotonic() + seconds * self.setup.patience
        while not ready():
            for daemon in self.daemons:
                if daemon.poll() is not None:
                    raise Skip(f"{daemon.what} does not run here: {last_error(daemon.log)}")
            if time.monotonic() > give_up:
                raise Skip(f"{what} not ready after {seconds * self.setup.patience:.0f} s: "
                           + last_error(self.daemons[-1].log))
            time.sleep(0.2)


def last_error(log):
    lines = log.read_text(errors="replace").splitlines() or ["(it said nothing)"]
    return next((line for line in reversed(lines) if "error" in line.lower()), lines[-1])
