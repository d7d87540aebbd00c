# SPDX-License-Identifier: BSD-3-Clause
"""The demonstration and the comparison with other MPI libraries, shortened: they must run to their ends."""
import pathlib
import subprocess

from testbed.outcome import EXIT_SKIPPED, Fail, Skip
from testbed.suite import Bed, Suite

TOP = pathlib.Path(__file__).resolve().parents[1]

suite = Suite("shows", "the demonstration and the comparison of MPI libraries, shortened",
              beds=[Bed("demo", tags=frozenset({"fast"}), only="demo"),
                    Bed("comparison", tags=frozenset({"nightly"}), only="comparison")],
              needs=("mpich",))
SUITES = [suite]


def run(setup, *words):
    done = subprocess.run([TOP / "bench/run", *words, "--mpich", setup.prefix], cwd=TOP,
                          stdin=subprocess.DEVNULL, check=False)
    if done.returncode == EXIT_SKIPPED:
        raise Skip("it cannot run here: see above")
    if done.returncode:
        raise Fail(f"exit status {done.returncode}: see above")


@suite.test(tags={"demo"})
def demo(setup):
    run(setup, "demo", "--quick", "--json-out", "out/demo-quick.jsonl")


@suite.test("bench-mpi", tags={"comparison"})
def bench_mpi(setup):
    run(setup, "mpi", "--quick", "--timeout", "300", "--impl", "zc,openmpi", "--settings",
        "bare/spare,10gbit/full", "--json-out", "out/mpi-quick.jsonl")
