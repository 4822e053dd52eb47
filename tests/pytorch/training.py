"""The training run of `dump_cases` in PyTorch: ten steps of its network, whose batch norms see each batch whole, in double."""
import torch
from torch.nn import functional

EPSILON = 1e-5


def norm(values, name, x):
    """Moves the running statistics as torch.nn.BatchNorm2d does."""
    return functional.batch_norm(x, values[name + ".running_mean"], values[name + ".running_variance"], values[name + ".gamma"], values[name + ".beta"],
                                 training=True, momentum=0.1, eps=EPSILON)


def scores(values, x):
    """lenet-bn without its dropout."""
    for number in ("1", "2"):
        x = functional.conv2d(x, values[f"conv{number}.weight"], padding=1)
        x = functional.max_pool2d(functional.relu(norm(values, "bn" + number, x)), 2)
    x = functional.relu(functional.linear(x.flatten(1), values["fc1.weight"], values["fc1.bias"]))
    return functional.linear(x, values["fc2.weight"], values["fc2.bias"])


def run_distances(tensors, metadata):
    """By what was compared, how far it is from PyTorch's: the losses of the steps, and every weight and running statistic after the last."""
    values = {name.removeprefix("start."): tensor.double() for name, tensor in tensors.items() if name.startswith("start.")}
    weights = [value.requires_grad_() for name, value in values.items() if ".running_" not in name]
    optimizer = torch.optim.SGD(weights, lr=float(metadata["learning_rate"]), momentum=float(metadata["momentum"]))
    losses = []
    for inputs, labels in zip(tensors["inputs"], tensors["labels"]):
        optimizer.zero_grad()
        loss = functional.cross_entropy(scores(values, inputs.double()), labels.long())
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    found = {"losses": (tensors["losses"].double() - torch.tensor(losses, dtype=torch.float64)).abs().max().item()}
    for name, value in values.items():
        found[name] = (tensors["end." + name].double() - value.detach()).abs().max().item()
    return found
