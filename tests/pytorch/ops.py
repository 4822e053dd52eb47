"""The ops of graph/ops.h in PyTorch: each takes the node's attributes and its inputs and gives its first output, or several as a tuple."""
import json
import math
import re

import torch
from tally import Unlike
from torch.nn import functional


# Of more, of either sign, little is left in their sum, which is as exact as they are.
MANY_TERMS = 16384


def attributes(text):
    """"pad=[1, 1] rate=0.5" as a dictionary."""
    return {name: json.loads(value) for name, value in re.findall(r"(\w+)=(\[[^]]*\]|\S+)", text)}


def matmul(node, a, b):
    rows = a.flatten(0, -2).T if node["transpose_a"] else a.flatten(0, -2)
    columns = b.flatten(0, -2).T if node["transpose_b"] else b.flatten(0, -2)
    product = rows @ columns
    return product if node["transpose_a"] else product.reshape(*a.shape[:-1], -1)


def batch_matmul(node, a, b):
    return (a.mT if node["transpose_a"] else a) @ (b.mT if node["transpose_b"] else b)


def slice_of(node, x):
    return x[tuple(slice(begin, begin + size) for begin, size in zip(node["begin"], node["shape"]))]


def pad(node, x):
    pairs = list(zip(node["before"], node["after"]))
    return functional.pad(x, [side for pair in reversed(pairs) for side in pair])


def causal_attention(node, qkv):
    batch, time, width = qkv.shape
    heads = node["heads"]
    queries, keys, values = (part.reshape(batch, time, heads, -1).transpose(1, 2) for part in qkv.split(width // 3, 2))
    attended = functional.scaled_dot_product_attention(queries, keys, values, is_causal=True)
    return attended.transpose(1, 2).reshape(batch, time, width // 3)


def cross_entropy(node, logits, labels):
    return functional.cross_entropy(logits.flatten(0, -2), labels.flatten().long(), reduction="sum", label_smoothing=node["smoothing"])


def nll(_, log_probabilities, labels):
    return functional.nll_loss(log_probabilities.flatten(0, -2), labels.flatten().long(), reduction="sum")


def batch_moments(_, x):
    axes = [axis for axis in range(x.dim()) if axis != 1]
    count = x.new_tensor([x.numel() / x.shape[1]])
    return torch.cat([x.sum(axes), (x * x).sum(axes), count])


def batch_statistics(_, sums):
    channels, count = len(sums) // 2, sums[-1]
    mean = sums[:channels] / count
    squares = sums[channels : 2 * channels] - mean * mean * count
    return mean, squares / count, squares / (count - 1)


def normalise(node, x, gamma, beta, mean, variance, addend=0):
    mean, variance, gamma, beta = (values.reshape(-1, *[1] * (x.dim() - 2)) for values in (mean, variance, gamma, beta))
    y = (x - mean) / torch.sqrt(variance + node["epsilon"]) * gamma + beta + addend
    return functional.relu(y) if node.get("relu") else y


def batch_norm_add_relu_grad(node, x, gamma, mean, variance, y, *gradients):
    """With statistics that need not be those of x, as the case has them: by the formula."""
    across = [0, *range(2, x.dim())]
    mean, variance, gamma = (values.reshape(-1, *[1] * (x.dim() - 2)) for values in (mean, variance, gamma))
    rstd = 1 / torch.sqrt(variance + node["epsilon"])
    normal = (x - mean) * rstd
    passed = sum(gradients) * (y > 0)
    along = passed * normal
    dx = gamma * rstd * (passed - passed.mean(across, keepdim=True) - normal * along.mean(across, keepdim=True))
    return dx, along.sum(across), passed.sum(across), passed


def convolved_and_pooled(node, x, weight, bias=None):
    y = functional.conv2d(x, weight, bias, node["stride"], node["padding"], node["dilation"], node["groups"])
    return functional.max_pool2d(y, node["pool_window"], node["pool_stride"], node["pool_padding"])


def convolved_and_normalised(node, x, weight, *normalisation):
    y = functional.conv2d(x, weight, None, node["stride"], node["padding"], node["dilation"], node["groups"])
    return normalise(node, y, *normalisation)


def normalised_and_pooled(node, x, gamma, beta):
    y = functional.batch_norm(x, None, None, gamma, beta, training=True, eps=node["epsilon"])
    return functional.max_pool2d(functional.relu(y) if node.get("relu") else y, node["pool_window"], node["pool_stride"], node["pool_padding"])


OPS = {
    "adaptive_avg_pool2d": lambda node, x: functional.adaptive_avg_pool2d(x, node["size"]),
    "adaptive_max_pool2d": lambda node, x: functional.adaptive_max_pool2d(x, node["size"]),
    "add": lambda node, a, b: a + b,
    "avg_pool2d": lambda node, x: functional.avg_pool2d(x, node["window"], node["stride"], node["padding"], count_include_pad=bool(node["count_padding"])),
    "batch_matmul": batch_matmul,
    "batch_moments": batch_moments,
    "batch_norm": lambda node, x, gamma, beta: functional.batch_norm(x, None, None, gamma, beta, training=True, eps=node["epsilon"]),
    "batch_norm_add_relu_grad": batch_norm_add_relu_grad,
    "batch_norm_again": normalise,
    "batch_norm_inference": lambda node, x, gamma, beta, mean, variance: functional.batch_norm(x, mean, variance, gamma, beta, eps=node["epsilon"]),
    "batch_norm_max_pool2d": normalised_and_pooled,
    "batch_norm_synchronised": normalise,
    "batch_statistics": batch_statistics,
    "binary_cross_entropy": lambda node, x, labels: functional.binary_cross_entropy_with_logits(x, labels.to(x.dtype), reduction="sum"),
    "causal_attention": causal_attention,
    "concat": lambda node, *parts: torch.cat(parts, node["axis"]),
    "constant": lambda node: torch.full(node["shape"], node["value"], dtype=torch.float64),
    "conv2d": lambda node, x, weight, bias=None: functional.conv2d(x, weight, bias, node["stride"], node["padding"], node["dilation"], node["groups"]),
    "conv2d_batch_norm": convolved_and_normalised,
    "conv2d_max_pool2d": convolved_and_pooled,
    "divide": lambda node, a, b: a / b,
    "embedding": lambda node, table, indices: functional.embedding(indices, table),
    "exact_gelu": lambda node, x: functional.gelu(x),
    "gelu": lambda node, x: functional.gelu(x, approximate="tanh"),
    "layer_norm": lambda node, x, gamma, beta: functional.layer_norm(x, x.shape[-1:], gamma, beta, node["epsilon"]),
    "linear": lambda node, x, weight, bias=None: functional.linear(x, weight, bias),
    "log_softmax": lambda node, x: functional.log_softmax(x, -1),
    "matmul": matmul,
    "max_over": lambda node, x: x.amax(node["axes"], keepdim=True),
    "max_pool2d": lambda node, x: functional.max_pool2d(x, node["window"], node["stride"], node["padding"]),
    "max_pool2d_taps": lambda node, x: functional.max_pool2d(x, node["window"], node["stride"], node["padding"]),
    "multiply": lambda node, a, b: a * b,
    "nll": nll,
    "one_hot": lambda node, labels: functional.one_hot(labels.long(), node["classes"]).double(),
    "pad": pad,
    "relu": lambda node, x: functional.relu(x),
    "reshape": lambda node, x: x.reshape(node["shape"]),
    "scale": lambda node, x: x * node["factor"],
    "sigmoid": lambda node, x: torch.sigmoid(x),
    "silu": lambda node, x: functional.silu(x),
    "slice": slice_of,
    "softmax": lambda node, x: functional.softmax(x, -1),
    "softmax_cross_entropy": cross_entropy,
    "squared_error": lambda node, x, target: functional.mse_loss(x, target, reduction="sum"),
    "subtract": lambda node, a, b: a - b,
    "sum_over_shards": lambda node, x: x,
    "sum_to": lambda node, x: x.sum_to_size(node["shape"]) if node["shape"] else x.sum(),
    "tanh": lambda node, x: torch.tanh(x),
    "transpose": lambda node, x: x.permute(node["axes"]),
}


class Case:
    """A conformance case, computed again in double from the values that it began with."""

    def __init__(self, tensors, metadata):
        self.outputs = {name.removeprefix("output."): tensor for name, tensor in tensors.items() if name.startswith("output.")}
        self.values = {name.removeprefix("source."): self.exact(tensor) for name, tensor in tensors.items() if name.startswith("source.")}
        self.nodes = json.loads(metadata["nodes"])
        self.metadata = metadata

    def exact(self, tensor):
        return tensor.double() if tensor.is_floating_point() else tensor

    def furthest(self):
        """By output, the largest difference, as a share of the largest element, which counts as one at least; of a loss of many terms, of either sign, as a share of them all."""
        sources = {name: value.requires_grad_() for name, value in self.values.items() if "grad." + name in self.outputs}
        for place, node in enumerate(self.nodes):
            made = self.compute(place, node)
            self.values.update(zip(node["outputs"], made if isinstance(made, tuple) else [made]))
        y = self.values[self.metadata["y"]]
        terms = y.flatten() * self.values[self.metadata["weights"]].flatten()
        loss = terms.sum()
        gradients = torch.autograd.grad(loss, list(sources.values()))
        expected = {"y": y, "loss": loss} | {"grad." + name: gradient for name, gradient in zip(sources, gradients)}
        found = {name: self.distance(self.outputs[name], value) for name, value in expected.items()}
        if terms.numel() > MANY_TERMS:
            found["loss"] *= max(1.0, loss.abs().item()) / terms.detach().abs().sum().item()
        return found

    def compute(self, place, node):
        inputs = [self.values[name] for name in node["inputs"] if name is not None]
        about = attributes(node["attributes"])
        if node["op"] == "dropout":
            return self.drop(inputs[0], about["rate"], self.outputs[f"dropout.{place}"])
        if node["op"] not in OPS:
            raise Unlike(f"ops.py does not know {node['op']}")
        return OPS[node["op"]](about, *inputs)

    def drop(self, x, rate, dropped):
        """The mask is ours, and random; how many it keeps is not."""
        kept = (dropped != 0) | (x.detach() == 0)
        spread = 6 * math.sqrt(rate * (1 - rate) / kept.numel())
        if abs(kept.double().mean().item() - (1 - rate)) > spread:
            raise Unlike(f"dropout of {rate} keeps {kept.double().mean().item():.3f}")
        return x * kept / (1 - rate)

    def distance(self, ours, theirs):
        theirs = theirs.detach()
        if ours.shape != theirs.shape:
            raise Unlike(f"the shape is {list(ours.shape)}, PyTorch's {list(theirs.shape)}")
        return ((ours.double() - theirs).abs().max() / max(1.0, theirs.abs().max().item())).item()
