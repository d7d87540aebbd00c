# SPDX-License-Identifier: BSD-3-Clause
"""How long zc-hold takes to move a rank to another host, and how long the rank stands still.

The rank (changing.c) has random memory, of which a share changes each second, and is checked at the end.
It has no messages and gives up nothing: what is measured is the image. Every run is one move between
two hosts (network namespaces, links of a rate), each with memory that is sent ahead, with and without
--lazy (and that with and without tracking what the rank writes), and with none sent ahead.

  copy, leave, dump, send, restore, bind   what zc-hold says: the phases
  copied, sent, there   bytes: while the rank ran, of its image, and of that what had been copied
  total             from the request until the rank is bound
  still             the longest time that the rank did not run, by its own clock
  source, target    the most memory that zc-hold has on each side, and what it has in /dev/shm
"""
import argparse
import contextlib
import datetime
import itertools
import json
import mmap
import os
import pathlib
import platform
import re
import signal
import subprocess
import sys
import tempfile
import threading
import types

from bench.migrate.stage import exit_status
from bench.spread import percentile
from testbed import network
from testbed.outcome import Skip, check
from tests.detach.suite import find_criu
from tests.holder.hosts import Hosts

HERE = pathlib.Path(__file__).resolve().parent
TOP = HERE.parents[1]
SHARED = pathlib.Path("/dev/shm")
STORE = re.compile(r"/zc-hold-[^/]*/#\d+ \(deleted\)$")
LOOK_SECONDS = 0.05
TIMES = ("copy_ms", "leave_ms", "dump_ms", "send_ms", "restore_ms", "bind_ms", "ms", "still_ms")
NUMBERS = ("rounds", "copied", "bytes", "bytes_there", "unread", "source_bytes", "target_bytes")
UNITS = {**{name: "ms" for name in TIMES}, **{name: "bytes" for name in NUMBERS}, "rounds": "rounds"}
COPIES = 5      # of the rank's memory are there at most: itself, twice, images, and what was sent ahead
WAYS = {"ahead": [], "lazy": ["--lazy"], "read": ["--lazy", "--no-tracking"], "plain": ["--no-pre-copy"]}


class Memory:
    """The most that zc-hold has on both sides of a move: its own, its folders in /dev/shm, and its store."""

    def __init__(self, source, listener):
        self.source, self.program = source, self._program_of(listener)
        self._others = set(self._processes())
        self.most = {"source_bytes": 0, "target_bytes": 0}
        self._over = threading.Event()
        self._known = set(SHARED.glob("zc-hold-*"))
        self._folders = []      # of this move, the target's first
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        self._thread.join()

    @staticmethod
    def _resident(pid):
        with contextlib.suppress(OSError, ValueError):
            for line in pathlib.Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines():
                if line.startswith("RssAnon:"):
                    return int(line.split()[1]) << 10
        return 0

    @staticmethod
    def _in(folder):
        used = 0
        with contextlib.suppress(OSError):
            for file in folder.iterdir():
                used += file.stat().st_blocks * 512
        return used

    @staticmethod
    def _program_of(pid):
        with contextlib.suppress(OSError):
            return os.readlink(f"/proc/{pid}/exe")
        return ""

    def _processes(self):
        """Those of zc-hold."""
        return (int(entry.name) for entry in pathlib.Path("/proc").iterdir()
                if entry.name.isdigit() and self._program_of(entry.name) == self.program)

    @staticmethod
    def _stores(pid):
        """What was sent ahead is in a file without a name: those that PID has, and their bytes."""
        found = {}
        with contextlib.suppress(OSError):
            for entry in pathlib.Path(f"/proc/{pid}/fd").iterdir():
                with contextlib.suppress(OSError):
                    if STORE.search(os.readlink(entry)):
                        of = entry.stat()
                        found[of.st_ino] = of.st_blocks * 512
        return found

    def _there(self):
        """Bytes of the holder that the listener has started, and of the process that fills the rank's memory."""
        resident, stores = 0, {}
        for pid in set(self._processes()) - self._others:
            resident += self._resident(pid)
            stores.update(self._stores(pid))
        return resident + sum(stores.values())

    def _watch(self):
        while not self._over.wait(LOOK_SECONDS):
            self._folders += [each for each in SHARED.glob("zc-hold-*")
                              if each not in self._known and each not in self._folders]
            images = [self._in(folder) for folder in self._folders] + [0, 0]
            for name, bytes_now in (("source_bytes", self._resident(self.source) + images[1]),
                                    ("target_bytes", self._there() + images[0])):
                self.most[name] = max(self.most[name], bytes_now)


class Rank(Hosts):
    """One rank on h1, and a listener on h2."""

    def __init__(self, setup, mib, percent, options):
        super().__init__(setup, hold_options=options)
        self.command = [setup.program, mib, percent]
        self.limit = ["--within", setup.options.within] if setup.options.within else []
        self.running = None

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            stack.callback(self._end_listeners)
            self.listen(2)
            self.running = stack.enter_context(subprocess.Popen(
                self.setup.network.on(1, *self.words(*self.command)), stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                env={**os.environ, **self.environment, "PMI_RANK": "1"}))
            stack.callback(self._kill)
            self.expect("ready")
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *exception):
        self._stack.__exit__(*exception)

    def _kill(self):
        if self.running.poll() is None:
            os.kill(self.running.pid, signal.SIGKILL)

    def expect(self, words):
        """What the rank prints after WORDS, which come next."""
        line = self.running.stdout.readline()
        check(line.startswith(words), f"the rank prints {line!r}, not {words}", self.said() + self.errors())
        return line[len(words):].strip()

    def check_alive(self):
        check(self.running.poll() is None, "the rank has ended", self.said())

    def errors(self):
        os.set_blocking(self.running.stderr.fileno(), False)
        return (self.running.stderr.buffer.read() or b"").decode()

    def measure(self):
        pid = self.status()["pid"]
        listener = self.listeners[2].pid
        with Memory(pid, listener) as memory:
            answer = self.move(2, options=self.limit)
            answer["still_ms"] = float(self.expect("stood still"))
        os.kill(pid, signal.SIGUSR1)
        self.expect("all right")
        check(self.running.wait(60) == 0, "the rank does not end well", self.said())
        return {**answer, **memory.most}


@contextlib.contextmanager
def prepared(options, link):
    """What Rank needs, on two hosts."""
    network.enter_private_namespace()
    criu = find_criu()
    with network.Network("2", link=link) as hosts, tempfile.TemporaryDirectory(prefix="zch-") as scratch:
        hosts.autogroup.print_warning()
        if not hosts.between_hosts:
            raise Skip(hosts.why)
        scratch = pathlib.Path(scratch)
        program = scratch / "changing"
        subprocess.run(["cc", "-O2", "-D_GNU_SOURCE", "-I", TOP / "tests/detach", "-o", program, HERE / "changing.c"],
                       check=True)
        yield types.SimpleNamespace(options=options, scratch=scratch, network=hosts, environment={}, criu=criu,
                                    program=str(program), patience=20)


def write(options, samples):
    now = datetime.datetime.now(datetime.timezone.utc)
    context = {"kernel": platform.release(), "cpus": os.cpu_count(), "load": os.getloadavg()[0],
               "date": now.isoformat(timespec="seconds")}
    lines = [{"context": context}]
    for (link, mib, percent, way), runs in samples.items():
        for metric in (*TIMES, *NUMBERS):
            values = [run[metric] for run in runs if metric in run]
            if values:
                lines.append({"bench": "hold", "case": f"{percent}% at {link}", "impl": way, "bytes": mib << 20,
                              "metric": metric, "unit": UNITS[metric],
                              "median": round(percentile(values, 0.5), 3), "p10": round(percentile(values, 0.1), 3),
                              "p90": round(percentile(values, 0.9), 3), "n": len(values)})
    pathlib.Path(options.json_out).parent.mkdir(parents=True, exist_ok=True)
    pathlib.Path(options.json_out).write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


def row(case, runs):
    """A line of the table: medians."""
    link, mib, percent, way = case

    def cell(name, scale=1.0):
        values = [run[name] * scale for run in runs if name in run]
        return f"{percentile(values, 0.5):>8.0f}" if values else f"{'-':>8}"
    words = "".join(cell(name) for name in TIMES) + cell("rounds") + \
        "".join(cell(name, 2 ** -20) for name in NUMBERS[1:])
    return f"{link:>7} {mib:>5} MiB {percent:>3} % {way:<6}{words}"


def touch(mib):
    """Lets the kernel have MIB of memory and give it up again: a virtual machine's memory may have to come
    from its host first, which was found to take 3.4 s for a GiB, and is not what is measured."""
    with mmap.mmap(-1, mib << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE):
        pass


def cases(options):
    """One after the other, so that the two ways of a case follow each other."""
    for size, percent, _ in itertools.product(options.sizes, options.changes, range(options.rounds)):
        for way in options.ways:
            yield size, percent, way


def run(options):
    samples = {}
    for link in options.links:
        with prepared(options, link) as setup:
            for mib, percent, way in cases(options):
                touch(COPIES * mib)
                with Rank(setup, mib, percent, WAYS[way]) as rank:
                    runs = samples.setdefault((link, mib, percent, way), [])
                    runs.append(rank.measure())
                print(f"{len(runs)}: {row((link, mib, percent, way), runs[-1:])}", file=sys.stderr, flush=True)
    if options.json_out:
        write(options, samples)
    heads = [name.removesuffix("_ms").replace("ms", "total") for name in TIMES] + \
        ["rounds", "copied", "sent", "there", "unread", "source", "target"]
    print(f"medians; ms, and MiB\n{'':30}" + "".join(f"{name:>8}" for name in heads))
    for case, runs in samples.items():
        print(row(case, runs))


def parse():
    parser = argparse.ArgumentParser(prog="bench/run hold", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", metavar="DIR", default=str(TOP / "build/release"),
                        help="optimised build with zc-hold and zcmd (default build/release)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--links", nargs="+", default=["10gbit", "1gbit"], metavar="RATE")
    parser.add_argument("--sizes", type=int, nargs="+", default=[64, 512, 2048], metavar="MIB",
                        help="of the rank's memory")
    parser.add_argument("--changes", type=int, nargs="+", default=[10], metavar="PERCENT",
                        help="of the memory that changes each second")
    parser.add_argument("--ways", nargs="+", choices=[*WAYS], default=[*WAYS],
                        help="memory is sent ahead while the rank runs, and the rank goes on when it has it, or "
                             "before that, with the kernel's knowledge of what it writes or by reading all; or "
                             "all is sent when it stands still")
    parser.add_argument("--within", type=float, metavar="SECONDS", help="what zc-hold --move is told that it may take")
    parser.add_argument("--json-out", metavar="FILE", help="the results, JSON lines")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(exit_status("hold", run, parse()))
