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

OUT has a line per figure, and the curves of the first round; --again makes table and picture of it
once more, and --add measures case by case.

Exit status: 0 done; 1 failed; 2 usage or set-up; 77 cannot run here.
"""
import argparse
import math
import os
import pathlib
import re
import shutil
import signal
import sys
import tempfile
import time

from bench import evaluation
from bench.agent.comigrate_report import IMPLS, Comigration, figure, series
from bench.migrate.stage import exit_status
from bench.spread import percentile
from testbed import migration, mpi, process
from testbed.cluster import NEVER, Cluster, Job
from testbed.migration import STOP
from testbed.outcome import EXIT_FAILED, EXIT_SKIPPED, EXIT_USAGE, Error, Fail, Skip

TOP = pathlib.Path(__file__).resolve().parents[2]
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


class Bench:
    def __init__(self, options, prefix):
        self.options, self.prefix = options, prefix
        self.before = Comigration.before(options)
        self.programs = migration.build(prefix, ["examples/heat2d.c", "bench/agent/phases.c"],
                                        pathlib.Path(options.library).resolve(),
                                        TOP / "build/mpi/comigrate")
        self.samples = {}  # (case, impl, metric): [value]
        self.series = {}   # (case, impl): what rates() gives of the first round
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
            self.series[case, impl] = rates(lines, max(min(1.0, total / 4), total / 40))

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

    def figures(self):
        about = evaluation.context(
            iterations=self.options.iterations, rounds=self.options.rounds,
            shares={case: CASES[case]["shares"] for case in self.options.cases})
        lines = [figure(*key, values) for key, values in self.samples.items()]
        for impl, costs in self.costs.items():
            low, high = median_between(costs)
            lines.append({**figure("idle", impl, "cost", costs), "low": round(low, 4),
                          "high": round(high, 4)})
        return Comigration(about, lines + [series(*key, points) for key, points in self.series.items()])

    def write(self):
        figures = self.figures()
        (figures.with_others_of(self.before) if self.before else figures).write(self.options.out)


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
    """[(second, iterations done, iterations per second)], in steps of so many seconds."""
    points, last = [], lines[0]
    for at, done in lines[1:]:
        if at - last[0] >= step:
            points.append(((at + last[0]) / 2, (done + last[1]) / 2, (done - last[1]) / (at - last[0])))
            last = (at, done)
    return points


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
    parser.add_argument("--add", action="store_true",
                        help="what OUT has of other cases stays there")
    evaluation.add_options(parser, "agents")
    options = parser.parse_args()
    if options.again:
        return exit_status("comigrate", evaluation.show, Comigration, options)
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
                bench.write()
        if bench.samples:
            evaluation.show(Comigration, options)
    except Fail as problem:
        print(f"comigrate: {problem}", file=sys.stderr)
        return EXIT_FAILED
    except Skip as reason:
        print(f"comigrate: {reason}", file=sys.stderr)
        return EXIT_SKIPPED
    except Error as error:
        print(f"comigrate: {error}", file=sys.stderr)
        return EXIT_USAGE
    return EXIT_FAILED if options.failed else 0


if __name__ == "__main__":
    sys.exit(main())
