# SPDX-License-Identifier: BSD-3-Clause
"""What bench/run others makes of its figures."""
import pathlib
import tempfile
import unittest
import xml.etree.ElementTree

from bench import evaluation
from bench.migrate.others_report import HOW, METRICS, Others, figure

CONTEXT = {"cpus": 2, "load": 0.5, "kernel": "6.1", "date": "2026-11-29T00:00:00+00:00", "ranks": 16,
           "clique": 4, "link": "10gbit"}
SVG = "{http://www.w3.org/2000/svg}"


def figures():
    """Of 16 MiB to 1 GiB: who waits, waits longer for more state; who runs on does not."""
    lines = [figure("none", mib, "longest", [9, 10, 11]) for mib in (1024, 16, 256)]
    for mib in (1024, 16, 256):
        for metric in METRICS:
            lines += [figure("wait", mib, metric, [mib]), figure("run", mib, metric, [60, 70, 90])]
    return Others(CONTEXT, lines)


class Report(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def drawn(self, of):
        path = self.folder / "others.svg"
        of.draw(path)
        return xml.etree.ElementTree.parse(path).getroot()

    def test_table(self):
        table = figures().table()
        self.assertRegex(table, r" 256 MiB none +10\.0 +- +-")
        self.assertRegex(table, r"1024 MiB wait +1024\.0 +1024\.0 +1024\.0")
        self.assertIn("16 ranks in cliques of 4, links 10gbit", table)
        self.assertLess(table.index("  16 MiB"), table.index("1024 MiB"))

    def test_picture_has_the_stalls_by_the_size_of_the_state(self):
        root = self.drawn(figures())
        words = [one.text or "" for one in root.iter(f"{SVG}text")]
        for caption in METRICS.values():
            self.assertIn(caption, words)
        self.assertEqual(words.count("state of the rank that moves, MiB"), 3)
        lines = [[float(point.split(",")[0]) for point in one.get("points").split()]
                 for one in root.iter(f"{SVG}polyline")]
        self.assertEqual(len(lines), 3 + 2 + 2)
        for places in lines:
            self.assertEqual(places, sorted(places))

    def test_what_is_missing_is_said(self):
        part = Others(CONTEXT, [one for one in figures().lines if one["impl"] == "none"])
        self.assertEqual(len(part.missing()), 2 * len(METRICS))
        words = [one.text or "" for one in self.drawn(part).iter(f"{SVG}text")]
        self.assertEqual(words.count("not measured yet:"), 2)
        self.assertEqual(figures().missing(), [])

    def test_one_size(self):
        self.drawn(Others(CONTEXT, [figure("run", 64, "stall", [0, 0])]))

    def test_points_of_the_papers_own_figures_stay(self):
        path = self.folder / "papers.jsonl"
        others = [{"paper": "singh-graham", "figure": 2}, {"paper": "mpi-ios", "case": "join"}]
        evaluation.write_lines(path, others)
        for _ in range(2):
            figures().add_to_papers(path)
        points = evaluation.read_lines(path)
        self.assertEqual(points[:2], others)
        self.assertEqual(len(points), 2 + 3 + 6 * len(METRICS))
        self.assertEqual({one["impl"] for one in points[2:]}, set(HOW))
        self.assertIn({"paper": "singh-graham-others", "case": "others", "impl": "run", "mib": 1024,
                       "metric": "stall", "ms": 70, "p10": 62, "p90": 86, "rounds": 3, "ranks": 16,
                       "link": "10gbit", "cpus": 2}, points)


if __name__ == "__main__":
    unittest.main()
