#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What each part of the fast path brings: layers and update alone, then whole updates with one part turned off.

usage: parts.py [--workloads M S V G] [--rounds N] [--threads N] [--build FOLDER] [--no-report]

The first table is of one process (`parts`): torch's operations for the same beside ours, in turns. In the second each
run is a process of `accrue train`; every way once a round, from round to round another one first. A figure is how many
times longer an update takes without the part (of medians; of minima).
"""
import argparse
import datetime
import json
import pathlib
import statistics
import tempfile

import table
from contenders import AUTO_S, Settings, train
from machine import Machine, run

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
UPDATES = {"M": (3, 40), "S": (1, 4), "V": (1, 4), "G": (1, 3)}  # before the clock and on it, in each round
OPTIONS = {"S": AUTO_S}
# What is turned off: environment, options, workloads.
WAYS = {
    "all": ({}, (), "MSVG"),
    "our layers, head and chains: `ACCRUE_NN=plain`": ({"ACCRUE_NN": "plain"}, (), "MSVG"),
    "products of our own and OpenBLAS: `ACCRUE_PRODUCTS=torch`": ({"ACCRUE_PRODUCTS": "torch"}, (), "MSVG"),
    "kernels for this processor, products among them: `ACCRUE_KERNELS=baseline`": (
        {"ACCRUE_KERNELS": "baseline"},
        (),
        "MSVG",
    ),
    "groups by size: `batch.grouping=as_given`": ({}, ("batch.grouping=as_given",), "S"),
    "our allocator: `ACCRUE_ALLOCATOR=system`": ({"ACCRUE_ALLOCATOR": "system"}, (), "MVG"),
    "reading ahead: `train.read_ahead=0`": ({}, ("train.read_ahead=0",), "MSVG"),
    "a given size: `micro_batch=auto` under 700 MiB": ({}, ("batch.micro_batch=auto", "batch.memory=700MiB"), "MV"),
}


def layers(arguments):
    """The first table's rows."""
    output, _ = run([arguments.build / "benchmarks/parts", arguments.threads, arguments.layer_rounds])
    rows = []
    for part in map(json.loads, output.splitlines()):
        before, now = part["before"], part["now"]
        cells = [f"{table.time_text(min(times))} / {table.time_text(statistics.median(times))}" for times in (before, now)]
        ratio = statistics.median(before) / statistics.median(now)
        rows.append((part["part"], part["shape"], *cells, f"{ratio:.2f}"))
    return rows


def updates(arguments, settings):
    """Seconds of each workload's updates by way."""
    seconds = {}
    for workload in arguments.workloads:
        ways = [name for name, (_, _, workloads) in WAYS.items() if workload in workloads]
        found = seconds[workload] = {name: [] for name in ways}
        warm_up, count = UPDATES[workload]
        for turn in range(arguments.rounds):
            first = turn % len(ways)
            for name in ways[first:] + ways[:first]:
                environment, options, _ = WAYS[name]
                options = (*OPTIONS.get(workload, ()), *options)
                cache = settings.folder / "plans.json"
                found[name] += train(settings, workload, options, warm_up, count, cache, environment)["seconds"]
    return seconds


def cells(name, workloads, seconds):
    """The second table's cells of one way."""
    for workload in workloads:
        found = seconds[workload]
        if name not in found:
            yield "-"
            continue
        least, middle = min(found[name]), statistics.median(found[name])
        if name == "all":
            yield f"{table.time_text(least)} / {table.time_text(middle)}"
            continue
        base = found["all"]
        yield f"{middle / statistics.median(base):.2f}; {least / min(base):.2f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workloads", nargs="*", default=list(UPDATES), choices=list(UPDATES))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--layer-rounds", type=int, default=9)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--build", default=ROOT / "build", type=pathlib.Path)
    parser.add_argument("--no-report", action="store_true")
    arguments = parser.parse_args()
    machine = Machine(arguments.build, arguments.threads)
    texts = [table.markdown(("part", "shape", "torch's operations", "ours", "ratio of medians"), layers(arguments))]
    print(texts[-1], flush=True)
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(arguments.build, arguments.threads, pathlib.Path(folder), UPDATES)
        seconds = updates(arguments, settings)
    machine.look()
    if arguments.workloads:
        rows = [(name, *cells(name, arguments.workloads, seconds)) for name in WAYS]
        texts.append(table.markdown(("without", *arguments.workloads), rows))
        print(texts[-1])
    told = {key: machine.description.get(key, "?") for key in ("kernels", "products")}
    texts.append(f"Kernels {told['kernels']}, products by {told['products']}; {machine.speed_text()}.\n")
    print(texts[-1])
    if arguments.no_report:
        return
    stamp = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d-%H%M%S")
    report = HERE / f"results/parts-{stamp}.md"
    title = f"# Parts, {stamp}, {machine.report()['processor']}\n\n"
    legend = "Minimum / median; in the second table ratios of medians; of minima.\n\n"
    report.write_text(title + legend + "\n".join(texts))
    print(f"report: {report.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
