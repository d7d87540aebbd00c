# SPDX-License-Identifier: BSD-3-Clause
"""Are the ports of examples what docs/migration.md says of them?"""
import pathlib
import re
import subprocess
import unittest

TOP = pathlib.Path(__file__).resolve().parents[2]
EXAMPLES = TOP / "examples"


def lines_of(path):
    return path.read_text(encoding="utf-8").splitlines()


def difference(plain, ported):
    """The lines that diff marks with + and -."""
    done = subprocess.run(["diff", "-U0", EXAMPLES / plain, EXAMPLES / ported],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr or "they are the same"
    return [line for line in done.stdout.splitlines()[2:] if line[0] in "+-"]


class Ports(unittest.TestCase):
    def setUp(self):
        text = (TOP / "docs/migration.md").read_text(encoding="utf-8")
        self.section = text.split("\n## Porting a program\n")[1].split("\n## ")[0]

    def test_lines_are_counted(self):
        rows = re.findall(r"^\| `(\w+\.c)` \| `(\w+\.c)` \| (\d+) \| (\d+) \| (\d+) \|$",
                          self.section, re.MULTILINE)
        self.assertEqual({row[1] for row in rows},
                         {path.name for path in EXAMPLES.glob("*_zcm.c")})
        for plain, ported, *numbers in rows:
            changes = difference(plain, ported)
            signs = [line[0] for line in changes]
            self.assertEqual([*map(int, numbers)], [len(lines_of(EXAMPLES / plain)),
                                                    signs.count("+"), signs.count("-")], ported)

    def test_the_diff_is_that_of_the_files(self):
        shown = self.section.split("```diff\n")[1].split("\n```")[0].splitlines()
        self.assertEqual([line for line in shown if line[0] in "+-"],
                         difference("spectrum.c", "spectrum_zcm.c"))
        plain = lines_of(EXAMPLES / "spectrum.c")
        for line in shown:
            if line[0] == " " and line != " ...":
                self.assertIn(line[1:], plain)

    def test_a_library_is_not_changed(self):
        for name in ("transform.c", "transform.h"):
            self.assertNotIn("zcm", (EXAMPLES / name).read_text(encoding="utf-8"))
            self.assertIn("MPI_COMM_WORLD", (EXAMPLES / name).read_text(encoding="utf-8"))


if __name__ == "__main__":
    unittest.main()
