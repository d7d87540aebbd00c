#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Does each component include only what the table in CONTRIBUTING.md allows?

A component is a folder of that table. Of another one it may include what lies below include/ or
uapi/, and only if the table says that it may use it. All of base/ and control/ is for others.
An include that names no file of the tree is the system's, or a library's.
"""
import argparse
import pathlib
import re
import subprocess
import sys

TOP = pathlib.Path(__file__).resolve().parents[2]
SHARED = {"base", "control"}    # all of them is for others
OFFERED = {"include", "uapi"}
SOURCES = {".c", ".h", ".cpp"}
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.MULTILINE)
ROW = re.compile(r"^\| `([\w-]+)/` \|[^|]*\|([^|]*)\|$", re.MULTILINE)


def allowed_by(page):
    """{component: those it may use}, from the table of PAGE."""
    return {name: set(re.findall(r"`([\w-]+)/`", uses)) for name, uses in ROW.findall(page)}


def offered(path):
    """By what names others may include PATH, a file of a component relative to the top."""
    parts = path.parts
    if parts[0] in SHARED:
        return {path.name}
    for at, part in enumerate(parts[:-1]):
        if part in OFFERED:
            return {"/".join(parts[at + 1:])}
    return set()


class Tree:
    """The components' sources, and by what names they can be included."""

    def __init__(self, files, components):
        self.files = [path for path in map(pathlib.PurePath, files)
                      if path.parts[0] in components and path.suffix in SOURCES]
        self.offers = {}        # name: components that offer it
        self.own = {}           # component: names that its files may mean one of its own by
        self.private = {}       # base name: components that have a file of that name for themselves
        for path in self.files:
            component = path.parts[0]
            names = offered(path)
            for name in names:
                self.offers.setdefault(name, set()).add(component)
            own = self.own.setdefault(component, set())
            own.update("/".join(path.parts[at:]) for at in range(1, len(path.parts)))
            if path.suffix == ".h" and not names:
                self.private.setdefault(path.name, set()).add(component)

    def target(self, component, name):
        """(the component that an include of NAME by COMPONENT means, whether it is offered);
        None: none of them."""
        plain = name.rpartition("../")[2]
        if plain in self.own[component]:
            return component, True
        if plain in self.offers:
            return min(self.offers[plain]), True
        base = plain.rpartition("/")[2]
        if base in self.private and ("/" not in plain or name.startswith("..")):
            return min(self.private[base]), False
        return None


def faults(tree, allowed, read):
    """A line for each include that is not allowed. READ: path -> text"""
    found = []
    for path in tree.files:
        component = path.parts[0]
        for name in INCLUDE.findall(read(path)):
            meant = tree.target(component, name)
            if meant is None or meant[0] == component:
                continue
            other, is_offered = meant
            if not is_offered:
                found.append(f"{path}: {name} is a private header of {other}/")
            elif other not in allowed[component]:
                found.append(f"{path}: {name} is of {other}/, which {component}/ may not use")
    return found


def circle(allowed):
    """Components that use each other in a circle, or []."""
    done = set()

    def visit(name, way):
        if name in way:
            return way[way.index(name):] + [name]
        if name in done:
            return []
        for other in sorted(allowed[name]):
            if way_back := visit(other, way + [name]):
                return way_back
        done.add(name)
        return []

    for name in allowed:
        if found := visit(name, []):
            return found
    return []


def main():
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
                            epilog="exit status: 0 yes, 1 no").parse_args()
    allowed = allowed_by((TOP / "CONTRIBUTING.md").read_text(encoding="utf-8"))
    allowed = {name: uses for name, uses in allowed.items() if (TOP / name).is_dir()}
    listed = subprocess.run(["git", "-C", TOP, "ls-files", "-co", "--exclude-standard"],
                            capture_output=True, text=True, check=False)
    # An exported tree has no git: then all files there are.
    files = listed.stdout.splitlines() if listed.returncode == 0 else \
        [str(path.relative_to(TOP)) for name in allowed for path in (TOP / name).rglob("*")]
    tree = Tree([name for name in files if (TOP / name).is_file()], allowed)
    found = faults(tree, allowed, lambda path: (TOP / path).read_text(encoding="utf-8"))
    if way := circle(allowed):
        found.append("CONTRIBUTING.md: a circle: " + " -> ".join(way))
    unknown = {other for uses in allowed.values() for other in uses if other not in allowed}
    found += [f"CONTRIBUTING.md: no such component: {name}/" for name in sorted(unknown)]
    print("\n".join(found) or f"{len(tree.files)} files of {len(allowed)} components: as the table says")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
