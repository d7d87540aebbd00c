# SPDX-License-Identifier: BSD-3-Clause
"""A diagram in a picture: its frame and axes, and the curves and bars in it."""
from bench.drawing import Axis, round_up, short, text

WIDTH, HEIGHT = 340, 180                # of the diagram
LEFT, TOP, RIGHT, BELOW = 58, 52, 22, 42
CELL = (LEFT + WIDTH + RIGHT, TOP + HEIGHT + BELOW)
GREY = " fill='#666'"


class Panel:
    """Upwards from nought to MOST; from left to right along an Axis that across() makes, or bars."""

    def __init__(self, left, top, caption, most, note=""):
        self.left, self.top = left + LEFT, top + TOP
        self.up = Axis([0, round_up(max(most, 1e-6))], self.top + HEIGHT, self.top, False)
        middle = self.left + WIDTH / 2
        self.body = [text(middle, self.top - 22, caption, more=" font-weight='bold'"),
                     text(middle, self.top - 8, note, more=GREY)]
        for value in self.up.ticks():
            y = self.up.at(value)
            self.body += [f"<line x1='{self.left}' x2='{self.left + WIDTH}' y1='{y:.1f}' y2='{y:.1f}' "
                          "stroke='#ddd'/>", text(self.left - 6, y + 4, short(round(value, 6)), "end")]

    def draw(self):
        return [*self.body, f"<rect x='{self.left}' y='{self.top}' width='{WIDTH}' height='{HEIGHT}' "
                "fill='none' stroke='#444'/>"]

    def across(self, values, below, ticks=None, inset=0):
        """The axis to the right, with the label BELOW; a mark for each of TICKS, (value, label), or for
        round values from nought."""
        axis = Axis(values, self.left + inset, self.left + WIDTH - inset, False)
        if ticks is None:
            step = round_up(max(axis.high, 1e-6) / 5)
            ticks = [(step * i, short(round(step * i, 6))) for i in range(int(axis.high / step) + 1)]
        for value, label in ticks:
            self.body.append(text(axis.at(value), self.top + HEIGHT + 15, label))
        self.body.append(text(self.left + WIDTH / 2, self.top + HEIGHT + 31, below))
        return axis

    def curve(self, axis, points, colour):
        """POINTS: (to the right, upwards); one alone is a dot, as a line of it cannot be seen."""
        if len(points) == 1:
            self.spread(axis.at(points[0][0]), points[0][1], points[0][1], points[0][1], colour)
            return
        line = " ".join(f"{axis.at(x):.1f},{self.up.at(y):.1f}" for x, y in points)
        self.body.append(f"<polyline points='{line}' fill='none' stroke='{colour}' stroke-width='1.6'/>")

    def spread(self, x, low, middle, high, colour):
        """A value and between what it lies, at the place X."""
        self.body += [f"<line x1='{x:.1f}' x2='{x:.1f}' y1='{self.up.at(low):.1f}' "
                      f"y2='{self.up.at(high):.1f}' stroke='{colour}'/>",
                      f"<circle cx='{x:.1f}' cy='{self.up.at(middle):.1f}' r='2.4' fill='{colour}'/>"]

    def bars(self, values):
        """VALUES: (label, colour, (low, middle, high))."""
        wide = WIDTH / max(1, len(values))
        for place, (label, colour, (low, middle, high)) in enumerate(values):
            begin, y = self.left + (place + 0.2) * wide, self.up.at(middle)
            self.body.append(f"<rect x='{begin:.1f}' y='{y:.1f}' width='{wide * 0.6:.1f}' "
                             f"height='{self.up.start - y:.1f}' fill='{colour}' fill-opacity='0.6'/>")
            self.spread(begin + wide * 0.3, low, middle, high, "#222")
            self.body.append(text(begin + wide * 0.3, self.top + HEIGHT + 15, label))

    def level(self, value, label):
        """A line across at VALUE."""
        y = self.up.at(value)
        self.body += [f"<line x1='{self.left}' x2='{self.left + WIDTH}' y1='{y:.1f}' y2='{y:.1f}' "
                      "stroke='#222' stroke-dasharray='5 3'/>",
                      text(self.left + WIDTH - 4, y - 4, label, "end")]


def blank(left, top, caption, *words):
    """The elements of a panel of which nothing has been measured, as its WORDS say."""
    panel = Panel(left, top, caption, 1)
    panel.body = panel.body[:2]     # no marks upwards
    middle = panel.top + HEIGHT / 2
    return [*panel.draw(), *(text(panel.left + WIDTH / 2, middle + 16 * line, one, more=GREY)
                             for line, one in enumerate(words))]


def legend(entries, y=46):
    """ENTRIES: (name, colour), from left to right."""
    out, x = [], LEFT
    for name, colour in entries:
        out += [f"<line x1='{x}' x2='{x + 22}' y1='{y - 4}' y2='{y - 4}' stroke='{colour}' "
                "stroke-width='3'/>", text(x + 28, y, name, "start")]
        x += 28 + 9 * len(name) + 20
    return out
