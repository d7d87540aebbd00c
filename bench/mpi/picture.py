# SPDX-License-Identifier: BSD-3-Clause
"""The measurements as one SVG: a section per setting, a panel per metric, a line or a bar per library."""
import math

from bench.drawing import BLUE, GREEN, PINK, RED, Axis, round_up, short, text, write_svg
from bench.mpi import report

COLUMNS = 4
WIDTH, HEIGHT = 270, 170          # of a panel's diagram
LEFT, TOP, RIGHT, BELOW = 54, 30, 16, 40
TICK_ROOM = 28                    # between the labels below
HEAD = 64                         # the picture's title and the legend
SECTION = 30                      # a section's title
CELL = (LEFT + WIDTH + RIGHT, TOP + HEIGHT + BELOW)
COLOURS = {"zc": BLUE, "ucx": RED, "ofi": GREEN, "openmpi": PINK}
# (case, metric, caption); the axis below is bytes, or what the metric depends on
PANELS = [
    ("latency", "latency", "ping-pong latency, µs"),
    ("latency-one-host", "latency", "ping-pong latency on one host, µs"),
    ("preposted", "bandwidth", "bandwidth, posted first, MB/s"),
    ("bibandwidth", "bibandwidth", "bandwidth, posted first, both ways, MB/s"),
    ("transpose", "in_step", "both ways, in step, MB/s"),
    ("transpose", "ahead", "both ways, one side ahead, MB/s"),
    ("pingpong-beside-bulk", "latency", "8-byte latency beside 64 MiB, µs"),
    ("pipeline", "time", "pipeline of small messages, µs"),
    ("late", "post_to_data", "late: posting to data, µs"),
    ("late", "sender_held", "late: sender held, µs"),
    ("late", "relative", "late: total / work and reading"),
    ("passive", "put", "target computes: MPI_Put, µs"),
    ("passive", "get", "target computes: MPI_Get, µs"),
    ("passive", "accumulate", "target computes: MPI_Accumulate, µs"),
    ("late-one-host", "post_to_data", "late on one host: posting to data, µs"),
    ("rate", "rate", "8-byte messages per second"),
    ("overlap", "receiver", "overlap of the receiver, %"),
    ("overlap", "sender", "overlap of the sender, %"),
    ("overlap-collectives", "iallreduce", "overlap of MPI_Iallreduce, %"),
    ("overlap-collectives", "ialltoall", "overlap of MPI_Ialltoall, %"),
    ("overlap-collectives", "ibcast", "overlap of MPI_Ibcast, %"),
    ("overlap-collectives", "iallgather", "overlap of MPI_Iallgather, %"),
    ("matching", "in_order", "matching the oldest of those queued, µs"),
    ("matching", "reverse", "matching the newest of those queued, µs"),
    ("alltoall", "time", "MPI_Alltoall, 4 ranks, µs"),
    ("allgather", "time", "MPI_Allgather, 4 ranks, µs"),
    ("bcast", "time", "MPI_Bcast, 4 ranks, µs"),
    ("allreduce", "time", "MPI_Allreduce, 4 ranks, µs"),
    ("memory-growth", "touched", "memory of a rank that touched all, KiB"),
    ("memory-growth", "init_time", "slowest MPI_Init, ms"),
    ("memory", "touched", "memory of a rank, 4 ranks, KiB"),
    ("startup", "mpiexec", "shortest program, ms"),
]


def colour_of(impl):
    return COLOURS.get(impl.removesuffix("-async"), "#000000")


def dash_of(impl):
    return " stroke-dasharray='5 3'" if impl.endswith("-async") else ""


def short_bytes(value):
    for size, unit in ((1 << 20, "M"), (1 << 10, "k")):
        if value >= size:
            return f"{value // size}{unit}"
    return str(value)


def spread(values):
    return (report.percentile(values, 0.1), report.median(values), report.percentile(values, 0.9))


class Panel:
    def __init__(self, samples, impls, case, metric, caption, left, top):
        self.case, self.metric, self.caption = case, metric, caption
        self.left, self.top = left + LEFT, top + TOP
        self.points = samples.series(case, metric)
        self.lines = {}     # impl: [(place, (p10, median, p90))]
        for impl in impls:
            line = [(report.place_of(*point), spread(values)) for point in self.points
                    if (values := samples.values(case, impl, *point))]
            if line:
                self.lines[impl] = line
        self.percent = report.metric_of(case, metric)[0] == "%"

    def draw(self):
        frame = (f"<rect x='{self.left}' y='{self.top}' width='{WIDTH}' height='{HEIGHT}' "
                 "fill='none' stroke='#444'/>")
        caption = text(self.left + WIDTH / 2, self.top - 8, self.caption,
                       more=" font-weight='bold'")
        body = self._bars() if len(self.points) == 1 else self._curves()
        return [caption, *body, frame]

    def _curves(self):
        places = [report.place_of(*point) for point in self.points]
        figures = [figure for line in self.lines.values() for _, three in line for figure in three]
        across = Axis([math.log2(place) for place in places], self.left + 8,
                      self.left + WIDTH - 8, False)
        # Within a decade a logarithmic axis would show little and label less.
        linear = self.percent or max(figures) < 10 * min(figures)
        up = Axis([0, 100] if self.percent else [0, round_up(max(figures))] if linear else figures,
                  self.top + HEIGHT, self.top, not linear)
        out = []
        for value in up.ticks():
            y = up.at(value)
            out.append(f"<line x1='{self.left}' x2='{self.left + WIDTH}' y1='{y:.1f}' "
                       f"y2='{y:.1f}' stroke='#ddd'/>")
            out.append(text(self.left - 6, y + 4, short(value), "end"))
        in_bytes = report.parameter_of(self.points[0][1]) is None
        last = -math.inf
        for place in places:
            label, x = short_bytes(place) if in_bytes else short(place), across.at(math.log2(place))
            if x - last >= TICK_ROOM:
                out.append(text(x, self.top + HEIGHT + 15, label))
                last = x
        below = "bytes" if in_bytes else report.parameter_of(self.points[0][1])[0]
        out.append(text(self.left + WIDTH / 2, self.top + HEIGHT + 30, below))
        # Ours last, on top of the others.
        for impl, line in sorted(self.lines.items(), key=lambda item: item[0] == "zc"):
            out += self._curve(impl, [(across.at(math.log2(place)), *map(up.at, three))
                                      for place, three in line])
        return out

    @staticmethod
    def _curve(impl, line):
        colour, width = colour_of(impl), 2.4 if impl == "zc" else 1.5
        points = " ".join(f"{x:.1f},{y:.1f}" for x, _, y, _ in line)
        out = [f"<polyline points='{points}' fill='none' stroke='{colour}' "
               f"stroke-width='{width}'{dash_of(impl)}/>"]
        for x, low, y, high in line:
            out.append(f"<line x1='{x:.1f}' x2='{x:.1f}' y1='{low:.1f}' y2='{high:.1f}' "
                       f"stroke='{colour}' stroke-opacity='0.4'/>")
            out.append(f"<circle cx='{x:.1f}' cy='{y:.1f}' r='{width:.1f}' fill='{colour}'/>")
        return out

    def _bars(self):
        """One figure for each library: bars from nought."""
        three = {impl: line[0][1] for impl, line in self.lines.items()}
        first = self.left + 78
        across = Axis([0, max(high for _, _, high in three.values())], first,
                      self.left + WIDTH - 50, False)
        row = HEIGHT / len(three)
        out = []
        for i, (impl, (low, middle, high)) in enumerate(three.items()):
            y = self.top + (i + 0.5) * row
            colour, thick = colour_of(impl), min(14, row * 0.7)
            opacity = 0.45 if impl.endswith("-async") else 0.9
            out.append(text(first - 6, y + 4, impl, "end"))
            out.append(f"<rect x='{first}' y='{y - thick / 2:.1f}' height='{thick:.1f}' "
                       f"width='{across.at(middle) - first:.1f}' fill='{colour}' "
                       f"fill-opacity='{opacity}'/>")
            out.append(f"<line x1='{across.at(low):.1f}' x2='{across.at(high):.1f}' "
                       f"y1='{y:.1f}' y2='{y:.1f}' stroke='#222'/>")
            out.append(text(across.at(high) + 4, y + 4, report.show_number(middle), "start"))
        return out


def legend(impls):
    out, x = [], LEFT
    for impl in impls:
        out.append(f"<line x1='{x}' x2='{x + 26}' y1='46' y2='46' stroke='{colour_of(impl)}' "
                   f"stroke-width='{3 if impl == 'zc' else 2}'{dash_of(impl)}/>")
        out.append(text(x + 32, 50, impl, "start"))
        x += 110
    out.append(text(x, 50, "points: medians; upright lines: 10th to 90th percentile", "start",
                    " fill='#666'"))
    return out


def section(samples, impls, top):
    """(elements, height) of the panels of SAMPLES that have figures, below TOP."""
    wanted = [panel for panel in PANELS if samples.series(*panel[:2])]
    body = []
    for index, panel in enumerate(wanted):
        row, column = divmod(index, COLUMNS)
        body += Panel(samples, impls, *panel, column * CELL[0], top + row * CELL[1]).draw()
    return body, math.ceil(len(wanted) / COLUMNS) * CELL[1]


def draw(samples, impls, about, path):
    """Write every panel that has figures to PATH; nothing if none has. SAMPLES: {setting: Samples}."""
    body, top = [], HEAD
    for setting, of_setting in samples.items():
        panels, height = section(of_setting, impls, top + SECTION)
        if panels:
            body += [text(LEFT, top + SECTION - 10, setting.describe(), "start", " font-size='14'"),
                     *panels]
            top += SECTION + height
    if not body:
        return False
    width, height = COLUMNS * CELL[0], top + 8
    title = (f"ch4:zc and other MPI libraries, {'two hosts' if about['hosts'] == '2' else 'loopback'}"
             f" over TCP; {about['cpu']}, Linux {about['kernel']}, {about['date'][:10]},"
             f" load {about['load'][0]}")
    write_svg(path, width, height, title, LEFT, [*legend(impls), *body])
    return True
