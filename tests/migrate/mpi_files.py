# SPDX-License-Identifier: BSD-3-Clause
"""Programs with a file of MPI-IO: it is closed for a move, or the move is refused."""
import pathlib

from testbed.migration import H1, H2, STOP, Job
from testbed.outcome import Skip, check, wait_for
from tests.migrate.jobs import HERE, ends_well, hosts_of, moved, refused, suite
from tests.migrate.languages import SOURCES, build

WRITTEN = "written 600 rows"


def run(stage, mode, path, **how):
    if stage.family == "mpich" and not (pathlib.Path(stage.prefix) / "include/mpio.h").exists():
        raise Skip("this MPICH was built without MPI-IO")
    return Job(stage, "mpi_files", mode, path, STOP, **how)


def go(job, suffix=".go"):
    pathlib.Path(job.stop_file + suffix).touch()


def moves_on(job, ranks, host):
    """And comes to several safe points after it."""
    moved(job, ranks, host)
    job.until_running(safe_points=job.status()["safe_points"] + 20)


def is_full(stage, job):
    wait_for("all rows are written", lambda: WRITTEN in job.said(), 120 * stage.patience)


def same_content(path, other):
    one, two = (pathlib.Path(each).read_bytes() for each in (path, other))
    check(len(one) > 1 << 20, f"{path} has {len(one)} bytes")
    check(one == two, f"{path} is not as the file of the job that did not move")


@suite.test(tags={"openmpi"})
def file_is_closed_for_a_move(stage):
    """While it is written and while it is read, by ranks on both hosts; no byte of it is another."""
    place = stage.new_directory()
    with run(stage, "closed", f"{place}/still") as job:
        job.until_running()
        go(job, ".on")
        is_full(stage, job)
        ends_well(stage, job, "all right", timeout=120)
    with run(stage, "closed", f"{place}/moved") as job:
        job.until_running(safe_points=20)
        moved(job, [1], H1)
        check(WRITTEN not in job.said(), "it was full before a rank had moved")
        go(job, ".on")
        moves_on(job, [0, 3], H2)
        is_full(stage, job)
        moves_on(job, [2], H2)
        check(hosts_of(job) == ["h2", "h1", "h2", "h2"], f"hosts {hosts_of(job)}")
        ends_well(stage, job, "all right", timeout=120)
    same_content(f"{place}/moved", f"{place}/still")


@suite.test(tags={"openmpi"})
def open_files_are_refused(stage):
    """By name, with calls that are under way, too; the job goes on, and moves when they are closed."""
    for mode, says in (("open", r"rank \d has 1 file open"), ("split", r"rank \d has 1 file open"),
                       ("iwrite", r"rank \d has 1 file open|1 live request .first: MPI_File_iwrite_at")):
        with run(stage, mode, stage.new_directory() + "/data") as job:
            job.until_running()
            refused(job, "move", "--rank", 2, "--to", H2, says=says)
            go(job)
            moves_on(job, [1], H1)
            moves_on(job, [0], H2)
            is_full(stage, job)
            ends_well(stage, job, "all right", timeout=120)


@suite.test()
def file_in_the_initialisation_is_refused(stage):
    """A successor cannot be answered what was read: the move is refused, and says which call it is."""
    place = stage.new_directory() + "/input"
    pathlib.Path(place).write_bytes(bytes(16))
    with run(stage, "reads", place) as job:
        job.until_running()
        refused(job, "move", "--rank", 1, "--to", H1,
                says=r"MPI_File_open\(\) before the first safe point of a resumed process")
        ends_well(stage, job, "all right")


def fortran(stage, *flags):
    program = build(stage, HERE / "mpi_files.F90", SOURCES / "zcm.f90", flags=flags)
    with Job(stage, program, stage.new_directory() + "/data", STOP) as job:
        job.until_running()
        moves_on(job, [1], H1)
        moves_on(job, [0, 2], H2)
        ends_well(stage, job, "all right", timeout=120)


@suite.test(tags={"openmpi"})
def fortran_file_is_closed_for_a_move(stage):
    """The binding's calls for files are given the program's communicators, groups and requests."""
    fortran(stage)


@suite.test(tags={"openmpi"})
def fortran_2008_file_is_closed_for_a_move(stage):
    fortran(stage, "-DWITH_F08")
