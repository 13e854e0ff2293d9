#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Accrue's caching allocator beside LibTorch's own on the same workloads, in turns: seconds and page faults an update.

usage: allocator.py [--workloads M V S G] [--rounds N] [--build FOLDER] [--no-report]

Each run is a process of its own; seconds are those of its records without the first two updates. Page faults and
processor time an update are what a longer run has more than a shorter one, so that start-up does not count; a small
number of faults of either sign is chance. The ratios are of the same updates of two runs in turn (median of all pairs),
and of processor time (of medians), which a neighbour on the machine disturbs less.
"""
import argparse
import datetime
import json
import os
import pathlib
import platform
import statistics
import sys
import tempfile

from machine import end_of

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
UPDATES = {"M": (6, 66), "V": (3, 6), "S": (3, 9), "G": (3, 5)}  # of the shorter and the longer run
TURNS = {"M": 12, "V": 2, "S": 2, "G": 2}  # in each round: the machine's speed changes within seconds
KINDS = ("accrue", "system")


def run(program, workload, kind, updates, folder):
    """Seconds of the updates of one process, and how it ended."""
    command = [program, "train", f"benchmarks/configs/{workload.lower()}.yaml", "-q", "--overwrite"]
    command += ["--output-dir", str(folder / "run"), "--set", f"train.updates={updates}"]
    ended = end_of(command, {"ACCRUE_ALLOCATOR": kind, "ACCRUE_PLAN_CACHE": "off"})
    if ended.code != 0:
        sys.exit(f"{' '.join(map(str, command))} failed\n{ended.err}")
    records = [json.loads(line) for line in (folder / "run/metrics.jsonl").read_text().splitlines()]
    return [record["seconds"]["total"] for record in records[2:]], ended


def measure(program, workload, rounds, folder):
    seconds = {kind: [] for kind in KINDS}
    faults = {kind: [] for kind in KINDS}
    processor = {kind: [] for kind in KINDS}
    peaks = {kind: 0 for kind in KINDS}
    short, long = UPDATES[workload]
    for turn in range(rounds * TURNS[workload]):
        ends = {kind: [] for kind in KINDS}
        for updates in (short, long):
            for kind in KINDS if turn % 2 == 0 else KINDS[::-1]:  # so that neither is always first
                times, ended = run(program, workload, kind, updates, folder)
                seconds[kind] += times
                ends[kind].append(ended)
                peaks[kind] = max(peaks[kind], ended.peak_bytes)
        for kind, (less, more) in ends.items():
            faults[kind].append((more.page_faults - less.page_faults) / (long - short))
            processor[kind].append((more.processor_seconds - less.processor_seconds) / (long - short))
    pairs = [other / ours for ours, other in zip(seconds["accrue"], seconds["system"], strict=True)]
    cells = [workload]
    cells += [f"{min(seconds[kind]):.4g} / {statistics.median(seconds[kind]):.4g}" for kind in KINDS]
    cells.append(f"{statistics.median(pairs):.2f}")
    cells.append(f"{statistics.median(processor['system']) / statistics.median(processor['accrue']):.2f}")
    cells += [f"{statistics.median(faults[kind]):.0f}" for kind in KINDS]
    cells += [f"{peaks[kind] / (1 << 20):.0f}" for kind in KINDS]
    return "| " + " | ".join(cells) + " |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workloads", nargs="+", default=list(UPDATES), choices=list(UPDATES))
    parser.add_argument("--rounds", type=int, default=2, help="of 12 turns for M, 2 for the others")
    parser.add_argument("--build", default=ROOT / "build", type=pathlib.Path)
    parser.add_argument("--no-report", action="store_true")
    arguments = parser.parse_args()
    lines = [
        "| workload | accrue s/update (min / median) | system | system / accrue | of processor time | faults an update: accrue | system | peak MiB: accrue | system |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    print("\n".join(lines), flush=True)
    with tempfile.TemporaryDirectory() as name:
        for workload in arguments.workloads:
            lines.append(measure(arguments.build / "accrue", workload, arguments.rounds, pathlib.Path(name)))
            print(lines[-1], flush=True)
    if arguments.no_report:
        return
    stamp = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d-%H%M%S")
    report = HERE / f"results/allocator-{stamp}.md"
    report.write_text(f"# Allocators, {stamp}, {platform.machine()}, {os.cpu_count()} cores\n\n" + "\n".join(lines) + "\n")
    print(f"report: {report.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
