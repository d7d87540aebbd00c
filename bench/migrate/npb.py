# SPDX-License-Identifier: BSD-3-Clause
"""The evaluation of Cores et al.: programs in the manner of the eight of NPB, which zcm-instrument has
made movable, on 4 to 36 ranks; one rank moves, or all of one of the two hosts, or (--moved) some of it;
by way of memory, of the disk, and of the disk held to less; with --image also as one image in memory, as
the paper has it.

  response    from the request until all ranks go on
  evacuation  from the request until the processes of the ranks that move are gone
  overhead    the time of the whole run, from its first safe point on, less that of the run of the same
              round in which no rank moves; also in per cent of that one
  image       what is transferred of a rank that moves (checkpoint size), bytes

In each round all ways take turns, and a run without a move is among them. Each moved run has to end
with the same digest as the one without. The number of steps is chosen so that a run without a move
takes --seconds. OUT has a line per figure; --again makes table and picture of it once more, and --add
measures in parts. A run that fails is named, costs its figures, and makes the exit status 1.
"""
import argparse
import contextlib
import os
import re
import sys
import time

from bench import evaluation
from bench.migrate import npb_report
from bench.migrate.departed import Departures
from bench.migrate.limited_disk import LimitedDisk, Unlimited
from bench.migrate.stage import add_options, exit_status, stage_of
from testbed.instrumented import NPB, instrumented
from testbed.migration import H1, SAID, TOP, Job
from testbed.outcome import Fail

FIRST = TOP / "bench/migrate/first_safe_point.c"
SQUARE = ("bt", "sp")       # run on square numbers of processes
LEAST_STEPS, MOST_STEPS = 40, 10000     # fewer would be over when the request comes
LIMIT_S = 900               # of a run

# Of the whole problem, on all numbers of ranks. EP's is its number of steps.
SIZES = {
    "small": {"bt": 36, "cg": (7200, 200), "ft": 64, "is": (1 << 21, 1 << 20), "lu": 32,
              "mg": (256, 2047), "sp": 36},
    "medium": {"bt": 72, "cg": (14400, 400), "ft": 128, "is": (1 << 23, 1 << 21), "lu": 64,
               "mg": (256, 16383), "sp": 72},
    "large": {"bt": 144, "cg": (28800, 400), "ft": 256, "is": (1 << 25, 1 << 23), "lu": 128,
              "mg": (512, 32767), "sp": 144},
}


def arguments(program, size, ranks, steps):
    """Of PROGRAM, whose problem has this SIZE (SIZES)."""
    problem = SIZES[size].get(program)
    if program == "ep":
        return (steps * ranks,)
    if program in ("cg", "is"):
        return (problem[0], steps, problem[1])
    if program == "mg":
        return (problem[0] // ranks, problem[1], steps)
    return (problem, steps)


def ranks_of(program, ranks):
    """As the paper has it: the square number beside RANKS for BT and SP."""
    return {8: 9, 32: 36}.get(ranks, ranks) if program in SQUARE else ranks


def defines_of(size, ranks):
    """NPB, too, is compiled for its size and its number of processes."""
    return [f"-DMAX_N={SIZES[size]['ft']}", f"-DLEAST_PROCESSES={ranks}"]


def on_host(ranks):
    """How many of RANKS, which are dealt to two hosts, are on the one that rank 0 is not on."""
    return ranks // 2


def several(ranks, moved):
    """What it is called if MOVED of a host's ranks move, or all that it has."""
    return "host" if moved in (None, on_host(ranks)) else "some"


def leavers(ranks, moving, moved):
    """Who moves of RANKS, as a job's status has them; Fail if there are not so many on that host."""
    there = [one for one in ranks if one["host"] != ranks[0]["host"] and one["rank"] != 0]
    wanted = {"one": 1, "some": moved, "host": max(1, len(there))}[moving]
    if len(there) < wanted:
        raise Fail(f"{wanted} ranks are to move, and {len(there)} are on the host that they leave")
    return there[:wanted]


def link_of(options):
    """As the context has it. A pair of veth is bare."""
    return "veth" if options.link in (None, "bare") else options.link


class Run(Job):
    """Of a program that says where its first safe point is."""

    def said_at(self, pattern):
        return next((line.at for line in [*self.err, *self.out] if re.search(pattern, line)), None)

    def ended(self):
        """(seconds from the first safe point to the result, digest); Fail if it has gone wrong."""
        status = self.wait(LIMIT_S)
        first, last = self.said_at("first safe point"), self.said_at("checksum")
        if status != 0 or first is None or last is None or "NOT VERIFIED" in self.said():
            raise Fail(f"a run: exit status {status}", self.said()[-SAID:])
        return last - first, re.search(r"checksum ([0-9a-f]+)", self.said())[1]


class Bench:
    def __init__(self, options, stage):
        self.options, self.stage = options, stage
        self.samples = {}       # (program, ranks, moving, way, metric): [value]
        self.how_many = {}      # (program, ranks, moving): ranks that move
        self.programs = {}      # (program, ranks): file
        self.steps = {}         # (program, ranks)
        self.failed = []        # runs that say nothing, and why
        self.disks, self.unlimited = {}, ""
        self.began = time.monotonic()
        try:
            for rate in options.rates:
                disk = self.disks[f"disk-{rate}"] = LimitedDisk(options.disk, rate * 1000000)
                print(f"disk held to {rate} MB/s: {disk.measured() / 1e6:.0f} MB/s measured")
        except Unlimited as problem:
            self.unlimited = str(problem)
            print(f"skipped: limited disks: {problem}")
        self.ways = ["memory", *(["image"] if options.image else []), "disk", *self.disks]

    def close(self):
        for disk in self.disks.values():
            disk.close()

    def add(self, case, metric, value):
        self.samples.setdefault((*case, metric), []).append(value)

    def start(self, program, ranks, steps, **how):
        return Run(self.stage, self.programs[program, ranks],
                   *arguments(program, self.options.size, ranks, steps), ranks=ranks,
                   environment={"ZC_MIGRATE_DIR": self.options.disk}, **how)

    def prepare(self, program, ranks):
        """The program, and how many steps take as long as a run is to take."""
        # The loop of the steps has least to save; EP's is not taken unless it is named.
        self.programs[program, ranks] = instrumented(
            self.stage, NPB[program].sources, "--loop", NPB[program].loop(), linked=[FIRST, "-ldl"],
            defines=defines_of(self.options.size, ranks) if program == "ft" else [])
        steps, took = 3, 0
        while True:
            with self.start(program, ranks, steps, migrate=False) as job:
                took = job.ended()[0]
            if took >= self.options.seconds / 4 or steps == MOST_STEPS:
                break
            more = self.options.seconds / 2 / max(took, 1e-3)
            steps = min(MOST_STEPS, max(steps + 1, round(steps * min(more, 30))))
        self.steps[program, ranks] = max(LEAST_STEPS, min(MOST_STEPS, round(
            steps * self.options.seconds / took)))

    def unmoved(self, program, ranks):
        """Run once more with more steps where the machine has been slower when they were counted."""
        while True:
            steps = self.steps[program, ranks]
            with self.start(program, ranks, steps) as job:
                seconds, digest = job.ended()
            if seconds >= self.options.seconds / 2 or steps == MOST_STEPS:
                break
            self.steps[program, ranks] = min(MOST_STEPS, round(
                steps * max(2, min(30, self.options.seconds / max(seconds, 1e-3)))))
        self.add((program, ranks, "none", "none"), "time", seconds)
        return seconds, digest

    def moved(self, program, ranks, moving, way, unmoved):
        case = (program, ranks, moving, way)
        slow = self.disks[way].around() if way in self.disks else contextlib.nullcontext()
        with slow:
            job = self.start(program, ranks, self.steps[program, ranks])
        with job:
            status = job.until_running(timeout=LIMIT_S, safe_points=2)
            leaving = leavers(status["ranks"], moving, self.options.moved)
            self.how_many[program, ranks, moving] = len(leaving)
            departures = Departures([one["pid"] for one in leaving], LIMIT_S)
            code, answer, said = job.ask(
                "move", "--rank", ",".join(str(one["rank"]) for one in leaving), "--to", H1,
                "--via", "disk" if way in self.disks else way, timeout=LIMIT_S)
            if code != 0:
                raise Fail(said, job.said()[-SAID:])
            evacuation = departures.took_ms()
            seconds, digest = job.ended()
        if digest != unmoved[1]:
            raise Fail(f"digest {digest}, unmoved {unmoved[1]}")
        if evacuation is None:
            raise Fail("processes of ranks that have moved stay", job.said()[-SAID:])
        self.add(case, "response", answer["response_ms"] / 1e3)
        self.add(case, "evacuation", evacuation / 1e3)
        self.add(case, "overhead", seconds - unmoved[0])
        self.add(case, npb_report.PERCENT, (seconds / unmoved[0] - 1) * 100)
        self.add(case, "stall", answer["stall_ms"] / 1e3)
        self.add(case, "image", answer["bytes"]["image"] / len(leaving))
        return f"{way} {answer['response_ms'] / 1e3:.2f} s"

    def attempt(self, program, ranks, moving, way, unmoved):
        """A run that fails costs its figures, and in the end the exit status."""
        try:
            return self.moved(program, ranks, moving, way, unmoved)
        except Fail as failure:
            self.failed.append(f"{program}, {ranks} ranks, {moving}, {way}: {failure}")
            self.say(f"FAILED: {self.failed[-1]}\n{getattr(failure, 'output', '')}")
            return f"{way} FAILED"

    def say(self, text):
        print(f"{(time.monotonic() - self.began) / 60:5.1f} min  {text}", flush=True)

    def run(self):
        cases = [(program, ranks_of(program, ranks)) for ranks in self.options.ranks
                 for program in self.options.programs]
        for program, ranks in cases:
            self.prepare(program, ranks)
            self.say(f"{program}, {ranks} ranks: {self.steps[program, ranks]} steps")
        for turn in range(self.options.rounds):
            for program, ranks in cases:
                unmoved = self.unmoved(program, ranks)
                done = [f"{moving}: " + ", ".join(self.attempt(program, ranks, moving, way, unmoved)
                                                  for way in self.ways)
                        for moving in ("one", several(ranks, self.options.moved))]
                self.say(f"round {turn + 1} of {self.options.rounds}, {program}, {ranks} ranks; "
                         f"{unmoved[0]:.1f} s; response " + "; ".join(done))

    def context(self):
        return evaluation.context(
            size=self.options.size, seconds=self.options.seconds, rounds=self.options.rounds,
            link=link_of(self.options),
            limited_disks=self.unlimited or "blkio.throttle or io.max, read and write")

    def figures(self):
        return npb_report.Figures(self.context(), [
            npb_report.figure(*key, self.how_many.get(key[:3], 0), values)
            for key, values in self.samples.items()])


def parse(words=None):
    parser = argparse.ArgumentParser(prog="bench/run npb", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    add_options(parser)
    parser.add_argument("--quick", action="store_true",
                        help="small problems on 4 ranks, two rounds of short runs")
    parser.add_argument("--add", action="store_true",
                        help="what OUT has of other programs and numbers of ranks stays there")
    parser.add_argument("--ranks", type=int, nargs="+", choices=[4, 8, 16, 32], metavar="N",
                        help="4, 8, 16, 32 (all); BT and SP have 9 and 36 for 8 and 32")
    parser.add_argument("--moved", type=int, metavar="N",
                        help="of the ranks of a host so many move, beside one alone; the paper has 8 of 16 "
                             "and 8 of 32 (all of the host, which are half of the ranks)")
    parser.add_argument("--programs", nargs="+", choices=list(NPB), default=list(NPB), metavar="NAME")
    parser.add_argument("--size", choices=list(SIZES), help="of the problems (large)")
    parser.add_argument("--image", action="store_true",
                        help="also by memory as the paper has it: one image of a rank, made before its "
                             "successor is started")
    parser.add_argument("--rounds", type=int, help="(3)")
    parser.add_argument("--seconds", type=float, help="that a run without a move is to take (10)")
    parser.add_argument("--rates", type=int, nargs="*", default=[120], metavar="MB/S",
                        help="also on the same disk, limited to these rates (120)")
    parser.add_argument("--link", help="rate of the links between the hosts: 10gbit, 1gbit, ...")
    parser.add_argument("--disk", metavar="DIR", default=str(TOP / "build/mpi/npb-disk"),
                        help="where the disk path writes; must not be a tmpfs")
    evaluation.add_options(parser, "npb")
    options = parser.parse_args(words)
    usual = ([4], "small", 2, 5) if options.quick else ([4, 8, 16, 32], "large", 3, 10)
    for name, value in zip(("ranks", "size", "rounds", "seconds"), usual):
        if getattr(options, name) is None:
            setattr(options, name, value)
    most = min(on_host(ranks_of(program, ranks)) for ranks in options.ranks
               for program in options.programs)
    if options.moved is not None and not 2 <= options.moved <= most:
        parser.error(f"--moved {options.moved}: of {min(options.ranks)} ranks 2 to {most} can leave a host "
                     "together")
    if options.link is not None and npb_report.cluster_of(options.link) is None:
        parser.error(f"--link {options.link}: not bare, and no rate such as 10gbit or 250mbit")
    return options


def measure(options):
    os.makedirs(options.disk, exist_ok=True)
    before = npb_report.Figures.before(options, {"size": options.size, "link": link_of(options)})
    with stage_of(options, link=options.link, sources=[]) as stage:
        bench = Bench(options, stage)
        try:
            bench.run()
        finally:
            bench.close()
            if bench.samples:
                figures = bench.figures()
                if before:
                    figures = figures.with_others_of(before)
                figures.write(options.out)
    return bench.failed


def run(options):
    failed = [] if options.again else measure(options)
    evaluation.show(npb_report.Figures, options)
    if failed:
        raise Fail(f"{len(failed)} runs have failed:\n  " + "\n  ".join(failed))


if __name__ == "__main__":
    sys.exit(exit_status("npb", run, parse()))
