#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Uses a model that `accrue train` made from a CSV file: prints one prediction a row. Needs torch alone.

usage: predict.py RUN FILE.csv     (RUN: the run's output_dir)
"""
import csv
import json
import pathlib
import re
import sys
import warnings

warnings.filterwarnings("ignore", message="Failed to initialize NumPy")
import torch  # noqa: E402

TYPES = {"F32": torch.float32, "F64": torch.float64, "BF16": torch.bfloat16, "F16": torch.float16}
ACTIVATIONS = {
    "relu": torch.nn.ReLU,
    "gelu": torch.nn.GELU,
    "gelu_tanh": lambda: torch.nn.GELU(approximate="tanh"),
    "tanh": torch.nn.Tanh,
    "silu": torch.nn.SiLU,
}


def load_safetensors(path):
    """Eight bytes of header length, a JSON header, the tensors' bytes."""
    raw = bytearray(path.read_bytes())
    length = int.from_bytes(raw[:8], "little")
    tensors = {}
    for name, entry in json.loads(raw[8 : 8 + length]).items():
        if name == "__metadata__":
            continue
        dtype = TYPES[entry["dtype"]]
        begin, end = entry["data_offsets"]
        flat = torch.frombuffer(raw[8 + length + begin : 8 + length + end], dtype=dtype)
        tensors[name] = flat.reshape(entry["shape"]).float()
    return tensors


def build(weights, activation):
    """nn.Linear for "weight" and "bias"; else the nn.Sequential with layers 0, 2, 4, ..."""
    if not all(re.fullmatch(r"(\d+\.)?(weight|bias)", name) for name in weights):
        sys.exit("predict.py uses linear and mlp models of tables; docs/using-a-model.md says how others are rebuilt")
    if "weight" in weights:
        model = torch.nn.Linear(weights["weight"].shape[1], weights["weight"].shape[0])
    else:
        layers = []
        for index in sorted(int(name.split(".")[0]) for name in weights if name.endswith(".weight")):
            outputs, inputs = weights[f"{index}.weight"].shape
            layers += [torch.nn.Linear(inputs, outputs), ACTIVATIONS[activation]()]
        model = torch.nn.Sequential(*layers[:-1])
    model.load_state_dict(weights)
    return model.eval()


def features(row, transform):
    """One sample: numbers as (value - mean) / deviation, words as one 0/1 feature a category."""
    sample = []
    for column in transform["inputs"]:
        cell = row[column["name"]]
        if "categories" in column:
            sample += [float(cell == category) for category in column["categories"]]
            continue
        value = float(cell) if cell else column["mean"]
        if transform["standardize"]:
            value = (value - column["mean"]) / column["deviation"] if column["deviation"] else 0.0
        sample.append(value)
    return sample


def main(run, data):
    run = pathlib.Path(run)
    transform = json.loads(sorted(run.glob("checkpoints/update-*/data.json"))[-1].read_text())
    activation = re.search(r"^ *activation: *(\w+)", (run / "config.yaml").read_text(), re.MULTILINE)
    model = build(load_safetensors(run / "model.safetensors"), activation.group(1) if activation else "relu")
    with open(data, newline="", encoding="utf-8-sig") as file:
        inputs = torch.tensor([features(row, transform) for row in csv.DictReader(file)], dtype=torch.float32)
    with torch.no_grad():
        outputs = model(inputs)
    classes = transform.get("classes")
    if classes and outputs.shape[1] == 1:
        chosen = (outputs[:, 0] > 0).long()
    elif classes:
        chosen = outputs.argmax(1)
    print("\n".join(classes[i] for i in chosen) if classes else "\n".join(f"{value:.6g}" for value in outputs[:, 0]))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
