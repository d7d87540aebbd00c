# SPDX-License-Identifier: BSD-3-Clause
"""zc.ko built for every kernel it is meant for: the first complaint of any tool is a failure.

Per kernel: the compiler with W=1, sparse, modinfo, depmod, the names the module looks
up when it is loaded, that it does not build where an unexported function is declared
otherwise than it is called, and a build from the installed source by dkms. Per series, and
for 6.19: that the kernel's source walks the reverse mapping as kmod/zc_compat.h says. Once:
checkpatch --strict, kernel-doc, and the interface header on its own. Works on copies of
kmod/. Which kernels, debian.py tells.
"""
import contextlib
import functools
import pathlib
import re
import tempfile

from testbed.outcome import Skip, check
from testbed.suite import Bed, Suite
from tests.kmod import checks, debian

# Not built for, but the first of those that walk the reverse mapping under the folio lock.
BOUNDARY = "6.19"
# Of a module that is built; "build" comes before them.
OF_MODULE = {"sparse": checks.check_sparse, "modinfo": checks.check_modinfo,
             "symbols": checks.check_symbols, "depmod": checks.check_depmod,
             "prototypes": checks.check_prototypes}
OF_SOURCE = {"checkpatch": checks.check_checkpatch, "kernel-doc": checks.check_kernel_doc,
             "header": checks.check_header}


def options(group):
    group.add_argument("--offline", action="store_true", help="use only what is in the cache")
    group.add_argument("--module-source", type=pathlib.Path, default=checks.TOP, metavar="DIR",
                       help="a tree with Kbuild and kmod/ (default: this one)")


class Matrix:
    """Kernels, and the module built for each: made when first asked for, once."""

    def __init__(self, setup, stack):
        self.offline = setup.options.offline
        self.source = setup.options.module_source
        self.stack = stack
        # A Skip is kept, too: what cannot be had is not fetched again for each check.
        self.kernel, self.built = remembered(self._kernel), remembered(self._built)
        self.trixie = remembered(lambda: debian.Trixie(self.offline))

    def _kernel(self, name):
        if name in debian.MADE:
            return debian.MadeKernel(name, self.trixie())
        if name in debian.TRIXIE:
            return debian.TrixieKernel(name, self.trixie())
        return debian.HostKernel(name, self.offline)

    def _built(self, name):
        """(a copy of the source with zc.ko in it, complaints)"""
        tree = self.stack.enter_context(self.kernel(name).workplace())
        checks.copy_source(self.source, tree)
        return tree, checks.check_build(self.kernel(name), tree)

    def copy(self):
        """A copy of the source in which nothing is built."""
        tree = pathlib.Path(self.stack.enter_context(
            tempfile.TemporaryDirectory(prefix="zc-build-")))
        checks.copy_source(self.source, tree)
        return tree


def remembered(function):
    """FUNCTION, called once for each argument: it returns, or raises Skip, the same again."""
    @functools.lru_cache(None)
    def once(*words):
        try:
            return function(*words), None
        except Skip as reason:
            return None, reason

    def again(*words):
        result, reason = once(*words)
        if reason:
            raise reason
        return result
    return again


@contextlib.contextmanager
def matrix(setup):
    debian.KERNELS.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
        yield Matrix(setup, stack)


suite = Suite("kmod-build", "zc.ko built for the kernels it is meant for, without a complaint",
              beds=[Bed("kernels", tags=frozenset({"nightly"}))], open=matrix, options=options)
SUITES = [suite]


def no_complaints(found):
    check(not found, f"{len(found)} complaints", "\n".join(found))


def declare(kernel):
    """The tests of one kernel."""
    @suite.test(f"{kernel}/build")
    def _(them):
        no_complaints(them.built(kernel)[1])
        return them.kernel(kernel).release

    for name, function in OF_MODULE.items():
        @suite.test(f"{kernel}/{name}")
        def _(them, function=function):
            tree, _ = them.built(kernel)
            if not (tree / "zc.ko").exists():
                raise Skip("it does not build")
            no_complaints(function(them.kernel(kernel), tree))

    if kernel not in debian.TRIXIE:     # built on this machine, not in a Debian 13
        @suite.test(f"{kernel}/dkms")
        def _(them):
            no_complaints(checks.check_dkms(them.kernel(kernel), them.source))

    if kernel != "6.12-trixie":         # of a series that there is already
        @suite.test(f"{kernel}/walks")
        def _(them):
            return walks(them, re.match(r"\d+\.\d+", them.kernel(kernel).release)[0])


def walks(them, series):
    """The reverse mapping, in the source of SERIES, as kmod/zc_compat.h has it."""
    path, version = checks.rmap_source(series, them.trixie)
    no_complaints(checks.check_walks(path, version, them.copy()))
    return f"source of {version}"


for one in debian.NAMES:
    declare(one)


@suite.test(f"{BOUNDARY}/walks")
def boundary(them):
    return walks(them, BOUNDARY)


def declare_of_source(name, function):
    @suite.test(f"source/{name}")
    def _(them):
        no_complaints(function(them.copy()))


for one, made_of in OF_SOURCE.items():
    declare_of_source(one, made_of)
