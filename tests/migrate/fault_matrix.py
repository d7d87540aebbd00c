# SPDX-License-Identifier: BSD-3-Clause
"""Each phase of a move, and each way in which a process, a host or a resource can fail in it: the job
goes on as before, or ends and says why.

A process waits at the begin of a phase (ZC_MIGRATE_FAULT=waits-in-PHASE) while a test does its harm: the
first leaver; in stand-by the thread of rank 0 that examines the request, so that all ranks compute; in
negotiation the last rank, so that all others wait where they are to meet. docs/migration.md, Every phase and every fault, has the table.
"""
import contextlib
import os
import pathlib
import re
import signal
import threading
import time

from testbed.migration import H1, H2, SAID
from testbed.outcome import Fail, check, wait_for
from tests.migrate.jobs import (ANY_HOST, IDENTICAL, LAUNCHED, cut_off, ends_well, give_memory, heat, kill,
                                limit_memory, mpich_only, parent_of, small_disk, stop, strike, suite)

BEFORE_MEETING = ("stand-by", "negotiation")
PHASES = ("spawn", "data", "verdict", "link-up", "rebuild")
BEFORE_GO = (*BEFORE_MEETING, *PHASES[:3])
# They differ, so that each is seen to be the one that was reached. START is that of the job, too, on
# whatever machine.
LIMITS = {"ZC_MIGRATE_TIMEOUT": "12", "ZC_MIGRATE_SILENCE": "8", "ZC_MIGRATE_START": "20",
          "ZC_MIGRATE_WORLD": "10"}
PATIENCE = 25       # seconds, where the ranks do not meet
# What is said where the job cannot go on.
BY_NAME = r"rank \d on \S+ (has not answered for 8 s|is gone)"
BY_LAUNCHER = (r"zcm-launch: (a rank|rank \d) on \S+, process \d+, was killed by signal 9 \(Killed\): "
               "the job ends")
MISSED = (r"within \d+ s \(ZC_MIGRATE_WORLD(, ZC_MIGRATE_SILENCE)?\): a process has died, is stopped, "
          "or is slow")
AFTER_GO = (f"{BY_NAME}|ranks were not linked up with the successors {MISSED}|predecessor is gone|"
            "ranks are not linked up with the successors: a process died|"
            # Its launcher ends it with a rank that is killed: the leaver may be the first to know.
            "the move was agreed on, but the successor has ended with its launcher|"
            f"(old world was not given up|new world was not entered) {MISSED}|"
            # The window by which all could be asked is being given up.
            r"rank \d: an error of MPI on host \S+: Process failed")
NO_MEMORY = "no memory|bad_alloc|[Cc]annot allocate|[Oo]ut of memory|Resource temporarily unavailable"


class Paused:
    """JOB, whose rank LEAVER leaves; one of its processes waits at the begin of PHASE."""

    def __init__(self, stage, job, phase, to, via, sign, leaver):
        self.stage, self.job, self.sign, self.leaver = stage, job, sign, leaver
        self.before = job.until_running()["ranks"]
        self.pids = [rank["pid"] for rank in self.before]
        self.target = "h1" if to == H1 else "h2"
        self.answer = None
        self.asking = threading.Thread(target=self.ask, args=(to, via))
        self.asking.start()
        wait_for(f"a process waits in {phase}", self.sign.exists, 60 * stage.patience)

    def ask(self, to, via):
        self.answer = self.job.ask("move", "--rank", self.leaver, "--to", to, "--via", via)

    def successor(self):
        """It may have to come first."""
        wait_for("there is a successor", self.fresh, 20 * self.stage.patience, every=0.005)
        fresh = self.fresh()
        check(len(fresh) == 1, f"successors: {fresh}")
        return fresh[0]

    def fresh(self):
        return [pid for pid, line in self.job.processes_on(self.target)
                if pid not in self.pids and line.split()[0] == self.job.stage.programs["heat2d"]]

    def process(self, whose):
        """The process that WHOSE says."""
        if whose == "leaver":
            return self.pids[self.leaver]
        if whose == "stayer":
            return self.pids[-1]
        if whose == "rank 0":
            return self.pids[0]
        return self.successor() if whose == "successor" else parent_of(self.successor())

    def go_on(self):
        """As when nothing had waited."""
        self.sign.unlink(missing_ok=True)

    def goes_on(self, says):
        """The move is refused, as SAYS, all ranks are where they were, and no successor is left."""
        self.asking.join()
        code, _, said = self.answer
        check(code == 1 and re.search(says, said), f"not refused with '{says}': {code} {said}",
              self.job.said()[-SAID:])
        check(self.job.status()["ranks"] == self.before, "ranks are not where they were")
        wait_for("there is one process for each rank", lambda: sorted(self.pids) == sorted(
            pid for host in ("h1", "h2") for pid, line in self.job.processes_on(host)
            if line.split()[0] == self.job.stage.programs["heat2d"]), 40)
        ends_well(self.stage, self.job, IDENTICAL, timeout=90)

    def all_end(self, stopped=(), waits=()):
        """Every process of the program, but those STOPPED and those that WAIT."""
        def left():
            return [(pid, line) for host in ("h1", "h2") for pid, line in self.job.processes_on(host)
                    if pid not in (*stopped, *waits) and line.split()[0] == self.job.stage.programs["heat2d"]]
        try:
            wait_for("all ranks end", lambda: not left(), 30 * self.stage.patience)
        except Fail as failure:
            raise Fail(f"{failure}: {left()}", self.job.said()[-SAID:]) from None

    def cannot_go_on(self, says, stopped=(), waits=()):
        """Every process ends, without a result, and the reason is one that SAYS has. Those STOPPED are
        ended then, and those end that WAIT for them and are no ranks."""
        self.all_end(stopped, waits)
        for pid in stopped:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        wait_for("those end that have waited", lambda: not any(
            os.path.exists(f"/proc/{pid}") for pid in waits), 30)
        self.asking.join()
        check(self.answer[0] != 0, f"the move is said to be made: {self.answer}")
        check(self.job.wait(20 * self.stage.patience) is not None, "the job hangs", self.job.said()[-SAID:])
        check(IDENTICAL not in self.job.said(), "went on as if nothing had happened")
        check(re.search(says, self.job.said()), f"it does not say '{says}'", self.job.said()[-SAID:])


@contextlib.contextmanager
def paused(stage, phase, to=None, via="memory", environment=None, sign=None, leaver=1, **how):
    """By default the leaver goes to the other host. Of three ranks, rank 1 is on h2."""
    to = to or (H1 if leaver == 1 else H2)
    # mpirun has nothing like it: there the others are ended when a rank is killed.
    alone = ["-disable-auto-cleanup"] if stage.family == "mpich" else []
    how = {"ranks": 3, "mpiexec": alone, **how}
    with heat(stage, "--ballast", 4, **how,
              environment={**ANY_HOST, **LIMITS, "ZC_MIGRATE_FAULT": f"waits-in-{phase}",
                           **(environment or {})}) as job:
        sign = pathlib.Path(sign or f"{job.directory}/saved/waits")
        try:
            yield Paused(stage, job, phase, to, via, sign, leaver)
        finally:
            sign.unlink(missing_ok=True)


def killed(stage, phase, whose, says, leaver=1):
    """SIGKILL: whose end is that of the job depends on whether go was said. Those that wait for a rank
    which has ended do not do so until their patience is at its end."""
    environment = None
    if phase in BEFORE_MEETING:     # the shorter of the two decides
        environment = ({"ZC_MIGRATE_PATIENCE": "24", "ZC_MIGRATE_SILENCE": "600"} if whose == "stayer"
                       else {"ZC_MIGRATE_PATIENCE": "600"})
    with paused(stage, phase, leaver=leaver, environment=environment) as move:
        if phase == "spawn" and whose in ("successor", "launcher"):
            move.go_on()
        kill(move.process(whose))
        if whose != "leaver" or phase in BEFORE_MEETING:    # else it is the one that has waited
            move.go_on()
        if phase in BEFORE_GO and whose in ("successor", "launcher"):
            move.goes_on(says)
        else:
            move.cannot_go_on(says)


def stopped(stage, phase, whose, says, leaver=1):
    """SIGSTOP: nothing tells of it, so that each wait has its limit."""
    with paused(stage, phase, leaver=leaver) as move:
        if phase == "spawn" and whose == "successor":
            move.go_on()
        pid, waits = move.process(whose), ()
        # A process at the other end of the line, which is no rank (any more), waits for the stopped one.
        if whose == "leaver" and phase != "spawn":
            waits = (move.successor(),)
        elif whose == "successor" and phase not in BEFORE_GO:
            waits = (move.process("leaver"),)
        stop(pid)
        move.go_on()
        if phase in BEFORE_GO and whose == "successor":
            move.goes_on(says)
        else:
            move.cannot_go_on(says, stopped=(pid,), waits=waits)


def stopped_before_meeting(stage, phase, whose, says, leaver=1):
    """A rank that is stopped while nobody is in a move is one that computes for long: the request is
    refused, and the job goes on when the rank does. What rank 0 is asked has an answer then; its time
    begins when rank 0 knows that the successors stand by, so that it moves."""
    with paused(stage, phase, leaver=leaver, environment={"ZC_MIGRATE_PATIENCE": str(PATIENCE)}) as move:
        pid = move.process(whose)
        stop(pid)
        move.go_on()
        if pid == move.pids[0]:
            time.sleep(PATIENCE + 3)
        else:
            move.asking.join()
        strike(pid, signal.SIGCONT, "RSDZ")
        if phase == "stand-by" and pid == move.pids[0]:
            move.asking.join()
            check(move.answer[0] == 0, f"not moved: {move.answer}", move.job.said()[-SAID:])
            ends_well(stage, move.job, IDENTICAL, timeout=90)
        else:
            move.goes_on(says)


def cut(stage, phase, says):
    """The target host is cut off: the job has no other rank there. Where it cannot go on, all ranks
    end on either side; mpiexec does when the link is back, as it hears of that host's then."""
    with paused(stage, phase, to=H2, hosts=[H1], ranks=2) as move:
        with cut_off(stage, 2):
            move.go_on()
            if phase in BEFORE_GO:
                move.asking.join()
                status = move.job.status()
                check(status is not None, f"it does not answer after {move.answer}",
                      move.job.said()[-SAID:])
                move.job.until_running(safe_points=status["safe_points"] + 10)
            else:
                move.all_end()
        if phase in BEFORE_GO:
            move.goes_on(says)
        else:
            move.cannot_go_on(says)


def no_memory(stage, phase, whose):
    """Its allocations fail from the begin of the phase on, until the request is answered.

    The job goes on, with or without the move, where it is the leaver's to refuse it, or the successor
    needs the memory for its data. Else whether MPI and the libraries below survive that is not libzcm's
    to decide: it goes on, or it ends and says why. A successor misses the memory when it is the rank.
    """
    survives = (whose == "leaver" and phase in BEFORE_GO) or (whose, phase) == ("successor", "data")
    with paused(stage, phase) as move:
        pid = move.process(whose)
        limit_memory(pid)
        move.go_on()
        move.asking.join()
        give_memory(pid)
        code, _, said = move.answer
        if code == 0:               # what it had was enough
            ends_well(stage, move.job, IDENTICAL, timeout=90)
            return "moved"
        if survives or (phase in BEFORE_GO and re.search(NO_MEMORY, said)):
            move.goes_on(NO_MEMORY)
            return f"refused: {said}"
        move.cannot_go_on(f"{NO_MEMORY}|BAD TERMINATION|Fatal error")
        return f"ended: {re.search('.*(' + NO_MEMORY + '|Fatal error).*', move.job.said())[0]}"


def disk_full(stage):
    """By way of the disk, which has room for half of the data."""
    with small_disk(stage, "3m") as place:
        with paused(stage, "data", via="disk", environment={"ZC_MIGRATE_DIR": place},
                    sign=f"{place}/waits") as move:
            move.go_on()
            move.goes_on("No space left on device")
            check(not os.listdir(place), f"files left behind: {os.listdir(place)}")


def declare(name, harm, *how, fast=False, tags=(), open_mpi_says=None):
    """OPEN_MPI_SAYS: what is said there, where a rank's end is that of the job; None: it is not run there."""
    def test(stage):
        phase, whose, says, *more = how
        harm(stage, phase, whose, says if stage.family == "mpich" else open_mpi_says, *more)
    suite.test(name, tags={*tags, *(() if fast else ("long",))})(
        test if open_mpi_says else mpich_only(LAUNCHED)(lambda stage: harm(stage, *how)))


# One of each kind is in the fast lane, but those that wait for several limits.
FAST = {(killed, "rebuild", "successor"), (killed, "link-up", "launcher"),
        (killed, "negotiation", "rank 0"), (killed, "data", "rank 0"),
        (killed, "verdict", "successor"), (stopped, "link-up", "leaver"),
        (no_memory, "data", "leaver"), (no_memory, "data", "successor")}


LATE = r"(rank \d|a rank) did not come to a safe point in time"
# Nobody is in a move: what is left finds the lost rank in MPI, or in a meeting that is begun with it.
UNMET = f"{BY_NAME}|a process died"
# (name, role, leaver) of the ranks.
RANKS = (("leaver", "leaver", 1), ("stayer", "stayer", 1), ("rank_0", "rank 0", 1),
         ("rank_0_that_leaves", "leaver", 0))


def declare_before_meeting(phase):
    name = phase.replace("-", "_")
    for who, role, leaver in RANKS:
        declare(f"{who}_killed_in_{name}", killed, phase, role, UNMET, leaver,
                fast=(killed, phase, role) in FAST)
        declare(f"{who}_stopped_in_{name}", stopped_before_meeting, phase, role, LATE, leaver)
    declare(f"successor_killed_in_{name}", killed, phase, "successor",
            r"the successor (on \S+ )?was killed by signal 9")
    declare(f"successor_stopped_in_{name}", stopped, phase, "successor", "cannot connect to the")
    declare(f"launcher_killed_in_{name}", killed, phase, "launcher",
            r"the successor has ended with its launcher|launcher on \S+ has ended")
    declare(f"leaver_without_memory_in_{name}", no_memory, phase, "leaver")
    declare(f"target_cut_off_in_{name}", cut, phase, "silent for 12 s|no launcher|nothing heard|not .* within",
            tags={"cut"})


def declare_all():
    for phase in BEFORE_MEETING:
        declare_before_meeting(phase)
    for phase in PHASES:
        before_go, name = phase in BEFORE_GO, phase.replace("-", "_")
        ends = BY_NAME if before_go else AFTER_GO
        for who, role, leaver in RANKS[2:]:
            # There may be nobody left to say more: the launcher of the new rank 0 ends it, or all of the
            # host end with rank 0, the successor among them.
            last = ("" if before_go else f"|predecessor was gone before it had said go|{BY_LAUNCHER}"
                    if leaver == 0 else f"|the successor has ended with its launcher|{BY_LAUNCHER}")
            declare(f"{who}_killed_in_{name}", killed, phase, role, ends + last, leaver,
                    fast=(killed, phase, role) in FAST, open_mpi_says=BY_LAUNCHER)
            declare(f"{who}_stopped_in_{name}", stopped, phase, role, ends, leaver)
        for whose in ("leaver", "stayer", "successor", "launcher"):
            killed_says = stopped_says = ends
            if phase == "spawn" and whose == "successor":
                # As far as it has come.
                killed_says = r"the successor (on \S+ )?was killed by signal 9|cannot connect to the"
                stopped_says = r"has not come to zcm_init\(\) after 20 s|cannot connect to the"
            elif before_go and whose == "successor":
                killed_says, stopped_says = "the successor was killed by signal 9", "silent for 12 s"
            elif before_go and whose == "launcher":
                killed_says = r"the successor has ended with its launcher|launcher on \S+ has ended"
            elif whose in ("successor", "launcher"):
                # The ranks of its host end with its launcher: there may be nobody left to say more.
                killed_says = f"{ends}|the successor has ended with its launcher|{BY_LAUNCHER}"
            with_a_launcher_each = BY_LAUNCHER if whose != "launcher" else None
            goes_on = before_go and whose == "successor"
            declare(f"{whose}_killed_in_{name}", killed, phase, whose, killed_says,
                    fast=(killed, phase, whose) in FAST,
                    open_mpi_says=killed_says if goes_on else with_a_launcher_each)
            if whose != "launcher":
                declare(f"{whose}_stopped_in_{name}", stopped, phase, whose, stopped_says,
                        fast=(stopped, phase, whose) in FAST, open_mpi_says=stopped_says if goes_on else None)
            # What a successor does without in its start is not MPI's or ours to decide: exec(2) may fail.
            if whose != "launcher" and (phase, whose) != ("spawn", "successor"):
                declare(f"{whose}_without_memory_in_{name}", no_memory, phase, whose,
                        fast=(no_memory, phase, whose) in FAST)
        declare(f"target_cut_off_in_{name}", cut, phase,
                "silent for 12 s|no launcher|nothing heard|not .* within" if before_go else ends,
                tags={"cut"})
    declare("disk_full_in_data", disk_full, fast=True)


declare_all()
