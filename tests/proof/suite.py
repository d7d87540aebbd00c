# SPDX-License-Identifier: BSD-3-Clause
"""The programs of bench/run proof, shortened: each receives what was sent, with stock MPICH and zc.

They verify every byte and every item themselves, and abort if one is wrong. How long they take is for
the benchmark.
"""
import contextlib
import json
import pathlib
import types

from bench.mpi import report
from bench.mpi.settings import Setting
from bench.proof import applications
from bench.proof.cases import CASES, HERE
from testbed.mpi import Mpi, build
from testbed.outcome import Fail
from testbed.suite import Bed, Suite, Test
from tests.programs.suite import check_installed

FINALIZE_GRACE_S = 5
STEPS, WORK_MS = 8, 4
MOST_RANKS = 4      # of the idle wave, too, which the benchmark has 32 of


class Stage:
    def __init__(self, setup):
        self.setup = setup
        self.programs = build(
            setup.prefix, sorted({HERE / f"{case.program}.c" for case in CASES.values()}),
            setup.build_dir, flags=[f"-I{report.HERE}", f"-I{report.PATTERN.parent}"],
            headers=[HERE / "proof.h", report.HERE / "bench.h", report.PATTERN])

    def run(self, case, netmod, kind):
        """The lines of JSON of a short run, put together."""
        words = [self.programs[case.program], "-r", STEPS, "-c", WORK_MS,
                 *(["-k", kind] if kind else []), "256k"]
        mpi = Mpi(self.setup.prefix, self.setup.network, netmod=netmod,
                  environment={**case.environment, **self.setup.environment})
        result = mpi.run(words, ranks=min(case.ranks, MOST_RANKS), timeout=60 * self.setup.patience,
                         finalize_grace=FINALIZE_GRACE_S * self.setup.patience)
        # Stock MPICH now and then hangs in MPI_Finalize; the results are out by then.
        if not (result.ok or result.hung_in_finalize and netmod == "ucx"):
            raise Fail(f"{netmod}: {result.reason()}", result.out + result.err)
        said = {name: value for line in result.out.splitlines() if line.startswith("{")
                for name, value in json.loads(line).items()}
        if said.get("time_to_solution", 0) < STEPS * WORK_MS * 1e-3 or not 0 < said["efficiency"] <= 1:
            raise Fail(f"{netmod}: no result, or one that cannot be", result.out + result.err)
        return said


@contextlib.contextmanager
def open_stage(setup):
    yield Stage(setup)


suite = Suite("proof", "the programs of bench/run proof, shortened",
              beds=[Bed("two-hosts", tags=frozenset({"fast"}), hosts="2"),
                    Bed("one-host", tags=frozenset({"nightly"}), hosts="1"),
                    Bed("eight-hosts", tags=frozenset({"nightly"}), hosts="8", link="1gbit")],
              needs=("mpich",), open=open_stage)
SUITES = [suite]


def is_right(stage, case, kind):
    for netmod in ("ucx", "zc"):
        said = stage.run(case, netmod, kind)
        if case.program == "stealing" and "longest_held" not in said:
            raise Fail(f"{netmod}: it does not say how long a rank was held: {said}")
        if case.name == "idle-wave":
            waits = said["wave"]["waits_ms"]
            if len(waits) != MOST_RANKS or {len(row) for row in waits} != {STEPS}:
                raise Fail(f"{netmod}: not the waits of all ranks and steps: {waits}")
            # The next rank needs the late one's data, with any MPI.
            if said["reach_above"] < 1:
                raise Fail(f"{netmod}: the delay came to no rank: {said}")


for the_case in CASES.values():
    for the_kind in filter(None, (the_case.kind or "plain", the_case.edited)):
        suite.test(the_case.name + (f"-{the_kind}" if the_kind == the_case.edited else ""))(
            lambda stage, case=the_case, kind=the_kind:
            is_right(stage, case, "" if kind == "plain" else kind))


def debians_programs(stage):
    """bench/run applications, with one of them."""
    setup, program = stage.setup, applications.PROGRAMS["scalapack-lu"]
    check_installed(program.command, program.packages)
    setting = Setting(setup.network.link, setup.network.cores)
    options = types.SimpleNamespace(
        mpich=setup.prefix, rounds=1, settings=[setting], programs=["scalapack-lu"],
        forecaster=pathlib.Path(setup.options.library).resolve() / "bin/zc-forecast", timeout=60 * setup.patience)
    found = applications.Measurement(options, setup.network, setup.scratch)
    found.prepare()
    found.run()
    if found.failures:
        raise Fail("; ".join(found.failures))
    said = found.verdict()[0]
    if not said["stock_seconds"] > 0 or not said["found"]["messages"] > 1000:
        raise Fail(f"it cannot be: {said}")
    if len(list(found.records())) != 3:
        raise Fail(f"not the times of two and a forecast: {list(found.records())}")


suite.tests.append(Test("debians_programs", debians_programs, kinds=("2",)))
