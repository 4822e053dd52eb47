"""A network's first steps in PyTorch, from the weights and the batch of a `ringmaster bench train --dump`, and how far two such runs are apart."""
import torch
from torch import nn


class Trainer:
    """MODE is eager, double, channels-last or compile."""
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


def dumped_steps(tensors):
    """The same of the dump itself."""
    prefix = "gradients/"
    return {"losses": tensors["losses"].tolist(),
            "gradients": {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}}


def differences(some, others):
    """How far the first loss, each gradient (of its largest element) and the losses of all steps are away."""
    return {"loss": abs(some["losses"][0] - others["losses"][0]), "losses": furthest(some, others),
            "gradients": {name: ((gradient - others["gradients"][name]).abs().max() / others["gradients"][name].abs().max()).item()
                          for name, gradient in some["gradients"].items()}}


def distances(some, exact):
    """The same, but of all gradients together the length of the difference, as a share of the whole's."""
    difference = sum((some["gradients"][name].double() - gradient).norm().item() ** 2 for name, gradient in exact["gradients"].items())
    whole = sum(gradient.norm().item() ** 2 for gradient in exact["gradients"].values())
    return {"loss": abs(some["losses"][0] - exact["losses"][0]), "gradient": (difference / whole) ** 0.5, "losses": furthest(some, exact)}


def furthest(some, others):
    """NaN where one of them is."""
    one, other = (torch.tensor(run["losses"], dtype=torch.float64) for run in (some, others))
    return (one - other).abs().max().item()


def as_double(inputs):
    return inputs.double().contiguous() if inputs.is_floating_point() else inputs
