# SPDX-License-Identifier: Apache-2.0
"""Runs the program in a folder of its own. ACCRUE_PROGRAM and ACCRUE_SOURCE_DIR come from ctest."""
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

PROGRAM = os.environ["ACCRUE_PROGRAM"]
SOURCE = pathlib.Path(os.environ["ACCRUE_SOURCE_DIR"])
DIGITS = SOURCE / "examples/data/digits.csv"

CONFIG = """\
task: classification
data: {{train: {data}, valid: 0.2}}
model: {{kind: mlp, hidden: [16], activation: tanh}}
batch: {{size: 128, micro_batch: 50}}
optimizer: {{name: adamw, lr: 3e-3}}
schedule: {{name: cosine, warmup_updates: 3}}
clip_norm: 1.0
train: {{epochs: 2}}
output_dir: run
seed: 42
"""


def refuse_constant(name):
    raise ValueError(f"{name} is not JSON")


def strict(text):
    """JSON as a strict reader takes it: no NaN, no Infinity."""
    return json.loads(text, parse_constant=refuse_constant)


def records(path):
    return [strict(line) for line in pathlib.Path(path).read_text().splitlines()]


class ProgramTest(unittest.TestCase):
    """A fresh folder with `run.yaml` in it."""

    def setUp(self):
        holder = tempfile.TemporaryDirectory(prefix="accrue program ")
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)
        self.write("run.yaml", CONFIG.format(data=DIGITS))

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    def environment(self, **more):
        kept = {name: value for name, value in os.environ.items() if not name.startswith("ACCRUE_")}
        return {**kept, "ACCRUE_PLAN_CACHE": "off", **more}

    def accrue(self, *words, code=0, folder=None, **environment):
        """Runs the program and checks its exit code; gives standard output and standard error."""
        done = subprocess.run(
            [PROGRAM, *map(str, words)],
            cwd=folder or self.folder,
            env=self.environment(**environment),
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        self.assertEqual(done.returncode, code, f"accrue {' '.join(map(str, words))}\n{done.stdout}{done.stderr}")
        return done.stdout, done.stderr

    def start(self, *words):
        return subprocess.Popen(
            [PROGRAM, *map(str, words)],
            cwd=self.folder,
            env=self.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def weights(self, run="run"):
        return (self.folder / run / "model.safetensors").read_bytes()

    def straight(self, *words):
        """The final weights of an undisturbed run into the folder `straight`."""
        self.accrue("train", "run.yaml", "-q", "--set", "output_dir=straight", *words)
        return self.weights("straight")
