# SPDX-License-Identifier: BSD-3-Clause
"""What a folder of tests declares: a suite, its tests, and the beds they run on.

    suite = Suite("migrate", "ranks of running jobs move between two hosts",
                  beds=[Bed("two-hosts", tags={"fast"})], needs={"mpich"}, open=open_stage)

    @suite.test(tags={"openmpi"})
    def one_rank(stage):
        with heat(stage) as job:
            ...

A test is a function of what `open` yields. It returns nothing, a note for its line of the
report, or a Note with values for the JSON results; it raises Fail, Skip or KnownFailure
(testbed.outcome). `tests/run` finds the suites by the list in tests/__init__.py.
"""
import contextlib
import dataclasses
import typing


@dataclasses.dataclass(frozen=True)
class Bed:
    """One configuration that a suite's tests run in.

    tags:    of all tests here: "fast" (make test), "nightly" (make test-nightly)
    hosts:   as `hosts up` has them, or "1", "loopback"; None: the tests make their own
    link, cores: of two or more hosts; None: bare, spare
    only:    just the tests that carry this tag; None: all but those tagged "long"
    long:    those too
    options: values of the suite's own options, by name
    """
    name: str
    tags: frozenset = frozenset()
    hosts: str | None = None
    link: str | None = None
    cores: str | None = None
    only: str | None = None
    long: bool = False
    options: dict = dataclasses.field(default_factory=dict)


    @property
    def kind(self):
        """Of the network: "1", "loopback", or "2" for two or more hosts; None: of the tests' own."""
        return "2" if self.hosts not in (None, "1", "loopback") else self.hosts


@dataclasses.dataclass
class Test:
    """One line of the report: a name that is a claim, and what shows it.

    kinds: of the networks that the claim is about (Bed.kind); other beds do not run it
    """
    name: str
    function: typing.Callable
    tags: frozenset = frozenset()
    repeat: int = 1
    kinds: tuple = ("2", "1", "loopback", None)

    def __call__(self, context):
        return self.function(context)


class Note(str):
    """A note for the report, with values for the JSON results."""

    def __new__(cls, text="", **values):
        note = super().__new__(cls, text)
        note.values = values
        return note


@dataclasses.dataclass
class Setup:
    """What a suite's `open` is given: where it is to run, and with what.

    options:   those of the command line, the suite's own included
    network:   a Network that is up; None where the bed has no hosts
    prefix:    of the MPI library; None where the suite needs none
    family:    "mpich" or "openmpi"
    scratch:   a folder of this bed, removed afterwards (kept with --keep)
    build_dir: where the suite builds its programs, kept from run to run
    patience:  factor of all time limits
    seed:      of whatever is drawn by chance
    """
    options: typing.Any
    network: typing.Any
    prefix: str | None
    family: str
    scratch: typing.Any
    build_dir: typing.Any
    patience: float
    seed: int
    header: str = ""        # titles of the notes' columns; with it they stand below each other
    log: typing.Callable = print

    @property
    def environment(self):
        """What -e gives."""
        return dict(pair.split("=", 1) for pair in self.options.env)


@contextlib.contextmanager
def just_the_setup(setup):
    yield setup


class Suite:
    """Tests that need the same things.

    beds:     the first is the one of `tests/run NAME`
    needs:    of "mpich" (an MPICH with ch4:zc), "root", and programs on PATH: else all are skipped
    families: the MPI libraries it can run with
    open:     context manager: a Setup in, what each test is given out; it may raise Skip or Error
    discover: tests that depend on what is there: called with what `open` yields
    options:  called with a group of the parser, to add options of this suite's own
    parallel: tests may run at the same time (--jobs)
    closing:  tests of the run as a whole, after the others, whatever the filter; once
    """

    def __init__(self, name, about, beds, needs=(), families=("mpich",), open=just_the_setup,
                 discover=None, options=None, parallel=False, tests=(), closing=()):
        self.name = name
        self.about = about
        self.beds = list(beds)
        self.needs = tuple(needs)
        self.families = families
        self.open = open
        self.discover = discover
        self.options = options
        self.parallel = parallel
        self.tests = list(tests)
        self.closing = list(closing)

    def test(self, name=None, tags=(), repeat=1):
        """Decorates a test; its name is the function's, if none is given."""
        def add(function):
            self.tests.append(Test(name or function.__name__, function, frozenset(tags), repeat))
            return function
        return add

    def of(self, bed, context=None):
        """The tests of BED."""
        tests = list(self.tests)
        if self.discover and context is not None:
            tests += self.discover(context)
        tests = [test for test in tests if bed.kind in test.kinds]
        if bed.only:
            return [test for test in tests if bed.only in test.tags]
        return [test for test in tests if bed.long or "long" not in test.tags]
