# SPDX-License-Identifier: BSD-3-Clause
"""What zc-trace and zc-forecast add to a message.

Two ranks exchange messages of 8 bytes (send_recv is a ping-pong), and so does one with itself. The
tracer's functions and those of the MPI library take turns within the process (message_cost.c), so
that what else runs on the machine is the same for both. Shown is by how much a message takes longer,
of the turns the median and the percentiles, and the least of one beside the least of the other. With
two ranks that is the time of a message (half of one there and back), with one its processor time.

stencil computes for some 40 us in each step and exchanges 8 KiB: "more" is of a step.
"""
import argparse
import collections
import datetime
import json
import os
import pathlib
import platform
import shutil
import subprocess
import sys
import tempfile

from bench.spread import median, percentile

HERE = pathlib.Path(__file__).resolve().parent
TOP = HERE.parents[1]
OPEN_MPI = ["--allow-run-as-root", "--oversubscribe"]


def run(command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"trace: {command[0]} has failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def measure(options, program, ranks, scratch):
    """{case: [(ns traced, ns plain)]} of a run."""
    launcher = [shutil.which(f"mpiexec.{options.mpi}"), *(OPEN_MPI if options.mpi == "openmpi" else [])]
    said = run([options.library / "bin/zc-trace", *([] if options.no_calls else ["--calls"]),
                "--mpi", options.mpi, "--force", "-o", scratch / "trace.zct", *launcher, "-n", ranks,
                program, options.turns])
    turns = collections.defaultdict(list)
    for case, traced, plain in (line.split() for line in said.splitlines()):
        turns[case].append((float(traced), float(plain)))
    return turns


def sum_up(turns):
    more = [traced - plain for traced, plain in turns]
    plain = [ns for _, ns in turns]
    return {"plain": median(plain), "more": median(more), "p10": percentile(more, 0.1),
            "p90": percentile(more, 0.9), "least": min(ns for ns, _ in turns) - min(plain),
            "percent": 100 * median([traced / ns - 1 for traced, ns in turns]), "n": len(turns)}


def show(found):
    print(f"{'ns of a message':<24}{'ranks':>6}{'plain':>9}{'more':>8}{'p10':>8}{'p90':>8}{'least':>8}"
          f"{'per cent':>10}")
    for (ranks, case), row in found.items():
        print(f"{case:<24}{ranks:>6}{row['plain']:>9.0f}{row['more']:>8.0f}{row['p10']:>8.0f}"
              f"{row['p90']:>8.0f}{row['least']:>8.0f}{row['percent']:>10.1f}")


def write(options, found):
    now = datetime.datetime.now(datetime.timezone.utc)
    path = pathlib.Path(options.json_out)
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(json.dumps({"context": {
            "kernel": platform.release(), "cpus": os.cpu_count(), "load": os.getloadavg()[0],
            "versions": {"mpi": options.mpi}, "date": now.isoformat(timespec="seconds")}}) + "\n")
        for (ranks, case), row in found.items():
            file.write(json.dumps({
                "bench": "trace", "case": f"{case} {ranks}", "impl": options.mpi,
                "bytes": 8192 if case == "stencil" else 8, "metric": "more", "unit": "ns",
                "median": round(row["more"], 1), "p10": round(row["p10"], 1),
                "p90": round(row["p90"], 1), "least": round(row["least"], 1),
                "plain": round(row["plain"], 1), "percent": round(row["percent"], 2),
                "n": row["n"]}) + "\n")


def parse():
    parser = argparse.ArgumentParser(prog="bench/run trace", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", metavar="DIR", type=pathlib.Path, default=TOP / "build/release",
                        help="build with the tools (default: build/release)")
    parser.add_argument("--mpi", choices=("mpich", "openmpi"), default="mpich")
    parser.add_argument("--turns", metavar="N", type=int, default=100, help="of each case (default: 100)")
    parser.add_argument("--no-calls", action="store_true",
                        help="do not record calls: what zc-trace does without --calls")
    parser.add_argument("--json-out", metavar="FILE", default=str(TOP / "out/trace.jsonl"))
    options = parser.parse_args()
    if options.turns < 1:
        parser.error("--turns: at least 1")
    if not os.access(options.library / "bin/zc-trace", os.X_OK):
        sys.exit(f"trace: no zc-trace in {options.library}/bin (make build, or --library DIR)")
    return options


def main():
    options = parse()
    mpicc = shutil.which(f"mpicc.{options.mpi}")
    if not mpicc:
        sys.exit(f"trace: no mpicc.{options.mpi}")
    with tempfile.TemporaryDirectory() as folder:
        scratch = pathlib.Path(folder)
        program = scratch / "message_cost"
        run([mpicc, "-O2", "-w", "-o", program, HERE / "message_cost.c", "-ldl"])
        found = {(ranks, case): sum_up(turns) for ranks in (2, 1)
                 for case, turns in measure(options, program, ranks, scratch).items()}
    write(options, found)
    show(found)


if __name__ == "__main__":
    main()
