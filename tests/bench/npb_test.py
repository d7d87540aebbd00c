# SPDX-License-Identifier: BSD-3-Clause
"""What bench/run npb makes of its figures, and the sizes that it gives programs."""
import contextlib
import io
import json
import pathlib
import subprocess
import tempfile
import unittest
import unittest.mock
import xml.etree.ElementTree

from bench.migrate import npb, npb_report
from bench.migrate.departed import Departures
from testbed.instrumented import NPB
from testbed.outcome import Fail

CONTEXT = {"cpus": 2, "load": 0.5, "kernel": "6.1", "date": "2026-11-26T00:00:00+00:00",
           "size": "small", "rounds": 2, "link": "veth"}
OLD = {key: value for key, value in CONTEXT.items() if key != "link"}
SVG = "{http://www.w3.org/2000/svg}"


def figures(*more, about=None):
    """FT: 8 of 16 ranks by memory and by disk, and BT on 9."""
    lines = [npb_report.figure("ft", 16, "none", "none", "time", 0, [10, 12])]
    for way, seconds in (("memory", [1, 3]), ("disk", [8, 8])):
        for moving, moved in (("one", 1), ("host", 8)):
            for metric in npb_report.METRICS:
                lines.append(npb_report.figure("ft", 16, moving, way, metric, moved, seconds))
            lines.append(npb_report.figure("ft", 16, moving, way, "image", moved, [3 << 20]))
    lines.append(npb_report.figure("bt", 9, "one", "memory", "response", 1, [0.5]))
    return npb_report.Figures(about or CONTEXT, [*lines, *more])


def with_link(link):
    return figures(about={**CONTEXT, "link": link})


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
        self.assertIn("FT, 16 ranks, 8 move", said[1])
        self.assertIn("here: disk 8.00 s, memory 2.00 s, saves 75 %. The paper: disk 16.34 s, "
                      "memory 2.22 s, saves 86 % (InfiniBand, figure 7)", said[3])

    def test_beside_the_paper_are_as_many_as_the_paper_moves(self):
        """Not those of more ranks, of which it has no numbers, and not all of a host that has more."""
        more = [npb_report.figure("ft", 32, moving, way, "response", moved, [50])
                for way in ("memory", "disk") for moving, moved in (("one", 1), ("some", 8))]
        self.assertIn("FT, 16 ranks, 8 move", figures(*more).beside_the_paper()[1])
        self.assertIn("FT, 32 ranks, 8 move",
                      npb_report.Figures(CONTEXT, more).beside_the_paper()[1])
        alone = npb_report.Figures(CONTEXT, more[:1])
        self.assertIn("FT, 32 ranks, 1 move", alone.beside_the_paper()[1])

    def test_overhead_in_per_cent(self):
        """As it has been measured, round by round, or, of older files, of the medians."""
        self.assertAlmostEqual(figures().of("ft", 16, "host", "memory", npb_report.PERCENT)["median"],
                               2 / 11 * 100)
        self.assertIsNone(figures().of("bt", 9, "one", "memory", npb_report.PERCENT))
        measured = npb_report.figure("ft", 16, "host", "memory", npb_report.PERCENT, 8, [25, 27])
        self.assertEqual(measured["unit"], "%")
        table = figures(measured).table()
        seconds, percent = table.split("Overhead, % of the run without a move (the paper's figure 9)")
        self.assertRegex(percent, r"ft +16 +8 +3\.00 +11\.0 +26\.00 \(25\.20\.\.26\.80\) +72\.73")
        self.assertRegex(seconds.split("Overhead, s")[1], r"ft +16 +8 +3\.00 +11\.0 +2\.00 .* +8\.00")

    def test_no_per_cent_of_no_run(self):
        """None was measured, or it took no time."""
        over = npb_report.figure("ft", 4, "host", "disk", "overhead", 2, [1])
        for run in ([], [npb_report.figure("ft", 4, "none", "none", "time", 0, [0])]):
            found = npb_report.Figures(CONTEXT, [over, *run])
            self.assertIsNone(found.of("ft", 4, "host", "disk", npb_report.PERCENT))
            found.draw(self.folder / "npb.svg")
            self.assertIsNone(found.points()[0]["percent"])

    def test_the_link_chooses_the_paper_s_figures(self):
        for link, figure in (("1gbit", 4), ("250mbit", 4), ("999999kbit", 4), ("10gbit,1gbit", 4),
                             ("2gbit", 5), ("10gbit", 5), ("veth", 5), ("bare", 5), ("bare,10gbit", 5),
                             ("1001mbit", 5), (None, None), ("fast", None), ("", None), (10, None),
                             ("0gbit", None), ("1gbit,", None), (["1gbit"], None), ("1gbps", None)):
            with self.subTest(link):
                self.assertEqual(with_link(link).figure_of("response"), figure)
        self.assertIn("links 1gbit (beside cluster N1, 1 Gbit/s Ethernet)", with_link("1gbit").table())
        self.assertIn("Evacuation time, s (the paper's figure 6)", with_link("1gbit").table())
        self.assertIn("Evacuation time, s (the paper's figure 7)", with_link("veth").table())

    def test_older_files_do_not_tell_their_link(self):
        path = self.folder / "npb.jsonl"
        figures(about=OLD).write(path)
        found = npb_report.Figures.read(path)
        self.assertIn("rounds, links unknown\n", found.table())
        self.assertIn("Response time, s (the paper's figures 4 and 5)", found.table())
        self.assertEqual({(one["figure"], one["link"]) for one in found.points()}, {(None, None)})
        self.assertEqual(self.words(found)["marks"], 0)

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
                         [("Cores et al., 8 of 32 processes move",
                           "bench/run npb --ranks 32 --moved 8 --add")])
        of_36 = {moved: npb_report.figure("bt", 36, "some", "memory", "response", moved, [0.5])
                 for moved in (8, 18)}
        self.assertEqual(figures(of_36[8]).missing(), [])
        self.assertEqual(figures(of_36[18]).missing(), figures().missing())
        self.assertEqual(with_link("1gbit").missing()[0][1],
                         "bench/run npb --ranks 32 --moved 8 --link 1gbit --add")

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

    def added(self, *words):
        """What is said where a part is to be added to figures() that is measured with WORDS."""
        path = self.folder / "npb.jsonl"
        options = npb.parse(["--out", str(path), "--disk", str(self.folder), "--add", *words])
        with unittest.mock.patch.object(npb, "stage_of", side_effect=AssertionError("measured")), \
                self.assertRaises((Fail, AssertionError)) as end:
            npb.measure(options)
        return str(end.exception)

    def test_a_part_of_another_link_or_size_is_not_added(self):
        """It is refused before anything is measured: the file tells one link and one size."""
        figures().write(self.folder / "npb.jsonl")
        self.assertEqual(self.added("--size", "small"), "measured")
        self.assertEqual(self.added("--size", "small", "--link", "bare"), "measured")
        self.assertIn("has link veth, and link 1gbit cannot be added",
                      self.added("--size", "small", "--link", "1gbit"))
        self.assertIn("has size small, and size large cannot", self.added())
        figures(about=OLD).write(self.folder / "npb.jsonl")
        self.assertIn("has link unknown, and link veth cannot", self.added("--size", "small"))

    def test_points_of_another_link_stay(self):
        path = self.folder / "papers.jsonl"
        for link in ("veth", "1gbit", "veth"):
            with_link(link).add_to_papers(path)
        lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        self.assertEqual(len(lines), 2 * 13)
        self.assertEqual({line["figure"] for line in lines}, {4, 5, 6, 7, 8, 9})

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
        self.assertEqual({line["figure"] for line in lines[1:]}, {5, 7, 9})
        self.assertIn({"paper": "cores", "figure": 9, "program": "ft", "ranks": 16, "moved": 8,
                       "way": "disk", "metric": "overhead", "seconds": 8, "p10": 8, "p90": 8,
                       "percent": 8 / 11 * 100, "run_seconds": 11, "rounds": 2, "cpus": 2,
                       "size": "small", "link": "veth"}, lines)

    def words(self, found):
        """Of the picture: its texts, bars, marks (the paper's numbers) and lines."""
        path = self.folder / "npb.svg"
        found.draw(path)
        drawn = xml.etree.ElementTree.parse(path).getroot()
        for one in drawn.iter(f"{SVG}text"):
            self.assertLess(float(one.get("y")), float(drawn.get("height")))
            if one.get("text-anchor") == "start":   # a letter is less than 6 wide
                self.assertLess(float(one.get("x")) + 5.6 * len(one.text), float(drawn.get("width")))
        return {"texts": [one.text for one in drawn.iter(f"{SVG}text")],
                "bars": [one for one in drawn.iter(f"{SVG}rect") if one.get("fill-opacity")],
                "marks": len(list(drawn.iter(f"{SVG}path"))),
                "dots": len(list(drawn.iter(f"{SVG}circle")))}

    def test_picture(self):
        """A panel per metric and number of ranks; a bar per figure; two kinds of axis."""
        found = self.words(figures())
        self.assertIn("Response time, s; 16 ranks, 1 or 8 move", found["texts"])
        self.assertIn("Overhead, % of the run without a move; 9 ranks", found["texts"])
        self.assertNotIn("Overhead, s", " ".join(found["texts"]))
        self.assertEqual(found["texts"].count("FT"), 3)
        self.assertEqual(len(found["bars"]), 13 + 4)     # and the legend's
        self.assertEqual(found["dots"], 3)  # the image in two rows, and the time in one; none of BT
        self.assertIn("several, disk", self.words(figures(
            npb_report.figure("ft", 32, "some", "disk", "response", 8, [1])))["texts"])

    def test_picture_has_what_the_paper_tells(self):
        """As captions; its seconds of cluster N2 also as marks, where the links are fast."""
        found = self.words(figures())
        captions = [one for one in found["texts"] if one.startswith("The paper's figure ")]
        self.assertEqual([one[:20] for one in captions], [f"The paper's figure {n}" for n in (5, 7, 9)])
        for caption, told in zip(captions, (("50 %", "90 %"), ("16.34 s", "2.22 s", "diamonds", "0.5 s"),
                                            ("31.26 s", "2.47 s", "no per cent"))):
            for one in told:
                self.assertIn(one, caption)
        self.assertIn("1.04 to 192.12 MB", " ".join(found["texts"]))
        self.assertEqual(found["marks"], 2)

        slow = self.words(with_link("1gbit"))
        self.assertEqual(slow["marks"], 0)
        self.assertTrue(any(one.startswith("The paper's figure 6. FT in its text: disk 16.34 s") and
                            "InfiniBand, figure 7" in one and "diamonds" not in one
                            for one in slow["texts"]), slow["texts"])

    def test_marks_are_beside_what_the_paper_measured(self):
        """The disk is NFS there, for which the limited one stands; 16 ranks, of which 8 move."""
        limited = figures(npb_report.figure("ft", 16, "host", "disk-120", "evacuation", 8, [9]))
        mark = limited.papers_mark
        self.assertEqual(mark("evacuation", "ft", 16, "disk-120", 8), 16.34)
        self.assertIsNone(mark("evacuation", "ft", 16, "disk", 8))
        self.assertEqual(mark("evacuation", "ft", 16, "memory", 8), 2.22)
        self.assertEqual(figures().papers_mark("evacuation", "ft", 16, "disk", 8), 16.34)
        for metric, program, ranks, moved in (("response", "ft", 16, 8), ("evacuation", "bt", 16, 8),
                                              ("evacuation", "ft", 32, 8), ("evacuation", "ft", 16, 1),
                                              (npb_report.PERCENT, "ft", 16, 8)):
            self.assertIsNone(mark(metric, program, ranks, "memory", moved))

    def test_picture_of_nothing(self):
        self.words(npb_report.Figures(CONTEXT, []))

    def test_nothing_is_drawn_below_the_axis(self):
        below = [npb_report.figure("ft", 4, "one", "memory", "overhead", 1, [-2]),
                 npb_report.figure("ft", 4, "none", "none", "time", 0, [10])]
        path = self.folder / "npb.svg"
        npb_report.Figures(CONTEXT, below).draw(path)
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


class Moved(unittest.TestCase):
    """How many ranks of a host move."""

    RANKS = [{"rank": rank, "host": f"h{rank % 2 + 1}"} for rank in range(9)]

    def test_who_moves(self):
        def of(moving, moved=None):
            return [one["rank"] for one in npb.leavers(self.RANKS, moving, moved)]
        self.assertEqual(of("one"), [1])
        self.assertEqual(of("host"), [1, 3, 5, 7])
        self.assertEqual(of("some", 3), [1, 3, 5])
        self.assertEqual(len(of("host")), npb.on_host(9))
        with self.assertRaisesRegex(Fail, "5 ranks are to move, and 4 are on the host"):
            of("some", 5)

    def test_none_is_on_the_other_host(self):
        for moving in ("one", "host"):
            with self.assertRaisesRegex(Fail, "and 0 are on the host"):
                npb.leavers(self.RANKS[:1], moving, None)

    def test_all_of_a_host_are_called_so(self):
        self.assertEqual([npb.several(32, moved) for moved in (None, 16, 8)], ["host", "host", "some"])

    def test_what_is_asked_for(self):
        self.assertIsNone(npb.parse([]).moved)
        self.assertEqual(npb.parse(["--ranks", "32", "--moved", "8"]).moved, 8)
        self.assertEqual(npb.parse(["--ranks", "16", "32", "--moved", "8"]).moved, 8)
        self.assertEqual(npb.parse(["--quick", "--moved", "2"]).moved, 2)

    def test_bad_words(self):
        for words, said in ((["--moved", "8"], "of 4 ranks 2 to 2 can leave"),
                            (["--ranks", "16", "--moved", "9"], "of 16 ranks 2 to 8 can leave"),
                            (["--ranks", "16", "--moved", "1"], "--moved 1"),
                            (["--ranks", "16", "--moved", "0"], "--moved 0"),
                            (["--ranks", "16", "--moved", "-8"], "--moved -8"),
                            (["--ranks", "16", "--moved", "x"], "invalid int"),
                            (["--link", "fast"], "--link fast: not bare, and no rate"),
                            (["--link", ""], "no rate")):
            heard = io.StringIO()
            with self.subTest(words), contextlib.redirect_stderr(heard), \
                    self.assertRaises(SystemExit) as end:
                npb.parse(words)
            self.assertEqual(end.exception.code, 2)
            self.assertIn(said, heard.getvalue())


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
