# SPDX-License-Identifier: BSD-3-Clause
"""zc.ko in virtual machines, one kernel each: a test for each program that runs in the guest.

A failure is anything "not ok", a missing plan, a program that does not end, a module that
cannot be removed, and every line of the kernel log that tells of a bug. Unless all that is
wrong is one debug exception with flags that no processor can have: then the emulator erred,
which is said, and that kernel is tried once more.
"""
import contextlib
import itertools
import os
import pathlib
import re
import shlex

from testbed.outcome import Error, Fail, Skip, check
from testbed.suite import Bed, Note, Suite, Test
from tests.kmod import qemu

NIGHTLY = frozenset({"nightly"})
# A kernel that watches itself takes 40 minutes for all.
DEBUG = ["torture --seconds 60", "exchange_test --only failing_no_wait"]


def options(group):
    group.add_argument("--kernel", metavar="KERNEL",
                       help="6.1, 6.12, newest, 6.18, debug, or a folder (tests/kmod/README.md)")
    group.add_argument("--program", action="append", metavar='"NAME [ARG ...]"',
                       help="run this one (repeatable; with a /: any static program)")
    group.add_argument("--torture", type=int, metavar="SECONDS",
                       help="how long the torture is to last, beside all the others (default 20)")
    group.add_argument("--stack", action="store_true",
                       help="also MPI, in a guest that sees the host's root, but cannot change it")
    group.add_argument("--icount", action="store_true",
                       help="count instructions (tests/kmod/guest/icount.c)")
    group.add_argument("--append", default="", metavar="TEXT",
                       help="for the kernel's command line (\"slub_debug=FZPU page_poison=1\":"
                       " what Debian's kernels can watch of themselves)")
    group.add_argument("--gdb", metavar="SOCKET",
                       help="let a debugger connect to the guest's processors")
    group.add_argument("--guest-timeout", type=int, metavar="SECONDS",
                       help="for the guest, and nearly as many for each program (default: by the"
                       " kernel and the programs)")
    group.add_argument("--console", action="store_true", help="show what the guest says as it comes")


def own_programs():
    """Those that are not in programs/, by name: what makes each."""
    return {"module": lambda: qemu.HERE / "guest/module",
            "icount": lambda: qemu.build_tool(qemu.HERE / "guest/icount.c"),
            "zc_node_tests": qemu.build_node_tests}


def choose(chosen):
    """The programs to run, each a list of words beginning with a path."""
    if chosen.program:
        wanted = [shlex.split(text) for text in chosen.program]
    elif chosen.icount:
        wanted = [["icount"]]
    else:
        wanted = [[name] for name in ["module", *qemu.build_programs(), "zc_node_tests"]]
    if chosen.torture:
        wanted = [words + ["--seconds", str(chosen.torture)] if words == ["torture"] else words
                  for words in wanted]
    return [words for words in wanted if re.search(chosen.filter or "", name_of(chosen, words))]


def built(words):
    """WORDS, with the path of the program instead of its name."""
    name, own = words[0], own_programs()
    if "/" in name:
        return words
    programs = {} if name in own else qemu.build_programs()
    if name not in own and name not in programs:
        raise Error(f"no program {name}; there are: {' '.join([*own, *programs])}")
    return [str(own[name]() if name in own else programs[name]), *words[1:]]


def name_of(chosen, words):
    """Of the test: what runs, on which kernel."""
    kernel = pathlib.Path(chosen.kernel).name
    return f"{kernel}/{shlex.join([pathlib.Path(words[0]).name, *words[1:]])}"


class Run:
    """A guest that runs, if anything is to run in it, and the options it was made with."""

    def __init__(self, chosen, guest, programs):
        self.chosen, self.guest, self.programs = chosen, guest, programs
        self.judged = False

    def program(self, number):
        """What tests the program NUMBER, and those after it, if it is called again (--repeat)."""
        numbers = itertools.count(number)
        return lambda _: judge(self.guest, next(numbers))

    def guest_itself(self, _=None):
        """The guest's end, the removal of the module, and the kernel's log."""
        self.judged = True
        return judge_end(self.guest)

    def stack(self, _):
        """MPI_Recv to page tables: MPICH in a guest, rebinding through the module."""
        words = qemu.stack_words(self.chosen)
        with qemu.Guest(self.chosen.kernel, [words], self.chosen, stack=True) as guest:
            note = judge(guest, 0)
            judge_end(guest)
            return note


def judge(guest, number):
    """The note of a program's test, or Fail, or Skip."""
    program = guest.result(number)
    check(program is not None, "it did not begin: the guest has ended")
    if program.failed:
        raise Fail(f"{program.passed} passed, {len(program.failed)} failed: "
                   + program.failed[0].partition("\n")[0], program.told())
    if program.skipped and not program.passed:
        raise Skip(f"all {program.skipped} of its tests are skipped")
    skipped = f", {program.skipped} skipped" if program.skipped else ""
    return Note(f"{program.passed} passed{skipped}", lines=program.figures())


def judge_end(guest, is_last=False):
    """Fail if something is wrong with the guest itself; unless the emulator erred: then once more."""
    problems, more, erred = guest.end()
    well = all(not guest.result(number).failed for number in range(len(guest.programs))
               if guest.result(number))
    if erred and well and not is_last:
        print("      the emulator erred: EFLAGS that no processor can have; once more", flush=True)
        with guest.again() as second:
            for number in range(len(second.programs)):
                with contextlib.suppress(Skip):
                    judge(second, number)
            judge_end(second, is_last=True)
        return "at the second attempt"
    check(not problems, "; ".join(problems[:3]), "\n".join(
        [*problems, *(f"| {line}" for line in more), f"logs: {guest.folder}"]))
    return ""


@contextlib.contextmanager
def guest_of(setup):
    if not os.access(qemu.BUSYBOX, os.X_OK):
        raise Skip("busybox-static is not installed (.ci/install-packages)")
    chosen = setup.options
    chosen.kernel = chosen.kernel or "6.1"
    qemu.BUILD.mkdir(parents=True, exist_ok=True)
    programs = [words for words in choose(chosen) for _ in range(chosen.repeat)]
    if not programs:
        yield Run(chosen, None, [])
        return
    with qemu.Guest(chosen.kernel, [built(words) for words in programs], chosen) as guest:
        setup.header = f"kernel {guest.kernel.name}; logs: {guest.folder.relative_to(qemu.TOP)}"
        run = Run(chosen, guest, programs)
        yield run
        # A guest that misbehaves is a failure whatever --filter says.
        if not run.judged:
            run.guest_itself()


def tests_of(run):
    chosen, kernel = run.chosen, pathlib.Path(run.chosen.kernel).name
    tests = [Test(name_of(chosen, run.programs[number]), run.program(number))
             for number in range(0, len(run.programs), chosen.repeat)]
    if run.guest:
        tests.append(Test(f"{kernel}/guest", run.guest_itself))
    if chosen.stack:
        tests.append(Test(f"{kernel}/stack", run.stack))
    return tests


suite = Suite("kmod", "zc.ko in virtual machines, one kernel each, emulated by QEMU",
              beds=[Bed("6.1", tags=NIGHTLY, options={"kernel": "6.1"}),
                    Bed("6.12", tags=NIGHTLY, options={"kernel": "6.12", "stack": True}),
                    Bed("debug", tags=NIGHTLY, options={"kernel": "debug", "program": DEBUG}),
                    Bed("debug-long", options={"kernel": "debug", "torture": 600}),
                    Bed("newest", options={"kernel": "newest"}),
                    Bed("6.18", options={"kernel": "6.18"})],
              needs=(qemu.QEMU, "cpio"), open=guest_of, discover=tests_of, options=options)
SUITES = [suite]
