# SPDX-License-Identifier: BSD-3-Clause
"""MPICH's own tests (its test/mpi) on our MPICH.

They are configured and built out of MPICH's source tree; the chosen folders' test lists are run as
MPICH's 'runtests' reads them. What expected-failures.txt lists, which may only be what stock
ch4:ucx fails too, is reported as a known failure.
"""
import contextlib
import pathlib
import re
import shutil
import subprocess
import threading

from testbed import mpi
from testbed.outcome import Error, Fail, KnownFailure, Skip, check
from testbed.suite import Bed, Suite, Test

HERE = pathlib.Path(__file__).resolve().parent
TOP = HERE.parents[1]
FOLDERS = ["pt2pt", "comm", "coll", "datatype", "group", "attr", "errhan", "errors", "info", "init",
           "mpi_t", "topo", "threads", "rma", "part", "spawn"]
QUICK = ["pt2pt", "attr", "datatype", "errhan", "group", "info", "init", "mpi_t", "topo"]
# Of builds that have what their programs include. Not f08: its Makefiles are only made
# as part of MPICH's own build.
MORE_FOLDERS = {"io": "mpio.h", "f77": "mpif.h", "f90": "mpi.mod", "cxx": "mpicxx.h"}
FINALIZE_GRACE_S = 10
MPIEXEC_GRACE_S = 5         # to end a run whose time is up
NO_ERRORS = re.compile(r"^\s*No [Ee]rrors\s*$")
HARMLESS = re.compile(r"^\s*(Test Passed|FORTRAN STOP)?\s*$")


class Entry:
    """One line of a test list: program [ranks [key=value ...]]."""

    def __init__(self, folder, line):
        words = line.split()
        self.folder = folder
        self.program = words[0]
        self.ranks = int(words[1]) if len(words) > 1 and words[1].isdigit() else 2
        self.args, self.environment, self.options = [], {}, {}
        for word in words[2:]:
            key, equals, value = word.partition("=")
            if not equals:
                continue            # runtests passes over stray words, too
            if key == "arg":
                self.args.append(value)
            elif key == "env":
                name, _, setting = value.partition("=")
                self.environment[name] = setting
            else:
                self.options.setdefault(key, []).append(value)
        self.name = f"{folder}/{self.program}"
        self.title = " ".join([self.name, str(self.ranks), *words[2:]])

    def option(self, key):
        return self.options.get(key, [None])[0]

    def does_io(self):
        return "io" in self.folder.split("/")

    def needs_to_be_alone(self):
        """Does it leave files that others have, too, or take memory that is looked for before?"""
        return self.does_io() or bool(self.option("mem"))

    def check_possible(self, prefix):
        if self.does_io() and not has_header(prefix, "mpio.h"):
            raise Skip("this MPICH is built without MPI-IO")
        if "xfail" in self.options:
            raise Skip(f"MPICH expects it to fail ({', '.join(self.options['xfail'])})")
        if self.option("mem"):
            needed_kib = float(self.option("mem")) * (1 << 20)
            text = pathlib.Path("/proc/meminfo").read_text(encoding="ascii")
            if int(re.search(r"MemAvailable:\s+(\d+)", text)[1]) < needed_kib * 1.25:
                raise Skip(f"needs {self.option('mem')} GB of memory")

    def judge(self, result):
        """What is wrong, or "", by the rules of runtests."""
        if result.timed_out or result.hung_in_finalize:
            return result.reason()
        kind = self.option("resultTest")
        if kind in ("TestStatus", "TestErrFatal"):
            return "ended without the error it should end with" if result.ok else ""
        lines = (result.out + result.err).splitlines()
        if not any(NO_ERRORS.match(line) for line in lines):
            said = next((line for line in lines if not HARMLESS.match(line)), "")
            return (f"{result.reason() or 'no end'}; did not say 'No Errors'"
                    + (f"; said: {said.strip()[:120]}" if said else ""))
        if kind == "TestStatusNoErrors":
            return "ended without the error it should end with" if result.ok else ""
        for line in lines:
            if not NO_ERRORS.match(line) and not HARMLESS.match(line):
                return f"unexpected output: {line.strip()[:120]}"
        return result.reason()


def has_header(prefix, name):
    return (pathlib.Path(prefix) / "include" / name).exists()


class Stage:
    """MPICH's tests, built for the prefix, on the network of this bed."""

    def __init__(self, setup):
        self.setup = setup
        options = setup.options
        self.source = pathlib.Path(options.mpich_source or subprocess.run(
            [TOP / "mpi-ch4-netmod/build", "--source-dir"], check=True, capture_output=True,
            text=True).stdout.strip() + "/test/mpi").resolve()
        self.directory = setup.build_dir
        self.log = self.directory / "build.log"
        self.folders = options.folder
        if "all" in self.folders:
            self.folders = FOLDERS + [folder for folder, header in MORE_FOLDERS.items()
                                      if has_header(setup.prefix, header)]
        self.expected = read_expected(options.expected_failures)
        self.mpi = mpi.Mpi(setup.prefix, setup.network, netmod=options.netmod,
                           environment=setup.environment)
        self.one_at_a_time = threading.Lock()

    def _run_quietly(self, command):
        with open(self.log, "ab") as file:
            done = subprocess.run(command, cwd=self.directory, stdin=subprocess.DEVNULL,
                                  stdout=file, stderr=subprocess.STDOUT, check=False)
        if done.returncode != 0:
            raise Error(f"'{' '.join(command)}' failed, see {self.log}")

    def build(self):
        """Configure once per prefix, then make the support libraries and the folders."""
        prefix, configure = self.setup.prefix, self.source / "configure"
        if not configure.exists():
            raise Error(f"{self.source} is not MPICH's test/mpi: no configure there")
        stamp = self.directory / ".configured"
        languages = []      # no more than the folders need: configuring each takes its time
        if not has_header(prefix, "mpif.h") or not {"f77", "f90"}.intersection(self.folders):
            languages.append("--disable-fortran")
        if not has_header(prefix, "mpicxx.h") or "cxx" not in self.folders:
            languages.append("--disable-cxx")
        wanted = " ".join([prefix, str(self.source), *languages])
        if not stamp.exists() or stamp.read_text(encoding="utf-8") != wanted:
            # Make would keep the programs of another MPICH, which would go on using that one.
            shutil.rmtree(self.directory, ignore_errors=True)
            self.directory.mkdir(parents=True)
            print("configuring MPICH's tests ...", flush=True)
            self._run_quietly([str(configure), f"--with-mpi={prefix}", *languages,
                               f"CC={mpi.find_tool(prefix, 'mpicc')}"])
            stamp.write_text(wanted, encoding="utf-8")
        jobs = f"-j{self.setup.options.jobs}"
        for part in ["util", "dtpools", *self.folders]:
            print(f"building {part} ...", flush=True)
            if part not in self.folders:
                self._run_quietly(["make", jobs, "-C", part])
                continue
            try:
                self._run_quietly(["make", jobs, "-k", "-C", part])
            except Error as error:
                # A program that does not build fails as a test, not the whole run.
                print(f"warning: {error}", flush=True)

    def entries(self, folders):
        lists = self.setup.options.test_lists.split(",")
        for folder in folders:
            # A list made by configure is in the build, and newer than the one in the source.
            places = [next(filter(pathlib.Path.exists, (place / folder / name for place in
                                                        (self.directory, self.source))), None)
                      for name in lists]
            if not any(places):
                raise Error(f"no {' or '.join(lists)} in {folder}")
            for line in "\n".join(place.read_text(encoding="utf-8") for place in places
                                  if place).splitlines():
                line = line.partition("#")[0].strip()
                if not line or line.startswith("!"):
                    continue
                if (self.source / folder / line).is_dir():
                    yield from self.entries([f"{folder}/{line}"])
                else:
                    yield Entry(folder, line)

    def run(self, entry):
        entry.check_possible(self.setup.prefix)
        folder = self.directory / entry.folder
        program = folder / entry.program
        if not program.exists():
            subprocess.run(["make", entry.program], cwd=folder, stdin=subprocess.DEVNULL,
                           capture_output=True, check=False)
        check(program.exists(), "does not build")
        options = self.setup.options
        limit = self.setup.patience * min(float(entry.option("timeLimit") or 180), options.limit)
        environment = dict(entry.environment)
        if entry.option("resultTest") == "TestErrFatal":
            # Some wait to be ended so.
            environment["MPIEXEC_TIMEOUT"] = str(int(limit))
        result = self.mpi.run(
            [f"./{entry.program}", *entry.args], ranks=entry.ranks, directory=folder,
            timeout=limit + MPIEXEC_GRACE_S, environment=environment, stacks=options.stacks,
            finalize_grace=FINALIZE_GRACE_S * self.setup.patience,
            settled=lambda line: bool(NO_ERRORS.match(line)))
        wrong = entry.judge(result)
        reason = self.expected.get(entry.title) or self.expected.get(entry.name)
        if wrong and reason:
            raise KnownFailure(f"{wrong} [{reason}]")
        if wrong:
            raise Fail(wrong, result.stacks)
        return f"passes, though listed to fail: {reason}" if reason else ""

    def run_in_turn(self, entry):
        with self.one_at_a_time if entry.needs_to_be_alone() else contextlib.nullcontext():
            return self.run(entry)


def read_expected(path):
    """{name or title: reason} from lines 'name: reason'; # begins a comment."""
    expected = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        name, colon, reason = line.partition(": ")
        if not colon or not reason.strip():
            raise Error(f"{path.name}:{number}: not 'name: reason'")
        expected[name.strip()] = reason.strip()
    return expected


@contextlib.contextmanager
def stage_of(setup):
    setup.header = f"netmod {setup.options.netmod}"
    stage = Stage(setup)
    stage.build()
    yield stage


def discover(stage):
    return [Test(entry.title, lambda stage, entry=entry: stage.run_in_turn(entry))
            for entry in stage.entries(stage.folders)]


def add_options(group):
    group.add_argument("--mpich-source", metavar="DIR",
                       help="test/mpi of MPICH's source tree (default: of what is built)")
    group.add_argument("--folder", action="append", metavar="FOLDER",
                       help="folder there (repeatable; all: each that this MPICH is built for)")
    group.add_argument("--test-lists", default="testlist", metavar="NAME,...",
                       help="test lists to read (default testlist; testlist.dtp is long)")
    group.add_argument("--limit", type=float, default=90, metavar="SECONDS",
                       help="of one test (default 90, or less where the list says so)")
    group.add_argument("--expected-failures", type=pathlib.Path, metavar="FILE",
                       default=HERE / "expected-failures.txt")


suite = Suite("mpich", "MPICH's own tests: those folders that are quick, or all on three networks",
              beds=[Bed("quick", tags=frozenset({"nightly"}), hosts="2",
                        options={"folder": QUICK}),
                    *(Bed(f"all-{name}", tags=frozenset({"mpich-everywhere"}), hosts=hosts,
                          options={"folder": ["all"]})
                      for name, hosts in (("two-hosts", "2"), ("loopback", "loopback"),
                                          ("one-host", "1")))],
              needs=("mpich",), open=stage_of, discover=discover, options=add_options,
              parallel=True)
SUITES = [suite]
