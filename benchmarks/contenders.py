# SPDX-License-Identifier: Apache-2.0
"""Who runs each workload, and how: every contender is a process of its own on the same arrays.

A run gives seconds (of each measured update), first_loss, last_loss, peak_bytes (of the process) and peak_above_bytes
(above the level just before the model is built).
"""
import importlib.util
import json
import pathlib
import shutil
import sys
from dataclasses import dataclass, field
from typing import Callable

from machine import ROOT, run

HERE = pathlib.Path(__file__).resolve().parent
DATA = HERE / "data"
COMPILED = {"TORCHINDUCTOR_CACHE_DIR": str(ROOT / ".venv-bench/compiled")}  # kept from run to run
BUDGET_S = "400MiB"  # under which the planner's measured choice is 6 to 11 groups of a batch of 64


@dataclass
class Settings:
    build: pathlib.Path
    threads: int
    folder: pathlib.Path  # for what lasts for this run only
    schedule: dict  # workload: (warm-up updates, measured updates)
    levels: dict = field(default_factory=dict)

    def level(self, command):
        """Resident bytes of one of our programs that has loaded everything and built nothing."""
        key = str(command[0])
        if key not in self.levels:
            self.levels[key] = run(command)[1]
        return self.levels[key]


@dataclass
class Contender:
    run: Callable
    ours: bool = False
    needs: tuple = ()  # modules
    may_fail: bool = False
    peer: tuple = ()  # script and its arguments after the workload
    options: tuple = ()  # of ours, beyond the workload's configuration

    def missing(self):
        """Why this cannot run here, or None."""
        lacking = [name for name in self.needs if importlib.util.find_spec(name) is None]
        if lacking:
            return f"{', '.join(lacking)} is not installed"
        if "compile" in self.peer and not (shutil.which("g++") or shutil.which("c++")):
            return "torch.compile needs a C++ compiler"
        return None


def library(settings, workload):
    program = settings.build / "benchmarks/split_step_t"
    command = [program, DATA, settings.threads]
    output, peak = run([*command, *settings.schedule[workload]])
    return {**json.loads(output), "peak_bytes": peak, "peak_above_bytes": peak - settings.level([*command, 0, 0])}


def train(settings, workload, options, warm_up, updates, cache="off", environment=None):
    """`accrue train` on a workload's configuration, by its records."""
    program, folder = settings.build / "accrue", settings.folder / "run"
    command = [program, "train", f"benchmarks/configs/{workload.lower()}.yaml", "--overwrite", "-q"]
    command += ["--output-dir", folder, "--threads", settings.threads]
    for option in (*options, f"train.updates={warm_up + updates}"):
        command += ["--set", option]
    _, peak = run(command, {"ACCRUE_PLAN_CACHE": str(cache), **(environment or {})})
    records = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return {
        "seconds": [record["seconds"]["total"] for record in records[warm_up:]],
        "micro_seconds": [record["seconds"]["forward"] + record["seconds"]["backward"] for record in records[warm_up:]],
        "first_loss": records[0]["loss"],
        "last_loss": records[-1]["loss"],
        "peak_bytes": peak,
        "peak_above_bytes": peak - settings.level([program, "--version"]),
        "groups": [record["num_micro_steps"] for record in records],
    }


def program(*options, cached=False, environment=None):
    def contender(settings, workload):
        cache = settings.folder / "plans.json" if cached else "off"
        return train(settings, workload, options, *settings.schedule[workload], cache, environment)

    return Contender(contender, ours=True, options=options)


def peer(script, *words, needs=("torch",), may_fail=False):
    def contender(settings, workload):
        warm_up, updates = settings.schedule[workload]
        counts = ["--threads", settings.threads, "--warm-up", warm_up, "--updates", updates]
        command = [sys.executable, HERE / "peers" / script, DATA, workload, *words, *counts]
        return json.loads(run(command, COMPILED)[0])

    return Contender(contender, needs=needs, may_fail=may_fail, peer=(script, *words))


EAGER = peer("pytorch.py", "eager")
TUNED = peer("pytorch.py", "tuned")
COMPILE = peer("pytorch.py", "compile", may_fail=True)
OPTAX = peer("optax_scan.py", "scan", needs=("jax", "optax"))
ACCELERATE = peer("accelerate_loop.py", "loop", needs=("torch", "accelerate"))

AUTO_S = ("batch.micro_batch=auto", f"batch.memory={BUDGET_S}")
TORCHS = {"ACCRUE_PRODUCTS": "torch"}  # the BLAS that the peers on PyTorch have

CONTENDERS = {
    "T": {
        "Accrue, SplitStep": Contender(library, ours=True),
        "PyTorch eager": EAGER,
        "PyTorch tuned": TUNED,
        "torch.compile": COMPILE,
        "optax, lax.scan": OPTAX,
    },
    "M": {
        "Accrue": program(),
        "Accrue, products by LibTorch": program(environment=TORCHS),
        "PyTorch eager": EAGER,
        "PyTorch tuned": TUNED,
        "torch.compile": COMPILE,
        "optax, lax.scan": OPTAX,
    },
    "S": {
        "Accrue, 4 x 16": program(),
        "Accrue, auto": program(*AUTO_S, cached=True),
        "Accrue, auto, products by LibTorch": program(*AUTO_S, cached=True, environment=TORCHS),
        "PyTorch eager, 4 x 16": EAGER,
        "PyTorch tuned, 4 x 16": TUNED,
        "PyTorch tuned, 1 x 64": peer("pytorch.py", "tuned", "--micro-batch", "1"),
        "PyTorch tuned, sorted 4 x 16": peer("pytorch.py", "tuned", "--sorted"),
        "torch.compile, 4 x 16": COMPILE,
        "accelerate, 4 x 16": ACCELERATE,
    },
    "V": {
        "Accrue": program(),
        "Accrue, products by LibTorch": program(environment=TORCHS),
        "PyTorch eager": EAGER,
        "PyTorch tuned": TUNED,
        "torch.compile": COMPILE,
    },
    "G": {
        "Accrue": program(),
        "Accrue, products by LibTorch": program(environment=TORCHS),
        "PyTorch eager": EAGER,
        "PyTorch tuned": TUNED,
    },
}
