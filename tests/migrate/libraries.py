# SPDX-License-Identifier: BSD-3-Clause
"""Shared libraries of which a target host has another build than the rank that is to move there."""
import contextlib
import os
import pathlib
import subprocess

from testbed.migration import H1, H2, SAID, STOP, TOP, Job, build
from testbed.outcome import check, wait_for
from tests.migrate.jobs import (HERE, IDENTICAL, LAUNCHED, ends_well, heat, heat_of, moved,
                                mpich_only, refused, suite)

ALLOW = {"ZC_MIGRATE_OTHER_LIBRARIES": "allow"}
ANOTHER = r"host {} has another build of the library .*/libsmall.so: found {}, needed {}"
BY_BUILD_ID = "[0-9a-f]{40}"
BY_CHECKSUM = "crc32c-[0-9]+-[0-9]+"


class Small:
    """A library, of which ranks load the build that is in place when they start."""

    def __init__(self, stage, build_id="sha1"):
        self.place = pathlib.Path(stage.new_directory())
        self.path = self.place / "libsmall.so"
        self.build_id = build_id
        self.install(1)

    def install(self, number):
        """The build of this NUMBER takes the place of the one there is, as a package's upgrade does."""
        new = self.place / "new.so"
        subprocess.run(["cc", "-shared", "-fPIC", f"-DBUILD={number}", "-Wl,-soname,libsmall.so",
                        f"-Wl,--build-id={self.build_id}", "-o", str(new),
                        str(HERE / "small_library.c")], check=True)
        os.replace(new, self.path)


@contextlib.contextmanager
def running(stage, small, environment=None):
    """A job of four ranks, by turns on H1 and H2, whose program is linked with SMALL."""
    program = build(stage.prefix, [TOP / "examples/heat2d.c"], stage.library, small.place / "program",
                    stage.family, [str(small.path), f"-Wl,-rpath,{small.place}"])["heat2d"]
    with heat_of(stage, program, environment=environment) as job:
        job.until_running()
        yield job


def goes_on(job):
    job.until_running(safe_points=job.status()["safe_points"] + 10)


def refused_and_not_later(stage, small, identity):
    with running(stage, small) as job:
        before = job.status()["ranks"]
        small.install(2)
        for ranks, host in ((1, H1), ("0,2", H2)):
            refused(job, "move", "--rank", ranks, "--to", host,
                    says=ANOTHER.format(host, identity, identity))
            check(job.status()["ranks"] == before, "ranks are not where they were")
            goes_on(job)
        # The same build again: it is not the file that counts, but what is in it.
        small.install(1)
        moved(job, [1], H1)
        small.install(2)
        # A process that is a rank since it has moved.
        refused(job, "move", "--rank", 1, "--to", H2, says=ANOTHER.format(H2, identity, identity))
        goes_on(job)
        ends_well(stage, job, IDENTICAL)


@suite.test()
@mpich_only(LAUNCHED)
def another_library_there(stage):
    """It is refused by name while the ranks compute, and the job goes on."""
    refused_and_not_later(stage, Small(stage), BY_BUILD_ID)


@suite.test()
@mpich_only(LAUNCHED)
def another_library_without_build_id_there(stage):
    refused_and_not_later(stage, Small(stage, "none"), BY_CHECKSUM)


@suite.test()
@mpich_only(LAUNCHED)
def another_library_is_allowed(stage):
    """It is said once for each host, and a rank is compared with what its own process has."""
    small = Small(stage)
    with running(stage, small, ALLOW) as job:
        small.install(2)

        def said(host):
            return job.said().count(f"host {host} has another build of the library {small.path}")

        moved(job, [1], H1)
        moved(job, [3], H1)
        check((said(H1), said(H2)) == (1, 0), "it was not said once, of h1", job.said()[-SAID:])
        moved(job, [1], H2)     # it has build 2 by now; rank 0 has build 1
        check((said(H1), said(H2)) == (1, 0), "said of a rank with this build", job.said()[-SAID:])
        moved(job, [2], H2)
        check((said(H1), said(H2)) == (1, 1), "it was not said of h2", job.said()[-SAID:])
        ends_well(stage, job, IDENTICAL)


@suite.test()
@mpich_only(LAUNCHED)
def library_that_only_one_side_has(stage):
    """What is loaded into some processes only is no reason to refuse."""
    small = Small(stage)
    aside = small.place / "aside.so"
    with heat(stage, environment={"LD_PRELOAD": str(small.path)}) as job:
        job.until_running()
        os.rename(small.path, aside)
        moved(job, [1], H1)     # the loader says that it is not there
        os.rename(aside, small.path)
        moved(job, [1], H2)
        small.install(2)
        refused(job, "move", "--rank", 1, "--to", H1,
                says=ANOTHER.format(H1, BY_BUILD_ID, BY_BUILD_ID))
        ends_well(stage, job, IDENTICAL)


@suite.test()
@mpich_only(LAUNCHED)
def another_plugin_there(stage):
    """A rank has opened it since it is one: rank 0 has not heard of it, and its leaver knows."""
    small = Small(stage)
    aside = small.place / "aside.so"
    os.rename(small.path, aside)
    with Job(stage, "plugin", small.path, STOP) as job:
        job.until_running()
        os.rename(aside, small.path)
        wait_for("all ranks open it", lambda: job.said().count("opened it later") == 4, 20)
        small.install(2)
        before = job.status()["ranks"]
        refused(job, "move", "--rank", 1, "--to", H1,
                says="rank 1: " + ANOTHER.format(H1, BY_BUILD_ID, BY_BUILD_ID))
        check(job.status()["ranks"] == before, "ranks are not where they were")
        goes_on(job)
        # The successor has not opened it: there is nothing to compare.
        small.path.unlink()
        moved(job, [1], H1)
        small.install(1)
        moved(job, [2], H2)
        ends_well(stage, job, "all right")
