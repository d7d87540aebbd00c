# SPDX-License-Identifier: BSD-3-Clause
"""That dependencies.py finds what it is there to find."""
import unittest

from tests.house import dependencies

TABLE = """
| folder | is | may use |
|---|---|---|
| `base/` | shared | |
| `low/` | a library | `base/` |
| `high/` | a tool | `base/`, `low/` |
"""


def faults(texts):
    """Of a tree with these {path: text}."""
    allowed = dependencies.allowed_by(TABLE)
    return dependencies.faults(dependencies.Tree(texts, allowed), allowed,
                               lambda path: texts[str(path)])


class DependenciesTest(unittest.TestCase):
    def test_the_table_is_read(self):
        self.assertEqual(dependencies.allowed_by(TABLE),
                         {"base": set(), "low": {"base"}, "high": {"base", "low"}})

    def test_what_is_offered_may_be_included_downwards(self):
        self.assertEqual(faults({
            "base/crc.h": "", "low/include/low/low.h": '#include "crc.h"',
            "high/main.c": '#include <stdio.h>\n#include "low/low.h"\n#include "crc.h"\n'}), [])

    def test_upwards_is_a_fault(self):
        self.assertEqual(faults({"high/include/high/high.h": "",
                                 "low/a.c": '#include "high/high.h"'}),
                         ["low/a.c: high/high.h is of high/, which low/ may not use"])

    def test_a_private_header_is_a_fault_however_it_is_named(self):
        for name in "inside.h", "../low/src/inside.h":
            with self.subTest(name):
                (found,) = faults({"low/src/inside.h": "", "high/a.c": f"#  include <{name}>"})
                self.assertIn("private header of low/", found)

    def test_ones_own_file_comes_before_a_stranger_s_of_that_name(self):
        self.assertEqual(faults({"low/src/plan.h": "", "high/src/plan.h": "",
                                 "high/src/a.c": '#include "plan.h"'}), [])

    def test_a_circle_is_found(self):
        self.assertEqual(dependencies.circle({"a": {"b"}, "b": {"c"}, "c": {"b"}}), ["b", "c", "b"])
        self.assertEqual(dependencies.circle({"a": {"b", "c"}, "b": {"c"}, "c": set()}), [])


if __name__ == "__main__":
    unittest.main()
