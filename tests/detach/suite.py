# SPDX-License-Identifier: BSD-3-Clause
"""A process destroys all it has of UCX under traffic, and goes on with the same peers: where it is, or, by
CRIU, on another host (docs/detached-ranks.md).

Plain UCX, no MPI: what the netmod would have to do, without it. Three processes send each other messages all
the time; every byte, and the order, is checked, and the standard streams and the connection to the launcher
are, too. CRIU is built by tests/detach/build-criu; where it is not there, or the kernel refuses what it
needs, its tests are skipped.
"""
import contextlib
import functools
import os
import pathlib
import subprocess
import time

from testbed import mpi, network
from testbed.outcome import EXIT_SKIPPED, Error, Fail, Skip, check
from testbed.statistics import CVAR
from testbed.suite import Bed, Note, Suite
from tests.detach.job import Job
from tests.detach.moves import SHIM, Holder, Moving

HERE = pathlib.Path(__file__).resolve().parent
SIZE = 3
MOVER = 1       # its rank; where it comes from is h1
PORT = 7500
FLAGS = ["-std=gnu11", "-O2", "-g", "-Wall", "-Wextra", "-Werror"]
# Of a process that leaves and comes back: what UCX keeps for good each time.
HEAP_KIB_PER_CYCLE = 1
CYCLE_SECONDS = 2       # on a busy machine
LANDING_THREAD = CVAR + "LANDING_THREAD"


def add_options(parser):
    parser.add_argument("--cycles", type=int, help="how often a process leaves UCX (default: of the bed)")
    parser.add_argument("--moves", type=int, help="how often it is moved by CRIU (default: of the bed)")


def build(prefix, directory):
    """Compile detached_rank, with the libzclane of PREFIX, if its sources are newer."""
    directory.mkdir(parents=True, exist_ok=True)
    program = directory / "detached_rank"
    sources = sorted(HERE.glob("*.c"))
    newest = max(file.stat().st_mtime for file in [*sources, *HERE.glob("*.h")])
    if not program.exists() or program.stat().st_mtime < newest:
        ucx = subprocess.run(["pkg-config", "--cflags", "--libs", "ucx"], capture_output=True, text=True,
                             check=True).stdout.split()
        done = subprocess.run(
            ["cc", *FLAGS, "-o", program, *sources, f"-I{prefix}/include", f"-L{prefix}/lib",
             f"-Wl,-rpath,{prefix}/lib", "-lzclane", *ucx, "-lpthread"],
            capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Error(f"cannot build detached_rank:\n{done.stderr}")
    return program


@contextlib.contextmanager
def with_program(setup):
    setup.program = build(setup.prefix, setup.build_dir)
    yield setup


suite = Suite("detach", "a process leaves UCX under traffic, and comes back, here or on another host",
              beds=[Bed("three-hosts", tags=frozenset({"fast"}), hosts="3", only="fast",
                        options={"cycles": 30, "moves": 3}),
                    Bed("long", tags=frozenset({"nightly"}), hosts="3",
                        options={"cycles": 1000, "moves": 100})],
              needs=("mpich", "ip", "pkg-config"), open=with_program, options=add_options)
SUITES = [suite]


def host_of(rank):
    """Where a rank begins."""
    return {0: 3, MOVER: 1, 2: 2}[rank]


def growth(result, name):
    """From the first measurement to the last."""
    return result[name][-1] - result[name][0]


def summary(result):
    """Of the process that left: what a reader wants to see."""
    text = ", ".join(f"{name} {value:.1f} ms" for name, value in result["ms"].items())
    return f"{result['cycles']} times, {result['received']} messages; {text}; heap " \
        f"{growth(result, 'heap_kib'):+d} KiB, resident {growth(result, 'rss_kib'):+d} KiB"


def leave_and_come_back(setup, options=(), lanes=False, near=False):
    """NEAR: all on one host, over whatever UCX finds there, shared memory above all."""
    cycles = setup.options.cycles
    environment = {**setup.environment, **({"DETACH_NEAR": "1"} if near else setup.network.environment())}

    def command(rank, descriptor):
        words = [setup.program, rank, SIZE, descriptor, *options,
                 *(["--cycles", cycles] if rank == MOVER else [])]
        return words if near else setup.network.on(host_of(rank), *words)

    with Job(SIZE, command, environment, setup.scratch) as job:
        results = job.wait((30 + CYCLE_SECONDS * cycles) * setup.patience)
    mover = results[MOVER]
    check(mover["cycles"] == mover["incarnation"] == cycles, f"{mover['cycles']} cycles, not {cycles}")
    if cycles >= 100:       # fewer are still warming up
        for name in ("threads", "descriptors"):
            check(growth(mover, name) == 0, f"{name}: {mover[name]}")
        check(growth(mover, "heap_kib") <= HEAP_KIB_PER_CYCLE * cycles, f"memory has grown: {mover['heap_kib']} KiB")
    check(not near or mover["shared"] > 0, "no memory was shared")
    check(not lanes or all(result["by_lane"] for result in results), "nothing came by a lane")
    return Note(summary(mover), results=results)


@suite.test("leaves-and-comes-back", tags={"fast"})
def leaves_and_comes_back(setup):
    return leave_and_come_back(setup)


@suite.test("leaves-shared-memory")
def leaves_shared_memory(setup):
    return leave_and_come_back(setup, near=True)


@suite.test("leaves-with-a-lane-s-thread")
def leaves_with_a_lanes_thread(setup):
    return leave_and_come_back(setup, ["--lanes", "thread"], lanes=True)


@suite.test("leaves-with-a-lane-s-ring", tags={"fast"})
def leaves_with_a_lanes_ring(setup):
    return leave_and_come_back(setup, ["--lanes", "uring"], lanes=True)


# Peers keep what they have of an endpoint without error handling until their workers are destroyed.
@suite.test("leaves-gently")
def leaves_gently(setup):
    return leave_and_come_back(setup, ["--gently"])


# ---- on another host ----

@functools.cache
def find_criu():
    """The program, which is built if it is not there, or Skip with the reason."""
    program = os.environ.get("ZC_CRIU")
    if not program:
        done = subprocess.run([HERE / "build-criu"], capture_output=True, text=True, check=False)
        if done.returncode == EXIT_SKIPPED:
            raise Skip(done.stderr.strip())
        if done.returncode != 0:
            raise Fail("CRIU does not build", done.stderr)
        program = subprocess.run([HERE / "build-criu", "--print-path"], capture_output=True, text=True,
                                 check=True).stdout.strip()
    if os.getuid() != 0 or os.environ.get("ZC_HOSTS_PRIVATE"):
        raise Skip("CRIU needs root")
    done = subprocess.run([program, "check"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Skip(f"criu check: {(done.stderr or done.stdout).strip().splitlines()[-1]}")
    return program


@contextlib.contextmanager
def moving_job(setup, options=(), of_all=()):
    """A job whose rank MOVER has an origin on h1 and a holder there; (job, Moving). OPTIONS: the mover's."""
    criu = find_criu()
    environment = {**os.environ, **setup.environment, **setup.network.environment()}
    moving = Moving(setup.network, criu, setup.scratch, PORT, environment)

    def command(rank, descriptor):
        if rank == MOVER:
            return setup.network.on(1, "python3", SHIM, "origin", descriptor, network.address(1), PORT)
        return setup.network.on(host_of(rank), setup.program, rank, SIZE, descriptor, *of_all)

    def start():
        moving.start([setup.program, MOVER, SIZE, "{socket}", "--orders", "{orders},{notices}",
                      *options, *of_all])

    # UCX reports a copy that has gone, by default on standard output, which is checked.
    of_peers = {"UCX_LOG_FILE": "stderr", **setup.environment, **setup.network.environment()}
    try:
        with Job(SIZE, command, of_peers, setup.scratch, begun=start) as job:
            try:
                yield job, moving
            except Fail as failure:     # of a holder, perhaps because a rank has ended
                if job.said() not in failure.output:
                    failure.output += job.said()
                raise
    finally:
        moving.holder.end()


def finish(setup, job, moving, refusals=0, lanes=False):
    """The end of the job, and what is to be said of it. REFUSALS: of stale copies, by each other rank."""
    time.sleep(1)       # it runs, too
    moving.holder("order", line="end", notice=None)
    results = job.wait(60 * setup.patience)
    mover = results[MOVER]
    check(mover["cycles"] == mover["incarnation"] == moving.incarnation,
          f"incarnation {mover['incarnation']}, not {moving.incarnation}")
    check(mover["pings"] > 0 and mover["lines"] > 0, "nothing came by the standard streams")
    refused = [result["refusals"] for rank, result in enumerate(results) if rank != MOVER]
    check(refused == [refusals] * (SIZE - 1), f"stale copies were refused {refused} times, not {refusals}")
    check(not lanes or all(result["by_lane"] for result in results), "nothing came by a lane")
    means = moving.steps.means()
    text = f"{moving.steps.moves} moves" + (f", {moving.steps.thaws} abandoned" if moving.steps.thaws else "")
    return Note(f"{text}, {mover['received']} messages, {mover['lines']} lines, {mover['pings']} questions; "
                + ", ".join(f"{name.removesuffix('_ms')} {value:.0f} ms" for name, value in means.items()
                            if name.endswith("_ms"))
                + f", image {means['image_bytes'] / 2 ** 20:.1f} MiB", results=results, means=means)


@suite.test("moves-between-hosts", tags={"fast"})
def moves_between_hosts(setup):
    with moving_job(setup) as (job, moving):
        for move in range(setup.options.moves):
            moving.move(2 - move % 2)
            job.check_alive()
        return finish(setup, job, moving)


@suite.test("moves-between-hosts-with-lanes")
def moves_between_hosts_with_lanes(setup):
    """Of which each has a ring of io_uring, which CRIU cannot carry."""
    with moving_job(setup, of_all=["--lanes", "uring"]) as (job, moving):
        for move in range(max(2, setup.options.moves // 10)):
            moving.move(2 - move % 2)
            job.check_alive()
        return finish(setup, job, moving, lanes=True)


@suite.test("goes-on-where-it-was")
def goes_on_where_it_was(setup):
    """The target fails after it has restored the rank."""
    with moving_job(setup) as (job, moving):
        for _ in range(max(2, setup.options.moves // 10)):
            moving.thaw(2)
            moving.move(2)
            moving.thaw(1)
            moving.move(1)
            job.check_alive()
        return finish(setup, job, moving)


@suite.test("moves-after-mpi-finalize")
def moves_after_mpi_finalize(setup):
    """What is left of MPI in a process that has taken the netmod down can be moved."""
    criu = find_criu()
    programs = mpi.build(setup.prefix, [HERE / "mpi/finalized.c"], setup.build_dir / "mpi",
                         flags=[str(HERE / "census.c"), f"-I{HERE}"])
    environment = {**os.environ, **setup.environment, **setup.network.environment(), LANDING_THREAD: "1"}
    holders = [Holder(setup.network, host, PORT, environment) for host in (1, 2)]
    image = setup.scratch / "finalized"
    image.mkdir()
    try:
        source, target = holders
        source("start", program=[programs["finalized"], "{orders},{notices}"])
        source("order", line="LEAVE", notice="DETACHED")
        answer = source("dump", criu=criu, directory=str(image))
        source("drop")
        target("restore", criu=criu, directory=str(image))
        target("order", line="BIND 1", notice="BOUND 1")
        return Note(f"image {answer['bytes'] / 2 ** 20:.1f} MiB", bytes=answer["bytes"])
    finally:
        for holder in holders:
            holder.end()


@suite.test("attached-rank-is-no-image")
def attached_rank_is_no_image(setup):
    """CRIU refuses a rank that has not left, which shows that leaving is what the others need."""
    with moving_job(setup) as (job, moving):
        said = moving.dump_attached()
        check("TCP" in said.upper(), "CRIU refuses it, but for no connection", said)
        moving.move(2)
        return finish(setup, job, moving)


def refusal(rank):
    """What a stale copy says when RANK has refused it."""
    return f"detached_rank: rank {rank} refuses this process: it is elsewhere"


def check_refused(lines):
    """LINES: what a stale copy and its holder say. It leaves in order when all peers have refused it."""
    said = list(lines)
    check(sorted(said[:-2]) == [refusal(rank) for rank in range(SIZE) if rank != MOVER] and
          said[-2:] == ["shim: the rank notes REFUSED by all peers", "shim: the rank has ended, with 3"],
          "not all peers have refused a stale copy, or it has not left in order", "\n".join([*said, ""]))


def woken_and_refused(setup, refusals, **how):
    """A stale copy is woken in the way of HOW, and the job goes on."""
    with moving_job(setup) as (job, moving):
        image = moving.move(2, keep=True)
        check_refused(moving.wake_stale_copy(image, 1, **how))
        moving.move(1)
        return finish(setup, job, moving, refusals=refusals)


@suite.test("stale-copy-is-refused", tags={"fast"})
def stale_copy_is_refused(setup):
    return woken_and_refused(setup, 1)


@suite.test("stale-copy-awaits-all-peers", tags={"fast"})
def stale_copy_awaits_all_peers(setup):
    """One peer is stopped until another has refused the copy, which must not have ended by then."""
    with moving_job(setup) as (job, moving):
        image = moving.move(2, keep=True)
        job.stop(0)
        said = []
        for line in moving.wake_stale_copy(image, 1):
            said.append(line)
            if line == refusal(2):
                job.go_on(0)
        check_refused(said)
        check(said[0] == refusal(2), "a rank that was stopped has refused the copy first", "\n".join([*said, ""]))
        moving.move(1)
        return finish(setup, job, moving, refusals=1)


@suite.test("stale-copy-that-has-gone", tags={"fast"})
def stale_copy_that_has_gone(setup):
    """The address in its REBIND leads nowhere: a peer that cannot answer goes on."""
    return woken_and_refused(setup, 2, order="MISLEAD")


@suite.test("image-of-512-mib")
def image_of_512_mib(setup):
    with moving_job(setup, ["--ballast", 512]) as (job, moving):
        moving.move(2)
        moving.move(1)
        return finish(setup, job, moving)
