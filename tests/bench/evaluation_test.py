# SPDX-License-Identifier: BSD-3-Clause
"""What bench/run papers and the evaluations that it draws do with files that are there, missing and bad."""
import json
import pathlib
import platform
import subprocess
import tempfile
import unittest
import unittest.mock

from bench import evaluation, papers
from bench.agent.comigrate_report import Comigration
from bench.agent.policies_report import Policies
from bench.migrate.npb_report import Figures
from bench.migrate.others_report import Others
from testbed.outcome import EXIT_SKIPPED, Fail
from tests.bench import mpi_ios_test, npb_test, others_test

KINDS = {"npb": Figures, "demo-comigrate": Comigration, "policies": Policies, "others": Others}
MEASURED = {"npb": npb_test.figures, "demo-comigrate": mpi_ios_test.all_cases,
            "policies": mpi_ios_test.policies, "others": others_test.figures}


class Files(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, name, text):
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return path

    def papers(self, *words):
        """(exit status, what is said) of bench/run papers."""
        done = subprocess.run([papers.RUN, "papers", "--folder", self.folder, "--kept",
                               self.folder / "kept", *words], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60, check=False)
        self.assertNotIn("Traceback", done.stdout)
        return done.returncode, done.stdout


class Evaluations(Files):
    def test_read_is_what_was_written(self):
        for name, kind in KINDS.items():
            with self.subTest(name):
                figures = MEASURED[name]()
                figures.write(self.folder / "new/figures.jsonl")
                self.assertEqual(kind.read(self.folder / "new/figures.jsonl").table(), figures.table())

    def test_bad_files_are_refused_by_line(self):
        good = json.dumps({"context": {**npb_test.CONTEXT, **mpi_ios_test.CONTEXT, **others_test.CONTEXT}})
        for name, kind in KINDS.items():
            other = {"bench": "another", "case": "x", "impl": "y", "metric": "z"}
            for text, said in (("", "does not tell how it was measured"), ("[1]\n", "line 1 is no object"),
                               ("{}\n", "does not tell how"), ('{"context": 3}\n', "does not tell how"),
                               ('{"context": {"cpus": 2, "load": 1}}\n', "does not tell how"),
                               (f"{good}\n\n{{", "line 3 is no object of JSON"),
                               (f"{good}\n{json.dumps(other)}\n", f"no figure of bench/run {name}"),
                               (f'{good}\n{{"bench": "{kind.BENCH}"}}\n', "line 2 is no figure")):
                with self.subTest(name, text=text), self.assertRaisesRegex(Fail, said):
                    kind.read(self.write("bad.jsonl", text))

    def test_missing_files_tell_what_measures_them(self):
        for name, kind in KINDS.items():
            with self.subTest(name), self.assertRaisesRegex(Fail, f"nothing has been measured; "
                                                                  f"bench/run {name} does it"):
                kind.read(self.folder / "none.jsonl")

    def test_bad_papers_stay_as_they_are(self):
        bad = self.write("papers.jsonl", '{"paper": "freitag"}\nhalf a li')
        for name, measured in MEASURED.items():
            with self.subTest(name), self.assertRaisesRegex(Fail, "papers.jsonl: line 2 is no object"):
                measured().add_to_papers(bad)
            self.assertEqual(bad.read_text(encoding="utf-8"), '{"paper": "freitag"}\nhalf a li')

    def test_points_of_each_other_stay(self):
        path = self.folder / "papers.jsonl"
        for _ in range(2):
            for measured in MEASURED.values():
                measured().add_to_papers(path)
        found = evaluation.read_lines(path)
        self.assertEqual(len(found), sum(len(measured().points()) for measured in MEASURED.values()))

    def test_none_is_left_of_what_was_no_point(self):
        """A file of no lines, and not of an empty one, which no reader takes for JSON."""
        path = self.folder / "papers.jsonl"
        Others(others_test.CONTEXT, []).add_to_papers(path)
        self.assertEqual(path.read_text(encoding="utf-8"), "")


class Papers(Files):
    """bench/run papers."""

    def test_nothing_has_been_measured(self):
        status, said = self.papers()
        self.assertEqual(status, 0, said)
        for name in papers.EVALUATIONS:
            self.assertRegex(said, f"not measured yet: .*; bench/run {name} measures it")
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_what_has_been_measured_is_drawn(self):
        for name, (file, _) in papers.EVALUATIONS.items():
            MEASURED[name]().write(self.folder / f"{file}.jsonl")
        status, said = self.papers()
        self.assertEqual(status, 0, said)
        for file, _ in papers.EVALUATIONS.values():
            self.assertIn(f"/{file}.svg", said)
            self.assertGreater((self.folder / f"{file}.svg").stat().st_size, 1000)
        self.assertEqual({one["paper"] for one in evaluation.read_lines(self.folder / "papers.jsonl")},
                         {"cores", "mpi-ios", "singh-graham-others"})
        # npb_test's are of 16 ranks and 9
        self.assertIn("not measured yet: Cores et al., 8 of 32 processes move; "
                      "bench/run npb --ranks 32 --moved 8 --add", said)

    def test_what_is_kept_is_drawn_where_nothing_was_measured(self):
        """The picture says that it was; what is measured here comes before it."""
        for name, (file, _) in papers.EVALUATIONS.items():
            MEASURED[name]().write(self.folder / f"{file}.jsonl")
        status, said = self.papers("--keep")
        self.assertEqual(status, 0, said)
        self.assertEqual(said.count("kept: "), len(papers.EVALUATIONS))
        self.assertEqual(list(self.folder.glob("*.svg")), [])
        for file in ("npb", "agents", "policies"):
            (self.folder / f"{file}.jsonl").unlink()
        status, said = self.papers()
        self.assertEqual(status, 0, said)
        self.assertEqual(said.count("as it was kept: not measured here"), 3)
        for name, (file, _) in papers.EVALUATIONS.items():
            with self.subTest(name):
                kept = self.folder / f"kept/{file}.jsonl"
                self.assertEqual(KINDS[name].read(kept).lines, MEASURED[name]().lines)
                picture = (self.folder / f"{file}.svg").read_text(encoding="utf-8")
                self.assertEqual(", kept" in picture, file != "others")
        self.assertEqual({one["paper"] for one in evaluation.read_lines(self.folder / "papers.jsonl")},
                         {"cores", "mpi-ios", "singh-graham-others"})

    def test_what_names_a_host_or_is_bad_is_not_kept(self):
        self.write("npb.jsonl", "no JSON\n")
        self.write("others.jsonl", json.dumps({"context": {"disk": f"of {platform.node()}"}}) + "\n")
        self.write("policies.jsonl", "{}\n")
        mpi_ios_test.all_cases().write(self.folder / "agents.jsonl")
        status, said = self.papers("--keep")
        self.assertEqual(status, 1, said)
        self.assertIn("npb.jsonl: line 1 is no object of JSON", said)
        self.assertIn("others.jsonl: line 1 names this host", said)
        self.assertIn("policies.jsonl: the first line does not tell", said)
        self.assertEqual([path.name for path in (self.folder / "kept").iterdir()], ["agents.jsonl"])

    def test_what_the_repository_keeps_can_be_drawn(self):
        for name, (file, _) in papers.EVALUATIONS.items():
            kept = papers.MEASURED / f"{file}.jsonl"
            if kept.exists():
                with self.subTest(name):
                    self.assertTrue(KINDS[name].read(kept).context[evaluation.KEPT])

    def test_one_bad_file_does_not_keep_others_from_being_drawn(self):
        self.write("npb.jsonl", "no JSON\n")
        others_test.figures().write(self.folder / "others.jsonl")
        status, said = self.papers()
        self.assertEqual(status, 1, said)
        self.assertIn("npb.jsonl: line 1 is no object of JSON", said)
        self.assertIn("papers: bench/run npb has failed", said)
        self.assertTrue((self.folder / "others.svg").exists())
        self.assertNotIn("others has failed", said)

    def test_all_are_measured_and_one_fails(self):
        """Of stand-ins for the benchmarks."""
        said = self.folder / "said"
        run = self.write("run", f'#!/bin/sh\necho "$@" >>"{said}"\ncase $1 in npb) exit 1 ;; '
                                f'policies) exit {EXIT_SKIPPED} ;; esac\n')
        run.chmod(0o755)
        with unittest.mock.patch.object(papers, "RUN", run), \
                unittest.mock.patch("sys.argv", ["papers", "--measure", "--quick", "--mpich", "/there",
                                                 "--folder", str(self.folder)]), \
                unittest.mock.patch("sys.stdout"), unittest.mock.patch("sys.stderr") as error:
            self.assertEqual(papers.main(), 1)
        errors = "".join(call.args[0] for call in error.write.call_args_list)
        self.assertIn("bench/run npb has failed", errors)
        self.assertNotIn("policies", errors)
        calls = said.read_text(encoding="utf-8").splitlines()
        self.assertEqual([line.split()[0] for line in calls], list(papers.EVALUATIONS))
        for line in calls:
            self.assertRegex(line, r"--papers \S+/papers.jsonl --mpich /there --quick( --moved rank clique)?$")
        self.assertIn("--moved rank clique", calls[-1])

    def test_each_benchmark_takes_the_words(self):
        """Those that papers gives it, and --quick, as its own --help says."""
        for name in papers.EVALUATIONS:
            said = subprocess.run([papers.RUN, name, "--help"], stdout=subprocess.PIPE, text=True,
                                  timeout=60, check=True).stdout
            for word in ("--again", "--out", "--picture", "--papers", "--mpich", "--quick"):
                with self.subTest(name, word=word):
                    self.assertRegex(said, rf"\s{word}\b")


if __name__ == "__main__":
    unittest.main()
