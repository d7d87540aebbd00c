# SPDX-License-Identifier: BSD-3-Clause
"""What programs do when their state is taken, and what becomes of what they have written."""
import contextlib
import pathlib
import re
import subprocess
import time

from testbed.beside import Beside
from testbed.migration import H1, H2, SAID, STOP, Job
from testbed.outcome import check, wait_for
from tests.migrate.jobs import (HERE, IDENTICAL, ends_well, ends_with_error,
                                finishes, heat, hosts_of, moved, refused, restart, saved, suite)


@suite.test(tags={"openmpi"})
def packed_when_saved(stage):
    """Lists whose length changes are packed when they are saved, and go on in the successors."""
    with Job(stage, "saving", "particles", STOP) as job:
        job.until_running()
        for rank, host in ((1, H1), (0, H2), (1, H2)):
            moved(job, [rank], host)
        moved(job, [2], H2, via="disk")
        saved(job)
        moved(job, [3], H1)
        place = job.directory + "/saved"
        ends_well(stage, job, "all right")
        check(len(re.findall(r"rank \d goes on with \d+ particles", job.said())) == 5,
              "not resumed as often as moved", job.said()[-SAID:])
        with Job(stage, "saving", "particles", STOP, launcher=restart(stage, place)) as again:
            again.until_running()
            ends_well(stage, again, "all right")
            check(len(re.findall(r"goes on with \d+ particles", again.said())) == 4,
                  "not all ranks have gone on", again.said()[-SAID:])


@suite.test()
def a_rank_that_refuses_to_be_saved(stage):
    with Job(stage, "saving", "unwilling", STOP) as job:
        job.until_running()
        why = r"rank 2: the program's function of zcm_on_save\(\) has returned 7"
        refused(job, "move", "--rank", "2", "--to", H2, says=why)
        refused(job, "move", "--rank", "1,2", "--to", H2, says=why)
        refused(job, "checkpoint", says=why)
        moved(job, [1], H1)         # it is not asked: nothing of it is saved
        pathlib.Path(job.stop_file + ".willing").touch()
        moved(job, [2], H2)
        saved(job)
        ends_well(stage, job, "all right")


@contextlib.contextmanager
def lingers(job, where, rank):
    """The function WHERE of RANK does not return."""
    sign = pathlib.Path(f"{job.stop_file}.{where}.{rank}")
    sign.touch()
    try:
        yield
    finally:
        sign.unlink()


NAMES = {"save": r"the program's function of zcm_on_save\(\)",
         "release": r"the program's function 'release' of zcm_on_rebuild\(\)",
         "rebuild": r"the program's function 'rebuild' of zcm_on_rebuild\(\)"}
# The time limits: a function's is the shorter one, so that it is the one that is named.
LIMITS = {"ZC_MIGRATE_CALLBACK": "2", "ZC_MIGRATE_PATIENCE": "8"}


def given_up(job, where, rank, *words, late):
    """WORDS are refused as RANK is in WHERE, all others go on meanwhile, and it is counted."""
    with lingers(job, where, rank):
        refused(job, *words, says=f"{NAMES[where]} has not returned in rank {rank}")
        if rank != 0:
            status = job.status()
            check(status["late_functions"] == late, f"not counted: {status}")
            job.until_running(safe_points=status["safe_points"] + 100)
        wait_for("it is printed", lambda: f"rank {rank}: " + NAMES[where].replace("\\", "") +
                 " has not returned for 2 s (ZC_MIGRATE_CALLBACK)" in job.said(), 10)
    wait_for("it is counted", lambda: job.status()["late_functions"] == late, 10)


@suite.test(tags={"openmpi"})
def a_function_that_does_not_return(stage):
    """The request is refused and names it, the others go on; when it returns, ranks move again."""
    with Job(stage, "saving", "lingering", STOP, environment=LIMITS) as job:
        before = job.until_running()["ranks"]
        given_up(job, "save", 1, "move", "--rank", "1", "--to", H1, late=1)
        given_up(job, "release", 2, "move", "--rank", "1", "--to", H1, late=2)
        given_up(job, "save", 3, "checkpoint", late=3)
        given_up(job, "save", 0, "checkpoint", late=4)
        given_up(job, "save", 1, "move", "--rank", "0,1", "--to", H1, late=5)
        check(job.status()["ranks"] == before, "ranks are not where they were")
        moved(job, [1], H1)
        moved(job, [0], H2)
        check(job.status()["late_functions"] == 5, "the count has not moved with rank 0")
        saved(job)
        said = len(re.findall(f"rank 1: {NAMES['save']} has not returned for", job.said()))
        check(said == 1, f"printed {said} times", job.said()[-SAID:])
        ends_well(stage, job, "all right")


@suite.test()
def a_rank_in_its_function_is_waited_for(stage):
    """After a move there is no way back: the function is named, and the move ends when it does."""
    with Job(stage, "saving", "lingering", STOP, environment=LIMITS) as job:
        job.until_running()
        asking = Beside(moved, job, [1], H1)
        with lingers(job, "rebuild", 2):
            asking.start()
            wait_for("it is printed", lambda: re.search(
                f"rank 2: {NAMES['rebuild']} has not returned for 2 s", job.said()), 30)
            check(asking.is_alive(), "the move has not waited")
        asking.join()
        check(hosts_of(job)[1] == "h1", "it has not moved")
        moved(job, [2], H2)
        ends_well(stage, job, "all right")


@suite.test()
def a_request_while_the_new_rank_0_rebuilds(stage):
    """It is kept until ranks can meet again."""
    with Job(stage, "saving", "lingering", STOP, environment=LIMITS) as job:
        job.until_running()
        first = Beside(moved, job, [0], H2)
        second = Beside(moved, job, [1], H1)
        with lingers(job, "rebuild", 0):
            first.start()
            wait_for("it is printed", lambda: re.search(
                f"rank 0: {NAMES['rebuild']} has not returned for 2 s", job.said()), 30)
            second.start()
            time.sleep(1)
            check(second.is_alive(), "it is answered while rank 0 rebuilds")
        first.join()
        second.join()
        check(hosts_of(job)[:2] == ["h2", "h1"], f"hosts {hosts_of(job)}")
        ends_well(stage, job, "all right")


@suite.test(tags={"openmpi"})
def each_line_once(stage):
    """What a rank writes appears once and in order, and its exit handlers run once."""
    with Job(stage, "saving", "output", STOP) as job:
        job.until_running()
        for rank, host in ((1, H1), (0, H2), (1, H2), (0, H1), (2, H2)):
            moved(job, [rank], host)
        job.stop()
        finishes(stage, job, "all right")
        for rank in range(4):
            path = pathlib.Path(f"{job.stop_file}.{rank}")
            lines = path.read_text(encoding="ascii").splitlines()
            wanted = [*map(str, range(len(lines) - 2)), "last", "end"]
            wrong = next((n for n, pair in enumerate(zip(lines, wanted)) if pair[0] != pair[1]),
                         None)
            check(lines == wanted, f"rank {rank}: line {wrong} is not as it should be",
                  "\n".join(lines[max(0, (wrong or 0) - 5):][:10]))
            check(len(lines) > 10, f"rank {rank} has written nothing")
        # Each process of the four has said so: those that mpiexec started, their successors, and
        # those of the five moves.
        begun = job.said().count("begins")
        check(begun == 13, f"{begun} of 13 processes have printed what they began with",
              job.said()[-SAID:])


@suite.test(tags={"openmpi"})
def data_of_all_types(stage):
    """Predefined types of three languages and derived ones: by memory, by disk, by a checkpoint."""
    with Job(stage, "types", STOP) as job:
        job.until_running()
        moved(job, [1], H1)
        moved(job, [0], H2, via="disk")
        saved(job)
        place = job.directory + "/saved"
        ends_well(stage, job, "all right")
    with Job(stage, "types", STOP, launcher=restart(stage, place)) as job:
        job.until_running()
        moved(job, [1], H1)
        ends_well(stage, job, "all right")


@suite.test()
def another_derived_type_in_the_successor(stage):
    with Job(stage, "types", STOP, "other") as job:
        job.until_running()
        refused(job, "move", "--rank", "1", "--to", H1,
                says=r"type of 'struct' is \{int8,float64\[3\],float32\[3\]\} in the "
                     r"successor, \{int8,float64\[3\],int32,float32\[2\]\} before")
        saved(job)
        place = job.directory + "/saved"
        ends_well(stage, job, "all right")
    with Job(stage, "types", STOP, "other", launcher=restart(stage, place)) as job:
        ends_with_error(job, r"type of 'struct' is not \{int8,float64\[3\],float32\[3\]\} as "
                             r"saved: that is \{int8,float64\[3\],int32,float32\[2\]\}", 60)


@suite.test()
def another_hdf5_in_the_program(stage):
    """libzcm's HDF5 is its own: that of the program may be any."""
    place = pathlib.Path(stage.new_directory())
    library = place / "libhdf5.so.999"
    subprocess.run(["cc", "-shared", "-fPIC", "-Wall", "-o", str(library),
                    str(HERE / "another_hdf5.c")], check=True)
    with heat(stage, environment={"LD_PRELOAD": str(library),
                                  "ANOTHER_HDF5_IS_THERE": str(place / "there")}) as job:
        job.until_running()
        moved(job, [1], H1)
        moved(job, [2], H2, via="disk")
        saved(job)
        ends_well(stage, job, IDENTICAL)
        check((place / "there").exists(), "it was not loaded at all")


@suite.test()
def no_hdf5_where_the_job_runs(stage):
    """Nothing can be saved or moved, which is said, and the job goes on."""
    place = pathlib.Path(stage.new_directory())
    (place / "libhdf5_serial.so.103").touch()
    with heat(stage, environment={"LD_LIBRARY_PATH": f"{place}:{stage.library}/lib"}) as job:
        job.until_running()
        for words in (("move", "--rank", 1, "--to", H1),
                      ("move", "--rank", 2, "--to", H2, "--via", "disk"), ("checkpoint",)):
            refused(job, *words, says="cannot load HDF5")
        ends_well(stage, job, IDENTICAL)
