# SPDX-License-Identifier: BSD-3-Clause
"""Run programs that were built against Debian's MPICH, unmodified, on this one.

Nothing is relinked: a folder with libmpich.so.12 under Debian's name is put before the
system's. What each program computed is checked, not just how it ended, and with ch4:zc the
statistics of every rank must be there, which shows that it was this library that ran. A
program whose package is not installed, or that needs a part this build lacks (MPI-IO), is
skipped with the reason.
"""
import contextlib
import dataclasses
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import typing

from testbed import process, statistics
from testbed.mpi import Mpi
from testbed.outcome import Error, Fail, Skip, check
from testbed.suite import Bed, Note, Suite

HERE = pathlib.Path(__file__).resolve().parent
FINALIZE_GRACE_S = 10
MULTIARCH = "x86_64-linux-gnu"
SCALAPACK = f"/usr/lib/{MULTIARCH}/libscalapack-mpich.so.2.2"
SCALAPACK_TESTS = pathlib.Path(f"/usr/lib/{MULTIARCH}/scalapack/mpich-tests")
YORICK_TESTS = pathlib.Path("/usr/share/doc/yorick-mpy-common/examples/testmp.i.gz")
# Ranks are the parallelism here; the linear algebra may not add threads of its own.
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "BAGEL_NUM_THREADS": "1",
              "MKL_NUM_THREADS": "1"}


# ---- the programs: input and what must come out ----

def netpipe(upto, integrity, times=5):
    """TIMES: how often each size is sent."""
    def prepare(run):
        return ["NPmpich2", *(["-i"] if integrity else []), "-u", upto, "-n", times, "-o",
                run.directory / "np.out"]
    return prepare


def netpipe_intact(_, out):
    passed = len(re.findall("Integrity check passed", out))
    check(not re.search("integrity check fail", out, re.IGNORECASE), "integrity check failed")
    # Sizes up to 4 MiB in NetPIPE's own steps.
    check(passed >= 40, f"only {passed} sizes checked")
    return f"{passed} sizes intact"


def netpipe_measured(run, _):
    rows = [line.split() for line in (run.directory / "np.out").read_text().splitlines()]
    sizes = [int(float(row[0])) for row in rows if len(row) >= 3 and float(row[1]) > 0]
    peak = max((float(row[1]) for row in rows), default=0)
    check(sizes and max(sizes) >= 4 << 20 and len(sizes) > 60, "not all sizes measured")
    return f"{len(sizes)} sizes, peak {peak / 8:.0f} MB/s"


def scalapack(tester, data=None, folder=HERE / "scalapack"):
    """Debian's input is all tiny matrices, so DATA of FOLDER where it is given."""
    def prepare(run):
        source = folder if data else SCALAPACK_TESTS
        for file in source.glob("*.dat") if not data else [source / data]:
            shutil.copy(file, run.directory / file.name)
        return [SCALAPACK_TESTS / tester]
    return prepare


def residuals_small(_, out):
    counted = dict((words, int(number)) for number, words in re.findall(
        r"(\d+) tests (completed and passed|completed and failed|skipped)", out))
    passed = counted.get("completed and passed", 0)
    failed = counted.get("completed and failed", 0)
    check("END OF TESTS" in out.upper() and counted, "no summary")
    check(passed and not failed, f"{failed} failed, {passed} passed")
    return f"{passed} residuals small"


def build_with(compiler, source, *libraries):
    """Build SOURCE with Debian's MPICH compiler: to us it is then a foreign binary."""
    def prepare(run):
        program = run.directory / pathlib.Path(source).stem
        done = subprocess.run([compiler, "-O2", str(HERE / source), "-o", str(program), *libraries],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Skip(f"{compiler} cannot build {source}: {done.stderr.strip().splitlines()[-1]}")
        return program
    return prepare


def solve(run):
    return [build_with("mpicc.mpich", "solve.c", SCALAPACK, "-lm")(run), 1536, 128]


def solved(_, out):
    found = re.search(r"solve: .* scaled residual (\S+): passed", out)
    check(found, "residual too large or missing")
    return f"residual {found[1]} < 10"


def collective_file(run):
    return [build_with("h5pcc.mpich", "collective_file.c")(run), run.directory / "matrix.h5"]


def every_element(_, out):
    found = re.search(r"collective_file: (\d+) x (\d+) doubles, ranks \d+, wrong elements 0$", out,
                      re.MULTILINE)
    check(found, "elements wrong or not read")
    return f"{int(found[1]) * int(found[2])} elements"


def yorick(rounds=20):
    def prepare(run):
        with open(run.directory / "testmp.i", "wb") as file:
            file.write(subprocess.run(["zcat", str(YORICK_TESTS)], capture_output=True,
                                      check=True).stdout)
        (run.directory / "main.i").write_text(
            f'mp_include, "{HERE}/exchange.i";\nmp_include, "{run.directory}/testmp.i";\n'
            f"exchange, {rounds};\ntestmp;\n")
        return ["mpy.mpich2", "-batch", run.directory / "main.i"]
    return prepare


def yorick_right(rounds=20):
    def right(run, out):
        wanted = [rf"exchange: {rounds} rounds on {run.ranks} ranks, 0 wrong",
                  rf"testmp2 passed on all {run.ranks} ranks",
                  rf"testmp3 passed on all {run.ranks} ranks"]
        missing = [line for line in wanted if not re.search(line, out)]
        pools = re.findall(r"nerrors=(\d+)", out)
        check(not missing, f"missing: {', '.join(missing)}")
        check(len(pools) >= 3 and not any(map(int, pools)), f"pools with errors: {pools}")
        return f"{rounds} x 8 MiB, testmp, {len(pools)} pools"
    return right


def copy_input(program, file):
    def prepare(run):
        shutil.copy(HERE / file, run.directory / file)
        return [program, run.directory / file]
    return prepare


def energies(pattern, text):
    return [float(energy) for energy in re.findall(pattern, text, re.MULTILINE)]


def same_energy(pattern, tolerance):
    """The last energy printed, against that of Debian's own MPICH on one host."""
    def check_energy(run, out):
        ours, theirs = energies(pattern, out), energies(pattern, run.reference())
        check(ours, "no energy")
        check(theirs, "no energy from Debian's MPICH")
        check(abs(ours[-1] - theirs[-1]) <= tolerance,
              f"energy {ours[-1]}, Debian's MPICH {theirs[-1]}")
        return f"E = {ours[-1]} as Debian's"
    return check_energy


BAGEL_ENERGY = r"^ +\d+ +(-\d+\.\d{8}) +\d+\.\d+ +\d+\.\d+$"
NWCHEM_ENERGY = r"Total SCF energy = +(-\d+\.\d+)"


# ---- what runs them ----

class Library:
    """This MPICH, under the names that Debian's programs ask for."""

    def __init__(self, setup):
        self.setup = setup
        self.references = {}    # outputs of programs under Debian's MPICH, by name
        self.folder = setup.scratch / "lib"
        self.folder.mkdir()
        where = [pathlib.Path(setup.prefix) / "lib", pathlib.Path(setup.prefix) / "lib" / MULTIARCH]
        self.c = self._link("libmpich.so.12", ["libmpich.so.12", "libmpi.so.12"], where)
        if not self.c:
            raise Error(f"no MPICH library in {where[0]}")
        # Where this build has no Fortran the loader finds Debian's interface library, which calls
        # this one's C functions. Only reductions of Fortran's types are missing then.
        self._link("libmpichfort.so.12", ["libmpichfort.so.12", "libmpifort.so.12"], where)
        self.mpi_io = b"MPI_File_open\0" in self.c.read_bytes()

    def _link(self, name, names, folders):
        for found in (folder / other for folder in folders for other in names):
            if found.exists():
                (self.folder / name).symlink_to(found.resolve())
                return found
        return None

    def check_has(self, needs):
        if "mpi-io" in needs and not self.mpi_io:
            raise Skip("this MPICH was built without MPI-IO")


def check_installed(command, packages):
    if not (os.path.isabs(command) and os.path.exists(command) or shutil.which(str(command))):
        raise Skip(f"not installed (packages {packages})")


@dataclasses.dataclass
class Program:
    """One test: it runs, and has the right result.

    packages:          what Debian calls it; command: the file that must be there
    prepare(run):      makes its input in run.directory; returns the program's words
    right(run, out):   fails unless the result is right; returns what was checked
    needs:             parts of MPICH: "mpi-io"
    lands:             large messages pass; without them the statistics would say nothing
    last:              what it prints when only MPI_Finalize is left (an expression)
    """
    name: str
    packages: str
    command: typing.Any
    prepare: typing.Callable
    right: typing.Callable
    ranks: int = 2
    timeout: float = 60
    needs: tuple = ()
    lands: bool = True
    last: str | None = None
    environment: dict = dataclasses.field(default_factory=dict)

    def __call__(self, library):
        check_installed(self.command, self.packages)
        library.check_has(self.needs)
        run = Run(self, library)
        result, total = run.go()
        output = result.out + result.err + result.stacks
        if total:
            output += f"MiB direct, rebound, copied:{statistics.table(total)}\n"
        check(result.ok or result.hung_in_finalize, result.reason(), output)
        try:
            checked = self.right(run, result.out + result.err)
        except Fail as failure:
            raise Fail(str(failure), output) from None
        if result.hung_in_finalize:
            checked += "; hung in MPI_Finalize, as stock ch4:ucx does now and then"
        if run.netmod == "zc":
            ranks = total["ranks"] if total else 0
            check(ranks == self.ranks, f"statistics of {ranks} ranks, not {self.ranks}", output)
            check(not self.lands or any(total[kind] for kind in statistics.MESSAGES),
                  "no large message: nothing shown", output)
        return Note(f"{statistics.table(total)}  {checked}", statistics=total)


class Run:
    """A program, once: its folder and what it is compared with."""

    def __init__(self, program, library):
        self.program, self.library = program, library
        self.options = library.setup.options
        self.patience = library.setup.patience
        self.netmod = None if self.options.own_netmod else self.options.netmod
        self.ranks = program.ranks
        self.directory = pathlib.Path(tempfile.mkdtemp(dir=library.setup.scratch,
                                                       prefix=f"{program.name}-"))
        self.words = program.prepare(self)

    def go(self):
        """(result, statistics)"""
        stats = self.directory / "statistics"
        mpi = Mpi(self.library.setup.prefix, self.library.setup.network, netmod=self.netmod)
        environment = {**ONE_THREAD, **self.program.environment,
                       "LD_LIBRARY_PATH": str(self.library.folder)}
        if self.netmod == "zc":
            environment[statistics.CVAR + "STATS_FILE"] = str(stats)
        environment.update(self.library.setup.environment)
        result = mpi.run(self.words, ranks=self.ranks, timeout=self.program.timeout * self.patience,
                         environment=environment, directory=self.directory,
                         stacks=self.options.stacks, **self._tolerance())
        return result, statistics.add_up(stats)

    def _tolerance(self):
        """Only of stock ch4:ucx is it known that it may hang in MPI_Finalize."""
        if self.netmod != "ucx" or not self.program.last:
            return {}
        return {"finalize_grace": FINALIZE_GRACE_S * self.patience,
                "settled": lambda line: re.search(self.program.last, line)}

    def reference(self):
        """What the same run under Debian's MPICH says, on one host."""
        known, name = self.library.references, self.program.name
        if name not in known:
            mpiexec = shutil.which("mpiexec.mpich")
            if not mpiexec:
                raise Skip("no mpiexec.mpich to compare with (package mpich)")
            folder = self.directory / "reference"
            folder.mkdir()
            status, said = process.run(
                [mpiexec, "-n", self.ranks, *self.words], folder,
                {**os.environ, **ONE_THREAD, **self.program.environment},
                self.program.timeout * self.patience)
            known[name] = "" if status is None else said
        return known[name]


@contextlib.contextmanager
def open_library(setup):
    setup.header = f"{statistics.TITLES}; checked"
    yield Library(setup)


def add_options(group):
    group.add_argument("--own-netmod", action="store_true",
                       help="the netmod that the library chooses itself: with --mpich /usr it is"
                            " Debian's MPICH that runs")


suite = Suite("programs", "unmodified programs of Debian, built against its MPICH",
              beds=[Bed("two-hosts", tags=frozenset({"nightly"}), hosts="2", only="quick"),
                    Bed("all", tags=frozenset({"nightly-long"}), hosts="2", long=True),
                    Bed("one-host", tags=frozenset({"nightly-long"}), hosts="1", long=True)],
              needs=("mpich",), open=open_library, options=add_options)
SUITES = [suite]


def add(name, packages, command, prepare, right, tags=(), **more):
    suite.test(name, tags)(Program(name, packages, command, prepare, right, **more))


# ---- which they are ----

add("netpipe-integrity", "netpipe-mpich2", "NPmpich2", netpipe(4 << 20, True), netpipe_intact,
    tags={"quick"}, lands=False)
add("netpipe", "netpipe-mpich2", "NPmpich2", netpipe(4 << 20, False), netpipe_measured,
    timeout=120)
for kind in ("lu", "llt", "qr"):
    add(f"scalapack-{kind}", "scalapack-mpi-test", SCALAPACK_TESTS / f"xd{kind}",
        scalapack(f"xd{kind}", f"{kind.upper()}.dat"), residuals_small, tags={"quick"},
        timeout=120, last="^END OF TESTS")
add("pdgesv", "libscalapack-mpich2.2 libmpich-dev", SCALAPACK, solve, solved, tags={"quick"},
    timeout=120, last="^solve: ")
add("yorick", "yorick-mpy-mpich2", "mpy.mpich2", yorick(), yorick_right(), tags={"quick"},
    timeout=120, last="^mpool list=.*nerrors")
add("hdf5", "libhdf5-mpich-dev libmpich-dev", "h5pcc.mpich", collective_file, every_element,
    needs=("mpi-io",), ranks=4, timeout=120, lands=False)
add("bagel-water", "bagel mpich", "BAGEL", copy_input("BAGEL", "water.json"),
    same_energy(BAGEL_ENERGY, 2e-8), timeout=120, lands=False)
add("bagel-benzene", "bagel mpich", "BAGEL", copy_input("BAGEL", "benzene.json"),
    same_energy(BAGEL_ENERGY, 1e-7), tags={"long"}, timeout=1200, lands=False)
# Without the variable the SCF may diverge: README.Debian of nwchem-mpich.
add("nwchem-water", "nwchem-mpich mpich", "nwchem.mpich", copy_input("nwchem.mpich", "water.nw"),
    same_energy(NWCHEM_ENERGY, 1e-8), tags={"long"}, timeout=600, lands=False,
    environment={"ARMCI_USE_WIN_ALLOCATE": "0"})
for tester in ("xslu", "xdqr", "xcllt", "xzls", "xdinv", "xdhrd", "xdtrd", "xdbrd"):
    add(f"scalapack-{tester}", "scalapack-mpi-test", SCALAPACK_TESTS / tester, scalapack(tester),
        residuals_small, tags={"long"}, ranks=4, timeout=900, lands=False)
