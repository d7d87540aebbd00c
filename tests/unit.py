# SPDX-License-Identifier: BSD-3-Clause
"""GoogleTest programs, tests of tools, and of the tree itself: what CTest knows, in three builds."""
import os
import pathlib
import subprocess

from testbed.outcome import EXIT_SKIPPED, Fail, Skip, check
from testbed.suite import Bed, Suite

TOP = pathlib.Path(__file__).resolve().parents[1]
JOBS = str(os.cpu_count())

suite = Suite("unit", "what CTest knows, plain and under sanitizers",
              beds=[Bed("fast", tags=frozenset({"fast"}), only="fast"),
                    Bed("nightly", tags=frozenset({"nightly"}), only="nightly")])
SUITES = [suite]


def build_and_test(preset):
    log = TOP / f"build/{preset}.log"
    log.parent.mkdir(exist_ok=True)
    with open(log, "w", encoding="utf-8") as file:
        for command in (["cmake", "--preset", preset],
                        ["cmake", "--build", "--preset", preset, "-j", JOBS]):
            if subprocess.run(command, cwd=TOP, stdout=file, stderr=subprocess.STDOUT,
                              stdin=subprocess.DEVNULL, check=False).returncode:
                file.flush()
                raise Fail("it does not build", log.read_text(encoding="utf-8"))
    failed = TOP / f"build/{preset}/Testing/Temporary/LastTestsFailed.log"
    failed.unlink(missing_ok=True)
    # Its lines are shown as they come: they are the results.
    done = subprocess.run(["ctest", "--preset", preset, "-j", JOBS], cwd=TOP,
                          stdin=subprocess.DEVNULL, check=False)
    if done.returncode:
        names = [line.partition(":")[2] for line in failed.read_text(encoding="utf-8").splitlines()] \
            if failed.exists() else []
        raise Fail(f"ctest --preset {preset}: {', '.join(names) or 'no test was run'}")


@suite.test(tags={"fast"})
def release(_):
    build_and_test("release")


@suite.test("asan-ubsan", tags={"fast"})
def asan_ubsan(_):
    """AddressSanitizer and UndefinedBehaviorSanitizer."""
    build_and_test("asan-ubsan")


@suite.test(tags={"nightly"})
def tsan(_):
    """ThreadSanitizer, but for what has no threads."""
    build_and_test("tsan")


@suite.test("clang-analyzer", tags={"nightly"})
def clang_analyzer(_):
    """What the unit test house.tidy leaves out, since it takes five times as long."""
    done = subprocess.run([TOP / "tests/house/tidy", "--analyze"], cwd=TOP, stdout=subprocess.PIPE,
                          stdin=subprocess.DEVNULL, text=True, check=False)
    if done.returncode == EXIT_SKIPPED:
        raise Skip(done.stdout.strip())
    check(done.returncode == 0, done.stdout.splitlines()[-1], done.stdout)
