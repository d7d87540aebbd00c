# SPDX-License-Identifier: BSD-3-Clause
"""The MPI libraries that bench/run mpi compares, and how each is started.

  zc        ch4:zc
  ucx       stock ch4:ucx, from the same library
  ofi       stock ch4:ofi over TCP (mpi-ch4-netmod/build-peer)
  openmpi   Debian's Open MPI over TCP (ob1, btl tcp)
  X-async   X with MPICH's asynchronous progress thread
  zc-lane   ch4:zc with bulk to other hosts by the lane   (when asked for)
  zc-ucx    ch4:zc with bulk to other hosts by UCX        (when asked for)

Open MPI 4.1 has no asynchronous progress thread: there is no openmpi-async.
"""
import pathlib
import subprocess

from bench.mpi import report
from testbed.mpi import Mpi, OpenMpi, build, find_tool
from testbed.outcome import Error

OURS = "zc"
ASYNC = {"MPIR_CVAR_ASYNC_PROGRESS": "1"}
NO_ASYNC = "openmpi-async: Open MPI 4.1 has no asynchronous progress thread"
# Its other way to access memory, osc/rdma, refuses windows where there is TCP only.
OPENMPI = {"OMPI_MCA_osc": "pt2pt"}
# Connections by way of ofi_rxm: libfabric's tcp provider of 1.17 has none of the kind MPICH wants.
OFI = {"FI_PROVIDER": "tcp;ofi_rxm"}


class Peer:
    """One MPI library in one configuration."""

    def __init__(self, name, family="mpich", prefix="mpich", netmod=None, environment=None):
        self.name = name
        self.family = family
        self.prefix_option = prefix
        self.netmod = netmod
        self.environment = environment or {}

    @property
    def ours(self):
        return self.name.partition("-")[0] == OURS

    @property
    def is_async(self):
        return self.name.endswith("-async")

    def with_async(self):
        return Peer(f"{self.name}-async", self.family, self.prefix_option, self.netmod,
                    {**self.environment, **ASYNC})


_PLAIN = [
    Peer("zc", netmod="zc"),
    Peer("ucx", netmod="ucx"),
    Peer("ofi", prefix="ofi", environment=OFI),
    Peer("openmpi", family="openmpi", prefix="openmpi", environment=OPENMPI),
]
# ch4:zc with either way of its bulk: beside each other when they are asked for.
_WAYS = [Peer(f"zc-{name}", netmod="zc", environment={"MPIR_CVAR_CH4_ZC_LANE": way})
         for name, way in (("lane", "thread"), ("ucx", "ucx"))]
PEERS = {peer.name: peer for peer in
         [*_PLAIN, *(peer.with_async() for peer in _PLAIN if peer.family == "mpich"), *_WAYS]}
UNASKED = [name for name in PEERS if name not in [way.name for way in _WAYS]]
HINTS = {
    "mpich": "mpi-ch4-netmod/build makes it",
    "ofi": "mpi-ch4-netmod/build-peer makes it",
    "openmpi": "packages openmpi-bin and libopenmpi-dev",
}


def default_ofi():
    """Where build-peer puts ch4:ofi."""
    done = subprocess.run([report.TOP / "mpi-ch4-netmod/build-peer", "--print-prefix"],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "/nonexistent"


def missing(peer, prefix):
    """Which tool of PEER is not in PREFIX, and what makes it; "": all are there."""
    try:
        for tool in ("mpiexec", "mpicc"):
            find_tool(prefix, tool, peer.family)
    except Error as error:
        return f"{error} ({HINTS[peer.prefix_option]})"
    return ""


class Unavailable(Exception):
    """Why a peer cannot run."""


class Libraries:
    """The programs, built once for each library, and the way to run them."""

    def __init__(self, prefixes, build_dir):
        self.prefixes = prefixes    # {prefix option: folder}
        self.build_dir = pathlib.Path(build_dir)
        self._built = {}            # prefix option: {program: path} or Unavailable

    def programs(self, peer):
        option = peer.prefix_option
        if option not in self._built:
            self._built[option] = self._build(peer)
        if isinstance(self._built[option], Unavailable):
            raise self._built[option]
        return self._built[option]

    def _build(self, peer):
        option = peer.prefix_option
        prefix = self.prefixes[option]
        if why := missing(peer, prefix):
            return Unavailable(why)
        try:
            return build(prefix, sorted(report.HERE.glob("*.c")), self.build_dir / option,
                                flags=[f"-I{report.PATTERN.parent}"],
                                headers=[*report.HERE.glob("*.h"), report.PATTERN],
                                family=peer.family)
        except Error as error:
            return Unavailable(str(error))

    def mpi(self, peer, network):
        prefix = self.prefixes[peer.prefix_option]
        if peer.family == "openmpi":
            return OpenMpi(prefix, network, environment=peer.environment)
        return Mpi(prefix, network, netmod=peer.netmod, environment=peer.environment)
