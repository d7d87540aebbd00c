# SPDX-License-Identifier: BSD-3-Clause
"""What the MPI benchmarks share: samples, statistics, tables, JSON lines, the context of a run."""
import argparse
import ctypes
import datetime
import json
import os
import pathlib
import platform
import re
import subprocess

from bench.spread import median, percentile

TOP = pathlib.Path(__file__).resolve().parents[2]
HERE = TOP / "bench/mpi"
PATTERN = TOP / "tests/mpi/pattern.h"
# Stock ch4:ucx over TCP now and then never comes back from MPI_Finalize; its
# results are out by then.
FINALIZE_GRACE_S = 5

# (case, metric): unit, title, whether more is better
METRICS = {
    ("late", "post_to_data"): ("us", "late receiver: from posting to data in hand, µs", False),
    ("late", "total"): ("us", "late receiver: work + receive + reading every byte, µs", False),
    ("late", "sender_held"): ("us", "late receiver: the sender is held in MPI_Send, µs", False),
    ("late", "stretch"):
        ("x", "late receiver: the work while the message arrives / the work alone", False),
    ("late", "relative"):
        ("x", "late receiver: work + receive + reading / work and reading alone", False),
    ("preposted", "bandwidth"): ("MB/s", "receives posted first: bandwidth, MB/s", True),
    ("bibandwidth", "bibandwidth"):
        ("MB/s", "receives posted first, both ways at once: bandwidth, MB/s", True),
    ("transpose", "in_step"): ("MB/s", "both ways at once, in step: bandwidth, MB/s", True),
    ("transpose", "ahead"):
        ("MB/s", "both ways at once, one side half a transfer ahead: bandwidth, MB/s", True),
    ("latency", "latency"): ("us", "ping-pong latency, µs", False),
    ("pingpong-beside-bulk", "latency"):
        ("us", "8-byte latency beside a large message the same way, µs", False),
    ("pingpong-beside-bulk", "longest"):
        ("us", "the same, the longest half round trip of each large message, µs", False),
    ("pipeline", "time"): ("us", "pipeline of small messages: a sweep of 1,024 rows, µs", False),
    ("rate", "rate"): ("messages/s", "message rate, windows of 64, messages/s", True),
    ("threads", "rate"):
        ("messages/s", "message rate of several threads, one VCI, messages/s", True),
    ("threads-vcis", "rate"):
        ("messages/s", "message rate of several threads, 4 VCIs, messages/s", True),
    ("overlap", "receiver"): ("%", "overlap, receiver: transfer hidden behind work, %", True),
    ("overlap", "sender"): ("%", "overlap, sender: transfer hidden behind work, %", True),
    **{(f"overlap-collectives{more}", name.lower()):
       ("%", f"overlap of MPI_{name}{ranks}: hidden behind work, %", True)
       for more, ranks in (("", ""), ("-4", ", 4 ranks"), ("-8", ", 8 ranks"))
       for name in ("Iallreduce", "Ialltoall", "Ibcast", "Iallgather")},
    **{("passive", metric): ("us", f"target computes 50 ms: {what}, µs", False)
       for metric, what in (("put", "lock, MPI_Put, unlock"), ("get", "lock, MPI_Get, unlock"),
                            ("accumulate", "lock, MPI_Accumulate, unlock"),
                            ("fetch_and_op", "lock, MPI_Fetch_and_op, unlock"),
                            ("ssend", "MPI_Ssend to a posted receive"))},
    ("alltoall", "time"): ("us", "MPI_Alltoall, 4 ranks on two hosts, µs", False),
    ("allgather", "time"): ("us", "MPI_Allgather, 4 ranks on two hosts, µs", False),
    ("bcast", "time"): ("us", "MPI_Bcast, 4 ranks on two hosts, µs", False),
    ("allreduce", "time"): ("us", "MPI_Allreduce, 4 ranks on two hosts, µs", False),
    ("matching", "in_order"):
        ("us", "matching: a receive for the oldest of the messages queued, µs", False),
    ("matching", "reverse"):
        ("us", "matching: a receive for the newest of the messages queued, µs", False),
    ("matching", "memory"): ("bytes", "matching: memory of a queued message, bytes", False),
    ("flood", "bytes_per_message"): ("bytes", "flood: memory of a queued message, bytes", False),
    ("flood", "queue"): ("s", "flood: until all messages are queued, s", False),
    ("flood", "drain"): ("s", "flood: until all queued messages are received, s", False),
    ("startup", "mpiexec"): ("ms", "mpiexec of MPI_Init and MPI_Finalize, ms", False),
    ("startup", "init"): ("ms", "rank 0 in MPI_Init, ms", False),
    ("startup", "finalize"): ("ms", "rank 0 in MPI_Finalize, ms", False),
    ("memory", "init"): ("KiB", "memory of a rank after MPI_Init, KiB", False),
    ("memory", "touched"): ("KiB", "memory of a rank after touching every other, KiB", False),
    ("memory", "peak"): ("KiB", "memory of a rank at its highest, KiB", False),
    ("memory-growth", "init"):
        ("KiB", "memory of a rank after MPI_Init, one host, TCP, KiB", False),
    ("memory-growth", "touched"):
        ("KiB", "memory of a rank after touching every other, one host, TCP, KiB", False),
    ("memory-growth", "init_time"):
        ("ms", "time in MPI_Init, slowest rank, one host, TCP, ms", False),
    ("memory-model", "fixed"): ("KiB", "memory model: whatever the job's size, KiB", False),
    ("memory-model", "per_rank"): ("bytes", "memory model: for each rank of the job, bytes", False),
    ("memory-model", "per_peer"):
        ("bytes", "memory model: for each rank that messages went to and came from, bytes", False),
    ("memory-model", "known"):
        ("MiB", "memory model: a rank that talked to none, extrapolated, MiB", False),
    ("memory-model", "touched"):
        ("MiB", "memory model: a rank that talked to all, extrapolated, MiB", False),
    ("latency-one-host", "latency"): ("us", "ping-pong latency on one host, µs", False),
    ("late-one-host", "post_to_data"):
        ("us", "late receiver on one host: from posting to data in hand, µs", False),
    ("late-one-host", "total"):
        ("us", "late receiver on one host: work + receive + reading every byte, µs", False),
    ("late-one-host", "sender_held"):
        ("us", "late receiver on one host: the sender is held in MPI_Send, µs", False),
    ("halo", "time_to_solution"): ("ms", "imbalanced halo exchange: time to solution, ms", False),
    ("netpipe", "latency"): ("us", "NetPIPE latency, µs", False),
    ("netpipe", "bandwidth"): ("MB/s", "NetPIPE bandwidth, MB/s", True),
}
# A program's figure may depend on one of these beside the bytes; the metric's
# name then says so, e.g. "reverse/queued:1000".
PARAMETERS = ("queued", "ranks", "threads")


def base_of(metric):
    """The metric's name without its parameter."""
    return metric.partition("/")[0]


def parameter_of(metric):
    """(name, value) of the metric's parameter; None if it has none."""
    name, _, value = metric.partition("/")[2].partition(":")
    return (name, int(value)) if name else None


def metric_of(case, metric):
    """(unit, title, more is better) of a metric, with or without its parameter."""
    return METRICS[case, base_of(metric)]


def place_of(size, metric):
    """Where on its axis a figure stands: its parameter's value, or else its bytes."""
    parameter = parameter_of(metric)
    return parameter[1] if parameter else size


def show_place(size, metric):
    parameter = parameter_of(metric)
    return f"{parameter[1]:,} {parameter[0]}" if parameter else show_bytes(size) if size else "-"


class Samples:
    """What the programs measured in one setting, round by round."""

    def __init__(self):
        self._rounds = {}    # (case, impl, bytes, metric): {round: [values]}

    def add(self, case, impl, size, metric, value, turn=0):
        self._rounds.setdefault((case, impl, size, metric), {}).setdefault(turn, []).append(value)

    def read(self, case, impl, text, turn=0):
        """Add what a program printed (a JSON object per line); how many figures that were."""
        found = 0
        for line in text.splitlines():
            if not line.startswith("{"):
                continue
            try:
                record = json.loads(line)
            except ValueError:
                continue    # cut off where a failed run was ended
            parameter = "".join(f"/{name}:{record[name]}" for name in PARAMETERS if name in record)
            for metric, value in record.items():
                if (case, metric) in METRICS:
                    self.add(case, impl, record["bytes"], metric + parameter, value, turn)
                    found += 1
        return found

    def __iter__(self):
        return iter(self._rounds)

    def values(self, case, impl, size, metric):
        """All rounds' values; empty if there are none."""
        rounds = self._rounds.get((case, impl, size, metric), {})
        return [value for values in rounds.values() for value in values]

    def rounds(self, case, impl, size, metric):
        """{round: its median}"""
        rounds = self._rounds.get((case, impl, size, metric), {})
        return {turn: median(values) for turn, values in rounds.items()}

    def series(self, case, base):
        """[(bytes, metric)] of a metric by any of its parameters, in order."""
        found = {(key[2], key[3]) for key in self._rounds
                 if key[0] == case and base_of(key[3]) == base}
        return sorted(found, key=lambda point: place_of(*point))

    def records(self, bench, setting):
        for (case, impl, size, metric) in self._rounds:
            yield record_of(bench, setting, case, impl, size, metric, metric_of(case, metric)[0],
                            self.values(case, impl, size, metric))


def record_of(bench, setting, case, impl, size, metric, unit, values):
    return {"bench": bench, "link": setting.link, "cores": setting.cores, "case": case,
            "impl": impl, "bytes": size, "metric": metric, "unit": unit,
            "median": round(median(values), 3), "p10": round(percentile(values, 0.1), 3),
            "p90": round(percentile(values, 0.9), 3), "n": len(values)}


def write_jsonl(path, records):
    """Write RECORDS to PATH, making its folder; the path to show to the user."""
    out = pathlib.Path(path)
    out.parent.mkdir(parents=True, exist_ok=True)
    with open(out, "w", encoding="utf-8") as file:
        for record in records:
            file.write(json.dumps(record) + "\n")
    return show_path(out)


def show_path(path):
    path = pathlib.Path(path).resolve()
    return path.relative_to(TOP) if path.is_relative_to(TOP) else path


def show_bytes(count):
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= size:
            return f"{count / size:.4g} {unit}"
    return f"{count} B"


def show_number(value):
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}" if abs(value) < 100 \
        else f"{value:.0f}"


def show_spread(values):
    return f"{show_number(percentile(values, 0.1))}..{show_number(percentile(values, 0.9))}"


def print_table(title, header, rows):
    widths = [max(len(str(row[i])) for row in [header, *rows]) for i in range(len(header))]
    print(f"\n{title}")
    for row in [header, *rows]:
        print("  " + "  ".join(str(cell).rjust(width) for cell, width in zip(row, widths)))


# -- context ----------------------------------------------------------------


def cpu_name():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def mpich_version(prefix):
    for name in ("mpichversion", "mpichversion.mpich"):
        path = pathlib.Path(prefix) / "bin" / name
        if path.exists():
            done = subprocess.run([path], capture_output=True, text=True, check=False)
            match = re.search(r"MPICH Version:\s*(\S+)", done.stdout)
            device = re.search(r"MPICH Device:\s*(.+)", done.stdout)
            if match:
                return f"{match[1]} {device[1]}" if device else match[1]
    header = pathlib.Path(prefix) / "include/mpi.h"
    match = re.search(r'MPICH_VERSION "([^"]+)"', header.read_text()) if header.exists() else None
    return match[1] if match else "unknown"


def ucx_version():
    try:
        ask = ctypes.CDLL("libucp.so.0").ucp_get_version_string
    except (OSError, AttributeError):
        return "unknown"
    ask.restype = ctypes.c_char_p
    return ask().decode().split()[0]


def load():
    return [round(value, 2) for value in os.getloadavg()]


def context(network, versions):
    """The first line of the results: where and on what they were measured."""
    thp = pathlib.Path("/sys/kernel/mm/transparent_hugepage/enabled")
    chosen = re.search(r"\[(\w+)\]", thp.read_text() if thp.exists() else "")
    return {"kernel": platform.release(), "cpu": f"{cpu_name()}, {os.cpu_count()} cores",
            "thp": chosen[1] if chosen else "unknown",
            "load": load(), "versions": versions,
            "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
            "hosts": network.hosts}


def print_context(about, network):
    print(f"{network.describe()}; MPICH {about['versions']['mpich']}, "
          f"UCX {about['versions']['ucx']}, Linux {about['kernel']}, {about['cpu']}")
    if about["load"][0] > 0.5 * os.cpu_count():
        print(f"the machine is busy (load {about['load'][0]}): trust ratios, not figures")


def names(known):
    """An argument that is a comma-separated list of KNOWN names."""
    def convert(text):
        chosen = text.split(",")
        unknown = [name for name in chosen if name not in known]
        if unknown:
            raise argparse.ArgumentTypeError(
                f"unknown: {', '.join(unknown)} (there are {', '.join(known)})")
        return chosen
    return convert
