# SPDX-License-Identifier: Apache-2.0
"""Interrupted runs go on bit for bit."""
import random
import signal
import time
import unittest

from support import DIGITS, ProgramTest, records, strict

LONG = ("--set", "train.epochs=10", "--set", "checkpoint.every=5")


class Resume(ProgramTest):
    def wait_for(self, process, update):
        """Reads progress until the update's line is there."""
        for line in process.stderr:
            if line.startswith(f"update {update}/"):
                return
        self.fail(f"ended before update {update}")

    def check_records(self):
        written = records(self.folder / "run/metrics.jsonl")
        self.assertEqual([record["update"] for record in written], list(range(1, len(written) + 1)))
        straight = records(self.folder / "straight/metrics.jsonl")
        self.assertEqual([(r["loss"], r["lr"], r["micro_sizes"]) for r in written],
                         [(r["loss"], r["lr"], r["micro_sizes"]) for r in straight])

    def test_after_a_kill_at_any_moment(self):
        expected = self.straight(*LONG)
        chance = random.Random(7)
        for _ in range(3):
            process = self.start("train", "run.yaml", "--overwrite", *LONG)
            self.wait_for(process, chance.randrange(6, 90))
            time.sleep(chance.random() * 0.02)
            process.kill()
            process.communicate()
            self.accrue("train", "run.yaml", "-q", "--resume", *LONG)
            self.assertEqual(self.weights(), expected)
            self.check_records()

    def test_after_an_interrupt_which_saves_and_ends_with_130(self):
        expected = self.straight(*LONG)
        for number in (signal.SIGINT, signal.SIGTERM):
            process = self.start("train", "run.yaml", "--overwrite", *LONG)
            self.wait_for(process, 33)
            process.send_signal(number)
            _, err = process.communicate(timeout=60)
            self.assertEqual(process.returncode, 130, err)
            self.assertIn(f"go on with: accrue train {self.folder}/run/config.yaml --resume", err)
            out, _ = self.accrue("train", "run/config.yaml", "-q", "--resume", "--json")
            made = records(self.folder / "run/metrics.jsonl")[-strict(out)["updates"]:]
            self.assertEqual(strict(out)["samples"], sum(record["samples"] for record in made))
            self.assertEqual(self.weights(), expected)
            self.check_records()

    def test_every_update_can_be_the_last_before_the_break(self):
        expected = self.straight("--set", "schedule={name: constant}", "--set", "checkpoint.keep=100",
                                 "--set", "checkpoint.every=1")
        for update in (1, 5, 11, 12, 13, 23):
            self.accrue("train", "run.yaml", "-q", "--set", "schedule={name: constant}", "--set",
                        "checkpoint.keep=100", "--set", "checkpoint.every=1", "--set", f"output_dir=from-{update}",
                        f"--resume=straight/checkpoints/update-{update:06d}")
            self.assertEqual(self.weights(f"from-{update}"), expected)

    def test_a_longer_run_is_accepted_and_said(self):
        self.accrue("train", "run.yaml", "-q", "--set", "schedule={name: constant}")
        _, err = self.accrue("train", "run.yaml", "-q", "--set", "schedule={name: constant}", "--set",
                             "train.epochs=3", "--resume")
        self.assertIn("train.epochs", err)
        self.assertIn("2", err)
        self.assertIn("3", err)
        self.straight("--set", "schedule={name: constant}", "--set", "train.epochs=3")
        self.assertEqual(self.weights(), self.weights("straight"))

    def test_every_other_difference_is_refused_field_by_field(self):
        self.accrue("train", "run.yaml", "-q")
        _, err = self.accrue("train", "run.yaml", "-q", "--resume", "--set", "optimizer.lr=0.5", "--set",
                             "batch.size=64", "--set", "seed=1", code=1)
        for field in ("optimizer.lr", "batch.size", "seed"):
            self.assertIn(field, err)

    def test_data_of_another_size_are_refused(self):
        lines = DIGITS.read_text().splitlines(keepends=True)
        data = self.write("data.csv", "".join(lines[:400]))
        words = ("train", "run.yaml", "-q", "--set", f"data.train='{data}'")
        self.accrue(*words)
        data.write_text("".join(lines[:390]))
        _, err = self.accrue(*words, "--resume", "--set", "train.epochs=3", code=1)
        self.assertIn("have 311 samples now and had 319", err)

    def test_nothing_to_resume_is_said(self):
        _, err = self.accrue("train", "run.yaml", "--resume", code=1)
        self.assertIn("CheckpointError", err)
        self.assertFalse((self.folder / "run").exists())

    def test_a_damaged_newest_checkpoint_is_skipped_and_named(self):
        expected = self.straight(*LONG)
        process = self.start("train", "run.yaml", *LONG)
        self.wait_for(process, 43)
        process.kill()
        process.communicate()
        newest = sorted((self.folder / "run/checkpoints").glob("update-*"))[-1]
        model = newest / "model.safetensors"
        model.write_bytes(model.read_bytes()[:-3])
        _, err = self.accrue("train", "run.yaml", "-q", "--resume", *LONG)
        self.assertIn(newest.name, err)
        self.assertEqual(self.weights(), expected)
        self.check_records()


if __name__ == "__main__":
    unittest.main()
