# SPDX-License-Identifier: BSD-3-Clause
"""Programs in Fortran, by the module zcm, and in C++ move."""
import pathlib
import re
import subprocess

from testbed import mpi
from testbed.migration import H1, H2, SAID, STOP, TOP, Job
from testbed.outcome import Skip, check
from tests.migrate.jobs import (HERE, IDENTICAL, ends_well, finishes, hosts_of, moved, restart,
                                saved, suite)

SOURCES = TOP / "migrate/fortran"


def build(stage, program, *modules, flags=()):
    """PROGRAM, a source, built with these MODULES as a reader of zcm(3) would build it, and FLAGS."""
    name, place = "mpifort", pathlib.Path(stage.new_directory())
    options = [f"-J{place}"]
    if program.suffix == ".cpp":
        name, options = "mpicxx", ["-std=c++17", f"-I{TOP}/migrate/include"]
    try:
        compiler = mpi.find_tool(stage.prefix, name, stage.family)
    except mpi.Error as missing:
        raise Skip(str(missing)) from None
    words = [compiler, "-O2", "-Wall", *flags, *options, "-o", str(place / program.stem),
             *map(str, modules), str(program), "-Wl,--no-as-needed",
             str(stage.library / f"lib/libzcm-{stage.family}.so")]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    check(done.returncode == 0, f"cannot build {program.name}", done.stderr[-SAID:])
    # Those of the compilers, in Fortran and C++: the linker warns of the stack that internal procedures need.
    warnings = [line for line in done.stderr.splitlines()
                if "warning:" in line.lower() and not line.startswith("/usr/bin/ld")]
    check(not warnings, f"warnings of {program.name}", done.stderr[-SAID:])
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


def lines_are_whole(job, ranks):
    """What each rank has written, to a file of its own and to standard output, is there once."""
    for rank in range(ranks):
        path = pathlib.Path(f"{job.stop_file}.{rank}")
        lines = path.read_text(encoding="ascii").split()
        check(len(lines) > 10, f"rank {rank} has written nothing")
        wanted = [*map(str, range(len(lines) - 1)), "end"]
        wrong = next((n for n, pair in enumerate(zip(lines, wanted)) if pair[0] != pair[1]), 0)
        check(lines == wanted, f"rank {rank}: line {wrong} is not as it should be",
              "\n".join(lines[max(0, wrong - 5):][:10]))
        # So few that none is cut where a buffer is full: mpiexec could put another's there. It passes
        # on what it has of one host before what it has of another.
        printed = sorted(map(int, re.findall(rf"^line {rank} (\d+)$", job.said(), re.MULTILINE)))
        check(printed == list(range(0, len(lines) - 1, 64)),
              f"rank {rank} has written {len(lines) - 1} lines, and printed {printed}")


def each_line_once(stage, program):
    """PROGRAM moves five times, by way of the disk, too; what was in buffers then is not lost."""
    with Job(stage, program, STOP) as job:
        job.until_running()
        for rank, host, via in ((1, H1, "memory"), (0, H2, "memory"), (1, H2, "disk"),
                                (0, H1, "memory"), (2, H2, "memory")):
            moved(job, [rank], host, via=via)
        check(hosts_of(job) == ["h1", "h2", "h2", "h2"], f"hosts {hosts_of(job)}")
        job.stop()
        finishes(stage, job, "all right")
        lines_are_whole(job, 4)


@suite.test(tags={"openmpi"})
def fortran_units(stage):
    """With mpif.h: lines in the buffers of units that leave appear once."""
    each_line_once(stage, build(stage, HERE / "units.f90", SOURCES / "zcm.f90"))


@suite.test(tags={"openmpi"})
def cpp_streams(stage):
    """C++: a vector is the state; lines in the buffers of streams that leave appear once."""
    each_line_once(stage, build(stage, HERE / "streams.cpp"))
