# SPDX-License-Identifier: BSD-3-Clause
"""The Debian packages: installed in a Debian of their own, used there, and removed.

They are built first (packaging/build-deb), unless --packages names a folder that has them.
"""
import contextlib
import json
import pathlib
import re
import shutil
import subprocess

from testbed.outcome import Fail, Skip, check
from testbed.statistics import CVAR, add_up
from testbed.suite import Bed, Note, Suite
from tests.packaging import chroot

HERE = pathlib.Path(__file__).resolve().parent
TOP = HERE.parents[1]
NAMES = {"libzc0", "libzc-dev", "zc-tools", "zc-mpich", "zc-dkms"}
STATISTICS = "/tmp/statistics"


class Installed:
    """A Debian in which the packages are installed."""

    def __init__(self, debian, packages):
        self.debian = debian
        self.before = debian.paths()
        for path in packages:
            shutil.copy(path, debian.path("/tmp"))
        for name in ("late.c", "use_libzc.c"):
            shutil.copy(HERE / name, debian.path("/tmp"))
        self.said = debian.apt("install", *(f"/tmp/{path.name}" for path in packages))
        self.prefix = next(path for path in self.files("zc-mpich") if path.endswith("/zc-mpich"))

    def files(self, package):
        return self.debian.run("dpkg", "-L", package).splitlines()

    def built_by(self, mpicc):
        """late.c, compiled with a wrapper."""
        self.debian.run(mpicc, "-Wall", "-Werror", "/tmp/late.c", "-o", f"/tmp/late.{mpicc}")
        return f"/tmp/late.{mpicc}"

    def late(self, mpiexec, program, **environment):
        """The statistics of a job whose messages come before their receives; None without any."""
        for file in self.debian.path("/tmp").glob("statistics.*"):
            file.unlink()
        said = self.debian.run(mpiexec, "-n", "2", program, environment={
            CVAR + "STATS_FILE": STATISTICS, CVAR + "LANDING_THREAD": "1", **environment})
        check(said.split() == ["0", "wrong"], "the program's output is another", said)
        return add_up(self.debian.path(STATISTICS))


def packages_in(folder):
    """The files of our packages in FOLDER."""
    found = [path for path in sorted(folder.glob("*.deb")) if path.name.split("_")[0] in NAMES]
    missing = NAMES - {path.name.split("_")[0] for path in found}
    if missing:
        raise Skip(f"{folder} has no package {', '.join(sorted(missing))}")
    return found


def build(setup):
    """Build the packages of the tree as it is, where `make deb` does; their folder."""
    if subprocess.run([TOP / ".ci/install-packages", "--deb", "--check"], capture_output=True,
                      check=False).returncode:
        raise Skip("what builds Debian packages is not installed (.ci/install-packages --deb)")
    done = subprocess.run([TOP / "packaging/build-deb", "--jobs", str(setup.options.jobs)],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode:
        raise Fail("packaging/build-deb: " + " / ".join(done.stdout.splitlines()[-8:]))
    return TOP / "out/deb"


@contextlib.contextmanager
def installed(setup):
    folder = pathlib.Path(setup.options.packages or build(setup)).resolve()
    packages = packages_in(folder)
    try:
        yield Installed(chroot.copy(setup.scratch / "debian", setup.patience), packages)
    except Fail as failure:
        raise Fail(f"{failure}: " + " / ".join(failure.output.splitlines()[-8:])) from failure


def add_options(group):
    group.add_argument("--packages", metavar="DIR",
                       help="of Debian packages to test (default: they are built)")


suite = Suite("deb", "Debian packages are installed, used and removed in a Debian of their own",
              beds=[Bed("chroot", tags=frozenset({"nightly"}))], needs={"root", "debootstrap"},
              open=installed, options=add_options)
SUITES = [suite]


@suite.test()
def tools_run(system):
    """Every command of zc-tools has its libraries."""
    names = [path.removeprefix("/usr/bin/") for path in system.files("zc-tools")
             if path.startswith("/usr/bin/")]
    check({"zcctl", "zcmd", "zcm-run", "zc-trace", "zc-forecast", "zc-hold", "zc-info"} <= set(names), f"only {names}")
    for name in names:
        said = system.debian.run(name, "--help")
        check(name in said, f"{name} --help does not tell what it is", said)
    return ", ".join(names)


@suite.test()
def manual_pages(system):
    """man(1) finds a page of every command, and the pages of the other sections."""
    commands = [path.rpartition("/")[2] for package in ("zc-tools", "zc-mpich")
                for path in system.files(package) if path.startswith("/usr/bin/")]
    others = ["2 ioctl_zc", "3 zcm", "5 zcmd.toml", "7 zc", "8 zcmd"]
    for page in commands + others:
        shown = system.debian.run("man", *page.split(), environment={"MANPAGER": "cat"})
        check("NAME" in shown, f"man {page} shows no page", shown)
    return f"{len(commands) + len(others)} pages"


@suite.test()
def program_of_libzc(system):
    """libzc-dev is enough to build a program with libzc, and no setting to run it."""
    system.debian.run("gcc", "-Wall", "-Werror", "/tmp/use_libzc.c", "-lzc", "-o", "/tmp/use_libzc")
    return system.debian.run("/tmp/use_libzc").strip()


@suite.test()
def late_message_lands(system):
    told = system.late("mpiexec.zc", system.built_by("mpicc.zc"))
    check(told and told["ranks"] == 2, "the ranks wrote no statistics")
    check(told["landed"] > 0, f"no message landed: {told}")
    return Note(f"{told['landed']} landed", landed=told["landed"])


@suite.test()
def tracer_is_found(system):
    """zc-trace finds its libraries where the packages have them."""
    program = system.built_by("mpicc.zc")
    said = system.debian.run("zc-trace", "--json", "--force", "-o", "/tmp/trace",
                             "mpiexec.zc", "-n", "2", program)
    told = json.loads(said.splitlines()[-1])
    check(told["complete"] == 2 and told["receives"] > 0, f"it has recorded {told}", said)


@suite.test()
def debians_mpich_beside_it(system):
    """Debian's MPICH is what it was, and a program built with it runs on ours, too."""
    debian = system.debian
    for name in ("mpicc", "mpiexec"):
        real = debian.run("readlink", "-f", f"/usr/bin/{name}").strip()
        check("zc" not in real, f"{name} is {real}")
    program = system.built_by("mpicc")
    linked = debian.run("ldd", program)
    check("zc-mpich" not in linked, "Debian's mpicc links with our library", linked)
    check(system.late("mpiexec", program) is None, "Debian's MPICH writes our statistics")
    told = system.late("mpiexec.zc", program, LD_LIBRARY_PATH=f"{system.prefix}/lib")
    check(told and told["landed"] > 0, f"on our library no message of it landed: {told}")


@suite.test()
def module_is_built(system):
    """DKMS builds the module for the kernel whose headers are there."""
    debian = system.debian
    kernels = debian.kernels()
    if not kernels:
        raise Skip(f"the mirror has no {chroot.HEADERS}")
    version = re.search(r"zc/([\d.]+)", debian.run("dkms", "status"))[1]
    for kernel in kernels:
        debian.run("dkms", "install", f"zc/{version}", "-k", kernel, timeout=300)
        known = debian.run("dkms", "status", "-k", kernel)
        check(re.search(rf"^zc/{version}, {kernel}, x86_64: installed", known, re.M),
              f"it is not installed for {kernel}", known)
        told = debian.run("modinfo", "-k", kernel, "zc")
        check(re.search(r"^license: +GPL", told, re.M), "modinfo does not know it", told)
    check(debian.run("getent", "group", "zc").startswith("zc:"), "there is no group zc")
    return ", ".join(kernels)


@suite.test()
def nothing_is_left(system):
    """Removed, the packages leave no file, and what came with them can go, too."""
    debian = system.debian
    debian.apt("purge", *sorted(NAMES))
    debian.apt("autoremove", "--purge")
    left = debian.paths() - system.before
    check(not left, f"{len(left)} files are left", "\n".join(sorted(left)))
    gone = system.before - debian.paths()
    check(not gone, f"{len(gone)} files of others are gone", "\n".join(sorted(gone)))
    system.late("mpiexec", system.built_by("mpicc"))
