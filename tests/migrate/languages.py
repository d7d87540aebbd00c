# SPDX-License-Identifier: BSD-3-Clause
"""Fortran programs move, by the module zcm."""
import pathlib
import subprocess

from testbed import mpi
from testbed.migration import H1, H2, SAID, STOP, TOP, Job
from testbed.outcome import Skip, check
from tests.migrate.jobs import (HERE, IDENTICAL, ends_well, hosts_of, moved, restart, saved,
                                suite)

SOURCES = TOP / "migrate/fortran"


def build(stage, program, *modules, flags=()):
    """PROGRAM, a source, built with these MODULES as a reader of zcm(3) would build it, and FLAGS."""
    try:
        compiler = mpi.find_tool(stage.prefix, "mpifort", stage.family)
    except mpi.Error as missing:
        raise Skip(str(missing)) from None
    place = pathlib.Path(stage.new_directory())
    words = [compiler, "-O2", "-Wall", *flags, f"-J{place}", "-o", str(place / program.stem),
             *map(str, modules), str(program), "-Wl,--no-as-needed",
             str(stage.library / f"lib/libzcm-{stage.family}.so")]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    check(done.returncode == 0, f"cannot build {program.name}", done.stderr[-SAID:])
    check("Warning" not in done.stderr, f"warnings of {program.name}", done.stderr[-SAID:])
    return str(place / program.stem)


@suite.test(tags={"openmpi"})
def fortran_example(stage):
    program = build(stage, TOP / "examples/heat1d.f90", SOURCES / "zcm.f90")
    with Job(stage, program, 100000000, STOP) as job:
        job.until_running()
        moved(job, [1], H1)
        moved(job, [0], H2)
        check(hosts_of(job) == ["h2", "h1", "h1", "h2"], f"hosts {hosts_of(job)}")
        saved(job)
        place = job.directory + "/saved"
        ends_well(stage, job, IDENTICAL)
    with Job(stage, program, 100000000, STOP, launcher=restart(stage, place)) as job:
        job.until_running()
        moved(job, [3], H1)
        ends_well(stage, job, IDENTICAL)


@suite.test(tags={"openmpi"})
def fortran_data_of_all_types(stage):
    """With mpi_f08: all intrinsic types, a derived one, and functions of the program."""
    program = build(stage, HERE / "state_f08.f90", SOURCES / "zcm.f90", SOURCES / "zcm_f08.f90")
    with Job(stage, program, STOP) as job:
        job.until_running()
        moved(job, [1], H1)
        moved(job, [2], H2)
        moved(job, [0], H2, via="disk")
        saved(job)
        place = job.directory + "/saved"
        ends_well(stage, job, "all right")
    with Job(stage, program, STOP, launcher=restart(stage, place)) as job:
        job.until_running()
        ends_well(stage, job, "all right")


def attributes(stage, *flags):
    program = build(stage, HERE / "attributes.F90", SOURCES / "zcm.f90", flags=flags)
    with Job(stage, program, STOP) as job:
        job.until_running()
        moved(job, [1], H1)
        moved(job, [0], H2)
        ends_well(stage, job, "all right")


@suite.test(tags={"openmpi"})
def fortran_attributes(stage):
    """Functions of attributes and errors are called as those of Fortran, with the program's handles."""
    attributes(stage)


@suite.test(tags={"openmpi"})
def fortran_2008_attributes(stage):
    """The same with mpi_f08, whose handles are of types of their own."""
    attributes(stage, "-DWITH_F08")


@suite.test(tags={"openmpi"})
def fortran_attributes_of_mpi_1(stage):
    """The calls that MPI-2 has replaced; Open MPI 4 has those of handlers no more."""
    handlers = ["-DWITH_HANDLERS_OF_MPI_1"] if stage.family == "mpich" else []
    attributes(stage, "-DWITH_MPI_1", *handlers)
