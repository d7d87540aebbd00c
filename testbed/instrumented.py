# SPDX-License-Identifier: BSD-3-Clause
"""Programs that zcm-instrument(1) puts a safe point into, compiled for a Stage.

The sources of programs that know nothing of libzcm are in tests/instrument/programs. Those below npb/
and three of the others are in the manner of the NAS Parallel Benchmarks.
"""
import pathlib
import subprocess

from testbed import mpi
from testbed.migration import SAID, TOP
from testbed.outcome import Skip, check

PROGRAMS = TOP / "tests/instrument/programs"
FLAGS = ["-std=gnu11", "-O2", "-g", "-Wall", "-Wextra", "-Wno-stringop-overflow"]
PACED = TOP / "tests/migrate/paced.c"
_NPB = PROGRAMS / "npb"


class Npb:
    """A program in the manner of one of NPB: its sources, and the loop of its steps."""

    def __init__(self, sources, loop):
        self.sources = sources
        self._loop = loop   # how the line begins, in the first of them

    def loop(self):
        """FILE:LINE, for --loop."""
        lines = self.sources[0].read_text(encoding="utf-8").splitlines()
        found = [number for number, line in enumerate(lines, 1)
                 if line.strip().startswith(self._loop)]
        check(len(found) == 1, f"'{self._loop}' begins {len(found)} lines of {self.sources[0]}")
        return f"{self.sources[0].name}:{found[0]}"


NPB = {
    "bt": Npb([_NPB / "bt.c", _NPB / "cells.c"], "for (step = 0;"),
    "cg": Npb([PROGRAMS / "cg/cg.c", PROGRAMS / "cg/sparse.c"], "for (it = 0; it < what.outer"),
    "ep": Npb([_NPB / "ep.c"], "for (round = 0;"),
    "ft": Npb([PROGRAMS / "fourier/fourier.c", PROGRAMS / "fourier/fft.c"], "for (iter = 1;"),
    "is": Npb([_NPB / "is.c"], "for (step = 0;"),
    "lu": Npb([_NPB / "lu.c"], "for (step = 0;"),
    "mg": Npb([PROGRAMS / "multigrid/multigrid.c", PROGRAMS / "multigrid/grid.c"],
              "for (step = 0;"),
    "sp": Npb([_NPB / "sp.c", _NPB / "cells.c"], "for (step = 0;"),
}


def tool_of(stage):
    """zcm-instrument of the stage's build; Skip if it has none."""
    tool = stage.library / "bin/zcm-instrument"
    if not tool.exists():
        raise Skip("zcm-instrument is not built: it needs libclang-14-dev and llvm-14-dev")
    return tool


def compiled(stage, place, sources, *more):
    """The program PLACE/program, without a warning."""
    done = subprocess.run([mpi.find_tool(stage.prefix, "mpicc", stage.family), *FLAGS,
                           *map(str, sources), *map(str, more), "-lm", "-o", str(place / "program")],
                          capture_output=True, text=True, check=False)
    check(done.returncode == 0 and "warning" not in done.stderr, "it does not compile cleanly",
          done.stderr[-SAID:])
    return str(place / "program")


def instrumented(stage, sources, *options, linked=(), replaced=None, defines=()):
    """The program of SOURCES with a safe point, and with the sources LINKED.

    REPLACED: a text that is there once, and another for it. DEFINES: compiler's options.
    """
    place = pathlib.Path(stage.new_directory())
    done = subprocess.run([str(tool_of(stage)), "--mpicc",
                           mpi.find_tool(stage.prefix, "mpicc", stage.family), "-o", str(place),
                           *options, *map(str, sources), "--", "-std=gnu11", *defines],
                          capture_output=True, text=True, check=False)
    check(done.returncode == 0, f"zcm-instrument: status {done.returncode}",
          (done.stdout + done.stderr)[-SAID:])
    if replaced:
        texts = {path: path.read_text(encoding="utf-8") for path in place.glob("*.c")}
        found = [path for path, text in texts.items() if text.count(replaced[0]) == 1]
        check(len(found) == 1, f"'{replaced[0]}' is in {len(found)} sources")
        found[0].write_text(texts[found[0]].replace(*replaced), encoding="utf-8")
    library = stage.library / f"lib/libzcm-{stage.family}.so"
    return compiled(stage, place, sorted(place.glob("*.c")), f"-I{sources[0].parent}",
                    f"-I{TOP}/migrate/include", *defines, *linked, "-Wl,--no-as-needed", library)
