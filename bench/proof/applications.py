# SPDX-License-Identifier: BSD-3-Clause
"""What would programs of Debian gain by ch4:zc, what does zc-forecast say, and do they gain it?

The programs of tests/programs, as Debian has built them, run with stock ch4:ucx, with ch4:zc, and
with ch4:ucx recorded by zc-forecast, by turns, round after round, on hosts with links of 10 and of
1 Gbit/s. Each result is checked. The time is that of the whole job, its start included. A forecast
is ok if it differs from the measured gain by at most 20 % of that or 2 % of the run's time.

A program whose package is not installed is left out, and said so.
"""
import argparse
import dataclasses
import itertools
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import types

from bench.mpi import report, settings
from bench.mpi.report import TOP
from bench.mpi.settings import Setting
from bench.proof.cases import LINKS
from bench.proof.measure import IMPLEMENTATIONS, Recorded
from bench.proof.truth import Truth
from bench.spread import median
from testbed.mpi import Mpi, prefix_or_die
from testbed.network import Network, enter_private_namespace
from testbed.outcome import EXIT_USAGE, Error, Fail, Skip
from testbed.process import exit_on_sigterm
from tests.programs import suite as programs

IMPLS = ("ucx", "zc", "forecast")
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
        self.scratch = pathlib.Path(scratch)
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
                for impl in IMPLS[turn % len(IMPLS):] + IMPLS[:turn % len(IMPLS)]]
        begin = time.monotonic()
        for index, (turn, setting, name, impl) in enumerate(plan, 1):
            elapsed = int(time.monotonic() - begin)
            print(f"[{index:3}/{len(plan)} {elapsed // 60:2}:{elapsed % 60:02}] round {turn + 1} "
                  f"{setting!s:<12} {name:<14} {impl:<9}", end=" ", flush=True)
            settings.enter(self.network, setting)
            try:
                print(self.run_program(turn, setting, name, impl), flush=True)
            except Fail as failure:
                self.failures.append(f"{setting}: {name} {impl}: {failure}")
                print(f"FAILED: {failure}", flush=True)

    def mpi(self, impl):
        netmod = IMPLEMENTATIONS[impl].netmod
        if impl == "forecast":
            return Recorded(str(self.options.forecaster), self.scratch / "recording",
                            self.options.mpich, self.network, netmod=netmod)
        return Mpi(self.options.mpich, self.network, netmod=netmod)

    def run_program(self, turn, setting, name, impl):
        run, program = self.prepared[name], PROGRAMS[name]
        last = program.last
        # Stock ch4:ucx may hang in MPI_Finalize: then its result is right, and its time none.
        result = self.mpi(impl).run(
            run.words, ranks=run.ranks, timeout=self.options.timeout, directory=run.directory,
            environment={**programs.ONE_THREAD, **program.environment,
                         "LD_LIBRARY_PATH": str(self.library.folder)},
            finalize_grace=programs.FINALIZE_GRACE_S if last else None,
            settled=lambda line: bool(last and re.search(last, line)))
        if not result.ok:
            raise Fail(result.reason())
        program.right(run, result.out + result.err)
        if impl == "forecast":
            return self.note_forecast(turn, setting, name)
        self.seconds.setdefault((setting, name, impl), {})[turn] = result.seconds
        return f"{result.seconds:7.2f} s"

    def note_forecast(self, turn, setting, name):
        done = subprocess.run([self.options.forecaster, "report", "--json", self.scratch / "recording"],
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Fail(f"no report: {done.stderr.strip()}")
        said = json.loads(done.stdout)
        if not said["forecast"]:
            raise Fail(f"no forecast: {said['no_forecast']}")
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
            ["program", "ranks", "link", "messages", "MiB", "late senders", "late receivers", "ucx",
             "zc", "ratio", "of the rounds", "gain", "forecast", "verdict"],
            [[name, PROGRAMS[name].ranks, setting.link, total["messages"],
              f"{total['bytes'] / (1 << 20):.0f}", f"{total['late_senders']['seconds']:.2f}",
              "{:.2f} + {:.2f}".format(total["late_receivers"]["held_seconds"],
                                       total["late_receivers"]["transfer_seconds"]),
              f"{found.time_s:.2f}", f"{median(found.zc):.2f}", f"{found.ratio:.2f}",
              "{:.2f}..{:.2f}".format(*found.ratios), f"{found.gain_s:.2f}",
              f"{found.forecast_s:.2f}",
              "ok" if found.ok else f"missed by {found.error_s:+.2f} (allowed {found.allowed_s:.2f})"]
             for setting, name, found, total in self.truths()])

    def records(self):
        for (setting, name, impl), rounds in self.seconds.items():
            yield report.record_of("applications", setting, name, impl, 0, "time_to_solution", "s",
                                   list(rounds.values())) | {"ranks": PROGRAMS[name].ranks}
        for (setting, name), rounds in self.saved.items():
            yield report.record_of("applications", setting, name, "forecast", 0, "saved", "s",
                                   list(rounds.values())) | {"ranks": PROGRAMS[name].ranks}

    def verdict(self):
        return [{"case": name, "link": setting.link, **found.json(), "found": total}
                for setting, name, found, total in self.truths()]


def parse():
    parser = argparse.ArgumentParser(prog="bench/run applications", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter,
                                     epilog="exit status: 0 all that is installed ran (whatever the"
                                     " verdict); 1 something did not run; 2 usage")
    parser.add_argument("--mpich", metavar="PREFIX",
                        help="MPICH with ch4:zc and ch4:ucx (default: $ZC_MPICH)")
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="default 3")
    parser.add_argument("--settings", type=settings.parse, metavar="LINK/CORES,...",
                        default=[Setting(link, "spare") for link in LINKS],
                        help="links of 10gbit and 1gbit (default: both, spare cores)")
    parser.add_argument("--programs", type=report.names(list(PROGRAMS)), metavar="NAME,...",
                        default=list(PROGRAMS), help=f"default {','.join(PROGRAMS)}")
    parser.add_argument("--forecaster", type=pathlib.Path, metavar="PROGRAM",
                        default=TOP / "build/release/bin/zc-forecast",
                        help="default build/release/bin/zc-forecast")
    parser.add_argument("--json-out", metavar="FILE", default=str(TOP / "out/applications.jsonl"),
                        help="default out/applications.jsonl")
    parser.add_argument("--timeout", type=float, default=600, metavar="SECONDS",
                        help="limit of one run (default 600)")
    return parser.parse_args()


def main():
    options = parse()
    exit_on_sigterm()
    try:
        options.mpich = prefix_or_die(options.mpich)
        if not options.forecaster.exists():
            raise Error(f"no {options.forecaster} (make build)")
        options.forecaster = options.forecaster.absolute()
        enter_private_namespace()
        with Network("2", link=options.settings[0].link) as network, \
                tempfile.TemporaryDirectory(prefix="zc-applications-") as scratch:
            versions = {"mpich": report.mpich_version(options.mpich), "ucx": report.ucx_version()}
            about = report.context(network, versions) | {"autogroup": network.autogroup.state}
            report.print_context(about, network)
            network.autogroup.print_warning()
            measurement = Measurement(options, network, scratch)
            measurement.prepare()
            measurement.run()
    except Error as error:
        print(f"applications: {error}", file=sys.stderr)
        return EXIT_USAGE
    except KeyboardInterrupt:
        return 130
    measurement.print_truths()
    about |= {"load_after": report.load(), "rounds": options.rounds,
              "left_out": measurement.left_out, "failed": measurement.failures,
              "verdict": measurement.verdict()}
    shown = report.write_jsonl(options.json_out, [{"context": about}, *measurement.records()])
    print(f"\nresults: {shown}")
    if measurement.failures:
        print("\nfailed runs:\n  " + "\n  ".join(measurement.failures), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
