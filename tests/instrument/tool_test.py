#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""zcm-instrument: its options, exit statuses and JSON; programs that it has to refuse, and why.

usage: tool_test TOOL
exit status: 77 there is no mpicc of MPICH
"""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
OPENMPI = shutil.which("mpicc.openmpi")
MPICC = shutil.which("mpicc.mpich") or shutil.which("mpicc")
TOOL = None
REFUSED = {
    "workers": [("workers.c:57", "ranks may pass it in different numbers")],
    "pipeline": [("pipeline.c:14", "a request may be active that MPI_Irecv() has made")],
    "late": [("late.c:15", "could not decide whether a message is on its way"),
             ("late.c:17", "not known to be sent in the same iterations of it: its tag is 1")],
    "journal": [("journal.c:14", "a file may be open")],
    "variant": [("variant.c:16", "is a union with pointers"),
                ("variant.c:27", "a pointer becomes a number"),
                ("variant.c:30", "a number becomes a pointer")],
    "window": [("window.c:14", "a window may exist")],
}


def run(*words, mpicc=None):
    return subprocess.run([TOOL, "--mpicc", mpicc or MPICC, *map(str, words)], capture_output=True, text=True,
                          check=False)


def all_findings(report):
    return report["refused"] + [one for loop in report["loops"] for one in loop["refused"]]


class Refused(unittest.TestCase):
    def test_programs(self):
        """Each is refused, with file, line and reason, and nothing is written."""
        for name, expected in REFUSED.items():
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                done = run("--json", "-o", folder, HERE / f"refused/{name}.c")
                self.assertIn(done.returncode, (1, 4), done.stdout + done.stderr)
                report = json.loads(done.stdout)
                self.assertFalse(report["done"])
                for place, reason in expected:
                    self.assertTrue(any(one["place"] == place and reason in one["reason"]
                                        for one in all_findings(report)),
                                    f"{place}: {reason}: {done.stdout}")
                self.assertEqual(list(pathlib.Path(folder).iterdir()), [])

    def test_a_named_loop_is_refused_for_its_reasons(self):
        done = run("--dry-run", "--loop", "journal.c:15", HERE / "refused/journal.c")
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("journal.c:16: rand(): random numbers' state", done.stdout)
        self.assertIn("journal.c:14: a file may be open", done.stdout)
        self.assertIn("would overwrite it", done.stdout)

    def test_threads_of_openmp(self):
        done = run("--dry-run", HERE / "refused/threads.c", "--", "-fopenmp")
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("threads.c:11: threads of OpenMP do not move", done.stdout)


class Options(unittest.TestCase):
    wave = HERE / "programs/wave.c"

    def test_what_is_written(self):
        with tempfile.TemporaryDirectory() as folder:
            place = pathlib.Path(folder)
            done = run("-o", place / "moving.c", self.wave)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertEqual(sorted(path.name for path in place.iterdir()),
                             ["moving.c", "zcm_state.c", "zcm_state.h"])
            self.assertIn("zcm_safe_point()", (place / "moving.c").read_text(encoding="utf-8"))

    def test_in_place(self):
        with tempfile.TemporaryDirectory() as folder:
            source = pathlib.Path(shutil.copy(self.wave, folder))
            before = source.read_text(encoding="utf-8")
            self.assertEqual(run(source).returncode, 2)
            self.assertEqual(run("--dry-run", source).returncode, 0)
            self.assertEqual(source.read_text(encoding="utf-8"), before)
            self.assertEqual(run("--in-place", source).returncode, 0)
            self.assertNotEqual(source.read_text(encoding="utf-8"), before)

    def test_json(self):
        report = json.loads(run("--json", "--dry-run", self.wave).stdout)
        self.assertTrue(report["done"])
        chosen = [loop for loop in report["loops"] if loop["chosen"]]
        self.assertEqual([loop["function"] for loop in chosen], ["main"])
        names = [one["name"] for one in report["registered"]]
        self.assertIn("main.step", names)
        self.assertNotIn("main.energy", names)      # given a value in each iteration

    def test_notes(self):
        folder = HERE / "programs/md"
        report = json.loads(run("--json", "--dry-run", *sorted(folder.glob("*.c"))).stdout)
        self.assertTrue(any("clock" in note["reason"] for note in report["notes"]), report["notes"])

    def test_strict(self):
        """What is assumed of messages is reported, and refused if it is to be."""
        folder = HERE / "programs/queue"
        sources = sorted(folder.glob("*.c"))
        report = json.loads(run("--json", "--dry-run", *sources).stdout)
        self.assertTrue(report["done"])
        reason = "how often it is sent and received is not compared"
        self.assertTrue(any(reason in one["reason"] for one in report["assumed"]), report["assumed"])
        self.assertTrue(any(loop["chosen"] and loop["assumed"] == report["assumed"]
                            for loop in report["loops"]))
        self.assertIn("assumed:\n  queue.c:", run("--dry-run", *sources).stdout)
        done = run("--json", "--dry-run", "--strict", *sources)
        self.assertEqual(done.returncode, 4, done.stdout)
        self.assertIn(reason, str(all_findings(json.loads(done.stdout))))
        report = json.loads(run("--json", "--dry-run", "--strict", self.wave).stdout)
        self.assertTrue(report["done"])
        self.assertEqual(report["assumed"], [])

    @unittest.skipUnless(OPENMPI, "there is no mpicc.openmpi (libopenmpi-dev)")
    def test_headers_of_openmpi(self):
        """There handles are pointers to types that are not complete: they are known by name."""
        sources = sorted((HERE / "programs/shallow").glob("*.c"))
        by_mpicc = []
        for mpicc in (MPICC, OPENMPI):
            done = run("--json", "--dry-run", *sources, mpicc=mpicc)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            by_mpicc.append([one["name"] for one in json.loads(done.stdout)["registered"]])
        self.assertEqual(by_mpicc[0], by_mpicc[1])

    def test_statuses(self):
        self.assertEqual(run("--dry-run", "/nowhere.c").returncode, 2)
        self.assertEqual(run("--dry-run", "--in-place", self.wave).returncode, 2)
        self.assertEqual(run("--dry-run", "--loop", "wave.c:1", self.wave).returncode, 1)
        with tempfile.TemporaryDirectory() as folder:
            broken = pathlib.Path(folder) / "broken.c"
            broken.write_text("int main(void) { return x; }\n", encoding="utf-8")
            self.assertEqual(run("--dry-run", broken).returncode, 3)
            idle = pathlib.Path(folder) / "idle.c"
            idle.write_text("int main(void) { return 0; }\n", encoding="utf-8")
            self.assertEqual(run("--dry-run", idle).returncode, 4)
            self.assertEqual(run("-o", "/proc/nowhere", self.wave).returncode, 5)


if __name__ == "__main__":
    TOOL = sys.argv.pop(1)
    if not MPICC:
        print("tool_test: skipped: no mpicc")
        sys.exit(77)
    unittest.main()
