# SPDX-License-Identifier: BSD-3-Clause
"""What the targets of the Makefile leave of out/papers.jsonl, which several commands write to."""
import json
import pathlib
import shutil
import subprocess
import tempfile
import unittest

TOP = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = """#!/bin/sh
echo '{{"paper":"{paper}","point":"new"}}' >>out/papers.jsonl
"""


class Targets(unittest.TestCase):
    """Of a folder whose programs write one line each."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        shutil.copy(TOP / "Makefile", self.folder)
        programs = self.folder / "build/release/bin"
        programs.mkdir(parents=True)
        (self.folder / "out").mkdir()
        (self.folder / "bench").mkdir()
        run = self.folder / "bench/run"
        run.write_text("#!/bin/sh\necho \"$@\" >>out/run\nexit 0\n", encoding="utf-8")
        run.chmod(0o755)
        for name, text in (("figures", PROGRAM.format(paper="singh-graham")),
                           ("freitag", PROGRAM.format(paper="freitag")),
                           ("bench_predict", "#!/bin/sh\n")):
            (programs / name).write_text(text, encoding="utf-8")
            (programs / name).chmod(0o755)
        self.lines = self.folder / "out/papers.jsonl"

    def make(self, target):
        """The points of each paper, once TARGET has been made of what is built."""
        subprocess.run(["make", "-s", "-o", "checks", target], cwd=self.folder, check=True)
        points = {}
        for line in self.lines.read_text(encoding="utf-8").splitlines():
            one = json.loads(line)
            points.setdefault(one["paper"], []).append(one["point"])
        return points

    def write(self):
        """As bench/run npb and policies do, with a space, and as the programs, without."""
        with self.lines.open("w", encoding="utf-8") as file:
            for paper in ("mpi-ios", "cores"):
                file.write(json.dumps({"paper": paper, "point": "old"}) + "\n")
            for paper in ("singh-graham", "freitag"):
                file.write(json.dumps({"paper": paper, "point": "old"}, separators=(",", ":")) + "\n")

    def test_papers_keeps_what_others_have_measured(self):
        self.write()
        for _ in range(2):
            self.assertEqual(self.make("papers"), {"mpi-ios": ["old"], "cores": ["old"],
                                                   "singh-graham": ["new"], "freitag": ["new"]})

    def test_papers_begins_with_none(self):
        self.assertEqual(self.make("papers"), {"singh-graham": ["new"], "freitag": ["new"]})

    def test_papers_draws_what_has_been_measured(self):
        self.make("papers")
        self.assertEqual((self.folder / "out/run").read_text(encoding="utf-8"), "papers\n")

    def test_bench_papers_measures_and_draws(self):
        """What is computed comes first; where a measurement fails, make fails."""
        build = self.folder / "mpi-ch4-netmod/build"
        build.parent.mkdir()
        build.write_text("#!/bin/sh\necho /prefix\n", encoding="utf-8")
        build.chmod(0o755)
        run = self.folder / "bench/run"
        run.write_text(run.read_text(encoding="utf-8").replace("exit 0", 'case "$*" in *--measure*) '
                                                               "exit 1 ;; esac"), encoding="utf-8")
        done = subprocess.run(["make", "-s", "-o", "checks", "-o", "mpich", "bench-papers", "QUICK=yes"],
                              cwd=self.folder, stderr=subprocess.DEVNULL, check=False)
        self.assertEqual((self.folder / "out/run").read_text(encoding="utf-8"),
                         "papers\npapers --measure --mpich /prefix --quick\n")
        self.assertNotEqual(done.returncode, 0)

    def test_bench_predict_has_the_table_of_freitag(self):
        self.write()
        self.assertEqual(self.make("bench-predict"), {"mpi-ios": ["old"], "cores": ["old"],
                                                      "singh-graham": ["old"], "freitag": ["new"]})


if __name__ == "__main__":
    unittest.main()
