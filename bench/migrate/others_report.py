# SPDX-License-Identifier: BSD-3-Clause
"""What bench/run others has measured of ranks that run on while others move, one or a whole clique."""
import math

from bench.drawing import BLUE, GREEN, RED, text, write_svg
from bench.evaluation import Evaluation
from bench.panel import CELL, GREY, LEFT, Panel, blank, legend
from bench.spread import summary, three
from testbed.outcome import Fail

HOW = ("none", "wait", "run")
METRICS = {"longest": "longest step of a rank that stays, ms",
           "stall": "held at the safe point, ms", "response": "until the rank is there, ms"}
COLOURS = {"none": GREEN, "wait": RED, "run": BLUE}
NAMES = {"none": "nothing moves", "wait": "the others wait", "run": "the others run on"}
# What moves: in the table, in a picture's captions, and whose state is so large.
MOVED = {"rank": ("one rank", "the rank that moves"),
         "clique": ("all ranks of a clique", "the last rank of the clique")}
HEAD = 78
PAPER = "singh-graham-others"   # not that of the figures, which make papers makes anew


def figure(moved, how, mib, metric, values):
    """A line of the output. MOVED: rank, clique."""
    return {"bench": "others", "case": "cliques", "moved": moved, "impl": how, "bytes": mib << 20,
            "metric": metric, "unit": "ms", **summary(values, 3)}


def moved_of(line):
    """Lines of before a clique could be asked for do not say it."""
    return line.get("moved", "rank")


class Others(Evaluation):
    NAME = BENCH = "others"
    KEYS = ("impl", "bytes", "metric", "median", "p10", "p90", "n")
    CONTEXT = SAME = ("ranks", "clique", "link")

    @classmethod
    def read(cls, path):
        found = super().read(path)
        for line in found.lines:
            if moved_of(line) not in tuple(MOVED):  # whatever JSON has
                raise Fail(f"{path}: '{moved_of(line)}' moves, which bench/run others knows nothing of")
        return found

    def series(self, moved, how, metric):
        """[(MiB, line)], the smaller state first."""
        return sorted(((one["bytes"] >> 20, one) for one in self.lines
                       if (moved_of(one), one["impl"], one["metric"]) == (moved, how, metric)),
                      key=lambda point: point[0])

    def measured(self):
        """What has moved."""
        return [moved for moved in MOVED if any(moved_of(one) == moved for one in self.lines)]

    def with_others_of(self, before):
        """Also the lines of BEFORE about what these say nothing of: what moves, and with how much state."""
        ours = {(moved_of(one), one["bytes"]) for one in self.lines}
        return Others(self.context, [*(one for one in before.lines
                                       if (moved_of(one), one["bytes"]) not in ours), *self.lines])

    def missing(self):
        found = []
        for moved, (what, _) in MOVED.items():
            command = f"bench/run others --moved {moved} --add"
            if moved not in self.measured():
                found.append((f"{what} moves" if moved == "rank" else f"{what} move", command))
                continue
            found += [(f"{what}: {NAMES[how]} ({metric})", command)
                      for how in HOW for metric in METRICS if not self.series(moved, how, metric) and
                      (how != "none" or metric == "longest")]
        return found

    def machine(self):
        about = self.context
        return (f"{super().machine()}; {about['ranks']} ranks in cliques of {about['clique']}, "
                f"links {about['link']}")

    def table(self):
        return "\n".join([self.machine(), *(line for moved in self.measured()
                                            for line in self._table_of(moved))])

    def _table_of(self, moved):
        found = {(how, mib, metric): line for how in HOW for metric in METRICS
                 for mib, line in self.series(moved, how, metric)}
        title, whose = MOVED[moved]
        return ["", f"moves: {title}; MiB: state of {whose}",
                "medians, ms" + "".join(f"{name:>12}" for name in METRICS)] + [
            f"{mib:>4} MiB {how:<5}" + "".join(
                f"{found[how, mib, name]['median']:>12.1f}" if (how, mib, name) in found else f"{'-':>12}"
                for name in METRICS) for mib in sorted({mib for _, mib, _ in found}) for how in HOW]

    def draw(self, path):
        """A row for each of what has moved; a panel per metric."""
        body = legend([(NAMES[how], COLOURS[how]) for how in HOW])
        rows = self.measured() or ["rank"]
        for row, moved in enumerate(rows):
            for place, (metric, caption) in enumerate(METRICS.items()):
                left, top = place * CELL[0], HEAD + row * CELL[1]
                curves = {how: points for how in HOW if (points := self.series(moved, how, metric))}
                body += (self._panel(left, top, caption, moved, curves) if curves else
                         blank(left, top, caption, "not measured yet:",
                               f"bench/run others --moved {moved}"))
        write_svg(path, len(METRICS) * CELL[0], HEAD + len(rows) * CELL[1],
                  "Singh & Graham: the others run on while " +
                  " or ".join(MOVED[moved][0] for moved in rows) +
                  (" moves" if rows == ["rank"] else " move"), LEFT,
                  [*body, text(LEFT, 66, self.machine() + "; medians, 10th to 90th percentile", "start",
                               GREY)])

    @staticmethod
    def _panel(left, top, caption, moved, curves):
        panel = Panel(left, top, caption,
                      max(line["p90"] for points in curves.values() for _, line in points),
                      note=f"moves: {MOVED[moved][0]}")
        sizes = sorted({mib for points in curves.values() for mib, _ in points})
        axis = panel.across([math.log2(mib) for mib in sizes], f"state of {MOVED[moved][1]}, MiB",
                            ticks=[(math.log2(mib), str(mib)) for mib in sizes], inset=20)
        for how, points in curves.items():
            panel.curve(axis, [(math.log2(mib), line["median"]) for mib, line in points], COLOURS[how])
            for mib, line in points:
                panel.spread(axis.at(math.log2(mib)), *three(line), COLOURS[how])
        return panel.draw()

    def points(self):
        return [{"paper": PAPER, "case": "others", "moved": moved_of(one),
                 "impl": one["impl"], "mib": one["bytes"] >> 20,
                 "metric": one["metric"], "ms": one["median"], "p10": one["p10"], "p90": one["p90"],
                 "rounds": one["n"], "ranks": self.context["ranks"], "link": self.context["link"],
                 "cpus": self.context["cpus"]} for one in self.lines]

    def is_ours(self, point):
        return point.get("paper") == PAPER
