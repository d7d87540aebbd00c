# SPDX-License-Identifier: BSD-3-Clause
"""What bench/run policies has measured of the ways to steal work."""
import statistics

from bench.drawing import BLUE, GREEN, ORANGE, RED, text, write_svg
from bench.evaluation import Evaluation
from bench.panel import CELL, GREY, LEFT, Panel, blank

POLICIES = ["off", "random", "application", "network"]
UNITS = {"iterations": "1", "settled": "s", "moves": "1", "ranks": "1", "per second": "1/s",
         "across": "bytes"}
COLOURS = {"off": RED, "random": ORANGE, "application": BLUE, "network": GREEN}
PANELS = {"iterations": "iterations in the whole run", "per second": "iterations per second, at last",
          "settled": "last move after, s", "across": "bytes per iteration from host to host, at last"}
HEAD = 50


def figure(policy, metric, values):
    return {"bench": "policies", "case": "policies", "impl": policy, "metric": metric,
            "unit": UNITS[metric], "values": [round(value, 3) for value in values]}


class Policies(Evaluation):
    NAME = BENCH = "policies"
    KEYS = ("impl", "metric", "unit", "values")
    CONTEXT = ("rounds", "seconds", "possible")

    def values(self, metric):
        """{policy: its values}"""
        found = {one["impl"]: one["values"] for one in self.lines if one["metric"] == metric}
        return {policy: found[policy] for policy in POLICIES if policy in found}

    def missing(self):
        measured = self.values("iterations")
        return [(f"stealing, {policy}", "bench/run policies")     # by turns, so all of them
                for policy in POLICIES if policy not in measured]

    def machine(self):
        about = self.context
        return f"{super().machine()}; {about['rounds']} rounds of {about['seconds']:g} s"

    def table(self):
        measured = {metric: self.values(metric) for metric in UNITS}
        rows = [self.machine(), f"{'':<12}" + "".join(f"{metric:>31}" for metric in UNITS)]
        for policy in [each for each in POLICIES if all(each in of for of in measured.values())]:
            rows.append(f"{policy:<12}" + "".join(
                f"{f'{statistics.median(v):.4g} ({min(v):.4g}-{max(v):.4g})':>31}"
                for metric in UNITS for v in [measured[metric][policy]]))
        return "\n".join([*rows, "where ranks are fastest: "
                          f"{self.context['possible']:.3g} iterations per second"])

    def draw(self, path):
        body = []
        for place, (metric, caption) in enumerate(PANELS.items()):
            left, values = place % 2 * CELL[0], self.values(metric)
            top = HEAD + place // 2 * CELL[1]
            body += (self._panel(left, top, metric, caption, values) if values else
                     blank(left, top, caption, "not measured yet:", "bench/run policies"))
        write_svg(path, 2 * CELL[0], HEAD + 2 * CELL[1], "MPI/IOS: ways to steal work, 16 ranks on four "
                  "hosts of different speed", LEFT,
                  [*body, text(LEFT, 44, self.machine() + "; medians, least to most; the paper has no "
                               "figure of this", "start", GREY)])

    def _panel(self, left, top, metric, caption, values):
        possible = self.context["possible"] if metric == "per second" else 0
        panel = Panel(left, top, caption, max(possible, *(max(each) for each in values.values())))
        panel.bars([(policy, COLOURS[policy], (min(each), statistics.median(each), max(each)))
                    for policy, each in values.items()])
        if possible:
            panel.level(possible, "where ranks are fastest")
        return panel.draw()

    def points(self):
        return [{"paper": "mpi-ios", "case": "policies", "impl": one["impl"],
                 "metric": one["metric"].replace(" ", "_"), "unit": one["unit"], "values": one["values"],
                 "seconds": self.context["seconds"], "cpus": self.context["cpus"]} for one in self.lines]

    def is_ours(self, point):
        return point.get("paper") == "mpi-ios" and point.get("case") == "policies"
