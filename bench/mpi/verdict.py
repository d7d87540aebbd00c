# SPDX-License-Identifier: BSD-3-Clause
"""What was promised, and what was measured, in each setting by itself.

Worse beyond noise is: by more than TOLERANCE in the median of all, and worse in
the median of every single round, since the libraries took turns in each.
"""
from bench.mpi import memory_model, report
from bench.mpi.report import show_number
from bench.spread import median

TOLERANCE = 0.05
TOLERANCE_POINTS = 5    # for what is measured in per cent


class Comparison:
    """ch4:zc beside the best of its peers at one point."""

    def __init__(self, samples, case, size, metric, ours, peers):
        self.case, self.size, self.metric = case, size, metric
        self.setting = None     # judge_all's
        self.unit, _, self.more_is_better = report.metric_of(case, metric)
        self.ours = median(samples.values(case, ours, size, metric))
        medians = {peer: median(values) for peer in peers
                   if (values := samples.values(case, peer, size, metric))}
        self.peer = (max if self.more_is_better else min)(medians, key=medians.get, default=None)
        if self.peer is None:
            return
        self.best = medians[self.peer]
        our_rounds = samples.rounds(case, ours, size, metric)
        peer_rounds = samples.rounds(case, self.peer, size, metric)
        pairs = [(our_rounds[turn], peer_rounds[turn]) for turn in our_rounds if turn in peer_rounds]
        self.rounds = len(pairs)
        self.worse = self._lags(self.ours, self.best) and \
            all(self._better(theirs, mine) for mine, theirs in pairs)

    def _better(self, one, other):
        return one > other if self.more_is_better else one < other

    def _lags(self, mine, theirs):
        if self.unit == "%":
            return mine < theirs - TOLERANCE_POINTS
        return self._ratio(mine, theirs) < 1 / (1 + TOLERANCE)

    def _ratio(self, mine, theirs):
        better, worse = (mine, theirs) if self.more_is_better else (theirs, mine)
        return better / worse if worse > 0 else 1.0

    @property
    def gain(self):
        """How many times better than the best peer; in points for what is in per cent."""
        return self.ours - self.best if self.unit == "%" else self._ratio(self.ours, self.best)

    @property
    def badness(self):
        """Sorts the worst first, whatever the unit."""
        return 1 + self.gain / 100 if self.unit == "%" else self.gain

    def show_gain(self):
        return f"{self.gain:+.0f} points" if self.unit == "%" else f"{self.gain:.2f}x"

    def show(self):
        where = report.show_place(self.size, self.metric)
        name = self.case if report.base_of(self.metric) in (self.case, "time") else \
            f"{self.case} {report.base_of(self.metric)}"
        if self.setting:
            name = f"{self.setting}: {name}"
        return (f"{name}{'' if where == '-' else ' at ' + where}: {self.show_gain()}"
                f" ({show_number(self.ours)} {self.unit}, {self.peer} {show_number(self.best)})")


class Row:
    """A line of the verdict: a promise, how it went, and the figure that decides."""

    def __init__(self, target, state, figure):
        self.target, self.state, self.figure = target, state, figure
        self.setting = None

    def json(self):
        return {"target": self.target, "setting": str(self.setting or "-"), "verdict": self.state,
                "figure": self.figure}


def compare(samples, ours, peers):
    """Every point at which ours and at least one peer have a figure."""
    found = [Comparison(samples, case, size, metric, ours, peers)
             for case, impl, size, metric in samples
             if impl == ours and case != memory_model.TO]
    return [comparison for comparison in found if comparison.peer is not None]


def _no_worse(target, comparisons):
    if not comparisons:
        return Row(target, "not measured", "")
    worst = min(comparisons, key=lambda each: each.badness)
    if any(each.worse for each in comparisons):
        return Row(target, "missed", "worst: " + min(
            (each for each in comparisons if each.worse), key=lambda each: each.badness).show())
    if worst.badness < 1:
        return Row(target, "within noise", "worst: " + worst.show())
    return Row(target, "met", "worst: " + worst.show())


def _at_least(target, comparisons, times):
    if not comparisons:
        return Row(target, "not measured", "")
    worst = min(comparisons, key=lambda each: each.gain)
    return Row(target, "met" if worst.gain >= times else "missed", "worst: " + worst.show())


def _itself(target, samples, ours, case, metrics, good, least=0, most=1 << 62):
    """A promise about our own figures of METRICS at LEAST to MOST bytes: GOOD of their median."""
    found = [(median(values), size, metric) for metric in metrics
             for size, _ in samples.series(case, metric) if least <= size <= most
             if (values := samples.values(case, ours, size, metric))]
    if not found:
        return Row(target, "not measured", "")
    unit, _, more_is_better = report.metric_of(case, metrics[0])
    value, size, metric = (min if more_is_better else max)(found)
    where = f"{metric} at {report.show_bytes(size)}"
    return Row(target, "met" if good(value) else "missed",
               f"worst: {show_number(value)} {unit}, {where}")


def judge_all(samples, ours, peers):
    """The same in every setting; SAMPLES: {setting: Samples}. What nothing was measured for is one row."""
    rows, worse, without = [], [], {}
    for setting, of_setting in samples.items():
        found, lags = judge(of_setting, ours, peers, setting.bytes_per_us)
        for each in [*found, *lags]:
            each.setting = setting
        rows += [row for row in found if row.state != "not measured"]
        without.update((row.target, row) for row in found if row.state == "not measured")
        worse += lags
    measured = {row.target for row in rows}
    for row in without.values():
        if row.target not in measured:
            row.setting = None
            rows.append(row)
    return rows, sorted(worse, key=lambda each: each.badness)


def judge(samples, ours, peers, bytes_per_us=None):
    """The rows of the verdict, and what is worse beyond noise, the worst first.

    BYTES_PER_US: what the links carry, if they have a rate
    """
    comparisons = compare(samples, ours, peers)

    def at(case, *metrics, least=0, most=1 << 62):
        return [each for each in comparisons if each.case == case and least <= each.size <= most
                and (not metrics or each.metric in metrics)]

    def itself(target, case, metrics, good, **sizes):
        return _itself(target, samples, ours, case, metrics, good, **sizes)

    worse = sorted((each for each in comparisons if each.worse), key=lambda each: each.badness)
    rows = [
        _no_worse("pre-posted bandwidth at least that of the best peer", at("preposted")),
        _no_worse("the same both ways at once", at("bibandwidth")),
        _no_worse("latency up to 64 KiB at most that of the best peer", at("latency")),
        _no_worse("message rate at least that of the best peer", at("rate")),
        _at_least("late receiver at 1 MiB: 10 times the best peer",
                  at("late", "post_to_data", least=1 << 20, most=1 << 20), 10),
        _at_least("late receiver from 16 MiB: 100 times the best peer",
                  at("late", "post_to_data", least=16 << 20), 100),
        itself("late 16 MiB: work + receive + reading at most 1.03 of work + reading", "late",
               ["relative"], lambda ratio: ratio <= 1.03, least=16 << 20, most=16 << 20),
        itself("late 16 MiB: the work stretched by at most 5 %", "late",
               ["stretch"], lambda ratio: ratio <= 1.05, least=16 << 20, most=16 << 20),
        itself("overlap of the receiver above 90 % from 256 KiB",
               "overlap", ["receiver"], lambda share: share > 90, least=256 << 10),
        itself("overlap of the sender above 90 % from 256 KiB",
               "overlap", ["sender"], lambda share: share > 90, least=256 << 10),
        itself("nonblocking collectives: 80 % hidden from 1 MiB to 8 MiB", "overlap-collectives",
               ["iallreduce", "ialltoall", "ibcast", "iallgather"],
               lambda share: share >= 80, least=1 << 20, most=8 << 20),
        itself("passive target: at most 0.2 ms for 8 bytes while it computes", "passive",
               ["put", "get", "accumulate", "fetch_and_op", "ssend"],
               lambda us: us <= 200, most=8),
        itself("passive target: 4 MiB in at most the link's time and 30 %", "passive",
               ["put", "get", "accumulate"] if bytes_per_us else [],
               lambda us: us <= 1.3 * (4 << 20) / bytes_per_us, least=4 << 20, most=4 << 20),
        _at_least("blocks exchanged: at least 0.98 of the best peer", at("transpose"), 0.98),
        _at_least("8-byte latency beside 64 MiB: 5 times stock ch4:ucx",
                  [each for each in compare(samples, ours, ["ucx"])
                   if (each.case, each.metric) == ("pingpong-beside-bulk", "latency")
                   and each.size == 64 << 20], 5),
        _at_least("pipeline of small messages: at least 0.99 of the best peer", at("pipeline"), 0.99),
        _no_worse(f"nowhere worse beyond noise ({len(comparisons)} points)", comparisons),
    ]
    rows[-1].figure = f"{len(worse)} worse" + (f"; {rows[-1].figure}" if rows[-1].figure else "")
    return rows, worse
