#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs every contender of every workload in turns, prints one table, and writes a report with all figures.

usage: compare.py [--workloads T M S V G R] [--rounds N] [--quick] [--gradients] [--threads N] [--build FOLDER]
                  [--no-report]
"""
import argparse
import datetime
import importlib.metadata
import json
import os
import pathlib
import statistics
import sys
import tempfile

import flops
import gradients
import sizes
import table
from contenders import CONTENDERS, DATA, HERE, ROOT, Settings
from machine import Failed, Machine

ROUNDS = {"T": 5, "M": 5, "S": 3, "V": 3, "G": 3, "R": 6}
SCHEDULE = {"T": (300, 2000), "M": (4, 24), "S": (1, 4), "V": (1, 3), "G": (1, 2)}  # updates: warm-up, measured
QUICK = {"T": (50, 200), "M": (2, 5), "S": (1, 1), "V": (1, 1), "G": (1, 1)}
LOSS_TOLERANCE = 1e-4  # relative, between contenders: the same arrays were read, in the same order
PACKAGES = ("torch", "numpy", "jax", "jaxlib", "optax", "accelerate")


class Benchmark:
    def __init__(self, arguments, folder):
        self.arguments = arguments
        schedule = QUICK if arguments.quick else SCHEDULE
        self.settings = Settings(arguments.build, arguments.threads, folder, schedule)
        self.machine = Machine(arguments.build, arguments.threads)
        self.left_out = []
        self.results, self.sizes, self.gradients = {}, [], {}

    def say(self, text):
        print(text, flush=True)

    def leave_out(self, workload, name, reason):
        self.left_out.append(f"{workload}, {name}: left out, {reason}")
        self.say(self.left_out[-1])

    def rounds(self, workload):
        return self.arguments.rounds or (1 if self.arguments.quick else ROUNDS[workload])

    def measure(self, workload):
        """Rounds in turns; of each contender the seconds of all rounds together, and its largest peaks."""
        contenders = dict(CONTENDERS[workload])
        for name, contender in list(contenders.items()):
            if reason := contender.missing():
                self.leave_out(workload, name, reason)
                del contenders[name]
        needed = flops.windows(DATA, workload)
        figures = {}
        for turn in range(self.rounds(workload)):
            self.say(f"{workload}: round {turn + 1} of {self.rounds(workload)}")
            order = list(contenders)
            first = turn % len(order)  # nobody always runs after the same other
            for name in order[first:] + order[:first]:
                try:
                    result = contenders[name].run(self.settings, workload)
                except Failed as error:
                    if not contenders[name].may_fail:
                        raise
                    self.leave_out(workload, name, str(error).strip().splitlines()[-1])
                    del contenders[name]
                    figures.pop(name, None)
                    continue
                figure = figures.setdefault(name, {"ours": contenders[name].ours, "options": contenders[name].options})
                add(figure, result, self.settings.schedule[workload][0], needed)
            check_losses(workload, figures)
            self.machine.look()
        self.results[workload] = {name: finished(figures[name]) for name in contenders}

    def measure_sizes(self):
        figures = {}
        for turn in range(self.rounds("R")):
            self.say(f"R: round {turn + 1} of {self.rounds('R')}")
            sizes.round_of(self.settings, turn, self.arguments.quick, figures)
            self.machine.look()
        self.sizes = sizes.finished(figures)

    def measure_all(self):
        for workload in self.arguments.workloads:
            if workload == "R":
                self.measure_sizes()
            else:
                self.measure(workload)
        for workload in self.results if self.arguments.gradients else ():
            self.prove(workload)

    def prove(self, workload):
        self.say(f"{workload}: gradients against float64")
        self.gradients[workload] = gradients.distances(workload, self.arguments.build, self.arguments.threads)

    def text(self):
        parts = []
        if self.results:
            parts.append(table.updates(self.results, self.machine, self.gradients))
        if self.sizes:
            parts.append(table.sizes(self.sizes, self.machine.limit()))
        notes = [self.machine.speed_text(), *table.groups(self.results), *self.left_out]
        parts.append("".join(f"* {note}\n" for note in notes))
        return "\n".join(parts)


def add(figure, result, warm_up, needed):
    """One round's result to what a contender has so far."""
    seconds = result.pop("seconds")
    result.pop("micro_seconds", None)
    work = [needed[(warm_up + number) % len(needed)] for number in range(len(seconds))]
    figure.setdefault("seconds", []).extend(seconds)
    figure.setdefault("medians", []).append(statistics.median(seconds))
    figure.setdefault("flops_per_second", []).extend(one / second for one, second in zip(work, seconds))
    for key in ("peak_bytes", "peak_above_bytes"):
        figure[key] = max(figure.get(key, 0), result.pop(key))
    figure.update(result)


def check_losses(workload, figures):
    losses = {name: figure["first_loss"] for name, figure in figures.items()}
    middle = statistics.median(losses.values())
    if any(abs(loss - middle) > LOSS_TOLERANCE * abs(middle) for loss in losses.values()):
        raise Failed(f"workload {workload}: first losses differ, {losses}: not the same computation")


def finished(figure):
    seconds = figure.pop("seconds")
    return {"min": min(seconds), "median_of_all": statistics.median(seconds), "count": len(seconds), **figure}


def versions():
    found = {"python": sys.version.split()[0]}
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = None
    return found


def write(benchmark, text):
    now = datetime.datetime.now(datetime.timezone.utc)
    machine = benchmark.machine.report()
    arguments = benchmark.arguments
    report = {
        "time": now.isoformat(timespec="seconds"),
        "machine": machine,
        "versions": versions(),
        "rounds": {workload: benchmark.rounds(workload) for workload in arguments.workloads},
        "threads": arguments.threads,
        "schedule": benchmark.settings.schedule,
        "configurations": {path.name: path.read_text() for path in sorted((HERE / "configs").glob("*.yaml"))},
        "contenders": {
            workload: {name: what.options if what.ours else what.peer for name, what in CONTENDERS[workload].items()}
            for workload in benchmark.results
        },
        "results": benchmark.results,
        "sizes": benchmark.sizes,
        "gradients": benchmark.gradients,
        "left_out": benchmark.left_out,
    }
    for figures in report["results"].values():
        for figure in figures.values():
            rates = figure["flops_per_second"]
            figure["flops_per_second"] = {"best": max(rates), "median": statistics.median(rates)}
    path = HERE / "results" / now.strftime("%Y-%m-%d-%H%M%S")
    path.with_suffix(".json").write_text(json.dumps(report, indent=1) + "\n")
    known = ", ".join(f"{name} {version}" for name, version in report["versions"].items() if version)
    rounds = ", ".join(f"{workload} {count}" for workload, count in report["rounds"].items())
    path.with_suffix(".md").write_text(
        f"{machine['processor']}, {arguments.threads} threads, Accrue {machine['accrue']}, LibTorch {machine['libtorch']}, "
        f"its BLAS {machine['blas']}, Accrue's products by {machine['products']}; "
        f"{known}; {report['time']}; rounds in turns: {rounds}\n\n{text}"
    )
    print(f"report: benchmarks/results/{path.name}.md")


def main():
    known = [*CONTENDERS, "R"]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workloads", nargs="+", choices=known, default=known)
    parser.add_argument("--rounds", type=int, help=f"default: {ROUNDS}")
    parser.add_argument("--quick", action="store_true", help="one round of few updates: shows that it runs, not how fast")
    parser.add_argument("--gradients", action="store_true", help="each contender's gradient against float64 (G: 10 GB)")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--no-report", action="store_true")
    arguments = parser.parse_args()
    arguments.build = arguments.build.resolve()
    if not (arguments.build / "accrue").exists():
        sys.exit(f"{arguments.build}/accrue does not exist: build it (make), or name its folder with --build")
    with tempfile.TemporaryDirectory() as folder:
        benchmark = Benchmark(arguments, pathlib.Path(folder))
        try:
            benchmark.measure_all()
        except Failed as error:
            sys.exit(f"\n{benchmark.text()}\n{error}")  # with what was measured until then
    text = benchmark.text()
    print(f"\n{text}")
    if not arguments.no_report:
        write(benchmark, text)


if __name__ == "__main__":
    main()
