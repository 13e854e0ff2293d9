#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Workload V in plain PyTorch with the whole batch in one forward and backward: resnet18, batch 128, SGD with momentum.

usage: pytorch_whole.py DATA UPDATES
"""
import pathlib
import sys

import torch
import torch.nn.functional as F

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
from check_export import read_tensors, resnet  # noqa: E402


def main(folder, updates):
    folder = pathlib.Path(folder) / "V"
    data = read_tensors(folder / "train.safetensors")
    weights = {name: tensor.clone().requires_grad_() for name, tensor in read_tensors(folder / "weights.safetensors").items()}
    model = {"norm": "group", "groups": 8}
    optimizer = torch.optim.SGD(weights.values(), lr=0.01, momentum=0.9)
    for update in range(int(updates)):
        rows = slice(update * 128 % len(data["x"]), update * 128 % len(data["x"]) + 128)
        loss = F.cross_entropy(resnet(model, weights, data["x"][rows]), data["y"][rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"update {update + 1} loss {loss.item():.6f}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
