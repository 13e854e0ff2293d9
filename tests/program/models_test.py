# SPDX-License-Identifier: Apache-2.0
"""Pictures and tokens through the program: no cut of the batch changes the update, and PyTorch computes the same."""
import os
import subprocess
import unittest

from samples import CNN, IMAGES, TOKENS, jsonl, picture_file, pictures, sequences
from support import SOURCE, ProgramTest, records, strict

BATCH = 20
MICRO_BATCHES = (1, 3, 7, 16, BATCH)
PYTHON = SOURCE / ".venv/bin/python"


class ModelTest(ProgramTest):
    def setUp(self):
        super().setUp()
        self.write("pictures.safetensors", picture_file(pictures(40)))
        self.write("rows.jsonl", jsonl(sequences(40)))
        self.write("masked.jsonl", jsonl(sequences(BATCH, masked=True)))
        self.write("cnn.yaml", IMAGES.format(data="pictures.safetensors", model=CNN))
        self.write("gpt.yaml", TOKENS.format(task="causal-lm", data="rows.jsonl", dropout=0))
        self.write("dropout.yaml", TOKENS.format(task="causal-lm", data="rows.jsonl", dropout=0.2))
        self.write("masked.yaml", TOKENS.format(task="sft", data="masked.jsonl", dropout=0.2))

    def verdict(self, config, *settings, code=0):
        words = [word for setting in settings for word in ("--set", setting)]
        return strict(self.accrue("verify", config, "--json", *words, code=code)[0])

    def check_equal(self, config, micro_batch, *settings):
        verdict = self.verdict(config, f"batch={{size: {BATCH}, micro_batch: {micro_batch}}}", *settings)
        self.assertEqual(verdict["verdict"], "equal")
        self.assertEqual(verdict["couplings"], [])
        self.assertEqual(sum(verdict["micro_sizes"]), BATCH)
        self.assertEqual(max(verdict["micro_sizes"]), micro_batch)
        # Some thousand float64 additions in another order; a lost sample of twenty is 0.05.
        self.assertLess(verdict["float64_difference"], 1e-10)
        self.assertLess(verdict["max_relative_difference"], verdict["tolerance"])

    def first_record(self, config, *settings):
        words = [word for setting in settings for word in ("--set", setting)]
        self.accrue("train", config, "-q", "--overwrite", "--set", "train={updates: 1}", *words)
        return records(self.folder / "run/metrics.jsonl")[0]

    def check_first_records(self, config):
        firsts = [self.first_record(config, f"batch={{size: {BATCH}, micro_batch: {micro_batch}}}")
                  for micro_batch in MICRO_BATCHES]
        for first in firsts:
            for key in ("loss", "grad_norm"):
                self.assertEqual(f"{first[key]:.5g}", f"{firsts[0][key]:.5g}", (config, key, first["micro_sizes"]))
            self.assertEqual(first["weight"], firsts[0]["weight"])
        return firsts[0]


class Verify(ModelTest):
    def test_a_cnn_is_equal_however_it_is_cut(self):
        for micro_batch in MICRO_BATCHES:
            self.check_equal("cnn.yaml", micro_batch)

    def test_a_gpt_is_equal_however_it_is_cut(self):
        for micro_batch in MICRO_BATCHES:
            self.check_equal("gpt.yaml", micro_batch)

    def test_a_gpt_with_dropout_is_equal_however_it_is_cut(self):
        for micro_batch in MICRO_BATCHES:
            self.check_equal("dropout.yaml", micro_batch)

    def test_masked_labels_are_equal_and_a_mean_of_means_is_not(self):
        for micro_batch in (1, 7):
            self.check_equal("masked.yaml", micro_batch)
        verdict = self.verdict("masked.yaml", f"batch={{size: {BATCH}, micro_batch: 7}}", "loss.reduction=micro_mean",
                               code=1)
        self.assertEqual(verdict["verdict"], "different")

    def test_smoothing_and_augmentation_are_equal(self):
        self.check_equal("cnn.yaml", 7, "data.crop=1", "data.flip=true", "loss.label_smoothing=0.1")


class FirstUpdate(ModelTest):
    def test_of_a_cnn_is_the_same_for_every_micro_batch(self):
        self.check_first_records("cnn.yaml")

    def test_of_a_gpt_is_the_same_for_every_micro_batch(self):
        self.check_first_records("gpt.yaml")

    def test_of_dropout_is_the_same_for_every_micro_batch(self):
        self.check_first_records("dropout.yaml")

    def test_of_masked_labels_is_the_same_and_not_a_mean_of_means(self):
        first = self.check_first_records("masked.yaml")
        rows = sequences(BATCH, masked=True)
        self.assertEqual(set(rows[2]["labels"]), {-100})
        counted = sum(label != -100 for row in rows for label in row["labels"][1:])
        self.assertEqual(first["weight"], counted)
        self.assertEqual(first["tokens"], sum(len(row["ids"]) for row in rows))
        means = self.first_record("masked.yaml", f"batch={{size: {BATCH}, micro_batch: 7}}",
                                  "loss.reduction=micro_mean")
        self.assertNotEqual(f"{means['grad_norm']:.5g}", f"{first['grad_norm']:.5g}")


@unittest.skipUnless(PYTHON.exists(), "no Python with PyTorch in .venv")
class AgainstPyTorch(ModelTest):
    def test_exports_of_a_cnn_and_of_token_models_agree(self):
        self.accrue("verify", "cnn.yaml", "--set", "batch.micro_batch=3", "--export", "proof-cnn")
        self.accrue("verify", "gpt.yaml", "--set", "batch.micro_batch=3", "--export", "proof-gpt")
        self.accrue("verify", "masked.yaml", "--set", "batch.micro_batch=3", "--set", "model.dropout=0", "--set",
                    "loss.label_smoothing=0.1", "--export", "proof-masked")
        done = subprocess.run([PYTHON, SOURCE / "tools/check_export.py", "proof-cnn", "proof-gpt", "proof-masked"],
                              cwd=self.folder, env={**os.environ, "OMP_NUM_THREADS": "1"}, capture_output=True,
                              text=True, timeout=300, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(done.stdout.count("is the exported one, both ways"), 3)


if __name__ == "__main__":
    unittest.main()
