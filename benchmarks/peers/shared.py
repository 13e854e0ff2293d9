# SPDX-License-Identifier: Apache-2.0
"""What every peer does alike: read the arrays, cut an update's micro-batches, time the updates, print one JSON object.

A peer is given its micro-batches ready-made (cut, padded, targets counted) before the clock starts.
"""
import argparse
import json
import pathlib
import sys
import time
from dataclasses import dataclass

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from generate import save  # noqa: E402

MICRO = {"T": (16, 4), "M": (128, 8), "S": (4, 16), "V": (16, 8), "G": (4, 4)}  # samples, micro-batches an update
TYPES = {"F32": np.float32, "I64": np.int64}
IGNORED = -100


def arguments(text, variants):
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path, help="of generate.py")
    parser.add_argument("workload", choices=list(MICRO))
    parser.add_argument("variant", choices=variants)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--warm-up", type=int, default=1)
    parser.add_argument("--updates", type=int, default=2)
    parser.add_argument("--micro-batch", type=int, help="samples of one, where not the workload's own")
    parser.add_argument("--sorted", action="store_true", help="an update's samples by length before they are cut")
    parser.add_argument("--gradients", type=pathlib.Path, help="write the first update's gradients there, measure nothing")
    return parser.parse_args()


def arrays(path, empty=np.empty):
    """The arrays of a safetensors file by name, each read once into what empty(shape, dtype) gives."""
    found = {}
    with open(path, "rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        header.pop("__metadata__", None)
        for name, entry in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
            found[name] = empty(tuple(entry["shape"]), TYPES[entry["dtype"]])
            file.readinto(memoryview(found[name].reshape(-1)).cast("B"))
    return found


@dataclass
class Part:
    """One micro-batch. Of tokens: padded ids and labels, and the flat positions whose next token counts."""

    inputs: np.ndarray
    targets: np.ndarray
    positions: np.ndarray | None = None


@dataclass
class Window:
    """The micro-batches of one update; the loss is scale times the sum of theirs (means of rows, sums of tokens)."""

    parts: list
    scale: float


def windows(options):
    """All windows of the data, in order; update u takes number u modulo their count."""
    data = arrays(options.folder / options.workload / "train.safetensors")
    size, count = MICRO[options.workload]
    batch = size * count
    size = options.micro_batch or size
    if "input_ids" not in data:
        x, y = data["x"], data["y"]
        starts = range(0, len(x), batch)
        return [Window(row_parts(x[at : at + batch], y[at : at + batch], size), size / batch) for at in starts]
    samples = sequences(data)
    return [token_window(samples[first : first + batch], size, options.sorted) for first in range(0, len(samples), batch)]


def row_parts(x, y, size):
    return [Part(x[row : row + size], y[row : row + size]) for row in range(0, len(x), size)]


def sequences(data):
    """Ids and labels of each sample."""
    if "offsets" not in data:
        return list(zip(data["input_ids"], data["labels"]))
    bounds = list(zip(data["offsets"], data["offsets"][1:]))
    return [(data["input_ids"][begin:end], data["labels"][begin:end]) for begin, end in bounds]


def token_window(samples, size, by_length):
    if by_length:
        samples = sorted(samples, key=lambda sample: len(sample[0]))
    parts = [token_part(samples[first : first + size]) for first in range(0, len(samples), size)]
    return Window(parts, 1 / sum(len(part.positions) for part in parts))


def token_part(samples):
    width = max(len(ids) for ids, _ in samples)
    ids = np.zeros((len(samples), width), np.int64)
    labels = np.full((len(samples), width), IGNORED, np.int64)
    for row, (sample, label) in enumerate(samples):
        ids[row, : len(sample)] = sample
        labels[row, : len(label)] = label
    counted = np.zeros(labels.shape, bool)
    counted[:, :-1] = labels[:, 1:] != IGNORED
    return Part(ids, labels, np.flatnonzero(counted))


class Memory:
    """Resident bytes of this process: now (just before the model is built) and at the most until told."""

    def __init__(self):
        self.before = self.read("VmHWM")
        self.level = self.read("VmRSS")
        try:
            pathlib.Path("/proc/self/clear_refs").write_text("5")  # the high-water mark starts anew
        except OSError:
            pass

    @staticmethod
    def read(name):
        line = next(line for line in open("/proc/self/status") if line.startswith(name))
        return int(line.split()[1]) * 1024

    def told(self):
        most = self.read("VmHWM")
        return {"peak_bytes": max(self.before, most), "peak_above_bytes": most - self.level}


def measure(options, memory, batches, update):
    """Prints the seconds of each measured update(window), which returns its loss, with losses and peaks."""
    seconds, losses = [], []
    for number in range(options.warm_up + options.updates):
        window = batches[number % len(batches)]
        start = time.perf_counter()
        losses.append(update(window))
        seconds.append(time.perf_counter() - start)
    told = {"seconds": seconds[options.warm_up :], "first_loss": losses[0], "last_loss": losses[-1]}
    print(json.dumps({**told, **memory.told()}))


def write_gradients(options, loss, gradients):
    save(options.gradients, gradients)
    print(json.dumps({"first_loss": loss}))
