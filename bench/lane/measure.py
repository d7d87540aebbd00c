# SPDX-License-Identifier: BSD-3-Clause
"""Lanes beside UCX: bulk data between two processes on the two hosts of testbed.

engines (they take turns, repetition by repetition, in the same two processes):
  ucx1    UCX active messages, a second thread making progress: how ch4:zc lands
  ucx     the same with a worker, and so a connection, for each direction
  thread  a lane served by its thread (epoll)
  uring   a lane served by the kernel (io_uring)

cases:
  oneway  four messages, receives posted, the receiver waits
  both    one message each way at once, receives posted
  ahead   the same, but one side computes for half a transfer before it sends or receives
  late    the receiver computes (--compute-ms) before it receives

cores:
  full    each process is bound to a processor of its own
  one     both are bound to the same processor
  spare   neither is bound

Every byte received is read and checked. Figures are medians; in brackets the 10th and the 90th
percentile. Processor time is of the whole process; that of the work itself is taken off.

exit status: 0 measured; 1 a run failed, or wrong data; 2 usage; 4 no hosts can be made here
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys

from bench.spread import median, percentile
from testbed import network as hosts
from testbed.outcome import Error

ROOT = pathlib.Path(__file__).resolve().parents[2]
ENGINES = ["ucx1", "ucx", "thread", "uring"]
CASES = ["oneway", "both", "ahead", "late"]
LINKS = ["bare", "1gbit", "10gbit"]
CORES = ["full", "spare", "one"]
# What is shown of a case: field, heading, factor, better (1: more, -1: less)
SHOWN = {
    "oneway": [("mb_per_s", "MB/s", 1, 1), ("cpu_send_ms_per_gib", "sender's CPU ms/GiB", 1, -1),
               ("cpu_receive_ms_per_gib", "receiver's CPU ms/GiB", 1, -1)],
    "both": [("mb_per_s", "MB/s", 1, 1), ("cpu_ms_per_gib", "CPU ms/GiB", 1, -1)],
    "ahead": [("us", "ms", 1e-3, -1), ("cpu_ms_per_gib", "CPU ms/GiB", 1, -1)],
    "late": [("held_us", "sender held, ms", 1e-3, -1), ("post_to_data_us", "post to data, µs", 1, -1),
             ("stretch", "work stretched", 1, -1), ("total_us", "total, ms", 1e-3, -1),
             ("cpu_send_ms_per_gib", "sender's CPU ms/GiB", 1, -1),
             ("cpu_receive_ms_per_gib", "receiver's CPU ms/GiB", 1, -1)],
}


def names(allowed):
    def parse(text):
        chosen = text.split(",")
        wrong = [name for name in chosen if name not in allowed]
        if wrong:
            raise argparse.ArgumentTypeError(f"no such: {wrong[0]} ({', '.join(allowed)})")
        return chosen
    return parse


def parse():
    parser = argparse.ArgumentParser(prog="bench/run lane", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=ROOT / "build/release/bin/lane_pair", type=pathlib.Path,
                        help="lane_pair (default: that of the release build)")
    parser.add_argument("--engines", type=names(ENGINES), default=ENGINES)
    parser.add_argument("--cases", type=names(CASES), default=CASES)
    parser.add_argument("--links", type=names(LINKS), default=["10gbit", "bare"],
                        help="rates of the link: bare, 1gbit, 10gbit (default: 10gbit,bare)")
    parser.add_argument("--cores", type=names(CORES), default=["full", "spare"],
                        help="default: full,spare")
    parser.add_argument("--sizes", default="1m,4m,16m", help="default: 1m,4m,16m")
    parser.add_argument("--repetitions", type=int, default=10)
    parser.add_argument("--compute-ms", type=float, default=50)
    parser.add_argument("--timeout", type=float, default=300, help="of a link's run, seconds")
    parser.add_argument("--quick", action="store_true", help="two repetitions, 10gbit and full only")
    parser.add_argument("--json-out", default=ROOT / "out/lane.jsonl", type=pathlib.Path)
    parser.add_argument("--append", action="store_true", help="keep what --json-out holds")
    parser.add_argument("--report", type=pathlib.Path, metavar="FILE",
                        help="measure nothing: print the table of such a file")
    options = parser.parse_args()
    if options.repetitions < 1:
        parser.error("--repetitions must be positive")
    if options.quick:
        options.repetitions, options.links, options.cores = 2, ["10gbit"], ["full"]
    return options


def set_link(network, link):
    for host in ("h1", "h2"):
        space = f"{network.name}-{host}"
        subprocess.run(["ip", "netns", "exec", space, "tc", "qdisc", "del", "dev", hosts.INTERFACE,
                        "root"], stderr=subprocess.DEVNULL, check=False)
        if link == "bare":
            continue
        made = subprocess.run(
            ["ip", "netns", "exec", space, "tc", "qdisc", "replace", "dev", hosts.INTERFACE, "root",
             "tbf", "rate", link, "burst", "512kb", "latency", "20ms"],
            capture_output=True, text=True, check=False)
        if made.returncode != 0:
            raise Error(f"cannot give the link a rate: {made.stderr.strip()}")


def start(options, network, role, cores, **how):
    host, here, there = (("h1", *hosts.ADDRESSES) if role == "a" else
                         ("h2", *reversed(hosts.ADDRESSES)))
    processor = {"spare": -1, "one": 0}.get(cores, 0 if role == "a" else 1)
    command = [hosts.HOSTS, "--name", network.name, "exec", host, options.program.resolve(), role,
               "--address", here, "--peer", there, "--cpu", str(processor),
               "--engines", ",".join(options.engines), "--cases", ",".join(options.cases),
               "--sizes", options.sizes, "--repetitions", str(options.repetitions),
               "--compute-ms", str(options.compute_ms)]
    environment = dict(os.environ, UCX_TLS="tcp,self", UCX_NET_DEVICES=hosts.INTERFACE)
    return subprocess.Popen([str(word) for word in command], env=environment, **how)


def run(options, network, link, cores):
    """The records of one run of both processes; raises Error."""
    set_link(network, link)
    b = start(options, network, "b", cores, stdout=subprocess.PIPE, text=True)
    a = start(options, network, "a", cores)
    try:
        output, _ = b.communicate(timeout=options.timeout)
        a.wait(timeout=20)
    except subprocess.TimeoutExpired as error:
        raise Error(f"{link}, {cores}: not ready after {error.timeout:.0f} s") from error
    finally:
        for process in (a, b):
            if process.poll() is None:
                process.kill()
                process.wait()
    if a.returncode or b.returncode:
        raise Error(f"{link}, {cores}: exit status {a.returncode} and {b.returncode}")
    return [dict(json.loads(line), link=link, cores=cores) for line in output.splitlines()]


def cell(values, factor):
    low, mid, high = (percentile(values, 0.1) * factor, median(values) * factor,
                      percentile(values, 0.9) * factor)

    def text(number):
        return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"
    return f"{text(mid)} ({text(low)}..{text(high)})"


def table(records):
    """Lines of Markdown: one row per link, cores, size and figure."""
    lines = []
    for case in CASES:
        of_case = [r for r in records if r["case"] == case]
        engines = [e for e in ENGINES if any(r["engine"] == e for r in of_case)]
        if not of_case:
            continue
        lines += [f"### {case}", "", "| link | cores | MiB | | " + " | ".join(engines) + " |",
                  "|---" * (4 + len(engines)) + "|"]
        for field, heading, factor, better in SHOWN[case]:
            places = {(r["link"], r["cores"], r["bytes"]): None for r in of_case}
            for link, cores, size in places:
                values = {e: [r[field] for r in of_case
                              if (r["link"], r["cores"], r["bytes"], r["engine"]) ==
                              (link, cores, size, e)] for e in engines}
                found = {e: median(v) for e, v in values.items() if v}
                best = (max if better > 0 else min)(found, key=found.get)
                cells = [("**" if e == best else "") + cell(values[e], factor) +
                         ("**" if e == best else "") if values[e] else "" for e in engines]
                lines.append(f"| {link} | {cores} | {size / 2**20:g} | {heading} | " +
                             " | ".join(cells) + " |")
        lines.append("")
    return lines


def main():
    options = parse()
    if options.report:
        with open(options.report, encoding="utf-8") as file:
            print("\n".join(table([json.loads(line) for line in file])))
        return 0
    if not options.program.exists():
        print(f"measure: {options.program} is missing (make checks)", file=sys.stderr)
        return 1
    options.json_out.parent.mkdir(parents=True, exist_ok=True)
    status, records = 0, []
    try:
        with hosts.Network("2") as network:
            if network.hosts != "2":
                print(f"measure: {network.why}", file=sys.stderr)
                return hosts.EXIT_NOT_PERMITTED
            network.autogroup.print_warning()
            with open(options.json_out, "a" if options.append else "w", encoding="utf-8") as file:
                for link in options.links:
                    for cores in options.cores:
                        try:
                            found = run(options, network, link, cores)
                        except Error as error:
                            print(f"measure: {error}", file=sys.stderr)
                            status = 1
                            continue
                        for record in found:
                            print(json.dumps(record), file=file, flush=True)
                        records += found
    except Error as error:
        print(f"measure: {error}", file=sys.stderr)
        return 1
    print("\n".join(table(records)))
    return status


if __name__ == "__main__":
    sys.exit(main())
