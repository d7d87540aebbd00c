# SPDX-License-Identifier: BSD-3-Clause
"""Two programs as they were and as they are ported (docs/migration.md): their results are the same.

They make a given number of steps. paced.c is linked with them, so that these take long enough.
"""
import contextlib
import pathlib
import re
import subprocess

from testbed import mpi
from testbed.migration import H1, H2, SAID, TOP, Job
from testbed.outcome import check
from tests.migrate.jobs import (HERE, finishes, hosts_of, moved, restart, saved, suite)

EXAMPLES = TOP / "examples"
PARTICLES = (300, 400)      # they reach the last of four ranks after some 280 steps
SPECTRUM = (64, 400)


def made(stage, program, *, paced=True, leave_out=None):
    """PROGRAM, made by the Makefile of the examples; without the only line that LEAVE_OUT is in."""
    place = pathlib.Path(stage.new_directory())
    if leave_out:
        lines = (EXAMPLES / f"{program}.c").read_text(encoding="utf-8").splitlines(keepends=True)
        kept = [line for line in lines if leave_out not in line]
        check(len(kept) == len(lines) - 1, f"'{leave_out}' is not in one line of {program}.c")
        (place / f"{program}.c").write_text("".join(kept), encoding="utf-8")
    # Named outright: MPICH's folders come first, and may hold an older one (testbed.migration).
    header = TOP / "migrate/include/zcm/zcm.h"
    library = stage.library / f"lib/libzcm-{stage.family}.so"
    libraries = [HERE / "paced.c"] * paced + ["-Wl,--no-as-needed", library]
    done = subprocess.run(
        ["make", "-f", EXAMPLES / "Makefile", f"VPATH={EXAMPLES}",
         f"MPICC={mpi.find_tool(stage.prefix, 'mpicc', stage.family)}",
         f"ZCM_CFLAGS=-include {header} -I{TOP}/migrate/include",
         f"ZCM_LIBS={' '.join(map(str, libraries))}", program], cwd=place, capture_output=True, text=True, check=False)
    check(done.returncode == 0, f"cannot make {program}", done.stderr[-SAID:])
    unexpected = "defined but not used" if leave_out else None
    check("warning" not in done.stderr or unexpected and unexpected in done.stderr,
          f"warnings of {program}", done.stderr[-SAID:])
    return str(place / program)


def result(said):
    found = re.findall(r"^.* after \d+ steps, checksum [0-9a-f]{16}$", said, re.MULTILINE)
    check(len(found) == 1, f"{len(found)} results instead of one", said[-SAID:])
    return found[0]


def result_of_plain(stage, program, arguments):
    """What PROGRAM, which knows nothing of libzcm, prints on the same hosts."""
    with Job(stage, made(stage, program), *arguments, migrate=False) as job:
        finishes(stage, job, "checksum")
        return result(job.said())


@contextlib.contextmanager
def running(stage, program, arguments, **how):
    """A job of PROGRAM, and the function that lets it make the rest of its steps unpaced."""
    until = pathlib.Path(stage.new_directory()) / "until"
    with Job(stage, program, *arguments, environment={"ZC_PACED_UNTIL": str(until)}, **how) as job:
        job.until_running()
        yield job, until.touch


def is_the_same_wherever_it_goes(stage, name, arguments, first=lambda job: None):
    """NAME_zcm ends with the result of NAME: moved in all ways, and from a checkpoint.

    FIRST makes moves of its own, of the job that has just begun.
    """
    plain = result_of_plain(stage, name, arguments)
    program = made(stage, f"{name}_zcm")
    with running(stage, program, arguments) as (job, go_on):
        first(job)
        moved(job, [1], H1)
        moved(job, [0], H2)
        moved(job, [2], H2, via="disk")
        saved(job)
        place = job.directory + "/saved"
        moved(job, [0, 2], H1)
        on_h1 = [rank for rank, host in enumerate(hosts_of(job)) if host == "h1"]
        check(len(on_h1) > 2, f"hosts {hosts_of(job)}")
        moved(job, on_h1, H2)
        check(hosts_of(job) == ["h2"] * 4, f"hosts {hosts_of(job)}")
        steps = job.status()["safe_points"]
        go_on()
        finishes(stage, job, "checksum")
        check(result(job.said()) == plain, f"not '{plain}'", job.said()[-SAID:])
    with running(stage, program, arguments, launcher=restart(stage, place)) as (job, go_on):
        moved(job, [3], H1)
        moved(job, [0], H2)
        go_on()
        finishes(stage, job, "checksum")
        check(result(job.said()) == plain, f"not '{plain}', from the checkpoint",
              job.said()[-SAID:])
    return f"moved in the first {steps} of {arguments[-1]} steps"


@suite.test()
def particles_example(stage):
    """The number of elements changes with each step, on every rank, and is 0 at times."""
    def move_none_and_many(job):
        # Until step 180 all particles are on ranks 0 and 1. One has 40 bytes, and each rank has the
        # record of its initialisation beside them.
        for ranks, host, some in (([3], H1, False), ([0, 1], H2, True)):
            answer = moved(job, ranks, host)
            check(answer["safe_point"] < 180, "too late to know", str(answer))
            size = answer["bytes"]["data"]
            check(size > 5000 if some else size < 1000, f"ranks {ranks} have {size} bytes",
                  str(answer))
        moved(job, [0], H1)
    return is_the_same_wherever_it_goes(stage, "particles", PARTICLES, move_none_and_many)


@suite.test()
def spectrum_example(stage):
    """A library that uses MPI_COMM_WORLD inside is not changed."""
    return is_the_same_wherever_it_goes(stage, "spectrum", SPECTRUM)


def verified(stage, program, *arguments):
    """(exit status, what was said) of PROGRAM with a move every 20 steps, and with none."""
    launcher = [str(stage.library / "bin/zcm-run"), "--verify", "--verify-every", "20"]
    with Job(stage, program, *arguments, launcher=launcher) as job:
        return job.wait(240 * stage.patience), job.said()


@suite.test(tags={"long"})
def verify_finds_nothing_in_the_examples(stage):
    for name, size in (("particles_zcm", 200), ("spectrum_zcm", 64)):
        status, said = verified(stage, made(stage, name, paced=False), size, 200)
        moves = re.search(r"verify: (\d+) moves", said)
        check(status == 0 and moves and int(moves[1]) > 4, f"{name}: status {status}",
              said[-SAID:])


@suite.test()
def verify_finds_what_is_left_out_of_an_example(stage):
    """Without zcm_on_save() the particles that came later are lost in a move."""
    program = made(stage, "particles_zcm", paced=False, leave_out="zcm_on_save(")
    status, said = verified(stage, program, 200, 200)
    check(status == 4 and "'particles' differs" in said, f"status {status}", said[-SAID:])
