"""The optimizers of `dump_cases` in PyTorch; those that it does not have are written out after their papers, or Caffe's solvers. All in double."""
import torch

PARAMETERS = (slice(0, 48), slice(48, 64), slice(64, 96))


class Lars(torch.optim.Optimizer):
    """You, Gitman, Ginsburg: "Large batch training of convolutional networks", algorithm 1."""

    def __init__(self, parameters, lr, momentum, weight_decay, trust):
        super().__init__(parameters, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay, "trust": trust})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for w in group["params"]:
                norm, slope = w.norm(), w.grad.norm()
                ratio = group["trust"] * norm / (slope + group["weight_decay"] * norm) if norm > 0 and slope > 0 else 1.0
                velocity = self.state[w].setdefault("velocity", torch.zeros_like(w))
                velocity.mul_(group["momentum"]).add_(group["lr"] * ratio * (w.grad + group["weight_decay"] * w))
                w.sub_(velocity)


class Caffe(torch.optim.Optimizer):
    """Caffe's SGDSolver and NesterovSolver: the rate stands inside of the momentum."""

    def __init__(self, parameters, lr, momentum, weight_decay, nesterov=False):
        super().__init__(parameters, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay, "nesterov": nesterov})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for w in group["params"]:
                last = group["momentum"] * self.state[w].get("velocity", 0)
                velocity = self.state[w]["velocity"] = last + group["lr"] * (w.grad + group["weight_decay"] * w)
                w.sub_((1 + group["momentum"]) * velocity - last if group["nesterov"] else velocity)


class Lamb(torch.optim.Optimizer):
    """You et al.: "Large batch optimization for deep learning", algorithm 2."""

    def __init__(self, parameters, lr, weight_decay, betas=(0.9, 0.999), eps=1e-6):
        super().__init__(parameters, {"lr": lr, "weight_decay": weight_decay, "betas": betas, "eps": eps})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            first, second = group["betas"]
            for w in group["params"]:
                state = self.state[w]
                t = state["t"] = state.get("t", 0) + 1
                m = state["m"] = first * state.get("m", 0) + (1 - first) * w.grad
                v = state["v"] = second * state.get("v", 0) + (1 - second) * w.grad ** 2
                r = m / (1 - first ** t) / ((v / (1 - second ** t)).sqrt() + group["eps"]) + group["weight_decay"] * w
                w.sub_(group["lr"] * w.norm() / r.norm() * r)


def groups(weights, lr):
    """Biases learn faster and without decay, the second layer slower."""
    first, bias, second = weights
    return [{"params": [first]}, {"params": [bias], "lr": 2 * lr, "weight_decay": 0}, {"params": [second], "lr": 0.1 * lr}]


# As tests/pytorch/dump_cases.cc sets them.
OPTIMIZERS = {
    "sgd": lambda weights: torch.optim.SGD(weights, lr=0.02),
    "sgd-decay": lambda weights: torch.optim.SGD(weights, lr=0.02, weight_decay=0.01),
    "momentum": lambda weights: torch.optim.SGD(weights, lr=0.01, momentum=0.9, weight_decay=0.001),
    "nesterov": lambda weights: torch.optim.SGD(weights, lr=0.01, momentum=0.9, nesterov=True, weight_decay=0.001),
    "adam": lambda weights: torch.optim.Adam(weights, lr=0.01, weight_decay=0.01),
    "adamw": lambda weights: torch.optim.AdamW(weights, lr=0.01, weight_decay=0.01),
    "lars": lambda weights: Lars(weights, lr=0.5, momentum=0.9, weight_decay=0.0005, trust=0.02),
    "lamb": lambda weights: Lamb(weights, lr=0.01, weight_decay=0.01),
    "caffe": lambda weights: Caffe(weights, lr=0.01, momentum=0.9, weight_decay=0.001),
    "caffe-nesterov": lambda weights: Caffe(weights, lr=0.01, momentum=0.9, nesterov=True, weight_decay=0.001),
    "clip-norm": lambda weights: torch.optim.SGD(weights, lr=0.01, momentum=0.9, weight_decay=0.001),
    "clip-value": lambda weights: torch.optim.SGD(weights, lr=0.01, momentum=0.9, weight_decay=0.001),
    "groups": lambda weights: torch.optim.SGD(groups(weights, 0.01), lr=0.01, momentum=0.9, weight_decay=0.01),
    "adamw-groups": lambda weights: torch.optim.AdamW(groups(weights, 0.01), lr=0.01, weight_decay=0.01),
}
CLIPS = {
    "clip-norm": lambda weights: torch.nn.utils.clip_grad_norm_(weights, 0.5),
    "clip-value": lambda weights: torch.nn.utils.clip_grad_value_(weights, 0.05),
}


def furthest(name, tensors, look_every, rate_decay):
    """The largest difference of a weight in the whole run."""
    weights = [torch.nn.Parameter(tensors["start"][part].double()) for part in PARAMETERS]
    optimizer = OPTIMIZERS[name](weights)
    rates = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=rate_decay)
    largest = 0.0
    for step, noise in enumerate(tensors["noise"].double()):
        for weight, part in zip(weights, PARAMETERS):
            weight.grad = weight.detach() + noise[part]
        CLIPS.get(name, lambda weights: None)(weights)
        optimizer.step()
        rates.step()
        if (step + 1) % look_every == 0:
            seen = tensors["seen"][step // look_every].double()
            largest = max(largest, (torch.cat([weight.detach() for weight in weights]) - seen).abs().max().item())
    return largest
