# SPDX-License-Identifier: BSD-3-Clause
"""Jobs are saved, and begin again where they were saved."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import threading
import time

from testbed import process
from testbed.migration import H1, H2, SAID, STOP, Job
from testbed.outcome import check
from tests.migrate.jobs import (IDENTICAL, ends_well, ends_with_error, finishes, heat, moved,
                                refused, restart, saved, small_disk, suite)


def a_copy(stage, job):
    """Of what JOB has saved."""
    place = stage.new_directory() + "/saved"
    return shutil.copytree(job.directory + "/saved", place, symlinks=True)


def flip_a_bit(file):
    content = bytearray(file.read_bytes())
    content[len(content) * 2 // 3] ^= 4
    file.write_bytes(content)


@suite.test(tags={"openmpi"})
def checkpoint_and_restart(stage):
    with heat(stage) as job:
        job.until_running()
        safe_point = saved(job)
        place = job.directory + "/saved"
        names = " ".join(sorted(os.listdir(place)))
        check(re.fullmatch(rf"at-{safe_point}-[0-9a-f]{{16}} latest lock", names), names)
        if shutil.which("h5dump"):
            dump = subprocess.run(["h5dump", "-d", "/iteration", place + "/latest/rank-2.h5"],
                                  capture_output=True, text=True, check=False)
            check(dump.returncode == 0 and "H5T_STD_I64LE" in dump.stdout,
                  "no iteration in the file", dump.stdout + dump.stderr)
            check(str(safe_point - 1) in dump.stdout, "another iteration in the file", dump.stdout)
        kept = a_copy(stage, job)
    run = restart(stage, kept)
    iterations = safe_point + 200
    # On the same hosts, the other way round, and on one host alone.
    for hosts in ((H1, H2), (H2, H1), (H2,)):
        with heat(stage, iterations=iterations, hosts=hosts, launcher=run) as job:
            finishes(stage, job, f"{iterations} iterations on 4 ranks: {IDENTICAL}", timeout=120)
    with heat(stage, launcher=run) as job:
        job.until_running()
        moved(job, [2], H2)
        ends_well(stage, job, IDENTICAL, timeout=120)
    with heat(stage, iterations=iterations, ranks=3, launcher=run) as job:
        ends_with_error(job, "is of 4 ranks, this job has 3", 60)
    # Damage: a flipped bit in the data, then a missing file.
    file = pathlib.Path(kept) / "latest/rank-1.h5"
    flip_a_bit(file)
    with heat(stage, iterations=iterations, launcher=run) as job:
        ends_with_error(job, "is damaged|HDF5 cannot", 60)
        check(IDENTICAL not in job.said(), "it has computed all the same", job.said()[-SAID:])
    file.unlink()
    with heat(stage, iterations=iterations, launcher=run) as job:
        ends_with_error(job, "rank-1.h5", 60, exit_status=3)


@suite.test()
def checkpoint_other_type_on_restart(stage):
    with Job(stage, "state", "types", 100000, STOP, ranks=2) as job:
        job.until_running()
        saved(job)
        kept = a_copy(stage, job)
        ends_well(stage, job, "all right")
    with Job(stage, "state", "types", 100000, STOP, ranks=2, launcher=restart(stage, kept)) as job:
        ends_with_error(job, "type of 'x' is not float32 as saved", 60)


@suite.test()
def program_asks_for_checkpoints(stage):
    """Each when the one before is over: it is refused while another request is under way."""
    with heat(stage, "--checkpoint", 5000, iterations=19000) as job:
        finishes(stage, job, IDENTICAL)
        names = sorted(os.listdir(job.directory + "/saved"))
        check([name[:3] for name in names] == ["at-", "at-", "lat", "loc"], f"{names}")
        newest = max(names[:2], key=lambda name: int(name.split("-")[1]))
        check(os.readlink(job.directory + "/saved/latest") == newest, f"{names}")


@suite.test(tags={"openmpi"})
def streamed_to_the_disk(stage):
    """Where there is no room for a copy of the state, ranks write it while they wait."""
    with heat(stage, "--ballast", 8, environment={"ZC_MIGRATE_SAVING": "stream"}) as job:
        job.until_running()
        code, answer, said = job.ask("checkpoint")
        check(code == 0 and answer["streamed"] == 4, f"{answer} {said}", job.said()[-SAID:])
        check(answer["bytes"]["image"] > (32 << 20), f"{answer}")
        kept = a_copy(stage, job)
        ends_well(stage, job, IDENTICAL)
    with heat(stage, "--ballast", 8, launcher=restart(stage, kept),
              iterations=answer["safe_point"] + 100) as job:
        finishes(stage, job, IDENTICAL, timeout=120)


@suite.test()
def streamed_for_want_of_memory(stage):
    """Left to itself a rank that can have no memory for a copy streams, and that is said."""
    with heat(stage, ranks=2, environment={"ZC_MIGRATE_FAULT": "no-room"}) as job:
        job.until_running()
        code, answer, said = job.ask("checkpoint")
        check(code == 0 and answer["streamed"] > 0, f"{answer} {said}", job.said()[-SAID:])
        check("no room for copies" in job.said(), "it does not say so", job.said()[-SAID:])
        ends_well(stage, job, IDENTICAL)


@suite.test()
def generations_are_kept(stage):
    """The last checkpoint may be bad: those before it stay, and a job goes on with one of them."""
    place = stage.new_directory() + "/saved"
    environment = {"ZC_MIGRATE_DIR": place, "ZC_MIGRATE_KEEP": "3"}
    with heat(stage, ranks=2, environment=environment) as job:
        job.until_running()
        points = [saved(job) for _ in range(4)]
        ends_well(stage, job, IDENTICAL)
    there = {int(path.name.split("-")[1]): path for path in pathlib.Path(place).glob("at-*")}
    check(sorted(there) == points[1:], f"{sorted(there)} of {points}")
    (there[points[3]] / "rank-1.h5").unlink()
    with heat(stage, ranks=2, launcher=restart(stage, place)) as job:
        ends_with_error(job, f"before it: {there[points[2]]}", 60, exit_status=3)
    with heat(stage, ranks=2, launcher=restart(stage, str(there[points[2]])),
              environment=environment) as job:
        job.until_running()
        last = saved(job)
        ends_well(stage, job, IDENTICAL)
    names = sorted(int(path.name.split("-")[1]) for path in pathlib.Path(place).glob("at-*"))
    check(names == sorted([points[2], points[3], last]), f"{names}")


@suite.test()
def crash_while_writing_keeps_the_previous(stage):
    """Killed at many moments of writing: what is called latest is always complete."""
    place = stage.new_directory() + "/saved"
    for turn in range(5):
        with heat(stage, "--ballast", 8, environment={"ZC_MIGRATE_DIR": place}) as job:
            job.until_running()
            if turn == 0:
                saved(job)
            asker = threading.Thread(target=lambda: job.ask("checkpoint"), daemon=True)
            asker.start()
            time.sleep(0.03 + 0.04 * turn)
            process.kill(pid for pid, _ in list(process.processes(job.mark)))
            job.process.wait()
            asker.join(timeout=10)
        for rank in range(4):
            file = f"{place}/latest/rank-{rank}.h5"
            check(os.path.getsize(file) > (8 << 20), f"{file} is not complete")
        check(os.path.exists(place + "/latest/manifest.json"), "no manifest")


@suite.test()
def two_jobs_in_one_folder(stage):
    """One saves at a time, says which it is, and neither loads nor removes what is the other's."""
    place = stage.new_directory() + "/saved"

    def job(name, since=None, iterations=10000000):
        return heat(stage, ranks=2, iterations=iterations,
                    launcher=restart(stage, since) if since else None,
                    environment={"ZC_MIGRATE_DIR": place, "ZC_MIGRATE_JOB": name,
                                 "ZC_MIGRATE_KEEP": "1"})

    with job("first") as first, job("second") as second:
        first.until_running()
        second.until_running()
        saved(first)
        refused(second, "checkpoint",
                says=rf"job first \(number \w+, rank 0 is process \d+ on h1\) saves in {place}")
        moved(first, [0], H2)       # and takes the lock along
        saved(first)
        refused(second, "checkpoint", says=r"job first .*on h2\) saves in")
        ends_well(stage, first, IDENTICAL)
        saved(second)
        last = saved(second)
        ends_well(stage, second, IDENTICAL)
    there = {}
    for folder in pathlib.Path(place).glob("at-*"):
        manifest = json.loads((folder / "manifest.json").read_text())
        there[manifest["name"]] = (folder.name, manifest["safe_point"])
    check(sorted(there) == ["first", "second"] and there["second"][1] == last, f"{there}")

    with job("third", place) as third:
        ends_with_error(third, "checkpoints of different jobs", 60, exit_status=3)
        check(all(name in third.said() for name, _ in there.values()), "it does not name both",
              third.said())
    name, safe_point = there["first"]
    with job("third", f"{place}/{name}", iterations=safe_point + 200) as third:
        finishes(stage, third, IDENTICAL, timeout=120)
    # What goes on from there is of the same line: it takes its place, and leaves the other's.
    with job("third", f"{place}/{name}") as third:
        third.until_running()
        saved(third)
        ends_well(stage, third, IDENTICAL)
    names = os.listdir(place)
    check(there["second"][0] in names and name not in names, f"{names}")
    # Files of one job in the folder of another.
    ours = pathlib.Path(place, there["second"][0])
    theirs = next(path for path in pathlib.Path(place).glob("at-*") if path != ours)
    shutil.copy(theirs / "rank-1.h5", ours / "rank-1.h5")
    with job("fourth", ours) as fourth:
        ends_with_error(fourth, "rank-1.h5 is of rank 1 of 2", 60)


@suite.test(tags={"long"})
def slow_disk(stage):
    """However long a checkpoint takes, it is not given up while it gets on."""
    timeout = 3 * stage.patience
    with heat(stage, "--ballast", int(10 * stage.patience), ranks=2,    # 1 MiB/s
              environment={"ZC_MIGRATE_FAULT": "slow-disk",
                           "ZC_MIGRATE_TIMEOUT": str(timeout)}) as job:
        job.until_running()
        code, answer, said = job.ask("checkpoint")
        check(code == 0, said, job.said()[-SAID:])
        check(answer["phases_ms"]["transfer"] > 2e3 * timeout, f"not slow at all: {answer}")
        ends_well(stage, job, IDENTICAL)


@suite.test()
def disk_full(stage):
    """The checkpoint fails, names the cause, and leaves the previous one alone."""
    for saving in ("copy", "stream"):
        fill_the_disk(stage, saving)


def fill_the_disk(stage, saving):
    with small_disk(stage, "48m") as place:
        with heat(stage, "--ballast", 6, environment={"ZC_MIGRATE_DIR": place,
                                                      "ZC_MIGRATE_SAVING": saving}) as job:
            job.until_running()
            saved(job)
            first = os.readlink(place + "/latest")
            refused(job, "checkpoint", says="No space left on device")
            check(os.readlink(place + "/latest") == first, "the previous one is gone")
            check(sorted(os.listdir(place)) == [first, "latest", "lock"], f"{os.listdir(place)}")
            if shutil.disk_usage(place).free < (6 << 20):
                refused(job, "move", "--rank", 1, "--to", H1, "--via", "disk", says="")
            ends_well(stage, job, IDENTICAL, timeout=120)
