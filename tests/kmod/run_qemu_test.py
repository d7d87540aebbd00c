#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What run-qemu makes of kernel logs."""
import importlib.machinery
import importlib.util
import pathlib
import sys
import unittest

sys.dont_write_bytecode = True
PATH = str(pathlib.Path(__file__).resolve().parent / "run-qemu")
LOADER = importlib.machinery.SourceFileLoader("run_qemu", PATH)
run_qemu = importlib.util.module_from_spec(importlib.util.spec_from_loader("run_qemu", LOADER))
LOADER.exec_module(run_qemu)


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
        self.assertEqual(run_qemu.kernel_bugs(log), [])
        self.assertEqual(run_qemu.kernel_bugs(log + ["[    3.0] BUG: of the module"]), [3])

    def test_flags_no_processor_has_are_the_emulators(self):
        log = [BEGIN, *warning("3ff0b002", "3ff0bb42")]
        bug, = run_qemu.kernel_bugs(log)
        self.assertTrue(run_qemu.emulator_erred(log, bug))
        log = [BEGIN, *warning("00010002", "3ff0bb42")]
        self.assertTrue(run_qemu.emulator_erred(log, 1))

    def test_flags_a_processor_has_are_not(self):
        for flags in ("00000246", "00010302", "00210b46", "003f7fd7"):
            self.assertFalse(run_qemu.emulator_erred(warning(flags, flags), 0), flags)
        self.assertFalse(run_qemu.emulator_erred(["BUG: that says nothing of flags"], 0))

    def test_only_debug_exceptions_are_excused(self):
        """A module that writes over saved registers must not be."""
        bug, *rest = warning("3ff0b002", "3ff0bb42")
        self.assertFalse(run_qemu.emulator_erred([bug.replace("exc_debug_kernel", "zc_exchange"), *rest], 0))

    def test_a_bug_is_not_excused_by_another(self):
        log = [*warning("00000246", "00000246"), *warning("3ff0b002", "3ff0bb42")]
        self.assertFalse(run_qemu.emulator_erred(log, 0))


if __name__ == "__main__":
    unittest.main()
