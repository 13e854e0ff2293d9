#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs every contender of every workload in turns and prints one table of ratios; writes a report with all figures.

usage: compare.py [--rounds N] [--threads N] [--build FOLDER] [--no-report]
"""
import argparse
import datetime
import json
import os
import pathlib
import platform
import shutil
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
DATA = HERE / "data"
ROOT = HERE.parent
SCHEDULE = {"T": (300, 2000), "M": (4, 24)}  # updates: warm-up, measured
LOSS_TOLERANCE = 1e-4  # relative, between contenders: the same arrays were read, in the same order


def run(command):
    """A process's standard output and its peak resident bytes."""
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    output, errors = process.stdout.read(), process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))} ended with {process.returncode}\n{errors}")
    return output, usage.ru_maxrss * 1024


def library(build, threads, _):
    output, peak = run([build / "benchmarks/split_step_t", DATA, str(threads), *map(str, SCHEDULE["T"])])
    return json.loads(output), peak


def program(build, threads, _):
    folder = DATA / "M/run"
    updates = sum(SCHEDULE["M"])
    command = [build / "accrue", "train", "benchmarks/configs/m.yaml", "--overwrite", "-q"]
    _, peak = run([*command, "--threads", str(threads), "--set", f"train.updates={updates}"])
    records = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    seconds = [record["seconds"]["total"] for record in records]
    result = {
        "seconds": seconds[SCHEDULE["M"][0] :],
        "first_loss": records[0]["loss"],
        "last_loss": records[-1]["loss"],
    }
    return result, peak


def pytorch(variant):
    def contender(_, threads, workload):
        script = HERE / "peers/pytorch_eager.py"
        command = [sys.executable, script, DATA, workload, variant, str(threads), *map(str, SCHEDULE[workload])]
        output, peak = run(command)
        return json.loads(output), peak

    return contender


CONTENDERS = {
    "T": {"Accrue, SplitStep": library, "PyTorch eager": pytorch("eager"), "PyTorch eager, fused SGD": pytorch("fused")},
    "M": {"Accrue, accrue train": program, "PyTorch eager": pytorch("eager"), "PyTorch eager, fused AdamW": pytorch("fused")},
}


def measure(workload, arguments):
    """Rounds in turns; each contender's seconds of all rounds together, and its largest peak."""
    figures = {name: {"seconds": [], "medians": [], "peak_bytes": 0} for name in CONTENDERS[workload]}
    contenders = list(CONTENDERS[workload].items())
    for turn in range(arguments.rounds):
        first = turn % len(contenders)  # nobody always runs after the same other
        for name, contender in contenders[first:] + contenders[:first]:
            result, peak = contender(arguments.build, arguments.threads, workload)
            figures[name]["seconds"] += result["seconds"]
            figures[name]["medians"].append(statistics.median(result["seconds"]))
            figures[name]["peak_bytes"] = max(figures[name]["peak_bytes"], peak)
            figures[name]["first_loss"] = result["first_loss"]
            figures[name]["last_loss"] = result["last_loss"]
    losses = [figure["first_loss"] for figure in figures.values()]
    if max(losses) - min(losses) > LOSS_TOLERANCE * abs(losses[0]):
        sys.exit(f"workload {workload}: first losses differ, {losses}: not the same computation")
    return figures


def time_text(seconds):
    return f"{seconds * 1e6:.0f} us" if seconds < 1e-3 else f"{seconds * 1e3:.2f} ms"


def rows(workload, figures):
    eager = figures["PyTorch eager"]
    for name, figure in figures.items():
        yield (
            workload,
            name,
            time_text(min(figure["seconds"])),
            time_text(statistics.median(figure["seconds"])),
            f"{min(eager['seconds']) / min(figure['seconds']):.2f}",
            f"{statistics.median(map(lambda a, b: a / b, eager['medians'], figure['medians'])):.2f}",
            f"{figure['peak_bytes'] / 2**20:.0f}",
        )


def table(results):
    head = ("workload", "contender", "min", "median", "eager / this, min", "eager / this, median of rounds", "peak MiB")
    lines = ["| " + " | ".join(head) + " |", "| --- | --- | --- | --- | --- | --- | --- |"]
    for workload, figures in results.items():
        lines += ["| " + " | ".join(row) + " |" for row in rows(workload, figures)]
    return "\n".join(lines) + "\n"


def machine(build):
    doctor = json.loads(run([build / "accrue", "doctor", "--json"])[0])
    names = [line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")]
    return {"processor": names[0] if names else platform.processor(), "system": platform.platform(), **doctor}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--no-report", action="store_true")
    arguments = parser.parse_args()
    arguments.build = arguments.build.resolve()
    shutil.rmtree(DATA / "M/run", ignore_errors=True)
    results = {workload: measure(workload, arguments) for workload in CONTENDERS}
    text = table(results)
    print(text)
    if arguments.no_report:
        return
    now = datetime.datetime.now(datetime.timezone.utc)
    report = {
        "time": now.isoformat(timespec="seconds"),
        "machine": machine(arguments.build),
        "rounds": arguments.rounds,
        "threads": arguments.threads,
        "schedule": SCHEDULE,
        "configuration": (HERE / "configs/m.yaml").read_text(),
        "results": results,
    }
    for figures in results.values():
        for figure in figures.values():
            figure["seconds"] = {"min": min(figure["seconds"]), "median": statistics.median(figure["seconds"]), "count": len(figure["seconds"])}
    path = HERE / "results" / now.strftime("%Y-%m-%d-%H%M%S")
    path.with_suffix(".json").write_text(json.dumps(report, indent=1) + "\n")
    path.with_suffix(".md").write_text(
        f"{report['machine']['processor']}, {arguments.threads} threads, LibTorch {report['machine']['libtorch']}, "
        f"{report['time']}; {arguments.rounds} rounds in turns\n\n{text}"
    )
    print(f"report: benchmarks/results/{path.name}.md")


if __name__ == "__main__":
    main()
