# SPDX-License-Identifier: BSD-3-Clause
"""How a run ended in which one call has failed: well, with an error, or badly."""
import re
import signal

# Words that name a cause. (That a connection is lost is none: its other end may have said nothing.)
CAUSE = re.compile(
    r"[Oo]ut of memory|[Cc]annot allocate|could not allocate|[Uu]nable to allocate|"
    r"Insufficient memory|failure occurred while allocating|"
    r"UCX failed|Input/output error|"
    r"landing memory could not be set up|landing thread could not be started")
# MPI's: program.c's words for an error that is returned, and what is said of one that is fatal.
RETURNED = re.compile(r"^rank \d+: MPI_.* returned an error: .*", re.MULTILINE)
FATAL = re.compile(r"Fatal error in internal_\w+: .*")
WRONG = re.compile(r"^rank \d+: (?:program\.c|check\.h):\d+: .*", re.MULTILINE)
ASSERTION = re.compile(r"^(?:.*: )?[Aa]ssertion .*failed.*|Assertion failed in file.*",
                       re.MULTILINE)
# What Hydra puts before each line, and the worlds it counts: ours, and the one that is spawned.
PREPEND = "[%g:%r] "
PREPENDED = re.compile(r"^\[(\d+):(\d+)\] (.*)$")
WORLDS = ("", "child-")
SIGNAL = re.compile(r"\(signal (\d+)\)|[Cc]aught signal (\d+)|KILLED BY SIGNAL: (\d+)")
CLEANING_UP = (signal.SIGKILL, signal.SIGTERM)
# While MPI is initialized the netmod says why, and ends the process by a signal: zc_memory.c.
DELIBERATE = re.compile(r"out of memory: MPI asked for \d+ bytes to initialize itself")

BAD = ("hang", "crash", "asserted", "wrong", "no cause")
AGAIN = ("no cause", "not reached")  # what a run is repeated for


def judge(result, reached, said, own):
    if result.timed_out:
        return "hang", result.reason()
    wrong = WRONG.search(said)
    if wrong:
        return "wrong", wrong[0]
    assertion = ASSERTION.search(said)
    if assertion:
        return "asserted", assertion[0]
    signals = {int(next(filter(None, found))) for found in SIGNAL.findall(said)}
    signals -= {*CLEANING_UP, signal.SIGABRT if DELIBERATE.search(own) else None}
    if result.status < 0:  # mpiexec itself
        signals.add(-result.status)
    if signals:
        return "crash", signal.strsignal(min(signals))
    returned = RETURNED.search(said)
    if not reached:
        return (("not reached", "") if result.ok else
                ("no cause", f"ended by itself: {result.reason()}"))
    if result.ok:
        return (("well", "") if not returned else
                ("repeated", "an error was returned, and all went well the second time"))
    if returned:
        return "returned", returned[0]
    cause = FATAL.search(said) or CAUSE.search(own)
    if cause:
        return "ended", cause[0]
    other = CAUSE.search(said)
    return "no cause", result.reason() + (f"; another says: {other[0]}" if other else "")


def words(result, who):
    """(all that was said, what WHO said), without what Hydra puts before each line."""
    said, own = [], []
    for line in (result.out + result.err).splitlines():
        found = PREPENDED.match(line)
        said.append(found[3] if found else line)
        if found and int(found[1]) < len(WORLDS) and WORLDS[int(found[1])] + found[2] == who:
            own.append(found[3])
    return "\n".join(said), "\n".join(own)
