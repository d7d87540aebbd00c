# SPDX-License-Identifier: BSD-3-Clause
"""What a migration costs: by way of memory, of the disk, and beside them a bare spawn
and a plain MPI_Send of the same bytes. The three take turns, round after round.

  response    from the request until all ranks go on, ms
  evacuation  from the request until the leaver's process is gone, ms
  stall       the longest time a rank that did not move was held, ms
  and one metric per phase; see zcctl(1)

Cases: one (one of two ranks moves), two (two of four). disk-120 and disk-500 are the same disk,
held to so many MB/s by the kernel (reading and writing each): what disks of other machines do.

'overhead-*' compares heat2d with and without libzcm (ZC_MIGRATE unset, and set but never
asked), by turns, in ns per iteration: tiny (one rank, 8 x 256), real (one rank, 128 x 1024) and
pair (two ranks on one host, 128 x 1024 each). bench/migrate/pairs.py does so with messages between
two ranks, in ns of a message, and has a rank of such a pair move many times before (--moves).
"""
import argparse
import contextlib
import datetime
import json
import os
import pathlib
import platform
import re
import sys

from bench.migrate import pairs
from bench.migrate.departed import Departures
from bench.migrate.limited_disk import LimitedDisk, Unlimited
from bench.migrate.stage import HEAT, PINGPONG, add_options, exit_status, stage_of
from bench.spread import percentile
from testbed import mpi
from testbed.migration import H1, H2, SAID, TOP, Job
from testbed.outcome import Fail

MIB = 1 << 20
# Plates: rows, columns, iterations, iterations between two looks at the clock, ranks. A run takes
# seconds, as what started the job is still ending in the first of them; a look is so short a
# time that most are not interrupted.
PLATES = {"tiny": (8, 256, 2000000, 1000, 1), "real": (128, 1024, 30000, 20, 1),
          "pair": (128, 1024, 6000, 20, 2)}
# Where the linker puts the inner loop, and malloc() the plates, makes 4 % of the tiny one's time:
# in all three it is the start of a cache line, and of a page.
ALIGNED = ["-falign-functions=64", "-falign-loops=64"]
SAME_PLACES = {"MALLOC_MMAP_THRESHOLD_": "4096"}
IMPLEMENTATIONS = {"plain": ("_plain", False), "off": ("", False), "on": ("", True)}
UNITS = {"iteration": "ns", "message": "ns", "rate": "MB/s"} # else ms
PHASES = ["negotiation", "start", "spawn", "checkpoint", "transfer", "restore", "rebuild"]


class Bench:
    def __init__(self, options, stage):
        self.options = options
        self.stage = stage
        self.samples = {}   # (case, impl, bytes, metric): [ms]
        self.disks = {}     # impl: LimitedDisk
        self.unlimited = ""
        try:
            for rate in options.rates:
                disk = self.disks[f"disk-{rate}"] = LimitedDisk(options.disk, rate * 1000000)
                self.samples["disk", f"disk-{rate}", 0, "rate"] = [disk.measured() / 1e6]
                print(f"disk held to {rate} MB/s: {disk.measured() / 1e6:.0f} MB/s measured")
        except Unlimited as problem:
            self.unlimited = str(problem)
            print(f"skipped: limited disks: {problem}")

    def close(self):
        for disk in self.disks.values():
            disk.close()

    def add(self, case, impl, size, metric, value):
        self.samples.setdefault((case, impl, size, metric), []).append(value)

    def move(self, case, impl, mib, ranks, moving):
        """One job; its ranks MOVING go to the other host."""
        via = "disk" if impl.startswith("disk") else impl
        slow = self.disks[impl].around() if impl in self.disks else contextlib.nullcontext()
        with slow:
            job = Job(self.stage, "heat2d", "--rows", 64, "--columns", 1024, "--ballast", mib,
                      "--iterations", 100000000, "--no-verify", ranks=ranks,
                      environment={"ZC_MIGRATE_DIR": self.options.disk})
        with job:
            status = job.until_running(timeout=300, safe_points=20)
            pids = [one["pid"] for one in status["ranks"] if one["rank"] in moving]
            leaving = Departures(pids)
            code, answer, said = job.ask("move", "--rank", ",".join(map(str, moving)), "--to", H1,
                                         "--via", via, timeout=300)
            if code != 0:
                raise Fail(f"{case} {impl} {mib} MiB: {said}", job.said()[-SAID:])
            evacuation = leaving.took_ms()
        size = mib * MIB
        self.add(case, impl, size, "response", answer["response_ms"])
        self.add(case, impl, size, "stall", answer["stall_ms"])
        if evacuation is not None:
            self.add(case, impl, size, "evacuation", evacuation)
        for phase in PHASES:
            self.add(case, impl, size, phase, answer["phases_ms"][phase])
        return answer["response_ms"]

    def send(self, mib):
        with Job(self.stage, "send", H1, mib * MIB, 1, ranks=1, hosts=(H2,), migrate=False) as job:
            status = job.wait(300)
            found = re.search(r"\{.*\}", job.said())
            if status != 0 or not found:
                raise Fail(f"send: exit status {status}", job.said()[-SAID:])
        one = json.loads(found[0])
        self.add("one", "send", mib * MIB, "spawn", one["spawn_ms"])
        self.add("one", "send", mib * MIB, "transfer", one["send_ms"])
        self.add("one", "send", mib * MIB, "response", one["spawn_ms"] + one["send_ms"])
        return one["spawn_ms"] + one["send_ms"]

    def overhead(self, plate, impl):
        """A tenth of the iterations of a run is faster than what is noted of it."""
        rows, columns, iterations, each, ranks = PLATES[plate]
        built, migrate = IMPLEMENTATIONS[impl]
        with Job(self.stage, "heat2d" + built, "--rows", rows, "--columns", columns,
                 "--iterations", iterations, "--report", each, "--no-verify",
                 ranks=ranks, hosts=(H1,), migrate=migrate, environment=SAME_PLACES) as job:
            if job.wait(300) != 0:
                raise Fail("heat2d has failed", job.said()[-SAID:])
            times = [float(at) for at in re.findall(r"iteration \d+ at ([\d.]+)", job.said())]
        steps = [(b - a) / each * 1e9 for a, b in zip(times, times[1:])]
        self.add(f"overhead-{plate}", impl, 0, "iteration", percentile(steps, 0.1))

    def pair(self, place, how, size, impl):
        self.add(f"{how}-{place}", impl, size, "message",
                 pairs.measure(self.stage, place, how, size, impl, self.options.moves))

    def idle(self):
        for turn in range(self.options.idle_rounds):
            print(f"idle, round {turn + 1} of {self.options.idle_rounds}", flush=True)
            for plate in PLATES:
                for impl in IMPLEMENTATIONS:
                    self.overhead(plate, impl)
            for place in pairs.PLACES:
                for how, size in pairs.CASES:
                    for impl in pairs.BUILDS if self.options.moves else IMPLEMENTATIONS:
                        self.pair(place, how, size, impl)

    def run(self):
        self.idle()
        for turn in range(self.options.rounds):
            print(f"moves, round {turn + 1} of {self.options.rounds}", flush=True)
            for mib in self.options.sizes:
                took = {impl: self.move("one", impl, mib, 2, [1])
                        for impl in ("memory", "disk", *self.disks)}
                took["send"] = self.send(mib)
                if mib <= 64:
                    self.move("two", "memory", mib, 4, [1, 3])
                    self.move("two", "disk", mib, 4, [1, 3])
                print(f"  {mib:>4} MiB  " + "  ".join(f"{k} {v:8.0f} ms" for k, v in took.items()),
                      flush=True)

    def write(self, path):
        pathlib.Path(path).parent.mkdir(parents=True, exist_ok=True)
        now = datetime.datetime.now(datetime.timezone.utc)
        context = {"kernel": platform.release(), "cpus": os.cpu_count(),
                   "load": os.getloadavg()[0], "disk": "O_DIRECT and fsync where possible",
                   "limited_disks": self.unlimited or "blkio.throttle or io.max, read and write",
                   "link": self.options.link or "veth", "date": now.isoformat(timespec="seconds")}
        with open(path, "w", encoding="utf-8") as file:
            file.write(json.dumps({"context": context}) + "\n")
            for (case, impl, size, metric), values in self.samples.items():
                file.write(json.dumps({
                    "bench": "migrate", "case": case, "impl": impl, "bytes": size,
                    "metric": metric, "unit": UNITS.get(metric, "ms"),
                    "median": round(percentile(values, 0.5), 3),
                    "p10": round(percentile(values, 0.1), 3),
                    "p90": round(percentile(values, 0.9), 3), "n": len(values)}) + "\n")

    def median(self, case, impl, size, metric):
        values = self.samples.get((case, impl, size, metric))
        return percentile(values, 0.5) if values else float("nan")

    def show(self):
        columns = ["response", "evacuation", "stall", *PHASES]
        print("\nmedians, ms" + "".join(f"{name:>12}" for name in columns))
        cases = sorted({(case, size, impl) for case, impl, size, metric in self.samples
                        if metric == "response"})
        for case, size, impl in cases:
            print(f"{case} {size // MIB:>4} MiB {impl:<9}" +
                  "".join(f"{self.median(case, impl, size, name):>12.1f}" for name in columns)
                  .replace("nan", "  -"))
        print()
        for mib in self.options.sizes if self.options.rounds else ():
            response = {impl: self.median("one", impl, mib * MIB, "response")
                        for impl in ("memory", "disk", *self.disks, "send")}
            memory, send = response.pop("memory"), response.pop("send")
            print(f"{mib:>4} MiB: memory / (spawn + send) {memory / send:.2f}, " +
                  ", ".join(f"{impl} / memory {took / memory:.2f}"
                            for impl, took in response.items()))
        for plate, (rows, columns, _, _, ranks) in PLATES.items():
            print(f"iteration of heat2d, {ranks} x {rows} x {columns}: " +
                  ", ".join(self.shown(f"overhead-{plate}", impl, 0, "iteration")
                            for impl in IMPLEMENTATIONS))
        for place in pairs.PLACES:
            for how, size in pairs.CASES:
                print(f"{how} of {size} bytes, {place}: " +
                      ", ".join(self.shown(f"{how}-{place}", impl, size, "message")
                                for impl in pairs.BUILDS))

    def shown(self, case, impl, size, metric):
        """Median, range and how much more it is than plain."""
        values = self.samples.get((case, impl, size, metric))
        if not values:
            return f"{impl} -"
        median = percentile(values, 0.5)
        more = (median / self.median(case, "plain", size, metric) - 1) * 100
        return (f"{impl} {median:,.0f} ns ({min(values):,.0f}..{max(values):,.0f})" +
                (f" {more:+.2f} %" if impl != "plain" else ""))


def parse():
    parser = argparse.ArgumentParser(prog="bench/run migrate", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    add_options(parser)
    parser.add_argument("--rounds", type=int, default=3, help="of moves")
    parser.add_argument("--link", help="rate of the links between the hosts: 10gbit, 1gbit, ...")
    parser.add_argument("--idle-rounds", type=int, default=5,
                        help="of what being ready to move costs")
    parser.add_argument("--moves", type=int, default=50,
                        help="of a rank of a pair before that is measured once more; 0: it is not")
    parser.add_argument("--rates", type=int, nargs="*", default=[120, 500], metavar="MB/S",
                        help="also on the same disk, limited to these rates")
    parser.add_argument("--sizes", type=int, nargs="+", default=[1, 16, 64, 192, 512],
                        metavar="MIB")
    parser.add_argument("--disk", metavar="DIR", default=str(TOP / "build/mpi/migrate-disk"),
                        help="where the disk path writes; must not be a tmpfs")
    parser.add_argument("--out", metavar="FILE", default=str(TOP / "out/migrate.jsonl"))
    return parser.parse_args()


def run(options):
    os.makedirs(options.disk, exist_ok=True)
    with stage_of(options, flags=ALIGNED, link=options.link) as stage:
        plain = mpi.build(stage.prefix, [HEAT, PINGPONG], TOP / "build/mpi/migrate-plain",
                          flags=["-DPLAIN", *ALIGNED])
        for name, program in plain.items():
            stage.programs[name + "_plain"] = program
        bench = Bench(options, stage)
        try:
            bench.run()
        finally:
            bench.close()
            if bench.samples:
                bench.write(options.out)
        bench.show()


if __name__ == "__main__":
    sys.exit(exit_status("migrate", run, parse()))
