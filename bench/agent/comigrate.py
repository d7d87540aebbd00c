# SPDX-License-Identifier: BSD-3-Clause
"""Jobs that move themselves: the experiments of MPI/IOS (El Maghraoui et al.) with heat2d, and a
program whose partners change.

  join      four ranks on one overloaded node; another node joins
  shrink    ranks on three nodes; one is overloaded; they go on with two
  replace   ranks on two nodes; one gets slow, a fast one joins
  phases    as join, with a program whose partners have changed some seconds before
  turns     as phases, but partners take turns, and it happens so that the decision is due at
            the end of the shorter phase
  idle      a rank on each of two balanced nodes, with a processor each: nothing to do

Nodes are network namespaces with shares of this machine's processors (cgroups). What happens to a
node happens at the same moment of each run; from there on

  time          seconds until so many iterations are done
  throughput    iterations per second in the last third of them
  bytes_across  bytes per iteration from a host to another in that third, as ranks tell them

without migration (off), deciding without moving (observe), and moving ranks one by one
(single), or grouped by the decayed traffic matrix (matrix) or by the prediction engine (zc). The
ways take turns, round after round.

In idle a job without and a job with migration, and its agents, take turns second by second: the
others are stopped meanwhile (SIGSTOP). Runs one after the other differ by more than what is to be
seen.

Exit status: 0 done; 1 failed; 2 usage or set-up; 77 cannot run here.
"""
import argparse
import datetime
import json
import math
import os
import pathlib
import platform
import re
import shutil
import signal
import sys
import tempfile
import time

from bench.spread import percentile
from testbed import migration, mpi, process
from testbed.cluster import NEVER, Cluster, Job
from testbed.migration import STOP
from testbed.outcome import EXIT_FAILED, EXIT_SKIPPED, EXIT_USAGE, Error, Fail, Skip

TOP = pathlib.Path(__file__).resolve().parents[2]
IMPLS = ["off", "observe", "single", "matrix", "zc"]
EXPERIMENTS = ["join", "shrink", "replace"]
# Processors of each node; ranks; rows of heat2d's plate. A join at best halves the time, so its
# runs have to be long beside the decision and the move, and its iterations beside their messages.
CASES = {
    "join": {"shares": [0.4, 0.4], "hosts": [1, 1, 1, 1], "rows": 2048},
    "shrink": {"shares": [0.4, 0.4, 0.4], "hosts": [1, 1, 2, 3]},
    "replace": {"shares": [0.4, 0.4, 0.8], "hosts": [1, 1, 2, 2]},
    "phases": {"shares": [0.4, 0.4], "hosts": [1, 1, 1, 1]},
    "turns": {"shares": [0.4, 0.4], "hosts": [1, 1, 1, 1]},
    "idle": {"shares": [1.0, 1.0], "hosts": [1, 2]},
}
# Ways that a quick run leaves out.
NOT_QUICK = {"phases": ["off", "observe"], "turns": ["off", "observe"],
             "others": ["observe", "single", "matrix"]}
SLICE_S = 1.0
TURNS = (120, 480)  # iterations with one partner, then with the other
GAIN_OF_IOS = {"join": 0.43, "shrink": 0.33, "replace": 0.79}


class Bench:
    def __init__(self, options, prefix):
        self.options, self.prefix = options, prefix
        self.programs = migration.build(prefix, ["examples/heat2d.c", "bench/agent/phases.c"],
                                        pathlib.Path(options.library).resolve(),
                                        TOP / "build/mpi/comigrate")
        self.samples = {}  # (case, impl, metric): [value]
        self.series = {}   # (case, impl): [(second, iterations per second)], of the first round
        self.costs = {}    # impl: [throughput of a second without, by that of the next one with it]

    def run(self, case, impl):
        shares = CASES[case]["shares"]
        with tempfile.TemporaryDirectory(prefix="zc-comigrate-") as directory:
            with Cluster(len(shares), f"{self.options.library}/bin", directory, prefix=self.prefix,
                         shares=shares, programs=self.programs) as cluster:
                if case == "idle":
                    self.take_turns(cluster, impl)
                else:
                    self.measure(cluster, case, impl)

    @staticmethod
    def start_agents(cluster, case, impl):
        """Start those of the beginning. Returns the host that joins (or None), and settings."""
        if impl == "off":
            return None, None
        joining = {"join": 2, "phases": 2, "turns": 2, "replace": 3}.get(case)
        hosts = [h for h in range(1, cluster.count + 1) if h != joining]
        # Steal packets are not to be waited for long, and the run is short.
        settings = {"policy": {"grouping": "zc" if impl == "observe" else impl, "steal_most": 4},
                    "decision": {"settle": 2, "residence": 20, "max_ranks": 16}}
        cluster.start_agents(hosts, settings)
        return joining, settings

    @staticmethod
    def heat2d(rows, report):
        return ["heat2d", "--rows", rows, "--columns", 2048, "--iterations", NEVER, "--no-verify",
                "--report", report]

    def take_turns(self, cluster, impl):
        """With agents and without, second by second."""
        # All of them stop together: no reason to suspect each other.
        agents = cluster.start_agents(settings={"policy": {"grouping": "zc"},
                                                "membership": {"suspicion": 60}})
        # What reads the reports needs a processor, too.
        program = self.heat2d(self.options.rows or 512, 10)
        mode = "observe" if impl == "observe" else "1"
        hosts = CASES["idle"]["hosts"]
        with Job(cluster, *program, hosts=hosts, mode=None, name="without") as without, \
                Job(cluster, *program, hosts=hosts, mode=mode) as job:
            for one in (without, job):
                self.until(one, 10)
            time.sleep(self.options.before)
            ways = {"off": (without, pids(without)),
                    impl: (job, pids(job) + [agent.process.pid for agent in agents])}
            for _, processes in ways.values():
                tell(processes, signal.SIGSTOP)
            try:
                for turn in range(self.options.slices):
                    speed = {name: self.slice(*ways[name])
                             for name in sorted(ways, reverse=turn % 2 == 1)}
                    for name, one in speed.items():
                        self.add("idle", name, "throughput", one)
                        self.add("idle", name, "time", self.options.iterations / one)
                    self.costs.setdefault(impl, []).append(speed["off"] / speed[impl] - 1)
            finally:
                for _, processes in ways.values():
                    tell(processes, signal.SIGCONT)
        for text in self.moved(cluster):
            raise Fail(f"there was nothing to do, and yet: {text}")
        costs = self.costs[impl][-self.options.slices:]
        low, middle, high = (100 * percentile(costs, part) for part in (0.25, 0.5, 0.75))
        print(f"  idle     {impl:<8} {middle:+.1f} % time, quartiles {low:+.1f} and {high:+.1f}",
              flush=True)

    def slice(self, job, processes):
        """Iterations per second of JOB while only its PROCESSES run."""
        tell(processes, signal.SIGCONT)
        begin = time.monotonic()
        time.sleep(SLICE_S)
        tell(processes, signal.SIGSTOP)
        end = time.monotonic()
        lines = [(at, done) for at, done in self.progress(job)[-2000:]
                 if begin + SLICE_S / 10 <= at <= end]
        if len(lines) < 2:
            raise Fail(f"no progress in {SLICE_S} s: {job.said()[-500:]}")
        return (lines[-1][1] - lines[0][1]) / (lines[-1][0] - lines[0][0])

    def measure(self, cluster, case, impl):
        options = self.options
        joining, settings = self.start_agents(cluster, case, impl)
        mode = {"off": None, "observe": "observe"}.get(impl, "1")
        goal = options.iterations
        phases = ["phases", "--iterations", NEVER, "--work", 200, "--report", 1]
        if case == "phases":
            program = [*phases, "--switch", STOP]
        elif case == "turns":
            program = [*phases, "--turns", f"{TURNS[0]}:{TURNS[1]}"]
        else:
            rows = options.rows or CASES[case].get("rows", 512)
            program = self.heat2d(rows, 1)
        with Job(cluster, *program, hosts=CASES[case]["hosts"], mode=mode) as job:
            self.until(job, 10)
            time.sleep(options.before)
            if case == "phases":
                job.stop()  # the file by which the program is told to go on to its other phase
                time.sleep(options.noticed)
            elif case == "turns":
                self.until_end_of_turn(job)
            begin = time.monotonic()
            start = self.progress(job)[-1][1]
            if case in ("shrink", "replace"):
                cluster.busy(CASES[case]["hosts"][-1], options.load)
            if joining:
                cluster.agent(joining, settings=settings)
            self.until(job, start + goal * 2 // 3)
            told = job.profiles() if mode else {}
            self.until(job, start + goal)
            across = self.across(told, job.profiles()) if mode else None
            lines = [(at - begin, done - start) for at, done in self.progress(job) if at >= begin]
        total = next(at for at, done in lines if done >= goal)
        third = next(at for at, done in lines if done >= goal * 2 // 3)
        rate = (goal - goal * 2 // 3) / (total - third)
        self.add(case, impl, "time", total)
        self.add(case, impl, "throughput", rate)
        if across is not None:
            self.add(case, impl, "bytes_across", across)
        moved = self.moved(cluster)
        if case == "turns":
            moved += self.decided(cluster, job)
        print(f"  {case:<8} {impl:<8} {total:6.1f} s, at last {rate:6.1f} iterations/s" +
              (f", {across / 1024:7.1f} KiB across" if across is not None else "") +
              "".join(f"; {one}" for one in moved), flush=True)
        if (case, impl) not in self.series:
            self.series[case, impl] = rates(lines, max(1.0, total / 40))

    @staticmethod
    def moved(cluster):
        """What was moved, in words."""
        return [f"{one['what']} {','.join(map(str, one['ranks']))} to {one['to_host']}" +
                (f" ({one['why']})" if one["what"] == "failed" else "")
                for one in cluster.decisions("moved", "would_move", "failed")]

    def decided(self, cluster, job):
        """When in the turns of the partners it was decided which ranks go, in words."""
        since = time.time() - time.monotonic()
        for record in cluster.decisions("planned"):
            turn = next((done for at, done in self.progress(job)
                         if at + since >= record["time"]), 0) % sum(TURNS)
            yield (f"planned {','.join(map(str, record['ranks']))} in iteration {turn} "
                   f"of the turns ({TURNS[0]} + {TURNS[1]})")

    @staticmethod
    def progress(job):
        """[(second, iterations done)]"""
        return [(line.at, int(m[1])) for line in list(job.out)
                if (m := re.match(r"iteration (\d+) at", line))]

    def until(self, job, iterations):
        deadline = time.monotonic() + self.options.limit
        while not (lines := self.progress(job)) or lines[-1][1] < iterations:
            if job.process.poll() is not None:
                raise Fail(f"ended early: {job.said()[-1500:]}")
            if time.monotonic() > deadline:
                raise Fail(f"{iterations} iterations not within {self.options.limit} s: "
                           f"{job.said()[-500:]}")
            time.sleep(0.1)

    def until_end_of_turn(self, job):
        """After some turns, which the engine has to have seen, until the decision would fall at
        the end of one."""
        self.until(job, 4 * sum(TURNS))
        first, last = self.progress(job)[-200], self.progress(job)[-1]
        due = round(self.options.decides * (last[1] - first[1]) / (last[0] - first[0]))
        turn = (last[1] + due) // sum(TURNS) + 1
        self.until(job, turn * sum(TURNS) + TURNS[0] - due)

    @staticmethod
    def across(before, after):
        """Bytes per iteration from one host to another, between two readings."""
        total = 0.0
        for rank, (host, one) in after.items():
            if rank not in before or before[rank][1].pid != one.pid:
                continue  # moved in between
            passed = one.iterations - before[rank][1].iterations
            for peer, sent in one.sent.items():
                if passed > 0 and peer in after and after[peer][0] != host:
                    total += (sent - before[rank][1].sent.get(peer, 0)) / passed
        return total

    def add(self, case, impl, metric, value):
        self.samples.setdefault((case, impl, metric), []).append(value)

    def median(self, case, impl, metric):
        values = self.samples.get((case, impl, metric))
        return percentile(values, 0.5) if values else None

    def all(self):
        for turn in range(self.options.rounds):
            print(f"round {turn + 1} of {self.options.rounds}", flush=True)
            for case in self.options.cases:
                for impl in self.options.impls:
                    if case == "idle" and impl not in ("observe", "zc"):
                        continue
                    if self.options.quick and impl in NOT_QUICK.get(case, NOT_QUICK["others"]):
                        continue
                    try:
                        self.run(case, impl)
                    except Fail as problem:
                        print(f"  {case:<8} {impl:<8} FAILED: {problem}", flush=True)
                        self.options.failed = True

    def write(self, path):
        path = pathlib.Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        context = {"kernel": platform.release(), "cpus": os.cpu_count(), "load": os.getloadavg()[0],
                   "iterations": self.options.iterations,
                   "shares": {c: CASES[c]["shares"] for c in self.options.cases},
                   "date": datetime.datetime.now(datetime.timezone.utc).isoformat(
                       timespec="seconds")}
        units = {"time": "s", "throughput": "1/s", "bytes_across": "bytes", "cost": "1"}
        for impl, costs in self.costs.items():
            self.samples["idle", impl, "cost"] = costs
        with open(path, "w", encoding="utf-8") as file:
            file.write(json.dumps({"context": context}) + "\n")
            for (case, impl, metric), values in self.samples.items():
                low, middle, high = (round(percentile(values, part), 4) for part in (0.1, 0.5, 0.9))
                file.write(json.dumps({
                    "bench": "agents", "case": case, "impl": impl, "bytes": 0, "metric": metric,
                    "unit": units[metric], "median": middle, "p10": low, "p90": high,
                    "n": len(values)}) + "\n")

    def show(self):
        print(f"\n{'':<18}{'time':>9}{'throughput':>12}{'across':>12}   medians; against off")
        for case in self.options.cases:
            for impl in IMPLS:
                took, rate, across = (self.median(case, impl, metric)
                                      for metric in ("time", "throughput", "bytes_across"))
                if took is None:
                    continue
                off, off_rate = (self.median(case, "off", metric)
                                 for metric in ("time", "throughput"))
                text = f"{case:<9}{impl:<9}{took:>7.1f} s{rate:>10.1f}/s"
                text += f"{across / 1024:>8.1f} KiB" if across is not None else " " * 12
                if case == "idle" and impl in self.costs:
                    costs = self.costs[impl]
                    low, high = median_between(costs)
                    text += (f"   {percentile(costs, 0.5) * 100:+.2f} % time, in truth "
                             f"{low * 100:+.2f} to {high * 100:+.2f} (95 %, {len(costs)} pairs)")
                elif off and impl != "off":
                    text += (f"   {(took / off - 1) * 100:+.0f} % time, "
                             f"{(rate / off_rate - 1) * 100:+.0f} % throughput")
                print(text)
        for case, gain in GAIN_OF_IOS.items():
            if case in self.options.cases:
                print(f"MPI/IOS, {case}: {'+' if case == 'replace' else '-'}{gain * 100:.0f} % "
                      f"{'throughput' if case == 'replace' else 'time'}")


def median_between(values):
    """What the median of all there could be lies between, with 95 %, whatever their distribution
    (order statistics)."""
    values = sorted(values)
    reach = 0.98 * len(values) ** 0.5
    return (values[max(0, math.floor(len(values) / 2 - reach))],
            values[min(len(values) - 1, math.ceil(len(values) / 2 + reach) - 1)])


def pids(job):
    """Of its ranks; all that carry its mark and are no part of the launcher."""
    return [pid for pid, environment in process.processes(job.mark) if b"PMI_RANK" in environment]


def tell(processes, what):
    for pid in processes:
        try:
            os.kill(pid, what)
        except ProcessLookupError:
            raise Fail(f"process {pid} has ended") from None


def rates(lines, step):
    """Iterations per second over time, in steps of so many seconds."""
    points, last = [], lines[0]
    for at, done in lines[1:]:
        if at - last[0] >= step:
            points.append(((at + last[0]) / 2, (done - last[1]) / (at - last[0])))
            last = (at, done)
    return points


def draw(path, series, cases):
    """One panel per case, one line per way."""
    colours = {"off": "#c0392b", "observe": "#7f8c8d", "single": "#d68910", "matrix": "#2471a3",
               "zc": "#1e8449"}
    width, height, margin = 340, 240, 44
    size = f'width="{width * len(cases)}" height="{height + 40}"'
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" '
           'font-size="11">', f'<rect {size} fill="white"/>']
    shown = [impl for impl in colours if any((case, impl) in series for case in cases)]
    for i, impl in enumerate(shown):
        out.append(f'<text x="{margin + 70 * i}" y="{height + 30}" fill="{colours[impl]}">{impl}'
                   '</text>')
    for place, case in enumerate(cases):
        left = width * place + margin
        mine = {impl: points for (c, impl), points in series.items() if c == case and points}
        most_x = max((x for points in mine.values() for x, _ in points), default=1)
        most_y = max((y for points in mine.values() for _, y in points), default=1)
        wide, high = width - margin - 16, height - 60
        out += [f'<text x="{left}" y="18" font-size="13">{case}</text>',
                f'<text x="{left}" y="34">iterations/s, most {most_y:.0f}</text>',
                f'<path d="M{left} 40 V{40 + high} H{left + wide}" fill="none" stroke="black"/>',
                f'<text x="{left + wide}" y="{54 + high}" text-anchor="end">{most_x:.0f} s</text>']
        for impl, points in mine.items():
            line = " ".join(f"{left + x / most_x * wide:.1f},{40 + high - y / most_y * high:.1f}"
                            for x, y in points)
            out.append(f'<polyline points="{line}" fill="none" stroke="{colours[impl]}" '
                       'stroke-width="1.6"/>')
    pathlib.Path(path).write_text("\n".join([*out, "</svg>"]) + "\n", encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(prog="bench/run demo-comigrate", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mpich", metavar="PREFIX", help="MPICH to use (default: $ZC_MPICH)")
    parser.add_argument("--library", metavar="DIR", default=str(TOP / "build/release"),
                        help="build with libraries and tools (default build/release)")
    parser.add_argument("--quick", action="store_true",
                        help="one short round, and only the ways that a case is about")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--iterations", type=int, help="from what happens to the end of a run")
    parser.add_argument("--rows", type=int,
                        help="of heat2d's plate, of 2048 columns (default: the case's)")
    parser.add_argument("--before", type=float, default=14, metavar="S",
                        help="seconds before it happens; what started the job is busy for some 10")
    parser.add_argument("--noticed", type=float, default=5, metavar="S",
                        help="phases: from the change of partners until the node joins")
    parser.add_argument("--decides", type=float, default=1.2, metavar="S",
                        help="turns: seconds from the join to the decision")
    parser.add_argument("--slices", type=int, metavar="N",
                        help="idle: pairs of seconds in a round (default: 20)")
    parser.add_argument("--limit", type=float, default=300, metavar="S",
                        help="a run that takes longer has failed")
    parser.add_argument("--load", type=int, default=4, help="busy processes on an overloaded node")
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--impls", nargs="+", choices=IMPLS, default=IMPLS)
    parser.add_argument("--out", metavar="FILE", default=str(TOP / "out/agents.jsonl"))
    parser.add_argument("--svg", metavar="FILE", default=str(TOP / "out/agents.svg"))
    options = parser.parse_args()
    options.rounds = options.rounds or (1 if options.quick else 5)
    options.iterations = options.iterations or (800 if options.quick else 1500)
    options.slices = options.slices or (4 if options.quick else 20)
    options.failed = False
    process.exit_on_sigterm()
    if not shutil.which("curl"):
        print("comigrate: curl is missing", file=sys.stderr)
        return EXIT_SKIPPED
    try:
        bench = Bench(options, mpi.prefix_or_die(options.mpich))
        try:
            bench.all()
        finally:
            if bench.samples:
                bench.write(options.out)
                draw(options.svg, bench.series, options.cases)
        bench.show()
        print(f"figures: {options.out}; picture: {options.svg}")
    except Skip as reason:
        print(f"comigrate: {reason}", file=sys.stderr)
        return EXIT_SKIPPED
    except Error as error:
        print(f"comigrate: {error}", file=sys.stderr)
        return EXIT_USAGE
    return EXIT_FAILED if options.failed else 0


if __name__ == "__main__":
    sys.exit(main())
