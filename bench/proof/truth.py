# SPDX-License-Identifier: BSD-3-Clause
"""A forecast beside what was measured, and ch4:zc beside the fastest other library."""
import dataclasses

from bench.spread import median, percentile

OF_GAIN, OF_TIME = 0.20, 0.02       # a forecast may differ by so much of the gain, or of the run


@dataclasses.dataclass(frozen=True)
class Truth:
    """Seconds: of runs with stock and with ch4:zc, one of each in every round, and of the forecasts."""
    stock: tuple
    zc: tuple
    forecast: tuple

    @property
    def time_s(self):
        return median(self.stock)

    @property
    def gain_s(self):
        return median(self.stock) - median(self.zc)

    @property
    def forecast_s(self):
        return median(self.forecast)

    @property
    def ratio(self):
        """How many times faster."""
        return median(self.stock) / median(self.zc)

    @property
    def ratios(self):
        """(lowest, highest) of the rounds."""
        each = [stock / zc for stock, zc in zip(self.stock, self.zc)]
        return min(each), max(each)

    @property
    def error_s(self):
        return self.forecast_s - self.gain_s

    @property
    def allowed_s(self):
        return max(OF_GAIN * abs(self.gain_s), OF_TIME * self.time_s)

    @property
    def ok(self):
        return abs(self.error_s) <= self.allowed_s

    @property
    def forecast_spread(self):
        return percentile(self.forecast, 0), percentile(self.forecast, 1)

    def json(self):
        return {"stock_seconds": round(self.time_s, 4), "gain_seconds": round(self.gain_s, 4),
                "forecast_seconds": round(self.forecast_s, 4), "error_seconds": round(self.error_s, 4),
                "allowed_seconds": round(self.allowed_s, 4), "ratio": round(self.ratio, 4),
                "ratios": [round(each, 4) for each in self.ratios],
                "state": "ok" if self.ok else "missed"}


@dataclasses.dataclass(frozen=True)
class BestPeer:
    """Seconds by round: {library: {round: seconds}} of the others, and {round: seconds} of ch4:zc.

    The best is the library with the shortest median, the same one in all rounds.
    """
    others: dict
    zc: dict

    @property
    def name(self):
        return min(self.others, key=lambda name: median(list(self.others[name].values())))

    @property
    def time_s(self):
        return median(list(self.others[self.name].values()))

    @property
    def ratio(self):
        """How many times faster ch4:zc is."""
        return self.time_s / median(list(self.zc.values()))

    @property
    def ratios(self):
        """(lowest, highest) of the rounds that both have."""
        best = self.others[self.name]
        each = [best[turn] / self.zc[turn] for turn in best if turn in self.zc]
        return (min(each), max(each)) if each else (self.ratio, self.ratio)

    def json(self):
        return {"best_peer": self.name, "best_peer_seconds": round(self.time_s, 4),
                "best_peer_ratio": round(self.ratio, 4),
                "best_peer_ratios": [round(each, 4) for each in self.ratios]}
