# SPDX-License-Identifier: BSD-3-Clause
"""What cgroups of either version have in common."""
import contextlib
import os
import signal
import time


def remove(group):
    """What is still in GROUP is ended."""
    for _ in range(100):
        try:
            group.rmdir()
            return
        except FileNotFoundError:
            return
        except OSError:
            for pid in _processes(group):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.02)


def _processes(group):
    try:
        return [int(pid) for pid in (group / "cgroup.procs").read_text().split()]
    except OSError:
        return []
