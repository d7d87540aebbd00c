# SPDX-License-Identifier: BSD-3-Clause
"""The figures of the papers that take long to measure: draws what has been measured, and says what has not.

  npb             Cores et al., figures 4 to 9
  demo-comigrate  MPI/IOS, figures 5 to 9
  policies        MPI/IOS, ways to steal work
  others          Singh & Graham, the others run on

Each of these (bench/run NAME) leaves what it has measured in a file of its own in FOLDER, of which its
picture and its lines of papers.jsonl are made again here. Where that is not there, the one that is kept in
the repository is drawn, if there is one, and the picture says so. --keep puts what FOLDER has among them.
With --measure all of them measure first, one after the other, and draw what they have; one that fails does
not keep the next from it.

Exit status: 0 done; 1 one has failed, or its file cannot be read; 2 usage. One that cannot run here is
no failure, but said to be not measured.
"""
import argparse
import json
import pathlib
import platform
import subprocess
import sys

from bench.evaluation import KEPT, TOP, read_lines, write_lines
from testbed.outcome import EXIT_FAILED, EXIT_SKIPPED, Fail
from testbed.process import exit_on_sigterm

# Of bench/run: name of its files, and what it measures.
EVALUATIONS = {
    "npb": ("npb", "Cores et al., figures 4 to 9"),
    "demo-comigrate": ("agents", "MPI/IOS, figures 5 to 9"),
    "policies": ("policies", "MPI/IOS, ways to steal work"),
    "others": ("others", "Singh & Graham, the others run on"),
}
# What is to be measured for all of a picture, beside what a benchmark measures when nothing is asked for.
ALL_OF = {"others": ["--moved", "rank", "clique"]}
RUN = TOP / "bench/run"
MEASURED = TOP / "bench/figures/data/measured"


def call(name, folder, *words):
    """The exit status of bench/run NAME, whose files are in FOLDER."""
    file = EVALUATIONS[name][0]
    command = [str(RUN), name, "--out", f"{folder}/{file}.jsonl", "--picture", f"{folder}/{file}.svg",
               "--papers", f"{folder}/papers.jsonl", *words]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL) as process:
        try:
            return process.wait()
        except BaseException:
            process.terminate()     # it ends its hosts and jobs itself
            raise


def measure(options):
    """Names of those that have failed."""
    words = [*(["--mpich", options.mpich] if options.mpich else []),
             *(["--quick"] if options.quick else [])]
    failed = []
    for name, (_, what) in EVALUATIONS.items():
        print(f"\n{what}: bench/run {name}", flush=True)
        status = call(name, options.folder, *words, *ALL_OF.get(name, []))
        if status == EXIT_SKIPPED:
            print(f"not measured: {what}")
        elif status:
            failed.append(name)
    return failed


def draw(options):
    """Names of those whose file cannot be drawn of."""
    failed = []
    for name, (file, what) in EVALUATIONS.items():
        kept = pathlib.Path(options.kept) / f"{file}.jsonl"
        words = []
        if not (pathlib.Path(options.folder) / f"{file}.jsonl").exists():
            if not kept.exists():
                print(f"not measured yet: {what}; bench/run {name} measures it", flush=True)
                continue
            words = ["--out", str(kept)]
        print(f"\n{what}{', as it was kept: not measured here' if words else ''}", flush=True)
        if call(name, options.folder, "--again", *words):
            failed.append(name)
    print("\nmake bench-papers measures all that is drawn (QUICK=yes: in little time)", flush=True)
    return failed


def keep(options):
    """Names of those whose file is not fit to be kept."""
    failed = []
    for name, (file, what) in EVALUATIONS.items():
        source = pathlib.Path(options.folder) / f"{file}.jsonl"
        if not source.exists():
            continue
        try:
            lines = read_lines(source)
            if not lines or "context" not in lines[0]:
                raise Fail(f"{source}: the first line does not tell how it was measured")
            lines[0]["context"][KEPT] = True
            for number, line in enumerate(lines, 1):
                if platform.node() and platform.node() in json.dumps(line):
                    raise Fail(f"{source}: line {number} names this host")
        except Fail as problem:
            print(f"not kept: {problem}")
            failed.append(name)
            continue
        write_lines(pathlib.Path(options.kept) / source.name, lines)
        print(f"kept: {what}: {pathlib.Path(options.kept) / source.name}")
    return failed


def main():
    parser = argparse.ArgumentParser(prog="bench/run papers", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", metavar="DIR", default=str(TOP / "out"),
                        help="what has been measured, and where pictures go (out)")
    parser.add_argument("--measure", action="store_true", help="all of them, before they are drawn")
    parser.add_argument("--keep", action="store_true",
                        help="draw nothing: put what FOLDER has of these among what is kept")
    parser.add_argument("--kept", metavar="DIR", default=str(MEASURED),
                        help="what is kept (bench/figures/data/measured)")
    parser.add_argument("--quick", action="store_true", help="with --measure: small problems, short runs")
    parser.add_argument("--mpich", metavar="PREFIX", help="MPICH to use (default: $ZC_MPICH)")
    options = parser.parse_args()
    exit_on_sigterm()
    if options.keep and options.measure:
        parser.error("--keep is of what has been measured: without --measure")
    failed = (keep if options.keep else measure if options.measure else draw)(options)
    for name in failed:
        print(f"papers: bench/run {name} has failed", file=sys.stderr)
    return EXIT_FAILED if failed else 0


if __name__ == "__main__":
    sys.exit(main())
