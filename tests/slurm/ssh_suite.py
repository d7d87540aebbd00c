# SPDX-License-Identifier: BSD-3-Clause
"""Launch MPI programs with Hydra over ssh, to two hosts with an ssh daemon each.

Keys, daemons and client configuration are in a temporary folder. Each test is one claim of
docs/launching.md on host lists, binding, interfaces and two networks.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess

from testbed import mpi, statistics
from testbed.network import ADDRESSES, INTERFACE
from testbed.outcome import Skip, check
from testbed.suite import Suite
from tests.slurm import moving
from tests.slurm.site import BEDS, HOSTS, PATH, Site

TOP = pathlib.Path(__file__).resolve().parents[2]
SECOND = "zc1"  # the second network's interface

SERVER = """\
ListenAddress {address}
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/user_key.pub
PidFile none
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
"""
CLIENT = """\
Host h1 h2
    IdentityFile {folder}/user_key
    UserKnownHostsFile {folder}/known_hosts
    StrictHostKeyChecking yes
    BatchMode yes
"""


class SshSite(Site):
    """Two hosts, two networks between them, an ssh daemon on each."""

    commands = ("sshd", "ssh", "ssh-keygen", "ip")
    packages = "openssh-server, openssh-client"

    def __init__(self, setup):
        super().__init__(setup)
        if len(os.sched_getaffinity(0)) < 2:
            raise Skip("binding cannot be shown on one processor")
        self.environment.update(HYDRA_LAUNCHER_EXTRA_ARGS=f"-F {self.folder}/client",
                                UCX_TLS="tcp,self", MPIR_CVAR_CH4_NETMOD=setup.options.netmod)
        self.mpiexec = [mpi.find_tool(setup.prefix, "mpiexec"), "-launcher", "ssh"]
        self.halo = mpi.build(setup.prefix, [TOP / "examples/halo.c"], setup.build_dir)["halo"]

    def start(self):
        self.until_its_end.enter_context(self.network.more_interfaces(1))
        for key in ("host_key", "user_key"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f",
                            str(self.folder / key)], check=True, stdin=subprocess.DEVNULL)
        public = (self.folder / "host_key.pub").read_text()
        (self.folder / "known_hosts").write_text(f"h1,h2 {public}")
        (self.folder / "client").write_text(CLIENT.format(folder=self.folder))
        # The daemon insists on it; it is empty and stays so.
        os.makedirs("/run/sshd", mode=0o755, exist_ok=True)
        for host, address in zip(HOSTS, ADDRESSES):
            self._serve(host, address)

    def _serve(self, host, address):
        configuration = self.folder / f"server-{host}"
        configuration.write_text(SERVER.format(folder=self.folder, address=address))
        daemon = self.daemon(f"sshd on {host}", self.daemon_command(
            host, [shutil.which("sshd", path=PATH), "-D", "-e", "-f", configuration]))
        self.wait(daemon.what, lambda: "listening" in daemon.log.read_text(), 20)

    def launch(self, *words, **environment):
        """(exit status, output) of mpiexec, which must end by itself."""
        for old in self.folder.glob("statistics.*"):
            old.unlink()
        status, output = self.run(
            [*self.mpiexec, *words], 60,
            {statistics.CVAR + "STATS_FILE": f"{self.folder}/statistics", **environment})
        check(status is not None, "no end in time", output)
        return status, output

    def launch_halo(self, *words, columns=65536, **environment):
        """A halo exchange of two ranks."""
        return self.launch(*words, "-n", "2", self.halo, "-r", 8, "-c", columns, "-i", 10,
                           "-x", 1, **environment)

    def solve(self, *words, **more):
        """It must have the right result. Returns the output."""
        status, output = self.launch_halo(*words, **more)
        check(status == 0, f"exit status {status}", output)
        check(re.search(r"on 2 ranks, .* result verified", output), "no result", output)
        return output

    def solve_with_threads(self, wanted, *words):
        """WANTED: of each rank, whether it has a landing thread."""
        if self.setup.options.netmod != "zc":
            raise Skip("only ch4:zc has landing threads")
        output = self.solve(*words)
        threads = [json.loads(file.read_text())["landing_thread"]
                   for file in self.folder.glob("statistics.*.json")]
        check(threads == wanted, f"threads {threads}", output)

    def ranks_on(self, wanted, *words):
        """Ranks must run on the hosts WANTED."""
        status, output = self.launch(*words, "hostname")
        hosts = sorted(re.findall(r"^h[12]$", output, re.MULTILINE))
        check(status == 0 and hosts == wanted, f"ranks on {hosts}", output)

    def passed(self):
        """Bytes through the interfaces of h1 so far, first received, then sent."""
        counters = [f"/sys/class/net/{interface}/statistics/{way}_bytes"
                    for way in ("rx", "tx") for interface in (INTERFACE, SECOND)]
        said = subprocess.run(self.command("h1", ["cat", *counters]), stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, check=True).stdout
        return [int(number) for number in said.split()]

    def shares(self, devices, **environment):
        """The second network's share of what a halo exchange receives, and of what it sends."""
        before = self.passed()
        self.solve("-hosts", "h1,h2", columns=524288, UCX_NET_DEVICES=devices, **environment)
        first_in, second_in, first_out, second_out = [
            now - old for now, old in zip(self.passed(), before)]
        return second_in / (first_in + second_in), second_out / (first_out + second_out)


suite = Suite("ssh", "launching with Hydra over ssh: host lists, binding, interfaces", beds=BEDS,
              needs=("root", "mpich"), open=SshSite)
SUITES = [suite]


@suite.test()
def host_list(site):
    site.solve("-hosts", "h1,h2", UCX_NET_DEVICES=INTERFACE)


@suite.test()
def host_file(site):
    (site.folder / "hostfile").write_text("h1:1\nh2:2\n")
    site.ranks_on(["h1", "h2", "h2"], "-f", "hostfile", "-n", "3")


@suite.test()
def ranks_per_host(site):
    site.ranks_on(["h1", "h1", "h2", "h2"], "-hosts", "h1,h2", "-ppn", "2", "-n", "4")


@suite.test()
def environment(site):
    """mpiexec carries its environment over; ssh alone would not."""
    status, output = site.launch("-hosts", "h2", "-n", "1", "sh", "-c", "echo got $ZC_CARRIED",
                                 ZC_CARRIED="it")
    check(status == 0 and "got it" in output, "variable lost", output)


@suite.test()
def no_way_to_a_host(site):
    """mpiexec says so, and ends."""
    status, output = site.launch("-hosts", "nowhere", "-n", "1", "hostname")
    check(status != 0 and "the proxy on nowhere has not connected" in output,
          f"exit status {status}", output)


@suite.test()
def moves_with_agents(site):
    """zcm-run --agents"""
    moving.with_agents(site, (), "-launcher", "ssh", "-hosts", "h1,h2")


@suite.test()
def does_not_move_to_a_host_without_the_program(site):
    moving.without_program(site, (), "-launcher", "ssh")


@suite.test()
def two_processors_give_a_thread(site):
    site.solve_with_threads([1, 1], "-hosts", "h1,h2", "-bind-to", "core:2")


@suite.test()
def one_processor_gives_a_thread_that_shares_it(site):
    site.solve_with_threads([1, 1], "-hosts", "h1,h2", "-bind-to", "core")


@suite.test()
def half_a_processor_gives_none(site):
    site.solve_with_threads([0, 0], "-hosts", "h1", "-bind-to", "user:0,0")


@suite.test()
def data_stays_on_the_named_interface(site):
    shares = site.shares(SECOND)
    check(min(shares) > 0.9, through_second(shares))


@suite.test()
def two_interfaces_work_together(site):
    """How they share is UCX's affair: halves mostly, all on one now and then."""
    return through_second(site.shares(f"{INTERFACE},{SECOND}"))


@suite.test()
def one_rail_uses_one_interface(site):
    """Each rank sends through one; which, is chosen by each on its own."""
    shares = site.shares(f"{INTERFACE},{SECOND}", UCX_MAX_RNDV_RAILS="1")
    check(not any(0.1 < share < 0.9 for share in shares), through_second(shares))
    return through_second(shares)


def through_second(shares):
    received, sent = shares
    return f"through {SECOND}: {received:.0%} of what is received, {sent:.0%} of what is sent"


@suite.test()
def unknown_interface_is_an_error(site):
    status, output = site.launch_halo("-hosts", "h1,h2", UCX_NET_DEVICES="nosuch0")
    check(status != 0, "it went unnoticed", output)
    check("unreachable" in output, f"exit status {status}, and no word of why", output)
