"""Whole networks: ten steps of ours beside PyTorch's, from the same weights, on the same batch."""
import torch
from networks import NETWORKS
from steps import Trainer, as_double, differences, distances, dumped_steps, first_steps

# What the losses of all steps may be away from PyTorch's in double, of a loss (which counts as one at least), and a gradient of the first step, of its
# largest element.
OF_LOSSES, OF_GRADIENTS = 1e-4, 1e-3
# The same where both compute in double, so that only the order of their sums differs.
OF_DOUBLE_LOSSES, OF_DOUBLE_GRADIENTS = 1e-4, 1e-8
# Where rounding alone makes more of a difference (tests/bench/train/README.md): how much further from PyTorch in double we may be than PyTorch in f32 is,
# in whichever of its layouts is further.
FURTHER = 2
# How networks are built that are smaller than the published ones.
SMALLER = {"gpt-2": {"classes": 1000, "blocks": 2}}


def compare_network(name, tensors, metadata):
    """What was found, as a line, and what is wrong with it or None."""
    def run(mode, inputs):
        return run_here(name, mode, inputs, tensors, metadata)

    ours, exact = dumped_steps(tensors), run("double", as_double(tensors["inputs"]))
    found = Distances(ours, exact)
    line = f"{name}: {found}"
    if found.does_not_fall:
        return line, found.does_not_fall
    near = {"losses": found.losses <= OF_LOSSES, "gradients": found.gradients <= OF_GRADIENTS}
    if all(near.values()):
        return line, None
    # A single run in f32 may happen to have all its ReLUs where double has them: of a ResNet-18 it is 2.5e-6 away, and in the other layout 4.2e-3.
    own = [run(mode, tensors["inputs"]) for mode in ("eager", "channels-last")]
    pairs = {"losses": (found.losses, max(furthest_loss(each, exact) for each in own)),
             "gradients": (distances(ours, exact)["gradient"], max(distances(each, exact)["gradient"] for each in own))}
    wrong = []
    for what in (what for what in pairs if not near[what]):
        mine, theirs = pairs[what]
        line += f"; {what}{' as a whole' if what == 'gradients' else ''}: {mine:.1e}, PyTorch's own f32 {theirs:.1e}"
        if not mine <= FURTHER * theirs:
            wrong.append(f"{what} are {mine:.2g} away from PyTorch in double, PyTorch in f32 {theirs:.2g}")
    return line, "; ".join(wrong) or None


def compare_in_double(name, tensors, metadata):
    """The same for steps in f64, at a rate that trains."""
    found = Distances(dumped_steps(tensors), run_here(name, "double", as_double(tensors["inputs"]), tensors, metadata))
    wrong = [f"{what} are {distance:.2g} away" for what, distance, allowed
             in (("losses", found.losses, OF_DOUBLE_LOSSES), ("gradients", found.gradients, OF_DOUBLE_GRADIENTS)) if not distance <= allowed]
    return f"{name} in f64, at a rate of {metadata['learning_rate']}: {found}", found.does_not_fall or "; ".join(wrong) or None


def run_here(name, mode, inputs, tensors, metadata):
    """As many steps in PyTorch as were dumped."""
    trainer = Trainer(NETWORKS[name][0](0, **SMALLER.get(name, {})), mode, tensors, metadata)
    return first_steps(trainer, inputs, tensors["labels"].long(), len(tensors["losses"]))


class Distances:
    """How far our losses, and the gradient that is furthest, are from what is exact; whether its loss fell."""
    def __init__(self, ours, exact):
        gradients = differences(ours, exact)["gradients"]
        # A NaN is further than anything.
        self.worst = max(gradients, key=lambda each: gradients[each] if gradients[each] == gradients[each] else float("inf"))
        self.gradients, self.losses = gradients[self.worst], furthest_loss(ours, exact)
        self.of_exact = exact["losses"]
        self.does_not_fall = None if self.of_exact[-1] < self.of_exact[0] else f"the loss did not fall: {self.of_exact}"

    def __str__(self):
        return (f"losses from {self.of_exact[0]:.2f} to {self.of_exact[-1]:.2f} in {len(self.of_exact)} steps, at most {self.losses:.1e} away, "
                f"gradients {self.gradients:.1e}, in {self.worst}")


def furthest_loss(some, exact):
    """NaN where one of them is."""
    one, other = (torch.tensor(run["losses"], dtype=torch.float64) for run in (some, exact))
    return ((one - other).abs() / other.abs().clamp(min=1)).max().item()
