# SPDX-License-Identifier: BSD-3-Clause
"""What bench/run others makes of its figures."""
import contextlib
import io
import pathlib
import tempfile
import unittest
import unittest.mock
import xml.etree.ElementTree

from bench import evaluation
from bench.migrate import others
from bench.migrate.others_report import HOW, METRICS, MOVED, Others, figure
from testbed.migration import H1, H2
from testbed.outcome import Fail

CONTEXT = {"cpus": 2, "load": 0.5, "kernel": "6.1", "date": "2026-11-29T00:00:00+00:00", "ranks": 16,
           "clique": 4, "link": "10gbit"}
SVG = "{http://www.w3.org/2000/svg}"


def figures(*moved):
    """Of 16 MiB to 1 GiB, where MOVED (all) move: who waits, waits longer for more state; who runs on
    does not."""
    lines = []
    for what in moved or MOVED:
        longer = 1 if what == "rank" else 2
        for mib in (1024, 16, 256):
            lines.append(figure(what, "none", mib, "longest", [9, 10, 11]))
            for metric in METRICS:
                lines += [figure(what, "wait", mib, metric, [longer * mib]),
                          figure(what, "run", mib, metric, [60, 70, 90])]
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

    def test_table_has_what_moves_apart(self):
        table = figures().table()
        rank, clique = table.split("moves: all ranks of a clique")
        self.assertRegex(rank, r" 256 MiB none +10\.0 +- +-")
        self.assertRegex(rank, r"1024 MiB wait +1024\.0 +1024\.0 +1024\.0")
        self.assertRegex(clique, r"1024 MiB wait +2048\.0 +2048\.0 +2048\.0")
        self.assertIn("16 ranks in cliques of 4, links 10gbit", table)
        self.assertLess(rank.index("  16 MiB"), rank.index("1024 MiB"))
        self.assertNotIn("all ranks", figures("rank").table())
        self.assertNotIn("one rank", figures("clique").table())

    def test_picture_has_the_stalls_by_the_size_of_the_state(self):
        root = self.drawn(figures())
        words = [one.text or "" for one in root.iter(f"{SVG}text")]
        for caption in METRICS.values():
            self.assertEqual(words.count(caption), 2)
        for what in ("state of the rank that moves, MiB", "state of the last rank of the clique, MiB",
                     "moves: one rank", "moves: all ranks of a clique"):
            self.assertEqual(words.count(what), 3, what)
        lines = [[float(point.split(",")[0]) for point in one.get("points").split()]
                 for one in root.iter(f"{SVG}polyline")]
        self.assertEqual(len(lines), 2 * (3 + 2 + 2))
        for places in lines:
            self.assertEqual(places, sorted(places))
        for one in root.iter(f"{SVG}text"):
            self.assertLess(float(one.get("y")), float(root.get("height")))

    def test_picture_of_one_has_one_row(self):
        high = {what: float(self.drawn(figures(*what)).get("height")) for what in
                (("rank",), ("clique",), ("rank", "clique"))}
        self.assertEqual(high["rank",], high["clique",])
        self.assertGreater(high["rank", "clique"], high["rank",] * 1.5)

    def test_what_is_missing_is_said(self):
        part = Others(CONTEXT, [one for one in figures("rank").lines if one["impl"] == "none"])
        self.assertEqual(part.missing()[-1], ("all ranks of a clique move",
                                              "bench/run others --moved clique --add"))
        self.assertEqual(len(part.missing()), 2 * len(METRICS) + 1)
        words = [one.text or "" for one in self.drawn(part).iter(f"{SVG}text")]
        self.assertEqual(words.count("not measured yet:"), 2)
        self.assertEqual(figures().missing(), [])
        self.assertEqual(figures("clique").missing(), [("one rank moves",
                                                        "bench/run others --moved rank --add")])

    def test_one_size(self):
        self.drawn(Others(CONTEXT, [figure("rank", "run", 64, "stall", [0, 0])]))

    def test_nothing(self):
        self.drawn(Others(CONTEXT, []))

    def test_older_files_are_of_one_rank(self):
        """They do not say what moves."""
        path = self.folder / "others.jsonl"
        figures("rank").write(path)
        path.write_text(path.read_text(encoding="utf-8").replace('"moved": "rank", ', ""),
                        encoding="utf-8")
        self.assertNotIn("moved", path.read_text(encoding="utf-8"))
        self.assertEqual(Others.read(path).table(), figures("rank").table())
        self.assertEqual(Others.read(path).points(), figures("rank").points())

    def test_what_nobody_knows_is_refused(self):
        path = self.folder / "others.jsonl"
        for moved in ("host", None, ["rank"]):
            evaluation.write_lines(path, [{"context": CONTEXT},
                                          {**figures().lines[0], "moved": moved}])
            with self.subTest(moved), self.assertRaisesRegex(Fail, "moves, which bench/run others knows"):
                Others.read(path)

    def test_a_part_is_added(self):
        """What moves, and the size: these are replaced, all others stay."""
        part = Others(CONTEXT, [figure("clique", "run", 16, "longest", [5])])
        both = part.with_others_of(figures())
        self.assertEqual([(mib, line["median"]) for mib, line in both.series("clique", "run", "longest")],
                         [(16, 5), (256, 70), (1024, 70)])
        self.assertEqual([mib for mib, _ in both.series("clique", "wait", "longest")], [256, 1024])
        self.assertEqual(both.series("rank", "run", "longest"), figures().series("rank", "run", "longest"))

    def test_figures_of_another_job_are_not_added(self):
        """It is refused before anything is measured, and the file stays as it is."""
        path = self.folder / "others.jsonl"
        figures().write(path)
        before = path.read_text(encoding="utf-8")
        for words, said in ((["--link", "1gbit"], "has link 10gbit, and link 1gbit cannot be added"),
                            ([], "has link 10gbit, and link veth cannot"),
                            (["--link", "10gbit", "--ranks", "8"], "ranks 16, .* ranks 8"),
                            (["--link", "10gbit", "--clique", "2"], "clique 4, .* clique 2")):
            options = others.parse(["--out", str(path), "--add", *words])
            with self.subTest(words), unittest.mock.patch.object(others, "stage_of") as stage, \
                    self.assertRaisesRegex(Fail, said):
                others.measure(options)
            stage.assert_not_called()
        self.assertEqual(path.read_text(encoding="utf-8"), before)

    def test_points_of_the_papers_own_figures_stay(self):
        path = self.folder / "papers.jsonl"
        other = [{"paper": "singh-graham", "figure": 2}, {"paper": "mpi-ios", "case": "join"}]
        evaluation.write_lines(path, other)
        for _ in range(2):
            figures().add_to_papers(path)
        points = evaluation.read_lines(path)
        self.assertEqual(points[:2], other)
        self.assertEqual(len(points), 2 + 2 * (3 + 6 * len(METRICS)))
        self.assertEqual({one["impl"] for one in points[2:]}, set(HOW))
        for moved in MOVED:
            self.assertIn({"paper": "singh-graham-others", "case": "others", "moved": moved,
                           "impl": "run", "mib": 1024, "metric": "stall", "ms": 70, "p10": 62, "p90": 86,
                           "rounds": 3, "ranks": 16, "link": "10gbit", "cpus": 2}, points)


class Plan(unittest.TestCase):
    """Which ranks move, and where to: the other host, in any case."""

    def test_the_last_rank(self):
        self.assertEqual(others.plan(16, 4, "rank"), ([15], H1, (H1, H2)))
        self.assertEqual(others.plan(9, 3, "rank"), ([8], H2, (H1, H2)))

    def test_the_last_clique(self):
        by_fours = (f"{H1}:4", f"{H2}:4")
        self.assertEqual(others.plan(16, 4, "clique"), ([12, 13, 14, 15], H1, by_fours))
        self.assertEqual(others.plan(12, 4, "clique"), ([8, 9, 10, 11], H2, by_fours))

    def test_what_is_asked_for(self):
        self.assertEqual(others.parse([]).moved, ["rank"])
        self.assertEqual(others.parse(["--moved", "clique", "rank", "clique"]).moved, ["rank", "clique"])
        self.assertEqual(others.parse(["--quick"]).ranks, 8)

    def test_bad_words(self):
        for words in (["--moved", "host"], ["--moved"], ["--clique", "0"], ["--clique", "3"],
                      ["--ranks", "4"], ["--ranks", "-8"], ["--rounds", "-1"], ["--sizes", "0"],
                      ["--clique", "-4"]):
            said = io.StringIO()
            with self.subTest(words), contextlib.redirect_stderr(said), \
                    self.assertRaises(SystemExit) as end:
                others.parse(words)
            self.assertEqual(end.exception.code, 2)
            self.assertIn("error:", said.getvalue())


if __name__ == "__main__":
    unittest.main()
