# SPDX-License-Identifier: BSD-3-Clause
"""How a test ends that does not end well, and the conditions it states."""
import time

EXIT_FAILED, EXIT_USAGE, EXIT_SKIPPED = 1, 2, 77


class Error(Exception):
    """The set-up is wrong; the text tells the user what. It ends the run (exit status 2)."""


class Skip(Exception):
    """The test cannot run here; the text tells why."""


class Fail(Exception):
    """The test has failed; the text tells what is wrong, OUTPUT is shown below it."""

    def __init__(self, text, output=""):
        super().__init__(text)
        self.output = output


class KnownFailure(Fail):
    """The test has failed as it is known to: counted apart, and no failure of the run."""


def check(condition, text="", output=""):
    """Fail with TEXT unless CONDITION."""
    if not condition:
        raise Fail(text, output)


def wait_for(what, condition, timeout, every=0.1):
    """Seconds until CONDITION() held, looked at EVERY so many; Fail, naming WHAT, after TIMEOUT."""
    begin = time.monotonic()
    while not condition():
        if time.monotonic() - begin > timeout:
            raise Fail(f"not within {timeout:g} s: {what}")
        time.sleep(every)
    return time.monotonic() - begin
