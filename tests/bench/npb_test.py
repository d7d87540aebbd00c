# SPDX-License-Identifier: BSD-3-Clause
"""What bench/run npb makes of its figures, and the sizes that it gives programs."""
import json
import pathlib
import subprocess
import tempfile
import unittest
import xml.etree.ElementTree

from bench.migrate import npb, npb_report
from bench.migrate.departed import Departures
from testbed.instrumented import NPB

CONTEXT = {"cpus": 2, "load": 0.5, "kernel": "6.1", "date": "2026-11-26T00:00:00+00:00",
           "size": "small", "rounds": 2}
SVG = "{http://www.w3.org/2000/svg}"


def figures(*more):
    """FT: 8 of 16 ranks by memory and by disk, and BT on 9."""
    lines = [npb_report.figure("ft", 16, "none", "none", "time", 0, [10, 12])]
    for way, seconds in (("memory", [1, 3]), ("disk", [8, 8])):
        for moving, moved in (("one", 1), ("host", 8)):
            for metric in npb_report.METRICS:
                lines.append(npb_report.figure("ft", 16, moving, way, metric, moved, seconds))
            lines.append(npb_report.figure("ft", 16, moving, way, "image", moved, [3 << 20]))
    lines.append(npb_report.figure("bt", 9, "one", "memory", "response", 1, [0.5]))
    return npb_report.Figures(CONTEXT, [*lines, *more])


class Report(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def test_table_has_medians_and_their_spread(self):
        table = figures().table()
        self.assertRegex(table, r"ft +16 +8 +3\.00 +11\.0 +2\.00 \(1\.20\.\.2\.80\) +8\.00")
        self.assertRegex(table, r"bt +9 +1 +nan +nan +0\.50 \(0\.50\.\.0\.50\) +-")
        self.assertIn("2 processors, load 0.5", table)

    def test_beside_the_paper(self):
        said = figures().beside_the_paper()
        self.assertIn("FT, 16 ranks", said[1])
        self.assertIn("here: disk 8.00 s, memory 2.00 s, saves 75 %. The paper: disk 16.34 s, "
                      "memory 2.22 s, saves 86 %", said[3])

    def test_no_ft_is_not_beside_the_paper(self):
        only = npb_report.Figures(CONTEXT, [npb_report.figure("bt", 9, "one", "memory", "response",
                                                              1, [0.5])])
        self.assertEqual(only.beside_the_paper(), [])

    def test_a_faster_moved_run_saves_nothing(self):
        """An overhead below nought is no share of anything."""
        lines = [npb_report.figure("ft", 4, "host", way, "overhead", 2, [value])
                 for way, value in (("memory", -0.1), ("disk", -0.2))]
        self.assertIn("here: -.", npb_report.Figures(CONTEXT, lines).beside_the_paper()[-1])

    def test_what_is_missing_of_the_paper(self):
        """It has 16 processes, and 32: 36 for BT and SP."""
        self.assertEqual(figures().missing(),
                         [("Cores et al., 32 processes", "bench/run npb --ranks 32 --add")])
        more = npb_report.figure("bt", 36, "one", "memory", "response", 1, [0.5])
        self.assertEqual(figures(more).missing(), [])

    def test_what_is_written_is_read(self):
        path = self.folder / "out/npb.jsonl"
        figures().write(path)
        self.assertEqual(npb_report.Figures.read(path).table(), figures().table())

    def test_a_part_is_added(self):
        """Of other programs and numbers of ranks the lines stay; of the same ones none does."""
        part = npb_report.Figures(CONTEXT, [
            npb_report.figure("bt", 9, "one", "disk", "response", 1, [0.7])])
        both = part.with_others_of(figures())
        self.assertEqual(both.of("ft", 16, "host", "memory", "response")["median"], 2)
        self.assertEqual(both.of("bt", 9, "one", "disk", "response")["median"], 0.7)
        self.assertIsNone(both.of("bt", 9, "one", "memory", "response"))

    def test_lines_of_other_papers_stay(self):
        path = self.folder / "papers.jsonl"
        path.write_text('{"paper": "freitag", "table": 1}\n{"paper": "cores", "old": 1}\n',
                        encoding="utf-8")
        for _ in range(2):
            figures().add_to_papers(path)
        lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        self.assertEqual(lines[0], {"paper": "freitag", "table": 1})
        self.assertEqual(len(lines), 1 + 13)
        self.assertFalse(any("old" in line for line in lines))
        self.assertEqual({line["figure"] for line in lines[1:]}, {4, 6, 8})

    def test_picture(self):
        """A panel per metric and number of ranks; a bar per figure; two kinds of axis."""
        path = self.folder / "npb.svg"
        figures().draw(path)
        drawn = xml.etree.ElementTree.parse(path).getroot()
        words = [one.text for one in drawn.iter(f"{SVG}text")]
        self.assertIn("Response time, s; 16 ranks", words)
        self.assertIn("Overhead, s; 9 ranks", words)
        self.assertEqual(words.count("FT"), 3)
        bars = [one for one in drawn.iter(f"{SVG}rect") if one.get("fill-opacity")]
        self.assertEqual(len(bars), 13 + 4)     # and the legend's

    def test_nothing_is_drawn_below_the_axis(self):
        below = npb_report.figure("ft", 4, "one", "memory", "overhead", 1, [-2])
        path = self.folder / "npb.svg"
        npb_report.Figures(CONTEXT, [below]).draw(path)
        for one in xml.etree.ElementTree.parse(path).getroot().iter(f"{SVG}rect"):
            if one.get("height") != "100%":
                self.assertGreaterEqual(float(one.get("height")), 0)


class Programs(unittest.TestCase):
    def test_sizes_divide_among_all_numbers_of_ranks(self):
        """What the programs demand of their arguments."""
        for size, of_program in npb.SIZES.items():
            self.assertEqual(set(of_program), set(NPB) - {"ep"})
            for ranks in (4, 8, 16, 32):
                with self.subTest(size=size, ranks=ranks):
                    whole = {name: npb.arguments(name, size, npb.ranks_of(name, ranks), 10)
                             for name in NPB}
                    for name in npb.SQUARE:
                        root = round(npb.ranks_of(name, ranks) ** 0.5)
                        self.assertEqual(root * root, npb.ranks_of(name, ranks))
                        self.assertEqual(whole[name][0] % root, 0)
                    for name in ("cg", "ep", "ft", "is"):
                        self.assertEqual(whole[name][0] % ranks, 0)
                    self.assertEqual(whole["lu"][0] % 8, 0)
                    self.assertGreaterEqual(whole["mg"][0], 2)

    def test_each_has_one_loop_of_its_steps(self):
        for name, program in NPB.items():
            with self.subTest(name):
                self.assertRegex(program.loop(), r"^\w+\.c:\d+$")


class Leaving(unittest.TestCase):
    def test_the_last_one_counts(self):
        processes = [subprocess.Popen(["sleep", seconds]) for seconds in ("0.05", "0.3")]
        try:
            took = Departures([one.pid for one in processes]).took_ms()
        finally:
            for one in processes:
                one.wait()
        self.assertGreater(took, 200)

    def test_one_that_stays(self):
        process = subprocess.Popen(["sleep", "60"])
        try:
            self.assertIsNone(Departures([process.pid], limit_s=0.1).took_ms())
        finally:
            process.kill()
            process.wait()


if __name__ == "__main__":
    unittest.main()
