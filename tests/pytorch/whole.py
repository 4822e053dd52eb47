"""Whole networks: ten steps of ours beside PyTorch's, from the same weights, on the same batch."""
import torch
from networks import NETWORKS
from steps import Trainer, as_double, differences, distances, dumped_steps, first_steps

# What the losses of all steps may be away from PyTorch's in double, of a loss (which counts as one at least), and a gradient of the first step, of its
# largest element.
OF_LOSSES, OF_GRADIENTS = 1e-4, 1e-3
# Where rounding alone makes more of a difference (tests/bench/train/README.md): how much further from PyTorch in double we may be than PyTorch in f32 is,
# in whichever of its layouts is further.
FURTHER = 2
# How networks are built that are smaller than the published ones.
SMALLER = {"gpt-2": {"classes": 1000, "blocks": 2}}


def compare_network(name, tensors, metadata):
    """What was found, as a line, and what is wrong with it or None."""
    labels, steps = tensors["labels"].long(), len(tensors["losses"])
    make = NETWORKS[name][0]

    def run(mode, inputs):
        return first_steps(Trainer(make(0, **SMALLER.get(name, {})), mode, tensors, metadata), inputs, labels, steps)

    ours, exact = dumped_steps(tensors), run("double", as_double(tensors["inputs"]))
    losses, gradients = furthest_loss(ours, exact), differences(ours, exact)["gradients"]
    # A NaN is further than anything.
    worst = max(gradients, key=lambda each: gradients[each] if gradients[each] == gradients[each] else float("inf"))
    line = (f"{name}: losses from {exact['losses'][0]:.2f} to {exact['losses'][-1]:.2f} in {steps} steps, at most {losses:.1e} away, "
            f"gradients {gradients[worst]:.1e}, in {worst}")
    near = {"losses": losses <= OF_LOSSES, "gradients": gradients[worst] <= OF_GRADIENTS}
    if not exact["losses"][-1] < exact["losses"][0]:
        return line, f"the loss did not fall: {exact['losses']}"
    if all(near.values()):
        return line, None
    # A single run in f32 may happen to have all its ReLUs where double has them: of a ResNet-18 it is 2.5e-6 away, and in the other layout 4.2e-3.
    own = [run(mode, tensors["inputs"]) for mode in ("eager", "channels-last")]
    pairs = {"losses": (losses, max(furthest_loss(each, exact) for each in own)),
             "gradients": (distances(ours, exact)["gradient"], max(distances(each, exact)["gradient"] for each in own))}
    wrong = []
    for what in (what for what in pairs if not near[what]):
        mine, theirs = pairs[what]
        line += f"; {what}{' as a whole' if what == 'gradients' else ''}: {mine:.1e}, PyTorch's own f32 {theirs:.1e}"
        if not mine <= FURTHER * theirs:
            wrong.append(f"{what} are {mine:.2g} away from PyTorch in double, PyTorch in f32 {theirs:.2g}")
    return line, "; ".join(wrong) or None


def furthest_loss(some, exact):
    """NaN where one of them is."""
    one, other = (torch.tensor(run["losses"], dtype=torch.float64) for run in (some, exact))
    return ((one - other).abs() / other.abs().clamp(min=1)).max().item()
