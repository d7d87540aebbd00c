# SPDX-License-Identifier: BSD-3-Clause
"""Places where calls come from, and which calls of them fail: all, some by chance, or a part."""
import bisect
import collections
import hashlib
import pathlib
import re
import subprocess

NAMING = 7  # frames by which preload.c tells places apart
ERRORS = ("no-memory", "io-error")
# What the netmod tries another way when it fails: that fails, too.
TRIED_AGAIN = ("ucp_am_send_nbx",)
EACH_UP_TO = 64  # calls at a place, of which each fails in a long run
OURS = re.compile(r"\bMPIDI_ZC_|\blanding_thread\b|\bzc_|\bzcp_|\bzc::")
KINDS = ("UCX", "ours", "MPICH's")

Target = collections.namedtuple(
    "Target", "case who function site nth calls frames error times next fatal")


def title(target):
    text = f"{target.case}:{target.who}:{target.function}:{target.site}:{target.nth}"
    if target.error != ERRORS[0]:
        text += f":{target.error}"
    if target.times != 1:
        text += ":for-good"
    if target.next:
        text += ":and-next"
    return text + (":fatal" if target.fatal else "")


class Library:
    """Names of a library's functions by offset."""

    def __init__(self, path):
        self.at, self.names = [], []
        for line in (self._symbols(path) or self._symbols(path, "-D")).splitlines():
            word = line.split(" ", 2)
            if len(word) == 3 and word[1] in "tTwWi":
                self.at.append(int(word[0], 16))
                self.names.append(re.sub(r"\(.*|\.(part|cold|isra|constprop)\..*", "", word[2]))

    @staticmethod
    def _symbols(path, *options):
        return subprocess.run(["nm", "-n", "--defined-only", "-C", *options, path], check=False,
                              capture_output=True, text=True).stdout.strip()

    def name(self, offset):
        behind = bisect.bisect_right(self.at, offset)
        return self.names[behind - 1] if behind else hex(offset)


class Frames:
    """Turns LIBRARY+OFFSET into names."""

    def __init__(self, prefix):
        self.libraries = {}
        for name in ("libmpi.so", "libzc.so", "libzcpredict.so", "libzclane.so"):
            for folder in ("lib", "lib64"):
                path = pathlib.Path(prefix) / folder / name
                if path.exists():
                    self.libraries[name] = Library(path.resolve())

    def name(self, frame):
        library, _, offset = frame.partition("+")
        known = self.libraries.get(library)
        # A return address may lie behind the end of a function that does not return.
        return known.name(int(offset, 16) - 1) if known else frame

    def describe(self, frames):
        """Innermost first; one name for a function that calls itself."""
        names = [name for name in map(self.name, frames) if not name.startswith("__wrap_")]
        return " < ".join(name for name, inner in zip(names, [None, *names]) if name != inner)


def numbers(calls):
    """Which of CALLS calls at a place fail in a long run."""
    some = set(range(1, min(calls, EACH_UP_TO) + 1)) | {max(calls, 1)}
    nth = 2 * EACH_UP_TO
    while nth < calls:
        some.add(nth)
        nth *= 2
    return sorted(some)


class Choice:
    """The runs that OPTIONS ask for, by SEED."""

    def __init__(self, options, frames, seed):
        self.options = options
        self.frames = frames
        self.seed = 0 if options.shard else seed

    def of(self, found):
        """From what all cases reach."""
        options = self.options
        runs = self.all_of(found) if options.long else self.each_chain_of(found)
        if options.through:
            runs = [one for one in runs if re.search(
                options.through, title(one) + " " + self.frames.describe(one.frames))]
        if options.shard:
            number, of = options.shard
            runs = [one for one in runs if self.lot(one) % of == number - 1]
        if options.sample:
            runs = self.sample([one for one in runs if one.calls > 0], options.sample)
        return runs

    @staticmethod
    def all_of(found):
        runs = []
        for one in found:
            runs += [one._replace(nth=nth) for nth in numbers(one.calls)]
            runs.append(one._replace(times=0))
            runs.append(one._replace(fatal=True))
            if one.function.startswith("ucp_"):
                runs.append(one._replace(error=ERRORS[1]))
            if one.function in TRIED_AGAIN:
                runs.append(one._replace(next=1))
        return runs

    def each_chain_of(self, found):
        """Each function once for each chain of callers that a case is the first to show."""
        first, runs = {}, []
        for one in found:
            chain = self.frames.describe(one.frames[:NAMING])
            first.setdefault((one.function, chain), []).append(one)
        for those in first.values():
            runs.append(min((one for one in those if one.case == those[0].case),
                            key=lambda one: (one.calls == 0, self.lot(one))))
            if runs[-1].function in TRIED_AGAIN:
                runs.append(runs[-1]._replace(next=1))
        return runs

    def lot(self, one):
        """A number by chance, the same for the same run and seed, whatever else there is."""
        # Not its place: that changes with each build.
        text = title(one._replace(site="")) + self.frames.describe(one.frames)
        return int.from_bytes(hashlib.sha256(f"{self.seed} {text}".encode()).digest()[:8], "big")

    def sample(self, runs, most):
        """In turn of each of KINDS, and within those of each case."""
        if len(runs) <= most:
            return runs
        left = {}
        for one in sorted(runs, key=self.lot):
            left.setdefault(self.kind_of(one), {}).setdefault(one.case, []).append(one)
        chosen = []
        while len(chosen) < most and left:
            for kind in [kind for kind in KINDS if kind in left]:
                case, those = next(iter(left[kind].items()))
                chosen.append(those.pop(0))
                del left[kind][case]
                if those:
                    left[kind][case] = those  # behind the other cases
                if not left[kind]:
                    del left[kind]
        return chosen[:most]

    def kind_of(self, one):
        if one.function.startswith("ucp_"):
            return KINDS[0]
        return KINDS[1] if OURS.search(self.frames.describe(one.frames)) else KINDS[2]
