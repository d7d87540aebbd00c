# SPDX-License-Identifier: BSD-3-Clause
"""What a guest reports: results of its programs (TAP), and its kernel's log."""
import re
import time

# What a kernel says when something is wrong with it.
KERNEL_BUG = re.compile(
    r"BUG:|BUG \S+ \(|kernel BUG at|WARNING:|Bad page|Bad rss-counter|page dumped because"
    r"|KASAN:|UBSAN:|Oops|[Gg]eneral protection|unable to handle|soft lockup|hard LOCKUP"
    r"|blocked for more than|detected stalls|self-detected stall"
    r"|possible circular|possible recursive|inconsistent lock state|invalid wait context"
    r"|suspicious RCU usage|held lock freed|trying to register non-static key"
    r"|turning off the locking correctness validator"
    r"|new suspected memory leaks|Kernel panic")

# EFLAGS as the kernel prints them. Bits 22 to 31 of a processor's are always zero (Intel
# SDM, volume 1, 3.4.3). QEMU 7.2 now and then takes for flags what else it has at hand
# ("3ff0bb42"); where bit 8 is set in that, the kernel meets a single step that was not asked for.
EFLAGS = re.compile(r"EFLAGS: ([0-9a-f]{8})\b")
NEVER_SET = 0xffc00000


class Program:
    """One program's run in a guest, as its output tells."""

    def __init__(self, name):
        self.name = name
        self.lines = []
        self.begin = time.monotonic()
        self.seconds = None     # once it has ended
        self.status = None
        self.timed_out = False
        self.passed, self.skipped, self.failed = 0, 0, []
        self.cut_short = False

    def judge(self):
        """Sets passed, skipped and failed (a list of reasons)."""
        self.passed, self.skipped, self.failed = 0, 0, []
        plan, bail, after_failure = None, None, False
        for line in self.lines:
            # What a test says of itself follows its result.
            if after_failure and line.startswith("#"):
                self.failed[-1] += "\n    " + line
                continue
            after_failure = line.startswith("not ok")
            # Indented lines are a subtest's; its own result follows.
            if found := re.match(r"1\.\.(\d+)(.*)", line):
                plan = int(found[1])
                if plan == 0:
                    self.skipped += 1
            elif line.startswith("Bail out!"):
                bail = line
            elif re.match(r"not ok\b", line):
                self.failed.append(line)
            elif re.match(r"ok\b", line):
                if re.search(r"# SKIP\b", line, re.IGNORECASE):
                    self.skipped += 1
                else:
                    self.passed += 1
        results = len(self.failed) + self.skipped + self.passed
        self.cut_short = self.status is None or self.timed_out or plan is None or results < plan
        if bail:
            self.failed.append(bail)
        if self.status is None or self.timed_out:
            self.failed.append("did not end")
        elif plan is None:
            self.failed.append("no plan (1..N)")
        elif plan and results != plan:
            self.failed.append(f"{results} results, {plan} planned")
        # 4: everything skipped.
        if self.status not in (0, 4, None) and not self.failed:
            self.failed.append(f"exit status {self.status}")

    def told(self):
        """Why it has failed, and where it was cut short."""
        return "\n".join([*self.failed, *(f"| {line}" for line in self.lines[-20:]
                                          if self.cut_short)])

    def figures(self):
        """Those of its lines that are JSON objects, as they are."""
        return [line for line in self.lines if line.startswith("{")]


class Report:
    """Reads the second serial port's lines as they come; shows them, if asked to."""

    def __init__(self, show):
        self.show = show
        self.programs = []
        self.kernel = None
        self.problems = []
        self.log = []
        self.finished = False
        self.in_log = self.log_complete = False
        self.running = None

    def line(self, line):
        said, mark, ours = line.partition("@zc ")
        if mark and said:
            # A program's last line need not be a whole one.
            self.line(said)
            line = mark + ours
        if mark:
            self.event(*line[4:].partition(" ")[::2])
        elif self.in_log:
            self.log.append(line)
        else:
            if self.running:
                self.running.lines.append(line)
            if self.show:
                print(f"    {line}", flush=True)

    def event(self, verb, rest):
        if verb == "begin":
            self.running = Program(rest)
            self.programs.append(self.running)
        elif verb == "end" and self.running:
            self.running.status = int(rest)
            self.running.seconds = time.monotonic() - self.running.begin
            self.running = None
        elif verb == "timeout" and self.running:
            self.running.timed_out = True
        elif verb == "kernel":
            self.kernel = rest
        elif verb == "failed:":
            self.problems.append(rest)
        elif verb == "log":
            self.in_log = True
        elif verb == "end":
            self.in_log, self.log_complete = False, True
        elif verb == "finished":
            self.finished = True


def kernel_bugs(log):
    """Indices of a kernel log's lines, from where the tests begin, that tell of a bug."""
    begin = next((i for i, line in enumerate(log) if "zc: tests begin" in line), 0)
    return [i for i in range(begin, len(log)) if KERNEL_BUG.search(log[i])]


def emulator_erred(log, bug):
    """Does log[bug] begin to tell of a debug exception that only an emulator makes?"""
    if "exc_debug_kernel" not in log[bug]:
        return False
    for line in log[bug:]:
        if any(int(flags, 16) & NEVER_SET for flags in EFLAGS.findall(line)):
            return True
        if "---[ end trace" in line:
            return False
    return False
