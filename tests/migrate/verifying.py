# SPDX-License-Identifier: BSD-3-Clause
"""zcm-run --verify: what a program has forgotten to register is found."""
import re

from testbed.migration import SAID, Job
from testbed.outcome import check
from tests.migrate.jobs import suite


def verified(stage, mode, *options, steps=250):
    """(exit status, what was said) of a program in MODE, which leaves no process behind."""
    launcher = [str(stage.library / "bin/zcm-run"), "--verify", *options]
    with Job(stage, "forgetful", mode, steps, ranks=2, launcher=launcher) as job:
        status = job.wait(240 * stage.patience)
        for host in ("h1", "h2") if status is not None else ():
            job.until_free(host)
        return status, job.said()


@suite.test()
def verify_finds_nothing_in_what_is_right(stage):
    for mode in ("right", "packed"):
        status, said = verified(stage, mode, "--verify-every", "20")
        check(status == 0 and said.count("all right") == 2, f"{mode}: status {status}",
              said[-SAID:])
        moves = re.search(r"verify: (\d+) moves", said)
        check(moves and int(moves[1]) > 2, "it has not moved", said[-SAID:])


@suite.test()
def verify_finds_what_was_forgotten(stage):
    """It names the array that goes wrong first, where, and in which rank."""
    status, said = verified(stage, "seed", "--verify-every", "5")
    check(status == 4, f"status {status}", said[-SAID:])
    found = re.search(r"safe point (\d+): rank (\d), which had moved at (\d+): 'field' differs "
                      r"between elements (\d+) and (\d+)", said)
    check(found, "it does not say what differs", said[-SAID:])
    point, rank, moved, first, last = map(int, found.groups())
    check(moved < point <= moved + 5 and rank == 0, f"{found[0]}", said[-SAID:])
    check(320 <= first < last < 640, f"{found[0]}", said[-SAID:])
    check("run 3" in said, "it has not looked whether runs are alike", said[-SAID:])


@suite.test()
def verify_finds_a_program_that_cannot_go_on(stage):
    status, said = verified(stage, "crash", "--verify-every", "5")
    check(status == 4 and "its exit status is" in said, f"status {status}", said[-SAID:])


@suite.test()
def verify_finds_a_forgotten_counter(stage):
    """A rank that resumes makes all its steps again: it never comes to its end with the others."""
    status, said = verified(stage, "step", "--verify-every", "20", steps=70)
    check(status == 4, f"status {status}", said[-SAID:])
    check(re.search(r"run 2 was ended: rank \d has come to safe point \d+, and ended after "
                    "70 without moves", said), "it does not say why", said[-SAID:])
    check(re.search(r"rank \d, which had moved at [246]\d, has come to safe point \d+", said),
          "it does not say where the ranks were", said[-SAID:])
    check("registered are: 'field', 'seed'" in said, "it does not say what is there", said[-SAID:])


@suite.test()
def verify_ends_what_hangs(stage):
    """Ranks that wait for messages that never come are ended, and it is said where they were."""
    status, said = verified(stage, "tag", "--verify-every", "20", "--verify-patience", "3")
    check(status == 4, f"status {status}", said[-SAID:])
    check(re.search(r"run 2 was ended: no rank has come to a safe point for [\d.]+ s", said),
          "it does not say why", said[-SAID:])
    check(re.search(r"rank 0, which had moved at 2\d, has come to safe point 2\d\b", said) and
          re.search(r"rank 1 has come to safe point 2\d\b", said),
          "it does not say where the ranks were", said[-SAID:])


@suite.test(tags={"long"})
def verify_says_where_nothing_can_be_said(stage):
    status, said = verified(stage, "time")
    check(status == 5 and "computes something else in each run" in said and "'field'" in said,
          f"status {status}", said[-SAID:])
    status, said = verified(stage, "right", "--verify-every", "1000")
    check(status == 5 and re.search("nothing was recorded|no rank has moved", said),
          f"status {status}", said[-SAID:])
    status, said = verified(stage, "none", steps=0)
    check(status == 5, f"status {status}", said[-SAID:])
