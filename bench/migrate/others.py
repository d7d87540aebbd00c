# SPDX-License-Identifier: BSD-3-Clause
"""How long ranks wait that do not need the one that moves, and whose state is large.

A job of cliques, which exchange messages within themselves only. Its last rank moves to the other
host, where the others wait for its state (ZC_MIGRATE_OTHERS=wait) and where they run (=run), and, to
compare, not at all (none). The three take turns, round after round. With --moved clique all ranks of
the last clique move, from the host that they have to themselves and every second clique: one of them
has so much state, the others 1 MiB each.

  longest   the longest step of a rank of another clique in the whole run, ms
  stall     the longest time a rank that did not move was held at the safe point, as the job says it
  response  from the request until the ranks that move are there with all their state

OUT has a line per figure; --again makes table and picture of it once more, and --add measures in parts.
"""
import argparse
import re
import sys
import time

from bench import evaluation
from bench.migrate.others_report import HOW, MOVED, Others, figure
from bench.migrate.stage import add_options, exit_status, stage_of
from testbed.migration import H1, H2, SAID, STOP, TOP, Job
from testbed.outcome import Fail

CLIQUES = TOP / "tests/migrate/cliques.c"


def plan(ranks, clique, moved):
    """Which ranks move, to which host, and what mpiexec is told of the hosts, of RANKS in cliques of
    CLIQUE. Where a whole clique moves each has its host, so that all of it changes hosts."""
    last, together = ranks - 1, clique if moved == "clique" else 1
    movers = list(range(ranks - clique, ranks)) if moved == "clique" else [last]
    hosts = (H1, H2) if moved == "rank" else (f"{H1}:{clique}", f"{H2}:{clique}")
    return movers, H1 if last // together % 2 else H2, hosts


def one_run(stage, options, moved, how, mib):
    """What a job shows whose last rank, or last clique, moves; (metric, ms)."""
    movers, target, hosts = plan(options.ranks, options.clique, moved)
    with Job(stage, "cliques", options.clique, mib, STOP, ranks=options.ranks, hosts=hosts,
             environment={"ZC_MIGRATE_OTHERS": "run" if how == "run" else "wait"}) as job:
        job.until_running(timeout=300, safe_points=50)
        if how == "none":
            time.sleep(2)
        else:
            code, answer, said = job.ask("move", "--rank", ",".join(map(str, movers)), "--to", target,
                                         timeout=300)
            if code != 0:
                raise Fail(f"{moved}, {how}, {mib} MiB: {said}", job.said()[-SAID:])
            yield "stall", answer["stall_ms"]
            yield "response", answer["response_ms"]
        job.stop()
        if job.wait(300) != 0 or "all right" not in job.said():
            raise Fail(f"{moved}, {how}, {mib} MiB: it did not end well", job.said()[-SAID:])
        steps = {int(rank): float(ms) for rank, ms in
                 re.findall(r"rank (\d+): longest step ([\d.]+)", job.said())}
        clique = movers[0] // options.clique
        yield "longest", max(ms for rank, ms in steps.items() if rank // options.clique != clique)


def job_of(options):
    """What of the context is of the job."""
    return {"ranks": options.ranks, "clique": options.clique, "link": options.link or "veth"}


def measure(options):
    samples = {}
    before = Others.before(options, job_of(options))
    with stage_of(options, link=options.link, sources=[CLIQUES]) as stage:
        for turn in range(options.rounds):
            print(f"round {turn + 1} of {options.rounds}", flush=True)
            for moved in options.moved:
                for mib in options.sizes:
                    for how in HOW:
                        for metric, value in one_run(stage, options, moved, how, mib):
                            samples.setdefault((moved, how, mib, metric), []).append(value)
    found = Others(evaluation.context(**job_of(options)),
                   [figure(*key, values) for key, values in samples.items()])
    (found.with_others_of(before) if before else found).write(options.out)


def run(options):
    if not options.again:
        measure(options)
    evaluation.show(Others, options)


def parse(words=None):
    parser = argparse.ArgumentParser(prog="bench/run others", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    add_options(parser)
    parser.add_argument("--quick", action="store_true",
                        help="one round of 8 ranks with little state")
    parser.add_argument("--add", action="store_true",
                        help="what OUT has of what is not measured now stays there")
    parser.add_argument("--moved", nargs="+", choices=list(MOVED), default=["rank"],
                        help="the last rank, all ranks of the last clique, or both in turn (rank)")
    parser.add_argument("--rounds", type=int, help="(5)")
    parser.add_argument("--ranks", type=int, help="(16)")
    parser.add_argument("--clique", type=int, default=4, help="ranks in each")
    parser.add_argument("--link", help="rate of the links between the hosts: 10gbit, 1gbit, ...")
    parser.add_argument("--sizes", type=int, nargs="+", metavar="MIB",
                        help="of the state of the last rank (64 256 1024)")
    evaluation.add_options(parser, "others")
    options = parser.parse_args(words)
    options.rounds = options.rounds or (1 if options.quick else 5)
    options.ranks = options.ranks or (8 if options.quick else 16)
    options.sizes = options.sizes or ([16, 64] if options.quick else [64, 256, 1024])
    options.moved = [moved for moved in MOVED if moved in options.moved]     # each once
    if options.clique < 1 or options.ranks % options.clique or options.ranks < 2 * options.clique:
        parser.error(f"{options.ranks} ranks are no two or more cliques of {options.clique}")
    if options.rounds < 1 or min(options.sizes) < 1:
        parser.error("rounds and sizes are 1 or more")
    return options


if __name__ == "__main__":
    sys.exit(exit_status("others", run, parse()))
