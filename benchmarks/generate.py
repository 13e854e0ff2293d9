#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes data and initial weights of the workloads from fixed seeds (numpy's PCG64) as safetensors files.

usage: generate.py FOLDER
"""
import json
import math
import pathlib
import sys

import numpy as np

DTYPES = {np.dtype(np.float32): "F32", np.dtype(np.int64): "I64"}


def save(path, tensors):
    """Eight bytes of header length, the header as JSON, then the arrays' bytes; 8-byte types first."""
    header, offset = {}, 0
    ordered = sorted(tensors.items(), key=lambda item: (-item[1].itemsize, item[0]))
    for name, array in ordered:
        header[name] = {
            "dtype": DTYPES[array.dtype],
            "shape": list(array.shape),
            "data_offsets": [offset, offset + array.nbytes],
        }
        offset += array.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little"))
        file.write(text)
        for _, array in ordered:
            file.write(np.ascontiguousarray(array).tobytes())


def uniform(random, bound, *shape):
    return random.uniform(-bound, bound, shape).astype(np.float32)


def workload_t(folder):
    """Linear(10, 1): 64 micro-batches of 16 rows, used in order, four in an update."""
    random = np.random.default_rng(101)
    x = random.standard_normal((64, 16, 10), dtype=np.float32)
    truth = random.standard_normal((10, 1), dtype=np.float32)
    y = (x @ truth + 0.1 * random.standard_normal((64, 16, 1), dtype=np.float32)).astype(np.float32)
    save(folder / "T/train.safetensors", {"x": x.reshape(1024, 10), "y": y.reshape(1024, 1)})
    bound = 1 / math.sqrt(10)
    save(folder / "T/weights.safetensors", {"weight": uniform(random, bound, 1, 10), "bias": uniform(random, bound, 1)})


def workload_m(folder):
    """MLP 784-512-512-10: four batches of 1024 rows, in order."""
    random = np.random.default_rng(202)
    x = random.standard_normal((4096, 784), dtype=np.float32)
    y = random.integers(0, 10, 4096).astype(np.int64)
    save(folder / "M/train.safetensors", {"x": x, "y": y})
    weights = {}
    for layer, (inputs, outputs) in zip((0, 2, 4), ((784, 512), (512, 512), (512, 10))):
        bound = 1 / math.sqrt(inputs)
        weights[f"{layer}.weight"] = uniform(random, bound, outputs, inputs)
        weights[f"{layer}.bias"] = uniform(random, bound, outputs)
    save(folder / "M/weights.safetensors", weights)


if __name__ == "__main__":
    target = pathlib.Path(sys.argv[1])
    workload_t(target)
    workload_m(target)
