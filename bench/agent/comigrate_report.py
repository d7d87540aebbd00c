# SPDX-License-Identifier: BSD-3-Clause
"""What bench/run demo-comigrate has measured: tables, and figures 5 to 9 of MPI/IOS."""
from bench.drawing import BLUE, GREEN, ORANGE, PINK, RED, text, write_svg
from bench.evaluation import Evaluation
from bench.panel import CELL, GREY, LEFT, Panel, blank, legend
from bench.spread import summary, three

IMPLS = ["off", "observe", "single", "matrix", "zc"]
COLOURS = dict(zip(IMPLS, (RED, PINK, ORANGE, GREEN, BLUE)))
UNITS = {"time": "s", "throughput": "1/s", "bytes_across": "bytes", "cost": "1"}
# Figures of the paper: without migration, and with it.
FIGURES = {"idle": (5, 5), "join": (6, 7), "shrink": (8, 8), "replace": (9, 9)}
# The paper's text: seconds without and with, or what is gained of time, or of throughput.
JOIN_SAID = ("203.97 s", "115.27 s (-43 %)")
SAID = {"idle": "the paper: \"negligible\"", "join": f"the paper: {', '.join(JOIN_SAID)}",
        "shrink": "the paper: -33 % time", "replace": "the paper: +79 % throughput"}
CASES = {"idle": "figure 5: nothing to do", "join": "a node joins an overloaded one",
         "shrink": "figure 8: a node is overloaded", "replace": "figure 9: a fast node joins",
         "phases": "phases: partners have changed", "turns": "turns: partners alternate"}
OF_NO_PAPER = ("phases", "turns")
COLUMNS, HEAD = 3, 78


def figure(case, impl, metric, values):
    return {"bench": "agents", "case": case, "impl": impl, "bytes": 0, "metric": metric,
            "unit": UNITS[metric], **summary(values, 4)}


def series(case, impl, points):
    """POINTS: (seconds, iterations done, iterations per second), of the first round."""
    return {"bench": "agents", "case": case, "impl": impl, "metric": "series", "unit": "1/s",
            "points": [[round(value, 3) for value in point] for point in points]}


def change(value, base):
    return f"{(value / base - 1) * 100:+.0f} %"


class Comigration(Evaluation):
    NAME, BENCH = "demo-comigrate", "agents"

    @classmethod
    def keys_of(cls, line):
        more = {"series": ["points"], "cost": ["unit", "median", "p10", "p90", "n", "low", "high"]}
        return [*cls.KEYS, *more.get(line.get("metric"), ["unit", "median", "p10", "p90", "n"])]

    def of(self, case, impl, metric):
        return next((one for one in self.lines if (one["case"], one["impl"], one["metric"]) ==
                     (case, impl, metric)), None)

    def median(self, case, impl, metric):
        one = self.of(case, impl, metric)
        return one["median"] if one else None

    def ways(self, case, metric):
        return [impl for impl in IMPLS if self.of(case, impl, metric)]

    def with_others_of(self, before):
        """Also the lines of BEFORE about cases that these say nothing of."""
        ours = {one["case"] for one in self.lines}
        return Comigration(self.context, [*(one for one in before.lines if one["case"] not in ours),
                                          *self.lines])

    def missing(self):
        out = []
        for case, papers in FIGURES.items():
            ways = self.ways(case, "time" if case == "idle" else "series")
            for number, measured in ((papers[0], "off" in ways), (papers[1], set(ways) - {"off"})):
                if not measured and (not out or out[-1][0] != f"MPI/IOS, figure {number}"):
                    out.append((f"MPI/IOS, figure {number}", self._command(case)))
        return out

    @staticmethod
    def _command(case):
        return f"bench/run demo-comigrate --cases {case} --add"

    def table(self):
        rows = [self.machine(), f"{'':<18}{'time':>9}{'throughput':>12}{'across':>12}   "
                "medians; against off"]
        for case in CASES:
            for impl in self.ways(case, "time"):
                rows.append(self._row(case, impl))
        return "\n".join([*rows, *(f"{case}: {SAID[case]}" for case in FIGURES
                                   if self.ways(case, "time"))])

    def _row(self, case, impl):
        took, rate, across = (self.median(case, impl, metric)
                              for metric in ("time", "throughput", "bytes_across"))
        off, off_rate = (self.median(case, "off", metric) for metric in ("time", "throughput"))
        row = f"{case:<9}{impl:<9}{took:>7.1f} s{rate:>10.1f}/s"
        row += f"{across / 1024:>8.1f} KiB" if across is not None else " " * 12
        if cost := self.of(case, impl, "cost"):
            return row + (f"   {cost['median'] * 100:+.2f} % time, in truth {cost['low'] * 100:+.2f} to "
                          f"{cost['high'] * 100:+.2f} (95 %, {cost['n']} pairs)")
        if off and impl != "off":
            row += f"   {change(took, off)} time, {change(rate, off_rate)} throughput"
        return row

    def draw(self, path):
        panels = [self._bars, self._iterations(6, ("off", "observe")),
                  self._iterations(7, ("single", "matrix", "zc")),
                  *(self._throughput(case) for case in ("shrink", "replace", *OF_NO_PAPER)
                    if case not in OF_NO_PAPER or self.ways(case, "series"))]
        body = legend([(impl, COLOURS[impl]) for impl in IMPLS
                       if any(one["impl"] == impl for one in self.lines)])
        for place, panel in enumerate(panels):
            body += panel(place % COLUMNS * CELL[0], HEAD + place // COLUMNS * CELL[1])
        write_svg(path, COLUMNS * CELL[0], HEAD + -(-len(panels) // COLUMNS) * CELL[1],
                  "MPI/IOS, figures 5 to 9, with heat2d", LEFT,
                  [*body, text(LEFT, 66, self.machine() + "; curves: the first round, numbers: medians",
                               "start", GREY)])

    def beside(self, case):
        """Medians without and with migration, if both are there, and what the paper says."""
        metric = "throughput" if case == "replace" else "time"
        off, with_it = (self.median(case, impl, metric) for impl in ("off", "zc"))
        said = [SAID[case]] if case in SAID else []
        unit = "/s" if metric == "throughput" else " s"
        if off and with_it:
            said.insert(0, f"here: {off:.4g}{unit}, zc {with_it:.4g}{unit} ({change(with_it, off)})")
        return "; ".join(said)

    def beside_join(self, number):
        """Figure 6 has the run without migration, and figure 7 the one with it."""
        impl, said = ("off", JOIN_SAID[0]) if number == 6 else ("zc", JOIN_SAID[1])
        took, off = (self.median("join", one, "time") for one in (impl, "off"))
        here = [f"here: {impl} {took:.4g} s" + (f" ({change(took, off)})" if off and impl != "off" else "")
                ] if took else []
        return "; ".join([*here, f"the paper: {said}"])

    def _blank(self, left, top, case, caption):
        return blank(left, top, caption, "not measured yet:", self._command(case))

    def _bars(self, left, top):
        """Figure 5; of the paper's numbers of nodes there is one, two."""
        ways = self.ways("idle", "time")
        if not ways:
            return self._blank(left, top, "idle", CASES["idle"])
        lines = {impl: self.of("idle", impl, "time") for impl in ways}
        cost = self.of("idle", "zc", "cost")
        panel = Panel(left, top, f"{CASES['idle']}, s for so many iterations",
                      max(one["p90"] for one in lines.values()),
                      (f"here: {cost['median'] * 100:+.1f} % time; " if cost else "") + SAID["idle"])
        panel.bars([(impl, COLOURS[impl], three(one)) for impl, one in lines.items()])
        return panel.draw()

    def _curves(self, case, impls, value):
        """{impl: [(x, y)]}, made by VALUE of what a series has."""
        return {impl: [value(*point) for point in one["points"]] for impl in impls
                if (one := self.of(case, impl, "series")) and one["points"]}

    def _iterations(self, number, impls):
        """Figures 6 and 7, of one scale: how long an iteration takes, by its number."""
        def panel(left, top):
            every = self._curves("join", IMPLS, lambda _, done, rate: (done, 1000 / max(rate, 1e-3)))
            caption = f"figure {number}: {CASES['join']}, ms of an iteration"
            mine = {impl: every[impl] for impl in impls if impl in every}
            if not mine:
                return self._blank(left, top, "join", caption)
            return self._lines(left, top, caption, self.beside_join(number), mine, every, "iterations")
        return panel

    def _throughput(self, case):
        def panel(left, top):
            curves = self._curves(case, IMPLS, lambda seconds, _, rate: (seconds, rate))
            caption = f"{CASES[case]}, iterations/s"
            if not curves:
                return self._blank(left, top, case, caption)
            return self._lines(left, top, caption, self.beside(case), curves, curves, "seconds")
        return panel

    @staticmethod
    def _lines(left, top, caption, note, curves, scaled_to, below):
        """CURVES, with the axes that SCALED_TO needs."""
        points = [point for each in scaled_to.values() for point in each]
        panel = Panel(left, top, caption, max(y for _, y in points), note)
        axis = panel.across([0, max(x for x, _ in points)], below)
        for impl, each in curves.items():
            panel.curve(axis, each, COLOURS[impl])
        return panel.draw()

    def points(self):
        """A line per figure, and one per point of the curves."""
        out = []
        for one in self.lines:
            if one["case"] not in FIGURES:
                continue
            about = {"paper": "mpi-ios", "figure": FIGURES[one["case"]][one["impl"] != "off"],
                     "case": one["case"], "impl": one["impl"]}
            if one["metric"] == "series":
                out += [{**about, "metric": "throughput_over_time", "seconds": seconds,
                         "iterations": done, "per_second": rate} for seconds, done, rate in one["points"]]
            else:
                out.append({**about, "metric": one["metric"], "unit": one["unit"],
                            "median": one["median"], "p10": one["p10"], "p90": one["p90"],
                            "rounds": one["n"], "cpus": self.context["cpus"]})
        return out

    def is_ours(self, point):
        return point.get("paper") == "mpi-ios" and point.get("case") in FIGURES
