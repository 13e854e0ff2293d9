#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch's usual accumulation loop on a workload's arrays; prints one JSON object with the seconds of each update.

usage: pytorch_eager.py FOLDER WORKLOAD (eager|fused) THREADS WARM_UP UPDATES
"""
import json
import pathlib
import sys
import time

import torch


def load(path):
    raw = path.read_bytes()
    length = int.from_bytes(raw[:8], "little")
    types = {"F32": torch.float32, "I64": torch.int64}
    data = bytearray(raw[8 + length :])
    tensors = {}
    for name, entry in json.loads(raw[8 : 8 + length]).items():
        begin, end = entry["data_offsets"]
        flat = torch.frombuffer(data, dtype=types[entry["dtype"]], offset=begin, count=(end - begin) // types[entry["dtype"]].itemsize)
        tensors[name] = flat.reshape(entry["shape"]).clone()
    return tensors


def linear(weights):
    model = torch.nn.Linear(10, 1)
    model.load_state_dict(weights)
    return model


def mlp(weights):
    model = torch.nn.Sequential(
        torch.nn.Linear(784, 512), torch.nn.GELU(), torch.nn.Linear(512, 512), torch.nn.GELU(), torch.nn.Linear(512, 10)
    )
    model.load_state_dict(weights)
    return model


WORKLOADS = {
    "T": dict(
        model=linear,
        loss=torch.nn.functional.mse_loss,
        micro_batch=16,
        num_micro_steps=4,
        optimizer=lambda parameters, fused: torch.optim.SGD(parameters, lr=0.01, fused=fused),
    ),
    "M": dict(
        model=mlp,
        loss=torch.nn.functional.cross_entropy,
        micro_batch=128,
        num_micro_steps=8,
        optimizer=lambda parameters, fused: torch.optim.AdamW(parameters, lr=1e-3, weight_decay=0.01, fused=fused),
    ),
}


def main(folder, workload, variant, threads, warm_up, updates):
    torch.set_num_threads(threads)
    what = WORKLOADS[workload]
    folder = pathlib.Path(folder) / workload
    data = load(folder / "train.safetensors")
    model = what["model"](load(folder / "weights.safetensors"))
    optimizer = what["optimizer"](model.parameters(), True if variant == "fused" else None)
    size, count, rows = what["micro_batch"], what["num_micro_steps"], len(data["x"])
    seconds, losses = [], []
    for update in range(warm_up + updates):
        start = time.perf_counter()
        total = 0.0
        for step in range(count):
            first = (update * count + step) * size % rows
            loss = what["loss"](model(data["x"][first : first + size]), data["y"][first : first + size]) / count
            loss.backward()
            total += loss.item()
        optimizer.step()
        optimizer.zero_grad()
        seconds.append(time.perf_counter() - start)
        losses.append(total)
    print(json.dumps({"seconds": seconds[warm_up:], "first_loss": losses[0], "last_loss": losses[-1]}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], *map(int, sys.argv[4:7]))
