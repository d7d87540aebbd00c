# SPDX-License-Identifier: BSD-3-Clause
"""Programs in C, C++ and Fortran, built with an installation's own wrappers, across two hosts.

Each must say "No Errors", and with ch4:zc large messages must have landed. The wrappers hand over
no option that users did not ask for, and no program that only the build has. Where gfortran is
missing, Fortran is skipped; where it is not, the installation must have mpifort. What only a full
build has (make install FULL=yes: yaksa as datatype engine) is tested with --bed full on such an
installation (--mpich).
"""
import pathlib
import re
import shutil
import subprocess
import tempfile

from testbed import mpi
from testbed.outcome import Skip, check
from testbed.statistics import CVAR, add_up
from testbed.suite import Bed, Suite, Test

HERE = pathlib.Path(__file__).resolve().parent
# name: (wrapper, the compiler that it is for, source)
PROGRAMS = {"c++": ("mpicxx", "g++", "templates.cpp"),
            "c++ exceptions": ("mpicxx", "g++", "leave.cpp"),
            "mpif.h": ("mpifort", "gfortran", "late_77.f"),
            "mpif.h by mpif77": ("mpif77", "gfortran", "late_77.f"),
            "use mpi": ("mpifort", "gfortran", "late_90.f90"),
            "use mpi_f08": ("mpifort", "gfortran", "late_08.f90")}
# Whose messages need not land: MPI-IO posts its receives early, or sends little.
OTHERS = {"mpi-io": ("mpicc", "gcc", "io.c")}
FULL_PROGRAMS = {"yaksa": ("mpicxx", "g++", "full/strided.cpp")}
WRAPPERS = {"mpicc": "gcc", "mpicxx": "g++", "mpifort": "gfortran"}
# Without the one option gfortran refuses programs that pass buffers of two types, as late_90 does.
ALLOWED = re.compile(r"-c|-[IL]\S+|-fallow-argument-mismatch")


def wrapper(setup, name, compiler):
    if not shutil.which(compiler):
        raise Skip(f"no {compiler}")
    path = pathlib.Path(setup.prefix) / "bin" / name
    check(path.exists(), f"no {name} in {setup.prefix}/bin, though there is {compiler}")
    return str(path)


def adds_nothing(name, compiler):
    """A test that the wrapper NAME calls COMPILER with nothing that users did not ask for."""
    def show(setup):
        words = subprocess.run([wrapper(setup, name, compiler), "-show", "-c"], check=True,
                               capture_output=True, text=True).stdout.split()
        check(words[0] == compiler and all(map(ALLOWED.fullmatch, words[1:])), " ".join(words))
    return show


def builds_and_runs(name, compiler, source, lands=True):
    """A test of SOURCE; LANDS: its large messages must, by ch4:zc."""
    def build_and_run(setup):
        folder = pathlib.Path(tempfile.mkdtemp(dir=setup.scratch))
        program, statistics = folder / "program", folder / "statistics"
        command = [wrapper(setup, name, compiler), "-O2", HERE / source, "-o", program]
        built = subprocess.run(command, capture_output=True, text=True, check=False)
        check(built.returncode == 0, f"{name} cannot build {source}", built.stdout + built.stderr)
        netmod = setup.options.netmod
        environment = {CVAR + "STATS_FILE": str(statistics), CVAR + "LANDING_THREAD": "1",
                       CVAR + "NETWORK_RATE": "1"} if netmod == "zc" else {}
        result = mpi.Mpi(setup.prefix, setup.network, netmod=netmod).run(
            [program], timeout=60 * setup.patience, directory=folder,
            stacks=setup.options.stacks, environment={**environment, **setup.environment})
        said = result.out + result.err
        check(result.ok, result.reason(), said + result.stacks)
        check(re.search(r"^\s*No Errors\s*$", said, re.MULTILINE), "did not say No Errors", said)
        if netmod == "zc" and lands:
            check((add_up(statistics) or {}).get("landed"), "no message landed")
    return build_and_run


def of_full_build(test):
    """TEST, where there is such a build."""
    def run(setup):
        told = subprocess.run([pathlib.Path(setup.prefix) / "bin/mpichversion"], check=True,
                              capture_output=True, text=True).stdout
        if "--with-datatype-engine=dataloop" in told:
            raise Skip("not a full build: its datatype engine is dataloop")
        return test(setup)
    return run


suite = Suite("languages", "programs in C++ and Fortran, by the installation's own wrappers",
              beds=[Bed("two-hosts", tags=frozenset({"fast"}), hosts="2"),
                    Bed("full", hosts="1", only="full")],
              needs=("mpich",),
              tests=[*(Test(f"{name} -show", adds_nothing(name, compiler))
                       for name, compiler in WRAPPERS.items()),
                     *(Test(name, builds_and_runs(*how)) for name, how in PROGRAMS.items()),
                     *(Test(name, builds_and_runs(*how, lands=False))
                       for name, how in OTHERS.items()),
                     *(Test(name, of_full_build(builds_and_runs(*how, lands=False)),
                            frozenset({"full", "long"})) for name, how in FULL_PROGRAMS.items())])
SUITES = [suite]
