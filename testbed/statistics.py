# SPDX-License-Identifier: BSD-3-Clause
"""What the ranks of ch4:zc write at their end (MPIR_CVAR_CH4_ZC_STATS_FILE), added up."""
import json

CVAR = "MPIR_CVAR_CH4_ZC_"
HIGH_WATER = ("landing_high_water", "unexpected_memory_high_water")
BYTES = ("bytes_direct", "bytes_rebound", "bytes_copied")
MESSAGES = ("messages_direct", "messages_rebound", "messages_copied")
TITLES = "".join(f"{kind.removeprefix('bytes_'):>9}" for kind in BYTES) + "  MiB"   # of table()


def add_up(prefix):
    """The statistics in PREFIX.*.json, of high-water marks the highest; `ranks`: how many files.

    None without files.
    """
    files = sorted(prefix.parent.glob(f"{prefix.name}.*.json"))
    if not files:
        return None
    total = {"ranks": len(files), "copied_by_reason": {}}
    for file in files:
        record = json.loads(file.read_text(encoding="utf-8"))
        for reason, count in record.pop("copied_by_reason", {}).items():
            total["copied_by_reason"][reason] = total["copied_by_reason"].get(reason, 0) + count
        for name, value in record.items():
            if name in HIGH_WATER:
                total[name] = max(total.get(name, 0), value)
            elif isinstance(value, int):
                total[name] = total.get(name, 0) + value
    return total


def table(statistics, width=9):
    """MiB by the way they took, as columns."""
    return "".join(f"{statistics[kind] / 2**20:{width}.1f}" if statistics else f"{'-':>{width}}"
                   for kind in BYTES)
