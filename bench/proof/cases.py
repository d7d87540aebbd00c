# SPDX-License-Identifier: BSD-3-Clause
"""The programs of bench/run proof: what runs where, with which arguments."""
import dataclasses
import pathlib

HERE = pathlib.Path(__file__).resolve().parent
HOSTS = 8       # ranks go to them in turn: fewer ranks are on as many hosts


@dataclasses.dataclass(frozen=True)
class Case:
    """A program, and its arguments for each link. Ranks sleep where others would compute.

    edited:      of a cure by hand, which runs with stock ch4:ucx, too
    environment: of all implementations
    """
    name: str
    what: str
    program: str
    ranks: int
    arguments: dict
    kind: str = ""
    edited: str = ""
    environment: dict = dataclasses.field(default_factory=dict)

    @property
    def hosts(self):
        return min(self.ranks, HOSTS)

    def words(self, link, quick, edited=False):
        """The program's arguments; QUICK: a third of the steps."""
        steps, work_ms, size = self.arguments[link]
        kind = self.edited if edited else self.kind
        return ["-r", str(max(6, steps // 3) if quick else steps), "-c", str(work_ms),
                *(["-k", kind] if kind else []), size]


# Four ranks share a host of two processors there: as on a host where each has its own.
CROWDED = {"MPIR_CVAR_CH4_ZC_LANDING_THREAD": "1"}
CASES = {case.name: case for case in [
    Case("false-overlap", "transfers meant to be hidden behind work, imbalanced phases", "overlap", 2,
         {"10gbit": (60, 16, "1m"), "1gbit": (30, 30, "1m")}, edited="edited"),
    Case("idle-wave", "one delay travels through a ring", "idle_wave", 32,
         {"10gbit": (30, 50, "256k"), "1gbit": (30, 50, "128k")}, environment=CROWDED),
    Case("stealing", "a queue of work that ranks steal from each other", "stealing", 8,
         {"10gbit": (20, 60, "256k"), "1gbit": (20, 60, "128k")}, edited="twice"),
    Case("stencil", "imbalanced stencil, blocking sends", "stencil", 8,
         {"10gbit": (40, 40, "256k"), "1gbit": (30, 60, "512k")}),
    Case("pipeline", "wavefront of uneven blocks", "pipeline", 6,
         {"10gbit": (40, 40, "512k"), "1gbit": (30, 60, "1m")}),
    Case("master", "a master with bursts of results", "master", 5,
         {"10gbit": (20, 100, "1m"), "1gbit": (20, 100, "1m")}),
    Case("particles", "particle code with migrating load", "particles", 6,
         {"10gbit": (40, 30, "512k"), "1gbit": (24, 60, "1m")}),
    Case("balanced", "the same on all ranks, receives in time: nothing to gain", "idle_wave", 4,
         {"10gbit": (40, 40, "512k"), "1gbit": (30, 50, "512k")}, kind="calm"),
]}
LINKS = ("10gbit", "1gbit")
