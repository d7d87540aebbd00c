# SPDX-License-Identifier: BSD-3-Clause
"""Processes of two builds of one program: at the start of a job, and where one goes on with a saved state."""
import pathlib
import subprocess

from testbed.migration import SAID, TOP, build
from testbed.outcome import Skip, check
from tests.migrate.checkpoints import a_copy
from tests.migrate.jobs import (IDENTICAL, ends_well, ends_with_error, finishes, heat_of, restart,
                                saved, suite)

FIRST, SECOND = "1111111111", "2222222222"


def program_of(stage, build_id):
    """The program in a folder of its own."""
    return build(stage.prefix, [TOP / "examples/heat2d.c"], stage.library,
                 pathlib.Path(stage.new_directory()), stage.family,
                 [f"-Wl,--build-id=0x{build_id}"])["heat2d"]


def mixed(stage):
    """What starts the second build in the place of the first where RANK_1 says so."""
    first, second = program_of(stage, FIRST), program_of(stage, SECOND)
    script = pathlib.Path(stage.new_directory()) / "mixed"
    script.write_text(
        "#!/bin/sh\n"
        f"[ \"${{PMI_RANK:-$OMPI_COMM_WORLD_RANK}}\" = 1 ] || exec {first} \"$@\"\n"
        f"exec unshare -m sh -c 'mount --bind {second} {first} && exec {first} \"$@\"' sh \"$@\"\n",
        encoding="ascii")
    script.chmod(0o755)
    if subprocess.run(["unshare", "-m", "mount", "--bind", second, first], check=False).returncode != 0:
        raise Skip("unshare(1) and mount(8) cannot lay a file over another")
    return first, str(script)


@suite.test(tags={"openmpi"})
def another_build_at_the_start(stage):
    """The job does not start: ranks could not take each other's place."""
    first, script = mixed(stage)
    with heat_of(stage, script) as job:
        ends_with_error(job, rf"rank 1 on host \S+ has another build of {first} than rank 0 on host "
                        rf"\S+: {SECOND}, not {FIRST}", 60)
        check(IDENTICAL not in job.said(), "it has computed all the same", job.said()[-SAID:])
    with heat_of(stage, script, environment={"ZC_MIGRATE_PREFLIGHT": "none"}) as job:
        job.until_running()
        ends_well(stage, job, IDENTICAL)


@suite.test(tags={"openmpi"})
def checkpoint_of_another_build(stage):
    """It may be meant: the program was mended. So it is said, once, and the job goes on."""
    with heat_of(stage, program_of(stage, FIRST)) as job:
        job.until_running()
        safe_point = saved(job)
        kept = a_copy(stage, job)
    words = f"is of another build of the program ({FIRST}, and this is {SECOND})"
    for build_id, times in ((FIRST, 0), (SECOND, 1)):
        with heat_of(stage, program_of(stage, build_id), iterations=safe_point + 200,
                     launcher=restart(stage, kept)) as job:
            finishes(stage, job, IDENTICAL, timeout=120)
            check(job.said().count(words) == times, f"not said {times} times", job.said()[-SAID:])
