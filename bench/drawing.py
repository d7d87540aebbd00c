# SPDX-License-Identifier: BSD-3-Clause
"""Parts of pictures in SVG, for all benchmarks' pictures."""
import html
import math
import pathlib

# Distinguishable without colour vision too (Okabe and Ito).
BLUE, RED, GREEN, PINK, ORANGE = "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00"
LIGHT_BLUE = "#56b4e9"


def text(x, y, words, anchor="middle", more=""):
    return (f"<text x='{x:.1f}' y='{y:.1f}' text-anchor='{anchor}'{more}>"
            f"{html.escape(words)}</text>")


def short(value):
    """A tick's label."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:g}{unit}"
    return f"{value:g}"


def round_up(value):
    """The next of 1, 2, 4, 8 times a power of ten: quarters of it are easy to read."""
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in (1, 2, 4, 8, 10) if step * power >= value)


class Axis:
    """Maps values to places between `start` and `end`."""

    def __init__(self, values, start, end, logarithmic):
        self.logarithmic = logarithmic
        self.start, self.end = start, end
        self.low, self.high = self._along(min(values)), self._along(max(values))
        if logarithmic:
            self.low, self.high = math.floor(self.low), math.ceil(self.high)
        if self.high <= self.low:
            self.high = self.low + 1

    def _along(self, value):
        return math.log10(max(value, 1e-9)) if self.logarithmic else value

    def at(self, value):
        share = (self._along(value) - self.low) / (self.high - self.low)
        return self.start + min(max(share, 0), 1) * (self.end - self.start)

    def ticks(self):
        if not self.logarithmic:
            return [self.low + (self.high - self.low) * i / 4 for i in range(5)]
        step = max(1, math.ceil((self.high - self.low) / 5))
        return [10.0 ** power for power in range(self.low, self.high + 1, step)]


def write_svg(path, width, height, title, left, body):
    """A picture of WIDTH and HEIGHT, with the elements BODY below its TITLE, at PATH."""
    out = pathlib.Path(path)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text("\n".join([
        f"<svg xmlns='http://www.w3.org/2000/svg' width='{width}' height='{height}' "
        f"viewBox='0 0 {width} {height}' font-family='sans-serif' font-size='11'>",
        "<rect width='100%' height='100%' fill='white'/>",
        text(left, 24, title, "start", " font-size='15'"), *body, "</svg>"]) + "\n",
        encoding="utf-8")
