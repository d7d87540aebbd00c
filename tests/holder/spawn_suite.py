# SPDX-License-Identifier: BSD-3-Clause
"""Worlds that ranks below zc-hold spawn are below zc-hold, too, and move (spawns.c).

The program does nothing for that, nor does who starts it: the launcher is given zc-hold before each command that
is spawned.
"""
import collections
import json
import os
import pathlib
import re
import signal
import subprocess
import time

from testbed import mpi, process
from testbed.outcome import Skip, check
from testbed.suite import Bed, Suite
from tests.holder.hosts import ANSWER_SECONDS, AS_USER, HeldJob, need_user_namespaces
from tests.holder.tools_suite import DONE, Zcctl, drain_words, prepared

HERE = pathlib.Path(__file__).resolve().parent
PARENTS, CHILDREN = 2, 2    # spawns.c
RETRY = 0.3                 # seconds, after "again"
# Hosts are of one kernel here, and UCX would find memory that processes of two of them share. zc-hold keeps it from that.
BY_TCP = {"UCX_TLS": "tcp,self"}
END_SECONDS = 60
AT_ONCE_SECONDS = 5         # the time limit of the netmod is 10


suite = Suite("hold-spawn", "what ranks below zc-hold spawn is below zc-hold, and moves",
              beds=[Bed("three-hosts", tags=frozenset({"fast"}), hosts="3", only="fast"),
                    Bed("nightly", tags=frozenset({"nightly"}), hosts="3")],
              needs=("mpich", "ip"), open=prepared)
SUITES = [suite]


def program_of(setup):
    return pathlib.Path(mpi.build(setup.prefix, [HERE / "spawns.c"], setup.build_dir / "mpi")["spawns"])


class Worlds(HeldJob):
    """The job of spawns.c. WORDS: what it spawns; none: itself."""

    def __init__(self, setup, *words, depth=1, environment=(), **more):
        library = pathlib.Path(setup.prefix) / "lib/libmpi.so"
        if b"ZC_HOLD_SPAWNED" not in library.read_bytes():
            raise Skip("what this MPICH spawns is not below zc-hold")
        super().__init__(setup, [program_of(setup)], ranks=PARENTS, **more)
        self.environment |= dict(environment)
        self.file = self.folder / "job"
        self.program += [str(self.file), str(depth), *(map(str, words) if words else [self.program[0]])]

    def has_begun(self):
        return len(self.rounds()) == PARENTS

    def tell(self, what):
        self.file.with_suffix("." + what).touch()

    def spawn(self, worlds=1, children=CHILDREN):
        """WORLDS of so many CHILDREN are spawned, and all exchange messages. Their ranks, of the first world first:
        [{rank: status}]."""
        first = self.all_statuses()[0]["job"]
        self.tell("spawn")
        number = PARENTS + children * worlds
        self.wait_until("all worlds exchange messages", lambda: len(self.rounds()) == number)
        found = self.worlds()
        check(sum(map(len, found.values())) == number and len(found) == 1 + worlds, f"those that are held: {found}")
        check(all(job == first or job.startswith(first + "+") for job in found), f"the jobs are {list(found)}")
        return [found[job] for job in sorted(found, key=lambda job: job != first)]

    def worlds(self):
        """{job: {rank: what its zc-hold says}}."""
        found = collections.defaultdict(dict)
        for one in self.all_statuses():
            found[one["job"]][int(one["rank"])] = one
        return found

    def rounds(self):
        """{(level, rank): how many lines it has printed of rounds}."""
        words = [line.split() for line in self.running.out]
        return collections.Counter((int(word[0]), int(word[2])) for word in words if word[3:4] == ["round"])

    def ended(self):
        """[(level, rank)] of those that have ended well."""
        words = [line.split() for line in self.running.out]
        return sorted((int(word[0]), int(word[2])) for word in words if word[3:4] == ["ends"])

    def introduced(self):
        """{(level, rank): (folder, arguments)} of those that were spawned."""
        found = [re.fullmatch(r"(\d+) rank (\d+) in (.*) with(.*)\n", line) for line in self.running.out]
        return {(int(each[1]), int(each[2])): (each[3], each[4]) for each in found if each}

    def goes_on(self):
        """Messages go on in all worlds that have not ended."""
        before, ended = self.rounds(), self.ended()
        self.wait_until("all go on", lambda: all(self.rounds()[one] > before[one] + 1 for one in before
                                                 if one not in ended))

    def order_of(self, one, host):
        return [*self._order(host, one["rank"]), "--job", one["job"]]

    def moves(self, one, host):
        """It must succeed, though other processes may be in its way for a time."""
        return self.all_move([(one, host)])[0]

    def all_move(self, pairs):
        """[(RANK, HOST)], asked for at once, until they have; what zc-hold says."""
        end = time.monotonic() + ANSWER_SECONDS
        answers = [None] * len(pairs)
        while None in answers:
            open_ones = [i for i, answer in enumerate(answers) if answer is None]
            requests = [subprocess.Popen(
                self.setup.network.on(1, *self.words(*map(str, self.order_of(*pairs[i])), "--json")), text=True,
                env={**os.environ, **self.environment}, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
                for i in open_ones]
            for i, request in zip(open_ones, requests):
                said = json.loads(request.communicate(timeout=ANSWER_SECONDS)[0])
                one, host = pairs[i]
                check(said["ok"] or said.get("again"), f"no move of rank {one['rank']} of {one['job']} to h{host}: "
                      f"{said.get('why')}", self.said() + self.errors())
                if said["ok"]:
                    self.means.add(said)
                    answers[i] = said
            self.check_alive()
            check(time.monotonic() < end, "moves are in each other's way for ever", self.said() + self.errors())
            time.sleep(RETRY if None in answers else 0)
        return answers

    def refuses(self, one, host, why):
        said = self.ask(*self.order_of(one, host))
        check(not said["ok"] and why in said.get("why", ""), f"it says {said}", self.errors())
        self.check_alive()

    def finish(self, what="over"):
        self.goes_on()
        self.tell(what)
        self.wait(END_SECONDS * self.setup.patience)
        return str(self.means)


def next_host(one, step=1):
    return (int(one["host"].removeprefix("h")) + step - 1) % 3 + 1


def each_moves(job, worlds):
    """One after the other, each to the next host."""
    for world in worlds:
        for one in world.values():
            job.moves(one, next_host(one))
    job.goes_on()


@suite.test("parents-and-children-move", tags={"fast"})
def parents_and_children_move(setup):
    """Each away from where it was started, and on from there."""
    with Worlds(setup) as job:
        each_moves(job, job.spawn())
        each_moves(job, job.worlds().values())
        return job.finish()


@suite.test("worlds-of-several-vcis-move", tags={"fast"})
def worlds_of_several_vcis_move(setup):
    """Messages between two worlds go over several VCIs, of which each has connections of its own."""
    with Worlds(setup, environment={"MPIR_CVAR_CH4_NUM_VCIS": "4"}) as job:
        each_moves(job, job.spawn())
        each_moves(job, job.worlds().values())
        return job.finish()


@suite.test("parents-and-children-move-at-once", tags={"fast"})
def parents_and_children_move_at_once(setup):
    """A parent and a child are asked at the same time: the one goes, and then the other."""
    with Worlds(setup) as job:
        job.spawn()
        for rank in (0, 1, 0):
            worlds = job.worlds().values()
            job.all_move([(world[rank], next_host(world[rank])) for world in worlds])
            job.goes_on()
        return job.finish()


@suite.test("a-rank-that-has-moved-spawns", tags={"fast"})
def a_rank_that_has_moved_spawns(setup):
    """Its connection with the launcher is relayed by the zc-hold that the launcher has started."""
    with Worlds(setup) as job:
        for one in job.all_statuses():
            job.moves(one, next_host(one))
        each_moves(job, job.spawn())
        return job.finish()


@suite.test("children-of-children-move", tags={"fast"})
def children_of_children_move(setup):
    with Worlds(setup, depth=2) as job:
        each_moves(job, job.spawn(worlds=2))
        return job.finish()


@suite.test("worlds-with-a-window-move", tags={"fast"})
def worlds_with_a_window_move(setup):
    """Parents and children put into memory of each other, which UCX reaches again after each move, and draw numbers."""
    with Worlds(setup, "windows", program_of(setup)) as job:
        each_moves(job, job.spawn())
        for rank in (0, 1):
            worlds = job.worlds().values()
            job.all_move([(world[rank], next_host(world[rank])) for world in worlds])
            job.goes_on()
        return job.finish()


@suite.test("worlds-that-have-parted-move", tags={"fast"})
def worlds_that_have_parted_move(setup):
    """Children end before their parents; and the other way round."""
    said = []
    for first, later in ((1, 0), (0, 1)):
        with Worlds(setup) as job:
            worlds = job.spawn()
            job.tell("part")
            job.goes_on()
            each_moves(job, [{0: world[0]} for world in worlds])
            job.tell(f"over-{first}")
            job.wait_until(f"world {first} ends", lambda: len(job.ended()) == 2)    # pylint: disable=W0640
            job.wait_until("they are no more", lambda: len(job.all_statuses()) == 2)    # pylint: disable=W0640
            check({level for level, _ in job.ended()} == {first}, f"{job.ended()} have ended")
            for one in job.all_statuses():
                job.moves(one, next_host(one))
            said.append(job.finish(f"over-{later}"))
    return "; ".join(said)


@suite.test("what-is-spawned-is-as-without-it", tags={"fast"})
def what_is_spawned_is_as_without(setup):
    """The folder that the program is in and that it begins in, its arguments, and several commands at once."""
    places = [setup.scratch / f"{name}-{time.monotonic_ns()}" for name in ("nothing here", "programs")]
    for place in places:
        place.mkdir()
    (places[1] / "spawns").symlink_to(program_of(setup))
    begins = places[0]
    with Worlds(setup, "path", f"{places[0]}:{places[1]}", begins) as job:
        worlds = job.spawn()
        check(set(job.introduced().values()) == {(str(begins), " [two words]")}, f"they are {job.introduced()}")
        each_moves(job, worlds[1:])
        said = job.finish()
    with Worlds(setup, "multiple", program_of(setup)) as job:
        worlds = job.spawn()
        check([job.introduced()[1, rank][1] for rank in range(CHILDREN)] == [" [two words] []", ""],
              f"they are {job.introduced()}")
        each_moves(job, worlds[1:])
        return f"{said}; {job.finish()}"


@suite.test("nothing-is-held-twice", tags={"fast"})
def nothing_is_held_twice(setup):
    """The program itself spawns by zc-hold, or by something that executes that."""
    said = []
    for before in ((), ("env", "A=1")):
        job = Worlds(setup)
        job.program[3:] = [*before, *job.words("--job", "theirs", job.program[0])]
        with job:
            job.tell("spawn")
            job.wait_until("all exchange messages", lambda: len(job.rounds()) == PARENTS + CHILDREN)    # pylint: disable=W0640
            worlds = job.worlds()
            check(sum(map(len, worlds.values())) == PARENTS + CHILDREN, f"those that are held: {worlds}")
            # Of two zc-hold, one within the other, the first counts.
            check(("theirs" in worlds) == (not before), f"the jobs are {list(worlds)}")
            each_moves(job, worlds.values())
            said.append(job.finish())
    return "; ".join(said)


# These stand for zc-hold, and are what puts its own name before what is spawned.
UNPRIVILEGED = """#!/bin/sh
exec {user} bash -c 'exec -a "$0" {hold} "$@"' "$0" "$@"
"""
APART = """#!/bin/bash
XDG_RUNTIME_DIR={runtime}/$(hostname)
mkdir -p -m 700 "$XDG_RUNTIME_DIR"
export XDG_RUNTIME_DIR
exec -a "$0" {hold} "$@"
"""


def become(job, script):
    """The job's zc-hold is SCRIPT."""
    holder = job.folder / "a holder"
    holder.write_text(script, encoding="ascii")
    holder.chmod(0o755)
    job.hold = str(holder)


class Bare(Worlds):
    """The job itself runs without zc-hold."""

    def words(self, *words):
        return list(words) if list(words) == self.program else super().words(*words)


def spawns_in_vain(job, says):
    """It is an error in each parent, of which standard error SAYS the reason; nothing of it is left, and the job
    goes on."""
    job.tell("spawn")
    job.wait_until("each parent has an error",
                   lambda: sum("cannot spawn: Error in spawn call" in line for line in job.running.out) == PARENTS)
    job.wait_until("it is said why", lambda: says in job.errors())
    held = PARENTS * (type(job) is not Bare)
    job.wait_until("only parents are there", lambda: len(job.all_statuses()) == held)
    job.finish()


@suite.test("a-program-that-is-not-there", tags={"fast"})
def a_program_that_is_not_there(setup):
    """With zc-hold it is what it is without."""
    for kind in (Bare, Worlds):
        with kind(setup, "./nothing-there", environment=BY_TCP) as job:
            spawns_in_vain(job, "nothing-there")


@suite.test("one-of-two-programs-is-not-there", tags={"fast"})
def one_of_two_programs(setup):
    """The other one, which its zc-hold has started, is ended."""
    for kind in (Bare, Worlds):
        with kind(setup, "multiple", program_of(setup), "./nothing-there", environment=BY_TCP) as job:
            spawns_in_vain(job, "nothing-there")


# On h1 both are the zc-hold that they stand for. Elsewhere the first one is not there, for what is spawned, and the
# second one finds PLACE empty.
NO_HOLDER = r"""#!/bin/bash
case "$(hostname) $*" in h1\ *) ;; *" --spawned-by "*) exec ./no-holder-there ;; esac
exec -a "$0" {hold} "$@"
"""
EMPTY = r"""#!/bin/bash
case "$(hostname) $*" in
h1\ *) ;;
*" --path "*) exec unshare -m bash -c 'mount -t tmpfs none {place} && exec -a "$0" {hold} "$@"' "$0" "$@" ;;
esac
exec -a "$0" {hold} "$@"
"""


@suite.test("what-one-host-has-not", tags={"fast"})
def what_one_host_has_not(setup):
    """The program, in the folder of the info key path; and zc-hold."""
    place = setup.scratch / f"programs-{time.monotonic_ns()}"
    place.mkdir()
    (place / "spawns").symlink_to(program_of(setup))
    for script, says in ((EMPTY, str(place / "spawns")), (NO_HOLDER, "no-holder-there")):
        job = Worlds(setup, "path", place, setup.scratch, environment=BY_TCP)
        become(job, script.format(place=place, hold=job.hold))
        with job:
            spawns_in_vain(job, says)


@suite.test("what-is-not-to-move-is-not-held", tags={"fast"})
def what_is_not_to_move(setup):
    with Worlds(setup, environment={**BY_TCP, "MPIR_CVAR_CH4_ZC_DETACH": "0"}) as job:
        job.tell("spawn")
        job.wait_until("all worlds exchange messages", lambda: len(job.rounds()) == PARENTS + CHILDREN)
        check(len(job.all_statuses()) == PARENTS, "children are held")
        check(job.errors().count("MPIR_CVAR_CH4_ZC_DETACH=0 is kept") == 1, "it is not said once", job.errors())
        return job.finish()


@suite.test("worlds-move-without-privilege", tags={"fast"})
def worlds_move_without_privilege(setup):
    """As where the launcher is the user's as well, and not root's, as it is here."""
    need_user_namespaces()
    job = Worlds(setup, before=AS_USER)
    become(job, UNPRIVILEGED.format(user=" ".join(AS_USER), hold=job.hold))
    job.before = ()
    with job:
        each_moves(job, job.spawn())
        return job.finish()


@suite.test("says-why-parents-of-others-stay", tags={"fast"})
def says_why_parents_stay(setup):
    """Children that are not held cannot be told that a parent leaves. When they have parted it moves."""
    with Worlds(setup, environment=BY_TCP, hold_options=["--no-spawned"]) as job:
        parents = job.all_statuses()
        job.tell("spawn")
        job.wait_until("all worlds exchange messages", lambda: len(job.rounds()) == PARENTS + CHILDREN)
        check(len(job.all_statuses()) == PARENTS, "children are held")
        began = time.monotonic()
        job.refuses(parents[0], 3, "a process of another world was started without zc-hold, or MPIR_CVAR_CH4_ZC_DETACH=1")
        check(time.monotonic() - began < AT_ONCE_SECONDS * setup.patience, "it says so late")
        job.tell("part")
        job.goes_on()
        job.moves(parents[0], 3)
        job.tell("over-1")
        job.wait_until("the children end", lambda: len(job.ended()) == CHILDREN)
        return job.finish()


def rank_below(holder):
    """Its process number: beside it there may be CRIU."""
    return next(one for one in process.children(holder)
                if pathlib.Path(f"/proc/{one}/exe").resolve().name == "spawns")


@suite.test("other-world-notices-what-ends-while-it-is-away", tags={"fast"})
def other_world_notices(setup):
    """The launcher does not, as if the worlds were of two jobs. The rank is alone in its own: others in it would not
    notice, and those that wait for these."""
    job = Worlds(setup, "one", program_of(setup))
    start = setup.network.command(mpi.find_tool(setup.prefix, "mpiexec"), PARENTS)
    job.launch = lambda words: [*start, "-disable-auto-cleanup", *words]
    with job:
        child = job.spawn(children=1)[1][0]
        job.fault("dump late")
        with subprocess.Popen(setup.network.on(1, *job.words(*map(str, job.order_of(child, next_host(child))))),
                              env={**os.environ, **job.environment}, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL) as request:
            job.wait_for_fault()
            os.kill(rank_below(child["pid"]), signal.SIGKILL)
            request.wait(ANSWER_SECONDS)
        status = job.running.wait(END_SECONDS * setup.patience)
        check(status, "the job waits" if status is None else "the job ends well", job.errors())
        check("Process failed" in job.errors(), "a parent does not say why", job.errors())
        check("would not notice" not in job.errors(), "a process does not watch the one that leaves", job.errors())


# ---- zcctl ----

class Tools(Zcctl, Worlds):
    """Each host has a runtime folder of its own, those of what is spawned there included."""

    def __init__(self, setup, *words, **more):
        super().__init__(setup, *words, **more)
        become(self, APART.format(runtime=self.folder / "runtime", hold=self.hold))

    def words(self, *words):
        return super(Zcctl, self).words(*words)

    def all_statuses(self):
        return self.statuses()

    def on_host(self, name):
        return [one for one in self.all_statuses() if one["host"] == name]


@suite.test("zcctl-moves-worlds", tags={"fast"})
def zcctl_moves_worlds(setup):
    """By the names of their jobs; without a name, that which has spawned the others."""
    with Tools(setup) as job:
        parents, children = job.spawn()
        first, other = parents[0]["job"], children[0]["job"]
        said = job.moves([0], 3, on=2)
        check(said["job"] == first, f"it says {said}")
        words = ["--job", other, *job.move_words([0, 1], 3)]
        status, said, errors = job.zcctl(1, *words)
        check(status == DONE and said["job"] == other and len(said["moved"] + said["already"]) == CHILDREN,
              f"status {status}: {said}", errors)
        status, said, errors = job.zcctl(1, "--job", other, "status", "--key", job.key)
        check(status == DONE and said["size"] == CHILDREN, f"status {status}: {said}", errors)
        job.refuses(["--job", "nobody", *job.move_words([0], 2)], 3, f"there are {first} {other}")
        job.finish()


@suite.test("zcctl-drains-a-host-of-all-worlds", tags={"fast"})
def zcctl_drains_a_host(setup):
    """A world of which no rank is elsewhere goes to the hosts of those that have spawned it."""
    with Tools(setup) as job:
        job.spawn()
        here = job.on_host("h1")
        check(len({one["job"] for one in here}) == 2, f"on h1 there are {here}")
        status, said, errors = job.zcctl(3, *drain_words(job, 1))
        check(status == DONE and len(said["moved"]) == len(here), f"status {status}: {said}", errors + job.errors())
        check(not job.on_host("h1"), f"there are still {job.on_host('h1')}")
        job.goes_on()
        # Now all of the children's are on h2 or h3.
        status, said, errors = job.zcctl(1, *drain_words(job, 2))
        check(status == DONE and said["moved"], f"status {status}: {said}", errors + job.errors())
        check(not job.on_host("h2"), f"there are still {job.on_host('h2')}")
        job.finish()
