# SPDX-License-Identifier: BSD-3-Clause
"""What bench/run npb has measured: its lines of JSON, tables, and a picture like the paper's."""
import math
import re

from bench.drawing import BLUE, GREEN, LIGHT_BLUE, ORANGE, PINK, RED, Axis, round_up, short, text, write_svg
from bench.evaluation import Evaluation
from bench.spread import summary

PERCENT = "overhead_percent"
# Metrics that the paper has figures of: title, and which (cluster N1, cluster N2)
METRICS = {"response": ("Response time, s", (4, 5)), "evacuation": ("Evacuation time, s", (6, 7)),
           "overhead": ("Overhead, s", (8, 9))}
IN_PERCENT = {PERCENT: ("Overhead, % of the run without a move", (8, 9))}
# The paper's overhead is in per cent; seconds are in the table only.
DRAWN = {**{metric: METRICS[metric] for metric in ("response", "evacuation")}, **IN_PERCENT}
UNITS = {"image": "B", PERCENT: "%"}      # else s
MOVING = {"one": "one rank", "host": "a host's", "some": "several"}
COLOURS = {"memory": BLUE, "image": LIGHT_BLUE, "disk": RED, "disk-120": ORANGE}
# Of the paper's text: FT, 16 processes, 8 of them move, in cluster N2; seconds by disk and by memory.
# Response is told as what memory saves: in cluster N1 and in cluster N2. All else is in its figures only.
PAPER = {"evacuation": (16.34, 2.22), "overhead": (31.26, 2.47)}
PAPER_SAVES = (50, 90)
PAPER_RANKS, PAPER_MOVED = 16, 8
PAPER_SLOWER_S = 0.5
PAPER_SIZES = "1.04 to 192.12 MB"
CLUSTERS = ("N1, 1 Gbit/s Ethernet", "N2, InfiniBand")

WIDTH, HEIGHT, LEFT, TOP, BELOW = 560, 170, 60, 30, 46      # of a panel's diagram
HEAD, LEAST_WIDTH = 106, 980
MIB = 1 << 20


def figure(program, ranks, moving, way, metric, moved, values):
    """A line of the output. MOVING: one, host (all of its ranks), some (of a host's), none; MOVED: how
    many ranks that is."""
    return {"bench": "npb", "case": program, "ranks": ranks, "moving": moving, "moved": moved,
            "impl": way, "metric": metric, "unit": UNITS.get(metric, "s"), **summary(values, 4)}


def cluster_of(link):
    """Which of the paper's clusters has a network like LINK: 0 (N1) for up to 1 Gbit/s, 1 (N2) for faster
    ones; None if nobody knows. Of unequal links the slowest counts."""
    found = []
    for one in link.split(",") if isinstance(link, str) else [""]:
        rate = re.fullmatch(r"([1-9][0-9]{0,5})([kmg])bit", one)
        if one in ("veth", "bare"):
            found.append(1)     # as fast as memory is copied
        elif rate:
            found.append(int(int(rate[1]) * {"k": 1, "m": 1000, "g": 1000000}[rate[2]] > 1000000))
        else:
            return None
    return min(found)


def spread(one):
    return f"{one['median']:.2f} ({one['p10']:.2f}..{one['p90']:.2f})" if one else "-"


def said(metric):
    """What the paper's text says of FT."""
    if metric not in PAPER:
        return (f"memory saves {PAPER_SAVES[0]} % (1 Gbit/s, figure {METRICS[metric][1][0]}), "
                f"{PAPER_SAVES[1]} % (InfiniBand, figure {METRICS[metric][1][1]})")
    slow, fast = PAPER[metric]
    return (f"disk {slow} s, memory {fast} s, saves {(1 - fast / slow) * 100:.0f} % (InfiniBand, figure "
            f"{METRICS[metric][1][1]})")


class Figures(Evaluation):
    """CONTEXT: of the measurement; LINES: as figure() makes them."""

    NAME = BENCH = "npb"
    KEYS = ("case", "ranks", "moving", "moved", "impl", "metric", "median", "p10", "p90", "n")
    CONTEXT = ("size", "rounds")    # and the link, which old files do not tell
    SAME = ("size", "link")

    def __init__(self, about, lines):
        super().__init__(about, lines)
        self._of = {(one["case"], one["ranks"], one["moving"], one["impl"], one["metric"]): one
                    for one in lines}
        self.ways = list(dict.fromkeys(one["impl"] for one in lines if one["impl"] != "none"))
        self.cases = sorted({(one["ranks"], one["case"]) for one in lines if one["moved"]})
        self.link = about.get("link")
        self.cluster = cluster_of(self.link)

    def of(self, program, ranks, moving, way, metric):
        found = self._of.get((program, ranks, moving, way, metric))
        return self._percent(program, ranks, moving, way) if not found and metric == PERCENT else found

    def _percent(self, program, ranks, moving, way):
        """Of files that have seconds only: of the medians, not of each round by itself."""
        over, run = self.of(program, ranks, moving, way, "overhead"), self.run_of(program, ranks)
        if not over or not run > 0:
            return None
        return {**over, "metric": PERCENT, "unit": UNITS[PERCENT],
                **{key: over[key] / run * 100 for key in ("median", "p10", "p90")}}

    def run_of(self, program, ranks):
        """Seconds of the run in which nothing moves; nan if there is none."""
        run = self.of(program, ranks, "none", "none", "time")
        return run["median"] if run else math.nan

    def figure_of(self, metric):
        """The paper's, of the cluster with a network like this one; None if nobody knows."""
        numbers = {**METRICS, **IN_PERCENT}[metric][1]
        return None if self.cluster is None else numbers[self.cluster]

    def papers_figure(self, metric):
        numbers, one = {**METRICS, **IN_PERCENT}[metric][1], self.figure_of(metric)
        return f"the paper's figure {one}" if one else f"the paper's figures {numbers[0]} and {numbers[1]}"

    def with_others_of(self, before):
        """Also the lines of BEFORE about programs and numbers of ranks that these say nothing of."""
        ours = {(one["case"], one["ranks"]) for one in self.lines}
        return Figures(self.context, [*(one for one in before.lines
                                        if (one["case"], one["ranks"]) not in ours), *self.lines])

    def machine(self):
        about = self.context
        like = "" if self.cluster is None else f" (beside cluster {CLUSTERS[self.cluster]})"
        return (f"{super().machine()}; {about['size']} problems, {about['rounds']} rounds, links "
                f"{self.link or 'unknown'}{like}")

    def image_of(self, program, ranks):
        """MiB of a rank that moves; nan if none has."""
        return next((one["median"] / MIB for way in self.ways
                     if (one := self.of(program, ranks, "one", way, "image"))), math.nan)

    def _row(self, metric, ranks, program, moving):
        cells = [self.of(program, ranks, moving, way, metric) for way in self.ways]
        moved = next((one["moved"] for one in cells if one), 0)
        if not moved:
            return []
        return [f"{program:<4}{ranks:>3}{moved:>5}{self.image_of(program, ranks):>9.2f}"
                f"{self.run_of(program, ranks):>8.1f}" +
                "".join(f"{spread(one):>24}" for one in cells)]

    def missing(self):
        """Of the paper's numbers of processes, of which those of a node move."""
        measured = {one["ranks"] for one in self.lines if one["moved"] == PAPER_MOVED}
        link = "" if self.link in (None, "veth") else f" --link {self.link}"
        return [(f"Cores et al., {PAPER_MOVED} of {ranks} processes move",
                 f"bench/run npb --ranks {ranks} --moved {PAPER_MOVED}{link} --add")
                for ranks, square in ((16, 16), (32, 36)) if not measured & {ranks, square}]

    def table(self):
        """Medians, 10th and 90th percentile."""
        out = [self.machine()]
        for metric, (title, _) in {**METRICS, **IN_PERCENT}.items():
            out += ["", f"{title} ({self.papers_figure(metric)})",
                    f"{'':<4}{'of':>3}{'move':>5}{'MiB each':>9}{'run, s':>8}" +
                    "".join(f"{way:>24}" for way in self.ways)]
            for ranks, program in self.cases:
                for moving in MOVING:
                    out += self._row(metric, ranks, program, moving)
        return "\n".join([*out, *self.beside_the_paper()])

    def _ft(self):
        """(ranks, moving, moved) of FT as the paper tells of it, or else with the most ranks; None if
        there is nothing of FT."""
        of_ft = {(one["ranks"], one["moving"], one["moved"]) for one in self.lines
                 if one["case"] == "ft" and one["moved"]}
        several = {one for one in of_ft if one[1] != "one"} or of_ft
        return max(several, key=lambda one: (one[0] == PAPER_RANKS, one[2] == PAPER_MOVED, one),
                   default=None)

    def beside_the_paper(self):
        """FT with ranks of a host, by way of memory against the disks."""
        found = self._ft()
        if not found:
            return []
        ranks, moving, moved = found
        out = ["", f"FT, {ranks} ranks, {moved} move; the paper: FT, {PAPER_RANKS} processes, "
                   f"{PAPER_MOVED} move"]
        for metric in METRICS:
            memory = self.of("ft", ranks, moving, "memory", metric)
            here = []
            for way in self.ways:
                disk = self.of("ft", ranks, moving, way, metric)
                if way != "memory" and disk and memory and disk["median"] > 0:
                    saves = (1 - memory["median"] / disk["median"]) * 100
                    here.append(f"{way} {disk['median']:.2f} s, memory {memory['median']:.2f} s, "
                                f"saves {saves:.0f} %")
            out.append(f"  {metric:<11} here: {'; '.join(here) or '-'}. The paper: {said(metric)}")
        return out

    def papers_mark(self, metric, program, ranks, way, moved):
        """What the paper's text has for this bar, seconds; None: nothing. Its disk is NFS over Gigabit
        Ethernet, which the limited disk is for."""
        if (metric not in PAPER or self.cluster != 1 or
                (program, ranks, moved) != ("ft", PAPER_RANKS, PAPER_MOVED)):
            return None
        disk = "disk-120" if "disk-120" in self.ways else "disk"
        return {disk: PAPER[metric][0], "memory": PAPER[metric][1]}.get(way)

    def points(self):
        return [self._point(one) for one in self.lines if one["metric"] in METRICS]

    def _point(self, one):
        more = {}
        if one["metric"] == "overhead":
            percent = self.of(one["case"], one["ranks"], one["moving"], one["impl"], PERCENT)
            run = self.run_of(one["case"], one["ranks"])
            more = {"percent": percent and percent["median"], "run_seconds": None if math.isnan(run) else run}
        return {"paper": "cores", "figure": self.figure_of(one["metric"]), "program": one["case"],
                "ranks": one["ranks"], "moved": one["moved"], "way": one["impl"],
                "metric": one["metric"], "seconds": one["median"], "p10": one["p10"],
                "p90": one["p90"], **more, "rounds": one["n"], "cpus": self.context["cpus"],
                "size": self.context["size"], "link": self.link}

    def is_ours(self, point):
        """Those of another link are another figure's, and of another file."""
        return point.get("paper") == "cores" and point.get("link") in (None, self.link)

    def draw(self, path):
        """A row per metric, a panel per number of ranks; as in the paper, checkpoint sizes as a line, and
        beside the overhead the time of the run."""
        groups = {}     # 9 is beside 8, 36 beside 32
        for ranks, program in self.cases:
            groups.setdefault({9: 8, 36: 32}.get(ranks, ranks), []).append((program, ranks))
        across, down = LEFT + WIDTH + 50, TOP + HEIGHT + BELOW
        kinds = [moving for moving in MOVING if any(one["moving"] == moving for one in self.lines)]
        body, wide = _legend(kinds, self.ways)
        for row, metric in enumerate(DRAWN):
            marked = False
            for column, cases in enumerate(groups.values()):
                panel = _Panel(self, metric, sorted(cases), column * across, HEAD + row * down)
                marked = marked or panel.is_marked()
                body += panel.draw()
            body.append(text(LEFT, HEAD + row * down + TOP + HEIGHT + 32, self._caption(metric, marked),
                             "start", " fill='#666'"))
        write_svg(path, max(LEAST_WIDTH, len(groups) * across, wide), HEAD + len(DRAWN) * down,
                  "Cores et al., figures 4 to 9, with programs in the manner of NPB", LEFT,
                  [*body, text(LEFT, 84, self.machine(), "start", " fill='#666'"),
                   text(LEFT, 102, "Numbers of the paper are those of its text, which are few: FT, "
                        f"{PAPER_RANKS} processes, {PAPER_MOVED} of them move; checkpoints of "
                        f"{PAPER_SIZES} a process", "start", " fill='#666'")])

    def _caption(self, metric, marked):
        """Below the panels of METRIC: what the paper has there."""
        figure_is = self.papers_figure(metric)
        words = said("overhead" if metric == PERCENT else metric)
        more = "; diamonds" if marked else ""
        if metric == PERCENT:
            more += "; no per cent"
        elif metric == "evacuation":
            more += f". Smallest states: memory slower by less than {PAPER_SLOWER_S} s"
        return f"{figure_is[0].upper()}{figure_is[1:]}. FT in its text: {words}{more}"


class _Panel:
    """A metric: bars for each program, one rank and a host's, by each way."""

    def __init__(self, figures, metric, cases, left, top):
        self.figures, self.metric, self.cases = figures, metric, cases
        self.left, self.top = left + LEFT, top + TOP
        self.bars = [(program, ranks, [(moving, way, one) for moving in MOVING
                                       for way in figures.ways
                                       if (one := figures.of(program, ranks, moving, way, metric))])
                     for program, ranks in cases]
        self.marks = {(program, ranks, moving, way): mark for program, ranks, bars in self.bars
                      for moving, way, one in bars
                      if (mark := figures.papers_mark(metric, program, ranks, way, one["moved"]))}
        most = max([1e-3, *(one["p90"] for _, _, bars in self.bars for _, _, one in bars),
                    *self.marks.values()])
        self.up = Axis([0, round_up(most)], self.top + HEIGHT, self.top, False)
        # The line, of the axis to the right.
        self.colour = PINK if metric == PERCENT else GREEN
        self.along = [(figures.run_of if metric == PERCENT else figures.image_of)(*case) for case in cases]
        self.right = Axis([0, round_up(max([0.1, *(value for value in self.along
                                                   if not math.isnan(value))]))],
                          self.top + HEIGHT, self.top, False)

    def is_marked(self):
        return bool(self.marks)

    def draw(self):
        title, right = DRAWN[self.metric][0], self.left + WIDTH
        numbers = " and ".join(str(ranks) for ranks in sorted({ranks for _, ranks in self.cases}))
        moved = sorted({one["moved"] for _, _, bars in self.bars for _, _, one in bars})
        what = (f", {' or '.join(map(str, moved))} move" if moved else "")
        out = [text(self.left + WIDTH / 2, self.top - 8, f"{title}; {numbers} ranks{what}",
                    more=" font-weight='bold'")]
        for value, beside in zip(self.up.ticks(), self.right.ticks()):
            y = self.up.at(value)
            out += [f"<line x1='{self.left}' x2='{right}' y1='{y:.1f}' y2='{y:.1f}' stroke='#ddd'/>",
                    text(self.left - 6, y + 4, short(round(value, 4)), "end"),
                    text(right + 6, y + 4, short(round(beside, 4)), "start", f" fill='{self.colour}'")]
        wide = WIDTH / max(1, len(self.bars))
        for place, (program, ranks, bars) in enumerate(self.bars):
            begin = self.left + place * wide
            out.append(text(begin + wide / 2, self.top + HEIGHT + 15, program.upper()))
            thick = wide * 0.84 / max(1, len(bars))
            for number, (moving, way, one) in enumerate(bars):
                x = begin + wide * 0.08 + number * thick
                out += self._bar(x, thick, moving, way, one)
                out += self._mark(x + thick * 0.45, self.marks.get((program, ranks, moving, way)))
        out += self._line(wide)
        out.append(f"<rect x='{self.left}' y='{self.top}' width='{WIDTH}' height='{HEIGHT}' "
                   "fill='none' stroke='#444'/>")
        return out

    def _line(self, wide):
        """Programs of which nothing is known are left out of it; a dot shows one that is alone."""
        points = [(self.left + (place + 0.5) * wide, self.right.at(value))
                  for place, value in enumerate(self.along) if not math.isnan(value)]
        joined = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        return [f"<polyline points='{joined}' fill='none' stroke='{self.colour}' stroke-width='1.5'/>",
                *(f"<circle cx='{x:.1f}' cy='{y:.1f}' r='2.2' fill='{self.colour}'/>" for x, y in points)]

    def _mark(self, x, value):
        """The paper's number, as a diamond."""
        if value is None:
            return []
        y = self.up.at(value)
        return [f"<path class='paper' d='M{x:.1f} {y - 6:.1f}l5 6l-5 6l-5 -6z' fill='white' "
                "stroke='black' stroke-width='1.5'/>"]

    def _bar(self, x, thick, moving, way, one):
        y, middle = self.up.at(one["median"]), x + thick * 0.45
        return [f"<rect x='{x:.1f}' y='{y:.1f}' width='{thick * 0.9:.1f}' "
                f"height='{self.up.start - y:.1f}' fill='{COLOURS.get(way, '#999999')}' "
                f"fill-opacity='{0.45 if moving == 'one' else 0.95}'/>",
                f"<line x1='{middle:.1f}' x2='{middle:.1f}' y1='{self.up.at(one['p10']):.1f}' "
                f"y2='{self.up.at(one['p90']):.1f}' stroke='#222'/>"]


def _legend(kinds, ways):
    """(elements, how wide they are) for what moves, of KINDS, by each way."""
    out, x = [], LEFT
    for moving in kinds:
        for way in ways:
            out += [f"<rect x='{x}' y='40' width='14' height='10' "
                    f"fill='{COLOURS.get(way, '#999999')}' "
                    f"fill-opacity='{0.45 if moving == 'one' else 0.95}'/>",
                    text(x + 20, 49, f"{MOVING[moving]}, {way}", "start")]
            x += 130
    out.append(text(LEFT, 66, "bars: medians; upright lines: 10th to 90th percentile; lines, right axis: MiB "
                    "of a rank that moves (green), seconds of a run without a move (pink)", "start",
                    " fill='#666'"))
    return out, x
