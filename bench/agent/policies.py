# SPDX-License-Identifier: BSD-3-Clause
"""The three ways to steal work of MPI/IOS beside each other: 16 ranks on four hosts of different speed.

Hosts are network namespaces. What a host has, and so how long an iteration takes its ranks, is a
model: ranks sleep (bench/agent/hosts_of_speed.c), and agents are told processors and speed
(node.cpus, node.speed). The job, its moves, the agents and their messages are real.

Each run begins with four ranks on each host and lasts --seconds from the job's first iterations. The
policies take turns, round after round. Printed are, with medians over the rounds,

  iterations    in the whole run
  settled       seconds until the last move had ended
  moves, ranks  that were made, and ranks that they moved
  per second    iterations in the last quarter
  across        bytes per iteration from a host to another in that quarter, as ranks tell them

OUT has a line per figure; --again makes table and picture of it once more.

Exit status: 0 done; 1 failed; 2 usage or set-up; 77 cannot run here.
"""
import argparse
import pathlib
import shutil
import sys
import tempfile
import time

from bench import evaluation
from bench.agent.comigrate import Bench as Comigrate
from bench.agent.policies_report import POLICIES, Policies, figure
from bench.migrate.stage import exit_status
from testbed import migration, mpi, process
from testbed.cluster import Cluster, Job
from testbed.migration import STOP
from testbed.outcome import EXIT_FAILED, EXIT_SKIPPED, EXIT_USAGE, Error, Fail, Skip

TOP = pathlib.Path(__file__).resolve().parents[2]
HOSTS = {1: (4, 2), 2: (4, 1), 3: (2, 1), 4: (2, 0.5)}      # processors, and their speed
RANKS = [1] * 4 + [2] * 4 + [3] * 4 + [4] * 4


def best():
    """Iterations per unit of work if ranks are where they are fastest."""
    found = {host: 0 for host in HOSTS}
    for _ in RANKS:
        after = {host: pace(host, count + 1) for host, count in found.items()}
        found[min(after, key=after.get)] += 1
    return 1 / max(pace(host, count) for host, count in found.items() if count)


def pace(host, ranks):
    cpus, speed = HOSTS[host]
    return max(1, ranks / cpus) / speed


class Bench:
    def __init__(self, options, prefix):
        self.options, self.prefix = options, prefix
        self.programs = migration.build(prefix, ["bench/agent/hosts_of_speed.c"],
                                        pathlib.Path(options.library).resolve(),
                                        TOP / "build/mpi/policies")
        self.samples = {}   # (policy, metric): [value]

    def run(self, policy):
        with tempfile.TemporaryDirectory(prefix="zc-policies-") as directory, \
                Cluster(len(HOSTS), f"{self.options.library}/bin", directory, prefix=self.prefix,
                        shares=[2.0] * len(HOSTS), programs=self.programs) as cluster:
            said = ",".join(f"h{host}={cpus}*{speed}" for host, (cpus, speed) in HOSTS.items())
            program = ["hosts_of_speed", said, self.options.work, 4096, STOP]
            # Before the job: an agent decides nothing for a minute about ranks that it finds.
            if policy != "off":
                cluster.until_together([
                    cluster.agent(host, settings={
                        "node": {"cpus": cpus, "speed": speed},
                        "policy": {"stealing": policy, "steal_most": 4},
                        "decision": {"settle": 2, "residence": 20, "max_ranks": 16}})
                    for host, (cpus, speed) in HOSTS.items()])
            with Job(cluster, *program, hosts=RANKS, mode="1",
                     environment={"ZC_MIGRATE_PATIENCE": "30"}) as job:
                job.until_running()
                self.measure(cluster, job, policy)

    def measure(self, cluster, job, policy):
        begin, wall = time.monotonic(), time.time()
        first = len(Comigrate.progress(job))
        time.sleep(self.options.seconds * 0.75)
        third, at = len(Comigrate.progress(job)), time.monotonic()
        told = job.profiles()
        time.sleep(max(5.0, self.options.seconds - (time.monotonic() - begin)))
        last, end = len(Comigrate.progress(job)), time.monotonic()
        across = Comigrate.across(told, job.profiles())
        if job.process.poll() is not None or last == third:
            raise Fail(f"the job does not run: {job.said()[-1500:]}")
        moves = cluster.decisions("moved")
        found = {"iterations": last - first, "moves": len(moves),
                 "ranks": sum(len(one["ranks"]) for one in moves),
                 "settled": max([0.0, *(one["time"] - wall for one in moves)]),
                 "per second": (last - third) / (end - at), "across": across}
        where = job.where()
        for metric, value in found.items():
            self.samples.setdefault((policy, metric), []).append(value)
        print(f"  {policy:<12}" + ", ".join(f"{value:.4g} {metric}"
                                            for metric, value in found.items()) +
              "; at last " + " ".join(f"h{h}:{where.count(f'h{h}')}" for h in HOSTS), flush=True)

    def all(self):
        for turn in range(self.options.rounds):
            print(f"round {turn + 1} of {self.options.rounds}", flush=True)
            for policy in self.options.policies:
                try:
                    self.run(policy)
                except Fail as problem:
                    print(f"  {policy:<12}FAILED: {problem}", flush=True)
                    self.options.failed = True

    def figures(self):
        about = evaluation.context(rounds=self.options.rounds, seconds=self.options.seconds,
                                   possible=1000 / self.options.work * best())
        return Policies(about, [figure(*key, values) for key, values in self.samples.items()])


def main():
    parser = argparse.ArgumentParser(prog="bench/run policies", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mpich", metavar="PREFIX", help="MPICH to use (default: $ZC_MPICH)")
    parser.add_argument("--library", metavar="DIR", default=str(TOP / "build/release"),
                        help="build with libraries and tools (default build/release)")
    parser.add_argument("--quick", action="store_true", help="one round of short runs")
    parser.add_argument("--rounds", type=int, help="(3)")
    parser.add_argument("--seconds", type=float, help="of a run (90)")
    parser.add_argument("--work", type=float, default=50, metavar="MS",
                        help="of an iteration on a free processor of speed 1 (50)")
    parser.add_argument("--policies", nargs="+", choices=POLICIES, default=POLICIES)
    evaluation.add_options(parser, "policies")
    options = parser.parse_args()
    options.rounds = options.rounds or (1 if options.quick else 3)
    options.seconds = options.seconds or (30 if options.quick else 90)
    if options.again:
        return exit_status("policies", evaluation.show, Policies, options)
    options.failed = False
    process.exit_on_sigterm()
    if not shutil.which("curl"):
        print("policies: curl is missing", file=sys.stderr)
        return EXIT_SKIPPED
    try:
        bench = Bench(options, mpi.prefix_or_die(options.mpich))
        try:
            bench.all()
        finally:
            if bench.samples:
                bench.figures().write(options.out)
        if bench.samples:
            evaluation.show(Policies, options)
    except Fail as problem:
        print(f"policies: {problem}", file=sys.stderr)
        return EXIT_FAILED
    except Skip as reason:
        print(f"policies: {reason}", file=sys.stderr)
        return EXIT_SKIPPED
    except Error as error:
        print(f"policies: {error}", file=sys.stderr)
        return EXIT_USAGE
    return EXIT_FAILED if options.failed else 0


if __name__ == "__main__":
    sys.exit(main())
