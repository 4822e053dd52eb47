#!/usr/bin/env python3
"""One way of training with PyTorch, in a process of its own: peer.py NETWORK MODE THREADS DUMP

Takes the batch and the weights of DUMP (`ringmaster bench train --dump`), repeats its steps and prints, as one line of JSON, how far its loss and
gradients are away. Then, for each line of standard input, a number of seconds, it trains so long and prints the median step and its peak memory.
MODE is eager, channels-last or compile.
"""
import json
import pathlib
import resource
import statistics
import struct
import sys
import time

import numpy
import torch
from torch import nn

from networks import NETWORKS

WARM_UP = 5


def main():
    name, mode, threads, dump = sys.argv[1:]
    torch.set_num_threads(int(threads))
    torch.manual_seed(1)
    tensors, metadata = read(pathlib.Path(dump))
    inputs, labels = tensors["inputs"], tensors["labels"].long()
    if mode == "channels-last" and inputs.dim() == 4:
        inputs = inputs.to(memory_format=torch.channels_last)
    make, dropout = NETWORKS[name]
    say(verify(Trainer(make(0), mode, tensors, metadata), inputs, labels, tensors))
    trainer = Trainer(make(dropout), mode, tensors, metadata)
    for _ in range(WARM_UP):
        trainer.step(inputs, labels)
    for line in sys.stdin:
        say({"step_seconds": median_step(trainer, inputs, labels, float(line)),
             "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024})


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
        self.optimizer = torch.optim.SGD(network.parameters(), lr=float(metadata["learning_rate"]), momentum=float(metadata["momentum"]), fused=True)
        criterion = nn.CrossEntropyLoss()

        def loss(inputs, labels):
            return criterion(network(inputs), labels)
        self.loss = torch.compile(loss) if mode == "compile" else loss

    def step(self, inputs, labels):
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.loss(inputs, labels)
        loss.backward()
        self.optimizer.step()
        return loss

    def gradients(self):
        return {name: parameter.grad for name, parameter in zip(self.names, self.network.parameters())}


def verify(trainer, inputs, labels, tensors):
    """How far the first loss, each gradient (of its largest element) and the losses of all steps are from those of the dump."""
    losses = [trainer.step(inputs, labels).item()]
    gradients = {}
    for name, mine in trainer.gradients().items():
        theirs = tensors["gradients/" + name]
        gradients[name] = ((mine - theirs).abs().max() / theirs.abs().max()).item()
    while len(losses) < len(tensors["losses"]):
        losses.append(trainer.step(inputs, labels).item())
    return {"version": torch.__version__, "loss": abs(losses[0] - tensors["losses"][0].item()), "gradients": gradients,
            "losses": max(abs(mine - theirs) for mine, theirs in zip(losses, tensors["losses"].tolist()))}


def median_step(trainer, inputs, labels, seconds):
    times = []
    begun = time.perf_counter()
    while len(times) < 5 or time.perf_counter() - begun < seconds:
        before = time.perf_counter()
        trainer.step(inputs, labels)
        times.append(time.perf_counter() - before)
    return statistics.median(times)


def read(path):
    """The tensors and the metadata of a safetensors file."""
    content = path.read_bytes()
    size = struct.unpack("<Q", content[:8])[0]
    header = json.loads(content[8:8 + size])
    metadata = header.pop("__metadata__", {})
    tensors = {}
    for name, about in header.items():
        begin, end = (8 + size + offset for offset in about["data_offsets"])
        array = numpy.frombuffer(content[begin:end], dtype={"F32": "<f4", "I32": "<i4"}[about["dtype"]])
        tensors[name] = torch.from_numpy(array.reshape(about["shape"]).copy())
    return tensors, metadata


def say(message):
    print(json.dumps(message), flush=True)


main()
