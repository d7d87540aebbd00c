# SPDX-License-Identifier: BSD-3-Clause
"""On what hosts something was measured: their links, and the processors they have."""
import argparse
import re
import typing

from testbed.outcome import Error

CORES = ("spare", "full")


class Setting(typing.NamedTuple):
    """link: "bare", a rate such as "10gbit", or "none" between ranks of one host
    cores: "spare", or "full": one processor for each host, with its rank on it"""

    link: str
    cores: str

    def __str__(self):
        return "one host" if self == ONE_HOST else f"{self.link}/{self.cores}"

    @property
    def bytes_per_us(self):
        """What a link carries; None where the processors limit it."""
        rate = re.fullmatch(r"(\d+)([kmg])bit", self.link)
        return int(rate[1]) * {"k": 1e3, "m": 1e6, "g": 1e9}[rate[2]] / 8e6 if rate else None

    def describe(self):
        """For a heading."""
        if self == ONE_HOST:
            return "one host"
        link = "bare links" if self.link == "bare" else f"links of {self.link}"
        return link + (", full cores" if self.cores == "full" else "")


ONE_HOST = Setting("none", "spare")
PLAIN = Setting("bare", "spare")
MAIN = [PLAIN, *(Setting(*words) for words in
                 [("10gbit", "spare"), ("10gbit", "full"), ("bare", "full")])]
LONG = [*MAIN, Setting("1gbit", "spare"), Setting("1gbit", "full")]


def enter(network, setting):
    """Give the hosts of NETWORK the links and cores of SETTING, where there are hosts."""
    if setting not in (ONE_HOST, (network.link, network.cores)):
        network.change(*setting)


def check(network, wanted):
    """(those of WANTED that can be made, {other: why}). Without hosts there is one: one host."""
    if not network.between_hosts:
        print(f"left out: {show(wanted)}: there are no hosts", flush=True)
        return [ONE_HOST], {}
    made, not_made = [], {}
    for setting in wanted:
        try:
            enter(network, setting)
            made.append(setting)
        except Error as reason:
            not_made[setting] = reason
            print(f"left out: {setting}: {reason}", flush=True)
    if not made:
        raise Error("none of the settings can be made here")
    return made, not_made


def parse(text):
    """An argument LINK/CORES,...; for argparse."""
    found = []
    for word in text.split(","):
        link, _, cores = word.partition("/")
        if not re.fullmatch(r"bare|[1-9]\d*[kmg]bit", link) or cores not in CORES:
            raise argparse.ArgumentTypeError(
                f"not LINK/CORES: {word} (such as 10gbit/full, bare/spare)")
        if Setting(link, cores) in found:
            raise argparse.ArgumentTypeError(f"twice: {word}")
        found.append(Setting(link, cores))
    return found


def show(settings):
    return ",".join(map(str, settings))
