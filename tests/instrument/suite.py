# SPDX-License-Identifier: BSD-3-Clause
"""Programs that zcm-instrument(1) has put a safe point into: moved, they end as they do unmoved.

Their sources (programs/) know nothing of libzcm. What was registered is judged by the results, bit by
bit, and by zcm-run --verify.
"""
import contextlib
import pathlib
import re

from testbed.instrumented import NPB, PACED, PROGRAMS, compiled, instrumented, tool_of
from testbed.migration import H1, H2, SAID, TOP, Job, Stage
from testbed.outcome import Skip, check
from testbed.suite import Bed, Suite
from tests.migrate.jobs import finishes, hosts_of, moved, restart, saved


@contextlib.contextmanager
def open_stage(setup):
    if not setup.network.between_hosts:
        raise Skip(setup.network.why or "ranks move between two hosts")
    stage = Stage(setup.prefix, setup.network, setup.options.library, setup.build_dir, [],
                  scratch=setup.scratch, family=setup.family, netmod=setup.options.netmod,
                  environment=setup.environment, patience=setup.patience)
    tool_of(stage)
    yield stage


suite = Suite("instrument", "programs that zcm-instrument has changed move between two hosts",
              beds=[Bed("two-hosts", tags=frozenset({"fast"}), hosts="2"),
                    Bed("long", tags=frozenset({"nightly"}), hosts="2", only="long", long=True)],
              needs=("mpich",), open=open_stage)


EXAMPLES = {"particles": ["particles.c"], "spectrum": ["spectrum.c", "transform.c"]}


def sources_of(name):
    if name in EXAMPLES:
        return [TOP / "examples" / source for source in EXAMPLES[name]]
    if name in NPB:
        return NPB[name].sources
    folder = PROGRAMS / name
    return sorted(folder.glob("*.c")) if folder.is_dir() else [PROGRAMS / f"{name}.c"]


def plain(stage, name):
    return compiled(stage, pathlib.Path(stage.new_directory()), sources_of(name))


def with_safe_point(stage, name, *options, paced=True, replaced=None):
    return instrumented(stage, sources_of(name), *options, linked=[PACED] * paced, replaced=replaced)


def result(said):
    found = re.findall(r"^.*checksum [0-9a-f]{16}$", said, re.MULTILINE)
    check(len(found) == 1, f"{len(found)} results instead of one", said[-SAID:])
    return found[0]


def result_of_plain(stage, name, arguments=(), ranks=4):
    with Job(stage, plain(stage, name), *arguments, ranks=ranks, migrate=False) as job:
        finishes(stage, job, "checksum")
        return result(job.said())


@contextlib.contextmanager
def running(stage, program, arguments, **how):
    """A job of PROGRAM, and the function that lets it make the rest of its steps unpaced."""
    until = pathlib.Path(stage.new_directory()) / "until"
    with Job(stage, program, *arguments, environment={"ZC_PACED_UNTIL": str(until)}, **how) as job:
        job.until_running()
        yield job, until.touch


def ends_the_same(stage, name, arguments=(), options=()):
    """NAME, moved rank by rank, several ranks at once, by way of the disk, and from a checkpoint."""
    unmoved = result_of_plain(stage, name, arguments)
    program = with_safe_point(stage, name, *options)
    with running(stage, program, arguments) as (job, go_on):
        moved(job, [1], H1)
        moved(job, [0], H2)
        moved(job, [1, 2], H2)
        saved(job)
        place = job.directory + "/saved"
        moved(job, [0], H1, via="disk")
        moved(job, [3, 1], H1)
        check(hosts_of(job) == ["h1", "h1", "h2", "h1"], f"hosts {hosts_of(job)}")
        points = job.status()["safe_points"]
        go_on()
        finishes(stage, job, "checksum", timeout=120)
        check(result(job.said()) == unmoved, f"not '{unmoved}'", job.said()[-SAID:])
    with running(stage, program, arguments, launcher=restart(stage, place)) as (job, go_on):
        moved(job, [3], H1)
        go_on()
        finishes(stage, job, "checksum", timeout=120)
        check(result(job.said()) == unmoved, f"not '{unmoved}', from the checkpoint",
              job.said()[-SAID:])
    return f"moved in the first {points} safe points"


@suite.test()
def wave_ends_the_same(stage):
    """One source; three arrays that take turns."""
    return ends_the_same(stage, "wave")


@suite.test()
def conjugate_gradients_end_the_same(stage):
    """The safe point is in a function that main() calls in a loop: variables of both frames."""
    return ends_the_same(stage, "cg")


@suite.test()
def molecular_dynamics_end_the_same(stage):
    """Arrays that grow by realloc() in structs; nonblocking exchange."""
    return ends_the_same(stage, "md")


@suite.test()
def an_adaptive_mesh_ends_the_same(stage):
    """Trees whose cells are allocated and freed all the time, and a list through their leaves."""
    return ends_the_same(stage, "tree")


@suite.test()
def a_work_queue_ends_the_same(stage):
    """A list with a pointer to its last link, pointers to functions, ranks that do unlike things."""
    return ends_the_same(stage, "queue")


@suite.test()
def multigrid_ends_the_same(stage):
    """Arrays of arrays at several levels, requests in structs."""
    return ends_the_same(stage, "multigrid")


@suite.test()
def a_fourier_transform_ends_the_same(stage):
    """Static arrays of complex numbers, a derived type, MPI_Alltoall."""
    return ends_the_same(stage, "fourier")


@suite.test()
def shallow_water_ends_the_same(stage):
    """Ten sources: a list whose type one of them keeps to itself, neighbours' collective calls."""
    return ends_the_same(stage, "shallow", ("run.t_end=600",))


@suite.test()
def relaxation_ends_the_same(stage):
    """What is behind a struct in its block, arrays that are handed down, requests that a function makes."""
    return ends_the_same(stage, "relax", ("a title",))


@suite.test()
def the_examples_end_the_same(stage):
    """examples/particles.c and spectrum.c with its library, which are ported by hand, too."""
    ends_the_same(stage, "particles", (300, 400))
    return ends_the_same(stage, "spectrum", (64, 400))


def ends_as_one_process(stage, name, arguments, *options):
    """NAME, moved three times, as on one process that does not move: its digest tells no difference."""
    alone = result_of_plain(stage, name, arguments, ranks=1)
    check(", verified," in alone, alone)
    program = with_safe_point(stage, name, *options)
    with running(stage, program, arguments) as (job, go_on):
        moved(job, [1], H1)
        moved(job, [0, 2], H2)
        moved(job, [0, 3], H1, via="disk")
        points = job.status()["safe_points"]
        go_on()
        finishes(stage, job, "checksum", timeout=120)
        ended = result(job.said())
        check(", verified," in ended and ended.split()[-1] == alone.split()[-1],
              f"'{ended}', alone '{alone}'", job.said()[-SAID:])
    return f"moved in the first {points} safe points"


@suite.test()
def block_tridiagonal_ends_the_same(stage):
    """BT. The safe point is in a sweep, two calls below main()'s loop: with what it has allocated."""
    return ends_as_one_process(stage, "bt", (12, 200))


@suite.test()
def pentadiagonal_ends_the_same(stage):
    """SP. What a step allocates is freed before the safe point, and no part of the state."""
    return ends_as_one_process(stage, "sp", (12, 300))


@suite.test()
def wavefronts_end_the_same(stage):
    """LU. The safe point is between two planes of a pipeline."""
    return ends_as_one_process(stage, "lu", (12, 300))


@suite.test()
def wavefronts_end_the_same_at_their_steps(stage):
    """LU, with the loop named that has least to save."""
    return ends_as_one_process(stage, "lu", (12, 300), "--loop", NPB["lu"].loop())


@suite.test()
def sorted_integers_end_the_same(stage):
    """IS. Blocks that are filled anew in each step."""
    return ends_as_one_process(stage, "is", (1 << 16, 300))


@suite.test()
def random_numbers_end_the_same(stage):
    """EP. Its loop does not communicate, so it has to be named."""
    return ends_as_one_process(stage, "ep", (1200,), "--loop", NPB["ep"].loop())


def verified(stage, program, *arguments):
    """(exit status, what was said) of PROGRAM with a move every 15 safe points, and with none."""
    launcher = [str(stage.library / "bin/zcm-run"), "--verify", "--verify-every", "15"]
    with Job(stage, program, *arguments, launcher=launcher) as job:
        return job.wait(240 * stage.patience), job.said()


def verify_is_content(stage, name, *arguments):
    status, said = verified(stage, with_safe_point(stage, name, paced=False), *arguments)
    moves = re.search(r"verify: (\d+) moves", said)
    check(status == 0 and moves and int(moves[1]) > 4, f"{name}: status {status}", said[-SAID:])


@suite.test()
def verify_finds_nothing(stage):
    for name in ("wave", "tree"):
        verify_is_content(stage, name)


@suite.test(tags={"long"})
def verify_finds_nothing_in_the_others(stage):
    for name in ("cg", "md", "queue", "multigrid", "fourier"):
        verify_is_content(stage, name)


@suite.test(tags={"long"})
def verify_finds_nothing_in_those_of_npb(stage):
    for name, *arguments in (["bt", 12, 20], ["sp", 12, 120], ["lu", 12, 10], ["is", 1 << 16, 120]):
        verify_is_content(stage, name, *arguments)


@suite.test()
def verify_finds_what_is_taken_out(stage):
    """Were the angle of the spot not restored, the tests would see it: its place is another's here."""
    program = with_safe_point(stage, "tree", paced=False,
                              replaced=("&spot_angle, sizeof spot_angle",
                                        "calloc(1, sizeof(double)), sizeof(double)"))
    status, said = verified(stage, program)
    check(status == 4 and "differs" in said, f"status {status}", said[-SAID:])


SUITES = [suite]
