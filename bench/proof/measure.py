# SPDX-License-Identifier: BSD-3-Clause
"""Which programs gain by ch4:zc, and does zc-forecast tell?

Each program runs with stock ch4:ucx, with ch4:zc, and with ch4:ucx recorded by zc-forecast, by turns,
round after round, on hosts with links of 10 and of 1 Gbit/s. A forecast is ok if it differs from the
measured gain by at most 20 % of that or 2 % of the run's time.

implementations:
  ucx       stock ch4:ucx (the same library)
  zc        ch4:zc
  edited    stock ch4:ucx and the program's cure by hand, where there is one
  ofi, openmpi  other MPI libraries, as bench/run mpi has them, where they are there; a table
                compares ch4:zc with the one whose median is the shortest, stock among them
  zc-plain  ch4:zc that lands nothing and has no landing thread     (when asked for)

Ranks that wait in MPI poll, and here the ranks that they wait for need their processors. So all ranks,
whatever the library, rest between their looks at the network (give_way.c). --polling leaves that
out: then stock ch4:ucx is far slower, since ch4:zc alone gives the processor away.
"""
import itertools
import json
import pathlib
import subprocess
import sys

from bench.mpi import peers, report
from bench.mpi.report import TOP
from bench.proof import rounds, wave
from bench.proof.cases import CASES, HERE, HOSTS, LINKS
from bench.proof.rounds import Recorded
from bench.proof.truth import BestPeer, Truth
from bench.spread import median
from testbed.mpi import build
from testbed.outcome import Error

PLAIN = {"MPIR_CVAR_CH4_ZC_LANDING_THRESHOLD": "inf", "MPIR_CVAR_CH4_ZC_LANDING_THREAD": "0"}
IMPLEMENTATIONS = {
    "ucx": peers.PEERS["ucx"],
    "zc": peers.PEERS["zc"],
    "zc-plain": peers.Peer("zc-plain", netmod="zc", environment=PLAIN),
    "edited": peers.PEERS["ucx"],
    "forecast": peers.PEERS["ucx"],
    "ofi": peers.PEERS["ofi"],
    "openmpi": peers.PEERS["openmpi"],
}
UNASKED = ["ucx", "zc", "ofi", "openmpi", "edited", "forecast"]
OTHERS = ["ucx", "ofi", "openmpi"]      # libraries that run a program as it is
UNITS = {"time_to_solution": "s", "efficiency": "share", "saved": "s", "longest_held": "ms",
         **{f"{what}_{where}": unit for where in ("above", "below") for what, unit in
            (("reach", "ranks"), ("speed", "ranks/step"), ("damping", "share/rank"))}}


def build_give_way(directory):
    """The library that lets waiting ranks rest."""
    library = pathlib.Path(directory) / "give_way.so"
    library.parent.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(["cc", "-O2", "-Wall", "-Wextra", "-shared", "-fPIC", HERE / "give_way.c",
                           "-o", library, "-ldl"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Error(f"cannot build give_way.c:\n{done.stderr}")
    return library.absolute()


class Measurement:
    def __init__(self, options, network, scratch):
        self.options = options
        self.network = network
        self.scratch = pathlib.Path(scratch)
        self.prefixes = {"mpich": options.mpich, "ofi": options.ofi, "openmpi": options.openmpi}
        self.libraries = peers.Libraries(self.prefixes, options.build_dir)
        self.programs = {}      # prefix option: {program: path}
        self.environment = {}   # of all ranks
        self.values_of = {}        # (setting, case, impl, metric): {round: value}
        self.waves = {}         # (setting, impl): of the last round
        self.failures = []

    def build(self):
        for impl in self.options.impl:
            peer = IMPLEMENTATIONS[impl]
            option = peer.prefix_option
            if option not in self.programs:
                self.programs[option] = build(
                    self.prefixes[option], sorted({HERE / f"{case.program}.c" for case in CASES.values()}),
                    pathlib.Path(self.options.build_dir) / option, family=peer.family,
                    flags=[f"-I{report.HERE}", f"-I{report.PATTERN.parent}"],
                    headers=[HERE / "proof.h", report.HERE / "bench.h", report.PATTERN])
        if not self.options.polling:
            self.environment["LD_PRELOAD"] = str(build_give_way(self.options.build_dir))

    def mpi(self, impl, environment):
        peer = IMPLEMENTATIONS[impl]
        environment = {**self.environment, **environment, **peer.environment}
        if impl == "forecast":
            return Recorded(self.options.forecaster, self.scratch / "recording",
                            self.options.mpich, self.network, netmod=peer.netmod,
                            environment=environment)
        made = self.libraries.mpi(peer, self.network)
        made.environment = environment
        return made

    def plan(self):
        """(round, setting, case, impl): by turns, each round beginning with another implementation."""
        for turn, setting, name in itertools.product(
                range(self.options.rounds), self.options.settings, self.options.cases):
            case = CASES[name]
            impls = [impl for impl in self.options.impl if impl != "edited" or case.edited]
            for impl in rounds.by_turns(impls, turn):
                yield turn, setting, name, impl

    def run(self):
        for turn, setting, name, impl in rounds.follow(list(self.plan()), self.network):
            print(self.run_case(turn, setting, CASES[name], impl), flush=True)

    def run_case(self, turn, setting, case, impl):
        peer = IMPLEMENTATIONS[impl]
        program = self.programs[peer.prefix_option][case.program]
        words = case.words(setting.link, self.options.quick, edited=impl == "edited")
        mpi = self.mpi(impl, case.environment)
        result = mpi.run(
            [program, *words], ranks=case.ranks, timeout=self.options.timeout,
            directory=self.scratch, finalize_grace=report.FINALIZE_GRACE_S)
        found = [json.loads(line) for line in result.out.splitlines() if line.startswith("{")]
        said = {metric: value for each in found for metric, value in each.items()}
        # The results of stock MPICH are out before it hangs in MPI_Finalize, now and then.
        if "time_to_solution" not in said or not (result.ok or result.hung_in_finalize):
            self.failures.append(f"{setting}: {case.name} {impl}: {result.reason() or 'no result'}\n"
                                 f"    {result.err.strip()[-300:]}")
            return f"FAILED: {result.reason() or 'no result'}"
        if impl == "forecast":
            return self.forecast(turn, setting, case, mpi)
        for metric, value in said.items():
            if metric in UNITS:
                self.note(turn, setting, case, impl, metric, value)
        if "wave" in said:
            self.waves[setting, impl] = said
        return f"{said['time_to_solution']:6.2f} s, efficiency {said['efficiency']:.2f}"

    def forecast(self, turn, setting, case, recorded):
        try:
            found = recorded.report()["forecast"]
        except Error as error:
            self.failures.append(f"{setting}: {case.name}: {error}")
            return f"FAILED: {error}"
        if self.options.keep:
            (self.scratch / "recording").rename(
                pathlib.Path(self.options.keep) / f"{case.name}-{setting.link}-{turn}.zct")
        self.note(turn, setting, case, "forecast", "saved", found["saved_seconds"])
        self.note(turn, setting, case, "forecast", "time_to_solution", found["recorded_seconds"])
        return f"saves {found['saved_seconds']:.2f} of {found['recorded_seconds']:.2f} s"

    def note(self, turn, setting, case, impl, metric, value):
        self.values_of.setdefault((setting, case.name, impl, metric), {})[turn] = value

    # -- results ------------------------------------------------------------

    def values(self, setting, case, impl, metric, turns=None):
        found = self.values_of.get((setting, case, impl, metric), {})
        return tuple(found[turn] for turn in sorted(found) if turns is None or turn in turns)

    def truth(self, setting, case):
        """None if something is missing."""
        turns = [set(self.values_of.get((setting, case, impl, "time_to_solution"), {}))
                 for impl in ("ucx", "zc")]
        both = turns[0] & turns[1]
        forecast = self.values(setting, case, "forecast", "saved")
        if not both or not forecast:
            return None
        return Truth(self.values(setting, case, "ucx", "time_to_solution", both),
                     self.values(setting, case, "zc", "time_to_solution", both), forecast)

    def print_truths(self):
        rows = []
        for setting, name in itertools.product(self.options.settings, self.options.cases):
            found = self.truth(setting, name)
            if not found:
                continue
            case = CASES[name]
            rows.append([name, case.ranks, case.hosts, setting.link, *rounds.truth_cells(found)])
        report.print_table("time to solution, s; what ch4:zc gains, and what was forecast",
                           ["program", "ranks", "hosts", "link", *rounds.TRUTH_COLUMNS], rows)

    def best_peer(self, setting, case):
        """None if ch4:zc, or every library but stock, is missing."""
        times = {impl: self.values_of.get((setting, case, impl, "time_to_solution"))
                 for impl in ["zc", *OTHERS]}
        others = {impl: times[impl] for impl in OTHERS if times[impl]}
        return BestPeer(others, times["zc"]) if times["zc"] and set(others) - {"ucx"} else None

    def print_best_peers(self):
        rows = []
        for setting, name in itertools.product(self.options.settings, self.options.cases):
            found = self.best_peer(setting, name)
            if not found:
                continue
            each = [median(list(found.others[impl].values())) if impl in found.others else None
                    for impl in OTHERS]
            rows.append([name, setting.link,
                         *("" if seconds is None else f"{seconds:.2f}" for seconds in each),
                         f"{median(list(found.zc.values())):.2f}", found.name, f"{found.ratio:.2f}",
                         "{:.2f}..{:.2f}".format(*found.ratios)])
        if rows:
            report.print_table("time to solution, s; ch4:zc beside the fastest other library",
                               ["program", "link", *OTHERS, "zc", "fastest", "ratio", "of the rounds"],
                               rows)

    def print_figures(self):
        """What single programs are about."""
        rows = []
        for (setting, name, impl, metric), values in self.values_of.items():
            if metric in ("time_to_solution", "saved"):
                continue
            each = list(values.values())
            rows.append([name, setting.link, impl, metric, UNITS[metric],
                         report.show_number(median(each)),
                         f"{report.show_number(min(each))}..{report.show_number(max(each))}"])
        report.print_table("other figures", ["program", "link", "impl", "figure", "unit", "median",
                                             "of the rounds"], sorted(rows))

    def records(self):
        for (setting, name, impl, metric), values in self.values_of.items():
            record = report.record_of("proof", setting, name, impl, 0, metric, UNITS[metric],
                                      list(values.values()))
            size = CASES[name].arguments[setting.link][2]
            record["bytes"] = int(size[:-1]) << {"k": 10, "m": 20}[size[-1]]
            yield record | {"ranks": CASES[name].ranks, "hosts": CASES[name].hosts}

    def verdict(self):
        return [{"case": name, "link": setting.link,
                 **{key: value for each in found for key, value in each.json().items()}}
                for setting, name in itertools.product(self.options.settings, self.options.cases)
                if (found := [each for each in (self.truth(setting, name),
                                                self.best_peer(setting, name)) if each])]

    def draw_waves(self, path):
        """One picture for each link; the paths of those that were drawn."""
        drawn = []
        for setting in self.options.settings:
            found = {}
            for impl in ("ucx", "zc"):
                said = self.waves.get((setting, impl))
                if said:
                    ways = "; ".join(
                        f"{where} {said[f'reach_{where}']} ranks" +
                        (f", {said[f'speed_{where}']:.2f} a step" if said[f"reach_{where}"] else "")
                        for where in ("above", "below"))
                    found[impl] = said["wave"], f"ch4:{impl} ({ways})"
            if found:
                to = path.with_name(f"{path.stem}-wave-{setting.link}.svg")
                wave.draw(found, setting, to)
                drawn.append(report.show_path(to))
        return drawn


def unasked(prefixes):
    """(implementations that are there, why each of the others is not); PREFIXES: of libraries that may be missing"""
    absent = {impl: why for impl in UNASKED if IMPLEMENTATIONS[impl].prefix_option in prefixes and
              (why := peers.missing(IMPLEMENTATIONS[impl], prefixes[IMPLEMENTATIONS[impl].prefix_option]))}
    return [impl for impl in UNASKED if impl not in absent], absent


def parse():
    parser = rounds.parser_of("proof", __doc__, "proof.jsonl")
    parser.add_argument("--ofi", metavar="PREFIX", default=peers.default_ofi(),
                        help="MPICH with ch4:ofi (default: where mpi-ch4-netmod/build-peer puts it)")
    parser.add_argument("--openmpi", metavar="PREFIX", default="/usr", help="default /usr")
    parser.add_argument("--quick", action="store_true", help="a third of the steps, one round")
    parser.add_argument("--rounds", type=int, metavar="N", help="default 3, with --quick 1")
    parser.add_argument("--cases", type=report.names(list(CASES)), metavar="CASE,...",
                        default=list(CASES), help=f"default {','.join(CASES)}")
    parser.add_argument("--impl", type=report.names(list(IMPLEMENTATIONS)), metavar="IMPL,...",
                        help=f"default {','.join(UNASKED)}, without those that are not installed")
    parser.add_argument("--polling", action="store_true",
                        help="ranks that wait poll, as on hosts with a processor for each")
    parser.add_argument("--keep", metavar="DIR", help="keep the recordings in this folder")
    parser.add_argument("--build-dir", metavar="DIR", default=str(TOP / "build/mpi/proof"),
                        help="where programs are built (default build/mpi/proof)")
    parser.add_argument("--timeout", type=float, default=120, metavar="SECONDS",
                        help="limit of one run (default 120)")
    options = parser.parse_args()
    options.rounds = options.rounds or (1 if options.quick else 3)
    if not options.impl:
        options.impl, absent = unasked({"ofi": options.ofi, "openmpi": options.openmpi})
        for impl, why in absent.items():
            print(f"proof: without {impl}: {why}", file=sys.stderr)
    for setting in options.settings:
        if setting.link not in LINKS:
            parser.error(f"--settings: programs have arguments for links of {' and '.join(LINKS)}")
    return options


def main():
    options = parse()

    def measure():
        with rounds.open_hosts(options, HOSTS) as (network, scratch, about):
            measurement = Measurement(options, network, scratch)
            measurement.build()
            measurement.run()
        return measurement, about

    def show(measurement, about):
        measurement.print_truths()
        measurement.print_best_peers()
        measurement.print_figures()
        about |= {"load_after": report.load(), "rounds": options.rounds, "polling": options.polling,
                  "failed": measurement.failures, "verdict": measurement.verdict()}
        out = pathlib.Path(options.json_out)
        shown = [report.write_jsonl(out, [{"context": about}, *measurement.records()])]
        shown += measurement.draw_waves(out)
        print(f"\nresults: {', '.join(map(str, shown))}")
        return measurement.failures

    return rounds.run_main("proof", measure, show)


if __name__ == "__main__":
    sys.exit(main())
