# SPDX-License-Identifier: BSD-3-Clause
"""How one line of the table in suite.py is run and judged: an MPI job and its statistics."""
import collections
import copy
import json
import pathlib
import re

from testbed import mpi, outcome, suite
from testbed.outcome import Fail, Skip
from testbed.statistics import CVAR, add_up

HERE = pathlib.Path(__file__).resolve().parent
TOP = HERE.parents[1]
FINALIZE_GRACE_S = 5
# What Hydra says of a process that ends badly, whatever that said itself.
BANNER = re.compile(r"^(=|YOUR APPLICATION TERMINATED|This typically refers|Please see the FAQ).*\n?",
                    re.MULTILINE)
# What lands must not depend on how fast this machine's memory is beside its network: it all does.
BASE = {CVAR + "LANDING_THREAD": "1", CVAR + "NETWORK_RATE": "1"}
VARIANTS = {
    "copy": {CVAR + "LANDING_THREAD": "1", CVAR + "BACKEND": "copy"},
    "no-thread": {CVAR + "LANDING_THREAD": "0"},
    "left": {CVAR + "LANDING_THREAD": "1", CVAR + "NETWORK_RATE": "inf"},
    "weighed": {CVAR + "LANDING_THREAD": "1", CVAR + "NETWORK_RATE": "auto"},
    "small-budget": {CVAR + "LANDING_THREAD": "1", CVAR + "LANDING_BUDGET": "3m"},
    "by-ucx": {CVAR + "LANDING_THREAD": "1", CVAR + "LANE": "ucx", CVAR + "BULK_APART": "1"},
}


class Stage:
    """The MPI library on the network of this bed, and programs built with it."""

    def __init__(self, setup):
        self.setup = setup
        self.netmod = setup.options.netmod
        self.mpi = mpi.Mpi(setup.prefix, setup.network, netmod=self.netmod)
        self.headers = sorted(HERE.glob("*.h"))
        self.turns = collections.Counter()      # of each test: every run has a seed of its own

    def build(self, program):
        """Its path. Each is built when it is wanted: there are many, and often few are."""
        source = next(path for path in (HERE / f"{program}.c", TOP / f"examples/{program}.c")
                      if path.exists())
        return mpi.build(self.setup.prefix, [source], self.setup.build_dir,
                         headers=self.headers)[program]


class Test(suite.Test):
    """One line of the report.

    ranks, args, environment, timeout: how it is run; repeat: how often
    netmods:  where the claim holds
    variants: also run in the configurations of VARIANTS
    dies:     the job must end with an error
    says:     what the job, or that error, must say (an expression)
    never_says: what it must not
    interfaces: that many more on each of two hosts, and UCX takes all that there are
    hosts:    the networks (--hosts) it is about; "2" are two or more hosts. One that is not about
              them has the tag of the bed of one host, or of loopback
    launcher: further options of mpiexec
    holder:   options of holder.c, which then starts the ranks; FILE in these, and in args, is the
              name of a file of this run
    costs:    figures of a cost file; None: each process measures what deliveries cost
    check:    of the statistics summed over the ranks (checks.py)
    """

    def __init__(self, program, *args, name=None, ranks=2, environment=None, timeout=60, repeat=1,
                 netmods=("ucx", "zc"), variants=False, dies=False, says=None, never_says=None,
                 check=None, hosts=("2", "1", "loopback"), launcher=(), costs=None, tags=(),
                 interfaces=0, holder=None):
        if "2" not in hosts:
            tags = {*tags, *({"1": "one-host"}.get(kind, kind) for kind in hosts)}
        super().__init__(name or program, None, frozenset(tags), repeat, hosts)
        self.program = program
        self.args = args
        self.ranks = ranks
        self.environment = environment or {}
        self.timeout = timeout
        self.netmods = netmods
        self.variants = variants
        self.dies = dies
        self.says = says
        self.never_says = never_says
        self.check = check
        self.launcher = launcher
        self.interfaces = interfaces
        self.costs = costs
        self.holder = holder

    def with_variant(self, variant):
        """The same in another configuration, where the statistics may be others."""
        test = copy.copy(self)
        test.name = f"{self.name}@{variant}"
        test.environment = {**self.environment, **VARIANTS[variant]}
        test.netmods, test.kinds, test.tags = ("zc",), ("2", "1", "loopback"), frozenset()
        test.check = test.says = test.never_says = None
        return test

    def __call__(self, stage):
        if stage.netmod not in self.netmods:
            raise Skip(f"not a promise of ch4:{stage.netmod}")
        turn = stage.turns[self.name]
        stage.turns[self.name] += 1
        result, stats = self.run(stage, turn)
        note = ""
        said = result.out + result.err
        if self.says and not re.search(self.says, said) and not BANNER.sub("", said).strip():
            # A process that ends in MPI_Init may be dead before Hydra has read its words.
            result, stats = self.run(stage, turn)
            note = "once Hydra lost what was said"
        try:
            return self.judge(result, stats, stage.netmod) or note
        except Fail as failure:
            failure.output = result.err + result.stacks
            raise

    def run(self, stage, turn):
        """(result, statistics or None)"""
        setup = stage.setup
        prefix = setup.scratch / f"{self.name}-{turn}"
        environment = {"ZC_SEED": str(setup.seed + turn)}
        if stage.netmod == "zc":
            environment |= {**BASE, CVAR + "STATS_FILE": str(prefix)}
        if self.costs:
            costs = setup.scratch / f"{self.name}.costs"
            costs.write_text(json.dumps(self.costs), encoding="ascii")
            environment[CVAR + "COST_FILE"] = str(costs)
        if self.interfaces:
            environment["UCX_NET_DEVICES"] = "all"
        with setup.network.more_interfaces(self.interfaces):
            result = stage.mpi.run(
                self.command(stage, str(setup.scratch / f"{self.name}-{turn}.mark")),
                ranks=self.ranks,
                timeout=self.timeout * setup.patience, launcher=self.launcher,
                environment={**environment, **self.environment, **setup.environment},
                directory=setup.scratch, stacks=setup.options.stacks,
                finalize_grace=None if stage.netmod == "zc" else FINALIZE_GRACE_S)
        return result, add_up(prefix)

    def command(self, stage, file):
        words = [stage.build(self.program), *self.args]
        if self.holder is not None:
            words = [stage.build("holder"), *self.holder, "--", *words]
        return [file + word[4:] if str(word).startswith("FILE") else word for word in words]

    def judge(self, result, stats, netmod):
        skipped = re.search(r"^SKIP: (.*)", result.out, re.MULTILINE)
        if skipped:
            raise Skip(skipped[1])
        if self.dies:
            outcome.check(not result.timed_out, result.reason())
            outcome.check(not result.ok, "ended as if nothing had happened")
        elif result.hung_in_finalize:
            return "but hung in MPI_Finalize, as stock ch4:ucx does now and then"
        elif not result.ok:
            said = re.search(r"^rank \d+: .*", result.err, re.MULTILINE)
            raise Fail(said[0] if said else result.reason())
        said = self.never_says and re.search(self.never_says, result.out + result.err)
        outcome.check(not said, f"said '{said and said[0]}'")
        outcome.check(not self.says or re.search(self.says, result.out + result.err),
              f"ended without saying '{self.says}'")
        if netmod != "zc" or not self.check:
            return ""
        outcome.check(stats is not None, f"no statistics ({CVAR}STATS_FILE)")
        return self.check(stats)
