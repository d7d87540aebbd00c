# SPDX-License-Identifier: BSD-3-Clause
"""bench/run proof: what it makes of its figures, without a run."""
import json
import pathlib
import tempfile
import unittest
import xml.etree.ElementTree

from bench.mpi.settings import Setting
from bench.proof import measure, wave
from bench.proof.cases import CASES, LINKS
from bench.proof.truth import BestPeer, Truth


class TruthTest(unittest.TestCase):
    def test_a_fifth_of_the_gain(self):
        self.assertTrue(Truth((10, 10, 10), (8, 8, 8), (1.65, 1.65, 1.65)).ok)
        self.assertFalse(Truth((10, 10, 10), (8, 8, 8), (1.55, 1.55, 1.55)).ok)
        self.assertFalse(Truth((10, 10, 10), (8, 8, 8), (2.45, 2.45, 2.45)).ok)

    def test_or_two_per_cent_of_the_run(self):
        self.assertTrue(Truth((10,), (10,), (0.19,)).ok)
        self.assertFalse(Truth((10,), (10,), (0.21,)).ok)
        self.assertFalse(Truth((10,), (10.5,), (0,)).ok)   # a loss that was not forecast

    def test_the_medians_count_and_the_rounds_show_the_spread(self):
        truth = Truth((10, 12, 11), (5, 6, 11), (5, 1, 9))
        self.assertEqual(truth.gain_s, 5)
        self.assertEqual(truth.forecast_s, 5)
        self.assertEqual(truth.ratios, (1, 2))
        self.assertEqual(truth.json()["state"], "ok")
        json.dumps(truth.json())


class UnaskedTest(unittest.TestCase):
    def test_libraries_that_are_there(self):
        with tempfile.TemporaryDirectory() as prefix:
            (pathlib.Path(prefix) / "bin").mkdir()
            for tool in ("mpiexec", "mpicc"):
                path = pathlib.Path(prefix) / "bin" / tool
                path.touch(mode=0o755)
            found, absent = measure.unasked({"ofi": prefix, "openmpi": "/nonexistent"})
        self.assertEqual(found, ["ucx", "zc", "ofi", "edited", "forecast"])
        self.assertEqual(list(absent), ["openmpi"])
        self.assertIn("libopenmpi-dev", absent["openmpi"])

    def test_the_compiler_is_needed_too(self):
        with tempfile.TemporaryDirectory() as prefix:
            (pathlib.Path(prefix) / "bin").mkdir()
            (pathlib.Path(prefix) / "bin/mpiexec").touch(mode=0o755)
            found, absent = measure.unasked({"ofi": prefix, "openmpi": prefix})
        self.assertEqual(found, ["ucx", "zc", "edited", "forecast"])
        self.assertIn("mpicc", absent["ofi"])


class BestPeerTest(unittest.TestCase):
    def test_the_shortest_median_is_the_best_in_all_rounds(self):
        found = BestPeer({"ucx": {0: 10, 1: 12, 2: 11}, "ofi": {0: 8, 1: 9, 2: 30}},
                         {0: 8, 1: 6, 2: 5})
        self.assertEqual(found.name, "ofi")
        self.assertEqual(found.ratio, 1.5)
        self.assertEqual(found.ratios, (1, 6))
        json.dumps(found.json())

    def test_rounds_that_failed_are_left_out(self):
        found = BestPeer({"openmpi": {1: 9}}, {0: 3, 1: 6, 2: 6})
        self.assertEqual((found.ratio, found.ratios), (1.5, (1.5, 1.5)))
        self.assertEqual(BestPeer({"ofi": {0: 2}}, {1: 1}).ratios, (2, 2))


class CasesTest(unittest.TestCase):
    def test_arguments_for_every_link(self):
        for case in CASES.values():
            self.assertEqual(set(case.arguments), set(LINKS), case.name)
            for link in LINKS:
                self.assertIn("-r", case.words(link, quick=True))
        words = CASES["false-overlap"].words("10gbit", quick=False, edited=True)
        self.assertEqual(words[words.index("-k") + 1], "edited")


class WaveTest(unittest.TestCase):
    def test_picture(self):
        made = {"delay_ms": 100, "delayed": 1, "step": 1,
                "waits_ms": [[0, 0, 1], [0, 0, 0], [0, 100, 50]]}
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "wave.svg"
            wave.draw({"ucx": (made, "stock <&>"), "zc": (made, "zc")}, Setting("10gbit", "spare"), path)
            root = xml.etree.ElementTree.parse(path).getroot()
        cells = [each for each in root.iter("{http://www.w3.org/2000/svg}rect")
                 if each.get("fill-opacity")]
        self.assertEqual([each.get("fill-opacity") for each in cells], ["1.00", "0.50"] * 2)


if __name__ == "__main__":
    unittest.main()
