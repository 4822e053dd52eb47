"""The networks of `ringmaster bench train` in PyTorch, by the same names, parameters in the same order."""
from torch import nn


def mlp(dropout):
    del dropout  # it has none
    return nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))


def lenet(dropout):
    """Caffe's."""
    del dropout
    return nn.Sequential(nn.Conv2d(1, 20, 5), nn.MaxPool2d(2), nn.Conv2d(20, 50, 5), nn.MaxPool2d(2), nn.Flatten(),
                         nn.Linear(50 * 4 * 4, 500), nn.ReLU(), nn.Linear(500, 10))


def lenet_bn(dropout):
    def block(inputs, outputs):
        return [nn.Conv2d(inputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(), nn.MaxPool2d(2)]
    return nn.Sequential(*block(1, 20), *block(20, 50), nn.Flatten(), nn.Linear(50 * 7 * 7, 240), nn.ReLU(), nn.Dropout(dropout), nn.Linear(240, 10))


# Name -> (how it is built, the rate of its dropout layers).
NETWORKS = {"mlp": (mlp, 0), "lenet": (lenet, 0), "lenet-bn": (lenet_bn, 0.25)}
