#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How far each contender's gradient of the first update is from PyTorch's in float64, one forward of the whole batch.

usage: gradients.py [T M S V G] [--build FOLDER] [--threads N]

The distance is tools/check_export.py's: over the parameters, the largest relative l2 difference. Accrue's gradient is
what `accrue verify --export` writes of the micro-batches of the workload's configuration. G takes about 10 GB.
"""
import argparse
import json
import os
import pathlib
import sys
import tempfile

from contenders import COMPILED, CONTENDERS, DATA, HERE
from machine import ROOT, Failed, run

def accrue(build, workload, threads, folder, options=()):
    """Writes batch, parameters and both gradients to the folder."""
    command = [build / "accrue", "verify", f"benchmarks/configs/{workload.lower()}.yaml", "--export", folder]
    command += ["--threads", threads]
    for option in options:
        command += ["--set", option]
    if options:  # the budget is the split's; the whole batch beside it needs more
        command += ["--memory", "12GiB"]
    run(command, {"ACCRUE_PLAN_CACHE": "off"})
    return folder


def peer(contender, workload, threads, folder):
    script, *words = contender.peer
    path = folder / "gradients.safetensors"
    command = [sys.executable, HERE / "peers" / script, DATA, workload, *words, "--threads", threads, "--gradients", path]
    run(command, COMPILED)
    return path


def distances(workload, build, threads):
    """Contender: distance. In a process of its own, for its memory."""
    command = [sys.executable, __file__, workload, "--build", build, "--threads", threads, "--json"]
    return json.loads(run(command)[0])[workload]


def compute(workload, build, threads):
    sys.path.insert(0, str(ROOT / "tools"))
    import torch
    import check_export as check

    torch.set_num_threads(threads)
    proof = accrue(build, workload, threads, DATA / workload / "proof")
    manifest = json.loads((proof / "manifest.json").read_text())
    batch = check.read_tensors(proof / "batch.safetensors")
    stored = check.read_tensors(proof / "parameters.safetensors")
    _, reference = check.gradient(manifest, batch, stored, torch.float64)
    del stored
    found = {}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for contender, what in CONTENDERS[workload].items():
            if what.missing():
                continue
            try:
                if what.ours:
                    place = accrue(build, workload, threads, folder, what.options) if what.options else proof
                    path = place / "gradients_split.safetensors"
                else:
                    path = peer(what, workload, threads, folder)
            except Failed as error:
                if not what.may_fail:
                    raise
                print(error, file=sys.stderr)
                continue
            found[contender], _ = check.distance(check.read_tensors(path), reference)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workloads", nargs="*", default=list(CONTENDERS))
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    try:
        found = {workload: compute(workload, arguments.build, arguments.threads) for workload in arguments.workloads}
    except Failed as error:
        sys.exit(str(error))
    if arguments.json:
        print(json.dumps(found))
        return
    for workload, figures in found.items():
        for name, distance in figures.items():
            print(f"{workload} {name:32} {distance:.1e}")


if __name__ == "__main__":
    main()
