# SPDX-License-Identifier: BSD-3-Clause
"""Messages between two ranks, without libzcm and with it: bench/migrate/pingpong.c in its ways.

A case is 'HOW-PLACE': pingpong, both (ways at once), burst (64 that may travel together) and vcis (two
threads, each with a communicator), on one host or between two. How it is built and run, by turns:

  plain   without libzcm
  off     with libzcm, ZC_MIGRATE unset
  on      ready to move
  moved   ready to move, and one of the two has moved so many times before it is measured
"""
import re

from bench.spread import percentile
from testbed.migration import H1, H2, SAID, STOP, Job
from testbed.outcome import Fail

PLACES = {"host": (H1,), "hosts": (H1, H2)}
BUILDS = {"plain": ("_plain", False), "off": ("", False), "on": ("", True), "moved": ("", True)}
# Bytes of a message, sets, turns of a set. A set is shorter than a turn of the scheduler, so that most
# are not interrupted, but where messages are large.
CASES = {("pingpong", 8): (400, 200), ("pingpong", 1 << 16): (200, 50), ("both", 1 << 20): (60, 10),
         ("burst", 8): (400, 20), ("vcis", 8): (200, 100)}
LIMIT_S = 300


def turns(moves):
    """Where rank 1 goes, move after move; an even number of them ends where it began."""
    return [H1 if turn % 2 else H2 for turn in range(moves)]


def measure(stage, place, how, size, build, moves):
    """ns of a message; a tenth of the sets is faster."""
    built, migrate = BUILDS[build]
    words = [how, size, *CASES[how, size]] + ([STOP] if build == "moved" else [])
    environment = {"ZC_MIGRATE_HOSTS": "any", **({"MPIR_CVAR_CH4_NUM_VCIS": "2"} if how == "vcis" else {})}
    with Job(stage, "pingpong" + built, *words, ranks=2, hosts=PLACES[place], migrate=migrate,
             environment=environment) as job:
        if build == "moved":
            job.until_running()
            # Between two hosts rank 1 is on the second at first.
            for host in turns(moves) if place == "host" else reversed(turns(moves)):
                code, _, said = job.ask("move", "--rank", 1, "--to", host)
                if code != 0:
                    raise Fail(f"{how}, {place}: {said}", job.said()[-SAID:])
            job.stop()
        if job.wait(LIMIT_S) != 0:
            raise Fail(f"{how}, {place}, {build} has failed", job.said()[-SAID:])
        sets = [float(ns) for ns in re.findall(r"set ([\d.]+) ns", job.said())]
    if len(sets) != CASES[how, size][0]:
        raise Fail(f"{how}, {place}, {build}: {len(sets)} sets", job.said()[-SAID:])
    return percentile(sets, 0.1)
