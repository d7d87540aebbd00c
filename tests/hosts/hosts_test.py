# SPDX-License-Identifier: BSD-3-Clause
"""What `hosts` promises: hosts reach each other, links and cores are those asked for, errors are told.

exit status: 0 all passed; 1 a test failed; 77 no hosts can be made here
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

from testbed.network import HOSTS, INTERFACE, Network, enter_private_namespace
from testbed.outcome import EXIT_SKIPPED, Error

NAME = f"zc-{os.getuid()}-{os.getpid()}"
USAGE, NOT_PERMITTED, NO_SUCH_LINKS = 2, 4, 5
KIB, GBIT = 1 << 10, 10 ** 9
# Each process listens, says so, and hears one word from each of the hosts.
LISTEN = """
import socket, sys
with socket.create_server(("", 7000)) as server:
    print("ready", flush=True)
    heard = [server.accept()[0].makefile().read() for _ in range(int(sys.argv[1]))]
print(" ".join(sorted(heard)))
"""
CALL = """
import socket, sys
for host in sys.argv[1:]:
    with socket.create_connection((host, 7000), timeout=10) as there:
        there.sendall(socket.gethostname().encode())
"""

KNOCK = """
import socket, sys
try:
    socket.create_connection((sys.argv[1], 7000), timeout=float(sys.argv[2]))
except OSError as error:
    print(error)
"""


def hosts(*words, name=NAME, **more):
    return subprocess.run([HOSTS, "--name", name, *words], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, check=False, timeout=60, **more)


def namespaces():
    told = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True).stdout
    return sorted(line.split()[0] for line in told.splitlines())


def path_with(folder, **programs):
    """A PATH on which the commands of PROGRAMS are those scripts, or are not there (None)."""
    for path in ("/usr/bin", "/usr/sbin", "/bin", "/sbin"):
        for program in pathlib.Path(path).iterdir():
            link = folder / program.name
            if program.name not in programs and not link.is_symlink():
                link.symlink_to(program)
    for program, text in programs.items():
        if text:
            (folder / program).write_text(f"#!/bin/sh\n{text}\n")
            (folder / program).chmod(0o755)
    return {**os.environ, "PATH": str(folder)}


class HostsTest(unittest.TestCase):
    def setUp(self):
        self.addCleanup(hosts, "down")

    def up(self, *options, **more):
        done = hosts("up", *options, **more)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def refused(self, status, *words, says="", **more):
        done = hosts(*words, **more)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        self.assertIn(says, done.stderr)
        return done

    def on(self, host, *words):
        done = hosts("exec", host, *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def qdisc(self, host):
        (found,) = [each for each in json.loads(self.on(host, "tc", "-j", "qdisc", "show"))
                    if each.get("dev", INTERFACE) == INTERFACE]
        return found

    def limit(self, host):
        """(bits/s, bytes of a burst, µs of waiting) of the host's link"""
        qdisc = self.qdisc(host)
        self.assertEqual(qdisc["kind"], "tbf")
        options = qdisc["options"]
        return 8 * options["rate"], options["burst"], options["lat"]


class Reach(HostsTest):
    def all_reach_all(self, count):
        everyone = [f"h{i}" for i in range(1, count + 1)]
        listeners = [subprocess.Popen([HOSTS, "--name", NAME, "exec", host, sys.executable,
                                       "-c", LISTEN, str(count)], stdout=subprocess.PIPE, text=True)
                     for host in everyone]
        try:
            for listener in listeners:
                self.assertEqual(listener.stdout.readline(), "ready\n")
            for host in everyone:
                self.on(host, sys.executable, "-c", CALL, *everyone)
            for listener in listeners:
                self.assertEqual(listener.communicate(timeout=10)[0].split(), everyone)
        finally:
            for listener in listeners:
                listener.kill()
                listener.communicate()

    def test_two_hosts_reach_each_other(self):
        self.up()
        self.all_reach_all(2)

    def test_four_hosts_behind_a_bridge_reach_each_other(self):
        self.up("--hosts", "4")
        self.all_reach_all(4)

    def test_hosts_with_links_and_cores_reach_each_other(self):
        self.up("--hosts", "3", "--link", "10gbit,1gbit,bare", "--cores", "full")
        self.all_reach_all(3)

    def test_a_host_is_known_by_its_address_too(self):
        self.up("--hosts", "3")
        self.assertEqual(self.on("10.111.0.3", "hostname"), "h3\n")


class Links(HostsTest):
    def assert_near(self, found, asked):
        """The kernel rounds to its clock's ticks."""
        self.assertAlmostEqual(found, asked, delta=0.02 * asked)

    def test_rate_is_what_was_asked(self):
        self.up("--link", "10gbit")
        for host in ("h1", "h2"):
            rate, burst, wait_us = self.limit(host)
            self.assertEqual(rate, 10 * GBIT)
            self.assert_near(burst, 128 * KIB)
            self.assert_near(wait_us, 20000)

    def test_a_burst_holds_two_of_the_largest_packets_and_a_tenth_of_a_millisecond(self):
        for link, bits, bytes_expected in (("250mbit", GBIT // 4, 128 * KIB),
                                           ("100gbit", 100 * GBIT, 1250000)):
            self.up("--link", link)
            rate, burst, _ = self.limit("h1")
            self.assertEqual(rate, bits)
            self.assert_near(burst, bytes_expected)

    def test_new_links_are_bare(self):
        self.up()
        self.assertEqual(self.qdisc("h1")["kind"], "noqueue")
        self.assertIn("link bare, cores spare", hosts("status").stdout)

    def test_links_may_differ_and_hold_both_ways(self):
        self.up("--hosts", "3", "--link", "10gbit,1gbit,bare")
        self.assertEqual([self.limit(host)[0] for host in ("h1", "h2")], [10 * GBIT, GBIT])
        self.assertEqual(self.qdisc("h3")["kind"], "noqueue")
        told = subprocess.run(["tc", "-n", f"{NAME}-switch", "-j", "qdisc", "show", "dev", "p2"],
                              capture_output=True, text=True, check=True).stdout
        self.assertEqual(json.loads(told)[0]["options"]["rate"], GBIT // 8)
        self.assertIn("link 10gbit,1gbit,bare,", hosts("status").stdout)

    def test_two_hosts_may_differ(self):
        self.up("--link", "1gbit,2gbit")
        self.assertEqual([self.limit(host)[0] for host in ("h1", "h2")], [GBIT, 2 * GBIT])

    def test_can_be_changed_while_up(self):
        for link, kind in (("1gbit", "tbf"), ("10gbit", "tbf"), ("bare", "noqueue")):
            self.up("--link", link)
            self.assertEqual(self.qdisc("h2")["kind"], kind)
            self.assertIn(f"link {link},", hosts("status").stdout)

    def test_up_without_options_leaves_them(self):
        self.up("--link", "1gbit", "--cores", "full")
        self.up()
        self.assertIn("link 1gbit, cores full", hosts("status").stdout)

    def test_a_pair_cannot_become_unequal(self):
        self.up("--link", "1gbit")
        self.refused(1, "up", "--link", "1gbit,2gbit", says="bridge")
        self.assertEqual(self.limit("h2")[0], GBIT)

    def test_the_number_of_hosts_cannot_be_changed(self):
        self.up()
        self.refused(1, "up", "--hosts", "3", says="2 hosts are up, not 3")

    def test_without_tc(self):
        with tempfile.TemporaryDirectory() as folder:
            path = path_with(pathlib.Path(folder), tc=None)
            self.refused(NO_SUCH_LINKS, "up", "--link", "1gbit", says="'tc' command", env=path)
            self.up(env=path)
            self.assertEqual(hosts("status", env=path).returncode, 0)

    def test_a_kernel_without_tbf_leaves_no_hosts(self):
        with tempfile.TemporaryDirectory() as folder:
            path = path_with(pathlib.Path(folder),
                             tc="echo 'Error: Specified qdisc kind is unknown.' >&2; exit 2")
            self.refused(NO_SUCH_LINKS, "up", "--link", "1gbit", says="no tbf", env=path)
        self.assertEqual(hosts("status").stdout, "down\n")
        self.assertFalse([each for each in namespaces() if each.startswith(NAME)])


class Cuts(HostsTest):
    def answers(self, one, other, seconds):
        """Whether OTHER answers ONE, be it that nothing listens there."""
        return "refused" in self.on(one, sys.executable, "-c", KNOCK, other, str(seconds))

    def reaches(self, one, other):
        """What asks for an address and has no answer asks again after a second, then less and less often."""
        return self.answers(one, other, 30)

    def misses(self, one, other):
        return not self.answers(one, other, 1)

    def test_nothing_passes_a_link_that_is_cut_until_it_is_healed(self):
        self.up("--hosts", "3")
        for _ in range(2):
            self.assertEqual(hosts("cut", "h3").returncode, 0)
        self.assertIn(f"{NAME}-h3 10.111.0.3, cut off,", hosts("status").stdout)
        self.assertTrue(self.reaches("h1", "h2"))
        self.assertTrue(self.misses("h1", "h3") and self.misses("h3", "h1"))
        self.up()
        self.assertTrue(self.misses("h3", "h2"))
        for _ in range(2):
            self.assertEqual(hosts("heal", "10.111.0.3").returncode, 0)
        self.assertNotIn("cut", hosts("status").stdout)
        self.assertTrue(self.reaches("h1", "h3") and self.reaches("h3", "h1"))

    def test_two_hosts_may_have_a_bridge(self):
        self.up("--bridge", "--link", "1gbit")
        self.assertTrue(self.reaches("h1", "h2"))
        hosts("cut", "h1")
        self.assertTrue(self.misses("h2", "h1"))

    def test_a_pair_has_no_bridge(self):
        self.up()
        for words in (["cut", "h1"], ["heal", "h1"], ["up", "--bridge"]):
            self.refused(1, *words, says="bridge")

    def test_bad_usage(self):
        self.up("--bridge")
        for words in (["cut"], ["cut", "h0"], ["heal", "h1", "h2"]):
            self.refused(USAGE, *words)
        self.refused(1, "cut", "h3", says="h3 is not up")


class Cores(HostsTest):
    def allowed(self, host, *words):
        told = self.on(host, *words, "cat", "/proc/self/status")
        (line,) = [line for line in told.splitlines() if line.startswith("Cpus_allowed_list:")]
        return line.split()[1]

    def test_each_host_is_confined_to_one_processor(self):
        ours = sorted(os.sched_getaffinity(0))
        self.up("--hosts", "3", "--cores", "full")
        for i in range(3):
            self.assertEqual(self.allowed(f"h{i + 1}"), str(ours[i % len(ours)]))

    def test_hosts_that_share_a_processor_are_told(self):
        some = min(os.sched_getaffinity(0))
        done = self.up("--cores", "full", preexec_fn=lambda: os.sched_setaffinity(0, {some}))
        self.assertIn("2 hosts share 1 processor", done.stderr)
        self.assertEqual([self.allowed(host) for host in ("h1", "h2")], [str(some)] * 2)
        self.assertIn(f"{NAME}-h2 10.111.0.2 on processor {some}", hosts("status").stdout)

    def test_what_another_host_starts_is_confined_here(self):
        self.up("--cores", "full")
        there = self.allowed("h1", HOSTS, "--name", NAME, "exec", "h2")
        self.assertEqual(there, self.allowed("h2"))

    def test_can_be_spared_again(self):
        self.up("--cores", "full")
        self.up("--cores", "spare")
        before = pathlib.Path("/proc/self/status").read_text()
        self.assertIn(f"Cpus_allowed_list:\t{self.allowed('h1')}\n", before)
        self.assertIn("cores spare", hosts("status").stdout)


class Errors(HostsTest):
    def test_bad_usage(self):
        for words in (["up", "--hosts", "1"], ["up", "--hosts", "33"], ["up", "--hosts", "two"],
                      ["up", "--link", "fast"], ["up", "--link", "0gbit"], ["up", "--link", "10"],
                      ["up", "--link", ""], ["up", "--link", "1gbit,1gbit,1gbit"],
                      ["up", "--link", "1gbit,"], ["up", "--cores", "some"], ["up", "--cores", ""],
                      ["up", "--link"], ["up", "--fast"], ["up", "h1"], ["down", "h1"],
                      ["exec", "h0", "true"], ["exec", "h33", "true"], ["exec", "h1"], []):
            with self.subTest(words):
                self.refused(USAGE, *words)
        self.assertEqual(hosts("status").stdout, "down\n")

    def test_a_host_that_is_not_up(self):
        self.up()
        self.refused(1, "exec", "h3", "true", says="h3 is not up")

    def test_without_the_right_to_make_namespaces(self):
        drop = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"]
        for words in (["up"], ["up", "--link", "1gbit"], ["status"]):
            done = subprocess.run([*drop, HOSTS, "--name", NAME, *words],
                                  capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, NOT_PERMITTED, done.stdout + done.stderr)
            self.assertIn("no right", done.stdout + done.stderr)

    def test_the_exit_status_is_the_programs(self):
        self.up("--cores", "full")
        self.assertEqual(hosts("exec", "h1", "sh", "-c", "exit 7").returncode, 7)


class Removal(HostsTest):
    def test_down_removes_what_up_made_and_no_more(self):
        other = f"{NAME}-h1"    # ends like one of our hosts
        self.addCleanup(hosts, "down", name=other)
        self.up("--hosts", "3")
        hosts("up", name=other)
        hosts("down")
        # Tests that run beside this one have hosts, too.
        self.assertEqual([each for each in namespaces() if each.startswith(NAME)],
                         [f"{other}-h1", f"{other}-h2"])

    def test_hosts_of_callers_that_died_are_removed(self):
        dead = subprocess.Popen(["true"])
        dead.wait()
        orphan = f"zc-{os.getuid()}-{dead.pid}"
        self.assertEqual(hosts("up", "--hosts", "3", name=orphan).returncode, 0)
        self.up()
        self.assertFalse([each for each in namespaces() if each.startswith(orphan)])


class Networks(HostsTest):
    """Network, the way to them."""

    def network(self, *arguments, **more):
        return Network(*arguments, name=NAME, **more)

    def test_tells_what_is_up_and_changes_it(self):
        with self.network("3", link="10gbit") as network:
            self.assertEqual((network.link, network.cores), ("10gbit", "spare"))
            network.change("1gbit", "full")
            self.assertIn("link 1gbit, cores full", hosts("status").stdout)
            self.assertEqual((network.link, network.cores), ("1gbit", "full"))
            self.assertIn("links of 1gbit, one processor", network.describe())
        self.assertEqual(hosts("status").stdout, "down\n")

    def test_hosts_that_are_up_are_taken_as_they_are(self):
        self.up("--link", "1gbit", "--cores", "full")
        with self.network() as network:
            self.assertEqual((network.link, network.cores), ("1gbit", "full"))
        self.assertIn("link 1gbit, cores full", hosts("status").stdout)

    def test_hosts_that_are_up_are_left_as_they_were(self):
        self.up("--link", "1gbit")
        with self.network(link="2gbit", cores="full"):
            self.assertIn("link 2gbit, cores full", hosts("status").stdout)
        self.assertIn("link 1gbit, cores spare", hosts("status").stdout)

    def test_a_host_behind_a_bridge_is_cut_and_healed(self):
        with self.network(bridge=True) as network:
            self.assertIn("a bridge", network.describe())
            network.cut(2)
            self.assertIn("h2 10.111.0.2, cut off", hosts("status").stdout)
            network.heal(2)
            self.assertNotIn("cut", hosts("status").stdout)

    def test_links_that_cannot_be_made_are_an_error(self):
        with self.assertRaisesRegex(Error, "not a link"), self.network(link="fast"):
            pass
        with self.network() as network:
            with self.assertRaisesRegex(Error, "not a link"):
                network.change("fast", "full")
            self.assertEqual((network.link, network.cores), ("bare", "spare"))

    def test_one_host_has_no_link(self):
        for one in ("1", "loopback"):
            with self.assertRaisesRegex(Error, "two or more hosts"):
                self.network(one, cores="full")


def main():
    enter_private_namespace()
    if not shutil.which("ip") or not shutil.which("tc"):
        print("skipped: no ip or tc (package iproute2)")
        return EXIT_SKIPPED
    probe = hosts("up")
    hosts("down")
    if probe.returncode == NOT_PERMITTED:
        print(f"skipped: {probe.stderr.strip()}")
        return EXIT_SKIPPED
    return 0 if unittest.main(exit=False, argv=sys.argv).result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
