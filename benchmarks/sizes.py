# SPDX-License-Identifier: Apache-2.0
"""Workload R: M's model with batches of 64 to 16384 at one micro-batch. Seconds a sample and peak must be flat from K = 1."""
import statistics

from contenders import DATA, train
from flops import MLP_SAMPLE

BATCHES = (64, 128, 256, 1024, 4096, 16384)
MICRO_BATCH = 128
SAMPLES = 65536  # measured in a round with each batch
LEAST = 5  # updates
QUICK = 8  # times fewer samples


def counts(batch, quick):
    """Updates before the clock and on it."""
    if quick:
        return 1, max(2, SAMPLES // QUICK // batch)
    return max(2, 2048 // batch), max(LEAST, SAMPLES // batch)


def options(batch):
    arrays = f"data.train={(DATA / 'R/train.safetensors').relative_to(DATA.parents[1])}"
    return arrays, f"batch.size={batch}", f"batch.micro_batch={min(batch, MICRO_BATCH)}"


def round_of(settings, turn, quick, figures):
    """Every batch once; which is first changes from round to round."""
    first = turn % len(BATCHES)
    for batch in BATCHES[first:] + BATCHES[:first]:
        result = train(settings, "M", options(batch), *counts(batch, quick))
        figure = figures.setdefault(batch, {"medians": [], "micro_medians": [], "count": 0, "peak_bytes": 0})
        figure["medians"].append(statistics.median(result["seconds"]) / batch)
        figure["micro_medians"].append(statistics.median(result["micro_seconds"]) / batch)
        figure["count"] += len(result["seconds"])
        figure["peak_bytes"] = max(figure["peak_bytes"], result["peak_bytes"])


def finished(figures):
    """In the order of the batches."""
    return [
        {
            "batch": batch,
            "micro_batch": min(batch, MICRO_BATCH),
            "seconds_per_sample": statistics.median(figures[batch]["medians"]),
            "least_seconds_per_sample": min(figures[batch]["medians"]),
            "micro_seconds_per_sample": statistics.median(figures[batch]["micro_medians"]),
            "least_micro_seconds_per_sample": min(figures[batch]["micro_medians"]),
            "flops_per_sample": MLP_SAMPLE,
            **figures[batch],
        }
        for batch in BATCHES
    ]
