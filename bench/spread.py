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
