# SPDX-License-Identifier: Apache-2.0
"""What runs leave behind: evaluations, best, early stop, trials, comparisons and the record of the run."""
import json
import math
import unittest

from features import AUGMENTED, NOISY, FeatureTest
from samples import IMAGES
from support import records, strict


class Eval(FeatureTest):
    def eval(self, *words, code=0):
        out, err = self.accrue("eval", *words, *(("--json",) if code == 0 else ()), code=code)
        return strict(out) if code == 0 else err

    def test_numbers_do_not_depend_on_the_batch_and_are_those_of_training(self):
        self.train("gpt.yaml", "run", *NOISY, "eval.every=4")
        last = {entry["weights"]: entry for entry in records(self.folder / "run/eval.jsonl")[-2:]}
        for split, samples in (("valid", 10), ("train", 30)):
            reports = [self.eval("run/config.yaml", "--split", split, "--batch-size", size) for size in (1, 3, 1000)]
            for report in reports:
                self.assertEqual(report["samples"], samples)
                self.assertEqual(report["split"], split)
                self.assertEqual(set(report["metrics"]), {"loss", "perplexity", "accuracy"})
                for name, value in report["metrics"].items():
                    self.assertEqual(f"{value:.6g}", f"{reports[0]['metrics'][name]:.6g}")
                self.assertAlmostEqual(report["metrics"]["perplexity"], math.exp(report["metrics"]["loss"]),
                                       places=6)
        valid = self.eval("run/config.yaml")["metrics"]
        self.assertAlmostEqual(valid["loss"], last["model"]["loss"], places=6)
        average = self.eval("run/config.yaml", "--average")["metrics"]
        self.assertAlmostEqual(average["loss"], last["average"]["loss"], places=6)
        self.assertNotAlmostEqual(average["loss"], valid["loss"], places=4)

    def test_numbers_of_pictures_do_not_depend_on_the_batch(self):
        self.train("cnn.yaml", "run", *AUGMENTED)
        for split in ("valid", "train"):
            reports = [self.eval("run/config.yaml", "--split", split, "--batch-size", size)["metrics"]
                       for size in (1, 3, 1000)]
            self.assertEqual(set(reports[0]), {"loss", "accuracy", "top5"})
            for report in reports[1:]:
                self.assertEqual([f"{report[name]:.6g}" for name in reports[0]],
                                 [f"{reports[0][name]:.6g}" for name in reports[0]])

    def test_smoothing_is_not_in_the_perplexity(self):
        self.train("gpt.yaml", "run", "data.valid=0.25", "loss.label_smoothing=0.2")
        smoothed = self.eval("run/config.yaml")["metrics"]
        plain = self.eval("run/config.yaml", "--set", "loss.label_smoothing=0")["metrics"]
        self.assertAlmostEqual(smoothed["perplexity"], plain["perplexity"], places=6)
        self.assertAlmostEqual(plain["perplexity"], math.exp(plain["loss"]), places=6)
        self.assertNotAlmostEqual(smoothed["loss"], plain["loss"], places=3)

    def test_best_and_any_file(self):
        self.train("cnn.yaml", "run", "data.valid=0.25", "optimizer.lr=2", "eval={every: 1, metric: loss}")
        best = strict((self.folder / "run/best.json").read_text())
        evaluations = {entry["update"]: entry for entry in records(self.folder / "run/eval.jsonl")}
        self.assertEqual(best["value"], min(entry["loss"] for entry in evaluations.values()))
        self.assertLess(best["update"], 4)  # with such a rate the last is not the best
        self.assertAlmostEqual(self.eval("run/config.yaml", "--best")["metrics"]["loss"], best["value"], places=6)
        last = self.eval("run/config.yaml")["metrics"]
        self.assertAlmostEqual(last["loss"], evaluations[4]["loss"], delta=1e-6 * evaluations[4]["loss"])
        kept = f"run/{best['checkpoint']}/model.safetensors"
        self.assertAlmostEqual(self.eval("run/config.yaml", "--weights", kept)["metrics"]["loss"], best["value"], places=6)

    def test_what_is_not_there_is_said(self):
        self.assertIn("train first", self.eval("cnn.yaml", "--split", "train", code=4))
        self.assertIn(str(self.folder / "run"), self.eval("cnn.yaml", "--split", "train", code=4))
        self.assertIn("best.json", self.eval("cnn.yaml", "--split", "train", "--best", code=1))
        self.train("cnn.yaml", "run")
        self.assertIn("train.ema", self.eval("cnn.yaml", "--split", "train", "--average", code=4))
        self.assertIn("data.valid", self.eval("cnn.yaml", code=2))
        self.assertIn("--split", self.eval("cnn.yaml", "--split", "test", code=2))
        self.assertIn(str(self.folder / "gone.safetensors"),
                      self.eval("cnn.yaml", "--split", "train", "--weights", "gone.safetensors", code=4))
        self.write("other.yaml", IMAGES.format(data="pictures.safetensors", model="{kind: cnn, channels: [4, 6]}"))
        self.assertIn("run/model.safetensors",
                      self.eval("other.yaml", "--split", "train", "--weights", "run/model.safetensors", code=4))


class Trials(FeatureTest):
    def test_patience_ends_a_run_that_gets_no_better(self):
        _, err = self.accrue("train", "cnn.yaml", *self.words("data.valid=0.25", "optimizer.lr=0", "train.updates=50",
                                                              "eval={every: 2, patience: 3}"))
        self.assertIn("stopped early: 3 evaluations without a better accuracy than that of update 2", err)
        self.assertEqual(len(self.written("run")), 8)
        self.assertEqual([entry["update"] for entry in records(self.folder / "run/eval.jsonl")], [2, 4, 6, 8])
        self.assertTrue((self.folder / "run/model.safetensors").exists())
        best = strict((self.folder / "run/best.json").read_text())
        self.assertEqual(best["update"], 2)
        self.assertTrue((self.folder / "run" / best["checkpoint"] / "COMPLETE").exists())

    def test_patience_lets_a_run_go_on_that_gets_better(self):
        self.train("cnn.yaml", "run", "data.valid=0.25", "optimizer.lr=0.01", "train.updates=10",
                   "eval={every: 2, patience: 2, metric: loss}")
        self.assertEqual(len(self.written("run")), 10)

    def test_a_few_samples_are_learned_by_heart(self):
        out, _ = self.accrue("train", "cnn.yaml", "-q", "--json", "--overfit", "6",
                             *self.words("batch={size: 6, micro_batch: 4}", "train.updates=80", "data.valid=0.25"))
        summary = strict(out)
        self.assertLess(summary["loss"], 0.01)
        self.assertEqual(summary["evaluation"]["samples"], 6)
        self.assertEqual(summary["evaluation"]["accuracy"], 1)
        self.assertLess(summary["evaluation"]["loss"], 0.01)

    def test_a_dry_run_makes_an_update_and_no_file(self):
        before = sorted(path.name for path in self.folder.iterdir())
        for config in ("cnn.yaml", "gpt.yaml"):
            _, err = self.accrue("train", config, "--dry-run", *self.words("batch.micro_batch=7", "data.valid=0.25"))
            self.assertRegex(err, r"update 1/4 +loss \d")
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()), before)


class Compare(FeatureTest):
    def setUp(self):
        super().setUp()
        self.train("cnn.yaml", "whole", "batch.micro_batch=16")

    def test_another_cut_is_the_same_training(self):
        self.train("cnn.yaml", "cut", "batch.micro_batch=3")
        report = strict(self.accrue("compare", "whole", "cut", "--json")[0])
        for key in ("rows", "changed", "notes", "evidence", "recommendation", "reason"):
            self.assertIn(key, report)
        rows = {row["name"]: row for row in report["rows"]}
        for row in rows.values():
            self.assertEqual(set(row), {"name", "unit", "baseline", "candidate", "difference"})
        self.assertAlmostEqual(rows["last loss"]["baseline"], rows["last loss"]["candidate"], places=5)
        self.assertEqual(rows["updates"]["baseline"], 4)
        self.assertIn("batch.micro_batch: 16 -> 3", report["changed"])
        self.assertEqual(report["evidence"], "smoke")
        self.assertIn(report["recommendation"], ("accept", "tune", "reject"))
        text, _ = self.accrue("compare", "whole", "cut")
        self.assertIn("batch.micro_batch: 16 -> 3", text)

    def test_limits_decide(self):
        self.write("slow/config.yaml", self.file("whole", "config.yaml"))
        written = self.written("whole")
        for record in written:
            record["seconds"]["total"] += 1
            record["memory"]["peak_bytes"] += 10**9
        self.write("slow/metrics.jsonl", "".join(json.dumps(record) + "\n" for record in written))
        for words, expected in (((), "accept"), (("--min-ms", "1500"), "tune"), (("--min-mb", "1500"), "tune")):
            report = strict(self.accrue("compare", "slow", "whole", "--json", *words)[0])
            self.assertEqual(report["recommendation"], expected, report["reason"])
        report = strict(self.accrue("compare", "whole", "slow", "--json")[0])
        self.assertEqual(report["recommendation"], "reject")
        self.accrue("compare", "whole", "slow", "--min-ms", "-1", code=2)

    def test_another_training_is_refused_with_every_difference(self):
        self.train("cnn.yaml", "other", "batch={size: 8, micro_batch: 3}", "optimizer.lr=0.5")
        out, err = self.accrue("compare", "whole", "other", "--json", code=2)
        self.assertEqual(out, "")
        for text in ("batch.size: 16 in the baseline, 8 in the candidate", "optimizer.lr"):
            self.assertIn(text, err)
        self.assertNotIn("micro_batch", err)

    def test_a_folder_without_a_run_is_said(self):
        _, err = self.accrue("compare", "whole", "nowhere", code=1)
        self.assertIn("nowhere", err)
        self.accrue("compare", "whole", code=2)


class RunRecord(FeatureTest):
    def test_sums_the_run_up(self):
        self.train("gpt.yaml", "run", *NOISY, "eval.every=4")
        record = strict((self.folder / "run/run.json").read_text())
        for group in ("workload", "environment", "performance", "memory", "training"):
            self.assertIn(group, record)
        workload = record["workload"]
        expected = {"task": "causal-lm", "model": "gpt", "dtype": "fp32", "optimizer": "adamw", "batch": 8,
                    "micro_batch": 3, "num_micro_steps": 3, "seed": 11, "warmup_updates": 2}
        self.assertEqual({key: workload[key] for key in expected}, expected)
        # Embeddings 23 and 12 x 16, two blocks of 12 width^2 + 13 width, the last norm.
        parameters = 35 * 16 + 2 * (12 * 16 * 16 + 13 * 16) + 2 * 16
        self.assertEqual(workload["parameters"], parameters)
        memory = record["memory"]
        for key, copies in (("parameters", 1), ("gradients", 1), ("optimizer_state", 2), ("average", 1), ("masters", 0)):
            self.assertEqual(memory[key], 4 * copies * parameters, key)
        self.assertGreater(memory["peak_resident_bytes"], 4 * 5 * parameters)
        self.assertEqual(record["environment"]["device"], "cpu")
        self.assertEqual(record["environment"]["threads"], 1)
        performance = record["performance"]
        self.assertEqual(performance["measured_updates"], 10)
        self.assertLessEqual(performance["seconds_minimum"], performance["seconds_median"])
        for key in ("samples_per_second", "tokens_per_second"):
            self.assertGreater(performance[key], 0)
        written = self.written("run")
        training = record["training"]
        self.assertEqual(training["updates"], 12)
        self.assertEqual(training["skipped"], 0)
        self.assertFalse(training["interrupted"])
        self.assertEqual(training["samples"], sum(r["samples"] for r in written))
        self.assertEqual([training["first_loss"], training["last_loss"]], [written[0]["loss"], written[-1]["loss"]])
        self.assertEqual(training["evaluation"]["loss"], records(self.folder / "run/eval.jsonl")[-1]["loss"])


if __name__ == "__main__":
    unittest.main()
