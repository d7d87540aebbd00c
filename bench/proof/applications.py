# SPDX-License-Identifier: BSD-3-Clause
"""What would programs of Debian gain by ch4:zc, what does zc-forecast say, and do they gain it?

The programs of tests/programs, as Debian has built them, run with stock ch4:ucx, with ch4:zc, and
with ch4:ucx recorded by zc-forecast, by turns, round after round, on hosts with links of 10 and of
1 Gbit/s. Each result is checked. The time is that of the whole job, its start included. A forecast
is ok if it differs from the measured gain by at most 20 % of that or 2 % of the run's time.

A program whose package is not installed is left out, and said so.
"""
import dataclasses
import itertools
import re
import sys
import types

from bench.mpi import report
from bench.mpi.report import TOP
from bench.proof import rounds
from bench.proof.measure import IMPLEMENTATIONS
from bench.proof.rounds import Recorded
from bench.proof.truth import Truth
from testbed.mpi import Mpi
from testbed.outcome import Error, Fail, Skip
from tests.programs import suite as programs

IMPLS = ("ucx", "zc", "forecast")
ATTEMPTS = 5    # stock ch4:ucx hangs in MPI_Finalize now and then, and such a run has no time
ORDER, BLOCK = 4096, 128    # of the matrix that pdgesv solves
YORICK_ROUNDS = 100
LIMITS = {"lu": 1.0, "llt": 3.0, "qr": 5.0}     # of ScaLAPACK's residuals


def solve(run):
    program, *_ = programs.solve(run)
    return [program, ORDER, BLOCK]


def factorize(kind):
    """As tests/run hold-programs has it, which prints all residuals; here too large ones count."""
    def prepare(run):
        words = programs.scalapack(f"xd{kind}", f"{kind.upper()}.dat", TOP / "tests/holder/scalapack")(run)
        data = run.directory / f"{kind.upper()}.dat"
        text, changes = re.subn(r"^0\.0(?=\s+threshold)", str(LIMITS[kind]), data.read_text(),
                                flags=re.MULTILINE)
        if changes != 1:
            raise Error(f"{data.name} has another threshold than 0")
        data.write_text(text)
        return words
    return prepare


def choose_programs():
    """{name: program}: those of tests/programs, some with more to do, a rank for each of two processors."""
    known = {test.name: test.function for test in programs.suite.tests}
    more = {f"scalapack-{kind}": {"prepare": factorize(kind)} for kind in LIMITS}
    more |= {"pdgesv": {"prepare": solve},
             "yorick": {"prepare": programs.yorick(YORICK_ROUNDS),
                        "right": programs.yorick_right(YORICK_ROUNDS)},
             "bagel-benzene": {}}
    return {name: dataclasses.replace(known[name], **changes) for name, changes in more.items()} | {
        "nwchem-benzene": dataclasses.replace(
            known["nwchem-water"], prepare=programs.copy_input("nwchem.mpich", "benzene.nw"))}


PROGRAMS = choose_programs()


class Measurement:
    def __init__(self, options, network, scratch):
        self.options, self.network = options, network
        self.scratch = scratch
        self.library = programs.Library(types.SimpleNamespace(
            prefix=options.mpich, scratch=self.scratch, network=network, patience=1, environment={},
            options=types.SimpleNamespace(own_netmod=False, netmod="zc", stacks=False)))
        self.prepared = {}      # name: programs.Run
        self.seconds = {}       # (setting, name, impl): {round: seconds}
        self.saved = {}         # (setting, name): {round: seconds}
        self.found = {}         # (setting, name): what the last recording says of the whole job
        self.left_out, self.failures = {}, []

    def prepare(self):
        for name in self.options.programs:
            program = PROGRAMS[name]
            try:
                programs.check_installed(program.command, program.packages)
                self.prepared[name] = programs.Run(program, self.library)
            except Skip as reason:
                self.left_out[name] = str(reason)
                print(f"left out: {name}: {reason}", flush=True)
        if not self.prepared:
            raise Error("none of the programs is installed")

    def run(self):
        plan = [(turn, setting, name, impl)
                for turn, setting, name in itertools.product(
                    range(self.options.rounds), self.options.settings, self.prepared)
                for impl in rounds.by_turns(IMPLS, turn)]
        for turn, setting, name, impl in rounds.follow(plan, self.network):
            try:
                print(self.run_program(turn, setting, name, impl), flush=True)
            except (Error, Fail) as failure:
                self.failures.append(f"{setting}: {name} {impl}: {failure}")
                print(f"FAILED: {failure}", flush=True)

    def mpi(self, impl):
        netmod = IMPLEMENTATIONS[impl].netmod
        if impl == "forecast":
            return Recorded(self.options.forecaster, self.scratch / "recording",
                            self.options.mpich, self.network, netmod=netmod)
        return Mpi(self.options.mpich, self.network, netmod=netmod)

    def run_program(self, turn, setting, name, impl):
        run, program, mpi = self.prepared[name], PROGRAMS[name], self.mpi(impl)
        for _ in range(ATTEMPTS):
            result = mpi.run(
                run.words, ranks=run.ranks, timeout=self.options.timeout, directory=run.directory,
                environment={**programs.ONE_THREAD, **program.environment,
                             "LD_LIBRARY_PATH": str(self.library.folder)},
                finalize_grace=programs.FINALIZE_GRACE_S if program.last else None,
                settled=lambda line: bool(program.last and re.search(program.last, line)))
            if impl == "zc" or not result.hung_in_finalize:
                break
            print("hung in MPI_Finalize, again:", end=" ", flush=True)
        if not result.ok:
            raise Fail(result.reason())
        program.right(run, result.out + result.err)
        if impl == "forecast":
            return self.note_forecast(turn, setting, name, mpi.report())
        self.seconds.setdefault((setting, name, impl), {})[turn] = result.seconds
        return f"{result.seconds:7.2f} s"

    def note_forecast(self, turn, setting, name, said):
        self.found[setting, name] = said["total"]
        self.saved.setdefault((setting, name), {})[turn] = said["forecast"]["saved_seconds"]
        return f"saves {said['forecast']['saved_seconds']:.2f} of " \
               f"{said['forecast']['recorded_seconds']:.2f} s"

    # -- results ------------------------------------------------------------

    def truth(self, setting, name):
        """None if something is missing."""
        both = [self.seconds.get((setting, name, impl), {}) for impl in ("ucx", "zc")]
        turns = sorted(set(both[0]) & set(both[1]))
        saved = tuple(self.saved.get((setting, name), {}).values())
        if not turns or not saved:
            return None
        return Truth(*(tuple(each[turn] for turn in turns) for each in both), saved)

    def truths(self):
        for name, setting in itertools.product(self.prepared, self.options.settings):
            if found := self.truth(setting, name):
                yield setting, name, found, self.found[setting, name]

    def print_truths(self):
        report.print_table(
            "time of the job, s; what its ranks waited for with stock, s; what ch4:zc gains",
            ["program", "ranks", "link", "messages", "MiB", "late senders", "late receivers",
             *rounds.TRUTH_COLUMNS],
            [[name, PROGRAMS[name].ranks, setting.link, total["messages"],
              f"{total['bytes'] / (1 << 20):.0f}", f"{total['late_senders']['seconds']:.2f}",
              "{:.2f} + {:.2f}".format(total["late_receivers"]["held_seconds"],
                                       total["late_receivers"]["transfer_seconds"]),
              *rounds.truth_cells(found)] for setting, name, found, total in self.truths()])

    def records(self):
        for (setting, name, impl), times in self.seconds.items():
            yield report.record_of("applications", setting, name, impl, 0, "time_to_solution", "s",
                                   list(times.values())) | {"ranks": PROGRAMS[name].ranks}
        for (setting, name), times in self.saved.items():
            yield report.record_of("applications", setting, name, "forecast", 0, "saved", "s",
                                   list(times.values())) | {"ranks": PROGRAMS[name].ranks}

    def verdict(self):
        return [{"case": name, "link": setting.link, **found.json(), "found": total}
                for setting, name, found, total in self.truths()]


def parse():
    parser = rounds.parser_of("applications", __doc__, "applications.jsonl")
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="default 3")
    parser.add_argument("--programs", type=report.names(list(PROGRAMS)), metavar="NAME,...",
                        default=list(PROGRAMS), help=f"default {','.join(PROGRAMS)}")
    parser.add_argument("--timeout", type=float, default=600, metavar="SECONDS",
                        help="limit of one run (default 600)")
    return parser.parse_args()


def main():
    options = parse()

    def measure():
        with rounds.open_hosts(options, 2) as (network, scratch, about):
            measurement = Measurement(options, network, scratch)
            measurement.prepare()
            measurement.run()
        return measurement, about

    def show(measurement, about):
        measurement.print_truths()
        about |= {"load_after": report.load(), "rounds": options.rounds,
                  "left_out": measurement.left_out, "failed": measurement.failures,
                  "verdict": measurement.verdict()}
        shown = report.write_jsonl(options.json_out, [{"context": about}, *measurement.records()])
        print(f"\nresults: {shown}")
        return measurement.failures

    return rounds.run_main("applications", measure, show)


if __name__ == "__main__":
    sys.exit(main())
