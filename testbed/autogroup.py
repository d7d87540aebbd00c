# SPDX-License-Identifier: BSD-3-Clause
"""The kernel's scheduling of sessions as groups, out of the way of hosts that share processors."""
import pathlib

SWITCH = pathlib.Path("/proc/sys/kernel/sched_autogroup_enabled")


class NoAutogroup:
    """While it lasts, sessions are no groups to the scheduler (sched(7), "The autogroup feature").

    Hosts made of namespaces share this machine's processors, and the ranks of each are a session of their
    own. A rank that waits and offers its processor (sched_yield) would offer it to its own host's ranks
    only, and not to the one it waits for: with four ranks on two processors an allreduce of 8 bytes took
    10 ms in place of 0.06. Hosts that are machines have no such neighbours.

    `state`: "off"; "on" if it may not be changed, which print_warning() says; "none" in a kernel without.
    """

    def __init__(self):
        self.state = "none"
        self._before = None

    def __enter__(self):
        try:
            before = SWITCH.read_text(encoding="ascii").strip()
            if before != "0":
                self.state = "on"
                SWITCH.write_text("0", encoding="ascii")
                self._before = before
            self.state = "off"
        except OSError:
            pass
        return self

    def __exit__(self, *_):
        if self._before:
            SWITCH.write_text(self._before, encoding="ascii")

    def print_warning(self):
        if self.state == "on":
            print("sched_autogroup_enabled is on, and not ours to change: ranks that share processors with those "
                  "of the other host wait for milliseconds")
