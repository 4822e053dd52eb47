#!/usr/bin/env python3
"""check.py FOLDER: whether what `dump_cases` wrote there is what PyTorch computes. Runs where PyTorch is; `compare` starts it."""
import pathlib
import sys

import torch
from ops import Case, Unlike
from optimizers import OPTIMIZERS, furthest
from tensors import read
from training import run_distances

# Of the largest element, which counts as one at least. All is computed again in double from the same values.
TOLERANCES = {"f64": 1e-12, "f32": 2e-5}
# Of weights of about one, after a thousand steps in f32.
OF_OPTIMIZERS = 2e-5
# Of losses, weights and running statistics, all of about one, after ten steps in f32.
OF_TRAINING = 2e-5


def main():
    folder = pathlib.Path(sys.argv[1])
    torch.set_num_threads(1)
    failures, worst, cases = [], {}, 0
    for path in sorted((folder / "ops").iterdir()):
        name, dtype, _ = path.name.rsplit(".", 2)
        cases += 1
        try:
            distances = Case(*read(path)).furthest()
        except Unlike as error:
            failures.append(f"{name} in {dtype}: {error}")
            continue
        output = max(distances, key=distances.get)
        worst[dtype] = max(worst.get(dtype, (0, "")), (distances[output], f"{name}'s {output}"))
        if not distances[output] <= TOLERANCES[dtype]:
            failures.append(f"{name} in {dtype}: {output} is {distances[output]:.2g} away, {TOLERANCES[dtype]:.0e} are allowed")
    for dtype, (distance, what) in sorted(worst.items()):
        print(f"ops in {dtype}: at most {distance:.1e} away from PyTorch {torch.__version__} in double, in {what}")
    paths = sorted((folder / "optimizers").iterdir())
    for path in paths:
        tensors, metadata = read(path)
        distance = furthest(path.stem, tensors, int(metadata["look_every"]), float(metadata["rate_decay"]))
        print(f"{path.stem}: at most {distance:.1e} away in {len(tensors['noise'])} steps")
        if not distance <= OF_OPTIMIZERS:
            failures.append(f"{path.stem}: a weight is {distance:.2g} away, {OF_OPTIMIZERS:.0e} are allowed")
    if {path.stem for path in paths} != set(OPTIMIZERS):
        failures.append("not every optimizer was written")
    runs = sorted((folder / "training").iterdir())
    for path in runs:
        found = run_distances(*read(path))
        worst_of_run = max(found, key=found.get)
        print(f"{path.stem}: at most {found[worst_of_run]:.1e} away in {len(found)} tensors and losses, in {worst_of_run}")
        if not found[worst_of_run] <= OF_TRAINING:
            failures.append(f"{path.stem}: {worst_of_run} is {found[worst_of_run]:.2g} away, {OF_TRAINING:.0e} are allowed")
    for failure in failures:
        print(failure, file=sys.stderr)
    print(f"{cases + len(paths) + len(runs) - len(failures)} alike, {len(failures)} not")
    sys.exit(1 if failures or cases == 0 or not runs else 0)


main()
