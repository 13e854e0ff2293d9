# SPDX-License-Identifier: Apache-2.0
"""The workloads' models, losses and optimizers in plain PyTorch, under the names of the weight files."""
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

import shared


class Conv1D(nn.Module):
    """GPT-2's linear layer: the weight is (in, out)."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(inputs, outputs))
        self.bias = nn.Parameter(torch.empty(outputs))

    def forward(self, x):
        return torch.addmm(self.bias, x.view(-1, x.shape[-1]), self.weight).view(*x.shape[:-1], -1)


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.c_attn, self.c_proj = Conv1D(width, 3 * width), Conv1D(width, width)

    def forward(self, x):
        parts = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in self.c_attn(x).chunk(3, -1))
        mixed = F.scaled_dot_product_attention(*parts, is_causal=True)
        return self.c_proj(mixed.transpose(1, 2).flatten(2))


class Inner(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.c_fc, self.c_proj = Conv1D(width, 4 * width), Conv1D(4 * width, width)

    def forward(self, x):
        return self.c_proj(F.gelu(self.c_fc(x), approximate="tanh"))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.ln_1, self.attn = nn.LayerNorm(width), Attention(width, heads)
        self.ln_2, self.mlp = nn.LayerNorm(width), Inner(width)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class Gpt(nn.Module):
    """Logits [batch, length, vocabulary], or [n, vocabulary] of the flat positions that are given."""

    def __init__(self, vocabulary, context, width, layers, heads):
        super().__init__()
        parts = {"wte": nn.Embedding(vocabulary, width), "wpe": nn.Embedding(context, width)}
        parts["h"] = nn.ModuleList(Block(width, heads) for _ in range(layers))
        parts["ln_f"] = nn.LayerNorm(width)
        self.transformer = nn.ModuleDict(parts)

    def forward(self, ids, positions=None):
        parts = self.transformer
        x = parts["wte"](ids) + parts["wpe"](torch.arange(ids.shape[1]))
        for block in parts["h"]:
            x = block(x)
        if positions is not None:
            x = x.flatten(0, 1)[positions]
        return F.linear(parts["ln_f"](x), parts["wte"].weight)


def convolution(inputs, outputs, size, stride=1):
    return nn.Conv2d(inputs, outputs, size, stride, size // 2, bias=False)


def norm(channels):
    return nn.GroupNorm(8, channels)


class Residual(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1, self.bn1 = convolution(inputs, outputs, 3, stride), norm(outputs)
        self.conv2, self.bn2 = convolution(outputs, outputs, 3), norm(outputs)
        self.downsample = None
        if inputs != outputs:
            self.downsample = nn.Sequential(convolution(inputs, outputs, 1, stride), norm(outputs))

    def forward(self, x):
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        return F.relu(y + (x if self.downsample is None else self.downsample(x)))


class Resnet18(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.bn1 = convolution(3, 64, 3), norm(64)
        for stage, (inputs, outputs) in enumerate(((64, 64), (64, 128), (128, 256), (256, 512)), 1):
            first = Residual(inputs, outputs, 1 if stage == 1 else 2)
            setattr(self, f"layer{stage}", nn.Sequential(first, Residual(outputs, outputs, 1)))
        self.fc = nn.Linear(512, 10)

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(x.mean((2, 3)))


def mlp():
    return nn.Sequential(nn.Linear(784, 512), nn.GELU(), nn.Linear(512, 512), nn.GELU(), nn.Linear(512, 10))


MODELS = {
    "T": lambda: nn.Linear(10, 1),
    "M": mlp,
    "S": lambda: Gpt(8192, 512, 256, 6, 8),
    "V": Resnet18,
    "G": lambda: Gpt(50257, 1024, 768, 12, 12),
}


def build(options):
    """The model with the file's weights, each held once."""
    with torch.device("meta"):
        model = MODELS[options.workload]()
    types = {np.float32: torch.float32}
    read = shared.arrays(
        options.folder / options.workload / "weights.safetensors",
        lambda shape, dtype: torch.empty(shape, dtype=types[dtype]).numpy(),
    )
    model.load_state_dict({name: torch.from_numpy(array) for name, array in read.items()}, assign=True)
    return model.requires_grad_()


def next_token_loss(logits, labels):
    """Sum over all positions, as trainers write it: shifted by one, the masked ones ignored."""
    logits, labels = logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten()
    return F.cross_entropy(logits, labels, ignore_index=shared.IGNORED, reduction="sum")


LOSSES = {
    "T": F.mse_loss,
    "M": F.cross_entropy,
    "S": next_token_loss,
    "V": F.cross_entropy,
    "G": next_token_loss,
}


def optimizer(workload, parameters, fused=None):
    if workload == "T":
        return torch.optim.SGD(parameters, lr=0.01, fused=fused)
    if workload == "V":
        return torch.optim.SGD(parameters, lr=0.01, momentum=0.9, fused=fused)
    return torch.optim.AdamW(parameters, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01, fused=fused)


def gradients(model):
    return {name: parameter.grad.contiguous().numpy() for name, parameter in model.named_parameters()}
