# SPDX-License-Identifier: BSD-3-Clause
"""Jobs on the site's two hosts whose ranks are below zc-hold, and move."""
import functools

from testbed import mpi
from testbed.suite import Note
from tests.detach.suite import find_criu
from tests.holder import programs_suite
from tests.holder.hosts import HeldMpi
from tests.holder.spawn_suite import Worlds
from tests.programs.suite import Library

MOVES = [(1, 1), (0, 2), (1, 2), (0, 1)]


def launcher(site, before):
    """BEFORE: what makes a command of zc-hold's words."""
    def launch(words):
        return site.command("h1", before(words))
    return launch


@functools.cache
def library(site):
    return Library(site.setup)


def ring(site, before):
    """Every rank moves to the other node and back, and its output comes."""
    site.setup.criu = find_criu()
    program = mpi.build(site.setup.prefix, [programs_suite.HERE / "ring.c"], site.setup.build_dir)["ring"]
    with HeldMpi(site.setup, [program], ranks=2, launch=launcher(site, before),
                 environment=site.environment) as job:
        for rank, host in MOVES:
            job.move(host, rank)
        rounds = job.finish()
        return Note(f"{job.means}; {rounds} rounds", rounds=rounds)


def worlds(site, before):
    """What ranks spawn is held, too: each of both worlds moves to the other node."""
    site.setup.criu = find_criu()
    with Worlds(site.setup, launch=launcher(site, before), environment=site.environment) as job:
        for world in job.spawn():
            for one in world.values():
                job.moves(one, 3 - int(one["host"].removeprefix("h")))
        return job.finish()


def scalapack(site, before):
    """A tester of ScaLAPACK: residuals equal to those of a run without a move."""
    site.setup.criu = find_criu()
    program = programs_suite.scalapack("llt", 3, MOVES[:2])
    return program(library(site), launch=launcher(site, before), environment=site.environment)
