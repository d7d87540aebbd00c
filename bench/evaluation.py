# SPDX-License-Identifier: BSD-3-Clause
"""What a benchmark has measured of a paper: lines of JSON, of which figures are drawn once more at any time."""
import datetime
import json
import os
import pathlib
import platform

from testbed.outcome import Fail

TOP = pathlib.Path(__file__).resolve().parents[1]
KEPT = "kept"       # in the context of what was measured on another machine, or at another time


def context(**more):
    """Of a measurement that ends now."""
    now = datetime.datetime.now(datetime.timezone.utc)
    return {"kernel": platform.release(), "cpus": os.cpu_count(), "load": round(os.getloadavg()[0], 1),
            "date": now.isoformat(timespec="seconds"), **more}


def read_lines(path):
    """The objects that PATH has, one a line; Fail where one of the lines is something else."""
    found = []
    for number, line in enumerate(pathlib.Path(path).read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip():
            continue
        try:
            one = json.loads(line)
        except ValueError:
            one = None
        if not isinstance(one, dict):
            raise Fail(f"{path}: line {number} is no object of JSON")
        found.append(one)
    return found


def write_lines(path, lines):
    """PATH is as it was, or has all of LINES."""
    out = pathlib.Path(path)
    out.parent.mkdir(parents=True, exist_ok=True)
    new = out.with_name(out.name + ".new")
    new.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    os.replace(new, out)


class Evaluation:
    """CONTEXT: of the measurement; LINES: its figures. What differs from benchmark to benchmark, each
    says itself: table(), draw(PATH), points(), and is_ours(POINT)."""

    NAME = ""           # of bench/run
    BENCH = ""          # in each line
    KEYS = ("case", "impl", "metric")   # that each line has
    CONTEXT = ()        # what the context has beside what context() gives
    SAME = ()           # what of the context is one for all figures of a file

    def __init__(self, about, lines):
        self.context, self.lines = about, lines

    @classmethod
    def read(cls, path):
        if not pathlib.Path(path).exists():
            raise Fail(f"{path} is not there: nothing has been measured; bench/run {cls.NAME} does it")
        lines = read_lines(path)
        about = lines[0].get("context") if lines else None
        if not isinstance(about, dict) or not all(key in about for key in ("cpus", "load", "kernel",
                                                                           "date", *cls.CONTEXT)):
            raise Fail(f"{path}: the first line does not tell how it was measured")
        for number, line in enumerate(lines[1:], 2):
            if line.get("bench") != cls.BENCH or not all(key in line for key in cls.keys_of(line)):
                raise Fail(f"{path}: line {number} is no figure of bench/run {cls.NAME}")
        return cls(about, lines[1:])

    @classmethod
    def keys_of(cls, _line):
        return cls.KEYS

    @classmethod
    def before(cls, options, about=None):
        """What OUT has, for what is measured now to be added to; None if it is not to be. Fail where
        ABOUT, of what is measured now, is not the SAME: there is one context for all of a file."""
        if not options.add or not pathlib.Path(options.out).exists():
            return None
        found = cls.read(options.out)
        for key in cls.SAME:
            there, now = found.context.get(key), about[key]
            if there != now:
                raise Fail(f"{options.out} has {key} {'unknown' if there is None else there}, and {key} "
                           f"{now} cannot be added to it; --out names another file")
        return found

    def write(self, path):
        write_lines(path, [{"context": self.context}, *self.lines])

    def add_to_papers(self, path):
        """Replaces the points of this evaluation there; those of others stay."""
        before = read_lines(path) if pathlib.Path(path).exists() else []
        write_lines(path, [*(one for one in before if not self.is_ours(one)), *self.points()])

    def machine(self):
        about = self.context
        return (f"{about['cpus']} processors, load {about['load']}, Linux {about['kernel']}, "
                f"{about['date'][:10]}{', kept' if about.get(KEPT) else ''}")

    def missing(self):
        """What of the paper has not been measured, and how it is: [(what, command)]."""
        return []

    def table(self):
        raise NotImplementedError

    def draw(self, path):
        raise NotImplementedError

    def points(self):
        raise NotImplementedError

    def is_ours(self, point):
        raise NotImplementedError


def add_options(parser, name):
    """Where the files of the evaluation NAME are, which is measured or drawn again."""
    parser.add_argument("--again", action="store_true",
                        help="measure nothing: table, picture and papers.jsonl from OUT")
    parser.add_argument("--out", metavar="FILE", default=str(TOP / f"out/{name}.jsonl"))
    parser.add_argument("--picture", metavar="FILE", default=str(TOP / f"out/{name}.svg"))
    parser.add_argument("--papers", metavar="FILE", default=str(TOP / "out/papers.jsonl"),
                        help="its lines of this evaluation are replaced")


def show(kind, options):
    """Table, picture and points of what OPTIONS.out has, an Evaluation of this KIND."""
    found = kind.read(options.out)
    print(found.table())
    found.draw(options.picture)
    found.add_to_papers(options.papers)
    for what, command in found.missing():
        print(f"not measured yet: {what}; {command} measures it")
    print(f"\n{options.picture}\n{options.out}", flush=True)
