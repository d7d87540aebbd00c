# SPDX-License-Identifier: BSD-3-Clause
"""Moves drawn by chance, with what may go wrong meanwhile: after each of them every rank is one
process, or the job has said why it cannot go on."""
import collections
import contextlib
import itertools
import os
import pathlib
import random
import signal
import subprocess
import threading
import time

from testbed.migration import H1, H2, SAID, STOP, Job
from testbed.outcome import Fail, check
from testbed.suite import Note
from tests.migrate.jobs import (ANY_HOST, IDENTICAL, LAUNCHED, cut_off, ends_well, give_memory, limit_memory,
                                mpich_only, small_disk, suite)

RANKS = 5
PATIENCE = {"ZC_MIGRATE_TIMEOUT": "10", "ZC_MIGRATE_PATIENCE": "30", "ZC_MIGRATE_START": "30",
            "ZC_MIGRATE_WORLD": "10"}
WAKE_SECONDS = 80   # more than all of these
FAULTS = ("none", "none", "none", "kill new", "stop new", "two requests", "unknown host",
          "ask to save", "later")
LAUNCHER = "kill launcher"
# What may well end the job. No agent has a part in these moves: tests/run living kills those.
ROUGH = (LAUNCHER, "kill rank", "kill source", "cut network", "full disk", "full memory")
MAY_END = {"kill new", "stop new", *ROUGH} - {"full disk"}
# By Hydra, by the library or its launcher, or by MPI, which may find a process lost before the library does.
REASONS = ("BAD TERMINATION", "APPLICATION TERMINATED", "zcm: ", "zcm-launch: ", "has lost its connection to rank",
           "Process failed")
DISK = "200m"
NAMES = {H1: "h1", H2: "h2"}


Plan = collections.namedtuple("Plan", "ranks to via")


@contextlib.contextmanager
def full(disk):
    """DISK, which small_disk() has made, has no room for more."""
    def remount(size):
        subprocess.run(["mount", "-o", f"remount,size={size}", disk], check=True)
    pathlib.Path(disk, "filler").write_bytes(bytes(4096))    # a size of 0 would be no limit
    there = os.statvfs(disk)
    remount((there.f_blocks - there.f_bfree) * there.f_frsize)
    try:
        yield
    finally:
        remount(DISK)


class Draw:
    """A job, what is asked of it, and what is done to it meanwhile."""

    def __init__(self, stage, job, rng, faults, disk):
        self.stage, self.job, self.rng, self.faults, self.disk = stage, job, rng, faults, disk
        self.outcomes = collections.Counter()
        self.before = None      # what has struck a process while the request before was dealt with
        self.struck = False
        self.stopped, self.limited = [], []

    def ranks_now(self):
        """None: it has ended, or is about to."""
        deadline = time.monotonic() + 20 * self.stage.patience
        while time.monotonic() < deadline and self.job.process.poll() is None:
            status = self.job.status()
            if not status or "ranks" in status:
                return status["ranks"] if status else None
            time.sleep(0.1)     # rank 0 is a new process, which does not know all ranks yet
        return None

    def fresh(self, word, before, rng):
        """A process that was not a rank before the request, once there is one; None: there was none for
        a time drawn by chance."""
        known = {rank["pid"] for rank in before}
        deadline = time.monotonic() + rng.uniform(0, 3)
        while time.monotonic() < deadline:
            for host in ("h1", "h2"):
                fresh = [pid for pid, line in self.job.processes_on(host)
                         if pid not in known and word in line.split(" ")[0]]
                if fresh:
                    time.sleep(rng.uniform(0, 0.4))
                    return rng.choice(fresh)
            time.sleep(0.01)
        return None

    def disturb(self, what, before, plan, rng):
        """Once, at a time drawn by chance, while what PLAN says is asked for."""
        if what in ("kill new", "stop new", LAUNCHER):
            pid = self.fresh("zcm-launch" if what == LAUNCHER else "heat2d", before, rng)
            if pid:
                self.send(pid, signal.SIGSTOP if what == "stop new" else signal.SIGKILL)
        elif what in ("kill rank", "kill source"):
            victim = rng.choice(range(RANKS) if what == "kill rank" else plan.ranks)
            time.sleep(rng.uniform(0, 1.5))
            self.send(before[victim]["pid"], signal.SIGKILL)
        elif what == "cut network":
            time.sleep(rng.uniform(0, 0.4))
            with cut_off(self.stage, 2):
                time.sleep(rng.choice((rng.uniform(0, 1), rng.uniform(1, 15))))
        elif what == "full memory":
            # The source's from some time on, or that of a process that is made for the move.
            pid = (before[rng.choice(plan.ranks)]["pid"] if rng.random() < 0.5
                   else self.fresh("heat2d", before, rng))
            time.sleep(rng.uniform(0, 0.3))
            if pid:
                limit_memory(pid)
                self.limited.append(pid)
        elif what == "two requests":
            self.request(self.plan(what, rng))
        elif what == "ask to save":
            self.job.ask("checkpoint")

    def send(self, pid, which):
        try:
            os.kill(pid, which)
        except ProcessLookupError:
            return
        self.struck = self.struck or which != signal.SIGCONT
        if which == signal.SIGSTOP:
            self.stopped.append(pid)

    def wake(self):
        """One that was stopped when it was the rank already."""
        for pid in self.stopped:
            self.send(pid, signal.SIGCONT)
        self.stopped.clear()

    @staticmethod
    def plan(what, rng):
        ranks = rng.sample(range(RANKS), rng.randint(1, RANKS))
        to = "nowhere" if what == "unknown host" else rng.choice((H1, H2))
        via = rng.choice(("memory", "memory", "image", "disk"))
        return Plan(ranks, to, "disk" if what == "full disk" else via)

    def request(self, plan):
        """(exit status, what was said)"""
        code, _, said = self.job.ask("move", "--rank", ",".join(map(str, plan.ranks)), "--to", plan.to,
                                     "--via", plan.via)
        return code, said

    def once(self):
        """One request. False: the job has ended, and has said why."""
        what = self.rng.choice(self.faults)
        self.struck = False
        before = self.ranks_now()
        check(before is not None, "it does not answer", self.job.said()[-SAID:])
        plan = self.plan(what, self.rng)
        # Its own draws, so that these can be made again.
        own = random.Random(self.rng.random())
        helper = threading.Thread(target=self.disturb, args=(what, before, plan, own))
        if what == "later":
            time.sleep(self.rng.uniform(0, 0.3))
        # What was stopped when the move was decided, and not yet answered, is a rank that the job waits for.
        waker = threading.Timer(WAKE_SECONDS, self.wake)
        waker.start()
        helper.start()
        try:
            with full(self.disk) if what == "full disk" else contextlib.nullcontext():
                code, said = self.request(plan)
        finally:
            waker.cancel()
            helper.join()
            self.wake()
            for pid in self.limited:
                give_memory(pid)
            self.limited.clear()
        wanted = {rank: NAMES.get(plan.to) for rank in plan.ranks}
        self.outcomes[f"{what}: {'moved' if code == 0 else 'not moved'}"] += 1
        if self.job.process.poll() is not None or self.ranks_now() is None:
            return self.ended(what, code, said)
        if not self.check_places(what, code, said, before, wanted):
            return self.ended(what, code, said)
        self.before = what if self.struck else None
        return True

    def ended(self, what, code, said):
        status = self.job.wait(60 * self.stage.patience)
        check(what in MAY_END or self.before in MAY_END,      # a harm may show late
              f"'{what}' after '{self.before}' has ended the job: {code} {said}", self.job.said()[-SAID:])
        told = self.job.said()
        check(status not in (0, None) and any(reason in told for reason in REASONS),
              f"exit status {status} after '{what}', and no reason: {said}", told[-SAID:])
        self.outcomes["the job has ended and said why"] += 1
        return False

    def check_places(self, what, code, said, before, wanted):
        check(what != "full disk" or code != 0, "moved by way of a full disk", self.job.said()[-SAID:])
        now = self.ranks_now()
        if now is None:     # it has just ended, or ended() finds that it has not
            return False
        if code == 0 and what != "two requests":
            check(all(now[rank]["host"] == host for rank, host in wanted.items()),
                  f"moved, but not there: {now}", self.job.said()[-SAID:])
        elif what not in ("two requests", "ask to save"):
            check([rank["host"] for rank in now] == [rank["host"] for rank in before],
                  f"not moved ({said}), but elsewhere: {now}", self.job.said()[-SAID:])
        return self.check_processes(now)

    def check_processes(self, now):
        """Never two, never none: successors in vain and leavers end within the job's time. False:
        the job has ended since it was asked, as what was killed had become a rank."""
        wanted = sorted(rank["pid"] for rank in now)
        deadline = time.monotonic() + 40 * self.stage.patience
        while True:
            there = sorted(pid for host in ("h1", "h2") for pid, line in self.job.processes_on(host)
                           if "heat2d" in line.split(" ")[0])
            if there == wanted:
                return True
            if not there and self.job.process.poll() is not None:
                return False
            if time.monotonic() > deadline:
                raise Fail(f"ranks are {wanted}, processes {there}", self.job.said()[-SAID:])
            time.sleep(0.1)


def drawn_moves(stage, count, faults):
    with small_disk(stage, DISK) if "full disk" in faults else contextlib.nullcontext() as disk:
        return drawn_moves_by(stage, count, faults, disk)


def drawn_moves_by(stage, count, faults, disk):
    """Those by way of the disk go by DISK. Where ranks are killed, too, Hydra ends what is left of every other
    job, and all ranks of the others have to find out by themselves."""
    rng = random.Random(stage.seed)
    outcomes = collections.Counter()
    done = 0
    place = {"ZC_MIGRATE_DIR": disk} if disk else {}
    cleanups = itertools.cycle(([], ["-disable-auto-cleanup"]) if "kill rank" in faults else ([],))
    while done < count:
        with Job(stage, "heat2d", "--rows", 60, "--columns", 512, "--iterations", 100000000,
                 "--until", STOP, "--ballast", rng.choice((0, 1, 20)), ranks=RANKS,
                 mpiexec=next(cleanups), environment={**ANY_HOST, **PATIENCE, **place}) as job:
            job.until_running()
            draw = Draw(stage, job, rng, faults, disk)
            try:
                goes_on = True
                while goes_on and done < count:
                    goes_on = draw.once()
                    done += 1
                if goes_on:
                    ends_well(stage, job, IDENTICAL)
            except Fail as failure:
                raise Fail(f"request {done}: {failure}", failure.output) from failure
            outcomes += draw.outcomes
    check(any(key.endswith(": moved") for key in outcomes), f"nothing was moved: {outcomes}")
    return Note("; ".join(f"{key} {n}" for key, n in sorted(outcomes.items())),
                **{key.replace(" ", "_"): n for key, n in outcomes.items()})


@suite.test()
@mpich_only(LAUNCHED)
def twelve_moves_by_chance(stage):
    return drawn_moves(stage, 12, FAULTS)


@suite.test(tags={"long"})
@mpich_only(LAUNCHED)
def sixty_moves_by_chance(stage):
    """Those that are hard on the job only, so that each of them comes often."""
    return drawn_moves(stage, 60, ("none", *ROUGH))


@suite.test(tags={"long"})
@mpich_only(LAUNCHED)
def a_thousand_moves_by_chance(stage):
    return drawn_moves(stage, 1000, (*FAULTS, *ROUGH))
