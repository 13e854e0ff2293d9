#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes data and initial weights of the workloads from fixed seeds (numpy's PCG64) as safetensors files.

usage: generate.py FOLDER [WORKLOAD ...]      (T M S V G R; default: all)
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


def normal(random, deviation, *shape):
    return random.standard_normal(shape, dtype=np.float32) * np.float32(deviation)


def gpt_weights(random, vocabulary, context, width, layers):
    """GPT-2's shape under transformers' names; drawn as (out, in), stored as (in, out) as GPT-2 does."""
    zeros, ones = np.zeros(width, np.float32), np.ones(width, np.float32)
    weights = {
        "transformer.wte.weight": normal(random, 0.02, vocabulary, width),
        "transformer.wpe.weight": normal(random, 0.02, context, width),
    }

    def linear(name, deviation, outputs, inputs):
        weights[name + ".weight"] = np.ascontiguousarray(normal(random, deviation, outputs, inputs).T)
        weights[name + ".bias"] = np.zeros(outputs, np.float32)

    last = 0.02 / math.sqrt(2 * layers)
    for layer in range(layers):
        place = f"transformer.h.{layer}."
        weights[place + "ln_1.weight"], weights[place + "ln_1.bias"] = ones, zeros
        linear(place + "attn.c_attn", 0.02, 3 * width, width)
        linear(place + "attn.c_proj", last, width, width)
        weights[place + "ln_2.weight"], weights[place + "ln_2.bias"] = ones, zeros
        linear(place + "mlp.c_fc", 0.02, 4 * width, width)
        linear(place + "mlp.c_proj", last, width, 4 * width)
    weights["transformer.ln_f.weight"], weights["transformer.ln_f.bias"] = ones, zeros
    return weights


def workload_s(folder):
    """Decoder of 7 million parameters: 256 samples of log-normal length (median 80, 8 to 512), prompts masked."""
    random = np.random.default_rng(303)
    length = np.clip(np.rint(80 * np.exp(0.7 * random.standard_normal(256))), 8, 512).astype(np.int64)
    prompt = np.floor(length * random.uniform(0.2, 0.6, 256)).astype(np.int64)
    tokens = random.integers(0, 8192, int(length.sum())).astype(np.int32).astype(np.int64)
    offsets = np.concatenate([[0], np.cumsum(length)]).astype(np.int64)
    labels = tokens.copy()
    for begin, count in zip(offsets, prompt):
        labels[begin : begin + count] = -100
    save(folder / "S/train.safetensors", {"input_ids": tokens, "labels": labels, "offsets": offsets})
    save(folder / "S/weights.safetensors", gpt_weights(random, 8192, 512, 256, 6))


def workload_g(folder):
    """GPT-2 124M: one batch of 16 x 64 tokens, all of them targets."""
    random = np.random.default_rng(404)
    tokens = random.integers(0, 50257, (16, 64)).astype(np.int64)
    save(folder / "G/train.safetensors", {"input_ids": tokens, "labels": tokens.copy()})
    save(folder / "G/weights.safetensors", gpt_weights(random, 50257, 1024, 768, 12))


def workload_v(folder):
    """resnet18 for 32x32 pixels with GroupNorm(8): two batches of 128."""
    random = np.random.default_rng(505)
    x = random.standard_normal((256, 3, 32, 32), dtype=np.float32)
    y = random.integers(0, 10, 256).astype(np.int64)
    save(folder / "V/train.safetensors", {"x": x, "y": y})
    weights = {}

    def convolution(name, outputs, inputs, kernel):
        weights[name + ".weight"] = normal(
            random, math.sqrt(2 / (outputs * kernel * kernel)), outputs, inputs, kernel, kernel
        )

    def norm(name, channels):
        weights[name + ".weight"], weights[name + ".bias"] = np.ones(channels, np.float32), np.zeros(channels, np.float32)

    convolution("conv1", 64, 3, 3)
    norm("bn1", 64)
    inputs = 64
    for stage, channels in enumerate((64, 128, 256, 512), 1):
        for block in range(2):
            place = f"layer{stage}.{block}."
            convolution(place + "conv1", channels, inputs, 3)
            norm(place + "bn1", channels)
            convolution(place + "conv2", channels, channels, 3)
            norm(place + "bn2", channels)
            if inputs != channels:
                convolution(place + "downsample.0", channels, inputs, 1)
                norm(place + "downsample.1", channels)
            inputs = channels
    bound = 1 / math.sqrt(512)
    weights["fc.weight"], weights["fc.bias"] = uniform(random, bound, 10, 512), uniform(random, bound, 10)
    save(folder / "V/weights.safetensors", weights)


def workload_r(folder):
    """M's model (and its weights) on 16384 rows: the same data for every size of batch."""
    random = np.random.default_rng(606)
    x = random.standard_normal((16384, 784), dtype=np.float32)
    y = random.integers(0, 10, 16384).astype(np.int64)
    save(folder / "R/train.safetensors", {"x": x, "y": y})


WORKLOADS = {
    "T": workload_t,
    "M": workload_m,
    "S": workload_s,
    "V": workload_v,
    "G": workload_g,
    "R": workload_r,
}

if __name__ == "__main__":
    target = pathlib.Path(sys.argv[1])
    for workload in sys.argv[2:] or WORKLOADS:
        WORKLOADS[workload](target)
