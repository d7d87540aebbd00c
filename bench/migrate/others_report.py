# SPDX-License-Identifier: BSD-3-Clause
"""What bench/run others has measured of ranks that run on while another one moves."""
import math

from bench.drawing import BLUE, GREEN, RED, text, write_svg
from bench.evaluation import Evaluation
from bench.panel import CELL, GREY, LEFT, Panel, blank, legend
from bench.spread import summary, three

HOW = ("none", "wait", "run")
METRICS = {"longest": "longest step of a rank that stays, ms",
           "stall": "held at the safe point, ms", "response": "until the rank is there, ms"}
COLOURS = {"none": GREEN, "wait": RED, "run": BLUE}
NAMES = {"none": "nothing moves", "wait": "the others wait", "run": "the others run on"}
HEAD = 78
PAPER = "singh-graham-others"   # not that of the figures, which make papers makes anew


def figure(how, mib, metric, values):
    return {"bench": "others", "case": "cliques", "impl": how, "bytes": mib << 20, "metric": metric,
            "unit": "ms", **summary(values, 3)}


class Others(Evaluation):
    NAME = BENCH = "others"
    KEYS = ("impl", "bytes", "metric", "median", "p10", "p90", "n")
    CONTEXT = ("ranks", "clique", "link")

    def series(self, how, metric):
        """[(MiB, line)], the smaller state first."""
        return sorted(((one["bytes"] >> 20, one) for one in self.lines
                       if one["impl"] == how and one["metric"] == metric), key=lambda point: point[0])

    def missing(self):
        return [(f"{NAMES[how]} ({metric})", "bench/run others") for how in HOW for metric in METRICS
                if not self.series(how, metric) and (how != "none" or metric == "longest")]

    def machine(self):
        about = self.context
        return (f"{super().machine()}; {about['ranks']} ranks in cliques of {about['clique']}, "
                f"links {about['link']}")

    def table(self):
        sizes = sorted({one["bytes"] >> 20 for one in self.lines})
        found = {(how, mib, metric): line for how in HOW for metric in METRICS
                 for mib, line in self.series(how, metric)}
        return "\n".join([self.machine(), "medians, ms" + "".join(f"{name:>12}" for name in METRICS)] + [
            f"{mib:>4} MiB {how:<5}" + "".join(
                f"{found[how, mib, name]['median']:>12.1f}" if (how, mib, name) in found else f"{'-':>12}"
                for name in METRICS) for mib in sizes for how in HOW])

    def draw(self, path):
        body = legend([(NAMES[how], COLOURS[how]) for how in HOW])
        for place, (metric, caption) in enumerate(METRICS.items()):
            curves = {how: points for how in HOW if (points := self.series(how, metric))}
            body += (self._panel(place, caption, curves) if curves else
                     blank(place * CELL[0], HEAD, caption, "not measured yet:", "bench/run others"))
        write_svg(path, len(METRICS) * CELL[0], HEAD + CELL[1],
                  "Singh & Graham: the others run on while one rank moves", LEFT,
                  [*body, text(LEFT, 66, self.machine() + "; medians, 10th to 90th percentile", "start",
                               GREY)])

    @staticmethod
    def _panel(place, caption, curves):
        panel = Panel(place * CELL[0], HEAD, caption,
                      max(line["p90"] for points in curves.values() for _, line in points))
        sizes = sorted({mib for points in curves.values() for mib, _ in points})
        axis = panel.across([math.log2(mib) for mib in sizes], "state of the rank that moves, MiB",
                            ticks=[(math.log2(mib), str(mib)) for mib in sizes], inset=20)
        for how, points in curves.items():
            panel.curve(axis, [(math.log2(mib), line["median"]) for mib, line in points], COLOURS[how])
            for mib, line in points:
                panel.spread(axis.at(math.log2(mib)), *three(line), COLOURS[how])
        return panel.draw()

    def points(self):
        return [{"paper": PAPER, "case": "others", "impl": one["impl"], "mib": one["bytes"] >> 20,
                 "metric": one["metric"], "ms": one["median"], "p10": one["p10"], "p90": one["p90"],
                 "rounds": one["n"], "ranks": self.context["ranks"], "link": self.context["link"],
                 "cpus": self.context["cpus"]} for one in self.lines]

    def is_ours(self, point):
        return point.get("paper") == PAPER
