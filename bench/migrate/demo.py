# SPDX-License-Identifier: BSD-3-Clause
"""heat2d on two hosts; a load is put on one; zcctl moves its ranks to the other.

Both hosts are namespaces of this machine, so "a host" is given one processor by
taskset: h1's processes run on the first, h2's on the second. Iterations per second
over time, with and without the move, are printed and drawn.
"""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import threading
import time

from bench.migrate.stage import add_options, exit_status, stage_of
from testbed.migration import H1, TOP, Job
from testbed.outcome import Fail, Skip

PROCESSOR = {"h1": 0, "h2": 1}


def pin(job, stop):
    """Keep each host's processes on that host's processor, also those that come later."""
    done = set()
    while not stop.is_set():
        for host, processor in PROCESSOR.items():
            for pid, line in job.processes_on(host):
                if pid not in done and "heat2d" in line:
                    try:
                        os.sched_setaffinity(pid, {processor})
                        done.add(pid)
                    except OSError:
                        pass
        time.sleep(0.05)


def measure(stage, options, move):
    """[(second, iterations per second)] and what zcctl said."""
    report = 10
    with Job(stage, "heat2d", "--rows", 128, "--columns", 1024, "--iterations", 100000000,
             "--report", report, "--no-verify", "--ballast", 4) as job:
        stop = threading.Event()
        pinner = threading.Thread(target=pin, args=(job, stop), daemon=True)
        pinner.start()
        load = []
        answer = None
        try:
            job.until_running(timeout=120)
            time.sleep(options.before)
            begin = time.monotonic()
            load = [subprocess.Popen(["sh", "-c", "while :; do :; done"],
                                     preexec_fn=lambda: os.sched_setaffinity(0, {1}))
                    for _ in range(options.load)]
            time.sleep(options.loaded)
            if move:
                code, answer, said = job.ask("move", "--rank", "1,3", "--to", H1)
                if code != 0:
                    raise Fail(said)
            time.sleep(max(0, options.loaded + options.after - (time.monotonic() - begin)))
        finally:
            for one in load:
                one.kill()
                one.wait()
            stop.set()
            pinner.join()
        lines = [(int(n), float(at)) for n, at in
                 re.findall(r"iteration (\d+) at ([\d.]+)", "".join(job.out))]
    if len(lines) < 3:
        raise Fail(f"too few iterations: {len(lines)} reports")
    start = lines[0][1]
    rates = [((a + b) / 2 - start, (m - n) / (b - a)) for (n, a), (m, b) in zip(lines, lines[1:])
             if b > a and m > n]
    return rates, answer


def draw(path, series, title):
    width, height, margin = 760, 360, 60
    most_x = max(x for points in series.values() for x, _ in points) or 1
    most_y = max(y for points in series.values() for _, y in points) or 1
    scale_x = (width - 2 * margin) / most_x
    scale_y = (height - 2 * margin) / most_y
    colours = ["#c0392b", "#2471a3"]
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
             f'font-family="sans-serif" font-size="12">',
             f'<rect width="{width}" height="{height}" fill="white"/>',
             f'<text x="{margin}" y="24" font-size="15">{title}</text>',
             f'<line x1="{margin}" y1="{height - margin}" x2="{width - margin}" '
             f'y2="{height - margin}" stroke="black"/>',
             f'<line x1="{margin}" y1="{margin}" x2="{margin}" y2="{height - margin}" '
             f'stroke="black"/>',
             f'<text x="{width / 2}" y="{height - 18}">seconds</text>',
             f'<text x="8" y="{margin - 10}">iterations per second, most {most_y:.0f}</text>',
             f'<text x="{width - margin - 20}" y="{height - margin + 16}">{most_x:.0f}</text>']
    for (name, points), colour in zip(series.items(), colours):
        line = " ".join(f"{margin + x * scale_x:.1f},{height - margin - y * scale_y:.1f}"
                        for x, y in points)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
        place = 24 + 18 * list(series).index(name)
        parts.append(f'<text x="{width - 200}" y="{place + 18}" fill="{colour}">{name}</text>')
    pathlib.Path(path).parent.mkdir(parents=True, exist_ok=True)
    pathlib.Path(path).write_text("\n".join([*parts, "</svg>"]) + "\n", encoding="utf-8")


def mean(rates, first, last):
    """Of what was done in that time, not of the rates."""
    chosen = [rate for at, rate in rates if first <= at <= last]
    return len(chosen) / sum(1 / rate for rate in chosen) if chosen else 0.0


def parse():
    parser = argparse.ArgumentParser(prog="bench/run demo-migrate", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    add_options(parser)
    parser.add_argument("--before", type=float, default=8, metavar="S", help="quiet seconds")
    parser.add_argument("--loaded", type=float, default=8, metavar="S", help="until the move")
    parser.add_argument("--after", type=float, default=20, metavar="S", help="from then on")
    parser.add_argument("--load", type=int, default=4, metavar="N",
                        help="busy processes put on h2's processor")
    parser.add_argument("--svg", default=str(TOP / "out/migrate.svg"))
    return parser.parse_args()


def show(options, series, answer):
    settled = options.before + options.loaded + 5
    print("\nsecond   without      with   (iterations per second)")
    last = min(max(x for x, _ in points) for points in series.values())
    for second in range(0, int(last), 2):
        print(f"{second:>6} " + " ".join(f"{mean(points, second, second + 2):>9.0f}"
                                         for points in series.values()))
    without, with_ = (mean(points, settled, last) for points in series.values())
    if not without or not with_:
        raise Fail("too few iterations in the time given for a figure (--after)")
    print(f"\nload of {options.load} processes on h2; after the move (response "
          f"{answer['response_ms']:.0f} ms, stall {answer['stall_ms']:.0f} ms): "
          f"{with_:.0f} against {without:.0f} iterations per second, "
          f"{(with_ / without - 1) * 100:+.0f} %")


def run(options):
    if len(os.sched_getaffinity(0)) < 2:
        raise Skip("two processors are needed, one per host")
    series, answer = {}, None
    with stage_of(options) as stage:
        for name, move in (("without migration", False), ("with migration", True)):
            print(f"{name} ...", flush=True)
            series[name], said = measure(stage, options, move)
            answer = said or answer
    show(options, series, answer)
    draw(options.svg, series, "heat2d, a load on one of two hosts")
    print(f"drawn: {options.svg}")


if __name__ == "__main__":
    sys.exit(exit_status("demo-migrate", run, parse()))
