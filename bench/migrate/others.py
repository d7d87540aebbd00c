# SPDX-License-Identifier: BSD-3-Clause
"""How long ranks wait that do not need the one that moves, and whose state is large.

A job of cliques, which exchange messages within themselves only. Its last rank moves to the other
host, where the others wait for its state (ZC_MIGRATE_OTHERS=wait) and where they run (=run), and, to
compare, not at all (none). The three take turns, round after round.

  longest   the longest step of a rank of another clique in the whole run, ms
  stall     the longest time a rank that did not move was held at the safe point, as the job says it
  response  from the request until the rank is there with all its state

OUT has a line per figure; --again makes table and picture of it once more.
"""
import argparse
import re
import sys
import time

from bench import evaluation
from bench.migrate.others_report import HOW, Others, figure
from bench.migrate.stage import add_options, exit_status, stage_of
from testbed.migration import H1, SAID, STOP, TOP, Job
from testbed.outcome import Fail

CLIQUES = TOP / "tests/migrate/cliques.c"


def one_run(stage, options, how, mib):
    """What a job shows whose last rank moves; (metric, ms)."""
    mover = options.ranks - 1
    with Job(stage, "cliques", options.clique, mib, STOP, ranks=options.ranks,
             environment={"ZC_MIGRATE_OTHERS": "run" if how == "run" else "wait"}) as job:
        job.until_running(timeout=300, safe_points=50)
        if how == "none":
            time.sleep(2)
        else:
            code, answer, said = job.ask("move", "--rank", mover, "--to", H1, timeout=300)
            if code != 0:
                raise Fail(f"{how} {mib} MiB: {said}", job.said()[-SAID:])
            yield "stall", answer["stall_ms"]
            yield "response", answer["response_ms"]
        job.stop()
        if job.wait(300) != 0 or "all right" not in job.said():
            raise Fail(f"{how} {mib} MiB: it did not end well", job.said()[-SAID:])
        steps = {int(rank): float(ms) for rank, ms in
                 re.findall(r"rank (\d+): longest step ([\d.]+)", job.said())}
        clique = mover // options.clique
        yield "longest", max(ms for rank, ms in steps.items() if rank // options.clique != clique)


def measure(options):
    samples = {}
    with stage_of(options, link=options.link, sources=[CLIQUES]) as stage:
        for turn in range(options.rounds):
            print(f"round {turn + 1} of {options.rounds}", flush=True)
            for mib in options.sizes:
                for how in HOW:
                    for metric, value in one_run(stage, options, how, mib):
                        samples.setdefault((how, mib, metric), []).append(value)
    about = evaluation.context(ranks=options.ranks, clique=options.clique, link=options.link or "veth")
    Others(about, [figure(*key, values) for key, values in samples.items()]).write(options.out)


def run(options):
    if not options.again:
        measure(options)
    evaluation.show(Others, options)


def parse():
    parser = argparse.ArgumentParser(prog="bench/run others", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    add_options(parser)
    parser.add_argument("--quick", action="store_true",
                        help="one round of 8 ranks with little state")
    parser.add_argument("--rounds", type=int, help="(5)")
    parser.add_argument("--ranks", type=int, help="(16)")
    parser.add_argument("--clique", type=int, default=4, help="ranks in each")
    parser.add_argument("--link", help="rate of the links between the hosts: 10gbit, 1gbit, ...")
    parser.add_argument("--sizes", type=int, nargs="+", metavar="MIB",
                        help="of the state of the rank that moves (64 256 1024)")
    evaluation.add_options(parser, "others")
    options = parser.parse_args()
    options.rounds = options.rounds or (1 if options.quick else 5)
    options.ranks = options.ranks or (8 if options.quick else 16)
    options.sizes = options.sizes or ([16, 64] if options.quick else [64, 256, 1024])
    return options


if __name__ == "__main__":
    sys.exit(exit_status("others", run, parse()))
