# SPDX-License-Identifier: BSD-3-Clause
"""What both benchmarks of this folder do alike: rounds between hosts, with a recorded run in each."""
import argparse
import contextlib
import json
import pathlib
import subprocess
import sys
import tempfile
import time

from bench.mpi import report, settings
from bench.mpi.report import TOP
from bench.mpi.settings import Setting
from bench.proof.cases import LINKS
from bench.spread import median
from testbed.mpi import Mpi, prefix_or_die
from testbed.network import Network, enter_private_namespace
from testbed.outcome import EXIT_USAGE, Error
from testbed.process import exit_on_sigterm

STATUS = "exit status: 0 all ran (whatever the verdict); 1 something did not run; 2 usage"
FORECASTER = TOP / "build/release/bin/zc-forecast"


class Recorded(Mpi):
    """Runs that zc-forecast records."""

    def __init__(self, forecaster, folder, *args, **more):
        super().__init__(*args, **more)
        self.forecaster, self.folder = str(forecaster), folder

    def command(self, ranks, options=()):
        words = super().command(ranks, options)
        at = words.index(self.mpiexec)
        return [*words[:at], self.forecaster, "--force", "-o", str(self.folder), *words[at:]]

    def report(self):
        """What zc-forecast says of the last run, as from --json. Throws Error if it does not."""
        done = subprocess.run([self.forecaster, "report", "--json", self.folder],
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Error(f"no report: {done.stderr.strip()}")
        said = json.loads(done.stdout)
        if not said["forecast"]:
            raise Error(f"no forecast: {said['no_forecast']}")
        return said


def by_turns(values, turn):
    """Each round begins with another one."""
    start = turn % len(values)
    return values[start:] + values[:start]


def follow(plan, network):
    """Of (round, setting, name, implementation, ...) each, when the hosts are ready, and announced."""
    begin = time.monotonic()
    for index, (turn, setting, name, impl, *more) in enumerate(plan, 1):
        elapsed = int(time.monotonic() - begin)
        print(f"[{index:3}/{len(plan)} {elapsed // 60:2}:{elapsed % 60:02}] round {turn + 1} "
              f"{setting!s:<12} {name:<14} {impl:<9}", end=" ", flush=True)
        settings.enter(network, setting)
        yield turn, setting, name, impl, *more


TRUTH_COLUMNS = ["ucx", "zc", "ratio", "of the rounds", "gain", "forecast", "of the rounds", "verdict"]


def truth_cells(found):
    """Of a table with these columns."""
    return [f"{found.time_s:.2f}", f"{median(found.zc):.2f}", f"{found.ratio:.2f}",
            "{:.2f}..{:.2f}".format(*found.ratios), f"{found.gain_s:.2f}", f"{found.forecast_s:.2f}",
            "{:.2f}..{:.2f}".format(*found.forecast_spread),
            "ok" if found.ok else f"missed by {found.error_s:+.2f} (allowed {found.allowed_s:.2f})"]


def parser_of(name, about, results):
    parser = argparse.ArgumentParser(prog=f"bench/run {name}", description=about, epilog=STATUS,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mpich", metavar="PREFIX",
                        help="MPICH with ch4:zc and ch4:ucx (default: $ZC_MPICH)")
    parser.add_argument("--settings", type=settings.parse, metavar="LINK/CORES,...",
                        default=[Setting(link, "spare") for link in LINKS],
                        help="links of 10gbit and 1gbit (default: both, spare cores)")
    parser.add_argument("--forecaster", type=pathlib.Path, metavar="PROGRAM", default=FORECASTER,
                        help=f"default {FORECASTER.relative_to(TOP)}")
    parser.add_argument("--json-out", metavar="FILE", default=str(TOP / "out" / results),
                        help=f"default out/{results}")
    return parser


@contextlib.contextmanager
def open_hosts(options, hosts):
    """(network, folder, where and on what is measured)"""
    options.mpich = prefix_or_die(options.mpich)
    if not options.forecaster.exists():
        raise Error(f"no {options.forecaster} (make build)")
    options.forecaster = options.forecaster.absolute()
    enter_private_namespace()
    with Network(str(hosts), link=options.settings[0].link) as network, \
            tempfile.TemporaryDirectory(prefix="zc-proof-") as scratch:
        versions = {"mpich": report.mpich_version(options.mpich), "ucx": report.ucx_version()}
        about = report.context(network, versions) | {"autogroup": network.autogroup.state}
        report.print_context(about, network)
        network.autogroup.print_warning()
        yield network, pathlib.Path(scratch), about


def run_main(name, measure, show):
    """MEASURE() measures, and returns what SHOW is given, which returns the runs that failed."""
    exit_on_sigterm()
    try:
        measured = measure()
    except Error as error:
        print(f"{name}: {error}", file=sys.stderr)
        return EXIT_USAGE
    except KeyboardInterrupt:
        return 130
    failures = show(*measured)
    if failures:
        print("\nfailed runs:\n  " + "\n  ".join(failures), file=sys.stderr)
    return 1 if failures else 0
