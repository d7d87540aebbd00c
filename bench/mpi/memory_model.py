# SPDX-License-Identifier: BSD-3-Clause
"""How the memory of a rank grows with the job, fitted to what was measured.

    memory = fixed + per_rank * ranks + per_peer * peers

`ranks` is the size of the job, `peers` those that messages went to and came
from. per_rank is the slope of the memory after MPI_Init; per_peer that of what
touching all the others added. Least squares over the sizes from SMALLEST up:
below, pools that are allocated whole would pass for a slope. Resident pages
only: socket buffers belong to the kernel and are not in it.
"""
from bench.mpi import report
from bench.spread import median

CASE = "memory-growth"
TO = "memory-model"
SMALLEST = 8
EXTRAPOLATED = 100_000


def fit_line(points):
    """(intercept, slope) of the least squares line through [(x, y)]."""
    count = len(points)
    mean_x = sum(x for x, _ in points) / count
    mean_y = sum(y for _, y in points) / count
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    slope = sum((x - mean_x) * (y - mean_y) for x, y in points) / spread
    return mean_y - slope * mean_x, slope


def _measured(samples, impl, metric):
    """{ranks: KiB}"""
    return {report.place_of(*point): median(values)
            for point in samples.series(CASE, metric)
            if report.place_of(*point) >= SMALLEST
            and (values := samples.values(CASE, impl, *point))}


def add(samples, impls):
    """Add the model of every library that was measured at three such sizes or more."""
    for impl in impls:
        init, touched = (_measured(samples, impl, metric) for metric in ("init", "touched"))
        if len(init) < 3 or init.keys() != touched.keys():
            continue
        fixed, per_rank = fit_line(list(init.items()))
        _, per_peer = fit_line([(ranks - 1, touched[ranks] - init[ranks]) for ranks in init])
        # A slope below nothing is noise around nothing.
        known_kib = fixed + max(per_rank, 0) * EXTRAPOLATED
        touched_kib = known_kib + max(per_peer, 0) * (EXTRAPOLATED - 1)
        for metric, value in [("fixed", fixed), ("per_rank", 1024 * per_rank),
                              ("per_peer", 1024 * per_peer),
                              (f"known/ranks:{EXTRAPOLATED}", known_kib / 1024),
                              (f"touched/ranks:{EXTRAPOLATED}", touched_kib / 1024)]:
            samples.add(TO, impl, 0, metric, value)
