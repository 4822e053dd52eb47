#!/usr/bin/env python3
"""One way of training with PyTorch, in a process of its own: peer.py NETWORK MODE THREADS DUMP

Takes the batch and the weights of DUMP (`ringmaster bench train --dump`), repeats its steps and prints, as one line of JSON, how far its loss and
gradients are away; then, where the first line of standard input is "double", how far both are from PyTorch's eager mode in double precision. When it has
compiled and warmed up, which others are not to be timed beside, it prints an empty object. For each line after that, a number of seconds, it trains so
long and prints the median step and its peak memory.
MODE is eager, channels-last or compile.
"""
import gc
import json
import pathlib
import re
import statistics
import sys
import time

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "pytorch"))
from networks import NETWORKS  # noqa: E402
from steps import Trainer, as_double, differences, distances, dumped_steps, first_steps  # noqa: E402
from tensors import read  # noqa: E402

WARM_UP = 5
# Of a network whose steps take so long that five would be tedious, as `ringmaster bench train` has it.
LEAST_STEPS, FEWEST_STEPS, TEDIOUS = 5, 2, 20


def main():
    name, mode, threads, dump = sys.argv[1:]
    torch.set_num_threads(int(threads))
    torch.manual_seed(1)
    tensors, metadata = read(pathlib.Path(dump))
    inputs, labels = tensors["inputs"], tensors["labels"].long()
    if mode == "channels-last" and inputs.dim() == 4:
        inputs = inputs.to(memory_format=torch.channels_last)
    make, dropout = NETWORKS[name]
    mine = first_steps(Trainer(make(0), mode, tensors, metadata), inputs, labels, len(tensors["losses"]))
    theirs = dumped_steps(tensors)
    say({"version": torch.__version__, **differences(mine, theirs)})
    if sys.stdin.readline().strip() == "double":
        exact = first_steps(Trainer(make(0), "double", tensors, metadata), as_double(inputs), labels, len(tensors["losses"]))
        say({what: [distances(theirs, exact)[what], distances(mine, exact)[what]] for what in ("loss", "gradient", "losses")})
        del exact
    trainer = Trainer(make(dropout), mode, tensors, metadata)
    # What was needed to verify is not training's: of a large network it is gigabytes.
    del tensors, mine, theirs
    gc.collect()
    forget_peak()
    begun = time.perf_counter()
    for step in range(WARM_UP):
        if step < FEWEST_STEPS or time.perf_counter() - begun < TEDIOUS:
            trainer.step(inputs, labels)
    say({})
    for line in sys.stdin:
        say({"step_seconds": median_step(trainer, inputs, labels, float(line)),
             "peak_bytes": peak_bytes()})


def median_step(trainer, inputs, labels, seconds):
    times = []
    begun = time.perf_counter()
    while True:
        taken = time.perf_counter() - begun
        if taken >= seconds and (len(times) >= LEAST_STEPS or len(times) >= FEWEST_STEPS and taken >= TEDIOUS):
            return statistics.median(times)
        before = time.perf_counter()
        trainer.step(inputs, labels)
        times.append(time.perf_counter() - before)


def forget_peak():
    pathlib.Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def peak_bytes():
    return int(re.search(r"VmHWM:\s+(\d+) kB", pathlib.Path("/proc/self/status").read_text(encoding="utf-8"))[1]) * 1024


def say(message):
    print(json.dumps(message), flush=True)


main()
