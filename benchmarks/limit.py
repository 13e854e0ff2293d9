#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Workload V inside a limit that the system enforces: plain PyTorch with the whole batch, then Accrue with the same batch.

usage: limit.py [--limit MIB] [--updates N] [--build FOLDER]

The limit is a memory cgroup of its own (v1 or v2) where one may be made, else `ulimit -v` on top of what each program
maps before it trains. Accrue gets `batch.memory: 90%`, reads the limit itself, trains, and must end with the same bytes
as a run without any limit that cuts its batches alike. Exit code 0: PyTorch failed and Accrue did so.
"""
import argparse
import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile

from machine import end_of

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
DATA = HERE / "data"


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


def make_limit(size, mapped):
    try:
        return Cgroup(size), "a memory cgroup"
    except OSError as error:
        print(f"no cgroup of one's own here ({error}): ulimit -v instead")
        return Ulimit(size, mapped), "ulimit -v"


def run(command, limit=None):
    ended = end_of(command, {"ACCRUE_PLAN_CACHE": "off"}, limit.enter if limit else None)
    return ended.code, ended.out, ended.err


def said(code):
    return "killed by the system" if code == -9 else f"exit {code}" if code else "trained through"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--limit", type=int, default=600)
    parser.add_argument("--updates", type=int, default=2)
    parser.add_argument("--build", default=ROOT / "build", type=pathlib.Path)
    parser.add_argument("--python", default=sys.executable)
    arguments = parser.parse_args()
    size = arguments.limit << 20
    updates = str(arguments.updates)
    if not (DATA / "V/weights.safetensors").exists():
        subprocess.run([arguments.python, HERE / "generate.py", DATA, "V"], check=True)

    limit, kind = make_limit(size, 4 << 30)
    try:
        peer = [arguments.python, str(HERE / "peers/pytorch_whole.py"), str(DATA)]
        free, _, err = run([*peer, "1"])
        if free != 0:
            sys.exit(f"PyTorch cannot run this at all: {err}")
        pytorch, _, err = run([*peer, updates], limit)
        print(f"{kind} of {arguments.limit} MiB")
        print(f"PyTorch, whole batch of 128: {said(pytorch)} {err.strip().splitlines()[-1] if err.strip() else ''}")
    finally:
        limit.close()

    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        command = [str(arguments.build / "accrue"), "train", "benchmarks/configs/v.yaml", "-q", "--set", f"train.updates={updates}"]
        share = ["--set", "batch.micro_batch=auto", "--set", f"batch.memory={'90%' if kind != 'ulimit -v' else size}"]
        limit, _ = make_limit(size, 4 << 30)
        try:
            code, _, err = run([*command, *share, "--output-dir", str(folder / "limited")], limit)
        finally:
            limit.close()
        print(f"Accrue, batch of 128: {said(code)} {err.strip()}")
        if code != 0:
            sys.exit(1)
        record = json.loads((folder / "limited/metrics.jsonl").read_text().splitlines()[0])
        alike = ["--set", f"batch.micro_batch={max(record['micro_sizes'])}"]
        code, _, err = run([*command, *alike, "--output-dir", str(folder / "free")])
        if code != 0:
            sys.exit(err)
        same = (folder / "limited/model.safetensors").read_bytes() == (folder / "free/model.safetensors").read_bytes()
        print(f"micro-batches {record['micro_sizes']}, retries {record['retries']}, peak {record['memory']['peak_bytes'] >> 20} MiB")
        print(f"final weights without any limit: {'the same bytes' if same else 'DIFFERENT'}")
        sys.exit(0 if same and pytorch != 0 else 1)


if __name__ == "__main__":
    main()
