#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains every workload under three budgets, from barely enough to generous, and watches from outside the process.

usage: memory.py [--workloads C T M V S B] [--updates N] [--build FOLDER] [--no-verify] [--no-report]

C is a classifier of 4 inputs with 16 hidden units on a CSV file of 64 rows, written here; B is S with bf16 parameters.
A row: the budget, the chosen plan, the process's peak resident size as its parent sees it (wait4), what was foretold,
and whether `accrue verify` finds the same plan equal to the whole batch. A second table has 2, 4 and 8 micro-steps that
are given, under the generous budget: what `accrue plan` foretold of each, and the peak of a run of 2 updates. Fails if a
peak passes its budget by more than 2 %, a verdict is not "equal", or what was foretold is off by more than 5 %.
"""
import argparse
import contextlib
import datetime
import json
import os
import pathlib
import platform
import random
import re
import sys
import tempfile

from machine import end_of

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
MARGIN = 1.02
ERROR = 0.05  # of what is foretold for sizes that are given
GIVEN = (2, 4, 8)  # micro-steps; plan has a row for each
UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
WORKLOADS = {
    "C": ["{folder}/c.yaml"],
    "T": ["benchmarks/configs/t.yaml"],
    "M": ["benchmarks/configs/m.yaml"],
    "V": ["benchmarks/configs/v.yaml"],
    "S": ["benchmarks/configs/s.yaml"],
    "B": ["benchmarks/configs/s.yaml", "--set", "precision.parameters=bf16"],
}
HEAD = "| workload | budget MiB | micro-steps | recomputed | peak MiB | of budget | foretold MiB | error | retries | s/update | verify |"
GIVEN_HEAD = "| workload | micro-steps | largest micro-batch | foretold MiB | peak MiB | error |"
COMMON = ["--set", "batch.micro_batch=auto"]
CLASSIFIER = """\
# Workload C: Linear(4, 16), ReLU, Linear(16, 2), cross entropy, SGD, batch 64 in 16 x 4.
task: classification
data: {{train: "{folder}/c.csv", target: y}}
model: {{kind: mlp, hidden: [16], activation: relu}}
batch: {{size: 64, micro_batch: 16, order: file}}
loss: {{kind: cross_entropy}}
optimizer: {{name: sgd, lr: 0.1}}
train: {{updates: 3}}
output_dir: "{folder}/run"
seed: 42
"""


def write_classifier(folder):
    """C's configuration and data: 64 points in two classes, on either side of a plane but for some noise."""
    source = random.Random(505)
    lines = ["a,b,c,d,y"]
    for _ in range(64):
        point = [source.gauss(0, 1) for _ in range(4)]
        side = point[0] - point[1] + 0.5 * point[2] + source.gauss(0, 0.3) > 0
        lines.append(",".join([*(f"{value:.6f}" for value in point), str(int(side))]))
    (folder / "c.csv").write_text("\n".join(lines) + "\n")
    (folder / "c.yaml").write_text(CLASSIFIER.format(folder=folder))


@contextlib.contextmanager
def workplace(workload):
    """A folder for a workload's runs and kept plans."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        if workload == "C":
            write_classifier(folder)
        yield folder


def words_of(workload, folder):
    return [word.format(folder=folder) for word in WORKLOADS[workload]]


def run(command, folder):
    """Exit code, standard output, standard error and peak resident bytes of a process."""
    ended = end_of(command, {"ACCRUE_PLAN_CACHE": str(folder / "plans.json")})
    return ended.code, ended.out, ended.err, ended.peak_bytes


def smallest_budget(program, workload, folder):
    """What the program itself says is the least: it is asked with a budget that cannot do."""
    budget = 1 << 25
    command = [program, "plan", *words_of(workload, folder), *COMMON]
    for _ in range(12):
        code, _, err, _ = run([*command, "--set", f"batch.memory={budget}"], folder)
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


def plan_rows(program, workload, budget, folder):
    """What plan says of the whole batch, of 2, 4 and 8 micro-steps and of its choice, by name."""
    command = [program, "plan", *words_of(workload, folder), *COMMON, "--set", f"batch.memory={budget}", "--json"]
    code, out, err, _ = run(command, folder)
    if code != 0:
        sys.exit(f"{workload}: plan ended with {code}\n{err}")
    return {row["name"]: row for row in json.loads(out)["rows"]}


def train(program, workload, settings, updates, folder):
    """The records of a run's updates, the record of the run, and the process's peak."""
    target = folder / "run"
    command = [program, "train", *words_of(workload, folder), "--overwrite", "-q", "--output-dir", str(target)]
    code, _, err, peak = run([*command, *settings, "--set", f"train.updates={updates}"], folder)
    if code != 0:
        sys.exit(f"{workload} with {' '.join(settings)} ended with {code}\n{err}")
    records = [json.loads(line) for line in (target / "metrics.jsonl").read_text().splitlines()]
    return records, json.loads((target / "run.json").read_text()), peak


def measure(program, workload, budget, updates, verifies, folder):
    limit = ["--set", f"batch.memory={budget}"]
    records, record, peak = train(program, workload, [*COMMON, *limit], updates, folder)
    row = {
        "workload": workload,
        "budget": budget,
        "peak": peak,
        "foretold": records[0]["memory"]["predicted_bytes"],
        "num_micro_steps": records[0]["num_micro_steps"],
        "largest": max(records[0]["micro_sizes"]),
        "recomputed": len(record["memory"]["plan"]["recomputed"]),
        "retries": sum(record["retries"] for record in records),
        "seconds": min(record["seconds"]["total"] for record in records[1:] or records),
    }
    row["error"] = row["foretold"] / peak - 1
    if verifies:
        command = [program, "verify", *words_of(workload, folder), *COMMON, *limit, "--memory", "12GiB", "--json"]
        code, out, err, _ = run(command, folder)
        row["verdict"] = json.loads(out)["verdict"] if out else f"exit {code}: {err.strip()}"
    return row


def measure_given(program, workload, budget, folder):
    """A row for each number of micro-steps that is given, in place of the choice: what plan says, and what a run takes."""
    rows = plan_rows(program, workload, budget, folder)
    for count in GIVEN:
        said = rows[f"num_micro_steps {count}"]
        settings = ["batch.micro_batch=null", f"batch.num_micro_steps={count}", f"batch.memory={budget}"]
        words = [word for setting in settings for word in ("--set", setting)]
        records, _, peak = train(program, workload, words, 2, folder)
        yield {
            "workload": workload,
            "num_micro_steps": records[0]["num_micro_steps"],
            "largest": max(records[0]["micro_sizes"]),
            "foretold": said["foretold_peak_bytes"],
            "peak": peak,
            "error": said["foretold_peak_bytes"] / peak - 1,
        }


def mib(size):
    return f"{size / (1 << 20):.1f}"


def line(row):
    return (
        f"| {row['workload']} | {mib(row['budget'])} | {row['num_micro_steps']} (largest {row['largest']})"
        f" | {row['recomputed']} | {mib(row['peak'])} | {100 * row['peak'] / row['budget']:.1f} %"
        f" | {mib(row['foretold'])} | {100 * row['error']:+.1f} % | {row['retries']}"
        f" | {row['seconds']:.3g} | {row.get('verdict', '-')} |"
    )


def given_line(row):
    return (
        f"| {row['workload']} | {row['num_micro_steps']} | {row['largest']} | {mib(row['foretold'])}"
        f" | {mib(row['peak'])} | {100 * row['error']:+.1f} % |"
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
    lines = []
    failures = []
    generous = {}

    def tell(text):
        lines.append(text)
        print(text, flush=True)

    tell(HEAD)
    tell("| --- " * HEAD.count(" | ") + "| --- |")
    for workload in arguments.workloads:
        with workplace(workload) as folder:
            least = smallest_budget(program, workload, folder)
            whole = plan_rows(program, workload, "12GiB", folder)["whole batch"]["peak_bytes"]
            most = generous[workload] = max(int(1.3 * whole), least)
            for budget in (least, (least + most) // 2, most):
                row = measure(program, workload, budget, arguments.updates, not arguments.no_verify, folder)
                tell(line(row))
                if row["peak"] > MARGIN * budget:
                    failures.append(f"{workload} under {mib(budget)} MiB reached {mib(row['peak'])} MiB")
                if row.get("verdict", "equal") != "equal":
                    failures.append(f"{workload} under {mib(budget)} MiB: verify says {row['verdict']}")
    tell("\n## Foretold for sizes that are given\n\nUnder the generous budget, as foretold before any of these sizes was run.\n")
    tell(GIVEN_HEAD)
    tell("| --- " * GIVEN_HEAD.count(" | ") + "| --- |")
    errors = []
    for workload in arguments.workloads:
        with workplace(workload) as folder:
            for row in measure_given(program, workload, generous[workload], folder):
                tell(given_line(row))
                errors.append(abs(row["error"]))
                if errors[-1] > ERROR:
                    failures.append(f"{workload}, given {row['num_micro_steps']} micro-steps: {100 * row['error']:+.1f} % off")
    tell(f"\nLargest error: {100 * max(errors):.1f} %")
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
