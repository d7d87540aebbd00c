# SPDX-License-Identifier: BSD-3-Clause
"""What tests/run promises: what it runs, how it counts, what it prints, writes and returns."""
import contextlib
import io
import json
import os
import pathlib
import signal
import sys
import tempfile
import time
import types
import unittest

import tests
from testbed import runner
from testbed.outcome import (EXIT_FAILED, EXIT_SKIPPED, EXIT_USAGE, Error, Fail, KnownFailure,
                             Skip)
from testbed.suite import Bed, Note, Suite, Test


def well(_):
    """A test that passes."""


def wrong(_):
    raise Fail("the bytes differ", output="first line\nlast line")


def known(_):
    raise KnownFailure("it hangs, as stock does")


def missing(_):
    raise Skip("no such program")


class Runner(unittest.TestCase):
    """Each test declares suites of its own, which take the place of the tree's."""

    def setUp(self):
        self.before = tests.SUITES
        tests.SUITES = {}

    def tearDown(self):
        tests.SUITES = self.before
        for name in [name for name in sys.modules if name.startswith("tests.made_up")]:
            del sys.modules[name]

    def declare(self, *suites):
        for suite in suites:
            name = f"made_up_{suite.name}"
            sys.modules[f"tests.{name}"] = module = types.ModuleType(f"tests.{name}")
            module.SUITES = [suite]
            tests.SUITES[suite.name] = name

    def suite(self, *functions, name="bytes", beds=(Bed("here", tags=frozenset({"fast"})),), **more):
        self.declare(Suite(name, "about bytes", beds,
                           tests=[Test(one.__name__, one) if callable(one) and
                                  not isinstance(one, Test) else one for one in functions], **more))

    def run_it(self, *arguments):
        """(exit status, what was printed)"""
        with contextlib.redirect_stdout(io.StringIO()) as out, \
                contextlib.redirect_stderr(out):
            try:
                status = runner.main(list(arguments))
            except SystemExit as end:
                status = end.code
        return status, out.getvalue()

    def test_a_failure_is_counted_shown_and_returned(self):
        self.suite(well, wrong)
        status, said = self.run_it()
        self.assertEqual(status, EXIT_FAILED)
        self.assertIn("FAIL  wrong", said)
        self.assertIn("the bytes differ", said)
        self.assertIn("      last line\n", said)
        self.assertTrue(said.endswith("FAIL  bytes, here: wrong: the bytes differ\n"
                                      "1 passed, 1 failed, 0 skipped\n"), said)

    def test_an_exception_of_any_kind_is_a_failure(self):
        self.suite(lambda _: {}["nothing"])
        self.assertEqual(self.run_it()[0], EXIT_FAILED)

    def test_a_skip_is_no_pass(self):
        self.suite(missing)
        status, said = self.run_it()
        self.assertEqual(status, EXIT_SKIPPED)
        self.assertIn("0 passed, 0 failed, 1 skipped", said)
        self.assertIn("no such program", said)

    def test_a_known_failure_is_counted_apart(self):
        self.suite(well, known)
        status, said = self.run_it()
        self.assertEqual(status, 0)
        self.assertIn("1 failed as expected\n1 passed, 0 failed, 0 skipped", said)

    def test_a_bed_that_cannot_be_made_is_a_failure(self):
        @contextlib.contextmanager
        def broken(_):
            raise Error("no compiler")
            yield   # pylint: disable=unreachable
        self.suite(well, open=broken)
        status, said = self.run_it()
        self.assertEqual(status, EXIT_FAILED)
        self.assertIn("no compiler", said)
        self.assertIn("0 passed, 1 failed, 0 skipped", said)

    def test_what_a_suite_needs_and_is_not_there_skips_it(self):
        self.suite(well, needs=("no-such-program-here",))
        status, said = self.run_it()
        self.assertEqual(status, EXIT_SKIPPED)
        self.assertIn("no-such-program-here is not installed", said)

    def test_only_fast_beds_run_unless_asked(self):
        self.suite(well, beds=(Bed("quick", tags=frozenset({"fast"})),
                               Bed("slow", tags=frozenset({"nightly"}))))
        self.assertNotIn("slow", self.run_it()[1])
        said = self.run_it("--tag", "nightly")[1]
        self.assertIn("bytes, slow", said)
        self.assertNotIn("bytes, quick", said)

    def test_a_suite_that_is_named_runs_in_its_first_bed(self):
        self.suite(well, beds=(Bed("by-hand"), Bed("quick", tags=frozenset({"fast"}))))
        self.suite(well, name="other")
        said = self.run_it("bytes")[1]
        self.assertIn("bytes, by-hand", said)
        self.assertNotIn("quick", said)
        self.assertNotIn("other", said)

    def test_a_filter_that_is_a_suites_name_chooses_no_suite(self):
        self.suite(well)
        self.suite(Test("bytes-of-other", well), name="other")
        self.assertIn("ok    bytes-of-other", self.run_it("--filter", "bytes")[1])

    def test_a_bed_runs_the_tests_of_its_tag_and_no_long_ones(self):
        tests_of = [Test("short", well), Test("long", well, frozenset({"long"})),
                    Test("near", well, frozenset({"one-host"}))]
        self.suite(*tests_of, beds=(Bed("all", tags=frozenset({"fast"})),
                                    Bed("one-host", only="one-host")))
        said = self.run_it()[1]
        self.assertIn("ok    short", said)
        self.assertNotIn("ok    long", said)
        self.assertIn("ok    long", self.run_it("--long")[1])
        said = self.run_it("--bed", "one-host")[1]
        self.assertIn("ok    near", said)
        self.assertNotIn("ok    short", said)

    def test_a_bed_leaves_out_what_is_about_other_networks(self):
        tests_of = [Test("everywhere", well), Test("far", well, kinds=("2", "loopback"))]
        self.suite(*tests_of, beds=(Bed("none", tags=frozenset({"fast"})),))
        status, said = self.run_it()
        self.assertEqual(status, 0)
        self.assertIn("1 passed, 0 failed, 0 skipped", said)
        suite = Suite("more", "", [], tests=tests_of)
        self.assertEqual([len(suite.of(Bed("", hosts=hosts))) for hosts in ("3", "loopback", "1")],
                         [2, 2, 1])

    def test_repeated_until_the_first_failure(self):
        calls = []

        def third_time(_):
            calls.append(1)
            if len(calls) == 3:
                raise Fail("late")
        self.suite(third_time)
        status, said = self.run_it("--repeat", "9")
        self.assertEqual((status, len(calls)), (EXIT_FAILED, 3))
        self.assertIn("run 3 of 9: late", said)

    def test_closing_tests_come_last_whatever_the_filter(self):
        self.suite(Test("one", well), Test("two", well), closing=[Test("enough", wrong)])
        status, said = self.run_it("--filter", "one")
        self.assertEqual(status, EXIT_FAILED)
        self.assertIn("FAIL  enough", said)
        self.assertNotIn("two", said)

    def test_tests_at_the_same_time_are_all_reported(self):
        self.suite(*(Test(f"number-{i}", well) for i in range(40)), parallel=True)
        status, said = self.run_it("--jobs", "8")
        self.assertEqual(status, 0)
        self.assertIn("40 passed", said)

    def test_results_as_json(self):
        self.suite(Test("measured", lambda _: Note("quick", microseconds=7)), wrong)
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "new/results.json"
            self.run_it("--json", str(file), "--seed", "5")
            results = json.loads(file.read_text(encoding="utf-8"))
        self.assertEqual((results["passed"], results["failed"], results["seed"]), (1, 1, 5))
        measured, failed = results["runs"][0]["tests"]
        self.assertEqual((measured["reason"], measured["microseconds"]), ("quick", 7))
        self.assertEqual((failed["status"], failed["reason"]), ("FAIL", "the bytes differ"))

    def test_a_signal_ends_it_with_the_results_so_far(self):
        def interrupted(_):
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(10)
        self.suite(well, interrupted, Test("never", wrong))
        kept = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            status, said = self.run_it()
        finally:
            for number, handler in kept.items():
                signal.signal(number, handler)
        self.assertEqual(status, 128 + signal.SIGTERM)
        self.assertTrue(said.endswith("1 passed, 0 failed, 0 skipped\n"), said)

    def test_usage(self):
        self.suite(well)
        for words in (["--no-such-option"], ["no-such-suite"], ["--env", "no-value"],
                      ["--repeat", "0"], ["--filter", "no such test"]):
            self.assertEqual(self.run_it(*words)[0], EXIT_USAGE, words)
        status, said = self.run_it("--help")
        self.assertEqual(status, 0)
        self.assertIn("77 nothing could run here", said)


class Tree(unittest.TestCase):
    """The suites that there are."""

    def test_each_test_is_run_by_a_bed(self):
        for suite in runner.load(tests.SUITES):
            run = {id(test) for bed in suite.beds for test in suite.of(bed)}
            self.assertEqual([test.name for test in suite.tests if id(test) not in run], [],
                             suite.name)


if __name__ == "__main__":
    unittest.main()
