#!/usr/bin/env python3
"""Draws docs/images/collectives.svg: how long an allreduce takes here, beside Gloo and Open MPI.

    docs/images/collectives.py [OUTPUT.svg]      after `make bench-collectives`, from its results in build/bench-collectives
"""
import json
import math
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/bench/collectives"))
import table  # noqa: E402

LINES = {"ringmaster-auto": ("Ringmaster", "#0b6e4f", ""), "ringmaster-tcp": ("Ringmaster over TCP", "#0b6e4f", "6 4"),
         "gloo": ("Gloo, its best algorithm", "#c05a00", ""), "mpi": ("Open MPI, its best algorithm", "#3557a8", "")}
WIDTH, HEIGHT, LEFT, TOP, GAP = 430, 330, 70, 70, 80


def main():
    files = sorted((ROOT / "build/bench-collectives").glob("results-[0-9]*.json"))
    if not files:
        sys.exit("no results: run `make bench-collectives` first")
    panels = [json.loads(file.read_text(encoding="utf-8"), object_hook=with_numbers) for file in files]
    output = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "docs/images/collectives.svg")
    output.write_text(picture(panels), encoding="utf-8")
    print(output)


def with_numbers(value):
    """JSON's keys are texts; ours are bytes."""
    return {int(key) if key.isdigit() else key: one for key, one in value.items()}


def picture(panels):
    width = LEFT + len(panels) * (WIDTH + GAP)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {TOP + HEIGHT + 90}" font-family="sans-serif" font-size="12" fill="#1f2329">',
             '<rect width="100%" height="100%" fill="#ffffff"/>',
             text(LEFT, 24, "Allreduce of f32 on one machine: microseconds by size", size=16, bold=True),
             text(LEFT, 44, panels[0]["machine"] + "; medians", colour="#5a6068")]
    for number, results in enumerate(panels):
        parts += panel(results, LEFT + number * (WIDTH + GAP))
    for number, (name, colour, dash) in enumerate(LINES.values()):
        x, y = LEFT + number * 210, TOP + HEIGHT + 70
        parts += [f'<path d="M{x} {y - 4}h26" stroke="{colour}" stroke-width="2.5" stroke-dasharray="{dash}"/>', text(x + 32, y, name)]
    return "\n".join(parts + ["</svg>", ""])


def panel(results, left):
    curves = {}
    for row in table.rows(results):
        for peer, found in zip(LINES, (row["auto"], row["tcp"], row["gloo"], row["mpi"])):
            if found:
                curves.setdefault(peer, []).append((row["size"], found[0]))
    times = [time for curve in curves.values() for _, time in curve]
    low, high = math.floor(math.log10(min(times))), math.ceil(math.log10(max(times)))
    first, last = math.log2(results["sizes"][0]), math.log2(results["sizes"][-1])

    def x(size):
        return left + WIDTH * (math.log2(size) - first) / max(last - first, 1)

    def y(time):
        return TOP + HEIGHT * (high - math.log10(time)) / (high - low)
    parts = [text(left + WIDTH / 2, TOP - 8, f"{results['ranks']} ranks", bold=True, anchor="middle")]
    for power in range(low, high + 1):
        parts += [f'<path d="M{left} {y(10 ** power):.1f}h{WIDTH}" stroke="#e1e4e8"/>',
                  text(left - 8, y(10 ** power) + 4, f"{10 ** power:g}", anchor="end")]
    for size in (4 << 4 * step for step in range(8)):
        if results["sizes"][0] <= size <= results["sizes"][-1]:
            parts.append(text(x(size), TOP + HEIGHT + 20, table.name_of(size), anchor="middle"))
    for peer, curve in curves.items():
        _, colour, dash = LINES[peer]
        points = " ".join(f"{x(size):.1f},{y(time):.1f}" for size, time in curve)
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2.5" stroke-dasharray="{dash}"/>')
    return parts


def text(x, y, words, size=12, colour="#1f2329", bold=False, anchor="start"):
    weight = ' font-weight="bold"' if bold else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{colour}" text-anchor="{anchor}"{weight}>{words}</text>'


main()
