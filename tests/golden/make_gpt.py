# SPDX-License-Identifier: Apache-2.0
"""Writes gpt.json: logits and gradients of a small GPT-2 written on PyTorch's own layers, in float64.

Run as `.venv/bin/python tests/golden/make_gpt.py`. Parameters are the closed form of `start`, exact in float32, so
that tests/models/gpt_test.cpp makes the same ones without a file. Sequences run one at a time: nothing is padded.
"""
import json
import pathlib
import re

import torch
from torch import nn
from torch.nn import functional as F

WIDTH, LAYERS, HEADS, VOCABULARY, CONTEXT = 6, 2, 2, 11, 7
SEQUENCES = [[3, 1, 4, 1, 5], [9], [2, 6, 5, 3, 5, 8, 9], [7, 10]]


class Conv1D(nn.Module):
    """GPT-2's affine map, whose weight is [in, out]."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(inputs, outputs))
        self.bias = nn.Parameter(torch.empty(outputs))

    def forward(self, x):
        return x @ self.weight + self.bias


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.c_attn = Conv1D(WIDTH, 3 * WIDTH)
        self.c_proj = Conv1D(WIDTH, WIDTH)

    def forward(self, x):
        length = x.shape[0]
        q, k, v = (part.view(length, HEADS, -1).transpose(0, 1) for part in self.c_attn(x).chunk(3, dim=1))
        scores = q @ k.transpose(1, 2) / (WIDTH // HEADS) ** 0.5
        scores = scores.masked_fill(torch.ones(length, length, dtype=torch.bool).triu(1), float("-inf"))
        return self.c_proj((scores.softmax(-1) @ v).transpose(0, 1).reshape(length, WIDTH))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1 = nn.LayerNorm(WIDTH)
        self.attn = Attention()
        self.ln_2 = nn.LayerNorm(WIDTH)
        self.mlp = nn.ModuleDict({"c_fc": Conv1D(WIDTH, 4 * WIDTH), "c_proj": Conv1D(4 * WIDTH, WIDTH)})

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp["c_proj"](F.gelu(self.mlp["c_fc"](self.ln_2(x)), approximate="tanh"))


class Gpt(nn.Module):
    def __init__(self):
        super().__init__()
        self.transformer = nn.ModuleDict({
            "wte": nn.Embedding(VOCABULARY, WIDTH),
            "wpe": nn.Embedding(CONTEXT, WIDTH),
            "h": nn.ModuleList(Block() for _ in range(LAYERS)),
            "ln_f": nn.LayerNorm(WIDTH),
        })

    def forward(self, ids):
        x = self.transformer["wte"](ids) + self.transformer["wpe"](torch.arange(len(ids)))
        for block in self.transformer["h"]:
            x = block(x)
        return self.transformer["ln_f"](x) @ self.transformer["wte"].weight.T


def start(parameter, index, base):
    return base + ((7 * index + 5 * parameter) % 23 - 11) / 32


def main():
    model = Gpt().to(torch.float64)
    names = []
    for p, (name, parameter) in enumerate(model.named_parameters()):
        base = 1 if name.endswith("weight") and ".ln_" in name else 0
        values = [start(p, i, base) for i in range(parameter.numel())]
        parameter.data = torch.tensor(values, dtype=torch.float64).view_as(parameter)
        names.append([name, list(parameter.shape)])
    logits = []
    loss = torch.zeros((), dtype=torch.float64)
    for sequence in SEQUENCES:
        ids = torch.tensor(sequence)
        logits.append(model(ids))
        loss = loss + F.cross_entropy(logits[-1][:-1], ids[1:], reduction="sum")
    loss.backward()
    results = {
        "torch": torch.__version__,
        "sizes": {"width": WIDTH, "layers": LAYERS, "heads": HEADS, "vocabulary": VOCABULARY, "context": CONTEXT},
        "sequences": SEQUENCES,
        "parameters": names,
        "loss": loss.item(),
        "logits": [row.flatten().tolist() for row in logits],
        "gradients": {name: p.grad.flatten().tolist() for name, p in model.named_parameters()},
    }
    path = pathlib.Path(__file__).with_name("gpt.json")
    text = json.dumps(results, indent=1)
    text = re.sub(r"\[[^\[\]]*\]", lambda array: " ".join(array[0].split()), text)  # an array a line
    path.write_text(text + "\n", encoding="ascii")


if __name__ == "__main__":
    main()
