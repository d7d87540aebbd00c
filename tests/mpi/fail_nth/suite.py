# SPDX-License-Identifier: BSD-3-Clause
"""Make every call into UCX and every allocation fail, one at a time.

A preloaded library (preload.c) counts the calls that libmpi, libzc, libzcpredict and libzclane make
in small jobs (program.c), told apart by where they come from; then the job is run again for each,
and that one call fails. Each run must end in its time, and either well, every byte checked, or
with words that name the cause: an error that MPI returned to any process, or the last words of
that whose call failed. A hang, a crash, a failed assertion, wrong data, or an end without a
cause is a failure of the test, the first time it is seen. A run is repeated, twice at most, only
if the words are missing (of a process that ends in MPI_Init Hydra sometimes loses them), or if the
call that was to fail was not made; both are counted. Calls that are not made in any attempt are a
failure if they are more than one in twenty.

In the bed "each" each function fails once for each chain of callers that a case is the first to
show, in one of the ranks; of what is then tried another way (sends), the next one fails as well.
In the bed "all" (--long), at each place in each case and rank each of the first 64 calls, then the
128th, the 256th and so on, and the last; the first also with the other of UCX's errors, for good,
and with MPI's errors fatal: a day or two, so of those tonight's part, or another one (--shard I/N;
1/1: all). In the bed "sample" 240 of "each" (--sample) by chance (--seed), in turn of UCX's
functions, of allocations in our own code, and of others, and of all cases; mostly the same for the
same seed, and none of which a first look says that it depends on time.

What other code than ours does without memory is listed in EXPECTED, with its reason; it is
reported as a known failure, and a line there that nothing matches any more is a failure of a long
run that is not divided.
"""
import argparse
import collections
import contextlib
import itertools
import pathlib
import re
import subprocess
import time

from testbed import mpi
from testbed.outcome import Error, KnownFailure, Skip, check
from testbed.process import in_parallel
from testbed.statistics import CVAR
from testbed.suite import Bed, Note, Suite, Test
from tests.mpi.fail_nth.ends import AGAIN, BAD, PREPEND, judge, words
from tests.mpi.fail_nth.places import ERRORS, Choice, Frames, Target, title

HERE = pathlib.Path(__file__).resolve().parent
TOP = HERE.parents[2]
BASE = {CVAR + "LANDING_THREAD": "1", CVAR + "NETWORK_RATE": "1"}
SECONDS = 30
ATTEMPTS = 3
NOT_REACHED = 0.05  # the share of the runs that may be so
NIGHTS = 60         # in which the nightly parts go through all there are

# Name, environment beside BASE; what begins with "child-" fails in spawned processes.
CASES = {
    "nothing": {},
    "nothing@no-thread": {CVAR + "LANDING_THREAD": "0"},
    "eager": {},
    "flood": {},
    "large": {},
    "large@no-thread": {CVAR + "LANDING_THREAD": "0"},
    "large@copy": {CVAR + "BACKEND": "copy"},
    "large@by-ucx": {CVAR + "LANE": "ucx", CVAR + "BULK_APART": "1"},
    "large@shares": {CVAR + "LANE": "ucx"},
    "strided": {},
    "persistent": {},
    "synchronous": {},
    "truncated": {},
    "bursts": {CVAR + "BUNDLE": "1"},
    "refused": {CVAR + "LANDING_BUDGET": "2m"},
    "collectives": {},
    "window": {},
    "window@by-messages": {CVAR + "NATIVE_RMA": "0"},
    "atomics": {CVAR + "NATIVE_ATOMICS": "1"},
    "vcis": {"MPIR_CVAR_CH4_NUM_VCIS": "3"},
    "spawn": {},
    "spawn@vcis": {"MPIR_CVAR_CH4_NUM_VCIS": "3"},
    "spawn@held": {"ZC_HOLD_SPAWNED": "env\nBY=zc-hold"},
    "leaves": {CVAR + "DETACH": "1"},
    "leaves@no-thread": {CVAR + "DETACH": "1", CVAR + "LANDING_THREAD": "0"},
    "leaves@announced": {CVAR + "DETACH": "1", CVAR + "LANDING_THRESHOLD": "inf",
                         CVAR + "RNDV_THRESHOLD": "1k", CVAR + "LANDING_BUDGET": "1m",
                         CVAR + "BULK_APART": "1"},
    "leaves_vcis": {CVAR + "DETACH": "1", "MPIR_CVAR_CH4_NUM_VCIS": "3"},
    "leaves_window": {CVAR + "DETACH": "1"},
    "leaves_worlds": {CVAR + "DETACH": "1"},
    "leaves_worlds@vcis": {CVAR + "DETACH": "1", "MPIR_CVAR_CH4_NUM_VCIS": "3"},
    "nothing@statistics": {CVAR + "STATS": "1", CVAR + "STATS_FILE": "statistics"},
}

# (an expression for the function, one for the names in its stack, innermost first, why)
EXPECTED = []

# UCX's functions that return nothing which says that they have failed.
CANNOT_FAIL = {
    "ucp_am_data_release", "ucp_cleanup", "ucp_config_release", "ucp_context_print_info",
    "ucp_dt_destroy", "ucp_dt_make_contig", "ucp_request_free", "ucp_rkey_buffer_release",
    "ucp_rkey_destroy", "ucp_worker_destroy", "ucp_worker_progress", "ucp_worker_release_address",
    "ucs_status_string",
}
# As ucp.h calls what is inline in it.
CALLED = {"ucp_init": "ucp_init_version"}


def check_complete():
    """Every function of UCX that the netmod calls fails in preload.c, or cannot fail."""
    text = "".join(file.read_text() for file in sorted((TOP / "mpi-ch4-netmod/zc").glob("*.[ch]")))
    text = re.sub(r"/\*.*?\*/|\"[^\"\n]*\"", "", text, flags=re.DOTALL)
    called = {CALLED.get(name, name) for name in re.findall(r"\b(uc[pst]_\w+) ?\(", text)}
    fails = set(re.findall(r"^    X\((\w+),", (HERE / "preload.c").read_text(), re.MULTILINE))
    missing = called - fails - CANNOT_FAIL
    if missing or not called:
        raise Error(f"preload.c does not fail, nor is in CANNOT_FAIL: {sorted(missing)}")


class Stage:
    """The program, what is preloaded into it, and what has become of the runs."""

    def __init__(self, setup):
        self.setup = setup
        self.options = setup.options
        self.mpi = mpi.Mpi(setup.prefix, setup.network, netmod="zc")
        self.frames = Frames(setup.prefix)
        self.program = mpi.build(setup.prefix, [HERE / "program.c"], setup.build_dir, headers=[
            HERE.parent / "check.h", HERE.parent / "pattern.h"])["program"]
        self.preload = self.build_preload()
        self.numbers = itertools.count(1)
        self.ends = []      # (kind, number of the line of EXPECTED or None, repeats) of each run

    def build_preload(self):
        library, source = self.setup.build_dir / "preload.so", HERE / "preload.c"
        if not library.exists() or library.stat().st_mtime < source.stat().st_mtime:
            done = subprocess.run(
                ["cc", "-std=gnu11", "-O2", "-g", "-Wall", "-Wextra", "-fexceptions", "-fPIC",
                 "-shared", source, "-o", library, "-ldl"],
                capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise Error(f"cannot build preload.c:\n{done.stdout}{done.stderr}")
        return library

    def start(self, case, environment, fatal=False):
        """(result, {who: lines of what preload.c wrote})"""
        directory = self.setup.scratch / f"run-{next(self.numbers)}"
        directory.mkdir()
        # A spawned process begins with the environment that mpiexec had.
        wrapper = directory / "child"
        wrapper.write_text(f"#!/bin/sh\nLD_PRELOAD={self.preload} FAIL_NTH_WORLD=child- "
                           'exec "$@"\n', encoding="utf-8")
        wrapper.chmod(0o755)
        words_of_case = [case.partition("@")[0]] + (["fatal"] if fatal else [])
        result = self.mpi.run(
            ["env", f"LD_PRELOAD={self.preload}", self.program, *words_of_case],
            timeout=SECONDS * self.setup.patience, directory=directory,
            environment={"ZC_SEED": str(self.setup.seed), "FAIL_NTH_OUT": str(directory / "out"),
                         "FAIL_NTH_SPAWN": str(wrapper), **BASE, **CASES[case], **environment,
                         **self.setup.environment},
            stacks=self.options.stacks, launcher=["-prepend-pattern", PREPEND])
        lines = {}
        for file in directory.glob("out.*"):
            lines[file.name.partition(".")[2]] = file.read_text(encoding="utf-8").splitlines()
            file.unlink()
        return result, lines

    def count(self, case):
        """[Target] of all that CASE reaches, each the first time.

        CALLS is of so many as it makes at least; 0: whether it makes any depends on time.
        """
        found = {}
        for attempt in range(2):
            result, lines = self.start(case, {})
            if not result.ok:
                raise Error(f"{case} fails without help: {result.reason()}\n{result.out}"
                            f"{result.err}{result.stacks}")
            for who in sorted(lines):
                for line in lines[who]:
                    what, function, site, calls, *frames = line.split()
                    if what == "site":
                        one = Target(case, who, function, site, 1, int(calls), frames, ERRORS[0],
                                     1, 0, False)
                        found.setdefault((who, function, site), {})[attempt] = one
        if not found:
            raise Error(f"{case}: nothing was counted")
        return [next(iter(two.values()))._replace(
            calls=min(one.calls for one in two.values()) if len(two) == 2 else 0)
            for two in found.values()]

    def fail(self, target):
        """(kind, what is to be said of it, output, how often it was repeated)"""
        environment = {"FAIL_NTH_WHO": target.who, "FAIL_NTH_CALL": target.function,
                       "FAIL_NTH_SITE": target.site, "FAIL_NTH_N": str(target.nth),
                       "FAIL_NTH_TIMES": str(target.times), "FAIL_NTH_NEXT": str(target.next),
                       "FAIL_NTH_STATUS": target.error}
        for repeats in range(ATTEMPTS):
            result, lines = self.start(target.case, environment, target.fatal)
            reached = any(line.startswith("failed ") for line in lines.get(target.who, []))
            kind, what = judge(result, reached, *words(result, target.who))
            if kind not in AGAIN:
                break
        return kind, what, result.out + result.err + result.stacks, repeats

    def expected(self, target):
        """The number of the line of EXPECTED that matches, or None."""
        text = self.frames.describe(target.frames)
        for number, (function, expression, _) in enumerate(EXPECTED):
            if re.search(function, target.function) and re.search(expression, text):
                return number
        return None

    def divided(self):
        options = self.options
        return bool(not options.long or options.filter or options.case or options.through or
                    options.shard or options.sample)


def check_target(stage, target):
    kind, what, output, repeats = stage.fail(target)
    number = stage.expected(target) if kind in BAD else None
    stage.ends.append((kind if number is None else "expected", number, repeats))
    at = stage.frames.describe(target.frames)
    text = (f"(attempt {repeats + 1}) " if repeats else "") + kind + (f": {what}" if what else "")
    if number is not None:
        raise KnownFailure(f"{text} [{EXPECTED[number][2]}]; at {at}", output)
    check(kind not in BAD, f"{text}; at {at}", output)
    return Note(text, result=kind, repeats=repeats, at=at)


def nearly_all_are_made(stage):
    counts = collections.Counter(kind for kind, _, _ in stage.ends)
    check(counts["not reached"] <= max(1, NOT_REACHED * len(stage.ends)),
          f"in {counts['not reached']} of {len(stage.ends)} runs nothing has failed")
    repeated = sum(repeats > 0 for _, _, repeats in stage.ends)
    return (", ".join(f"{count} {kind}" for kind, count in counts.most_common()) +
            f"; {repeated} were repeated, since their words were missing or the call was not made")


def expectations_are_met(stage):
    met = {number for _, number, _ in stage.ends}
    missing = [line for number, line in enumerate(EXPECTED) if number not in met]
    if missing and stage.divided():
        raise Skip("only a long run that is not divided can tell")
    check(not missing, f"nothing matches any more: {missing}")


def discover(stage):
    cases = [case for case in CASES if re.search(stage.options.case, case)]
    found = {}
    in_parallel(stage.options.jobs, cases, stage.count, found.__setitem__)
    all_found = [one for case in cases for one in found[case]]
    runs = Choice(stage.options, stage.frames, stage.setup.seed).of(all_found)
    places = {(one.function, one.site) for one in all_found}
    stage.setup.header = (f"{len(runs)} runs, of {len(places)} places that make "
                          f"{sum(one.calls for one in all_found)} calls")
    return [Test(title(one), lambda stage, one=one: check_target(stage, one)) for one in runs]


@contextlib.contextmanager
def stage_of(setup):
    check_complete()
    yield Stage(setup)


def shard(text):
    number, _, of = text.partition("/")
    if not (number.isdigit() and of.isdigit() and 1 <= int(number) <= int(of)):
        raise argparse.ArgumentTypeError(f"{text} is no part, such as 1/7")
    return int(number), int(of)


def tonight():
    """The part of all runs that is this night's: NIGHTS nights go through all."""
    return int(time.time() // 86400) % NIGHTS + 1, NIGHTS


def add_options(group):
    group.add_argument("--case", metavar="REGEX", default="", help="only these of program.c")
    group.add_argument("--through", metavar="REGEX",
                       help="only runs whose name, or a name in whose stack, matches")
    group.add_argument("--shard", type=shard, metavar="I/N",
                       help="only the Ith of N parts of them, the same whatever the seed")
    group.add_argument("--sample", type=int, metavar="N", help="so many of them")


suite = Suite("fail-nth", "calls into UCX and allocations fail, each in a run of its own",
              beds=[Bed("sample", tags=frozenset({"fast"}), hosts="loopback",
                        options={"sample": 240, "seed": 1}),
                    Bed("each", hosts="loopback"),
                    Bed("all", tags=frozenset({"nightly"}), hosts="loopback", long=True,
                        options={"long": True, "shard": tonight()})],
              needs=("mpich",), open=stage_of, discover=discover, options=add_options,
              parallel=True,
              closing=[Test("nearly all calls that are to fail are made", nearly_all_are_made),
                       Test("what is expected still happens", expectations_are_met)])
SUITES = [suite]
