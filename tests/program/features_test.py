# SPDX-License-Identifier: Apache-2.0
"""Averages, schedules, noise scale, evaluation and resuming: none of it depends on the cut or changes another's bits."""
import signal
import unittest

from features import AUGMENTED, NOISY, FeatureTest
from samples import floats, jsonl, sequences
from support import records, strict


class Inserted(FeatureTest):
    def check_no_bit_changes(self, config, *settings):
        self.train(config, "plain", *settings)
        self.train(config, "often", *settings, "eval.every=1", "eval.batch_size=5")
        self.assertEqual(len(records(self.folder / "often/eval.jsonl")), 2 * 12)
        for name in ("model.safetensors", "model-average.safetensors"):
            self.assertEqual(self.file("often", name), self.file("plain", name), name)
        self.assertNotEqual(self.file("plain"), self.file("plain", "model-average.safetensors"))
        self.assertEqual([(r["loss"], r["grad_norm"], r["noise_scale"]) for r in self.written("often")],
                         [(r["loss"], r["grad_norm"], r["noise_scale"]) for r in self.written("plain")])

    def test_evaluation_changes_no_bit_of_pictures_with_average_and_augmentation(self):
        self.check_no_bit_changes("cnn.yaml", *AUGMENTED)

    def test_evaluation_changes_no_bit_of_tokens_with_dropout_and_noise_scale(self):
        self.check_no_bit_changes("gpt.yaml", *NOISY)

    def test_without_validation_samples_kept_apart_nothing_else_changes(self):
        self.write("valid.jsonl", jsonl(sequences(9, seed=5)))
        self.train("gpt.yaml", "alone")
        self.train("gpt.yaml", "beside", "data.valid=valid.jsonl", "eval.every=1")
        self.assertEqual(self.file("alone"), self.file("beside"))

    def test_reading_ahead_changes_no_bit(self):
        for config, settings in (("cnn.yaml", AUGMENTED), ("gpt.yaml", NOISY)):
            for ahead in (0, 1, 5):
                self.train(config, f"{config}-{ahead}", *settings, f"train.read_ahead={ahead}")
            self.assertEqual(self.file(f"{config}-0"), self.file(f"{config}-1"))
            self.assertEqual(self.file(f"{config}-0"), self.file(f"{config}-5"))


class CountsUpdates(FeatureTest):
    def distance(self, one, other):
        """Largest difference over the largest value, of all tensors of two files."""
        first, second = floats(one), floats(other)
        self.assertEqual(set(first), set(second))
        largest = max(abs(value) for values in first.values() for value in values)
        return max(abs(a - b) for name, values in first.items() for a, b in zip(values, second[name])) / largest

    def check_counts(self, config, *settings):
        cuts = (1, 3, 7, 16)
        for cut in cuts:
            self.train(config, f"cut-{cut}", *settings, f"batch={{size: 16, micro_batch: {cut}}}")
        whole = self.written("cut-16")
        self.assertEqual(len({record["lr"] for record in whole}), len(whole))
        for cut in cuts:
            written = self.written(f"cut-{cut}")
            self.assertEqual([record["lr"] for record in written], [record["lr"] for record in whole])
            # fp32 sums in another order: 6e-8 of each addition.
            self.assertLess(self.distance(self.file(f"cut-{cut}"), self.file("cut-16")), 1e-6)
            self.assertLess(self.distance(self.file(f"cut-{cut}", "model-average.safetensors"),
                                          self.file("cut-16", "model-average.safetensors")), 1e-6)
        self.assertGreater(self.distance(self.file("cut-16"), self.file("cut-16", "model-average.safetensors")), 1e-3)
        return cuts

    # The rate and the decay are large, so that one too many of anything shows.
    def test_schedule_decay_and_average_of_pictures(self):
        self.check_counts("cnn.yaml", "train={updates: 5, ema: 0.7}", "schedule={name: cosine}",
                          "optimizer={lr: 0.02, weight_decay: 0.5}", "data={flip: true, crop: 1}")

    def test_schedule_decay_average_and_noise_scale_of_tokens(self):
        cuts = self.check_counts("gpt.yaml", "train={updates: 5, ema: 0.7, ema_ramp: false, noise_scale: true}",
                                 "schedule={name: cosine}",
                                 "optimizer={name: sgd, lr: 0.1, weight_decay: 0.5}")
        for cut in cuts:
            state = strict((self.folder / f"cut-{cut}/checkpoints/update-000005/state.json").read_text())
            # An update of two or more micro-steps counts once, also where so little data give no estimate yet.
            self.assertEqual(state["optimizer"]["numbers"].get("noise.windows", 0), 5 if cut < 16 else 0, cut)
            estimates = [record["noise_scale"] for record in self.written(f"cut-{cut}")]
            self.assertEqual(any(estimates), cut < 16, cut)


class Resume(FeatureTest):
    def check_interrupt(self, config, *settings):
        words = self.words(*settings, "train.updates=400", "train.read_ahead=3", "checkpoint.every=50",
                           "eval.every=20", "precision={loss_scale: dynamic, scale_window: 7}")
        self.accrue("train", config, "-q", "--output-dir", "straight", *words)
        process = self.start("train", config, "--output-dir", "run", *words)
        for line in process.stderr:
            if line.startswith("update 33/"):
                break
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=100)
        self.assertEqual(process.returncode, 130, err)
        broken_off = len(self.written("run"))
        self.assertLess(broken_off, 400)
        self.assertTrue(strict((self.folder / "run/run.json").read_text())["training"]["interrupted"])
        self.accrue("train", "run/config.yaml", "-q", "--resume")
        for name in ("model.safetensors", "model-average.safetensors", "data.json"):
            self.assertEqual(self.file("run", name), self.file("straight", name), name)
        keys = ("update", "epoch", "samples", "loss", "grad_norm", "lr", "micro_sizes", "loss_scale", "noise_scale")
        self.assertEqual([[record[key] for key in keys] for record in self.written("run")],
                         [[record[key] for key in keys] for record in self.written("straight")])
        evaluations = [[[entry[key] for key in ("update", "weights", "loss")]
                        for entry in records(self.folder / run / "eval.jsonl")] for run in ("run", "straight")]
        self.assertEqual(*evaluations)
        self.assertGreater(len({record["loss_scale"] for record in self.written("run")}), 3)

    def test_of_pictures_with_average_augmentation_and_loss_scale(self):
        self.check_interrupt("cnn.yaml", *AUGMENTED)

    def test_of_tokens_with_dropout_average_noise_scale_and_loss_scale(self):
        self.check_interrupt("gpt.yaml", *NOISY)

if __name__ == "__main__":
    unittest.main()
