# SPDX-License-Identifier: BSD-3-Clause
"""When processes have ended, seen from the outside."""
import pathlib
import threading
import time


def is_gone(pid):
    """It has ended, and may be a zombie."""
    try:
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
        return stat.rsplit(")", 1)[1].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


class Departures:
    """Looks at PIDS from now on, until all have ended or LIMIT_S has passed."""

    def __init__(self, pids, limit_s=300):
        self._left = set(pids)
        self._begin, self._limit_s = time.monotonic(), limit_s
        self._last_ms = None
        self._watcher = threading.Thread(target=self._watch, daemon=True)
        self._watcher.start()

    def _watch(self):
        while self._left and time.monotonic() - self._begin < self._limit_s:
            gone = {pid for pid in self._left if is_gone(pid)}
            if gone:
                self._last_ms = (time.monotonic() - self._begin) * 1e3
                self._left -= gone
            time.sleep(0.002)

    def took_ms(self, timeout=60):
        """Until the last one had ended, ms; None if one has not after TIMEOUT s from now."""
        self._watcher.join(timeout=timeout)
        return None if self._left else self._last_ms
