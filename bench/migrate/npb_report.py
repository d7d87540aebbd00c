# SPDX-License-Identifier: BSD-3-Clause
"""What bench/run npb has measured: its lines of JSON, tables, and a picture like the paper's."""
import math

from bench.drawing import BLUE, GREEN, ORANGE, RED, Axis, round_up, short, text, write_svg
from bench.evaluation import Evaluation
from bench.spread import summary

# Metrics that the paper has figures of: title, and which (cluster 1, cluster 2)
METRICS = {"response": ("Response time, s", (4, 5)), "evacuation": ("Evacuation time, s", (6, 7)),
           "overhead": ("Overhead, s", (8, 9))}
UNITS = {"image": "B"}      # else s
MOVING = ("one", "host")
COLOURS = {"memory": BLUE, "disk": RED, "disk-120": ORANGE}
# Of the paper's text, cluster 2 (InfiniBand): FT, 16 processes, 8 of them move; seconds. Response is
# told as what memory saves: in cluster 1 (1 Gbit/s) and in cluster 2.
PAPER = {"evacuation": (16.34, 2.22), "overhead": (31.26, 2.47)}
PAPER_SAVES = (50, 90)

WIDTH, HEIGHT, LEFT, TOP, BELOW = 560, 170, 60, 30, 36      # of a panel's diagram
HEAD, LEAST_WIDTH = 88, 900
MIB = 1 << 20


def figure(program, ranks, moving, way, metric, moved, values):
    """A line of the output. MOVING: one, host, none; MOVED: how many ranks that is."""
    return {"bench": "npb", "case": program, "ranks": ranks, "moving": moving, "moved": moved,
            "impl": way, "metric": metric, "unit": UNITS.get(metric, "s"), **summary(values, 4)}


def seconds(one):
    return f"{one['median']:.2f} ({one['p10']:.2f}..{one['p90']:.2f})" if one else "-"


class Figures(Evaluation):
    """CONTEXT: of the measurement; LINES: as figure() makes them."""

    NAME = BENCH = "npb"
    KEYS = ("case", "ranks", "moving", "moved", "impl", "metric", "median", "p10", "p90", "n")
    CONTEXT = ("size", "rounds")

    def __init__(self, about, lines):
        super().__init__(about, lines)
        self._of = {(one["case"], one["ranks"], one["moving"], one["impl"], one["metric"]): one
                    for one in lines}
        self.ways = list(dict.fromkeys(one["impl"] for one in lines if one["impl"] != "none"))
        self.cases = sorted({(one["ranks"], one["case"]) for one in lines if one["moved"]})

    def of(self, program, ranks, moving, way, metric):
        return self._of.get((program, ranks, moving, way, metric))

    def with_others_of(self, before):
        """Also the lines of BEFORE about programs and numbers of ranks that these say nothing of."""
        ours = {(one["case"], one["ranks"]) for one in self.lines}
        return Figures(self.context, [*(one for one in before.lines
                                        if (one["case"], one["ranks"]) not in ours), *self.lines])

    def machine(self):
        about = self.context
        return f"{super().machine()}; {about['size']} problems, {about['rounds']} rounds"

    def image_of(self, program, ranks):
        """MiB of a rank that moves; nan if none has."""
        return next((one["median"] / MIB for way in self.ways
                     if (one := self.of(program, ranks, "one", way, "image"))), math.nan)

    def _row(self, metric, ranks, program, moving):
        cells = [self.of(program, ranks, moving, way, metric) for way in self.ways]
        moved = next((one["moved"] for one in cells if one), 0)
        if not moved:
            return []
        run = self.of(program, ranks, "none", "none", "time")
        return [f"{program:<4}{ranks:>3}{moved:>5}{self.image_of(program, ranks):>9.2f}"
                f"{run['median'] if run else math.nan:>8.1f}" +
                "".join(f"{seconds(one):>24}" for one in cells)]

    def missing(self):
        """Of the paper's numbers of processes."""
        measured = {ranks for ranks, _ in self.cases}
        return [(f"Cores et al., {ranks} processes", f"bench/run npb --ranks {ranks} --add")
                for ranks, square in ((16, 16), (32, 36)) if not measured & {ranks, square}]

    def table(self):
        """Medians, 10th and 90th percentile."""
        out = [self.machine()]
        for metric, (title, papers) in METRICS.items():
            out += ["", f"{title} (the paper's figures {papers[0]} and {papers[1]})",
                    f"{'':<4}{'of':>3}{'move':>5}{'MiB each':>9}{'run, s':>8}" +
                    "".join(f"{way:>24}" for way in self.ways)]
            for ranks, program in self.cases:
                for moving in MOVING:
                    out += self._row(metric, ranks, program, moving)
        return "\n".join([*out, *self.beside_the_paper()])

    def beside_the_paper(self):
        """FT with all ranks of a host, by way of memory against the disks."""
        of_ft = [ranks for ranks, program in self.cases if program == "ft"]
        if not of_ft:
            return []
        ranks = 16 if 16 in of_ft else max(of_ft)
        out = ["", f"FT, {ranks} ranks, those of a host move; the paper: FT, 16 processes, 8 move"]
        for metric in METRICS:
            memory = self.of("ft", ranks, "host", "memory", metric)
            here = []
            for way in self.ways:
                disk = self.of("ft", ranks, "host", way, metric)
                if way != "memory" and disk and memory and disk["median"] > 0:
                    saves = (1 - memory["median"] / disk["median"]) * 100
                    here.append(f"{way} {disk['median']:.2f} s, memory {memory['median']:.2f} s, "
                                f"saves {saves:.0f} %")
            slow, fast = PAPER.get(metric, (None, None))
            said = (f"disk {slow} s, memory {fast} s, saves {(1 - fast / slow) * 100:.0f} %" if slow else
                    f"saves {PAPER_SAVES[0]} % (1 Gbit/s), {PAPER_SAVES[1]} % (InfiniBand)")
            out.append(f"  {metric:<11} here: {'; '.join(here) or '-'}. The paper: {said}")
        return out

    def points(self):
        return [{"paper": "cores", "figure": METRICS[one["metric"]][1][0], "program": one["case"],
                 "ranks": one["ranks"], "moved": one["moved"], "way": one["impl"],
                 "metric": one["metric"], "seconds": one["median"], "p10": one["p10"],
                 "p90": one["p90"], "rounds": one["n"], "cpus": self.context["cpus"],
                 "size": self.context["size"]} for one in self.lines if one["metric"] in METRICS]

    def is_ours(self, point):
        return point.get("paper") == "cores"

    def draw(self, path):
        """A row per metric, a panel per number of ranks; as in the paper, checkpoint sizes as a line."""
        groups = {}     # 9 is beside 8, 36 beside 32
        for ranks, program in self.cases:
            groups.setdefault({9: 8, 36: 32}.get(ranks, ranks), []).append((program, ranks))
        across, down = LEFT + WIDTH + 50, TOP + HEIGHT + BELOW
        body = _legend(self.ways)
        for row, metric in enumerate(METRICS):
            for column, cases in enumerate(groups.values()):
                body += _Panel(self, metric, sorted(cases), column * across,
                               HEAD + row * down).draw()
        write_svg(path, max(LEAST_WIDTH, len(groups) * across), HEAD + len(METRICS) * down,
                  "Cores et al., figures 4 to 9, with programs in the manner of NPB", LEFT,
                  [*body, text(LEFT, 84, self.machine(), "start", " fill='#666'")])


class _Panel:
    """A metric: bars for each program, one rank and a host's, by each way."""

    def __init__(self, figures, metric, cases, left, top):
        self.figures, self.metric, self.cases = figures, metric, cases
        self.left, self.top = left + LEFT, top + TOP
        self.bars = [(program, ranks, [(moving, way, one) for moving in MOVING
                                       for way in figures.ways
                                       if (one := figures.of(program, ranks, moving, way, metric))])
                     for program, ranks in cases]
        most = max((one["p90"] for _, _, bars in self.bars for _, _, one in bars), default=1)
        self.up = Axis([0, round_up(max(most, 1e-3))], self.top + HEIGHT, self.top, False)
        sizes = [figures.image_of(*case) for case in cases]
        self.sizes = [0 if math.isnan(size) else size for size in sizes]
        self.size_axis = Axis([0, round_up(max([*self.sizes, 0.1]))], self.top + HEIGHT, self.top,
                              False)

    def draw(self):
        title, right = METRICS[self.metric][0], self.left + WIDTH
        numbers = " and ".join(str(ranks) for ranks in sorted({ranks for _, ranks in self.cases}))
        out = [text(self.left + WIDTH / 2, self.top - 8, f"{title}; {numbers} ranks",
                    more=" font-weight='bold'")]
        for value, size in zip(self.up.ticks(), self.size_axis.ticks()):
            y = self.up.at(value)
            out += [f"<line x1='{self.left}' x2='{right}' y1='{y:.1f}' y2='{y:.1f}' stroke='#ddd'/>",
                    text(self.left - 6, y + 4, short(round(value, 4)), "end"),
                    text(right + 6, y + 4, short(round(size, 4)), "start", " fill='#009e73'")]
        wide = WIDTH / max(1, len(self.bars))
        for place, (program, _, bars) in enumerate(self.bars):
            begin = self.left + place * wide
            out.append(text(begin + wide / 2, self.top + HEIGHT + 15, program.upper()))
            thick = wide * 0.84 / max(1, len(bars))
            for number, (moving, way, one) in enumerate(bars):
                out += self._bar(begin + wide * 0.08 + number * thick, thick, moving, way, one)
        points = " ".join(f"{self.left + (place + 0.5) * wide:.1f},{self.size_axis.at(size):.1f}"
                          for place, size in enumerate(self.sizes))
        out.append(f"<polyline points='{points}' fill='none' stroke='{GREEN}' stroke-width='1.5'/>")
        out.append(f"<rect x='{self.left}' y='{self.top}' width='{WIDTH}' height='{HEIGHT}' "
                   "fill='none' stroke='#444'/>")
        return out

    def _bar(self, x, thick, moving, way, one):
        y, middle = self.up.at(one["median"]), x + thick / 2
        return [f"<rect x='{x:.1f}' y='{y:.1f}' width='{thick * 0.9:.1f}' "
                f"height='{self.up.start - y:.1f}' fill='{COLOURS.get(way, '#999999')}' "
                f"fill-opacity='{0.45 if moving == 'one' else 0.95}'/>",
                f"<line x1='{middle:.1f}' x2='{middle:.1f}' y1='{self.up.at(one['p10']):.1f}' "
                f"y2='{self.up.at(one['p90']):.1f}' stroke='#222'/>"]


def _legend(ways):
    out, x = [], LEFT
    for moving in MOVING:
        for way in ways:
            out += [f"<rect x='{x}' y='40' width='14' height='10' "
                    f"fill='{COLOURS.get(way, '#999999')}' "
                    f"fill-opacity='{0.45 if moving == 'one' else 0.95}'/>",
                    text(x + 20, 49, ("one rank, " if moving == "one" else "a host's, ") + way, "start")]
            x += 130
    return [*out, text(LEFT, 66, "bars: medians; upright lines: 10th to 90th percentile; green line, "
                       "right axis: MiB of a rank that moves", "start", " fill='#666'")]
