#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Check the patches to MPICH.

usage: patches.py fields|apply [--patches DIR] [--tarball FILE]

  fields  each begins with the fields of Debian's DEP-3, and says whether it mends MPICH or is
          there for zc; its number says the same; what refers to a patch refers to one there is;
          what mends MPICH has no names of zc's; no patch removes what another has introduced
  apply   one after the other they apply to MPICH's source, at the lines that they name; those that
          mend MPICH come first, so they apply without the others. Whether MPICH with these alone
          can be compiled is not checked: that takes too long

--patches DIR   default: mpi-ch4-netmod/patches
--tarball FILE  MPICH's source (default: the one that mpi-ch4-netmod/build keeps)

exit status: 0 all right; 1 not, and why; 2 usage; 77 apply: there is no source here
"""
import datetime
import os
import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile

TOP = pathlib.Path(__file__).resolve().parents[2]
PATCHES = TOP / "mpi-ch4-netmod/patches"
TARBALL = "mpich_4.0.2.orig.tar.xz"
EXIT_SKIP = 77
ALLOWED = {
    "Description": re.compile(r"[a-z0-9]+: \S.*[^.]"),
    "Origin": re.compile(r"vendor|upstream\b.*|backport\b.*|other\b.*"),
    "Forwarded": re.compile(r"no|not-needed|https://\S+"),
    "Needed-by": re.compile(r"zc|fix"),
    "Last-Update": re.compile(r"\d{4}-\d\d-\d\d"),
}
FIRST_FOR_ZC = 100      # mends come first: they need nothing of zc's
OF_ZC = re.compile(r"\bMPIDI_ZC\w*|\bzc_\w+|\b(?:mpidu|MPIDU)_(?:device_gate|DEVICE_GATE)\w*")
# At the begin of a line: a macro, or a function's name in its definition or declaration.
NAME = re.compile(r"#\s*define\s+(\w+)|[A-Za-z_][\w\s*]*?\b(\w+)\s*\(")
FIELD = re.compile(r"([A-Z][A-Za-z-]*): (.*)")
REFERRING = ["*.md", "mpi-ch4-netmod/*", "tests/*", "libzc/*", "predictor/*", "migrate/*"]


def read_fields(text):
    """({field: [first line, further ...]}, what is wrong) of what is before the diff."""
    fields, wrong, last = {}, [], None
    head, separator, _ = text.partition("\n---\n")
    if not separator:
        return fields, ["no line '---' after the fields"]
    for line in head.splitlines():
        found = FIELD.fullmatch(line)
        if found and found[1] in fields:
            wrong.append(f"{found[1]} twice")
        elif found:
            last = fields[found[1]] = [found[2]]
        elif line.startswith(" ") and line.strip() and last:
            last.append(line[1:])
        else:
            wrong.append(f"neither a field nor the rest of one: '{line}'")
    return fields, wrong


def check_fields(path):
    fields, wrong = read_fields(path.read_text())
    for name, allowed in ALLOWED.items():
        if name not in fields:
            wrong.append(f"no {name}")
        elif not allowed.fullmatch(fields[name][0]):
            wrong.append(f"{name}: {fields[name][0]}")
    wrong += [f"unknown field {name}" for name in fields if name not in ALLOWED]
    if wrong:
        return wrong
    if len(fields["Description"]) < 2:
        wrong.append("Description says what, but not why")
    try:
        datetime.date.fromisoformat(fields["Last-Update"][0])
    except ValueError as error:
        wrong.append(f"Last-Update: {error}")
    number = re.fullmatch(r"(\d{4})-[a-z0-9-]+\.patch", path.name)
    if not number:
        wrong.append("its name is not NNNN-words.patch")
    elif (int(number[1]) >= FIRST_FOR_ZC) != (fields["Needed-by"][0] == "zc"):
        wrong.append(f"Needed-by: {fields['Needed-by'][0]}, but mends are below {FIRST_FOR_ZC:04} "
                     "and what zc needs is not")
    return wrong


def check_references(numbers):
    """Lines that name a patch by a number that there is not."""
    listed = subprocess.run(["git", "ls-files", "-z", *REFERRING], cwd=TOP, capture_output=True,
                            text=True, check=False)
    wrong = []
    for name in filter(None, listed.stdout.split("\0")):
        path = TOP / name
        if path.suffix == ".patch" or not path.is_file() or path == pathlib.Path(__file__).resolve():
            continue
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
            wrong += [f"{name}:{number}: there is no patches/{found}"
                      for found in re.findall(r"patches/(\d{4})", line) if found not in numbers]
    return wrong


def changed(path):
    """(lines that the patch removes, lines that it adds)"""
    lines = path.read_text().partition("\n---\n")[2].splitlines()
    return tuple([line[1:] for line in lines if line.startswith(sign) and not
                  line.startswith((f"{sign * 3} a/", f"{sign * 3} b/"))] for sign in "-+")


def check_mend(path):
    """Names of zc's that a mend uses."""
    if int(path.name[:4]) >= FIRST_FOR_ZC:
        return []
    return [f"{path.name} mends MPICH, but uses {found}"
            for line in changed(path)[1] for found in OF_ZC.findall(line)]


def check_undone(patches):
    """Macros and functions that one patch introduces, and a later one removes."""
    wrong, introduced = [], {}
    for path in patches:
        removed, added = ({name[1] or name[2] for name in map(NAME.match, lines) if name}
                          for lines in changed(path))
        wrong += [f"{path.name} removes {name}, which {introduced[name]} introduces"
                  for name in sorted(removed - added) if name in introduced]
        introduced.update({name: path.name for name in added - removed})
    return wrong


def fields(patches):
    wrong = [f"{path.name}: {what}" for path in patches for what in check_fields(path)]
    wrong += [what for path in patches for what in check_mend(path)] + check_undone(patches)
    numbers = [path.name[:4] for path in patches]
    wrong += [f"two patches are {number}" for number in set(numbers) if numbers.count(number) > 1]
    return wrong + check_references(set(numbers))


def unpack(tarball, names, directory):
    """Only what the patches touch: unpacking all of it takes longer than all else."""
    wanted = {name: None for name in names}
    with tarfile.open(tarball) as archive:
        for member in archive:
            name = member.name.partition("/")[2]
            if name in wanted and member.isfile():
                target = directory / name
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(archive.extractfile(member).read())


def apply(patches, tarball, directory, others=()):
    """Patch what the patches touch, unpacked in DIRECTORY, and OTHERS; what is wrong."""
    touched = {name for path in patches
               for name in re.findall(r"^--- a/(\S+)", path.read_text(), re.MULTILINE)}
    unpack(tarball, touched.union(others), pathlib.Path(directory))
    for path in patches:
        done = subprocess.run(["patch", "-p1", "--fuzz=0", "--batch"], cwd=directory, text=True,
                              input=path.read_text(), capture_output=True, check=False)
        said = done.stdout + done.stderr
        if done.returncode != 0 or re.search(r"^Hunk .* offset", said, re.MULTILINE):
            return [f"{path.name}: {said.strip()}"]
    return []


def kept_tarball():
    cache = os.environ.get("ZC_CACHE_DIR") or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "zc")
    return pathlib.Path(cache) / "source" / TARBALL


def main(words):
    options = {"--patches": PATCHES, "--tarball": None}
    if "--help" in words or not words or words[0] not in ("fields", "apply"):
        print(__doc__)
        return 0 if "--help" in words else 2
    for name, value in zip(words[1::2], words[2::2]):
        if name not in options:
            print(f"patches.py: unknown option {name}", file=sys.stderr)
            return 2
        options[name] = pathlib.Path(value)
    patches = sorted(options["--patches"].glob("*.patch"))
    if not patches:
        print(f"patches.py: no patches in {options['--patches']}", file=sys.stderr)
        return 1
    if words[0] == "fields":
        wrong = fields(patches)
    else:
        tarball = options["--tarball"] or kept_tarball()
        if not tarball.exists():
            print(f"patches.py: no {tarball} (mpi-ch4-netmod/build fetches it)", file=sys.stderr)
            return EXIT_SKIP
        with tempfile.TemporaryDirectory(prefix="zc-patches-") as scratch:
            wrong = apply(patches, tarball, scratch)
    for what in wrong:
        print(f"patches.py: {what}", file=sys.stderr)
    if not wrong:
        print(f"{len(patches)} patches")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
