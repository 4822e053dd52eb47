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
from torch import nn

from networks import NETWORKS

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "pytorch"))
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
    theirs = {"losses": tensors["losses"].tolist(), "gradients": {name: tensors["gradients/" + name] for name in mine["gradients"]}}
    say(differences(mine, theirs))
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


class Trainer:
    def __init__(self, network, mode, tensors, metadata):
        self.network = network
        self.names = [name.removeprefix("weights/") for name in tensors if name.startswith("weights/")]
        parameters = list(network.parameters())
        assert len(parameters) == len(self.names), "the networks have other parameters"
        with torch.no_grad():
            for name, parameter in zip(self.names, parameters):
                assert parameter.shape == tensors["weights/" + name].shape, f"{name} has another shape"
                parameter.copy_(tensors["weights/" + name])
        if mode == "channels-last":
            network.to(memory_format=torch.channels_last)
        if mode == "double":
            network.double()
        self.optimizer = torch.optim.SGD(network.parameters(), lr=float(metadata["learning_rate"]), momentum=float(metadata["momentum"]), fused=True)
        criterion = nn.CrossEntropyLoss()

        def loss(inputs, labels):
            # Each token of a text has a label of its own.
            return criterion(network(inputs).flatten(0, -2), labels.flatten())
        self.loss = torch.compile(loss) if mode == "compile" else loss

    def step(self, inputs, labels):
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.loss(inputs, labels)
        loss.backward()
        self.optimizer.step()
        return loss

    def gradients(self):
        return {name: parameter.grad for name, parameter in zip(self.names, self.network.parameters())}


def first_steps(trainer, inputs, labels, steps):
    """The losses of so many steps, and the gradients of the first."""
    losses = [trainer.step(inputs, labels).item()]
    gradients = {name: gradient.clone() for name, gradient in trainer.gradients().items()}
    losses += [trainer.step(inputs, labels).item() for _ in range(1, steps)]
    return {"losses": losses, "gradients": gradients}


def differences(mine, theirs):
    """How far the first loss, each gradient (of its largest element) and the losses of all steps are away."""
    return {"version": torch.__version__, "loss": abs(mine["losses"][0] - theirs["losses"][0]), "losses": furthest(mine, theirs),
            "gradients": {name: ((gradient - theirs["gradients"][name]).abs().max() / theirs["gradients"][name].abs().max()).item()
                          for name, gradient in mine["gradients"].items()}}


def distances(some, exact):
    """The same, but of all gradients together the length of the difference, as a share of the whole's."""
    difference = sum((some["gradients"][name].double() - gradient).norm().item() ** 2 for name, gradient in exact["gradients"].items())
    whole = sum(gradient.norm().item() ** 2 for gradient in exact["gradients"].values())
    return {"loss": abs(some["losses"][0] - exact["losses"][0]), "gradient": (difference / whole) ** 0.5, "losses": furthest(some, exact)}


def furthest(some, others):
    return max(abs(one - other) for one, other in zip(some["losses"], others["losses"]))


def as_double(inputs):
    return inputs.double().contiguous() if inputs.is_floating_point() else inputs


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
