#!/usr/bin/env python3
"""Draws docs/images/live-view.svg: `ringmaster run` on a terminal, shortly after one of four workers was killed.

    docs/images/live_view.py [OUTPUT.svg]      needs tmux, and the programs in build/release/bin (make build)

The picture is of a real run in a real terminal (tmux's): nothing in it is written by hand.
"""
import html
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import types

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/e2e"))
from ringmaster_run import BIN, Run, wait_until  # noqa: E402

COLUMNS, ROWS = 118, 12
CELL, LINE, MARGIN = 8.4, 19, 16  # of a 14 px monospaced font
COLOURS = {"31": "#ff7b72", "32": "#7ee787", "90": "#8b949e"}  # as cli/view.cc uses them
SGR = re.compile(r"\x1b\[([\d;]*)m")
# Longer than the example, and with closer checkpoints, so that there is something to see and little is computed again.
COMMAND = "ringmaster run examples/digits/job.yaml --set spec.trainer.epochs=40 --set spec.checkpoint.everySteps=10"


def record():
    """The terminal's rows with their colours, some steps after a worker was lost and replaced."""
    with tempfile.TemporaryDirectory() as folder:
        def tmux(*arguments):
            return subprocess.run(["tmux", "-L", f"live-view-{os.getpid()}", "-f", "/dev/null", *arguments], check=True, capture_output=True, text=True).stdout
        (pathlib.Path(folder) / "examples").symlink_to(ROOT / "examples")
        tmux("new-session", "-d", "-x", str(COLUMNS), "-y", str(ROWS + 1), "-c", folder,
             f"printf '$ {COMMAND}\\n'; exec {BIN}/{COMMAND}")
        try:
            tmux("set", "-g", "status", "off")
            pid = int(tmux("list-panes", "-F", "#{pane_pid}"))
            run = types.SimpleNamespace(process=types.SimpleNamespace(pid=pid))

            def step():
                match = re.search(r"step (\d+)/", tmux("capture-pane", "-p"))
                return int(match.group(1)) if match else 0
            wait_until(lambda: step() > 300, "step 300")
            os.kill(Run.workers(run)[2], signal.SIGKILL)
            wait_until(lambda: "Round 2" in tmux("capture-pane", "-p"), "the second round")
            again = step()
            wait_until(lambda: step() > again + 40, "steps of the second round")
            return tmux("capture-pane", "-p", "-e").rstrip("\n").split("\n")
        finally:
            tmux("kill-server")


def pieces(row):
    """(column, text, colour) of each run of characters of one colour."""
    column, colour = 0, None
    for index, part in enumerate(SGR.split(row)):
        if index % 2:
            colour = COLOURS.get(part.split(";")[-1])
        elif part:
            yield column, part, colour
            column += len(part)


def svg(rows):
    width, height = COLUMNS * CELL + 2 * MARGIN, len(rows) * LINE + 2 * MARGIN
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height}" viewBox="0 0 {width:.0f} {height}">',
             "<!-- written by docs/images/live_view.py -->",
             f'<rect width="{width:.0f}" height="{height}" rx="8" fill="#0d1117"/>',
             '<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, DejaVu Sans Mono, monospace" font-size="14" fill="#e6edf3" xml:space="preserve">']
    for number, row in enumerate(rows):
        for column, text, colour in pieces(row):
            if text.strip():
                fill = f' fill="{colour}"' if colour else ""
                lines.append(f'<text x="{MARGIN + column * CELL:.1f}" y="{MARGIN + number * LINE + 14}" textLength="{len(text) * CELL:.1f}"{fill}>{html.escape(text)}</text>')
    return "\n".join([*lines, "</g>", "</svg>", ""])


if __name__ == "__main__":
    output = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs/images/live-view.svg"
    output.write_text(svg(record()))
    print(f"{output}: written")
