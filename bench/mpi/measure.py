# SPDX-License-Identifier: BSD-3-Clause
"""ch4:zc beside other MPI libraries over TCP, between two hosts on one machine.

The libraries take turns, case by case and round by round, so that a busy moment
of the machine meets them all. Figures are medians with the 10th and the 90th
percentile of all repetitions of all rounds. What cannot run is reported with
its reason.

A setting is LINK/CORES: the rate of the links between the hosts (bare: as fast as
the processors), and whether each host is confined to one processor (full) or not
(spare). In the first of the settings all cases run, in the others the main ones,
at fewer sizes; but cases that were named (--cases) run the same in each. Figures
of different settings are never put together.

implementations:
  zc        ch4:zc
  ucx       stock ch4:ucx (the same library)
  ofi       stock ch4:ofi, libfabric's tcp provider
  openmpi   Debian's Open MPI, ob1 over btl tcp
  X-async   X with MPICH's asynchronous progress thread
  zc-lane   ch4:zc with bulk to other hosts by the lane   (only when named)
  zc-ucx    ch4:zc with bulk to other hosts by UCX        (only when named)

cases: see --list, and docs/measuring.md for what each measures.
"""
import argparse
import pathlib
import subprocess
import sys
import tempfile
import time

from bench.mpi import memory_model, peers, picture, report, settings, verdict
from bench.mpi.peers import PEERS
from bench.mpi.report import TOP, show_number
from bench.mpi.settings import ONE_HOST
from bench.spread import median
from testbed.mpi import find_tool, prefix_or_die
from testbed.network import Network, enter_private_namespace
from testbed.outcome import EXIT_USAGE, Error
from testbed.process import exit_on_sigterm


class Case:
    """A program, its arguments in full and in quick runs, and what runs it where."""

    def __init__(self, name, what, program, full, quick, ranks=2, hosts="2", impls=None,
                 rounds=None, async_rounds=2, repeat=1, environment=None, timeout=0,
                 peers_may_fail=False, further=None, further_async=False, long=False):
        self.name = name
        self.what = what
        self.program = program
        self.arguments = {"full": full.split(), "quick": quick.split(),
                          "further": further.split() if further else None}
        self.main = further is not None     # runs in further settings, too, with those arguments
        self.further_async = further_async  # and there in asynchronous forms, too: once
        self.long = long        # only with --long, or when it is named
        self.ranks = ranks      # a number, or one per run for each of several
        self.hosts = hosts
        self.impls = impls      # None: all
        self.rounds = rounds    # at most; None: all
        # Progress threads spin beside the ranks: with them everything takes several times as long.
        self.async_rounds = async_rounds
        self.repeat = repeat
        self.environment = environment or {}
        self.timeout = timeout  # of a run, seconds; the option's, if that is more
        # What it asks for is more than some libraries can do: that is a result, not a failure.
        self.peers_may_fail = peers_may_fail

    def wants(self, impl, turn, further=False):
        """Whether IMPL runs this in round TURN (the first is 0) of the first or a FURTHER setting."""
        if self.impls is not None and impl not in self.impls:
            return False
        if self.rounds is not None and turn >= self.rounds:
            return False
        return not PEERS[impl].is_async or \
            turn < ((1 if self.further_async else 0) if further else self.async_rounds)

    def runs(self, quick):
        """The numbers of ranks of the runs that one turn consists of."""
        ranks = self.ranks if isinstance(self.ranks, tuple) else (self.ranks,)
        return (ranks[:3] if quick else ranks) * (1 if quick else self.repeat)


LARGE = "64k 256k 1m 4m 16m 64m"
SMALL = "1 8 64 512 1k 4k 16k 64k"
COLLECTIVE = "8 1k 16k 64k 256k 1m 4m 16m"
PLAIN = ("zc", "ucx", "ofi", "openmpi")
MPICH = SHARED_MEMORY = ("zc", "ucx")
CASES = {case.name: case for case in [
    Case("latency", "ping-pong, 1 B to 64 KiB", "latency",
         f"-r 5 -w 1 {SMALL}", "-r 3 -w 1 1 8 4k 64k", further="-r 5 -w 1 8 1k 64k"),
    Case("rate", "messages per second, 8 B to 1 KiB, windows of 64", "rate",
         "-r 10 -w 1 8 128 1k", "-r 3 -w 1 8"),
    *(Case(f"threads{suffix}", f"messages per second of 1 to 4 threads, {what}", "threads",
           "-r 5 -w 1 1 2 4", "-r 2 -w 1 1 2", impls=impls, environment=environment)
      for suffix, what, impls, environment in (
          ("", "one VCI", PLAIN, {}),
          ("-vcis", "4 VCIs", MPICH, {"MPIR_CVAR_CH4_NUM_VCIS": "4"}))),
    Case("preposted", "bandwidth, receives posted first, 64 KiB to 64 MiB", "preposted",
         f"-k bandwidth -r 4 -w 1 {LARGE}", "-k bandwidth -r 3 -w 1 64k 1m 16m",
         further="-k bandwidth -r 3 -w 1 64k 1m 16m"),
    Case("bibandwidth", "the same both ways at once", "preposted",
         f"-k bibandwidth -r 4 -w 1 {LARGE}", "-k bibandwidth -r 3 -w 1 64k 1m 16m",
         further="-k bibandwidth -r 3 -w 1 64k 1m 16m"),
    Case("transpose", "blocks exchanged in step, and with one side half a transfer ahead",
         "transpose", f"-r 4 -w 3 {LARGE}", "-r 2 -w 1 64k 1m",
         further=f"-r 3 -w 2 {LARGE}"),
    Case("pingpong-beside-bulk", "ping-pong of 8 B beside 64 MiB the same way",
         "pingpong_beside_bulk", "-r 4 -w 1 64m", "-r 2 -w 0 4m", further="-r 3 -w 1 64m"),
    Case("pipeline", "a pipeline of messages of 8 and 128 B", "pipeline",
         "-r 40 -w 5 8 128", "-r 5 -w 1 8", further="-r 40 -w 5 8"),
    Case("late", "the receive is posted 50 ms late", "late",
         f"-r 3 -w 3 {LARGE}", "-r 3 -w 3 1m 16m", further="-r 3 -w 3 64k 1m 16m"),
    Case("passive", "access to the memory of a rank that computes 50 ms, 8 B to 4 MiB", "passive",
         "-r 3 -w 1 8 4k 64k 1m 4m", "-r 2 -w 0 8 1m", further="-r 3 -w 1 8 1m 4m",
         further_async=True),
    Case("overlap", "share of a transfer hidden behind work, both sides", "overlap",
         "-r 7 -w 3 64k 256k 1m 4m 16m", "-r 3 -w 3 64k 256k 1m", further="-r 5 -w 3 256k 1m 16m",
         further_async=True),
    Case("overlap-collectives", "share of a nonblocking collective hidden behind work, 2 ranks",
         "overlap_collectives", "-r 4 -w 3 256k 1m 8m 16m", "-r 2 -w 1 256k",
         further="-r 4 -w 3 256k 1m 8m", further_async=True),
    *(Case(f"overlap-collectives-{ranks}", f"the same, {ranks} ranks on two hosts",
           "overlap_collectives", "-r 3 -w 2 1m 8m", "-r 2 -w 1 256k", ranks=ranks, long=True,
           rounds=1, timeout=300, further="-r 3 -w 2 1m 8m") for ranks in (4, 8)),
    *(Case(name, f"MPI_{name.capitalize()}, 4 ranks on two hosts, 8 B to 16 MiB", "collectives",
           f"-k {name} -r 2 -w 1 {COLLECTIVE}", f"-k {name} -r 2 -w 1 8 64k 1m", ranks=4,
           async_rounds=1)
      for name in ("alltoall", "allgather", "bcast", "allreduce")),
    Case("matching", "receives among 1 to 100,000 unexpected messages", "matching",
         "-r 2 -w 1 1 10 100 1000 10000 100000", "-r 2 -w 0 1 100 1000"),
    Case("flood", "100,000 to 10,000,000 messages of 8 bytes that are not received yet", "flood",
         "100000 1000000 10000000", "10000 100000", impls=PLAIN, rounds=2, timeout=300,
         peers_may_fail=True,
         environment={"MPIR_CVAR_CH4_ZC_UNEXPECTED_BUDGET": "inf"}),
    Case("startup", "mpiexec of MPI_Init and MPI_Finalize", "startup", "", "", repeat=3),
    Case("memory", "memory of a rank, 4 ranks on two hosts", "footprint", "", "", ranks=4),
    Case("memory-growth", "the same from 2 to 64 ranks on one host, TCP", "footprint", "", "",
         ranks=(2, 4, 8, 16, 32, 64), hosts="loopback", impls=PLAIN, rounds=1),
    Case("latency-one-host", "ping-pong over shared memory", "latency",
         f"-r 5 -w 1 {SMALL}", "-r 3 -w 1 1 8 4k 64k", hosts="1", impls=SHARED_MEMORY),
    Case("late-one-host", "late receiver over shared memory", "late",
         f"-r 3 -w 3 {LARGE}", "-r 3 -w 3 1m 16m", hosts="1", impls=SHARED_MEMORY),
]}
ROUNDS = {"full": 3, "quick": 1}


class Failure:
    """A run that did not do what was asked, and why."""

    def __init__(self, setting, case, impl, reason):
        self.setting, self.case, self.impl, self.reason = setting, case, impl, reason

    def __str__(self):
        return f"{self.setting}: {self.case} {self.impl}: {self.reason}"


def why_failed(result):
    """One line: how it ended, and the last the program said about it."""
    said = [line for line in result.err.strip().splitlines() if line.strip(" -=")]
    return (result.reason() or "no result printed") + (f" ({said[-1].strip()})" if said else "")


class Measurement:
    def __init__(self, options, networks):
        self.options = options
        self.networks = networks
        self.rounds = options.rounds or ROUNDS["quick" if options.quick else "full"]
        self.samples = {}      # {setting: Samples}, in the order of the tables
        self.libraries = peers.Libraries(
            {"mpich": options.mpich, "ofi": options.ofi, "openmpi": options.openmpi},
            options.build_dir)
        self.left_out = {}     # impl: why it cannot run
        self.settings, self.not_made = [], {}    # those that can be made; others: why not
        self.failures = []
        self.gave_out = []     # runs in which a peer could not do what the case asks for: a result
        self.hung = {}         # impl: runs that hung in MPI_Finalize
        self.given_up = set()  # (setting, case, impl) that failed once
        self.interrupted = False
        self.begin = time.monotonic()

    @property
    def impls(self):
        return [impl for impl in self.options.impl if impl not in self.left_out]

    # -- running ------------------------------------------------------------

    def check_settings(self):
        """Find out which of the settings can be made."""
        self.settings, self.not_made = settings.check(self.networks["2"], self.options.settings)

    def check_peers(self):
        """Find out which of the libraries start at all."""
        for impl in self.options.impl:
            print(f"checking {impl:<12}", end=" ", flush=True)
            try:
                programs = self.libraries.programs(PEERS[impl])
            except peers.Unavailable as reason:
                self.left_out[impl] = str(reason)
            else:
                result = self.launch(impl, [programs["startup"]], ranks=2, hosts="2")
                if not result.ok and not result.hung_in_finalize:
                    self.left_out[impl] = why_failed(result)
            print(f"left out: {self.left_out[impl]}" if impl in self.left_out else "ok", flush=True)

    def launch(self, impl, words, ranks, hosts, environment=None, timeout=0):
        mpi = self.libraries.mpi(PEERS[impl], self.networks[hosts])
        return mpi.run(words, ranks=ranks, timeout=max(timeout, self.options.timeout),
                       environment=environment,
                       directory=self.options.scratch,
                       finalize_grace=report.FINALIZE_GRACE_S)

    def cases(self, setting):
        """The names of those that run in SETTING, with the kind of arguments of each."""
        first = setting == self.settings[0]
        for name in self.options.cases or CASES:
            case, named = CASES[name], bool(self.options.cases)
            if not named and case.long and not self.options.long:
                continue
            if first or (named and case.hosts == "2"):
                yield case, "quick" if self.options.quick else "full"
            elif case.main:
                yield case, "quick" if self.options.quick else "further"

    def plan(self):
        """(round, setting, case, arguments, impl) in the order of running. Each round begins with
        another library, so that none always runs in the wake of the same."""
        for turn in range(self.rounds):
            for setting in self.settings:
                for case, arguments in self.cases(setting):
                    chosen = [impl for impl in self.impls
                              if case.wants(impl, turn, arguments == "further")]
                    start = turn % len(chosen) if chosen else 0
                    for impl in chosen[start:] + chosen[:start]:
                        yield turn, setting, case, arguments, impl

    def run(self):
        plan = list(self.plan())
        for index, (turn, setting, case, arguments, impl) in enumerate(plan, 1):
            elapsed = time.monotonic() - self.begin
            where = setting if case.hosts == "2" else ONE_HOST
            print(f"[{index:3}/{len(plan)} {int(elapsed) // 60:2}:{int(elapsed) % 60:02}]"
                  f" round {turn + 1} {where!s:<12} {case.name:<22} {impl:<12}", end=" ", flush=True)
            if (where, case.name, impl) in self.given_up:
                print("not again: it failed before", flush=True)
                continue
            begin = time.monotonic()
            settings.enter(self.networks["2"], setting)
            outcome = self.run_case(turn, where, case, arguments, impl)
            print(f"{time.monotonic() - begin:6.1f} s  {outcome}", flush=True)

    def run_case(self, turn, setting, case, arguments, impl):
        samples = self.samples.setdefault(setting, report.Samples())
        program = self.libraries.programs(PEERS[impl])[case.program]
        outcome = "ok"
        for ranks in case.runs(self.options.quick):
            result = self.launch(impl, [program, *case.arguments[arguments]], ranks, case.hosts,
                                 case.environment, case.timeout)
            found = samples.read(case.name, impl, result.out, turn)
            if case.name == "startup" and result.ok:
                samples.add("startup", impl, 0, "mpiexec", 1000 * result.seconds, turn)
            outcome = self.judge(setting, case, impl, result, found)
            if not outcome.startswith("ok"):
                break
        return outcome

    def judge(self, setting, case, impl, result, found):
        if result.hung_in_finalize and found:
            self.hung[impl] = self.hung.get(impl, 0) + 1
            if not PEERS[impl].ours:
                return "ok (hung in MPI_Finalize, ended)"
        if result.ok and found:
            return "ok"
        why = why_failed(result)
        self.given_up.add((setting, case.name, impl))
        failure = Failure(setting, case.name, impl, why)
        if case.peers_may_fail and not PEERS[impl].ours:
            self.gave_out.append(failure)
            return f"gave out: {why}"
        self.failures.append(failure)
        return f"FAILED: {why}"

    # -- results ------------------------------------------------------------

    def print_results(self):
        for (case, metric), (_, title, more_is_better) in report.METRICS.items():
            for setting, samples in self.samples.items():
                points = samples.series(case, metric)
                if points:
                    where = "" if setting == ONE_HOST else f"; {setting.describe()}"
                    self.print_metric(samples, case, title + where, more_is_better, points)

    def print_metric(self, samples, case, title, more_is_better, points):
        impls = [impl for impl in self.impls
                 if any(samples.values(case, impl, *point) for point in points)]
        others = [impl for impl in impls if not PEERS[impl].ours]
        judged = peers.OURS in impls and others
        header = ["", *impls]
        if judged:
            header += ["zc p10..p90", "best peer", "its p10..p90", "zc gain"]
        rows = []
        for size, metric in points:
            values = {impl: samples.values(case, impl, size, metric) for impl in impls}
            row = [report.show_place(size, metric)]
            row += [show_number(median(values[impl])) if values[impl] else "-" for impl in impls]
            if judged:
                row += self.compare(samples, case, size, metric, values, others)
            rows.append(row)
        better = " (more is better)" if more_is_better else ""
        report.print_table(title + better, header, rows)

    @staticmethod
    def compare(samples, case, size, metric, values, others):
        if not values[peers.OURS]:
            return ["-"] * 4
        found = verdict.Comparison(samples, case, size, metric, peers.OURS, others)
        if found.peer is None:
            return [report.show_spread(values[peers.OURS]), "-", "-", "-"]
        return [report.show_spread(values[peers.OURS]), found.peer,
                report.show_spread(values[found.peer]), found.show_gain()]

    def print_notes(self):
        for impl, runs in self.hung.items():
            print(f"\n{impl}: {runs} run{'s' * (runs > 1)} hung in MPI_Finalize after the results"
                  " were out and had to be ended")
        if any(PEERS[impl].is_async for impl in self.options.impl):
            print(f"\nthere is no {peers.NO_ASYNC}")
        if self.gave_out:
            print("\ngave out:")
            for each in self.gave_out:
                print(f"  {each}")
        if self.left_out or self.not_made:
            print("\nleft out, for they cannot run:")
            for what, why in [*self.left_out.items(), *self.not_made.items()]:
                print(f"  {what}: {why}")

    def verdict(self):
        others = [impl for impl in self.impls if not PEERS[impl].ours]
        return verdict.judge_all(self.samples, peers.OURS, others)

    def print_verdict(self, rows, worse):
        cells = [(row.target, str(row.setting or "-"), row.state, row.figure) for row in rows]
        widths = [max(len(cell) for cell in column) for column in zip(*cells)]
        report.print_table(
            f"verdict, ch4:zc beside the best peer (worse beyond noise: by more than"
            f" {100 * verdict.TOLERANCE:.0f} % in the median of all and worse in each round's;"
            + (f" {self.rounds} rounds)" if self.rounds > 1 else
               " of one round only, which cannot tell noise)"),
            ["target", "setting", "verdict", "figure"],
            [[cell.ljust(width) for cell, width in zip(row, widths)] for row in cells])
        if worse:
            print("\nworse beyond noise, the worst first:")
            for each in worse:
                print(f"  {each.show()}")

    def outcome(self, rows, worse):
        """What goes beside the figures into the results' first line."""
        return {"settings": [str(setting) for setting in self.samples], "rounds": self.rounds,
                "seconds": round(time.monotonic() - self.begin),
                "left_out": {**self.left_out,
                             **{str(setting): str(why) for setting, why in self.not_made.items()},
                             "openmpi-async": peers.NO_ASYNC.partition(": ")[2]},
                "failed": [str(failure) for failure in self.failures],
                "gave_out": [str(failure) for failure in self.gave_out],
                "hung_in_finalize": self.hung,
                "verdict": [row.json() for row in rows],
                "worse": [each.show() for each in worse]}


def openmpi_version(prefix):
    try:
        tool = find_tool(prefix, "mpirun", "openmpi")
    except Error:
        return "not installed"
    done = subprocess.run([tool, "--version"], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, check=False)
    return (done.stdout.splitlines() or ["unknown"])[0].rpartition(" ")[2]


def versions(options):
    found = {"mpich": report.mpich_version(options.mpich), "ucx": report.ucx_version()}
    if pathlib.Path(options.ofi).is_dir():
        found["ofi"] = report.mpich_version(options.ofi)
    found["openmpi"] = openmpi_version(options.openmpi)
    return found


def parse(words=None):
    parser = argparse.ArgumentParser(
        prog="bench/run mpi", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="exit status: 0 all ran (whatever the verdict); 1 something did not run; 2 usage")
    parser.add_argument("--mpich", metavar="PREFIX",
                        help="MPICH with ch4:zc and ch4:ucx (default: $ZC_MPICH)")
    parser.add_argument("--ofi", metavar="PREFIX", default=peers.default_ofi(),
                        help="MPICH with ch4:ofi (default: where mpi-ch4-netmod/build-peer puts it)")
    parser.add_argument("--openmpi", metavar="PREFIX", default="/usr",
                        help="Open MPI (default /usr)")
    parser.add_argument("--quick", action="store_true",
                        help="a smoke test: few sizes, one round, one setting")
    parser.add_argument("--long", action="store_true",
                        help=f"more settings ({settings.show(settings.LONG)}) and cases")
    parser.add_argument("--settings", type=settings.parse, metavar="LINK/CORES,...",
                        help=f"default {settings.show(settings.MAIN)}; with --quick {settings.PLAIN}")
    parser.add_argument("--rounds", type=int, metavar="N", help="default 3, with --quick 1")
    parser.add_argument("--cases", type=report.names(list(CASES)), metavar="CASE,...",
                        help="default: all, but those of --long")
    parser.add_argument("--impl", type=report.names(list(PEERS)), default=peers.UNASKED,
                        metavar="IMPL,...", help=f"default {','.join(peers.UNASKED)}")
    parser.add_argument("--list", action="store_true", help="print the cases and end")
    parser.add_argument("--json-out", metavar="FILE", default=str(TOP / "out/mpi.jsonl"),
                        help="default out/mpi.jsonl")
    parser.add_argument("--picture", metavar="FILE", default=None,
                        help="default: beside the JSON, ending in .svg")
    parser.add_argument("--build-dir", metavar="DIR", default=str(TOP / "build/mpi/measure"),
                        help="where programs are built (default build/mpi/measure)")
    parser.add_argument("--timeout", type=float, default=120, metavar="SECONDS",
                        help="limit of one run (default 120)")
    options = parser.parse_args(words)
    if options.rounds is not None and options.rounds < 1:
        parser.error("--rounds wants a positive number")
    options.settings = options.settings or (
        [settings.PLAIN] if options.quick else settings.LONG if options.long else settings.MAIN)
    options.picture = options.picture or str(pathlib.Path(options.json_out).with_suffix(".svg"))
    return options


def measure(options):
    """Run everything that was asked for; (measurement, context)."""
    with Network("2") as two, \
            tempfile.TemporaryDirectory(prefix="zc-measure-") as scratch:
        options.scratch = scratch
        networks = {"2": two, "1": Network("1"), "loopback": Network("loopback")}
        about = report.context(two, versions(options)) | {"autogroup": two.autogroup.state}
        report.print_context(about, two)
        two.autogroup.print_warning()
        measurement = Measurement(options, networks)
        measurement.check_settings()
        settings.enter(two, measurement.settings[0])
        measurement.check_peers()
        try:
            measurement.run()
        except KeyboardInterrupt:
            measurement.interrupted = True
            print("\ninterrupted: what there is so far", flush=True)
        about["load_after"] = report.load()
        return measurement, about


def main():
    options = parse()
    if options.list:
        for case in CASES.values():
            print(f"{case.name:<22}  {case.what}")
        return 0
    exit_on_sigterm()
    try:
        options.mpich = prefix_or_die(options.mpich)
        enter_private_namespace()
        measurement, about = measure(options)
    except Error as error:
        print(f"measure: {error}", file=sys.stderr)
        return EXIT_USAGE
    except KeyboardInterrupt:
        return 130
    for samples in measurement.samples.values():
        memory_model.add(samples, measurement.impls)
    measurement.print_results()
    measurement.print_notes()
    rows, worse = measurement.verdict()
    if peers.OURS in measurement.impls:
        measurement.print_verdict(rows, worse)
    about.update(measurement.outcome(rows, worse))
    records = [record for setting, samples in measurement.samples.items()
               for record in samples.records("mpi", setting)]
    shown = report.write_jsonl(options.json_out, [{"context": about}, *records])
    picture.draw(measurement.samples, measurement.impls, about, options.picture)
    print(f"\nresults: {shown}, {report.show_path(options.picture)}")
    if measurement.failures:
        print("\nfailed runs:\n  " + "\n  ".join(map(str, measurement.failures)), file=sys.stderr)
    if measurement.interrupted:
        return 130
    return 1 if measurement.failures or measurement.left_out or measurement.not_made else 0


if __name__ == "__main__":
    sys.exit(main())
