# SPDX-License-Identifier: BSD-3-Clause
"""How samples are summed up, in every benchmark of ours."""


def percentile(values, fraction):
    values = sorted(values)
    place = fraction * (len(values) - 1)
    low = int(place)
    high = min(low + 1, len(values) - 1)
    return values[low] + (values[high] - values[low]) * (place - low)


def median(values):
    return percentile(values, 0.5)


def summary(values, digits):
    """What a line of a benchmark's output says of VALUES."""
    return {"median": round(percentile(values, 0.5), digits), "p10": round(percentile(values, 0.1), digits),
            "p90": round(percentile(values, 0.9), digits), "n": len(values)}


def three(line):
    """Of such a line: a value and between what it lies, from the least."""
    return line["p10"], line["median"], line["p90"]
