# SPDX-License-Identifier: Apache-2.0
"""Residual networks through the program: norms of one sample under any cut, and BatchNorm, which no cut leaves alone."""
import os
import subprocess
import unittest
from concurrent.futures import ThreadPoolExecutor

from samples import IMAGES, RESNET, picture_file, pictures
from support import SOURCE, ProgramTest, records, strict

BATCH = 16
MICRO_BATCHES = (1, 3, 7, BATCH)  # 16 is all of them: eleven million parameters take their time
NORMS = ("group", "none")
PYTHON = SOURCE / ".venv/bin/python"


class Residual(ProgramTest):
    def setUp(self):
        super().setUp()
        self.write("pictures.safetensors", picture_file(pictures(BATCH)))
        for norm in (*NORMS, "batch"):
            self.write(f"{norm}.yaml", IMAGES.format(data="pictures.safetensors", model=RESNET.format(norm=norm)))

    def at_once(self, function, cases):
        """One thread computes in each process, so two run side by side."""
        with ThreadPoolExecutor(2) as pool:
            return list(pool.map(lambda case: function(*case), cases))

    def verdict(self, norm, micro_batch, *words, code=0):
        out, _ = self.accrue("verify", f"{norm}.yaml", "--json", "--set", f"batch.micro_batch={micro_batch}", *words,
                             code=code)
        return strict(out)

    def test_without_batch_norm_every_cut_is_equal(self):
        cases = [(norm, micro_batch) for norm in NORMS for micro_batch in MICRO_BATCHES]
        for case, verdict in zip(cases, self.at_once(self.verdict, cases)):
            self.assertEqual(verdict["verdict"], "equal", case)
            self.assertEqual(verdict["couplings"], [], case)
            self.assertEqual(max(verdict["micro_sizes"]), case[1])
            # Some million float64 additions in another order; a lost sample of sixteen is 0.06.
            self.assertLess(verdict["float64_difference"], 1e-10, case)

    def test_the_first_update_is_the_same_for_every_micro_batch(self):
        def first(norm, micro_batch):
            run = f"{norm}-{micro_batch}"
            self.accrue("train", f"{norm}.yaml", "-q", "--output-dir", run, "--set", "train={updates: 1}", "--set",
                        f"batch.micro_batch={micro_batch}")
            return records(self.folder / run / "metrics.jsonl")[0]

        for norm in NORMS:
            firsts = self.at_once(first, [(norm, micro_batch) for micro_batch in MICRO_BATCHES])
            for key in ("loss", "grad_norm"):
                self.assertEqual(len({f"{record[key]:.5g}" for record in firsts}), 1, [r[key] for r in firsts])

    def test_batch_norm_is_named_and_nothing_claimed_unless_it_is_frozen(self):
        def look(code, *words):
            return self.verdict("batch", 8, *words, code=code)

        verdict, frozen = self.at_once(look, [(6,), (0, "--set", "train.batch_norm=freeze")])
        self.assertEqual(verdict["verdict"], "not_claimed")
        modules = [coupling["module"] for coupling in verdict["couplings"]]
        self.assertEqual(len(modules), 20)
        for name in ("bn1", "layer1.0.bn1", "layer2.0.downsample.1", "layer4.1.bn2"):
            self.assertIn(name, modules)
        for coupling in verdict["couplings"]:
            self.assertIn("train.batch_norm: freeze", coupling["advice"])
        self.assertGreater(verdict["float64_difference"], 1e-3)
        self.assertEqual(frozen["verdict"], "equal")
        self.assertLess(frozen["float64_difference"], 1e-10)

    @unittest.skipUnless(PYTHON.exists(), "no Python with PyTorch in .venv")
    def test_pytorch_agrees_with_the_export_of_group_norm(self):
        self.accrue("verify", "group.yaml", "--set", "batch.micro_batch=7", "--export", "proof")
        done = subprocess.run([PYTHON, SOURCE / "tools/check_export.py", "proof"], cwd=self.folder,
                              env={**os.environ, "OMP_NUM_THREADS": "1"}, capture_output=True, text=True, timeout=300,
                              check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("is the exported one, both ways", done.stdout)


if __name__ == "__main__":
    unittest.main()
