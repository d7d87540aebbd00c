# SPDX-License-Identifier: BSD-3-Clause
"""How many instructions libzcm executes in a call of MPI: without it, linked, and switched on.

Counted, not timed: each call is executed step by step (call_cost.c, steps.h), so a busy machine counts
the same as an idle one. The C library counts where libzcm calls it; MPI and the program do not. What
the vdso of the kernel takes to read clocks is apart, since that varies. Two ranks on one host, of a
job that has passed its first safe point.

--where CALL also lists the functions and lines that its instructions are of (addr2line).
"""
import argparse
import collections
import datetime
import json
import os
import pathlib
import platform
import re
import subprocess
import sys

from bench.migrate.stage import add_options, exit_status, stage_of
from testbed import mpi
from testbed.migration import H1, SAID, TOP, Job
from testbed.outcome import Fail

HERE = pathlib.Path(__file__).resolve().parent
CALLS = HERE / "call_cost.c"
FLAGS = ["-D_GNU_SOURCE", str(HERE / "steps.c")]
IMPLEMENTATIONS = {"plain": ("_plain", False), "off": ("", False), "on": ("", True)}
PAIR = ("MPI_Send", "MPI_Recv")     # a message there and back is two of each


def counted(stage, impl, where=""):
    """({call: (instructions, in the vdso)}, [(library, offset) of each instruction of WHERE])"""
    built, migrate = IMPLEMENTATIONS[impl]
    with Job(stage, "calls" + built, *([where] if where else []), ranks=2, hosts=(H1,),
             migrate=migrate) as job:
        if job.wait(300) != 0:
            raise Fail("calls has failed", job.said()[-SAID:])
        said = job.said()
    counts = {name: (int(count), int(clock)) for name, count, clock in
              re.findall(r"^(MPI_\w+) (\d+) (\d+)$", said, re.MULTILINE)}
    if not set(PAIR) <= counts.keys():
        raise Fail("calls has counted nothing", said[-SAID:])
    return counts, re.findall(r"^at (\S+) ([0-9a-f]+)$", said, re.MULTILINE)


def places(steps):
    """[(instructions, where)] in the order of execution, of lines in the source."""
    names = {}
    for library in {library for library, _ in steps}:
        offsets = sorted({offset for each, offset in steps if each == library})
        done = subprocess.run(["addr2line", "-f", "-C", "-s", "-e", library, *offsets],
                              capture_output=True, text=True, check=True)
        said = done.stdout.splitlines()
        lines = [f"{at.split(' ')[0]} {function}" for function, at in zip(said[::2], said[1::2])]
        for offset, line in zip(offsets, lines):
            names[library, offset] = f"{os.path.basename(library)} {line}".rstrip()
    found = collections.Counter(names[step] for step in steps)
    return [(count, name) for name, count in found.items()]


def show(counts):
    print(f"{'instructions of libzcm':<24}" + "".join(f"{impl:>8}" for impl in counts) +
          "   on, vdso")
    for call in [[one] for one in counts["on"]] + [list(PAIR)]:
        print(f"{' + '.join(call):<24}" +
              "".join(f"{sum(found[one][0] for one in call):>8}" for found in counts.values()) +
              f"{sum(counts['on'][one][1] for one in call):>11}")


def write(path, counts):
    pathlib.Path(path).parent.mkdir(parents=True, exist_ok=True)
    now = datetime.datetime.now(datetime.timezone.utc)
    with open(path, "w", encoding="utf-8") as file:
        file.write(json.dumps({"context": {
            "kernel": platform.release(), "date": now.isoformat(timespec="seconds")}}) + "\n")
        for impl, found in counts.items():
            for call, values in found.items():
                for metric, value in zip(("libzcm", "vdso"), values):
                    file.write(json.dumps({
                        "bench": "calls", "case": call, "impl": impl, "bytes": 8, "metric": metric,
                        "unit": "instructions", "median": value}) + "\n")


def parse():
    parser = argparse.ArgumentParser(prog="bench/run calls", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    add_options(parser)
    parser.add_argument("--where", metavar="CALL", default="",
                        help="whose instructions are listed, with ZC_MIGRATE=1: MPI_Send, ...")
    parser.add_argument("--out", metavar="FILE", default=str(TOP / "out/calls.jsonl"))
    return parser.parse_args()


def run(options):
    with stage_of(options, flags=FLAGS, sources=(CALLS,)) as stage:
        plain = mpi.build(stage.prefix, [CALLS], TOP / "build/mpi/migrate-plain",
                          flags=["-DPLAIN", *FLAGS])
        stage.programs["calls_plain"] = plain["calls"]
        counts = {}
        for impl in IMPLEMENTATIONS:
            counts[impl], steps = counted(stage, impl, options.where if impl == "on" else "")
        write(options.out, counts)
        show(counts)
        if options.where:
            print(f"\n{options.where}, in the order of execution:")
            for count, name in places(steps):
                print(f"{count:6}  {name}")


if __name__ == "__main__":
    sys.exit(exit_status("calls", run, parse()))
