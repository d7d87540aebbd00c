# SPDX-License-Identifier: BSD-3-Clause
"""Moves drawn by chance, with what may go wrong meanwhile: after each of them every rank is one
process, or the job has said why it cannot go on."""
import collections
import os
import random
import signal
import threading
import time

from testbed.migration import H1, H2, SAID, STOP, Job
from testbed.outcome import Fail, check
from testbed.suite import Note
from tests.migrate.jobs import ANY_HOST, IDENTICAL, LAUNCHED, ends_well, mpich_only, suite

RANKS = 5
PATIENCE = {"ZC_MIGRATE_TIMEOUT": "10", "ZC_MIGRATE_PATIENCE": "30", "ZC_MIGRATE_START": "30",
            "ZC_MIGRATE_WORLD": "10"}
WAKE_SECONDS = 80   # more than all of these
FAULTS = ("none", "none", "none", "kill new", "stop new", "two requests", "unknown host",
          "ask to save", "later")
LAUNCHER = "kill launcher"
NAMES = {H1: "h1", H2: "h2"}


class Draw:
    """A job, what is asked of it, and what is done to it meanwhile."""

    def __init__(self, stage, job, rng, faults):
        self.stage, self.job, self.rng, self.faults = stage, job, rng, faults
        self.outcomes = collections.Counter()
        self.stopped = []

    def ranks_now(self):
        status = self.job.status()
        return status["ranks"] if status else None

    def disturb(self, what, before, rng):
        """Once, at a time drawn by chance, to a process that was not a rank before the request."""
        known = {rank["pid"] for rank in before}
        deadline = time.monotonic() + rng.uniform(0, 3)
        word = "zcm-launch" if what == LAUNCHER else "heat2d"
        while time.monotonic() < deadline:
            for host in ("h1", "h2"):
                fresh = [pid for pid, line in self.job.processes_on(host)
                         if pid not in known and word in line.split(" ")[0]]
                if fresh:
                    time.sleep(rng.uniform(0, 0.4))
                    self.send(rng.choice(fresh),
                              signal.SIGSTOP if what == "stop new" else signal.SIGKILL)
                    return
            time.sleep(0.01)

    def send(self, pid, which):
        try:
            os.kill(pid, which)
        except ProcessLookupError:
            return
        if which == signal.SIGSTOP:
            self.stopped.append(pid)

    def wake(self):
        """One that was stopped when it was the rank already."""
        for pid in self.stopped:
            self.send(pid, signal.SIGCONT)
        self.stopped.clear()

    def request(self, what, rng):
        """(exit status, what was said) of one request, and where its ranks were to go."""
        ranks = rng.sample(range(RANKS), rng.randint(1, RANKS))
        to = "nowhere" if what == "unknown host" else rng.choice((H1, H2))
        via = rng.choice(("memory", "memory", "image", "disk"))
        code, _, said = self.job.ask("move", "--rank", ",".join(map(str, ranks)), "--to", to,
                                     "--via", via)
        return code, said, {rank: NAMES.get(to) for rank in ranks}

    def once(self):
        """One request. False: the job has ended, and has said why."""
        what = self.rng.choice(self.faults)
        before = self.ranks_now()
        check(before is not None, "it does not answer", self.job.said()[-SAID:])
        helper, own = None, random.Random(self.rng.random())    # so that the draws can be made again
        if what in ("kill new", "stop new", LAUNCHER):
            helper = threading.Thread(target=self.disturb, args=(what, before, own))
        elif what == "two requests":
            helper = threading.Thread(target=self.request, args=(what, own))
        elif what == "ask to save":
            helper = threading.Thread(target=self.job.ask, args=("checkpoint",))
        elif what == "later":
            time.sleep(self.rng.uniform(0, 0.3))
        if helper:
            helper.start()
        # What was stopped when the move was decided, and not yet answered, is a rank that the job waits for.
        waker = threading.Timer(WAKE_SECONDS, self.wake)
        waker.start()
        try:
            code, said, wanted = self.request(what, self.rng)
        finally:
            waker.cancel()
        if helper:
            helper.join()
        self.wake()
        self.outcomes[f"{what}: {'moved' if code == 0 else 'not moved'}"] += 1
        if self.job.process.poll() is not None or self.ranks_now() is None:
            return self.ended(what, code, said)
        if not self.check_places(what, code, said, before, wanted):
            return self.ended(what, code, said)
        return True

    def ended(self, what, code, said):
        status = self.job.wait(60 * self.stage.patience)
        check(what in ("kill new", "stop new", LAUNCHER),
              f"'{what}' has ended the job: {code} {said}", self.job.said()[-SAID:])
        told = self.job.said()
        check(status not in (0, None) and ("BAD TERMINATION" in told or "zcm: " in told),
              f"exit status {status} after '{what}', and no reason: {said}", told[-SAID:])
        self.outcomes["the job has ended and said why"] += 1
        return False

    def check_places(self, what, code, said, before, wanted):
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
    rng = random.Random(stage.seed)
    outcomes = collections.Counter()
    done = 0
    while done < count:
        with Job(stage, "heat2d", "--rows", 60, "--columns", 512, "--iterations", 100000000,
                 "--until", STOP, "--ballast", rng.choice((0, 1, 20)), ranks=RANKS,
                 environment={**ANY_HOST, **PATIENCE}) as job:
            job.until_running()
            draw = Draw(stage, job, rng, faults)
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
def a_thousand_moves_by_chance(stage):
    return drawn_moves(stage, 1000, (*FAULTS, LAUNCHER))
