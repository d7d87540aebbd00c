# SPDX-License-Identifier: BSD-3-Clause
"""An idle wave as a picture: ranks upwards, steps to the right, the darker the longer it waited."""
from bench.drawing import BLUE, RED, text, write_svg

CELL_W, CELL_H = 13, 11
LEFT, TOP, RIGHT, BELOW, BETWEEN = 56, 76, 24, 44, 70
COLOURS = {"ucx": RED, "zc": BLUE}


def panel(impl, wave, title, left):
    waits, delay_ms = wave["waits_ms"], wave["delay_ms"]
    ranks, steps = len(waits), len(waits[0])
    width, height = steps * CELL_W, ranks * CELL_H
    body = [text(left + width / 2, TOP - 10, title, more=" font-weight='bold'")]
    for rank, row in enumerate(waits):
        y = TOP + (ranks - 1 - rank) * CELL_H
        for step, wait in enumerate(row):
            share = min(wait / delay_ms, 1)
            if share >= 0.02:
                body.append(f"<rect x='{left + step * CELL_W}' y='{y}' width='{CELL_W}' "
                            f"height='{CELL_H}' fill='{COLOURS.get(impl, '#444')}' "
                            f"fill-opacity='{share:.2f}'><title>rank {rank}, step {step}: waited "
                            f"{wait:.0f} ms</title></rect>")
    x, y = left + wave["step"] * CELL_W, TOP + (ranks - 1 - wave["delayed"]) * CELL_H
    body.append(f"<rect x='{x}' y='{y}' width='{CELL_W}' height='{CELL_H}' fill='black'>"
                f"<title>rank {wave['delayed']} is {delay_ms:g} ms late</title></rect>")
    for rank in range(0, ranks, max(1, ranks // 8)):
        body.append(text(left - 6, TOP + (ranks - rank - 0.1) * CELL_H, str(rank), "end"))
    for step in range(0, steps, 5):
        body.append(text(left + (step + 0.5) * CELL_W, TOP + height + 14, str(step)))
    body.append(text(left + width / 2, TOP + height + 30, "step"))
    body.append(f"<rect x='{left}' y='{TOP}' width='{width}' height='{height}' fill='none' "
                "stroke='#444'/>")
    return body, width, height


def draw(waves, setting, path):
    """WAVES: {impl: (the program's "wave", a title)}."""
    body, left, height = [], LEFT, 0
    for impl, (wave, title) in waves.items():
        drawn, width, height = panel(impl, wave, title, left)
        body += drawn
        left += width + BETWEEN
    body.append(text(LEFT, 44, "colour: how long a rank waited in a step, full: as long as the delay "
                     "(black)", "start", " fill='#666'"))
    write_svg(path, left - BETWEEN + RIGHT, TOP + height + BELOW,
              f"one late rank of a ring, {setting.describe()}", LEFT, body)
