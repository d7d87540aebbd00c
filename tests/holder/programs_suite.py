# SPDX-License-Identifier: BSD-3-Clause
"""Ranks of programs that nobody here wrote move between hosts while they run (docs/holder.md).

The programs are those of tests/programs: built against Debian's MPICH, unmodified, on this one. Each runs
twice, without a move and below zc-hold, where ranks move; the results must be equal, not nearly so.
"""
import contextlib
import dataclasses
import difflib
import json
import pathlib
import re
import tempfile
import time
import typing

from testbed import statistics
from testbed.mpi import Mpi
from testbed.outcome import Fail, check
from testbed.suite import Bed, Note, Suite
from tests.detach.suite import find_criu
from tests.holder.hosts import HeldJob
from tests.programs import suite as programs

HERE = pathlib.Path(__file__).resolve().parent
ROUNDS = 20                 # of Yorick's arrays
OPENBLAS = f"/usr/lib/{programs.MULTIARCH}/openblas-pthread"


# ---- what of the output must be equal ----

def residuals(limit):
    """All below LIMIT; the rows, without their times."""
    def compared(_, out):
        rows = [line.strip() for line in out.splitlines() if re.match(r"\s*(WALL|\|\|.*\d$)", line)]
        rows = [re.sub(r" +\d+\.\d+(?= |$)", "", row) if row.startswith("WALL") else row for row in rows]
        values = [float(row.split()[-1]) for row in rows if re.search(r"^\|\||E[-+]\d\d$", row)]
        check("END OF TESTS" in out.upper() and len(values) >= 16, f"only {len(values)} residuals")
        check(all(0 <= value < limit for value in values), f"a residual is too large: {max(values)}")
        return rows
    return compared


def intact_sizes(once, out):
    programs.netpipe_intact(once, out)
    return re.findall(r"(\d+) bytes +(\d+) times --> +Integrity check passed", out)


def measured_sizes(once, out):
    programs.netpipe_measured(once, out)
    return [line.split()[0] for line in (once.directory / "np.out").read_text().splitlines()]


def arrays(once, out):
    programs.yorick_right(ROUNDS * once.length)(once, out)
    return sorted(re.findall(r"(?:exchange: .*|testmp\d passed.*|.*nerrors=.*)", out))


NWCHEM_ENERGIES = r"^ +\d+ +(-\d+\.\d{8,}) .*D[+-]\d\d"     # of each iteration


def energies(pattern):
    def compared(_, out):
        found = programs.energies(pattern, out)
        check(found, "no energy")
        return found
    return compared


# ---- what runs them ----

@dataclasses.dataclass
class Moving:
    """One test: a program of tests/programs runs without a move, and with MOVES.

    packages, command, prepare: as those of tests.programs.suite.Program
    lengths:             the work, in multiples of the least, where prepare() heeds Once.length
    compared(once, out): fails if the result is wrong; what must be equal in both runs
    moves:               (rank, host) in turn; rank R begins on host R + 1
    between:             seconds before each
    tolerance:           of numbers, where two runs without a move differ, too
    libraries:           a folder that comes before the system's; without it the test is skipped
    counted:             what the statistics of a rank that has moved must have counted
    """
    packages: str
    command: typing.Any
    prepare: typing.Callable
    compared: typing.Callable
    moves: typing.Sequence
    ranks: int = 2
    timeout: float = 120
    between: float = 0.2
    lengths: tuple = (1, 2, 4, 8)
    tolerance: float = 0
    libraries: str = ""
    counted: tuple = ()
    environment: dict = dataclasses.field(default_factory=dict)

    def __call__(self, library, **more):
        """MORE: of Once.with_moves()."""
        for path in filter(None, (self.command, self.libraries)):
            programs.check_installed(path, self.packages)
        # What takes a second may take minutes on a busy machine; the moves must come before its end.
        for length in self.lengths:
            one = Once(self, library, length)
            expected = one.without_a_move()
            if one.seconds > len(self.moves) * (1 + self.between):
                break
        other = Once(self, library, one.length)
        found = other.with_moves(**more)
        if not equal(expected, found, self.tolerance):
            raise Fail("other results than without a move",
                       "".join(line + "\n" for line in difflib.unified_diff(
                           list(map(str, expected)), list(map(str, found)), "without", "with", lineterm="")))
        return Note(f"{len(found)} results equal; {one.seconds:.1f} s without a move, {other.seconds:.1f} s with "
                    f"{other.means}", seconds={"without": one.seconds, "with": other.seconds})


def equal(expected, found, tolerance):
    """Of two lists."""
    return len(expected) == len(found) and all(
        abs(one - other) <= tolerance if isinstance(one, float) else one == other
        for one, other in zip(expected, found))


class Once:
    """A program, in a folder of its own."""

    def __init__(self, program, library, length):
        self.program, self.setup, self.ranks, self.length = program, library.setup, program.ranks, length
        self.directory = pathlib.Path(tempfile.mkdtemp(dir=library.setup.scratch))
        self.words = [str(word) for word in program.prepare(self)]
        self.statistics = self.directory / "statistics"
        self.environment = {**programs.ONE_THREAD, **program.environment,
                            "LD_LIBRARY_PATH": ":".join(filter(None, (str(library.folder), program.libraries))),
                            statistics.CVAR + "STATS_FILE": str(self.statistics)}
        self.timeout = program.timeout * self.setup.patience
        self.seconds, self.means = 0, None

    def without_a_move(self):
        result = Mpi(self.setup.prefix, self.setup.network, netmod="zc").run(
            self.words, ranks=self.ranks, timeout=self.timeout,
            environment={**self.environment, **self.setup.environment}, directory=self.directory)
        check(result.ok, f"without a move: {result.reason()}", result.out + result.err)
        self.seconds = result.seconds
        return self._compared(result.out + result.err)

    def with_moves(self, launch=None, environment=()):
        with HeldJob(self.setup, self.words, ranks=self.ranks, launch=launch, directory=self.directory,
                     environment={**self.environment, **dict(environment)}) as job:
            begin = time.monotonic()
            for rank, host in self.program.moves:
                time.sleep(self.program.between)
                job.check_alive()
                job.move(host, rank)
            out = job.wait(self.timeout)
            self.seconds, self.means = time.monotonic() - begin, job.means
        # Its own statistics tell that it was this rank that left.
        for rank in {rank for rank, _ in self.program.moves}:
            told = json.loads(pathlib.Path(f"{self.statistics}.{rank}.json").read_text(encoding="ascii"))
            times = [rank for rank, _ in self.program.moves].count(rank)
            check(told["detachments"] == times, f"rank {rank} has left {told['detachments']} times, not {times}", out)
            for name in self.program.counted:
                check(told[name] > 0, f"rank {rank} has not counted {name}", out)
        return self._compared(out)

    def _compared(self, out):
        try:
            return self.program.compared(self, out)
        except Fail as failure:
            raise Fail(str(failure), out) from None


@contextlib.contextmanager
def prepared(setup):
    setup.criu = find_criu()
    yield programs.Library(setup)


suite = Suite("hold-programs", "zc-hold moves ranks of unmodified programs of Debian between hosts",
              beds=[Bed("three-hosts", tags=frozenset({"fast"}), hosts="3", only="fast"),
                    Bed("more", tags=frozenset({"nightly"}), hosts="3"),
                    Bed("all", tags=frozenset({"nightly-long"}), hosts="3", long=True)],
              needs=("mpich", "ip"), open=prepared)
SUITES = [suite]


def longer(name, once):
    """With as many more blocking sizes, which are the same ones."""
    file = once.directory / name
    text = re.sub(r"^(\d+)(?=\t+number of (NB's|blocking sizes)$)", lambda found: str(int(found[1]) * once.length),
                  file.read_text(encoding="ascii"), flags=re.MULTILINE)
    text = re.sub(r"^([\d ]+)(?=\t+values of [MN]B$)", lambda found: " ".join([found[1].strip()] * once.length),
                  text, flags=re.MULTILINE)
    file.write_text(text, encoding="ascii")


def scalapack(kind, limit, moves, packages="", **more):
    """The threshold of its input is 0: it prints all residuals, which are checked here."""
    def prepare(once):
        words = programs.scalapack(f"xd{kind}", f"{kind.upper()}.dat", HERE / "scalapack")(once)
        longer(f"{kind.upper()}.dat", once)
        return words
    return Moving(f"scalapack-mpi-test {packages}", programs.SCALAPACK_TESTS / f"xd{kind}", prepare, residuals(limit),
                  moves, **more)


def netpipe(integrity, compared, moves):
    def prepare(once):
        return programs.netpipe(4 << 20, integrity, 20 * once.length)(once)
    return Moving("netpipe-mpich2", "NPmpich2", prepare, compared, moves)


def yorick(moves, **more):
    def prepare(once):
        return programs.yorick(ROUNDS * once.length)(once)
    return Moving("yorick-mpy-mpich2", "mpy.mpich2", prepare, arrays, moves, **more)


def chemistry(package, program, file, pattern, **more):
    return Moving(package, program, programs.copy_input(program, file), energies(pattern), ROUND, timeout=1200,
                  lengths=(1, ), **more)


def nwchem(counted=(), **environment):
    # Without ARMCI's variable the SCF may diverge: README.Debian of nwchem-mpich.
    return chemistry("nwchem-mpich", "nwchem.mpich", "benzene.nw", NWCHEM_ENERGIES, between=1, tolerance=1e-8,
                     environment={"ARMCI_USE_WIN_ALLOCATE": "0", **environment}, counted=counted)


BOTH = [(1, 3), (0, 2)]                     # one rank away, and then the one that has the output
ROUND = [*BOTH, (1, 1), (0, 3), (1, 2), (0, 1)]

FAST = {
    "scalapack-llt": scalapack("llt", 3, BOTH),
    "netpipe-integrity": netpipe(True, intact_sizes, BOTH),
    "yorick": yorick(BOTH),
}
OTHERS = {
    "scalapack-lu": scalapack("lu", 1, ROUND),
    "scalapack-qr": scalapack("qr", 5, BOTH),
    "scalapack-lu-threads": scalapack("lu", 1, BOTH, packages="libopenblas0-pthread", libraries=OPENBLAS,
                                      environment={"OPENBLAS_NUM_THREADS": "2"}),
    "netpipe": netpipe(False, measured_sizes, ROUND),
    # Two of them on one host, where MPICH would share tables of addresses without zc-hold.
    "yorick-4-ranks": yorick([(3, 2), (2, 1), (0, 3), (1, 1)], ranks=4),
}
LONG = {
    "bagel-benzene-threads": chemistry("bagel", "BAGEL", "benzene.json", programs.BAGEL_ENERGY, between=1,
                                       tolerance=1e-7, environment={"BAGEL_NUM_THREADS": "2"}),
    "nwchem-benzene": nwchem(),
    # ARMCI reads and writes by accumulates, which are active messages, unless it is told to put and get.
    "nwchem-benzene-puts": nwchem(counted=("window_keys", ), ARMCI_RMA_ATOMICITY="0"),
}
for the_name, the_program in FAST.items():
    suite.test(the_name, {"fast"})(the_program)
for the_name, the_program in OTHERS.items():
    suite.test(the_name)(the_program)
for the_name, the_program in LONG.items():
    suite.test(the_name, {"long"})(the_program)
