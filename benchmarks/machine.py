# SPDX-License-Identifier: Apache-2.0
"""Runs processes, and asks what the machine is and gives: `accrue doctor --json` before, between and after rounds."""
import json
import os
import pathlib
import platform
import subprocess
import tempfile
from dataclasses import dataclass

ROOT = pathlib.Path(__file__).resolve().parents[1]


class Failed(Exception):
    """A process ended with an error."""


@dataclass
class Ended:
    code: int
    out: str
    err: str
    peak_bytes: int  # resident
    page_faults: int  # without reading
    processor_seconds: float  # of all threads


def end_of(command, environment=None, enter=None):
    """Runs a process to its end, whatever that is; `enter` is called in it first."""
    command = [str(word) for word in command]
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        process = subprocess.Popen(
            command, cwd=ROOT, env={**os.environ, **(environment or {})}, stdout=out, stderr=err, preexec_fn=enter
        )
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        seconds = usage.ru_utime + usage.ru_stime
        return Ended(process.returncode, out.read(), err.read(), usage.ru_maxrss * 1024, usage.ru_minflt, seconds)


def run(command, environment=None):
    """A process's standard output and its peak resident bytes."""
    ended = end_of(command, environment)
    if ended.code != 0:
        raise Failed(f"{' '.join(map(str, command))} ended with {ended.code}\n{ended.err}")
    return ended.out, ended.peak_bytes


SPEEDS = {
    "fma_gflops": "FMA loop GFLOP/s",
    "sgemm_gflops": "sgemm GFLOP/s",
    "stream_gbytes_per_second": "memory stream GB/s",
    "page_faults_per_second": "page faults/s",
}


class Machine:
    """The description, and every look at its speed."""

    def __init__(self, build, threads):
        self.command = [build / "accrue", "doctor", "--json", "--threads", threads]
        self.looks = []
        self.description = self.look()

    def look(self):
        told = json.loads(run(self.command)[0])
        speed = told.pop("speed", None)
        if speed:
            self.looks.append(speed)
        return told

    def values(self, key):
        return sorted(look[key] for look in self.looks if look.get(key) is not None)

    def limit(self):
        """The highest rate of fused multiply-adds that the machine showed in this run, in FLOP/s; None: not told."""
        rates = self.values("fma_gflops")
        return rates[-1] * 1e9 if rates else None

    def sgemm(self):
        """The highest rate of products [512 x 512] x [512 x 512] in this run, in FLOP/s; None: not told."""
        rates = self.values("sgemm_gflops")
        return rates[-1] * 1e9 if rates else None

    def report(self):
        names = [line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")]
        processor = names[0] if names else platform.processor()
        return {"processor": processor, "system": platform.platform(), **self.description, "speed": self.looks}

    def speed_text(self):
        spans = {name: self.values(key) for key, name in SPEEDS.items()}
        texts = [f"{name} {values[0]:.4g} to {values[-1]:.4g}" for name, values in spans.items() if values]
        return f"{len(self.looks)} looks at the machine: {', '.join(texts)}" if texts else "the machine's speed was not told"
