#!/usr/bin/env python3
"""Draws docs/images/dashboard-operator.svg and dashboard-job.svg: the chart's dashboards, their panels where they lie, filled by what Prometheus
answers about a real run. Grafana draws the same panels from the same answers in its own style.

    draw_dashboards.py [SECONDS]    how long the run is watched, 90 by default; one worker is killed half-way
"""
import json
import math
import os
import re
import signal
import sys
import time
from xml.sax.saxutils import escape

from scraped_run import ScrapedRun, panels
from testing import ROOT, wait_until

COLUMN, ROW, GAP = 50, 34, 8  # of Grafana's grid of 24 columns, in pixels
COLOURS = ["#3d71d9", "#e0752d", "#37872d", "#c4162a", "#8f3bb8", "#b58900", "#0a7c8c", "#6e7074"]
STEP = 1  # seconds


def number(value, unit):
    """A value as a person reads it."""
    if not math.isfinite(value):
        return "–"
    if unit == "percentunit":
        return f"{100 * value:.1f} %"
    if unit == "s" and abs(value) < 1:
        return f"{1000 * value:.3g} ms" if abs(value) >= 1e-3 or value == 0 else f"{1e6 * value:.3g} µs"
    for size, prefix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= 10 * size:
            return f"{value / size:.{3 if abs(value) < 1000 * size else 4}g} {prefix}" + {"Bps": "B/s"}.get(unit, "")
    return f"{value:.4g}" + {"s": " s", "Bps": " B/s", "ops": "/s", "cps": "/s"}.get(unit, "")


def name_of(target, metric):
    text = target["legendFormat"]
    for label, value in metric.items():
        text = text.replace("{{%s}}" % label, value)
    return re.sub(r"{{\w+}}", "", text).strip()


def text(x, y, words, size=11, colour="#3b3f46", anchor="start", weight="normal"):
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{colour}" text-anchor="{anchor}" font-weight="{weight}">{escape(words)}</text>'


def draw_stat(x, y, width, height, series, unit):
    lines = []
    for place, (name, points) in enumerate(series):
        middle = x + width * (place + 0.5) / len(series)
        lines.append(text(middle, y + height * 0.62, number(points[-1][1], unit), 22, "#1f2329", "middle", "bold"))
        if len(series) > 1:
            lines.append(text(middle, y + height * 0.85, name, 10, anchor="middle"))
    return lines


def draw_lines(x, y, width, height, series, unit, span):
    left, right, top, bottom = x + 58, x + width - 10, y + 30, y + height - 36
    values = [value for _, points in series for _, value in points if math.isfinite(value)]
    low, high = min([0, *values]), max([0, *values])
    high = high if high > low else low + 1
    across = lambda when: left + (right - left) * (when - span[0]) / (span[1] - span[0])  # noqa: E731
    up = lambda value: bottom - (bottom - top) * (value - low) / (high - low)  # noqa: E731
    lines = []
    for share in (0, 0.5, 1):
        value = low + share * (high - low)
        lines.append(f'<line x1="{left}" x2="{right}" y1="{up(value):.1f}" y2="{up(value):.1f}" stroke="#e3e6ea"/>')
        lines.append(text(left - 6, up(value) + 4, number(value, unit), 10, "#6b717a", "end"))
    place = left
    for index, (name, points) in enumerate(series):
        colour = COLOURS[index % len(COLOURS)]
        path = " ".join(f"{across(when):.1f},{up(value):.1f}" for when, value in points if math.isfinite(value))
        lines.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
        lines.append(f'<rect x="{place:.1f}" y="{bottom + 16}" width="10" height="3" fill="{colour}"/>' + text(place + 14, bottom + 21, name, 10))
        place += 26 + 6 * len(name)
    return lines


def draw(board, answers, span):
    tall = max(panel["gridPos"]["y"] + panel["gridPos"]["h"] for panel in board["panels"]) * ROW + 48
    wide = 24 * COLUMN + GAP
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {tall}" font-family="sans-serif">',
             f'<rect width="{wide}" height="{tall}" fill="#f4f5f6"/>', text(GAP + 4, 28, board["title"], 17, "#1f2329", weight="bold")]
    for panel in board["panels"]:
        grid, unit = panel["gridPos"], panel["fieldConfig"]["defaults"].get("unit")
        x, y = grid["x"] * COLUMN + GAP, grid["y"] * ROW + 42
        width, height = grid["w"] * COLUMN - GAP, grid["h"] * ROW - GAP
        series = answers[panel["id"]]
        lines.append(f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="3" fill="#ffffff" stroke="#d8dbe0"/>')
        lines.append(text(x + 10, y + 18, panel["title"], 12, "#1f2329", weight="bold"))
        lines += draw_stat(x, y, width, height, series, unit) if panel["type"] == "stat" else draw_lines(x, y, width, height, series, unit, span)
    return "\n".join([*lines, "</svg>"]) + "\n"


def watch(scraped, seconds):
    """Lets the run go on, with one worker killed half-way; the span of time that was watched."""
    begin = time.time()
    for end, then in ((begin + seconds / 2, lambda: os.kill(scraped.run.workers()[2], signal.SIGKILL)), (begin + seconds, lambda: None)):
        while time.time() < end:
            if not scraped.run.running():
                raise SystemExit(f"the run ended:\n{scraped.run.text()}")
            time.sleep(0.2)
        then()
        if end < begin + seconds:
            wait_until(lambda: scraped.run.job().get("status", {}).get("round", 0) >= 2, "the round after the kill")
            scraped.find_targets()
    return begin, time.time()


def main(seconds):
    scraped = ScrapedRun()
    try:
        scraped.start()
        span = watch(scraped, seconds)
        answers = {}
        for name, panel, target, query in panels():
            for item in scraped.prometheus.ask("query_range", query=query, start=span[0], end=span[1], step=STEP):
                points = [(float(when), float(value)) for when, value in item["values"]]
                answers.setdefault((name, panel["id"]), []).append((name_of(target, item["metric"]), points))
    finally:
        scraped.stop()
    for name in ("operator", "job"):
        board = json.loads((ROOT / f"charts/ringmaster/files/dashboards/{name}.json").read_text())
        of_board = {panel["id"]: answers.get((name, panel["id"]), []) for panel in board["panels"]}
        (ROOT / f"docs/images/dashboard-{name}.svg").write_text(draw(board, of_board, span))


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 90)
