#!/usr/bin/env python3
"""Draws docs/images/collectives-growth.svg: how the algorithms of the allreduce and of the ordered sum grow from 2 to 64 ranks.

    docs/images/collectives_growth.py [OUTPUT.svg]      needs collectives_growth (cmake --build --preset release --target collectives_growth)

Lines are the cost model's predictions, dots what a simulated network of the same latency and bandwidth gave; those of the ordered sum are dashed, and rings.
"""
import json
import math
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "build/release/tests/collectives_growth"
COLOURS = {"direct": "#8b949e", "doubling": "#ff7b72", "halving-doubling": "#d2a8ff", "ring": "#79c0ff", "tree": "#ffa657", "double-tree": "#7ee787",
           "two-level": "#f2cc60", "one-shot": "#f778ba"}
WIDTH, HEIGHT, LEFT, TOP, GAP = 380, 260, 70, 60, 90


def panels(rows):
    """(title, rows, what is drawn as a line or None, what as dots)"""
    small = [row for row in rows if row["bytes"] == 1024]
    large = [row for row in rows if row["bytes"] > 1024]

    def microseconds(field):
        return lambda row: row[field] * 1e6
    return [("1 KiB: µs", small, microseconds("predicted"), microseconds("simulated")),
            ("1 MiB: µs", large, microseconds("predicted"), microseconds("simulated")),
            ("connections of a rank", large, None, lambda row: row["peers"]),
            ("1 MiB: KiB of memory beside input and result", large, None, lambda row: row["scratch"] / 1024)]


def draw(title, rows, line, dots, left, top):
    values = [f(row) for row in rows for f in (line, dots) if f]
    low, high = math.floor(math.log10(max(min(values), 0.1))), math.ceil(math.log10(max(values)))

    def x(ranks):
        return left + (math.log2(ranks) - 1) / 5 * WIDTH

    def y(value):
        return top + HEIGHT - (math.log10(max(value, 10.0 ** low)) - low) / (high - low) * HEIGHT
    yield f'<text x="{left}" y="{top - 12}" font-size="15" fill="#e6edf3">{title}</text>'
    for power in range(low, high + 1):
        at = y(10.0 ** power)
        yield f'<path d="M{left} {at:.1f}h{WIDTH}" stroke="#30363d"/>'
        yield f'<text x="{left - 8}" y="{at + 4:.1f}" text-anchor="end">{10.0 ** power:g}</text>'
    for ranks in (2, 4, 8, 16, 32, 64):
        yield f'<text x="{x(ranks):.1f}" y="{top + HEIGHT + 18}" text-anchor="middle">{ranks}</text>'
    for name, colour in COLOURS.items():
        for ordered in (False, True):
            mine = [row for row in rows if row["algorithm"] == name and row["ordered"] == ordered]
            if not mine:
                continue
            path = "L".join(f'{x(row["ranks"]):.1f} {y((line or dots)(row)):.1f}' for row in mine)
            dashes = ' stroke-dasharray="6 4"' if ordered else ""
            yield f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="2"{dashes}/>'
            for row in mine:
                kind = f'r="6" fill="none" stroke="{colour}"' if ordered else f'r="3.5" fill="{colour}"'
                yield f'<circle cx="{x(row["ranks"]):.1f}" cy="{y(dots(row)):.1f}" {kind}/>'


def svg(rows):
    width, height = 2 * (LEFT + WIDTH) + 60, 2 * (HEIGHT + GAP) + 40
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">',
             "<!-- written by docs/images/collectives_growth.py -->",
             f'<rect width="{width}" height="{height}" rx="8" fill="#0d1117"/>',
             '<g font-family="ui-sans-serif, system-ui, DejaVu Sans, sans-serif" font-size="12" fill="#8b949e">']
    for number, (title, some, line, dots) in enumerate(panels(rows)):
        lines += draw(title, some, line, dots, LEFT + number % 2 * (WIDTH + LEFT), TOP + number // 2 * (HEIGHT + GAP))
    for number, (name, colour) in enumerate(COLOURS.items()):
        lines.append(f'<text x="{LEFT + number * 97}" y="{height - 14}" font-size="13" fill="{colour}">● {name}</text>')
    lines.append(f'<text x="{LEFT + len(COLOURS) * 97}" y="{height - 14}" font-size="13" fill="#e6edf3">○ ordered sum</text>')
    return "\n".join([*lines, "</g>", "</svg>", ""])


if __name__ == "__main__":
    output = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs/images/collectives-growth.svg"
    printed = subprocess.run([PROGRAM], check=True, capture_output=True, text=True).stdout
    output.write_text(svg([json.loads(line) for line in printed.splitlines()]))
    print(f"{output}: written")
