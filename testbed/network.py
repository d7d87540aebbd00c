# SPDX-License-Identifier: BSD-3-Clause
"""The network that ranks run on: hosts made by `hosts`, one host, or one host over loopback."""
import argparse
import contextlib
import os
import pathlib
import re
import subprocess
import sys

from testbed.autogroup import NoAutogroup
from testbed.outcome import Error
from testbed.process import undisturbed

HERE = pathlib.Path(__file__).resolve().parent
HOSTS = HERE / "hosts"
MOST_HOSTS = 32
INTERFACE = "zc0"
EXIT_NOT_PERMITTED = 4


def address(host):
    return f"10.111.0.{host}"


def addresses(count):
    return [address(host) for host in range(1, count + 1)]


ADDRESSES = addresses(2)


def more_addresses(nth):
    """Of the interface zcNTH of h1 and h2 (Network.more_interfaces)."""
    return [f"10.112.{nth}.{host}" for host in (1, 2)]


def run_ip(*words):
    subprocess.run(["ip", *words], check=True, stdin=subprocess.DEVNULL)


def own_name():
    """For hosts of this process, which vanish if it is killed and others make hosts."""
    return f"zc-{os.getuid()}-{os.getpid()}"


class Network:
    """Where ranks run: "2" hosts or more, "1" host (as MPICH likes), or "loopback" (one host, TCP only).

    link, cores: as `hosts up` has them; None: as they are, and of new hosts "bare" and "spare". Once
    entered, they tell what is up; hosts that were up before are left as they were. With full cores
    the hosts confine their ranks, which need not be bound.

    Hosts that cannot be made become loopback, and `why` says so; but with a link or cores asked for
    that is an error, since loopback has neither. While there are hosts, they are no groups to the
    scheduler, if that is permitted: `autogroup` tells. With BRIDGE two hosts have links that can be
    cut, as more than two have in any case.
    """

    def __init__(self, hosts="2", name=None, link=None, cores=None, bridge=False):
        if hosts not in ("1", "loopback") and not \
                (hosts.isdecimal() and 2 <= int(hosts) <= MOST_HOSTS):
            raise Error(f"no such set of hosts: {hosts} (1, loopback, or 2 to {MOST_HOSTS})")
        self.hosts = hosts
        self.link, self.cores, self.bridge = link, cores, bridge
        if not self.between_hosts and (link or cores):
            raise Error(f"a link or cores are of two or more hosts, not of --hosts {hosts}")
        self.why = ""
        self.autogroup = NoAutogroup()
        self.name = name or os.environ.get("ZC_HOSTS") or own_name()
        self.ours = False       # made here, so that whatever runs there may be ended
        self._before = None     # link and cores of hosts that were up

    @property
    def between_hosts(self):
        return self.hosts not in ("1", "loopback")

    @property
    def kind(self):
        """What is common to any number of hosts: "2", "1" or "loopback"."""
        return "2" if self.between_hosts else self.hosts

    def addresses(self):
        return addresses(int(self.hosts))

    def __enter__(self):
        # A signal in the middle would leave hosts behind that nothing knows of.
        try:
            with undisturbed():
                return self._enter()
        except BaseException:
            if self.ours:
                self.__exit__()
            raise

    def _enter(self):
        if not self.between_hosts:
            return self
        there = self._call("status").returncode == 0
        if there:
            asked = self.link, self.cores
            self._look()
            self._before = self.link, self.cores
            self.link, self.cores = asked
        made = self._up(["--hosts", self.hosts, *(["--bridge"] if self.bridge else [])])
        if made.returncode == EXIT_NOT_PERMITTED and not (self.link or self.cores):
            self.hosts = "loopback"
            self.why = made.stderr.strip().removeprefix("hosts: ")
            return self
        if made.returncode != 0:
            raise Error(made.stderr.strip().removeprefix("hosts: ") or "cannot make the hosts")
        self.ours = not there
        self._look()
        self.autogroup.__enter__()
        return self

    def __exit__(self, *_):
        with undisturbed():
            self.autogroup.__exit__()
            if self.ours:
                self._call("down")
                self.ours = False
            elif self._before and self._before != (self.link, self.cores):
                self.change(*self._before)

    def change(self, link, cores):
        """Give the hosts that are up other links and cores; for what is started afterwards."""
        before = self.link, self.cores
        self.link, self.cores = link, cores
        made = self._up([])
        if made.returncode != 0:
            self.link, self.cores = before
            raise Error(made.stderr.strip().removeprefix("hosts: ") or "cannot change the hosts")
        self._look()

    @contextlib.contextmanager
    def more_interfaces(self, count):
        """zc1, zc2, ... on h1 and h2, whose addresses are more_addresses()."""
        ends = [f"{self.name}-{host}" for host in ("h1", "h2")]
        names = [f"zc{nth}" for nth in range(1, count + 1)]
        try:
            for nth, name in enumerate(names, 1):
                run_ip("link", "add", name, "netns", ends[0], "type", "veth", "peer", "name", name,
                       "netns", ends[1])
                for end, address_there in zip(ends, more_addresses(nth)):
                    run_ip("-n", end, "address", "add", f"{address_there}/24", "dev", name)
                    run_ip("-n", end, "link", "set", name, "up")
            yield
        finally:
            for name in names:
                # Its other end goes with it.
                subprocess.run(["ip", "-n", ends[0], "link", "delete", name], check=False,
                               stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def cut(self, host):
        """Nothing passes to and from HOST (1, 2, ...), which is behind a bridge, until heal()."""
        self._change_link("cut", host)

    def heal(self, host):
        self._change_link("heal", host)

    def _change_link(self, verb, host):
        done = self._call(verb, f"h{host}")
        if done.returncode != 0:
            raise Error(done.stderr.strip().removeprefix("hosts: "))

    def _up(self, words):
        if self.link:
            words = [*words, "--link", self.link]
        if self.cores:
            words = [*words, "--cores", self.cores]
        return self._call("up", *words)

    def _look(self):
        said = self._call("status").stdout
        found = re.search(r"link (\S+), cores (\w+)", said)
        if not found:
            raise Error(f"the hosts do not tell their links and cores: {said.strip()}")
        self.link, self.cores = found.groups()

    def describe(self):
        if self.between_hosts:
            number = "two" if self.hosts == "2" else self.hosts
            pair = self.hosts == "2" and "," not in (self.link or "") and not self.bridge
            joined = "a veth pair" if pair else "a bridge"
            link = "" if self.link in (None, "bare") else f", links of {self.link}"
            return f"{number} hosts (network namespaces, TCP over {joined}{link}{self._describe_cores()})"
        if self.hosts == "1":
            return "one host"
        return "one host, TCP over loopback" + (f" ({self.why})" if self.why else "")

    def _describe_cores(self):
        if self.cores in (None, "spare"):
            return ""
        processors = len(os.sched_getaffinity(0))
        return ", one processor for each host" + \
            (f", of {processors} in all" if int(self.hosts) > processors else "")

    def command(self, mpiexec, ranks, options=()):
        """The words before the program's own: MPICH's mpiexec with OPTIONS."""
        if not self.between_hosts:
            return [mpiexec, *options, "-launcher", "fork", "-n", str(ranks)]
        return [*self.on(1), mpiexec, *options,
                "-launcher", "rsh", "-launcher-exec", str(HERE / "rsh"), "-iface", INTERFACE,
                "-hosts", ",".join(self.addresses()), "-n", str(ranks)]

    def open_mpi_command(self, mpirun, ranks):
        """The same for Open MPI's mpirun; ranks go to the hosts in turn, as Hydra does it."""
        interface = INTERFACE if self.between_hosts else "lo"
        transport = [] if self.hosts == "1" else [
            "--mca", "pml", "ob1", "--mca", "btl", "tcp,self",
            "--mca", "btl_tcp_if_include", interface, "--mca", "oob_tcp_if_include", interface]
        # Bound, the ranks of both hosts would share the first core of the one machine.
        words = [mpirun, "--allow-run-as-root", "--bind-to", "none", *transport]
        if not self.between_hosts:
            return [*words, "--oversubscribe", "-n", str(ranks)]
        slots = -(-ranks // len(self.addresses()))
        return [*self.on(1), *words, "--mca", "plm_rsh_agent", str(HERE / "rsh"),
                "--host", ",".join(f"{address}:{slots}" for address in self.addresses()),
                "--map-by", "node", "-n", str(ranks)]

    def on(self, host, *words):
        """WORDS, to be run on HOST (1, 2, ...)."""
        return [str(HOSTS), "--name", self.name, "exec", f"h{host}", *map(str, words)]

    def environment(self):
        if self.between_hosts:
            return {"ZC_HOSTS": self.name, "UCX_TLS": "tcp,self", "UCX_NET_DEVICES": INTERFACE,
                    "FI_TCP_IFACE": INTERFACE}
        if self.hosts == "loopback":
            return {"UCX_TLS": "tcp,self", "UCX_NET_DEVICES": "lo", "FI_TCP_IFACE": "lo",
                    "MPIR_CVAR_NOLOCAL": "1"}
        return {}

    def _call(self, *words):
        return subprocess.run([str(HOSTS), "--name", self.name, *words], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, check=False)


def add_network_options(parser, default="2"):
    """--hosts, --link and --cores, for network_of()."""
    parser.add_argument("--hosts", type=hosts_name, default=default, metavar="HOSTS",
                        help="2 or more: namespaces, TCP, ranks go to them in turn; 1: as MPICH"
                             f" likes; loopback: one host, TCP (default {default})")
    add_link_options(parser)


def add_link_options(parser):
    parser.add_argument("--link", metavar="LINK",
                        help="bare, or the rate of the hosts' links, such as 10gbit;"
                             " LINK,LINK,...: one for each host (default: as they are, new ones bare)")
    parser.add_argument("--cores", choices=["spare", "full"],
                        help="full: each host has one processor for all its ranks"
                             " (default: as they are, new ones spare)")


def hosts_name(text):
    """An argument that names hosts, for argparse."""
    if text not in ("1", "loopback") and not (text.isdecimal() and 2 <= int(text) <= MOST_HOSTS):
        raise argparse.ArgumentTypeError(f"{text}: not 1, loopback, or 2 to {MOST_HOSTS}")
    return text


def network_of(options):
    """The Network that was asked for, in a namespace where an ordinary user may make hosts."""
    network = Network(options.hosts, link=options.link, cores=options.cores)
    if network.between_hosts:
        enter_private_namespace()
    return network


def enter_private_namespace():
    """Start this program again where an ordinary user may make hosts, if that is possible."""
    if os.getuid() == 0 or os.environ.get("ZC_HOSTS_PRIVATE"):
        return
    probe = subprocess.run([str(HOSTS), "private", "true"], stdin=subprocess.DEVNULL,
                           capture_output=True, check=False)
    if probe.returncode == 0:
        os.environ["ZC_HOSTS_PRIVATE"] = "1"
        sys.stdout.flush()
        # As it was started: `python3 -m` leaves no trace of that in sys.argv.
        os.execv(str(HOSTS), [str(HOSTS), "private", sys.executable, *sys.orig_argv[1:]])
