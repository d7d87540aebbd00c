# SPDX-License-Identifier: BSD-3-Clause
"""What report.py makes of kernel logs."""
import contextlib
import io
import types
import unittest

from testbed.outcome import Fail
from tests.kmod import report, suite


def warning(flags, inner):
    """A warning from an interrupt as Debian's 6.12 prints it, shortened."""
    return f"""\
[   54.251225] WARNING: CPU: 1 PID: 638 at arch/x86/kernel/traps.c:1120 exc_debug_kernel+0xca/0x160
[   54.251321] RIP: 0010:exc_debug_kernel+0xca/0x160
[   54.251321] RSP: 0000:fffffe000004bf28 EFLAGS: {flags}
[   54.251321]  <#DB>
[   54.251321] RIP: 0010:__kmalloc_cache_noprof+0xd1/0x310
[   54.251321] RSP: 0018:ffffc9000103bc30 EFLAGS: {inner}
[   54.251321] ---[ end trace 0000000000000000 ]---""".splitlines()


BEGIN = "[    1.0] zc: tests begin"


class KernelBugs(unittest.TestCase):
    def test_only_what_comes_after_the_beginning_counts(self):
        log = ["[    0.5] WARNING: of the boot", BEGIN, "[    2.0] all is well"]
        self.assertEqual(report.kernel_bugs(log), [])
        self.assertEqual(report.kernel_bugs(log + ["[    3.0] BUG: of the module"]), [3])

    def test_flags_no_processor_has_are_the_emulators(self):
        log = [BEGIN, *warning("3ff0b002", "3ff0bb42")]
        bug, = report.kernel_bugs(log)
        self.assertTrue(report.emulator_erred(log, bug))
        log = [BEGIN, *warning("00010002", "3ff0bb42")]
        self.assertTrue(report.emulator_erred(log, 1))

    def test_flags_a_processor_has_are_not(self):
        for flags in ("00000246", "00010302", "00210b46", "003f7fd7"):
            self.assertFalse(report.emulator_erred(warning(flags, flags), 0), flags)
        self.assertFalse(report.emulator_erred(["BUG: that says nothing of flags"], 0))

    def test_only_debug_exceptions_are_excused(self):
        """A module that writes over saved registers must not be."""
        bug, *rest = warning("3ff0b002", "3ff0bb42")
        self.assertFalse(report.emulator_erred([bug.replace("exc_debug_kernel", "zc_exchange"), *rest], 0))

    def test_a_bug_is_not_excused_by_another(self):
        log = [*warning("00000246", "00000246"), *warning("3ff0b002", "3ff0bb42")]
        self.assertFalse(report.emulator_erred(log, 0))


class Guest:
    """One whose programs have ended with these numbers of failures; with an end of its own."""

    folder = "logs"

    def __init__(self, *failures, problems=(), erred=False, second=None):
        self.programs = failures
        self.problems, self.erred, self.second = list(problems), erred, second

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def again(self):
        return self.second

    def result(self, number):
        return types.SimpleNamespace(
            failed=["not ok 1"] * self.programs[number], passed=1, skipped=0,
            told=lambda: "", figures=list)

    def end(self):
        return self.problems, ["a line of the log"], self.erred


class EndOfAGuest(unittest.TestCase):
    ERRED = {"problems": ["kernel log: WARNING"], "erred": True}

    def judge(self, guest):
        with contextlib.redirect_stdout(io.StringIO()):
            return suite.judge_end(guest)

    def test_a_problem_is_a_failure(self):
        self.assertEqual(self.judge(Guest(0, 0)), "")
        with self.assertRaisesRegex(Fail, "WARNING"):
            self.judge(Guest(0, problems=["kernel log: WARNING"]))

    def test_after_an_error_of_the_emulator_the_second_attempt_decides(self):
        self.assertIn("second", self.judge(Guest(0, second=Guest(0), **self.ERRED)))
        with self.assertRaisesRegex(Fail, "not ok 1"):
            self.judge(Guest(0, 0, second=Guest(0, 1), **self.ERRED))
        with self.assertRaisesRegex(Fail, "rmmod"):
            self.judge(Guest(0, second=Guest(0, problems=["rmmod zc"]), **self.ERRED))

    def test_the_emulator_may_err_once_only(self):
        with self.assertRaisesRegex(Fail, "WARNING"):
            self.judge(Guest(0, second=Guest(0, **self.ERRED), **self.ERRED))

    def test_an_error_of_the_emulator_does_not_excuse_a_program(self):
        with self.assertRaisesRegex(Fail, "WARNING"):
            self.judge(Guest(1, second=Guest(0), **self.ERRED))


if __name__ == "__main__":
    unittest.main()
