# SPDX-License-Identifier: BSD-3-Clause
"""What bench/run demo-comigrate and policies make of their figures."""
import contextlib
import io
import json
import pathlib
import tempfile
import types
import unittest
import xml.etree.ElementTree

from bench import evaluation
from bench.agent import comigrate, comigrate_report, policies_report
from bench.agent.comigrate_report import Comigration
from bench.agent.policies_report import POLICIES, Policies

CONTEXT = {"cpus": 2, "load": 0.5, "kernel": "6.1", "date": "2026-11-29T00:00:00+00:00", "rounds": 2,
           "iterations": 100, "seconds": 60, "possible": 16.0}
SVG = "{http://www.w3.org/2000/svg}"


def of_case(case, off, zc):
    """Seconds that a run takes without and with migration, 100 iterations in each."""
    lines = []
    for impl, seconds in (("off", off), ("zc", zc)):
        lines += [comigrate_report.figure(case, impl, "time", [seconds]),
                  comigrate_report.figure(case, impl, "throughput", [100 / seconds]),
                  comigrate_report.series(case, impl, [(seconds / 4, 25, 100 / seconds),
                                                       (seconds * 3 / 4, 75, 100 / seconds)])]
    return lines


def idle():
    cost = {**comigrate_report.figure("idle", "zc", "cost", [0.01, 0.02, 0.03]),
            "low": -0.01, "high": 0.05}
    return [comigrate_report.figure("idle", "off", "time", [1.0]),
            comigrate_report.figure("idle", "off", "throughput", [100]),
            comigrate_report.figure("idle", "zc", "time", [1.02]),
            comigrate_report.figure("idle", "zc", "throughput", [98]), cost]


def all_cases():
    return Comigration(CONTEXT, [*idle(), *of_case("join", 200, 100), *of_case("shrink", 80, 40),
                                 *of_case("replace", 60, 20), *of_case("turns", 30, 30)])


def policies():
    return Policies(CONTEXT, [policies_report.figure(policy, metric, [number + 1, number + 2, number + 6])
                              for number, policy in enumerate(POLICIES)
                              for metric in policies_report.UNITS])


class Files(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def drawn(self, figures):
        """(words, elements by name) of the picture of FIGURES."""
        path = self.folder / "picture.svg"
        figures.draw(path)
        root = xml.etree.ElementTree.parse(path).getroot()
        return [one.text or "" for one in root.iter(f"{SVG}text")], root

    def points(self, figures):
        path = self.folder / "papers.jsonl"
        figures.add_to_papers(path)
        return evaluation.read_lines(path)


class Comigrated(Files):
    def test_table_is_against_off_and_beside_the_paper(self):
        table = all_cases().table()
        self.assertRegex(table, r"join +zc +100\.0 s +1\.0/s +-50 % time, \+100 % throughput")
        self.assertRegex(table, r"idle +zc +1\.0 s .*\+2\.00 % time, in truth -1\.00 to \+5\.00 "
                                r"\(95 %, 3 pairs\)")
        self.assertIn("join: the paper: 203.97 s, 115.27 s (-43 %)", table)

    def test_figures_of_the_paper(self):
        words, root = self.drawn(all_cases())
        for number in (5, 6, 7, 8, 9):
            self.assertTrue(any(f"figure {number}" in word for word in words), number)
        self.assertTrue(any(word.startswith("turns") for word in words))
        self.assertFalse(any("not measured" in word for word in words))
        self.assertIn("here: off 200 s; the paper: 203.97 s", words)
        self.assertIn("here: zc 100 s (-50 %); the paper: 115.27 s (-43 %)", words)
        self.assertIn("here: 80 s, zc 40 s (-50 %); the paper: -33 % time", words)
        self.assertIn("here: 1.667/s, zc 5/s (+200 %); the paper: +79 % throughput", words)
        # 6 and 7 have one each, shrink, replace and turns two
        self.assertEqual(len(list(root.iter(f"{SVG}polyline"))), 8)
        self.assertEqual(all_cases().missing(), [])

    def test_figures_6_and_7_have_one_scale(self):
        """An iteration takes 2 s without and 1 s with migration: half as high."""
        _, root = self.drawn(Comigration(CONTEXT, of_case("join", 200, 100)))
        heights = [float(line.get("points").split()[0].split(",")[1])
                   for line in root.iter(f"{SVG}polyline")]
        bottom = max(float(one.get("y")) + float(one.get("height")) for one in root.iter(f"{SVG}rect")
                     if one.get("fill") == "none" and float(one.get("y")) < 200)
        self.assertAlmostEqual(bottom - heights[0], 2 * (bottom - heights[1]), delta=0.2)

    def test_a_curve_of_one_point_is_seen(self):
        _, root = self.drawn(Comigration(CONTEXT, [
            comigrate_report.series("shrink", "off", [(1, 10, 20)])]))
        self.assertEqual(len(list(root.iter(f"{SVG}circle"))), 1)

    def test_what_is_missing_is_said(self):
        part = Comigration(CONTEXT, [line for line in of_case("join", 200, 100)
                                     if line["impl"] == "off"])
        self.assertEqual([what for what, _ in part.missing()],
                         [f"MPI/IOS, figure {number}" for number in (5, 7, 8, 9)])
        self.assertIn(("MPI/IOS, figure 8", "bench/run demo-comigrate --cases shrink --add"),
                      part.missing())
        words, _ = self.drawn(part)
        self.assertEqual(words.count("not measured yet:"), 4)
        self.assertIn("bench/run demo-comigrate --cases idle --add", words)

    def test_a_case_without_figures_of_others(self):
        """Ways of which one has no run: no ratio, and no fall."""
        table = Comigration(CONTEXT, [one for one in of_case("shrink", 80, 40)
                                      if one["impl"] == "zc"]).table()
        self.assertRegex(table, r"shrink +zc +40\.0 s")
        self.assertNotIn("throughput,", table)

    def test_points(self):
        points = self.points(all_cases())
        self.assertEqual({one["paper"] for one in points}, {"mpi-ios"})
        self.assertEqual({one["case"] for one in points}, {"idle", "join", "shrink", "replace"})
        self.assertEqual({(one["figure"], one["impl"]) for one in points if one["case"] == "join"},
                         {(6, "off"), (7, "zc")})
        curve = [one for one in points if one["metric"] == "throughput_over_time"
                 and one["case"] == "shrink" and one["impl"] == "zc"]
        self.assertEqual([(one["seconds"], one["iterations"], one["per_second"]) for one in curve],
                         [(10, 25, 2.5), (30, 75, 2.5)])

    def test_points_of_others_stay(self):
        path = self.folder / "papers.jsonl"
        others = [{"paper": "cores", "point": 1}, {"paper": "mpi-ios", "case": "policies", "point": 2},
                  {"paper": "singh-graham", "case": "join"}]
        evaluation.write_lines(path, [*others, {"paper": "mpi-ios", "case": "join", "old": 1}])
        first = self.points(all_cases())
        self.assertEqual(first[:3], others)
        self.assertFalse(any("old" in one for one in first))
        self.assertEqual(self.points(all_cases()), first)
        both = self.points(policies())
        self.assertNotIn(others[1], both)
        self.assertEqual([one for one in both if one.get("case") != "policies"],
                         [one for one in first if one.get("case") != "policies"])

    def test_a_case_is_added(self):
        more = Comigration(CONTEXT, of_case("join", 20, 10)).with_others_of(all_cases())
        self.assertEqual(more.median("join", "off", "time"), 20)
        self.assertEqual(more.median("shrink", "off", "time"), 80)
        self.assertEqual(len(more.lines), len(all_cases().lines))

    def test_rates_have_time_and_place(self):
        self.assertEqual(comigrate.rates([(0, 0), (0.5, 3), (1, 10), (2, 30)], 1),
                         [(0.5, 5, 10), (1.5, 20, 20)])

    def test_what_a_measurement_writes_is_drawn(self):
        """Of Bench's own samples, in the form that they have there."""
        bench = comigrate.Bench.__new__(comigrate.Bench)
        bench.options = types.SimpleNamespace(iterations=100, rounds=1, cases=["join", "idle"],
                                              out=str(self.folder / "agents.jsonl"))
        bench.before = Comigration(CONTEXT, of_case("shrink", 80, 40))
        bench.samples = {("join", impl, metric): [3.0] for impl in ("off", "zc")
                         for metric in ("time", "throughput")}
        bench.samples.update({("idle", impl, metric): [1.0, 2.0] for impl in ("off", "zc")
                              for metric in ("time", "throughput")})
        bench.series = {("join", impl): [(1.0, 5.0, 7.0)] for impl in ("off", "zc")}
        bench.costs = {"zc": [0.01, 0.03]}
        bench.write()
        read = Comigration.read(bench.options.out)
        self.assertEqual(read.of("idle", "zc", "cost")["low"], 0.01)
        self.assertEqual([what for what, _ in read.missing()], ["MPI/IOS, figure 9"])
        self.assertIn("join", read.table())
        self.drawn(read)


class Stolen(Files):
    def test_table(self):
        table = policies().table()
        self.assertRegex(table, r"off +2 \(1-6\)")
        self.assertIn("where ranks are fastest: 16 iterations per second", table)

    def test_picture(self):
        words, root = self.drawn(policies())
        bars = [one for one in root.iter(f"{SVG}rect") if one.get("fill-opacity")]
        self.assertEqual(len(bars), 4 * len(POLICIES))
        self.assertIn("where ranks are fastest", words)

    def test_what_is_missing_is_said(self):
        part = Policies(CONTEXT, [one for one in policies().lines if one["impl"] == "off"])
        self.assertEqual(part.missing()[0], ("stealing, random", "bench/run policies"))
        none = Policies(CONTEXT, [])
        words, _ = self.drawn(none)
        self.assertEqual(words.count("not measured yet:"), 4)
        self.assertEqual(len(none.missing()), len(POLICIES))

    def test_points(self):
        points = self.points(policies())
        self.assertEqual(len(points), len(POLICIES) * len(policies_report.UNITS))
        self.assertIn({"paper": "mpi-ios", "case": "policies", "impl": "off", "metric": "per_second",
                       "unit": "1/s", "values": [1, 2, 6], "seconds": 60, "cpus": 2}, points)

    def test_shown_again(self):
        """As --again does."""
        options = types.SimpleNamespace(**{name: str(self.folder / file) for name, file in (
            ("out", "policies.jsonl"), ("picture", "p.svg"), ("papers", "papers.jsonl"))})
        policies().write(options.out)
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            evaluation.show(Policies, options)
        self.assertIn("random", said.getvalue())
        self.assertEqual(len(json.loads((self.folder / "papers.jsonl").read_text(
            encoding="utf-8").splitlines()[0])["values"]), 3)


if __name__ == "__main__":
    unittest.main()
