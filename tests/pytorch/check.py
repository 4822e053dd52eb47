#!/usr/bin/env python3
"""check.py FOLDER: whether what `dump_cases` wrote there is what PyTorch computes. Runs where PyTorch is; `compare` starts it."""
import os
import pathlib
import sys

import torch
from ops import Case
from optimizers import OPTIMIZERS, furthest
from tally import Tally, Unlike
from tensors import read
from training import run_distances
from whole import compare_in_double, compare_network

# Of the largest element, which counts as one at least. All is computed again in double from the same values.
TOLERANCES = {"f64": 1e-12, "f32": 2e-5}
# Of weights of about one, after a thousand steps in f32.
OF_OPTIMIZERS = 2e-5
# Of losses, weights and running statistics, all of about one, after ten steps in f32.
OF_TRAINING = 2e-5


def check_within(distance, tolerance, what):
    if not distance <= tolerance:
        raise Unlike(f"{what} is {distance:.2g} away, {tolerance:.0e} are allowed")


def check_ops(paths, tally):
    worst = {}
    for path in paths:
        name, dtype, _ = path.name.rsplit(".", 2)
        with tally.case(f"{name} in {dtype}"):
            distances = Case(*read(path)).furthest()
            output = max(distances, key=distances.get)
            worst[dtype] = max(worst.get(dtype, (0, "")), (distances[output], f"{name}'s {output}"))
            check_within(distances[output], TOLERANCES[dtype], output)
    for dtype, (distance, what) in sorted(worst.items()):
        print(f"ops in {dtype}: at most {distance:.1e} away from PyTorch {torch.__version__} in double, in {what}")


def check_optimizers(paths, tally):
    for path in paths:
        with tally.case(path.stem):
            tensors, metadata = read(path)
            distance = furthest(path.stem, tensors, int(metadata["look_every"]), float(metadata["rate_decay"]))
            print(f"{path.stem}: at most {distance:.1e} away in {len(tensors['noise'])} steps")
            check_within(distance, OF_OPTIMIZERS, "a weight")
    for name in sorted(set(OPTIMIZERS) - {path.stem for path in paths}):
        with tally.case(name):
            raise Unlike("this optimizer was not written")


def check_runs(paths, tally):
    for path in paths:
        with tally.case(path.stem):
            found = run_distances(*read(path))
            worst = max(found, key=found.get)
            print(f"{path.stem}: at most {found[worst]:.1e} away in {len(found)} tensors and losses, in {worst}")
            check_within(found[worst], OF_TRAINING, worst)


def check_networks(paths, compare, tally):
    for path in paths:
        with tally.case(f"{path.stem} of {path.parent.name}"):
            line, wrong = compare(path.stem, *read(path))
            print(line, flush=True)
            if wrong:
                raise Unlike(wrong)


def main():
    folder, tally = pathlib.Path(sys.argv[1]), Tally()
    paths = {part: sorted((folder / part).iterdir()) for part in ("ops", "optimizers", "training", "networks", "networks-f64")}
    torch.set_num_threads(1)
    check_ops(paths["ops"], tally)
    check_optimizers(paths["optimizers"], tally)
    check_runs(paths["training"], tally)
    torch.set_num_threads(os.cpu_count())
    check_networks(paths["networks"], compare_network, tally)
    check_networks(paths["networks-f64"], compare_in_double, tally)
    for failure in tally.failures:
        print(failure, file=sys.stderr)
    print(tally.summary())
    sys.exit(1 if tally.failures or not all(paths.values()) else 0)


main()
