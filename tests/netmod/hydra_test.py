# SPDX-License-Identifier: BSD-3-Clause
"""Test parts of Hydra as our patches leave them, by programs in hydra/ that are built with them.

exit status: 0 all right; 1 not; 77 there is no source of MPICH here
"""
import pathlib
import subprocess
import sys
import tempfile

from tests.netmod import patches

HERE = pathlib.Path(__file__).resolve().parent
DEMUX = "src/pm/hydra/tools/demux"
# (program of hydra/, sources it is built with, headers these need)
PROGRAMS = [("demux_test.c", [f"{DEMUX}/demux.c", f"{DEMUX}/demux_poll.c"],
             [f"{DEMUX}/demux.h", f"{DEMUX}/demux_internal.h"])]


def main():
    tarball = patches.kept_tarball()
    if not tarball.exists():
        print(f"hydra_test: no {tarball} (mpi-ch4-netmod/build fetches it)", file=sys.stderr)
        return patches.EXIT_SKIP
    series = sorted(patches.PATCHES.glob("*-hydra-*.patch"))
    for program, sources, headers in PROGRAMS:
        with tempfile.TemporaryDirectory(prefix="zc-hydra-") as scratch:
            wrong = patches.apply(series, tarball, scratch, [*sources, *headers])
            if wrong:
                print("\n".join(wrong), file=sys.stderr)
                return 1
            path = pathlib.Path(scratch)
            subprocess.run(["gcc", "-g", "-fsanitize=address,undefined", "-Wall", "-Wno-unused",
                            f"-I{HERE}/hydra", f"-I{path / DEMUX}", HERE / "hydra" / program,
                            *(path / source for source in sources), "-o", path / "test"],
                           check=True)
            if subprocess.run([path / "test"], stdin=subprocess.DEVNULL, check=False).returncode:
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
