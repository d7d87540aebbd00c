# SPDX-License-Identifier: BSD-3-Clause
"""Run the tests of zc: those of `make test`, or of the suites that are named.

Without a suite, every suite runs in those beds (sets of hosts, with their options) that
are tagged "fast". `--tag nightly` is for the others. With suites, each runs in its first
bed, if no --bed and no --tag says otherwise; --hosts, --link and --cores then change it.
A test that fails does not end the run. A test that cannot run here is skipped, with the
reason, and is not counted as passed.
"""
import argparse
import contextlib
import dataclasses
import importlib
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
import traceback

import tests
from testbed import mpi, network
from testbed.outcome import (EXIT_FAILED, EXIT_SKIPPED, EXIT_USAGE, Error, Fail, KnownFailure,
                             Skip)
from testbed.process import exit_on_first_signal, in_parallel
from testbed.suite import Setup

TOP = pathlib.Path(__file__).resolve().parents[1]
STATUSES = ("ok", "FAIL", "skip", "known")
OUTPUT_LINES = 40   # shown of a test that has failed
EPILOG = """exit status: 0 no failure; 1 a test has failed; 2 usage or set-up; 77 nothing could run here;
128 + N: ended by signal N"""


def load(names):
    """The Suites of NAMES, each from the module that tests/__init__.py gives."""
    suites = []
    for name in names:
        module = importlib.import_module(f"tests.{tests.SUITES[name]}")
        suites.append(next(suite for suite in module.SUITES if suite.name == name))
    return suites


def parse(arguments):
    known = list(tests.SUITES)
    parser = argparse.ArgumentParser(
        prog="tests/run", description=__doc__, epilog=EPILOG, add_help=False,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suites", nargs="*", metavar="SUITE", help=f"of {', '.join(known)}")
    choice = parser.add_argument_group("which tests")
    choice.add_argument("--tag", action="append", default=[], metavar="TAG",
                        help="beds with this tag, or else tests with it (repeatable)")
    choice.add_argument("--bed", action="append", default=[], metavar="BED",
                        help="the suites' beds of this name (repeatable)")
    choice.add_argument("--filter", metavar="REGEX", help="only tests whose name matches")
    choice.add_argument("--long", action="store_true", help="the tests tagged \"long\", too")
    choice.add_argument("--list", action="store_true", help="print suites, beds and tests, and end")
    how = parser.add_argument_group("how they run")
    how.add_argument("--mpich", metavar="PREFIX",
                     help="MPICH to test (default: $ZC_MPICH, or what mpi-ch4-netmod/build makes)")
    how.add_argument("--openmpi", metavar="PREFIX", help="Open MPI instead, where a suite can")
    how.add_argument("--netmod", choices=["zc", "ucx"], default="zc", help="of MPICH (default zc)")
    how.add_argument("--library", metavar="DIR", default=str(TOP / "build/release"),
                     help="build with libraries and tools (default build/release)")
    network.add_network_options(how, default=None)
    how.add_argument("-e", "--env", action="append", default=[], metavar="VAR=VAL",
                     help="set in every test's environment (repeatable)")
    how.add_argument("--seed", type=int, help="default: a new one each time")
    how.add_argument("--repeat", type=int, default=1, metavar="N", help="run each test N times")
    how.add_argument("--patience", type=float, default=3.0, metavar="FACTOR",
                     help="multiply time limits, for slow machines (default 3)")
    how.add_argument("--jobs", "-j", type=int, default=os.cpu_count(), metavar="N",
                     help="tests at a time, where a suite allows it (default: the processors)")
    how.add_argument("--stacks", action="store_true", help="on a hang show stacks (gdb)")
    how.add_argument("--keep", action="store_true", help="keep the tests' folders, and name them")
    how.add_argument("--build-dir", metavar="DIR", default=str(TOP / "build/mpi"),
                     help="where test programs are built (default build/mpi)")
    parser.add_argument("--json", metavar="FILE", help="write the results as JSON")
    # The options are those of the suites that are named, which may have the names of beds, too.
    named = parser.parse_known_args(arguments)[0].suites
    suites = load([name for name in known if name in named] or known)
    for suite in suites:
        if suite.options:
            suite.options(parser.add_argument_group(f"of {suite.name}"))
    # Not before: the first look must not end in it.
    parser.add_argument("--help", "-h", action="help", help="show this help and end")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.suites if name not in known]
    if unknown:
        parser.error(f"no suite {unknown[0]}; there are: {', '.join(known)}")
    for pair in options.env:
        if "=" not in pair:
            parser.error(f"not VAR=VAL: {pair}")
    if options.jobs < 1 or options.repeat < 1:
        parser.error("--jobs and --repeat want a positive number")
    options.seed_is_drawn = options.seed is None     # so that a bed may have a seed of its own
    if options.seed_is_drawn:
        options.seed = random.randrange(1, 1 << 40)
    return options, suites


def beds_of(suite, options):
    """The beds of SUITE that the command line asks for, as it changes them."""
    tags = options.tag or ([] if options.suites or options.bed else ["fast"])
    if options.bed:
        chosen = [bed for bed in suite.beds if bed.name in options.bed]
    elif tags:
        chosen = [bed for bed in suite.beds if bed.tags & set(tags)]
        if not chosen and any(set(tags) & test.tags for test in suite.tests):
            tag = next(tag for tag in tags if any(tag in test.tags for test in suite.tests))
            chosen = [dataclasses.replace(suite.beds[0], only=tag)]
    else:
        chosen = suite.beds[:1]
    changes = {name: getattr(options, name) for name in ("hosts", "link", "cores")
               if getattr(options, name)}
    if options.long:
        changes["long"] = True
    return [dataclasses.replace(bed, **changes) for bed in chosen]


def first_line(text):
    return next(iter(text.splitlines()), "")


class Report:
    """Results as they come: lines for the reader, objects for --json."""

    def __init__(self, options):
        self.options = options
        self.runs = []
        self.width = 0      # of the tests' names, where there are columns

    def begin(self, suite, bed):
        print(f"\n==== {suite.name}, {bed.name} ====", flush=True)
        self.runs.append({"suite": suite.name, "bed": bed.name, "status": "ok", "reason": "",
                          "seconds": 0.0, "tests": []})
        return self.runs[-1]

    def print_header(self, header, chosen):
        """Titles above the notes of CHOSEN, which then stand below each other."""
        self.width = max((len(test.name) for test in chosen), default=0) if header else 0
        if header:
            print(" " * (self.width + 2 * len(str(len(chosen))) + 23) + header, flush=True)

    def add(self, run, test, total, outcome):
        status, reason, seconds, output, values = outcome
        run["tests"].append({"name": test.name, "status": status, "reason": str(reason),
                             "seconds": round(seconds, 2), **values})
        number = f"{len(run['tests']):{len(str(total))}}"
        took = f"{seconds:{6 if self.width else ''}.1f}"
        print(f"[{number}/{total}] {status:<5} {test.name:<{self.width}} ({took} s)"
              + (f": {reason}" if reason else ""), flush=True)
        if status == "FAIL" and output:
            print("      " + "\n      ".join(output.rstrip().splitlines()[-OUTPUT_LINES:]),
                  flush=True)

    def count(self, status, runs=None):
        """Tests that ended so; a bed that could not be made counts for one."""
        return sum((run["status"] == status and status != "ok")
                   + sum(test["status"] == status for test in run["tests"])
                   for run in runs or self.runs)

    def print_failures(self):
        """Once more, since a log of hours is read from its end, and some show only that."""
        for run in self.runs:
            where = f"{run['suite']}, {run['bed']}"
            if run["status"] == "FAIL":
                print(f"FAIL  {where}: {first_line(run['reason'])}")
            for test in run["tests"]:
                if test["status"] == "FAIL":
                    print(f"FAIL  {where}: {test['name']}: {first_line(test['reason'])}")

    def end(self):
        """Print the summary, write the file. Returns the exit status."""
        print("\n==== summary ====")
        for run in self.runs:
            counts = ", ".join(f"{self.count(status, [run])} {word}" for status, word in
                               (("ok", "passed"), ("FAIL", "FAILED"), ("skip", "skipped"),
                                ("known", "failed as expected")) if self.count(status, [run]))
            print(f"{run['suite'] + ', ' + run['bed']:<28} {run['seconds']:6.0f} s  {counts or 'no test'}"
                  + (f" ({run['reason']})" if run["reason"] else ""))
        passed, failed, skipped, known = map(self.count, STATUSES)
        if known:
            print(f"{known} failed as expected")
        self.print_failures()
        if self.options.json:
            path = pathlib.Path(self.options.json)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(
                {"passed": passed, "failed": failed, "skipped": skipped, "failed_as_expected": known,
                 "seed": self.options.seed, "runs": self.runs}, indent=1) + "\n", encoding="utf-8")
        print(f"{passed} passed, {failed} failed, {skipped} skipped")
        if failed:
            return EXIT_FAILED
        return 0 if passed or known else EXIT_SKIPPED


def find_mpich(options):
    """PREFIX of the MPICH to test; Skip where there is none."""
    prefix = options.mpich or os.environ.get("ZC_MPICH")
    if prefix:
        return mpi.prefix_or_die(prefix)
    prefix = subprocess.run([TOP / "mpi-ch4-netmod/build", "--print-prefix"], check=True,
                            capture_output=True, text=True).stdout.strip()
    if not os.access(f"{prefix}/bin/mpiexec", os.X_OK):
        raise Skip("MPICH with ch4:zc is not built (mpi-ch4-netmod/build, or --mpich PREFIX)")
    return prefix


def check_needs(suite, options):
    """(prefix of the MPI, its family); Skip where something is missing."""
    for need in suite.needs:
        # Root of a user namespace (`hosts private`) may not do what only root may.
        if need == "root" and (os.getuid() != 0 or os.environ.get("ZC_HOSTS_PRIVATE")):
            raise Skip("needs root")
        if need not in ("root", "mpich") and not shutil.which(need):
            raise Skip(f"{need} is not installed (.ci/install-packages --all)")
    if options.openmpi and "openmpi" in suite.families:
        return options.openmpi, "openmpi"
    return (find_mpich(options), "mpich") if "mpich" in suite.needs else (None, "mpich")


@contextlib.contextmanager
def prepared(suite, bed, options):
    """A Setup for SUITE on BED."""
    merged = argparse.Namespace(**vars(options))
    for name, value in bed.options.items():
        if not getattr(merged, name, None) or (name == "seed" and options.seed_is_drawn):
            setattr(merged, name, value)
    prefix, family = check_needs(suite, merged)
    with contextlib.ExitStack() as stack:
        scratch = tempfile.mkdtemp(prefix=f"zc-{suite.name}-")
        if options.keep:
            stack.callback(print, f"kept: {scratch}", flush=True)
        else:
            stack.callback(shutil.rmtree, scratch, ignore_errors=True)
        hosts = None
        if bed.hosts:
            hosts = stack.enter_context(network.Network(bed.hosts, link=bed.link, cores=bed.cores))
        yield Setup(options=merged, network=hosts, prefix=prefix, family=family,
                    scratch=pathlib.Path(scratch),
                    build_dir=pathlib.Path(options.build_dir).resolve() /
                    (suite.name + ("-openmpi" if family == "openmpi" else "")),
                    patience=options.patience, seed=merged.seed)


def attempt(test, context, times):
    """(status, reason, seconds, output, values) of TIMES runs, or of the first that is not well."""
    begin = time.monotonic()
    note = None
    for turn in range(times):
        where = f"run {turn + 1} of {times}: " if times > 1 else ""
        try:
            note = test(context) or note
        except Skip as reason:
            return "skip", str(reason), time.monotonic() - begin, "", {}
        except KnownFailure as failure:
            return "known", where + str(failure), time.monotonic() - begin, failure.output, {}
        except (Fail, AssertionError) as failure:
            return ("FAIL", where + (str(failure) or repr(failure)), time.monotonic() - begin,
                    getattr(failure, "output", ""), {})
        except Exception as failure:     # pylint: disable=broad-except
            return ("FAIL", where + repr(failure), time.monotonic() - begin, traceback.format_exc(),
                    {})
    return "ok", note or "", time.monotonic() - begin, "", getattr(note, "values", {})


def run_tests(suite, chosen, context, options, add):
    """Every test once or as often as asked for; ADD is called with each and its outcome."""
    if not suite.parallel or options.jobs == 1:
        for test in chosen:
            if sys.stdout.isatty():
                print(f"...   {test.name}", end="\r", flush=True)
            add(test, attempt(test, context, options.repeat * test.repeat))
        return
    in_parallel(options.jobs, chosen,
                lambda test: attempt(test, context, options.repeat * test.repeat), add)


def run_bed(suite, bed, options, report):
    run = report.begin(suite, bed)
    begin = time.monotonic()
    try:
        with prepared(suite, bed, options) as setup, suite.open(setup) as context:
            if setup.network:
                run["network"] = {"hosts": setup.network.hosts, "why": setup.network.why,
                                  "link": setup.network.link, "cores": setup.network.cores}
                print(f"{setup.network.describe()}; seed {setup.seed}", flush=True)
            run["seed"] = setup.seed
            chosen = [test for test in suite.of(bed, context)
                      if re.search(options.filter or "", test.name)]
            total = len(chosen) + len(suite.closing if chosen else ())
            report.print_header(setup.header, chosen)
            run_tests(suite, chosen, context, options,
                      lambda test, outcome: report.add(run, test, total, outcome))
            for test in suite.closing if chosen else ():
                report.add(run, test, total, attempt(test, context, 1))
    except Skip as reason:
        run["status"], run["reason"] = "skip", str(reason)
        print(f"skip  all of it: {reason}", flush=True)
    except (Error, Fail, OSError, subprocess.SubprocessError) as error:
        run["status"], run["reason"] = "FAIL", str(error)
        print(f"FAIL  it cannot begin: {error}", flush=True)
    finally:
        run["seconds"] = round(time.monotonic() - begin, 1)


def print_list(suites, options):
    for suite in suites:
        print(f"{suite.name}: {suite.about}")
        for bed in suite.beds:
            print(f"  bed {bed.name}: {', '.join(sorted(bed.tags)) or 'by hand'}")
        for test in suite.tests:
            if re.search(options.filter or "", test.name) and \
                    (not options.tag or test.tags & set(options.tag)):
                print(f"  {test.name}" + (f"  [{', '.join(sorted(test.tags))}]" if test.tags else ""))
        if suite.discover:
            print("  (others are found when it runs)")


def main(arguments=None):
    options, suites = parse(sys.argv[1:] if arguments is None else arguments)
    if options.list:
        print_list(suites, options)
        return 0
    exit_on_first_signal()
    plan = [(suite, bed) for suite in suites for bed in beds_of(suite, options)]
    if options.filter:
        plan = [(suite, bed) for suite, bed in plan if suite.discover or
                any(re.search(options.filter, test.name) for test in suite.of(bed))]
    if not plan:
        print("tests/run: no such test (see --list)", file=sys.stderr)
        return EXIT_USAGE
    if any(bed.hosts and bed.hosts not in ("1", "loopback") for _, bed in plan):
        network.enter_private_namespace()
    report = Report(options)
    try:
        for suite, bed in plan:
            run_bed(suite, bed, options, report)
    except SystemExit as end:       # a signal: what has ended by then is reported all the same
        report.end()
        return end.code
    return report.end()


if __name__ == "__main__":
    sys.exit(main())
