# SPDX-License-Identifier: BSD-3-Clause
"""Limited shares of this machine's processors for hosts, by cgroups."""
import pathlib
import subprocess

from testbed import cgroup
from testbed.outcome import Skip

PERIOD_US = 2500    # short against an iteration, as ranks wait for each other


class Shares:
    """Cgroups NAME/h1, NAME/h2 ... with so many PROCESSORS each, by version 1 or 2.

    They are also seen below PLACE: hosts have another /sys.
    """

    def __init__(self, name, processors, place):
        root = pathlib.Path("/sys/fs/cgroup")
        self.old = (root / "cpu").is_dir()
        if not self.old and "cpu" not in _read(root / "cgroup.controllers").split():
            raise Skip("no cgroup controller for processors here")
        self.top = root / "cpu" / name if self.old else root / name
        self.place = place
        self.groups = [self.top / f"h{i + 1}" for i in range(len(processors))]
        try:
            if not self.old:
                (root / "cgroup.subtree_control").write_text("+cpu")
            self.top.mkdir()
            if not self.old:
                (self.top / "cgroup.subtree_control").write_text("+cpu")
            # What we may use is limited below; of that, what else runs here shall take little.
            if self.old:
                (self.top / "cpu.shares").write_text("20480")
            else:
                (self.top / "cpu.weight").write_text("2000")
            for group, share in zip(self.groups, processors):
                group.mkdir()
                self._limit(group, share)
            place.mkdir()
            subprocess.run(["mount", "--bind", self.top, place], check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError) as error:
            self.close()
            raise Skip(f"cannot limit shares of processors: {error}") from None

    def seen(self, host):
        return self.place / f"h{host}"

    def _limit(self, group, processors):
        quota = int(processors * PERIOD_US)
        if self.old:
            (group / "cpu.cfs_period_us").write_text(str(PERIOD_US))
            (group / "cpu.cfs_quota_us").write_text(str(quota))
        else:
            (group / "cpu.max").write_text(f"{quota} {PERIOD_US}")

    def close(self):
        """What is still in them is ended."""
        subprocess.run(["umount", "-l", self.place], check=False, capture_output=True)
        for group in [*self.groups, self.top]:
            cgroup.remove(group)


def _read(path):
    try:
        return path.read_text()
    except OSError:
        return ""
