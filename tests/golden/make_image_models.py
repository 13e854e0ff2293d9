# SPDX-License-Identifier: Apache-2.0
"""Writes image_models.json: names and shapes of residual networks, initial values, outputs and gradients by PyTorch.

Run as `.venv/bin/python tests/golden/make_image_models.py`. The residual networks have the structure and the names of
torchvision's (version 1.5 of the bottleneck: the stride is in the 3x3 convolution). Parameters and images are closed
forms (`values`), the same to the bit wherever they are made, so that tests/models make them without a file. A tensor is
kept as two numbers: its norm and its product with `values` of another key.
"""
import json
import math
import pathlib
import re

import torch
from torch import nn

BLOCKS = {18: (2, 2, 2, 2), 34: (3, 4, 6, 3), 50: (3, 4, 6, 3)}
IMAGES = 1000  # keys of `values`; parameters have their numbers
WITNESS = 2000


def values(shape, key):
    index = torch.arange(math.prod(shape), dtype=torch.int64)
    return ((index * (index * 31 + 7919) + key * 104729 + 13) % 1000003).to(torch.float64).div(1000003).sub(0.5).reshape(shape)


def make_norm(kind, channels):
    if kind == "batch":
        return nn.BatchNorm2d(channels)
    return nn.Identity() if kind == "none" else nn.GroupNorm(1 if kind == "layer" else 8, channels)


def conv(inputs, outputs, kernel, stride=1):
    return nn.Conv2d(inputs, outputs, kernel, stride, padding=kernel // 2, bias=False)


class Block(nn.Module):
    def __init__(self, inputs, width, stride, norm, bottleneck):
        super().__init__()
        outputs = 4 * width if bottleneck else width
        if bottleneck:
            convolutions = [conv(inputs, width, 1), conv(width, width, 3, stride), conv(width, outputs, 1)]
        else:
            convolutions = [conv(inputs, width, 3, stride), conv(width, width, 3)]
        self.count = len(convolutions)
        for number, convolution in enumerate(convolutions, start=1):
            setattr(self, f"conv{number}", convolution)
            setattr(self, f"bn{number}", make_norm(norm, convolution.out_channels))
        self.downsample = None
        if stride != 1 or inputs != outputs:
            self.downsample = nn.Sequential(conv(inputs, outputs, 1, stride), make_norm(norm, outputs))

    def forward(self, x):
        left = x
        for number in range(1, self.count + 1):
            left = getattr(self, f"bn{number}")(getattr(self, f"conv{number}")(left))
            left = left.relu() if number < self.count else left
        return (left + (x if self.downsample is None else self.downsample(x))).relu()


class ResNet(nn.Module):
    def __init__(self, depth, norm, stem, classes):
        super().__init__()
        self.large = stem == "large"
        self.conv1 = conv(3, 64, 7, 2) if self.large else conv(3, 64, 3)
        self.bn1 = make_norm(norm, 64)
        inputs = 64
        for layer, (width, count) in enumerate(zip((64, 128, 256, 512), BLOCKS[depth]), start=1):
            blocks = []
            for number in range(count):
                stride = 2 if layer > 1 and number == 0 else 1
                blocks.append(Block(inputs, width, stride, norm, bottleneck=depth == 50))
                inputs = 4 * width if depth == 50 else width
            setattr(self, f"layer{layer}", nn.Sequential(*blocks))
        self.fc = nn.Linear(inputs, classes)

    def forward(self, x):
        x = self.bn1(self.conv1(x)).relu()
        if self.large:
            x = nn.functional.max_pool2d(x, 3, 2, 1)
        for layer in range(1, 5):
            x = getattr(self, f"layer{layer}")(x)
        return self.fc(x.mean((2, 3)))


def make_cnn(channels, image, hidden, classes):
    parts, inputs, (_, height, width) = [], image[0], image
    for outputs in channels:
        parts += [nn.Conv2d(inputs, outputs, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
        inputs, height, width = outputs, height // 2, width // 2
    parts.append(nn.Flatten())
    inputs *= height * width
    for outputs in hidden:
        parts += [nn.Linear(inputs, outputs), nn.ReLU()]
        inputs = outputs
    return nn.Sequential(*parts, nn.Linear(inputs, classes))


def fill(model):
    for key, parameter in enumerate(model.parameters()):
        value = values(parameter.shape, key)
        if parameter.dim() > 1:
            value = value * (4 / math.sqrt(parameter[0].numel()))
        elif key % 2 == 1:
            value = value + 1
        parameter.data.copy_(value)


def two_numbers(tensor):
    return [tensor.norm().item(), (tensor * values(tensor.shape, WITNESS)).sum().item()]


def run(model, image, samples):
    model.double()
    fill(model)
    output = model(values((samples, *image), IMAGES))
    loss = nn.functional.cross_entropy(output, torch.arange(samples))
    loss.backward()
    result = {
        "image": image,
        "samples": samples,
        "output": output.detach().flatten().tolist(),
        "loss": loss.item(),
        "gradients": {name: two_numbers(p.grad) for name, p in model.named_parameters()},
    }
    statistics = {name: two_numbers(b) for name, b in model.named_buffers() if b.is_floating_point()}
    return result | ({"statistics": statistics} if statistics else {})


def shapes(depth):
    model = ResNet(depth, "batch", "large", 1000)
    return {
        "count": sum(p.numel() for p in model.parameters()),
        "parameters": {name: list(p.shape) for name, p in model.named_parameters()},
        "buffers": {name: list(b.shape) for name, b in model.named_buffers()},
    }


def initial():
    torch.manual_seed(7)
    model = make_cnn((2, 3), (3, 9, 6), (5,), 4)
    return {name: p.detach().flatten()[-4:].tolist() for name, p in model.named_parameters()}


def main():
    results = {
        "torch": torch.__version__,
        "resnets": {str(depth): shapes(depth) for depth in BLOCKS},
        "cnn_initial": initial(),
        "cases": {
            "cnn": run(make_cnn((2, 3), (3, 9, 6), (5,), 4), (3, 9, 6), 3),
            "resnet18_batch": run(ResNet(18, "batch", "small", 5), (3, 8, 8), 3),
            "resnet18_group": run(ResNet(18, "group", "small", 5), (3, 8, 8), 3),
            "resnet18_layer": run(ResNet(18, "layer", "small", 5), (3, 8, 8), 3),
            "resnet18_none": run(ResNet(18, "none", "small", 5), (3, 8, 8), 3),
            "resnet50_group": run(ResNet(50, "group", "large", 5), (3, 20, 24), 2),
        },
    }
    path = pathlib.Path(__file__).with_name("image_models.json")
    text = json.dumps(results, indent=1)
    text = re.sub(r"\[[^\[\]]*\]", lambda array: " ".join(array[0].split()), text)  # an array a line
    path.write_text(text + "\n", encoding="ascii")


if __name__ == "__main__":
    main()
