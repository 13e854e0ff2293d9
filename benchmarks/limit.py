#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Workload V inside a limit that the system enforces: plain PyTorch with the whole batch, then Accrue with the same batch.

usage: limit.py [--limit MIB] [--updates N] [--build FOLDER] [--python PROGRAM] [--no-report]

The limit is a memory cgroup of its own (v1 or v2) where one may be made, else `ulimit -v` on top of what each program
maps before its model exists, which is measured. Accrue gets `batch.memory: 90%` and reads the limit itself (under
`ulimit -v` it gets the limit's size), trains, and must end with the same bytes as a run without any limit that cuts its
batches alike. Exit code 0: PyTorch failed and Accrue did so.
"""
import argparse
import datetime
import json
import os
import pathlib
import platform
import re
import resource
import subprocess
import sys
import tempfile
import time

from machine import end_of

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
DATA = HERE / "data"
# A product and its backward, so that the threads are there: what PyTorch maps without a model.
IDLE_PYTORCH = "import torch; x = torch.ones(256, 256, requires_grad=True); (x @ x).sum().backward(); print(torch.__version__)"


class Cgroup:
    """A child of this process's memory cgroup with a limit; `enter` is for the child process."""

    def __init__(self, limit):
        v1 = pathlib.Path("/sys/fs/cgroup/memory")
        place, file = (v1, "memory.limit_in_bytes") if v1.exists() else (pathlib.Path("/sys/fs/cgroup"), "memory.max")
        self.folder = place / f"accrue-limit-{os.getpid()}"
        self.folder.mkdir()
        try:
            (self.folder / file).write_text(str(limit))
        except OSError:
            self.folder.rmdir()
            raise

    def enter(self):
        (self.folder / "cgroup.procs").write_text(str(os.getpid()))

    def close(self):
        self.folder.rmdir()


class Ulimit:
    """The address space of a process: what it maps anyway (given) and the limit on top."""

    def __init__(self, limit, mapped):
        self.bytes = limit + mapped

    def enter(self):
        resource.setrlimit(resource.RLIMIT_AS, (self.bytes, self.bytes))

    def close(self):
        pass


def mapped_by(command):
    """The most address space that a process had, in bytes: it is looked at until it ends."""
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    most = 0
    while process.poll() is None:
        told = re.search(r"VmPeak:\s*(\d+) kB", pathlib.Path(f"/proc/{process.pid}/status").read_text())
        most = max(most, int(told[1]) << 10) if told else most
        time.sleep(0.001)
    if process.returncode != 0 or most == 0:
        sys.exit(f"{' '.join(map(str, command))} ended with {process.returncode}\n{process.stderr.read()}")
    return most


def make_limit(size, idle):
    """The limit, and what it is called; `idle` is a command that maps what the program maps without a model."""
    name = f"{size >> 20} MiB"
    try:
        return Cgroup(size), f"a memory cgroup of {name}"
    except OSError as error:
        print(f"no cgroup of one's own here ({error}): ulimit -v instead")
    mapped = mapped_by(idle)
    return Ulimit(size, mapped), f"`ulimit -v` of {name} beyond {mapped >> 20} MiB"


def run(command, limit=None):
    return end_of(command, {"ACCRUE_PLAN_CACHE": "off"}, limit.enter if limit else None)


def said(ended):
    if ended.code == 0:
        return "trained through"
    last = ended.err.strip().splitlines()[-1:]
    return ": ".join(["killed by the system" if ended.code == -9 else f"exit {ended.code}", *last])


def mib(size):
    return f"{size / (1 << 20):.1f} MiB"


def counted(sizes):
    """10, 10, 5 as "2 x 10 and 1 x 5"."""
    return " and ".join(f"{sizes.count(size)} x {size}" for size in dict.fromkeys(sizes))


def compare(arguments, lines):
    """Runs both, adds what is to be told to the lines, and returns the exit code."""

    def tell(text):
        lines.append(text)
        print(text, flush=True)

    size = arguments.limit << 20
    updates = str(arguments.updates)
    if not (DATA / "V/weights.safetensors").exists():
        subprocess.run([arguments.python, HERE / "generate.py", DATA, "V"], check=True)
    tell(f"Workload V: resnet18, batch of 128; updates: {updates}")

    idle = [arguments.python, "-c", IDLE_PYTORCH]
    limit, kind = make_limit(size, idle)
    try:
        version = run(idle).out.strip()
        peer = [arguments.python, str(HERE / "peers/pytorch_whole.py"), str(DATA)]
        free = run([*peer, "1"])
        if free.code != 0:
            sys.exit(f"PyTorch cannot run this at all: {free.err}")
        pytorch = run([*peer, updates], limit)
        tell(f"PyTorch {version}, the whole batch at once, one update without a limit: peak {mib(free.peak_bytes)}")
        tell(f"PyTorch, the same, {kind}: {said(pytorch)}")
    finally:
        limit.close()

    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        accrue = str(arguments.build / "accrue")
        command = [accrue, "train", "benchmarks/configs/v.yaml", "-q", "--set", f"train.updates={updates}"]
        limit, kind = make_limit(size, [accrue, "doctor", "--no-speed", "--json"])
        memory = "90%" if isinstance(limit, Cgroup) else str(size)
        share = ["--set", "batch.micro_batch=auto", "--set", f"batch.memory={memory}"]
        try:
            ours = run([*command, *share, "--output-dir", str(folder / "limited")], limit)
        finally:
            limit.close()
        tell(f"Accrue, micro_batch: auto, memory: {memory}, {kind}: {said(ours)}")
        if ours.code != 0:
            return 1
        records = [json.loads(line) for line in (folder / "limited/metrics.jsonl").read_text().splitlines()]
        sizes, retries = records[0]["micro_sizes"], sum(record["retries"] for record in records)
        tell(f"Accrue's micro-batches: {counted(sizes)}, retries {retries}, peak {mib(ours.peak_bytes)}")
        alike = ["--set", f"batch.micro_batch={max(sizes)}"]
        free = run([*command, *alike, "--output-dir", str(folder / "free")])
        if free.code != 0:
            sys.exit(free.err)
        same = (folder / "limited/model.safetensors").read_bytes() == (folder / "free/model.safetensors").read_bytes()
        tell(f"Accrue's final weights beside a run without any limit: {'the same bytes' if same else 'DIFFERENT'}")
        return 0 if same and pytorch.code != 0 else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--limit", type=int, default=600)
    parser.add_argument("--updates", type=int, default=2)
    parser.add_argument("--build", default=ROOT / "build", type=pathlib.Path)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--no-report", action="store_true")
    arguments = parser.parse_args()
    lines = []
    code = compare(arguments, lines)
    if not arguments.no_report:
        stamp = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d-%H%M%S")
        report = HERE / f"results/limit-{stamp}.md"
        report.parent.mkdir(exist_ok=True)
        heading = f"# A limit that the system enforces, {stamp}, {platform.machine()}, {os.cpu_count()} cores\n\n"
        report.write_text(heading + "".join(f"* {line}\n" for line in lines))
        print(f"report: {report.relative_to(ROOT)}")
    sys.exit(code)


if __name__ == "__main__":
    main()
