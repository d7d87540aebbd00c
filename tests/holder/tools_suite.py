# SPDX-License-Identifier: BSD-3-Clause
"""zcctl moves ranks of unmodified MPI programs below zc-hold, from any host.

Each host has a runtime folder of its own, as where hosts are machines: what zcctl learns of the
ranks of other hosts it learns from zc-hold --listen there.
"""
import contextlib
import json
import os
import pathlib
import signal
import stat
import subprocess
import time

from testbed import network
from testbed.outcome import check
from testbed.suite import Bed, Note, Suite
from tests.detach.suite import find_criu
from tests.holder.hosts import ANSWER_SECONDS, AS_USER, PORT, HeldJob, HeldMpi, has_store, need_user_namespaces
from tests.holder.moves_suite import SHORT, listen_with_room, resident_mib, ring

DONE, REFUSED, USAGE, NO_JOB, BUSY = 0, 1, 2, 3, 4
REQUESTS = 12   # more than a zc-hold keeps waiting
# Stands for CRIU, and is slow to dump.
LATE = """#!/bin/sh
test "$1" != dump || sleep 1
exec {criu} "$@"
"""
APART = """#!/bin/sh
XDG_RUNTIME_DIR={runtime}/$(hostname)
mkdir -p -m 700 "$XDG_RUNTIME_DIR"
export XDG_RUNTIME_DIR
exec "$@"
"""


@contextlib.contextmanager
def prepared(setup):
    setup.criu = find_criu()
    yield setup


suite = Suite("hold-tools", "zcctl moves ranks of unmodified programs below zc-hold",
              beds=[Bed("three-hosts", tags=frozenset({"fast"}), hosts="3", only="fast"),
                    Bed("nightly", tags=frozenset({"nightly"}), hosts="3")],
              needs=("mpich", "ip"), open=prepared)
SUITES = [suite]


def at(host):
    """Where its zc-hold listens."""
    return f"{network.address(host)}:{PORT}"


class Zcctl(HeldJob):
    """Hosts that share no runtime folder, and zcctl on one of them."""

    def __init__(self, setup, *words, **more):
        super().__init__(setup, *words, **more)
        self.apart = self.folder / "apart"
        self.apart.write_text(APART.format(runtime=self.folder / "runtime"), encoding="ascii")
        self.apart.chmod(self.apart.stat().st_mode | stat.S_IXUSR)
        self.tool = self.readable(pathlib.Path(setup.options.library).resolve() / "bin/zcctl")

    def words(self, *words):
        word = super().words(*words)
        return [*self.before, str(self.apart), *word[len(self.before):]]

    def statuses(self):
        """What each origin says, each on its own host."""
        found = []
        for host in range(1, 1 + len(self.setup.network.addresses())):
            done = subprocess.run(self.setup.network.on(host, *self.words("--status", "--json")), text=True,
                                  check=True, env={**os.environ, **self.environment}, capture_output=True)
            found += map(json.loads, done.stdout.splitlines())
        return found

    def where(self):
        """{rank: the name of its host}, as the origins say."""
        return {int(one["rank"]): one["host"] for one in self.statuses()}

    def ready(self):
        """The ranks that could leave, and wait for others."""
        return [int(one["rank"]) for one in self.statuses() if one["ready"]]

    def start(self, host, *words):
        """zcctl on HOST."""
        return subprocess.Popen(self.setup.network.on(host, *self.before, self.apart, self.tool, "--json", *words),
                                env={**os.environ, **self.environment}, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True)

    def end(self, started):
        """(exit status, what it says as JSON, what it has printed as errors)."""
        out, said = started.communicate(timeout=ANSWER_SECONDS * self.patience)
        lines = out.splitlines()
        check(len(lines) <= 1, "more than one line of JSON", out + said)
        return started.returncode, json.loads(lines[0]) if lines else None, said

    def zcctl(self, host, *words):
        return self.end(self.start(host, *words))

    def move_words(self, ranks, to, hosts=(1, 2, 3), more=()):
        return ["move", "--transparent", "--rank", ",".join(map(str, ranks)), "--to", at(to), "--key", self.key,
                "--hosts", ",".join(map(at, hosts)), *more]

    def moves(self, ranks, to, on=1, **more):
        """RANKS to TO, which must succeed; what zcctl on ON says."""
        status, said, errors = self.zcctl(on, *self.move_words(ranks, to, **more))
        check(status == DONE and said["ok"] and not said["stayed"], f"status {status}: {said}",
              errors + self.said() + self.errors())
        for one in said["moved"]:
            check(one["host"] == f"h{to}", f"it is on {one['host']}")
        self.check_alive()
        return said

    def refuses(self, words, status, why, on=1):
        """It ends with STATUS and names WHY; what it says."""
        ended, said, errors = self.zcctl(on, *words)
        check(ended == status and not said["ok"], f"status {ended}, not {status}: {said}", errors)
        check(why in errors, f"it does not say {why!r}", errors)
        self.check_alive()
        return said


class Apart(Zcctl, HeldMpi):
    """The ring."""


def ranks_in(said, key="moved"):
    return [one["rank"] for one in said[key]]


@suite.test("zcctl-moves-ranks", tags={"fast"})
def zcctl_moves_ranks(setup):
    """One that was started on another host; then all, at once; and back."""
    with ring(setup, kind=Apart) as job:
        said = job.moves([1], 3, on=1)
        check(ranks_in(said) == [1] and said["moved"][0]["from"] == "h2", f"it says {said}")
        said = job.moves([2, 1, 0], 2, on=3)
        check(ranks_in(said) == [2, 1, 0] and said["moved"][1]["from"] == "h3", f"it says {said}")
        check(said["ms"] >= max(one["ms"] for one in said["moved"]), f"it says {said}")
        check({one["late_ms"] for one in said["moved"]} == {0}, f"it says {said}")
        again = job.moves([0, 1, 2], 2)
        check(again["already"] == [0, 1, 2] and not again["moved"], f"it says {again}")
        back = job.moves([0], 1, more=["--within", 0.001])
        check(back["moved"][0]["late_ms"] > 0, f"it says {back}")
        rounds = job.finish()
        each = ", ".join(f"{one['ms']:.0f}" for one in said["moved"])
        return Note(f"three ranks asked at once: {said['ms']:.0f} ms, each {each}; {rounds} rounds",
                    three_ms=said["ms"], rounds=rounds)


@suite.test("zcctl-moves-ranks-without-privilege", tags={"fast"})
def zcctl_moves_ranks_without_privilege(setup):
    """It is not in the user namespaces of the ranks that it finds, nor is zc-hold --listen."""
    need_user_namespaces()
    with ring(setup, kind=Apart, before=AS_USER) as job:
        job.moves([1], 3, on=1)
        job.moves([2, 1, 0], 2, on=3)
        job.moves([0], 1)
        rounds = job.finish()
        return Note(f"{rounds} rounds", rounds=rounds)


@suite.test("zcctl-names-what-is-wrong", tags={"fast"})
def zcctl_names_what_is_wrong(setup):
    with ring(setup, kind=Apart) as job:
        job.refuses(job.move_words([7], 2), NO_JOB, "no such rank: 7; job")
        job.refuses(["--job", "nobody", *job.move_words([0], 2)], NO_JOB, "no rank of job nobody is below zc-hold")
        job.refuses(job.move_words([1, 1], 3), REFUSED, "named twice")
        # h2, where rank 1 was started, is not asked.
        job.refuses(job.move_words([1], 3, hosts=[1, 3]), NO_JOB, "is not below zc-hold, or its host was not asked")
        job.end_listener(3)
        job.refuses(job.move_words([1], 3), NO_JOB, f"no zc-hold --listen answers at tcp://{at(3)}")
        job.listen(3)
        said = job.moves([1], 3)
        name = said["job"]
        check(job.moves([0], 3, on=2)["job"] == name, "the job has two names")
        # Checkpoints are libzcm's: zc-hold is not taken for a job of that.
        status, _, errors = job.zcctl(1, "checkpoint")
        check(status == NO_JOB and "no job here" in errors, f"zc-hold is taken for a job ({status})", errors)
        job.finish()


@suite.test("zcctl-finds-no-rank-without-zc-hold", tags={"fast"})
def zcctl_finds_no_rank(setup):
    with ring(setup, kind=Bare) as job:
        job.refuses(job.move_words([1], 3), NO_JOB, "no rank is below zc-hold")
        job.finish()


class Bare(Apart):
    """The job itself runs without zc-hold."""

    def words(self, *words):
        return list(words) if list(words) == self.program else super().words(*words)


def status_words(job, hosts):
    return ["status", "--key", job.key, "--hosts", ",".join(map(at, hosts))]


@suite.test("zcctl-tells-and-chooses-the-way", tags={"fast"})
def zcctl_tells_the_way(setup):
    """The program offers no safe points: status says so, and move needs no option to go the other way."""
    with ring(setup, kind=Apart) as job:
        status, said, errors = job.zcctl(3, *status_words(job, [1, 2]))
        check(status == DONE and said["size"] == 3, f"status {status}: {said}", errors)
        check([(one["rank"], one["host"], one["way"]) for one in said["ranks"]] ==
              [(rank, f"h{rank + 1}", "transparent") for rank in range(3)], f"it says {said}")
        words = [word for word in job.move_words([1], 3) if word != "--transparent"]
        status, moved, errors = job.zcctl(1, "--job", said["job"], *words)
        check(status == DONE and ranks_in(moved) == [1], f"status {status}: {moved}", errors)
        status, said, errors = job.zcctl(1, *status_words(job, [2]))
        check([(one["rank"], one["host"], one["home"]) for one in said["ranks"]] ==
              [(0, "h1", "h1"), (1, "h3", "h2"), (2, "h3", "h3")], f"it says {said}", errors)
        # To be moved by safe points that it does not have.
        status, _, errors = job.zcctl(1, *words, "--via", "memory")
        check(status == NO_JOB and "no job here" in errors, f"status {status}", errors)
        status, _, errors = job.zcctl(1, *words, "--via", "memory", "--within", 10)
        check(status == USAGE and "--within is for ranks below zc-hold" in errors, f"status {status}", errors)
        job.finish()


@suite.test("one-that-is-stopped-holds-up-no-other")
def one_that_is_stopped(setup):
    """More requests wait for it than its socket takes: its host answers for the others all the same."""
    with ring(setup, kind=Apart, ranks=4) as job:
        # Ranks 0 and 3 were started on h1.
        _, said, _ = job.zcctl(1, *status_words(job, [2, 3]))
        stopped = next(one["holder"] for one in said["ranks"] if one["rank"] == 3)
        os.kill(stopped, signal.SIGSTOP)
        try:
            for _ in range(REQUESTS):
                status, said, errors = job.zcctl(2, *status_words(job, [1, 3]))
                check(status == DONE and ranks_in(said, "ranks") == [0, 1, 2], f"status {status}: {said}", errors)
            job.moves([0], 2, on=2)
            job.refuses(job.move_words([3], 2), NO_JOB, "is not below zc-hold, or its host was not asked", on=2)
        finally:
            os.kill(stopped, signal.SIGCONT)
        job.moves([3], 2, on=2)
        job.finish()


@suite.test("those-that-have-moved-stay", tags={"fast"})
def those_that_have_moved_stay(setup):
    """One cannot be dumped, or restored: the others move all the same. The same command ends the work."""
    with ring(setup, kind=Apart) as job:
        job.moves([1], 3)
        # The fault is of the next dump: rank 2 is on h3 already and needs none.
        job.fault("dump fails")
        said = job.refuses(job.move_words([2, 0, 1], 3), REFUSED, "rank 0 is on h1 still: criu dump: status 1")
        check(said["already"] == [2, 1] and ranks_in(said, "stayed") == [0], f"it says {said}")
        job.fault("restore fails")
        said = job.refuses(job.move_words([1, 0, 2], 2), REFUSED, "criu restore: status 1")
        stayed = ranks_in(said, "stayed")
        check(len(stayed) == 1 and sorted(stayed + ranks_in(said)) == [0, 1, 2], f"it says {said}")
        said = job.moves([1, 0, 2], 2)
        check(ranks_in(said) == stayed and sorted(said["already"] + stayed) == [0, 1, 2], f"it says {said}")
        job.finish()


@suite.test("two-groups-at-once-wait-for-each-other", tags={"fast"})
def two_groups_at_once(setup):
    """Of two ranks one stays while the other is away: the other command tries again."""
    with ring(setup, kind=Apart, ranks=2) as job:
        job.fault("dump late")
        first = job.start(1, *job.move_words([0], 3))
        job.wait_for_fault()
        second = job.start(2, *job.move_words([1], 3))
        ends = [job.end(each) for each in (first, second)]
        for status, said, errors in ends:
            check(status == DONE and said["ok"], f"status {status}: {said}", errors + job.errors())
        attempts = [said["moved"][0]["attempts"] for _, said, _ in ends]
        check(sum(attempts) > len(attempts), f"none of them had to wait: {attempts}")
        # With less time than the other rank is away.
        job.fault("dump late")
        first = job.start(1, *job.move_words([0], 1))
        job.wait_for_fault()
        job.refuses(["--timeout", 1, *job.move_words([1], 2)], BUSY, "the rank refuses: ", on=2)
        check(job.end(first)[0] == DONE, "the first does not move")
        job.finish()
        return f"attempts {attempts}"


@suite.test("a-rank-that-another-has-moved-stays-there", tags={"fast"})
def another_has_moved(setup):
    """Two ask for the same rank: the second waits, and what it knew of the rank is no longer so."""
    with ring(setup, kind=Apart) as job:
        job.fault("dump late")
        first = job.start(1, *job.move_words([0], 3))
        job.wait_for_fault()
        said = job.refuses(job.move_words([0], 2), REFUSED, "it is on h3, not on h1 any more", on=2)
        check(ranks_in(said, "stayed") == [0], f"it says {said}")
        check(job.end(first)[0] == DONE, "the first does not move")
        check(job.where()[0] == "h3", f"it is on {job.where()[0]}")
        job.moves([0], 2)
        job.finish()


@suite.test("ranks-are-away-at-once", tags={"fast"})
def ranks_are_away_at_once(setup):
    """Three stand still for a second each, and a fourth stays: not all of them do so one after the other."""
    with ring(setup, kind=Apart, ranks=4) as job:
        job.criu.write_text(LATE.format(criu=setup.criu), encoding="ascii")
        # Ranks 0 and 3 were started on h1.
        said = job.moves([0, 3, 1], 3)
        each = [one["ms"] for one in said["moved"]]
        check(said["ms"] < sum(each), f"one after the other: {said}", job.errors())
        attempts = [one["attempts"] for one in said["moved"]]
        check(attempts == [1, 1, 1], f"one was to come back by one that leaves as well: {attempts}", job.errors())
        alone = job.moves([0, 3, 1], 2, more=["--at-once", 1])
        check(alone["ms"] >= sum(one["ms"] for one in alone["moved"]), f"at once: {alone}")
        rounds = job.finish()
        return Note(f"{said['ms']:.0f} ms, each {', '.join(f'{ms:.0f}' for ms in each)}; {rounds} rounds",
                    rounds=rounds)


IN_SMALL_FOLDER = """#!/bin/sh
test "$(hostname)" != h1 || exec nsenter --mount --target {keeper} -- "$@"
exec "$@"
"""


class SmallFolder(Apart):
    """On h1 the folder for images has room for one."""

    def __init__(self, setup, words, mib, **more):
        super().__init__(setup, words, mib=mib, **more)
        words = f"mount -t tmpfs -o size={mib * 7 // 4}m tmpfs /dev/shm && echo && exec cat"
        self.keeper = subprocess.Popen(setup.network.on(1, "unshare", "--mount", "sh", "-c", words),
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.keeper.stdout.readline()
        self.enter = self.folder / "enter"
        self.enter.write_text(IN_SMALL_FOLDER.format(keeper=self.keeper.pid), encoding="ascii")
        self.enter.chmod(self.enter.stat().st_mode | stat.S_IXUSR)

    def __exit__(self, *exception):
        super().__exit__(*exception)
        self.keeper.communicate()

    def _by_mpiexec(self, words):
        return super()._by_mpiexec([str(self.enter), *words])


@suite.test("those-whose-images-have-no-room-leave-later", tags={"fast"})
def those_whose_images_have_no_room(setup):
    """Ranks 0 and 3 of h1, which are told to leave at once: one waits until the other's image is gone."""
    with ring(setup, kind=SmallFolder, ranks=4, mib=128) as job:
        said = job.moves([0, 3], 3)
        job.finish()
        return f"{said['ms']:.0f} ms, each {', '.join(str(round(one['ms'])) for one in said['moved'])}"


@suite.test("those-that-find-no-room-come-later", tags={"fast"})
def those_that_find_no_room_come_later(setup):
    """There is room for one that comes, as long as it comes, and for all that are there."""
    with ring(setup, kind=Apart, ranks=4, mib=256) as job:
        mib = resident_mib(job, 0)
        listen_with_room(job, 7 * mib // 2)
        said = job.moves([0, 3], 2)
        attempts = [one["attempts"] for one in said["moved"]]
        check(sorted(attempts)[0] == 1 and sum(attempts) > 2, f"none of them had to wait: {attempts}")
        job.finish()
        return f"attempts {attempts}"


# ---- ranks that leave together ----

@contextlib.contextmanager
def one_held_up(job, ranks, on=1, more=()):
    """RANKS are to go to h3 together, and one cannot be copied on: (the request, a rank that waits for it, the holder
    that does not take its memory)."""
    before = job.holders(lambda pid: True)
    started = job.start(on, *job.move_words(ranks, 3, more=more))
    holder = None
    try:
        holder = job.wait_for_holder(lambda pid: pid not in before and has_store(pid))
        os.kill(holder, signal.SIGSTOP)
        job.wait_until("a rank is ready", job.ready)
        yield started, job.ready()[0], holder
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(holder, signal.SIGCONT)
        started.kill()      # or its end would be waited for
        started.communicate()


@suite.test("a-group-leaves-together", tags={"fast"})
def a_group_leaves_together(setup):
    """The memory of one comes late: the other runs meanwhile, and what it writes is copied."""
    with ring(setup, kind=Apart, ranks=4, mib=128) as job:
        with one_held_up(job, [0, 1]) as (started, ready, holder):
            time.sleep(1)
            check(job.ready() == [ready], "it does not wait")
            os.kill(holder, signal.SIGCONT)
            status, said, errors = job.end(started)
        check(status == DONE and sorted(ranks_in(said)) == [0, 1], f"status {status}: {said}", errors + job.errors())
        waited = {one["rank"]: one["phases_ms"]["wait"] for one in said["moved"]}
        check(waited[ready] > 1000, f"rank {ready} has not waited: {waited}")
        said = job.moves([0, 1], 2, on=3)       # of which no holder is an origin
        check(min(one["phases_ms"]["wait"] for one in said["moved"]) > 0, f"one has not waited: {said}")
        # One that is alone waits for nobody; with --wait 0 none does.
        check(job.moves([0], 3)["moved"][0]["phases_ms"]["wait"] == 0, "it waits for itself")
        said = job.moves([0, 1, 3], 1, more=["--wait", 0])
        check({one["phases_ms"]["wait"] for one in said["moved"]} == {0}, f"it waits: {said}")
        job.finish()
        return f"waited for {waited[ready]:.0f} ms"


@suite.test("those-that-wait-leave-without-one-that-fails", tags={"fast"})
def those_that_wait_leave_without(setup):
    """Its holder is killed before its memory is there."""
    with ring(setup, kind=Apart, ranks=4, mib=128, patience=SHORT) as job:
        with one_held_up(job, [0, 1]) as (started, ready, holder):
            os.kill(holder, signal.SIGKILL)
            status, said, errors = job.end(started)
        check(status == REFUSED and ranks_in(said) == [ready], f"status {status}: {said}", errors)
        check(ranks_in(said, "stayed") == [1 - ready], f"it says {said}")
        job.moves([0, 1], 3)
        job.finish()


@suite.test("those-that-wait-leave-without-what-asked", tags={"fast"})
def those_that_wait_leave_without_what_asked(setup):
    """zcctl is killed on the host of both ranks, or on another."""
    with ring(setup, kind=Apart, ranks=4, mib=128) as job:
        for on in (1, 2):
            with one_held_up(job, [0, 3], on=on) as (started, ready, _):
                started.kill()
                job.wait_until(f"rank {ready} moves", lambda: job.where()[ready] == "h3")   # pylint: disable=W0640
                check(job.where()[3 - ready] == "h1", "the other one has moved, too")
            job.wait_until("the other one moves", lambda: list(job.where().values()).count("h1") == 0)
            job.moves([0, 3], 1)
        job.finish()


@suite.test("those-that-wait-leave-when-the-time-is-up", tags={"fast"})
def those_that_wait_leave_in_time(setup):
    with ring(setup, kind=Apart, ranks=4, mib=128) as job:
        with one_held_up(job, [0, 3], more=["--wait", 2]) as (started, ready, holder):
            job.wait_until(f"rank {ready} moves", lambda: job.where()[ready] == "h3")
            check(job.where()[3 - ready] == "h1", "the other one has moved, too")
            os.kill(holder, signal.SIGCONT)
            status, said, errors = job.end(started)
        check(status == DONE and sorted(ranks_in(said)) == [0, 3], f"status {status}: {said}", errors)
        job.finish()


# ---- a host is emptied ----

def drain_words(job, host, *words, hosts=(1, 2, 3)):
    return ["drain", at(host), "--key", job.key, "--hosts", ",".join(map(at, hosts)), *words]


def places(job, on):
    """{rank: the name of its host}, of those that were started on host ON."""
    done = subprocess.run(job.setup.network.on(on, *job.words("--status", "--json")), check=True, text=True,
                          env={**os.environ, **job.environment}, capture_output=True)
    ranks = [json.loads(line) for line in done.stdout.splitlines()]
    return {int(each["rank"]): each["host"] for each in ranks}


@suite.test("zcctl-drains-a-host", tags={"fast"})
def zcctl_drains_a_host(setup):
    """Two of four ranks were started there; one came. Each other host gets its part; nothing is left."""
    with ring(setup, kind=Apart, ranks=4) as job:
        job.moves([1], 1)
        status, said, errors = job.zcctl(3, *drain_words(job, 1))
        check(status == DONE and said["ok"], f"status {status}: {said}", errors + job.said())
        check(sorted(ranks_in(said)) == [0, 1, 3], f"it says {said}")
        went = [one["host"] for one in said["moved"]]
        check(sorted(went) in (["h2", "h2", "h3"], ["h2", "h3", "h3"]), f"they went to {went}")
        now = {**places(job, 1), **places(job, 2), **places(job, 3)}
        check(len(now) == 4 and "h1" not in now.values(), f"they are at {now}")
        status, said, _ = job.zcctl(3, *drain_words(job, 1))
        check(status == DONE and not said["moved"] and not said["stayed"], f"status {status}: {said}")
        # To a host that is named.
        status, said, errors = job.zcctl(2, *drain_words(job, 2, "--to", at(1)))
        check(status == DONE and {one["host"] for one in said["moved"]} == {"h1"}, f"status {status}: {said}", errors)
        job.check_alive()
        rounds = job.finish()
        return f"{rounds} rounds"


@suite.test("zcctl-says-what-stays-on-a-host", tags={"fast"})
def zcctl_says_what_stays(setup):
    with ring(setup, kind=Apart, ranks=4) as job:
        # One of two cannot be dumped: the other goes all the same.
        job.fault("dump fails")
        said = job.refuses(drain_words(job, 1), REFUSED, "is on h1 still: criu dump: status 1", on=2)
        check(len(said["moved"]) == 1 and len(said["stayed"]) == 1, f"it says {said}")
        # One host cannot restore it: the next does.
        job.fault("restore fails")
        status, said, errors = job.zcctl(2, *drain_words(job, 1))
        check(status == DONE and len(said["moved"]) == 1, f"status {status}: {said}", errors + job.said())
        # Nowhere to go.
        job.end_listener(1)
        job.end_listener(2)
        said = job.refuses(drain_words(job, 3), REFUSED, "no zc-hold --listen answers on another host of the job")
        check(not said["moved"] and at(2) in " ".join(said["silent"]), f"it says {said}")
        job.refuses(["drain", "h9", "--key", job.key, "--hosts", at(3)], NO_JOB, "no job here has a rank on h9")
        job.finish()
