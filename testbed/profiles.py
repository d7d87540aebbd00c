# SPDX-License-Identifier: BSD-3-Clause
"""Profiles: what ranks report to the agents of their nodes, as zcm/profile.h lays it out."""
import pathlib
import struct

from testbed.outcome import Fail

PEERS, RING, NAME = 256, 4096, 64
MAGIC, VERSION = 0x5031635A, 2
MOVABLE, BUSY, ENDED, OBSERVE = 1, 2, 4, 8
HEADER = struct.Struct("<IIQQIIII64sII")
COUNTERS = struct.Struct("<QQQQQQIIQ7Q")
PEER = struct.Struct("<IIQQ")


class Profile:
    """One file, read without regard to a writer at work: for programs that write seldom."""

    def __init__(self, path):
        data = pathlib.Path(path).read_bytes()
        (magic, version, self.size, self.job, self.rank, self.world, self.pid, self.hosts_max, name,
         _, _) = HEADER.unpack_from(data)
        if magic != MAGIC or version != VERSION or self.size != len(data):
            raise Fail(f"{path} is not a profile of this version")
        self.job_name = name.split(b"\0")[0].decode()
        at = HEADER.size
        (self.epoch, self.iterations, self.total, self.image, self.mpi_ns, self.start_ns,
         self.flags, hosts, self.others_bytes, *_) = COUNTERS.unpack_from(data, at)
        at += COUNTERS.size
        (self.messages,) = struct.unpack_from("<Q", data, at)
        at += 8
        self.sent = {}
        for i in range(PEERS):
            rank_plus_1, _, sent, _ = PEER.unpack_from(data, at + i * PEER.size)
            if rank_plus_1:
                self.sent[rank_plus_1 - 1] = sent
        at += PEERS * PEER.size + RING * 16
        index = struct.unpack_from(f"<{self.world}I", data, at)
        at += 4 * self.world
        names = [data[at + i * NAME:at + (i + 1) * NAME].split(b"\0")[0].decode()
                 for i in range(hosts)]
        self.hosts = [names[i] for i in index] if names else []


def read(directory):
    """{rank: Profile} of what is there; of several of one rank the one of the highest epoch."""
    found = {}
    for path in sorted(pathlib.Path(directory).glob("*")):
        if path.suffix == ".new":
            continue
        try:
            one = Profile(path)
        except (FileNotFoundError, struct.error):
            continue
        if one.rank not in found or found[one.rank].epoch < one.epoch:
            found[one.rank] = one
    return found
