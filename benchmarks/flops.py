# SPDX-License-Identifier: Apache-2.0
"""The floating-point operations that an update needs, by workload. What a program does beyond them is waste.

A matrix product of [m, k] and [k, n] takes 2 m k n. A layer has three of one size: its output, its weight's gradient
and its input's gradient, so a weight costs 6 a row; 4 in the first layer of pictures and tables, whose input needs no
gradient. Norms, activations, losses and the optimizer are left out: they are bound by memory and some percent.

GPT: 6 x the blocks' matrices (12 width^2 a block) a real token: padding is not needed. Causal attention looks at
n (n + 1) / 2 pairs of a sequence of n, each 2 width for the score and 2 width for the mixing, twice that backward: with
both 6 width n (n + 1) a block. The tied head costs 6 x vocabulary x width a position whose next token counts, and
nothing at the others. What follows the last block's attention is not needed where nothing counts either; it is counted
all the same, though our models leave it out.
Convolutions: 6 a multiply-add of the direct form (an algorithm such as Winograd's needs fewer).
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "peers"))
import shared  # noqa: E402

MLP_SAMPLE = 4 * 784 * 512 + 6 * 512 * 512 + 6 * 512 * 10
GPT = {"S": (256, 6, 8192), "G": (768, 12, 50257)}  # width, blocks, vocabulary


def resnet_sample():
    """resnet18 on 3 x 32 x 32: places x channels x channels x kernel."""
    total = 4 * 32 * 32 * 3 * 64 * 9
    inputs, side = 64, 32
    for channels in (64, 128, 256, 512):
        if channels != inputs:
            side //= 2
            total += 6 * side * side * inputs * channels  # the shortcut's 1 x 1
        total += 6 * side * side * 9 * (inputs * channels + 3 * channels * channels)
        inputs = channels
    return total + 6 * 512 * 10


def gpt_batch(workload, samples):
    width, blocks, vocabulary = GPT[workload]
    tokens = sum(len(ids) for ids, _ in samples)
    pairs = sum(len(ids) * (len(ids) + 1) for ids, _ in samples)
    counted = sum(int((labels[1:] != shared.IGNORED).sum()) for _, labels in samples)
    return 6 * blocks * (12 * width * width * tokens + width * pairs) + 6 * vocabulary * width * counted


def windows(folder, workload):
    """Of each of the data's windows, in order; update u is number u modulo their count."""
    size, count = shared.MICRO[workload]
    batch = size * count
    if workload in GPT:
        samples = shared.sequences(shared.arrays(folder / workload / "train.safetensors"))
        return [gpt_batch(workload, samples[first : first + batch]) for first in range(0, len(samples), batch)]
    sample = {"T": 4 * 10, "M": MLP_SAMPLE, "V": resnet_sample()}[workload]
    return [batch * sample]
