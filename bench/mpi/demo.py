# SPDX-License-Identifier: BSD-3-Clause
"""Real MPI programs between two hosts: stock ch4:ucx and ch4:zc side by side.

Cases: late (the receiver posts late), passive (access to the memory of a rank
that computes), preposted (bandwidth), latency, halo (examples/halo.c), netpipe
(Debian's NetPIPE, unmodified). The configurations take turns, round after round,
so that a busy moment of the machine meets them all. Every program but NetPIPE
verifies every byte it receives.

First the links between the hosts have a rate, 10 Gbit/s, as real ones have; then
they are bare, as fast as the processors (halo and netpipe: only then). Figures of
the two are never put together.

  ucx      stock ch4:ucx
  zc       ch4:zc
  zc-copy  ch4:zc that lands early but copies instead of rebinding
"""
import argparse
import collections
import itertools
import pathlib
import re
import shutil
import sys
import tempfile

from bench.mpi import report, settings
from bench.mpi.report import METRICS, TOP, show_bytes, show_number, show_spread
from bench.mpi.settings import ONE_HOST, PLAIN, Setting
from bench.spread import median
from testbed import statistics
from testbed.mpi import Mpi, build, prefix_or_die
from testbed.network import Network, enter_private_namespace
from testbed.outcome import EXIT_USAGE, Error
from testbed.process import exit_on_sigterm

IMPLEMENTATIONS = {
    "ucx": ("ucx", {}),
    "zc": ("zc", {}),
    "zc-copy": ("zc", {"MPIR_CVAR_CH4_ZC_BACKEND": "copy"}),
}
CASES = ["late", "passive", "preposted", "latency", "halo", "netpipe"]
# Those of stock programs and of a whole application: in the last setting only.
ONCE = ["halo", "netpipe"]
SETTINGS = [Setting("10gbit", "spare"), PLAIN]
REPORTED = [*statistics.BYTES, "prediction_hits", "prediction_misses"]
FULL = {
    "late": ["-r", "5", "-w", "5", "64k", "256k", "1m", "4m", "16m", "64m"],
    "passive": ["-r", "4", "-w", "1", "8", "1m"],
    "preposted": ["-r", "8", "-w", "3", "64k", "256k", "1m", "4m", "16m", "64m"],
    "latency": ["-r", "20", "8"],
    "halo": ["-i", "60"],
    "netpipe": 16 << 20,
    "rounds": 3,
    "netpipe rounds": 2,
}
QUICK = {
    "late": ["-r", "4", "-w", "4", "256k", "1m", "4m"],
    "passive": ["-r", "2", "-w", "1", "8"],
    "preposted": ["-r", "5", "-w", "2", "256k", "1m", "4m"],
    "latency": ["-r", "10", "8"],
    "halo": ["-i", "30"],
    "netpipe": 1 << 20,
    "rounds": 2,
    "netpipe rounds": 1,    # it takes longer than all else together
}


class Programs:
    """The programs of the cases, built once per MPICH."""

    def __init__(self, prefix, directory, limits):
        self.prefix = prefix
        self.limits = limits
        here, pattern = report.HERE, report.PATTERN
        self.built = build(
            prefix, [*(here / f"{case}.c" for case in ("late", "passive", "preposted", "latency")),
                     TOP / "examples/halo.c"],
            directory, flags=[f"-I{pattern.parent}"], headers=[here / "bench.h", pattern])
        self.netpipe = shutil.which("NPmpich2")

    def command(self, case):
        if case == "netpipe":
            return [self.netpipe, "-p", "0", "-u", str(self.limits["netpipe"])]
        if case == "halo":
            return [self.built["halo"], "--json", *self.limits["halo"]]
        return [self.built[case], *self.limits[case]]

    def library_path(self, directory):
        """For a program that wants Debian's libmpich.so.12: the library by that name."""
        for libraries in sorted(pathlib.Path(self.prefix).glob("lib*")):
            if (libraries / "libmpich.so.12").exists():
                return str(libraries)
            if (libraries / "libmpi.so.12").exists():
                link = pathlib.Path(directory) / "libmpich.so.12"
                if not link.exists():
                    link.symlink_to(libraries / "libmpi.so.12")
                return f"{directory}:{libraries}"
        return None


class Demo:
    def __init__(self, options, network):
        self.options = options
        self.network = network
        self.limits = QUICK if options.quick else FULL
        self.rounds = options.rounds or self.limits["rounds"]
        self.settings, self.not_made = [ONE_HOST], {}
        if options.hosts == "2":
            self.settings, self.not_made = settings.check(network, options.settings)
        self.samples = {setting: report.Samples() for setting in self.settings}
        self.statistics = {}   # (setting, case, impl): [sums over the ranks of one run]
        self.failures = []
        self.hung = {}         # impl: runs that hung in MPI_Finalize
        self.programs = {}
        self.build()

    def prefix_of(self, impl):
        return self.options.stock if impl == "ucx" and self.options.stock else self.options.mpich

    def build(self):
        for impl in self.options.impls:
            prefix = self.prefix_of(impl)
            if prefix not in self.programs:
                place = f"{self.options.build_dir}{len(self.programs) or ''}"
                self.programs[prefix] = Programs(prefix, place, self.limits)
        if "netpipe" in self.options.cases and \
                not next(iter(self.programs.values())).netpipe:
            print("netpipe left out: NPmpich2 is not installed (package netpipe-mpich2)")
            self.options.cases.remove("netpipe")

    def wants(self, number, setting, case, impl):
        if case in ONCE and setting != self.settings[-1]:
            return False
        if case == "passive" and impl == "zc-copy":     # nothing lands that could be rebound
            return False
        return case != "netpipe" or number < self.limits["netpipe rounds"]

    def run(self):
        plan = [each for each in itertools.product(range(self.rounds), self.settings,
                                                   self.options.cases, self.options.impls)
                if self.wants(*each)]
        with tempfile.TemporaryDirectory(prefix="zc-demo-") as scratch:
            for index, (number, setting, case, impl) in enumerate(plan, 1):
                head = f"[{index:3}/{len(plan)}] round {number + 1} {setting!s:<12} {case:<9} {impl:<7}"
                print(head, end=" ", flush=True)
                settings.enter(self.network, setting)
                result, outcome = self.run_once(setting, case, impl, scratch, index)
                print(f"{result.seconds:6.1f} s  {outcome}", flush=True)

    def run_once(self, setting, case, impl, scratch, index):
        netmod, environment = IMPLEMENTATIONS[impl]
        environment = dict(environment)
        programs = self.programs[self.prefix_of(impl)]
        stats = f"{scratch}/stats-{index}"
        if netmod == "zc":
            environment["MPIR_CVAR_CH4_ZC_STATS_FILE"] = stats
        settled = {}
        if case == "netpipe":
            path = programs.library_path(scratch)
            if path:
                environment["LD_LIBRARY_PATH"] = path
            last = re.compile(rf"\b{self.limits['netpipe']} bytes .* usec")
            settled = {"settled": lambda line: bool(last.search(line))}
        mpi = Mpi(programs.prefix, self.network, netmod=netmod, environment=environment)
        result = mpi.run(programs.command(case), timeout=self.options.timeout, directory=scratch,
                         finalize_grace=report.FINALIZE_GRACE_S, **settled)
        found = self.read_netpipe(setting, impl, result) if case == "netpipe" else \
            self.samples[setting].read(case, impl, result.out)
        self.read_statistics(setting, case, impl, stats)
        return result, self.judge(setting, case, impl, result, found)

    def judge(self, setting, case, impl, result, found):
        if result.hung_in_finalize and found:
            self.hung[impl] = self.hung.get(impl, 0) + 1
            if impl == "ucx":
                return "ok (hung in MPI_Finalize, ended)"
        if result.ok and found:
            return "ok"
        why = result.reason() or "no result printed"
        lines = result.err.strip().splitlines()
        self.failures.append(f"{setting}: {case} {impl}: {why}"
                             + (f"\n    {lines[-1]}" if lines else ""))
        return f"FAILED: {why}"

    def read_netpipe(self, setting, impl, result):
        samples = self.samples[setting]
        small, found = [], 0
        for match in re.finditer(r"(\d+) bytes +\d+ times --> +([\d.]+) Mbps in +([\d.]+) usec",
                                 result.err + result.out):
            size, time_us = int(match[1]), float(match[3])
            found += 1
            if size <= 8:
                small.append(time_us)
            if size >= 65536 and size & (size - 1) == 0:
                samples.add("netpipe", impl, size, "bandwidth", size / time_us)
        if small:
            samples.add("netpipe", impl, 8, "latency", median(small))
        return found

    def read_statistics(self, setting, case, impl, stats):
        total = statistics.add_up(pathlib.Path(stats))
        if total:
            self.statistics.setdefault((setting, case, impl), []).append(total)

    # -- results ------------------------------------------------------------

    def records(self):
        for setting, samples in self.samples.items():
            yield from samples.records("demo", setting)
        for (setting, case, impl), runs in self.statistics.items():
            for name in REPORTED:
                unit = "bytes" if name.startswith("bytes") else "messages"
                yield report.record_of("demo", setting, case, impl, 0, name, unit,
                                       [run.get(name, 0) for run in runs])

    def print_results(self):
        for setting, samples in self.samples.items():
            for (case, metric), (_, title, more_is_better) in METRICS.items():
                points = samples.series(case, metric)
                if points:
                    where = "" if setting == ONE_HOST else f"; {setting.describe()}"
                    self.print_metric(samples, case, title + where, more_is_better, points)
        self.print_statistics()
        for impl, runs in self.hung.items():
            print(f"\n{impl}: {runs} run{'s' * (runs > 1)} hung in MPI_Finalize after the results"
                  " were out and had to be ended")

    def print_metric(self, samples, case, title, more_is_better, points):
        impls = [impl for impl in self.options.impls
                 if any((case, impl, size, metric) in samples for size, metric in points)]
        compared = [impl for impl in impls if impl != "ucx"] if "ucx" in impls else []
        header = ["bytes"]
        for impl in impls:
            header += [impl, "p10..p90"]
        header += [f"{impl} gain" for impl in compared]
        rows = []
        for size, metric in points:
            values = {impl: samples.values(case, impl, size, metric) for impl in impls}
            row = [show_bytes(size)]
            for impl in impls:
                if values[impl]:
                    row += [show_number(median(values[impl])), show_spread(values[impl])]
                else:
                    row += ["-", "-"]
            for impl in compared:
                if values["ucx"] and values[impl]:
                    ratio = median(values["ucx"]) / max(median(values[impl]), 1e-9)
                    row.append(f"{1 / ratio if more_is_better else ratio:.2f}x")
                else:
                    row.append("-")
            rows.append(row)
        report.print_table(title + (" (gain: above 1 is better than ucx)" if compared else ""),
                           header, rows)

    def print_statistics(self):
        if not self.statistics:
            if any(impl != "ucx" for impl in self.options.impls):
                print("\nno statistics: the netmod wrote no files (is it ch4:zc?)")
            return
        header = ["setting", "case", "impl", "direct", "rebound", "copied", "predicted",
                  "copied because"]
        rows = []
        for (setting, case, impl), runs in self.statistics.items():
            sums, reasons = collections.Counter(), collections.Counter()
            for run in runs:
                sums.update({name: run[name] for name in run if name != "copied_by_reason"})
                reasons.update(run["copied_by_reason"])
            if not any(sums[name] for name in statistics.MESSAGES):
                continue    # short ones only
            asked = sum(sums[f"prediction_{name}"] for name in ("hits", "misses", "unknown"))
            rows.append([setting, case, impl]
                        + [f"{show_bytes(sums[f'bytes_{way}'])} ({sums[f'messages_{way}']:,})"
                           for way in ("direct", "rebound", "copied")]
                        + [f"{100 * sums['prediction_hits'] / asked:.0f} %" if asked else "-",
                           ", ".join(f"{name} {count:,}" for name, count in reasons.most_common()
                                     if count)])
        if not rows:
            return
        report.print_table(
            "what became of the messages, all ranks and rounds: bytes (messages);"
            " predicted: landing addresses that came true", header, rows)


def parse():
    parser = argparse.ArgumentParser(prog="bench/run demo", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter,
                                     epilog="exit status: 0 all ran; 1 a run failed; 2 usage")
    parser.add_argument("--mpich", metavar="PREFIX", help="MPICH to use (default: $ZC_MPICH)")
    parser.add_argument("--stock", metavar="PREFIX",
                        help="another MPICH for the column ucx (default: the same library)")
    parser.add_argument("--quick", action="store_true", help="fewer sizes and repetitions")
    parser.add_argument("--rounds", type=int, help="default 3, with --quick 2")
    parser.add_argument("--cases", type=report.names(CASES), default=list(CASES), metavar="CASE,...",
                        help=f"default {','.join(CASES)}")
    parser.add_argument("--impls", type=report.names(list(IMPLEMENTATIONS)),
                        default=list(IMPLEMENTATIONS), metavar="IMPL,...",
                        help=f"default {','.join(IMPLEMENTATIONS)}")
    parser.add_argument("--hosts", choices=["2", "1", "loopback"], default="2",
                        help="2: namespaces, TCP (default); 1: as MPICH likes; loopback: TCP")
    parser.add_argument("--settings", type=settings.parse, default=SETTINGS,
                        metavar="LINK/CORES,...", help="of two hosts: rates of their links, spare or"
                        f" full cores (see bench/run mpi); default {settings.show(SETTINGS)}")
    parser.add_argument("--json-out", metavar="FILE", default=str(TOP / "out/demo.jsonl"),
                        help="default out/demo.jsonl")
    parser.add_argument("--build-dir", metavar="DIR", default=str(TOP / "build/mpi/bench"),
                        help="where programs are built (default build/mpi/bench)")
    parser.add_argument("--timeout", type=float, default=180, metavar="SECONDS",
                        help="limit of one run (default 180)")
    options = parser.parse_args()
    if options.rounds is not None and options.rounds < 1:
        parser.error("--rounds wants a positive number")
    return options


def main():
    options = parse()
    exit_on_sigterm()
    try:
        options.mpich = prefix_or_die(options.mpich)
        if options.hosts == "2":
            enter_private_namespace()
        with Network(options.hosts) as network:
            versions = {"mpich": report.mpich_version(options.mpich), "ucx": report.ucx_version()}
            if options.stock:
                versions["stock"] = report.mpich_version(options.stock)
            about = report.context(network, versions) | {"autogroup": network.autogroup.state}
            report.print_context(about, network)
            network.autogroup.print_warning()
            demo = Demo(options, network)
            demo.run()
    except Error as error:
        print(f"demo: {error}", file=sys.stderr)
        return EXIT_USAGE
    except KeyboardInterrupt:
        return 130
    demo.print_results()
    shown = report.write_jsonl(options.json_out, [{"context": about}, *demo.records()])
    print(f"\nresults: {shown}")
    for setting, why in demo.not_made.items():
        print(f"left out, for it cannot be made: {setting}: {why}")
    if demo.failures:
        print("\nfailed runs:\n  " + "\n  ".join(demo.failures), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
