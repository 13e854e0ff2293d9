#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains every workload under three budgets, from barely enough to generous, and watches from outside the process.

usage: memory.py [--workloads T M V S B] [--updates N] [--build FOLDER] [--no-verify] [--no-report]

B is S with bf16 parameters. A row: the budget, the chosen plan, the process's peak resident size as its parent sees
it (wait4), what was foretold, and whether `accrue verify` finds the same plan equal to the whole batch. Fails if a
peak passes its budget by more than 2 %, or a verdict is not "equal".
"""
import argparse
import datetime
import json
import os
import pathlib
import platform
import re
import sys
import tempfile

from machine import end_of

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
MARGIN = 1.02
UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
WORKLOADS = {
    "T": ["benchmarks/configs/t.yaml"],
    "M": ["benchmarks/configs/m.yaml"],
    "V": ["benchmarks/configs/v.yaml"],
    "S": ["benchmarks/configs/s.yaml"],
    "B": ["benchmarks/configs/s.yaml", "--set", "precision.parameters=bf16"],
}
COMMON = ["--set", "batch.micro_batch=auto"]


def run(command, folder):
    """Exit code, standard output, standard error and peak resident bytes of a process."""
    ended = end_of(command, {"ACCRUE_PLAN_CACHE": str(folder / "plans.json")})
    return ended.code, ended.out, ended.err, ended.peak_bytes


def smallest_budget(program, workload, folder):
    """What the program itself says is the least: it is asked with a budget that cannot do."""
    budget = 1 << 27
    for _ in range(12):
        code, _, err, _ = run([program, "plan", *WORKLOADS[workload], *COMMON, "--set", f"batch.memory={budget}"], folder)
        if code == 0:
            return budget
        if code != 5:
            sys.exit(f"{workload}: plan ended with {code}\n{err}")
        told = re.search(r"at least ([\d.]+) ([KMG]?i?B)", err)
        if told:
            return int(float(told[1]) * UNITS[told[2]] * 1.001)
        # The process or the model alone is larger: the message has that size, and a micro-step comes on top.
        told = re.search(r"\(([\d.]+) ([KMG]?i?B) with code|more than ([\d.]+) ([KMG]?i?B)", err)
        size = float(told[1] or told[3]) * UNITS[told[2] or told[4]]
        budget = int(size * 1.15)
    sys.exit(f"{workload}: no smallest budget found\n{err}")


def whole_peak(program, workload, folder):
    code, out, err, _ = run([program, "plan", *WORKLOADS[workload], *COMMON, "--set", "batch.memory=12GiB", "--json"], folder)
    if code != 0:
        sys.exit(f"{workload}: plan ended with {code}\n{err}")
    return json.loads(out)["rows"][0]["peak_bytes"]


def measure(program, workload, budget, updates, verifies, folder):
    limit = ["--set", f"batch.memory={budget}"]
    target = folder / "run"
    command = [program, "train", *WORKLOADS[workload], *COMMON, *limit, "--overwrite", "-q"]
    code, _, err, peak = run([*command, "--output-dir", str(target), "--set", f"train.updates={updates}"], folder)
    if code != 0:
        sys.exit(f"{workload} under {budget} bytes ended with {code}\n{err}")
    records = [json.loads(line) for line in (target / "metrics.jsonl").read_text().splitlines()]
    record = json.loads((target / "run.json").read_text())
    plan = record["memory"]["plan"]
    row = {
        "workload": workload,
        "budget": budget,
        "peak": peak,
        "foretold": records[0]["memory"]["predicted_bytes"],
        "num_micro_steps": records[0]["num_micro_steps"],
        "largest": max(records[0]["micro_sizes"]),
        "recomputed": len(plan["recomputed"]),
        "retries": sum(record["retries"] for record in records),
        "seconds": min(record["seconds"]["total"] for record in records[1:] or records),
    }
    row["error"] = row["foretold"] / peak - 1
    if verifies:
        command = [program, "verify", *WORKLOADS[workload], *COMMON, *limit, "--memory", "12GiB", "--json"]
        code, out, err, _ = run(command, folder)
        row["verdict"] = json.loads(out)["verdict"] if out else f"exit {code}: {err.strip()}"
    return row


def mib(size):
    return f"{size / (1 << 20):.1f}"


def line(row):
    return (
        f"| {row['workload']} | {mib(row['budget'])} | {row['num_micro_steps']} (largest {row['largest']})"
        f" | {row['recomputed']} | {mib(row['peak'])} | {100 * row['peak'] / row['budget']:.1f} %"
        f" | {mib(row['foretold'])} | {100 * row['error']:+.1f} % | {row['retries']}"
        f" | {row['seconds']:.3g} | {row.get('verdict', '-')} |"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workloads", nargs="+", default=list(WORKLOADS), choices=list(WORKLOADS))
    parser.add_argument("--updates", type=int, default=3)
    parser.add_argument("--build", default=ROOT / "build", type=pathlib.Path)
    parser.add_argument("--no-verify", action="store_true")
    parser.add_argument("--no-report", action="store_true")
    arguments = parser.parse_args()
    program = arguments.build / "accrue"
    lines = [
        "| workload | budget MiB | micro-steps | recomputed | peak MiB | of budget | foretold MiB | error | retries | s/update | verify |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    print("\n".join(lines), flush=True)
    failures = []
    for workload in arguments.workloads:
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            least = smallest_budget(program, workload, folder)
            most = max(int(1.3 * whole_peak(program, workload, folder)), least)
            for budget in (least, (least + most) // 2, most):
                row = measure(program, workload, budget, arguments.updates, not arguments.no_verify, folder)
                lines.append(line(row))
                print(lines[-1], flush=True)
                if row["peak"] > MARGIN * budget:
                    failures.append(f"{workload} under {mib(budget)} MiB reached {mib(row['peak'])} MiB")
                if row.get("verdict", "equal") != "equal":
                    failures.append(f"{workload} under {mib(budget)} MiB: verify says {row['verdict']}")
    if not arguments.no_report:
        stamp = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d-%H%M%S")
        report = HERE / f"results/memory-{stamp}.md"
        report.parent.mkdir(exist_ok=True)
        heading = f"# Memory budgets, {stamp}, {platform.machine()}, {os.cpu_count()} cores, {arguments.updates} updates\n\n"
        report.write_text(heading + "\n".join(lines) + "\n")
        print(f"report: {report.relative_to(ROOT)}")
    if failures:
        sys.exit("\n".join(failures))


if __name__ == "__main__":
    main()
