# SPDX-License-Identifier: Apache-2.0
"""What `accrue train` writes, and that the split, evaluation and place do not change it."""
import subprocess
import unittest

from support import DIGITS, PROGRAM, ProgramTest, records, strict

FIELDS = """update epoch samples tokens padded_tokens num_micro_steps micro_sizes loss terms weight grad_norm
clip_factor lr applied reason samples_per_second tokens_per_second padded_tokens_per_second last_micro_loss seconds
memory retries""".split()


class Train(ProgramTest):
    def test_writes_one_record_an_update_and_the_final_weights(self):
        out, err = self.accrue("train", "run.yaml")
        self.assertEqual(out, "")
        written = records(self.folder / "run/metrics.jsonl")
        self.assertEqual([record["update"] for record in written], list(range(1, 25)))
        for record in written:
            self.assertEqual([field for field in FIELDS if field not in record], [])
            self.assertEqual(sum(record["micro_sizes"]), record["samples"])
            self.assertEqual(record["num_micro_steps"], len(record["micro_sizes"]))
            self.assertEqual(record["weight"], record["samples"])
            self.assertIsNone(record["tokens"])
            self.assertIsNone(record["memory"]["budget_bytes"])
            # Without a budget nothing is measured at the start: from the second update on it is known.
            self.assertEqual(record["memory"]["predicted_bytes"] is None, record["update"] == 1)
            self.assertGreater(record["memory"]["peak_bytes"], 0)
        self.assertEqual(written[0]["micro_sizes"], [50, 50, 28])
        self.assertEqual(sum(record["samples"] for record in written), 2 * 1438)
        for name in ("config.yaml", "eval.jsonl", "model.safetensors", "checkpoints"):
            self.assertTrue((self.folder / "run" / name).exists(), name)

    def test_summary_as_json_is_all_of_standard_output(self):
        out, _ = self.accrue("train", "run.yaml", "--json")
        summary = strict(out)
        self.assertEqual(summary["updates"], 24)
        self.assertEqual(summary["best"]["metric"], "accuracy")

    def test_quiet_says_nothing_of_a_run_that_ends_well_and_leaves_its_results(self):
        self.assertEqual(self.accrue("train", "run.yaml", "-q"), ("", ""))
        self.assertEqual(strict((self.folder / "run/run.json").read_text())["training"]["updates"], 24)
        out, said = self.accrue("train", "run.yaml", "-q", "--json", "--overwrite")
        self.assertEqual((strict(out)["updates"], said), (24, ""))

    def test_first_loss_and_gradient_norm_do_not_depend_on_the_micro_batch(self):
        firsts = []
        for micro_batch in (1, 3, 7, 16, 128):
            self.accrue("train", "run.yaml", "-q", "--overwrite", "--set", f"batch.micro_batch={micro_batch}",
                        "--set", "train={epochs: null, updates: 1}")
            firsts.append(records(self.folder / "run/metrics.jsonl")[0])
        for first in firsts:
            self.assertEqual(f"{first['loss']:.5g}", f"{firsts[0]['loss']:.5g}")
            self.assertEqual(f"{first['grad_norm']:.5g}", f"{firsts[0]['grad_norm']:.5g}")

    def test_the_learning_rate_is_the_configured_one_whatever_the_split(self):
        for micro_batch in (1, 16, 128):
            self.accrue("train", "run.yaml", "-q", "--overwrite", "--set", f"batch.micro_batch={micro_batch}",
                        "--set", "schedule={name: constant, warmup_updates: 0}", "--set", "train={epochs: null, updates: 2}")
            written = records(self.folder / "run/metrics.jsonl")
            self.assertEqual([record["lr"] for record in written], [3e-3, 3e-3])

    def test_three_epochs_of_a_size_that_the_batch_does_not_divide(self):
        self.accrue("train", "run.yaml", "-q", "--set", "train={epochs: 3}")
        written = records(self.folder / "run/metrics.jsonl")
        self.assertEqual([record["epoch"] for record in written], [1] * 12 + [2] * 12 + [3] * 12)
        self.assertEqual([record["samples"] for record in written], 3 * ([128] * 11 + [1438 - 11 * 128]))

    def test_the_same_run_gives_the_same_bytes(self):
        first = self.straight()
        self.accrue("train", "run.yaml", "-q")
        self.assertEqual(self.weights(), first)

    def test_evaluation_and_checkpoints_change_no_bit(self):
        plain = self.straight("--set", "data.valid=0.2")
        self.accrue("train", "run.yaml", "-q", "--set", "eval.every=1", "--set", "checkpoint.every=1")
        self.assertEqual(self.weights(), plain)
        evaluations = records(self.folder / "run/eval.jsonl")
        self.assertEqual([entry["update"] for entry in evaluations], list(range(1, 25)))

    def test_saved_configuration_runs_again_from_anywhere(self):
        first = self.straight()
        self.accrue("train", self.folder / "straight/config.yaml", "-q", "--output-dir", self.folder / "again",
                    folder="/")
        self.assertEqual((self.folder / "again/model.safetensors").read_bytes(), first)

    def test_environment_flags_and_set_in_their_order(self):
        _, err = self.accrue("train", "run.yaml", "--dry-run", "--seed", "5", "--set", "seed=6", ACCRUE_SEED="4",
                             ACCRUE_BATCH_MICRO_BATCH="64", ACCRUE_CLIP_NORM="")
        self.assertRegex(err, r"seed\S*\s+6\b.*argument 7")
        self.assertRegex(err, r"micro_batch\S*\s+64\b.*ACCRUE_BATCH_MICRO_BATCH")
        self.assertRegex(err, r"clip_norm\S*\s+1(\.0)?\b.*run\.yaml:7")
        self.assertFalse((self.folder / "run").exists())

    def test_names_with_blanks_equals_signs_and_hashes(self):
        data = self.write("my data/a=b #1.csv", DIGITS.read_text())
        self.accrue("train", "run.yaml", "-q", "--set", f"data.train='{data}'", "--set", "train={epochs: null, updates: 2}")

    def test_verbose_says_a_line_a_micro_step(self):
        _, err = self.accrue("train", "run.yaml", "-v", "--set", "train={epochs: null, updates: 1}")
        self.assertIn("micro-step 1 of 3: accumulated", err)
        self.assertIn("micro-step 2 of 3: accumulated", err)
        self.assertIn("updated", err)

    def test_a_run_survives_its_readers(self):
        streams = "exec 2> >(head -n 1 >&2); sleep 0.1"
        for number, line in enumerate((f"{streams}; $accrue train run.yaml", "$accrue train run.yaml 2>/dev/full",
                                       "$accrue train run.yaml <&- >&- 2>&-")):
            done = subprocess.run(["bash", "-c", f"{line} --output-dir run{number}"], cwd=self.folder,
                                  env=self.environment(accrue=PROGRAM), capture_output=True, timeout=300, check=False)
            self.assertEqual(done.returncode, 0, line)
            self.assertEqual([record["update"] for record in records(self.folder / f"run{number}/metrics.jsonl")],
                             list(range(1, 25)), line)
            self.assertEqual(len(records(self.folder / f"run{number}/eval.jsonl")), 1, line)

    def test_no_colour_and_no_live_line_where_nobody_looks(self):
        _, err = self.accrue("train", "run.yaml")
        self.assertNotIn("\x1b", err)
        self.assertNotIn("\r", err)

    def test_reaches_the_promised_accuracy_on_the_digits(self):
        config = DIGITS.parent.parent / "configs/digits.yaml"
        out, _ = self.accrue("train", config, "--json", "-q", "--set", f"data.train={DIGITS}",
                             "--set", "output_dir=digits")
        metrics = strict(out)["evaluation"]
        accuracy = metrics.get("accuracy", metrics.get("metrics", {}).get("accuracy"))
        self.assertGreaterEqual(accuracy, 0.96)

    def test_not_finite_updates_are_skipped_and_the_records_stay_json(self):
        self.accrue("train", "run.yaml", "-q", "--set", "optimizer.lr=1e30", "--set", "clip_norm=1e30", "--set",
                    "train={epochs: null, updates: 6, non_finite: skip_update}", "--set", "schedule={name: constant}")
        written = records(self.folder / "run/metrics.jsonl")
        self.assertEqual([record["update"] for record in written], [1, 2, 3, 4, 5, 6])
        skipped = [record for record in written if not record["applied"]]
        self.assertTrue(skipped)
        for record in skipped:
            self.assertTrue(record["reason"])

    def test_a_stop_leaves_the_last_checkpoint(self):
        _, err = self.accrue("train", "run.yaml", "-q", "--set", "optimizer.lr=1e30", "--set", "clip_norm=1e30",
                             "--set", "schedule={name: constant}", "--set", "checkpoint.every=1", code=1)
        self.assertIn("NumericError", err)
        self.assertTrue(list((self.folder / "run/checkpoints").glob("update-*/COMPLETE")))

    def test_bf16_parameters_train_with_fp32_masters(self):
        self.accrue("train", "run.yaml", "-q", "--set", "precision={parameters: bf16}")
        written = records(self.folder / "run/metrics.jsonl")
        self.assertLess(written[-1]["loss"], written[0]["loss"])

    def test_gradient_sums_in_the_parameters_type_train_with_a_warning_and_half_the_bytes(self):
        lossy = ("--set", "precision={parameters: bf16, accumulate: parameters}")
        _, err = self.accrue("train", "run.yaml", "-q", *lossy)
        self.assertEqual(err.count("bf16 gradient sums, which lose what is small beside the sum so far"), 1)
        written = records(self.folder / "run/metrics.jsonl")
        self.assertLess(written[-1]["loss"], written[0]["loss"])
        sizes = [strict(self.accrue("plan", "run.yaml", "--json", *precision)[0])["memory"]["categories"]["gradients"]
                 for precision in (lossy, ("--set", "precision={parameters: bf16}"))]
        self.assertEqual(2 * sizes[0], sizes[1])
        _, err = self.accrue("verify", "run.yaml", *lossy)
        self.assertEqual(err.count("bf16 gradient sums, which lose what is small beside the sum so far"), 1)

    def test_regression_from_a_csv_file(self):
        rows = ["a,b,y"] + [f"{i / 7},{(i * 3 % 11) / 5},{i / 7 - 2 * (i * 3 % 11) / 5 + 1}" for i in range(200)]
        self.write("line.csv", "\n".join(rows) + "\n")
        self.write("line.yaml", "task: regression\ndata: {train: line.csv, valid: 0.2}\nmodel: {kind: linear}\n"
                                "batch: {size: 50, micro_batch: 16}\noptimizer: {name: sgd, lr: 0.1, momentum: 0.9}\n"
                                "train: {epochs: 200}\noutput_dir: line\n")
        out, _ = self.accrue("train", "line.yaml", "-q", "--json")
        self.assertLess(strict(out)["evaluation"]["loss"] if "loss" in strict(out)["evaluation"]
                        else strict(out)["evaluation"]["metrics"]["loss"], 1e-6)

    def test_two_runs_do_not_share_a_folder(self):
        first = self.start("train", "run.yaml", "--set", "train.epochs=400")
        try:
            for line in first.stderr:
                if "update 1" in line or line.startswith("update"):
                    break
            _, err = self.accrue("train", "run.yaml", "--overwrite", code=2)
            self.assertIn(str(first.pid), err)
        finally:
            first.kill()
            first.communicate()
        self.accrue("train", "run.yaml", "-q", "--overwrite", "--set", "train={epochs: null, updates: 1}")

    def test_overwrite_keeps_the_weights_that_the_run_starts_from(self):
        before = self.straight("--set", "train={epochs: null, updates: 1}")
        newest = next((self.folder / "straight/checkpoints").glob("update-*"))
        for weights in ("straight/model.safetensors", newest / "model.safetensors"):
            _, err = self.accrue("train", "run.yaml", "--overwrite", "--output-dir", "straight", "--set",
                                 f"model.weights='{weights}'", code=2)
            self.assertIn("[cli.weights_overwritten]", err)
        self.assertEqual(self.weights("straight"), before)

    def test_an_existing_folder_names_the_three_ways_out(self):
        self.straight("--set", "train={epochs: null, updates: 1}")
        _, err = self.accrue("train", "run.yaml", "--set", "output_dir=straight", code=2)
        for way in ("--resume", "--overwrite", "output_dir"):
            self.assertIn(way, err)

    def test_a_refused_run_creates_nothing(self):
        before = sorted(path.name for path in self.folder.iterdir())
        self.accrue("train", "run.yaml", "--set", "batch.size=0", code=2)
        self.accrue("train", "run.yaml", "--set", "data.train=nowhere.csv", code=3)
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()), before)


if __name__ == "__main__":
    unittest.main()
