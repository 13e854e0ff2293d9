# SPDX-License-Identifier: Apache-2.0
"""Writes optimizers.json: parameters after 1, 10 and 100 updates by PyTorch's own optimizers.

Run as `.venv/bin/python tests/golden/make_optimizers.py`. Parameters and gradients are the closed forms of `start` and
`gradient`, exact in float32, so that tests/update/golden_test.cpp makes the same ones without a file.
"""
import json
import pathlib
import re

import torch

SHAPES = {"0.weight": (3, 4), "0.bias": (3,), "1.weight": (2, 3), "1.bias": (2,)}
KEPT = (1, 10, 100)
CASES = {
    "sgd": {"optimizer": "SGD", "lr": 0.05},
    "sgd_weight_decay": {"optimizer": "SGD", "lr": 0.05, "weight_decay": 0.1},
    "sgd_momentum": {"optimizer": "SGD", "lr": 0.02, "momentum": 0.9},
    "sgd_nesterov": {"optimizer": "SGD", "lr": 0.02, "momentum": 0.9, "nesterov": True, "weight_decay": 0.05},
    "adam": {"optimizer": "Adam", "lr": 0.01},
    "adam_weight_decay": {"optimizer": "Adam", "lr": 0.01, "betas": (0.8, 0.95), "eps": 1e-6, "weight_decay": 0.1},
    "adamw": {"optimizer": "AdamW", "lr": 0.01, "weight_decay": 0.1},
    "clip_norm": {"optimizer": "SGD", "lr": 0.05, "momentum": 0.9, "clip_norm": 0.5},
    "clip_value": {"optimizer": "AdamW", "lr": 0.01, "weight_decay": 0.01, "clip_value": 0.25},
    "groups": {"optimizer": "AdamW", "lr": 0.01, "weight_decay": 0.1, "bias": {"lr": 0.03, "weight_decay": 0.0}},
}


def start(parameter, index):
    return ((5 * index + 3 * parameter) % 17 - 8) / 8


def gradient(parameter, index, update):
    return ((7 * index + 13 * update + 5 * parameter) % 23 - 11) / 16


def filled(shape, dtype, value):
    count = torch.Size(shape).numel()
    return torch.tensor([value(i) for i in range(count)], dtype=dtype).reshape(shape)


def make_optimizer(case, parameters):
    options = {key: value for key, value in case.items() if key not in ("optimizer", "clip_norm", "clip_value", "bias")}
    groups = [{"params": list(parameters.values())}]
    if "bias" in case:
        groups = [
            {"params": [p for name, p in parameters.items() if not name.endswith("bias")]},
            {"params": [p for name, p in parameters.items() if name.endswith("bias")], **case["bias"]},
        ]
    return getattr(torch.optim, case["optimizer"])(groups, foreach=False, **options)


def run(case, dtype):
    parameters = {
        name: torch.nn.Parameter(filled(shape, dtype, lambda i, p=p: start(p, i)))
        for p, (name, shape) in enumerate(SHAPES.items())
    }
    optimizer = make_optimizer(case, parameters)
    kept = {}
    for update in range(1, max(KEPT) + 1):
        for p, parameter in enumerate(parameters.values()):
            parameter.grad = filled(parameter.shape, dtype, lambda i, p=p: gradient(p, i, update))
        if "clip_norm" in case:
            torch.nn.utils.clip_grad_norm_(parameters.values(), case["clip_norm"])
        if "clip_value" in case:
            torch.nn.utils.clip_grad_value_(parameters.values(), case["clip_value"])
        optimizer.step()
        if update in KEPT:
            kept[str(update)] = {name: p.detach().flatten().tolist() for name, p in parameters.items()}
    return kept


def main():
    results = {
        "torch": torch.__version__,
        "shapes": SHAPES,
        "cases": {
            name: {"options": case, "float64": run(case, torch.float64), "float32": run(case, torch.float32)}
            for name, case in CASES.items()
        },
    }
    path = pathlib.Path(__file__).with_name("optimizers.json")
    text = json.dumps(results, indent=1)
    text = re.sub(r"\[[^\[\]]*\]", lambda array: " ".join(array[0].split()), text)  # an array a line
    path.write_text(text + "\n", encoding="ascii")


if __name__ == "__main__":
    main()
