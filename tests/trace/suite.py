# SPDX-License-Identifier: BSD-3-Clause
"""Trace real MPI programs and compare with what they say they received.

Each program of programs/ writes the rows its trace must hold; the trace is read back with
zc-trace dump.
"""
import collections
import contextlib
import functools
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import uuid

from testbed.outcome import Error, Fail, Skip, wait_for
from testbed.process import MARK, Running
from testbed.suite import Bed, Suite

PROGRAMS = pathlib.Path(__file__).resolve().parent / "programs"
FIGURES = pathlib.Path(__file__).resolve().parents[2] / "bench/figures/programs"
COLUMNS = ("i,comm,src,tag,bytes,addr,kind,coll,t_post,t_done,t_sent,done_order,"
           "arrival_order")
# Seconds of a run, at patience 1: on a loaded machine ranks that take turns need most of thrice that.
TIMEOUT = 40
# There may be more ranks than processors, and no right to read another's memory.
OPEN_MPI = ["--oversubscribe", "--allow-run-as-root", "--mca", "rmaps_base_inherit", "1",
            "--mca", "btl", "self,vader", "--mca", "btl_vader_single_copy_mechanism", "none",
            "--mca", "mpi_yield_when_idle", "1"]


class Bench:
    """The tool, the MPI under test, a scratch folder, and runs of programs."""

    programs = PROGRAMS

    def __init__(self, setup):
        self.family, self.prefix = setup.family, setup.prefix
        self.scratch, self.patience = setup.scratch, setup.patience
        library = pathlib.Path(setup.options.library).resolve()
        self.tool = library / "bin/zc-trace"
        if not os.access(self.tool, os.X_OK):
            raise Error(f"no zc-trace in {library}/bin (make build, or --library DIR)")
        self.tracers = library / "lib"
        self.check_tracer(self.family)
        self.find("mpicc")
        self.launcher = self.find("mpiexec")
        self.environment = dict(os.environ)
        for name in ("LD_PRELOAD", "ZC_TRACE_DIR", "ZC_TRACE_CLOCK", "ZC_TRACE_CALLS"):
            self.environment.pop(name, None)
        if self.prefix != "/usr":
            old = self.environment.get("LD_LIBRARY_PATH")
            self.environment["LD_LIBRARY_PATH"] = f"{self.prefix}/lib" + (f":{old}" if old else "")
        self.environment.update(setup.environment)

    def check_tracer(self, family):
        if not (self.tracers / f"libzctrace-{family}.so").exists():
            raise Skip(f"the tracer for {family} was not built")

    def find(self, tool):
        """Where Debian's MPIs are, the plain name may be that of another one."""
        names = [f"{tool}.{self.family}", *([] if self.prefix == "/usr" else [tool])]
        for name in names:
            if found := shutil.which(name, path=f"{self.prefix}/bin"):
                return found
        raise Skip(f"no {names[-1]} in {self.prefix}/bin")

    def mpiexec(self, ranks, *options):
        more = OPEN_MPI if self.family == "openmpi" else []
        return [self.launcher, *more, *options, "-n", str(ranks)]

    def folder(self):
        return pathlib.Path(tempfile.mkdtemp(dir=self.scratch))

    def start(self, command, **environment):
        """COMMAND as a context; what it leaves running is ended with it."""
        mark = uuid.uuid4().hex
        return Running([str(word) for word in command], mark,
                       {**self.environment, **environment, MARK: mark}, self.scratch)

    def run(self, command, **environment):
        """(exit status, stdout, stderr) of COMMAND, which must end by itself."""
        with self.start(command, **environment) as running:
            status = running.wait(TIMEOUT * self.patience)
        if status is None:
            raise Fail("no end in time", running.said())
        return status, "".join(running.out), "".join(running.err)

    def build(self, source, *flags, output=None):
        fortran = source.endswith(".f90")
        target = self.scratch / (output or pathlib.Path(source).stem)
        if target.exists():
            return target
        compiler = self.find("mpif90" if fortran else "mpicc")
        language = (["-cpp", "-fno-range-check"] if fortran else
                    ["-std=gnu11", "-Wall", "-Wno-unused-function", "-pthread"])
        done = subprocess.run([compiler, *language, "-O1", *flags, "-o", target,
                               self.programs / source, "-lpthread"], env=self.environment,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        if done.returncode:
            if fortran and ("mpi.mod" in done.stderr or "mpi_f08" in done.stderr or
                            "not found" in done.stderr):
                raise Skip("this MPI was built without Fortran")
            if re.search("implicit declaration of function .MPI_File_open", done.stderr):
                raise Skip("this MPI was built without MPI-IO")
            raise Fail(f"{source} does not compile", done.stderr)
        return target

    def trace(self, program, *args, ranks=4, code=0, tool_options=(), launcher_options=(),
              wrapper=(), **environment):
        """Runs a program; returns (folder of the trace, folder of the expected rows, JSON)."""
        work = self.folder()
        folder = work / "trace.zct"
        status, out, err = self.run(
            [self.tool, "--json", "-o", folder, *tool_options, "--",
             *self.mpiexec(ranks, *launcher_options), *wrapper, program, *args],
            EXPECT_DIR=str(work), **environment)
        if code is not None and status != code:
            raise Fail(f"exit code {status}, not {code}", out + err)
        summary = json.loads(out.splitlines()[-1])
        if summary["exit"] != status:
            raise Fail(f"the summary says exit {summary['exit']}, not {status}")
        return folder, work, summary

    def dump(self, *args):
        done = subprocess.run([self.tool, "dump", *map(str, args)], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, check=False)
        if done.returncode:
            raise Fail("zc-trace dump", done.stderr)
        return done.stdout


def read_rows(bench, folder, rank):
    lines = bench.dump(folder / f"r{rank}.zct").splitlines()
    if lines[0] != COLUMNS:
        raise Fail(f"columns are {lines[0]}")
    return [dict(zip(COLUMNS.split(","), line.split(","))) for line in lines[1:]]


def comparable(row, communicators):
    members = "+".join(map(str, communicators[row["comm"]]))
    return ",".join([members, *(row[c] for c in ("src", "tag", "bytes", "addr", "kind", "coll"))])


def check_orders(rows, rank):
    """Numbers that must be permutations, and times that must make sense."""
    for column in ("done_order", "arrival_order"):
        if sorted(int(r[column]) for r in rows) != list(range(len(rows))):
            raise Fail(f"rank {rank}: {column} is no permutation")
    by_arrival = sorted(rows, key=lambda r: int(r["arrival_order"]))
    for column, ordered in (("t_sent", by_arrival),):
        times = [int(r[column]) for r in ordered]
        if times != sorted(times):
            raise Fail(f"rank {rank}: {column} is not in the order it is numbered")
    for i, r in enumerate(rows):
        if int(r["i"]) != i:
            raise Fail(f"rank {rank}: row {i} is numbered {r['i']}")
        if int(r["t_done"]) < int(r["t_post"]):
            raise Fail(f"rank {rank}: row {i} was done before it was posted")
        if r["kind"] == "p2p" and int(r["t_sent"]) > int(r["t_done"]):
            raise Fail(f"rank {rank}: row {i} was received before it was sent")


def check(bench, folder, work, ranks, in_order=True, whole=True):
    """The trace of every rank holds the rows the program expects."""
    meta = json.loads(bench.dump("--meta", folder))
    if whole and (meta["unmatched_or_size_mismatch"] or not all(meta["complete"].values())):
        raise Fail(f"unmatched messages or incomplete files: {meta}")
    for rank in range(ranks):
        rows = read_rows(bench, folder, rank)
        got = [comparable(r, meta["comms"]) for r in rows]
        want = (work / f"expected.{rank}").read_text(encoding="utf-8").splitlines()
        if not in_order:
            got.sort()
            want.sort()
        if not whole:
            want = want[:len(got)]
        if got != want:
            at = next((i for i, (g, w) in enumerate(zip(got, want)) if g != w),
                      min(len(got), len(want)))
            raise Fail(f"rank {rank}: {len(got)} rows, expected {len(want)}; row {at} is\n"
                       f"  {got[at] if at < len(got) else 'missing'}\nexpected\n"
                       f"  {want[at] if at < len(want) else 'none'}")
        check_orders(rows, rank)
    return meta


@contextlib.contextmanager
def open_bench(setup):
    yield Bench(setup)


suite = Suite("trace", "zc-trace and programs of each MPI",
              # Of the two ABIs, Debian's MPICH has that of ours.
              beds=[Bed("mpich", tags=frozenset({"fast"}), options={"mpich": "/usr"}),
                    Bed("openmpi", tags=frozenset({"nightly"}), options={"openmpi": "/usr"}),
                    Bed("project", tags=frozenset({"nightly"}))],
              needs=("mpich",), families=("mpich", "openmpi"), open=open_bench)
SUITES = [suite]


def rows_as_expected(bench, name, ranks):
    program = bench.build(f"{name}.c")
    for n in ranks:
        folder, work, _ = bench.trace(program, ranks=n)
        check(bench, folder, work, n)


for the_name, its_ranks in (("blocking", (2, 4)), ("nonblocking", (2,)), ("wildcard", (2, 4)),
                            ("persistent", (2, 4)), ("collectives", (2, 4)),
                            ("communicators", (2, 4)), ("datatypes", (2, 4)),
                            ("file_io", (2, 4)), ("failing", (2, 4)), ("mpi4", (2, 4))):
    suite.test(the_name)(functools.partial(rows_as_expected, name=the_name, ranks=its_ranks))


@suite.test()
def threads(bench):
    folder, work, _ = bench.trace(bench.build("threads.c"), ranks=2)
    check(bench, folder, work, 2, in_order=False)


@suite.test()
def freed_handles(bench):
    """Another thread may free what a message was sent with before the call returns."""
    folder, work, _ = bench.trace(bench.build("freed.c"), ranks=2)
    check(bench, folder, work, 2)


@suite.test()
def fortran(bench):
    for flags, name in (((), "fortran"), (("-DF08",), "fortran08")):
        program = bench.build("fortran.f90", *flags, output=name)
        folder, work, _ = bench.trace(program, ranks=4)
        check(bench, folder, work, 4)


@suite.test()
def sends_match_receives(bench):
    """events: every message that is received has a send, and the other way round."""
    folder, _, _ = bench.trace(bench.build("collectives.c"), ranks=4)
    events = collections.Counter()
    lines = bench.dump("--events", folder).splitlines()
    if lines[0] != "t,src,dst,bytes,kind":
        raise Fail(f"columns are {lines[0]}")
    times = []
    for line in lines[1:]:
        t, *event = line.split(",")
        times.append(int(t))
        events[tuple(event)] += 1
    if times != sorted(times):
        raise Fail("events are not in order of time")
    received = collections.Counter()
    for rank in range(4):
        for r in read_rows(bench, folder, rank):
            if r["src"] != str(rank):
                received[(r["src"], str(rank), r["bytes"], r["kind"])] += 1
    # What a reduction takes from its ranks is combined on the way: no receive of its own.
    to_first = {"allreduce", "reduce_scatter", "reduce_scatter_block"}
    differ = {e for e in (events - received) | (received - events)
              if not (e[3] in to_first and e[1] == "0")}
    if differ:
        raise Fail(f"sends and receives differ: {sorted(differ)[:8]}")


def ends(bench, how, words, well, receives):
    """WELL: the job exits with 0 (None: either way). RECEIVES that are there, of a range."""
    folder, work, summary = bench.trace(bench.build("ending.c"), how, *words, ranks=2, code=None)
    finalized = how == "finalize"
    if (summary["complete"] != (2 if finalized else 0) or summary["receives"] not in receives or
            well not in (None, summary["exit"] == 0)):
        raise Fail(f"{summary}")
    check(bench, folder, work, 2, whole=finalized)


# Without MPI_Finalize all is there, but the files say that they were cut; the launcher may end the
# other rank before it exits. Of 40000 messages a killed rank loses what did not fill a block.
for how_it_ends in (("finalize", (), True, range(200, 201)), ("exit", (), None, range(100, 201)),
                    ("abort", (), False, range(100, 201)),
                    ("handler", (), False, range(100, 201)),
                    ("handler_threads", (), False, range(100, 201)),
                    ("kill", ("40000",), False, range(60001, 80000))):
    suite.test(f"ending_{how_it_ends[0]}")(
        lambda bench, of=how_it_ends: ends(bench, *of))


@suite.test()
def ending_code(bench):
    bench.trace(bench.build("ending.c"), "code", ranks=2, code=3)


@suite.test()
def ending_free(bench):
    """A message that the program did not see arrive does not shift the ones after it."""
    folder, work, _ = bench.trace(bench.build("ending.c"), "free", ranks=2)
    check(bench, folder, work, 2)


@suite.test()
def measured_clock(bench):
    """As if every rank had a clock of its own: the offsets are found."""
    folder, work, _ = bench.trace(bench.build("blocking.c"), ranks=4, ZC_TRACE_CLOCK="measure")
    meta = json.loads(bench.dump("--meta", folder))
    if meta["unmatched_or_size_mismatch"]:
        raise Fail(f"{meta}")
    for rank in range(4):
        for r in read_rows(bench, folder, rank):
            late = int(r["t_sent"]) - int(r["t_done"])
            if r["kind"] == "p2p" and late > 20000:
                raise Fail(f"rank {rank} received a message {late} us before it was sent")
    if not (work / "expected.0").exists():
        raise Fail("the program did not run")


@suite.test()
def through_a_shell(bench):
    """The ranks are started by a script; the launcher's other options stay."""
    options = ["-genv", "A", "b"] if bench.family == "mpich" else ["-x", "A=b"]
    folder, work, _ = bench.trace(bench.build("blocking.c"), ranks=2, launcher_options=options,
                                  wrapper=["sh", "-c", '[ "$A" = b ] && exec "$@"', "sh"],
                                  tool_options=["--mpi", bench.family])
    check(bench, folder, work, 2)


@suite.test()
def from_a_script(bench):
    """zc-trace is given a script that runs mpiexec."""
    work = bench.folder()
    script = work / "job"
    program = bench.build("blocking.c")
    words = " ".join(map(str, bench.mpiexec(2)))
    script.write_text(f"#!/bin/sh\n{words} {program}\n", encoding="utf-8")
    script.chmod(0o755)
    status, _, err = bench.run([bench.tool, "--mpi", bench.family, "-o", work / "t.zct", script],
                               EXPECT_DIR=str(work))
    if status:
        raise Fail(f"exit code {status}", err)
    check(bench, work / "t.zct", work, 2)


@suite.test()
def wrong_tracer(bench):
    """The other ABI's tracer says so instead of crashing in the program."""
    other = "openmpi" if bench.family == "mpich" else "mpich"
    bench.check_tracer(other)
    work = bench.folder()
    status, _, err = bench.run([bench.tool, "--mpi", other, "-o", work / "t.zct", "--",
                                *bench.mpiexec(2), bench.build("blocking.c")],
                               EXPECT_DIR=str(work))
    if status == 0 or f"--mpi {bench.family}" not in err:
        raise Fail(f"exit code {status}", err)
    if (work / "t.zct").exists():
        raise Fail("a folder was left")


@suite.test()
def programs_of_figures(bench):
    """Those whose messages figures of papers are drawn from: they run, and what is recorded of them
    can be drawn."""
    figures = bench.tool.parent / "figures"
    if not os.access(figures, os.X_OK):
        raise Skip(f"no {figures} (built without benchmarks)")
    drawn = []
    for source, rounds in (("fft", 8), ("master_slave", 20)):
        program = bench.build(str(FIGURES / f"{source}.c"), "-Wl,--no-as-needed", "-lm")
        folder, work, summary = bench.trace(program, rounds)
        if summary["ranks"] != 4 or not summary["receives"]:
            raise Fail(f"{source}: {summary}")
        events = work / "events.csv"
        events.write_text(bench.dump("--events", folder), encoding="utf-8")
        number = len(drawn) + 3
        done = subprocess.run([figures, "--quick", "--folder", work, "--trace", f"{number}={events}"],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        drawn += [path for path in work.rglob(f"*{number}*recorded.svg")
                  if "<svg" in path.read_text(encoding="utf-8")]
        if done.returncode:
            raise Fail(f"figures --trace {number}={source}", done.stdout + done.stderr)
    if len(drawn) != 2:
        raise Fail(f"pictures: {drawn}")


@suite.test()
def interrupted(bench):
    """SIGTERM goes to the command; what was written can be read. (What mpiexec then
    returns is its own affair: Hydra's may be 0.)"""
    work = bench.folder()
    command = [bench.tool, "--json", "-o", work / "t.zct", "--", *bench.mpiexec(2),
               bench.build("ending.c"), "finalize", "100000000"]

    def under_way():
        files = list(work.glob("t.zct/r*.zct"))
        return len(files) == 2 and all(file.stat().st_size > 70000 for file in files)

    with bench.start(command, EXPECT_DIR=str(work)) as running:
        wait_for("both ranks' files grow", under_way, 60 * bench.patience, every=0.5)
        running.process.send_signal(signal.SIGTERM)
        if running.wait(60 * bench.patience) is None:
            raise Fail("no end in time after SIGTERM", running.said())
    summary = json.loads(running.out[-1])
    if summary["ranks"] != 2 or summary["receives"] < 1000:
        raise Fail(f"{summary}")


@suite.test()
def unreadable_file(bench):
    """An empty file of one rank: it is counted, and named once; the other ranks are read."""
    work = bench.folder()
    script = work / "job"
    words = " ".join(map(str, [*bench.mpiexec(2), bench.build("blocking.c")]))
    script.write_text(f"#!/bin/sh\n{words} && : > {work}/t.zct/r0.zct\n", encoding="utf-8")
    script.chmod(0o755)
    status, out, err = bench.run([bench.tool, "--json", "--mpi", bench.family, "-o", work / "t.zct",
                                  script], EXPECT_DIR=str(work))
    if status or err.count("1 of 2 files cannot be read") != 1:
        raise Fail(f"exit code {status}", out + err)
    summary = json.loads(out.splitlines()[-1])
    if (summary["ranks"], summary["unreadable"]) != (1, 1) or "r0.zct" not in summary["reason"]:
        raise Fail(f"{summary}")
    meta = json.loads(bench.dump("--meta", work / "t.zct"))
    if list(meta["ranks"]) != ["1"]:
        raise Fail(f"{meta}")


@suite.test()
def second_program(bench):
    """A script runs two MPI programs: the first is traced, the second says that it is not, and its
    ranks are not taken for more of the first."""
    work = bench.folder()
    script = work / "job"
    first, second = (" ".join(map(str, [*bench.mpiexec(ranks), bench.build("blocking.c")]))
                     for ranks in (2, 3))
    script.write_text(f"#!/bin/sh\n{first} && cp {work}/expected.* {work}/kept && {second}\n",
                      encoding="utf-8")
    script.chmod(0o755)
    (work / "kept").mkdir()
    status, out, err = bench.run([bench.tool, "--json", "--mpi", bench.family, "-o", work / "t.zct",
                                  script], EXPECT_DIR=str(work))
    if status or err.count("blocking is not traced: ") != 1:
        raise Fail(f"exit code {status}", out + err)
    if sorted(path.name for path in (work / "t.zct").iterdir()) != ["r0.zct", "r1.zct"]:
        raise Fail("files of the second program")
    check(bench, work / "t.zct", work / "kept", 2)


@suite.test()
def limited_file_size(bench):
    """ulimit -f: the trace ends there, and the program does not."""
    folder, _, summary = bench.trace(bench.build("many.c"), 20000, 16, ranks=2)
    if summary["complete"] or summary["receives"] >= 20000:
        raise Fail(f"{summary}")
    if any(path.stat().st_size > 16 * 1024 for path in folder.iterdir()):
        raise Fail("a file beyond the limit")
