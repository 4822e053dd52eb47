"""The networks of `ringmaster bench train` in PyTorch, by the same names, parameters in the same order."""
import torch
from torch import nn
from torch.nn import functional

IMAGE_CLASSES = 1000


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


def alexnet(dropout):
    """torchvision's."""
    def conv(inputs, outputs, kernel, **options):
        return [nn.Conv2d(inputs, outputs, kernel, **options), nn.ReLU(inplace=True)]
    pool = nn.MaxPool2d(3, stride=2)
    return nn.Sequential(*conv(3, 64, 11, stride=4, padding=2), pool, *conv(64, 192, 5, padding=2), pool, *conv(192, 384, 3, padding=1),
                         *conv(384, 256, 3, padding=1), *conv(256, 256, 3, padding=1), pool, nn.AdaptiveAvgPool2d(6), nn.Flatten(),
                         nn.Dropout(dropout), nn.Linear(256 * 36, 4096), nn.ReLU(inplace=True),
                         nn.Dropout(dropout), nn.Linear(4096, 4096), nn.ReLU(inplace=True), nn.Linear(4096, IMAGE_CLASSES))


def vgg_16(dropout):
    """torchvision's, without batch norm."""
    layers, inputs = [], 3
    for convolutions, outputs in ((2, 64), (2, 128), (3, 256), (3, 512), (3, 512)):
        for _ in range(convolutions):
            layers += [nn.Conv2d(inputs, outputs, 3, padding=1), nn.ReLU(inplace=True)]
            inputs = outputs
        layers.append(nn.MaxPool2d(2))
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(7), nn.Flatten(), nn.Linear(512 * 49, 4096), nn.ReLU(inplace=True), nn.Dropout(dropout),
                         nn.Linear(4096, 4096), nn.ReLU(inplace=True), nn.Dropout(dropout), nn.Linear(4096, IMAGE_CLASSES))


def downsample(inputs, outputs, stride):
    """What a block adds to its result: its input, projected where shapes differ."""
    if stride == 1 and inputs == outputs:
        return nn.Identity()
    return nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride=stride, bias=False), nn.BatchNorm2d(outputs))


class BasicBlock(nn.Module):
    EXPANSION = 1

    def __init__(self, inputs, channels, stride):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(inputs, channels, 3, stride=stride, padding=1, bias=False), nn.BatchNorm2d(channels)
        self.conv2, self.bn2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False), nn.BatchNorm2d(channels)
        self.downsample = downsample(inputs, channels, stride)

    def forward(self, x):
        y = functional.relu(self.bn1(self.conv1(x)), inplace=True)
        y = self.bn2(self.conv2(y))
        y += self.downsample(x)
        return functional.relu(y, inplace=True)


class Bottleneck(nn.Module):
    EXPANSION = 4

    def __init__(self, inputs, channels, stride):
        super().__init__()
        outputs = self.EXPANSION * channels
        self.conv1, self.bn1 = nn.Conv2d(inputs, channels, 1, bias=False), nn.BatchNorm2d(channels)
        self.conv2, self.bn2 = nn.Conv2d(channels, channels, 3, stride=stride, padding=1, bias=False), nn.BatchNorm2d(channels)
        self.conv3, self.bn3 = nn.Conv2d(channels, outputs, 1, bias=False), nn.BatchNorm2d(outputs)
        self.downsample = downsample(inputs, outputs, stride)

    def forward(self, x):
        y = functional.relu(self.bn1(self.conv1(x)), inplace=True)
        y = functional.relu(self.bn2(self.conv2(y)), inplace=True)
        y = self.bn3(self.conv3(y))
        y += self.downsample(x)
        return functional.relu(y, inplace=True)


def resnet(kind, stages):
    """torchvision's, of so many blocks of a kind in each stage."""
    layers = [nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True), nn.MaxPool2d(3, stride=2, padding=1)]
    inputs = 64
    for stage, blocks in enumerate(stages):
        for block in range(blocks):
            channels = 64 << stage
            layers.append(kind(inputs, channels, 2 if stage > 0 and block == 0 else 1))
            inputs = kind.EXPANSION * channels
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, IMAGE_CLASSES))


def resnet_18(dropout):
    del dropout
    return resnet(BasicBlock, (2, 2, 2, 2))


def resnet_50(dropout):
    del dropout
    return resnet(Bottleneck, (3, 4, 6, 3))


class DenseLayer(nn.Module):
    def __init__(self, inputs, growth):
        super().__init__()
        self.new = nn.Sequential(nn.BatchNorm2d(inputs), nn.ReLU(inplace=True), nn.Conv2d(inputs, 4 * growth, 1, bias=False),
                                 nn.BatchNorm2d(4 * growth), nn.ReLU(inplace=True), nn.Conv2d(4 * growth, growth, 3, padding=1, bias=False))

    def forward(self, x):
        return torch.cat((x, self.new(x)), 1)


def densenet_121(dropout):
    """torchvision's; every layer concatenates what its block has made so far."""
    del dropout
    growth, channels = 32, 64
    layers = [nn.Conv2d(3, channels, 7, stride=2, padding=3, bias=False), nn.BatchNorm2d(channels), nn.ReLU(inplace=True),
              nn.MaxPool2d(3, stride=2, padding=1)]
    blocks = (6, 12, 24, 16)
    for number, count in enumerate(blocks):
        for _ in range(count):
            layers.append(DenseLayer(channels, growth))
            channels += growth
        layers += [nn.BatchNorm2d(channels), nn.ReLU(inplace=True)]
        if number + 1 < len(blocks):
            layers += [nn.Conv2d(channels, channels // 2, 1, bias=False), nn.AvgPool2d(2)]
            channels //= 2
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, IMAGE_CLASSES))


class Gpt2Block(nn.Module):
    def __init__(self, width, heads, dropout):
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.norm1 = nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.norm2 = nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        batch, time, width = x.shape
        q, k, v = (part.view(batch, time, self.heads, -1).transpose(1, 2) for part in self.qkv(self.norm1(x)).split(width, dim=2))
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        y = self.out(y.transpose(1, 2).reshape(batch, time, width))
        x = x + functional.dropout(y, self.dropout)
        y = self.down(functional.gelu(self.up(self.norm2(x)), approximate="tanh"))
        return x + functional.dropout(y, self.dropout)


class Gpt2(nn.Module):
    """The smallest of OpenAI's, whose head is the table of tokens; attention's weights are not dropped."""
    def __init__(self, dropout, classes=50257, positions=1024, width=768, heads=12, blocks=12):
        super().__init__()
        self.dropout = dropout
        self.tokens, self.positions = nn.Embedding(classes, width), nn.Embedding(positions, width)
        self.blocks = nn.Sequential(*(Gpt2Block(width, heads, dropout) for _ in range(blocks)))
        self.norm = nn.LayerNorm(width)

    def forward(self, tokens):
        x = self.tokens(tokens) + self.positions.weight[:tokens.shape[1]]
        x = self.norm(self.blocks(functional.dropout(x, self.dropout)))
        return functional.linear(x, self.tokens.weight)


# Name -> (how it is built, the rate of its dropout layers).
NETWORKS = {"mlp": (mlp, 0), "lenet": (lenet, 0), "lenet-bn": (lenet_bn, 0.25), "alexnet": (alexnet, 0.5), "vgg-16": (vgg_16, 0.5),
            "resnet-18": (resnet_18, 0), "resnet-50": (resnet_50, 0), "densenet-121": (densenet_121, 0), "gpt-2": (Gpt2, 0.1)}
