#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The memory budget, watched from outside the process."""
import os
import pathlib
import re
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from samples import jsonl  # noqa: E402
from support import PROGRAM, SOURCE, ProgramTest, records, strict  # noqa: E402

MARGIN = 1.02  # of the budget, as promised
UNITS = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
# Activations that count beside the libraries: 2000 wide, and a batch that is most of the data.
WIDE = ["--set", "model.hidden=[2000,2000]", "--set", "batch.size=1400", "--set", "optimizer.name=sgd"]
AUTO = ["--set", "batch.micro_batch=auto"]
# What the start looks at is the first batch.
IN_ORDER = """\
task: causal-lm
data: {train: rows.jsonl, format: jsonl}
model: {kind: gpt, vocabulary: 23, context: 1024, width: 128, layers: 4, heads: 4}
batch: {size: 8, micro_batch: 8, order: file, on_refusal: stop, recompute: never}
optimizer: {name: sgd, lr: 0.01}
train: {updates: 3}
checkpoint: {every: 1}
output_dir: run
seed: 11
threads: 1
"""


class Memory(ProgramTest):
    def tried(self, *words, folder=None):
        """Peak resident bytes of the program as its parent sees it, its exit code, and what it said on standard error."""
        with open(self.folder / "err", "w+") as err:
            process = subprocess.Popen(
                [PROGRAM, *map(str, words)], cwd=folder or self.folder, env=self.environment(), stdout=subprocess.DEVNULL, stderr=err
            )
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            err.seek(0)
            return usage.ru_maxrss * 1024, process.returncode, err.read()

    def peak(self, *words, code=0, folder=None):
        peak, got, said = self.tried(*words, folder=folder)
        self.assertEqual(got, code, said)
        return peak, said

    def least(self, *words, tried="20MiB"):
        """The smallest budget by the program's own word, asked with one that is too small."""
        code, said = self.tried("plan", "run.yaml", *words, "--set", f"batch.memory={tried}")[1:]
        self.assertEqual(code, 5, said)
        found = re.search(r"set batch.memory to at least ([\d.]+) ([KMG]iB)", said)
        self.assertTrue(found, said)
        return int(float(found[1]) * UNITS[found[2]])

    def test_a_run_stays_within_every_budget_and_is_foretold(self):
        least = self.least(*WIDE, *AUTO)
        for budget in (least, least + (24 << 20), 1 << 30):
            peak, _ = self.peak(
                "train", "run.yaml", *WIDE, *AUTO, "--set", f"batch.memory={budget}", "--set", "train.epochs=4", "--overwrite"
            )
            self.assertLess(peak, MARGIN * budget)
            for record in records(self.folder / "run/metrics.jsonl"):
                self.assertEqual(record["memory"]["budget_bytes"], budget)
                self.assertLess(abs(record["memory"]["predicted_bytes"] / peak - 1), 0.05)
                self.assertEqual(sum(record["micro_sizes"]), record["samples"])
                self.assertGreater(record["memory"]["categories"]["activations"], 0)

    def test_what_is_foretold_holds_when_large_and_small_batches_alternate(self):
        # 1400 of 1438 samples, then 38, with batches gathered ahead and an evaluation between them.
        words = ["--set", "batch.micro_batch=1400", "--set", "batch.memory=1GiB", "--set", "train.epochs=4"]
        peak, _ = self.peak("train", "run.yaml", *WIDE, *words)
        for record in records(self.folder / "run/metrics.jsonl"):
            self.assertLess(abs(record["memory"]["predicted_bytes"] / peak - 1), 0.05)

    def test_the_final_weights_do_not_depend_on_the_budget_that_led_to_a_plan(self):
        budget = self.least(*WIDE, *AUTO) + (8 << 20)
        self.accrue("train", "run.yaml", *WIDE, *AUTO, "--set", f"batch.memory={budget}", "-q")
        limited = (self.folder / "run/model.safetensors").read_bytes()
        micro_batch = max(records(self.folder / "run/metrics.jsonl")[0]["micro_sizes"])
        self.accrue("train", "run.yaml", *WIDE, "--set", f"batch.micro_batch={micro_batch}", "-q", "--overwrite")
        self.assertEqual((self.folder / "run/model.safetensors").read_bytes(), limited)

    def test_the_choice_stays_when_a_run_goes_on(self):
        cache = {"ACCRUE_PLAN_CACHE": str(self.folder / "plans.json")}
        words = ["run.yaml", *AUTO, "--set", "batch.memory=1GiB", "--set", "schedule.name=constant", "-q"]
        self.accrue("train", *words, "--set", "train.epochs=4", **cache)
        whole = (self.folder / "run/model.safetensors").read_bytes()
        self.accrue("train", *words, "--set", "train.epochs=2", "--overwrite", **cache)
        # Without the kept choice: what goes on keeps to the checkpoint's.
        self.accrue("train", *words, "--set", "train.epochs=4", "--resume")
        self.assertEqual((self.folder / "run/model.safetensors").read_bytes(), whole)
        _, said = self.accrue(
            "train", *words, "--set", "train.epochs=5", "--set", "batch.memory=500MiB", "--resume"
        )
        self.assertIn("the plan of this run was made for ", said)

    def test_too_small_a_budget_ends_before_anything_is_written(self):
        too_small = self.least(*WIDE, *AUTO) - (12 << 20)
        whole = ["--set", "batch.micro_batch=1400", "--set", f"batch.memory={too_small}"]
        _, said = self.peak("train", "run.yaml", *WIDE, *whole, code=5)
        for part in ("set batch.memory to at least", "batch.micro_batch 1 (or auto) saves", "[train.budget_too_small]"):
            self.assertIn(part, said)
        self.assertFalse((self.folder / "run").exists())

    def test_a_later_batch_that_is_refused_for_good_ends_the_run_and_the_last_checkpoint_is_whole(self):
        # Two batches of short rows, and one whose activations take over 100 MiB.
        lengths = [16] * 16 + [1024] * 8
        rows = [{"ids": [(5 * place + number) % 23 for place in range(length)]} for number, length in enumerate(lengths)]
        self.write("rows.jsonl", jsonl(rows))
        self.write("run.yaml", IN_ORDER)
        budget = self.least() + (16 << 20)
        peak, said = self.peak("train", "run.yaml", "--set", f"batch.memory={budget}", code=5)
        self.assertLess(peak, MARGIN * budget)
        for part in (
            "update 3: memory was refused to a micro-batch of 8",
            "update 3: memory was refused twice to a micro-batch of 8",
            "batch.on_refusal is stop",
            "[cli.refused_for_good]",
        ):
            self.assertIn(part, said)
        self.assertEqual([record["update"] for record in records(self.folder / "run/metrics.jsonl")], [1, 2])
        self.assertFalse((self.folder / "run/model.safetensors").exists())
        record = strict((self.folder / "run/run.json").read_text())
        self.assertTrue(record["training"]["interrupted"])
        self.assertEqual([refusal["answer"] for refusal in record["memory"]["refusals"]], ["again", "stop"])
        self.accrue("train", "run.yaml", "-q", "--resume")
        self.assertEqual([record["update"] for record in records(self.folder / "run/metrics.jsonl")], [1, 2, 3])
        self.assertEqual(self.weights(), self.straight())

    def test_the_smallest_budget_is_named_at_once_and_does(self):
        # Too small for the process itself, for the model, and for a micro-step.
        for words in (["--set", "batch.micro_batch=1400"], AUTO):
            said = [self.least(*WIDE, *words, tried=tried) for tried in ("20MiB", "125MiB")]
            said.append(self.least(*WIDE, *words, tried=said[0] - (6 << 20)))
            # What a refusal runs (code that unwinds) makes it larger by some 4 MiB, and one process differs from the
            # next by up to 2.
            self.assertLessEqual(max(said) - min(said), 6 << 20)
            least = min(said)
            self.peak("train", "run.yaml", *WIDE, *words, "--set", f"batch.memory={least}", "--overwrite")
            self.peak("plan", "run.yaml", *WIDE, *words, "--set", f"batch.memory={least - (6 << 20)}", code=5)

    def test_the_smallest_budget_of_pictures_does_whatever_was_asked_first(self):
        # What the process has come to before it looks at itself must not make the word too small.
        words = ["train", "examples/configs/mnist.yaml", *AUTO, "--set", "eval.batch_size=1", "--set", "train.overfit=256", "--set", "train.epochs=1", "--set", f"output_dir={self.folder}/run"]
        said = []
        for tried in ("20MiB", "100MiB", "112MiB"):
            code, text = self.tried(*words, "--set", f"batch.memory={tried}", folder=SOURCE)[1:]
            self.assertEqual(code, 5, text)
            said.append(int(re.search(r"set batch.memory to at least (\d+)\.0 MiB", text)[1]))
        self.assertLessEqual(max(said) - min(said), 5)
        peak, _ = self.peak(*words, "--set", f"batch.memory={min(said)}MiB", folder=SOURCE)
        self.assertLess(peak, MARGIN * (min(said) << 20))
        self.peak(*words, "--set", f"batch.memory={min(said) - 8}MiB", "--overwrite", folder=SOURCE, code=5)

    def test_what_trying_sizes_leaves_in_the_process_counts(self):
        # Products of LibTorch in bf16 keep some 3 MiB for every size of micro-batch that they have seen.
        words = ["train", "run.yaml", *AUTO, "--set", "precision.parameters=bf16", "--set", "batch.size=256", "--set", "train.epochs=1", "--overwrite"]
        least = self.least(*words[2:-1])
        for more in (0, 2, 10):
            budget = least + (more << 20)
            peak, _ = self.peak(*words, "--set", f"batch.memory={budget}")
            self.assertLess(peak, MARGIN * budget)
            for record in records(self.folder / "run/metrics.jsonl"):
                self.assertLess(abs(record["memory"]["predicted_bytes"] / peak - 1), 0.05)
                self.assertGreater(max(record["micro_sizes"]), 1)

    def test_an_evaluation_that_takes_more_than_a_micro_step_counts(self):
        # Scores of 1024 tokens over 8192 words, in float64: 64 MiB that no micro-step takes.
        self.write("rows.jsonl", jsonl([{"ids": [(place * row) % 23 for place in range(16)]} for row in range(1, 9)]))
        self.write("valid.jsonl", jsonl([{"ids": [place % 23 for place in range(1024)]}]))
        text = IN_ORDER.replace("train: rows.jsonl,", "train: rows.jsonl, valid: valid.jsonl,").replace("vocabulary: 23", "vocabulary: 8192")
        self.write("run.yaml", text.replace("micro_batch: 8, ", "").replace("on_refusal: stop, ", ""))
        least = self.least()
        # Free blocks that are held without a limit count in what is named.
        _, said = self.peak("train", "run.yaml", "--set", f"batch.memory={least - (80 << 20)}", code=5)
        self.assertIn("an evaluation of one sample does not fit beside", said)
        self.assertFalse((self.folder / "run").exists())
        peak, _ = self.peak("train", "run.yaml", "--set", f"batch.memory={least}")
        self.assertLess(peak, MARGIN * least)

    def test_a_table_that_takes_more_to_read_than_to_train_on(self):
        # 16 MiB of text and 63 features of 32,000 samples; what reading took and gave back does not count later.
        rows = [f"w{row % 60},{row % 97}.5,{'xz'[row % 2] * 400},{row % 3}" for row in range(40_000)]
        self.write("table.csv", "\n".join(["a,b,c,y", *rows, ""]))
        words = [*AUTO, "--set", "data.train=table.csv", "--set", "data.target=y", "--set", "train.epochs=null", "--set", "train.updates=1"]
        said = [self.least(*words)]
        for below in (60, 6):  # stopped while the table is read, and when the model is built
            said.append(self.least(*words, tried=said[0] - (below << 20)))
        self.assertLessEqual(max(said) - min(said), 6 << 20)
        peak, _ = self.peak("train", "run.yaml", *words, "--set", f"batch.memory={min(said)}")
        self.assertLess(peak, MARGIN * min(said))

    def test_advice_says_what_is_not_enough_alone(self):
        _, said = self.peak("train", "run.yaml", "--set", "batch.memory=20MiB", code=5)
        self.assertRegex(said, r"optimizer.name sgd without momentum saves [\d.]+ KiB, not enough alone")
        self.assertFalse((self.folder / "run").exists())

    def test_an_evaluation_in_larger_groups_is_foretold(self):
        words = ["--set", "model.hidden=[60000]", "--set", "batch.micro_batch=4", "--set", "batch.size=16", "--set", "optimizer.name=sgd"]
        words += ["--set", "train.epochs=null", "--set", "train.updates=2", "--set", "batch.memory=2GiB", "--overwrite"]
        small, _ = self.peak("train", "run.yaml", *words, "--set", "eval.batch_size=4")
        peak, _ = self.peak("train", "run.yaml", *words, "--set", "eval.batch_size=350")
        self.assertGreater(peak, 1.2 * small)  # or it shows nothing
        for record in records(self.folder / "run/metrics.jsonl"):
            self.assertLess(abs(record["memory"]["predicted_bytes"] / peak - 1), 0.05)

    def test_a_share_is_of_what_the_machine_or_its_cgroup_offers(self):
        _, said = self.peak("train", "run.yaml", "--set", "batch.memory=50%", "--set", "train.epochs=null", "--set", "train.updates=1")
        self.assertRegex(said, r"memory: [\d.]+ \w+ for the process \(50% of [\d.]+ \w+: (memory of the machine|cgroup v[12] )")

    def test_the_peak_does_not_follow_the_batch(self):
        peaks = []
        for size in (64, 512):
            words = ["--set", f"batch.size={size}", "--set", "batch.micro_batch=64", "--set", "model.hidden=[2000,2000]"]
            peaks.append(self.peak("train", "run.yaml", *words, "--set", "train.epochs=null", "--set", "train.updates=4", "--overwrite")[0])
        self.assertLess(abs(peaks[1] / peaks[0] - 1), 0.02)

    def test_plan_sets_the_ways_side_by_side(self):
        out, _ = self.accrue("plan", "run.yaml", *WIDE, *AUTO, "--set", "batch.memory=1GiB")
        for part in ("micro-batches tried:", "<- chosen", "whole batch", "num_micro_steps 8", "The same in every row: gradients"):
            self.assertIn(part, out)
        report = strict(self.accrue("plan", "run.yaml", *WIDE, *AUTO, "--set", "batch.memory=1GiB", "--json")[0])
        rows = {row["name"]: row for row in report["rows"]}
        self.assertLess(abs(rows["num_micro_steps 4"]["activations"] / rows["whole batch"]["activations"] - 0.25), 0.02)
        self.assertEqual(rows["num_micro_steps 4"]["gradients"], rows["whole batch"]["gradients"])
        self.assertEqual(report["memory"]["budget_bytes"], 1 << 30)
        self.assertEqual(sum(report["micro_sizes"]), report["batch"])

    def test_choices_are_kept_and_measured_anew_when_asked(self):
        cache = {"ACCRUE_PLAN_CACHE": str(self.folder / "plans.json")}
        words = ["plan", "run.yaml", *AUTO, "--set", "batch.memory=1GiB", "--json"]
        first = strict(self.accrue(*words, **cache)[0])["chosen"]["capacity"]
        kept = self.folder / "plans.json"
        text = kept.read_text()
        changed = re.sub(r'(\\?"capacity\\?":\s*)%d(?=\D)' % first, r"\g<1>7", text)
        self.assertNotEqual(changed, text)
        kept.write_text(changed)
        report = strict(self.accrue(*words, **cache)[0])
        self.assertEqual(report["chosen"]["capacity"], 7)
        self.assertTrue(report["is_kept_choice"])
        self.assertIn("(at most 7 samples, kept from an earlier run: --fresh measures anew)", self.accrue(*words[:-1], **cache)[0])
        report = strict(self.accrue(*words, "--fresh", **cache)[0])
        self.assertNotEqual(report["chosen"]["capacity"], 7)
        self.assertFalse(report["is_kept_choice"])

    def test_a_cache_of_choices_that_cannot_be_used_is_told_of_once(self):
        words = ["plan", "run.yaml", *AUTO, "--set", "batch.memory=1GiB", "-q"]
        kept = self.folder / "plans.json"
        self.assertEqual(self.accrue(*words, ACCRUE_PLAN_CACHE="plans.json")[1], "")
        whole = kept.read_text()
        kept.write_text(whole[: len(whole) // 2])
        said = self.accrue(*words, ACCRUE_PLAN_CACHE="plans.json")[1]
        self.assertRegex(said, r"\Awarning: plans.json: the kept choices [^\n]* is damaged and is written anew[^\n]*\n\Z")
        self.assertEqual(self.accrue(*words, ACCRUE_PLAN_CACHE="plans.json")[1], "")
        for place in ("run.yaml", "run.yaml/plans.json", "/proc/accrue/plans.json"):
            said = self.accrue(*words, ACCRUE_PLAN_CACHE=place)[1]
            self.assertRegex(said, rf"\Awarning: {place}: the chosen micro-batch cannot be kept[^\n]*\n\Z")
        self.assertIn("task: classification", (self.folder / "run.yaml").read_text())

    def test_without_the_allocator_there_is_no_budget(self):
        _, said = self.accrue("train", "run.yaml", "--set", "batch.memory=1GiB", code=2, ACCRUE_ALLOCATOR="system")
        self.assertIn('ACCRUE_ALLOCATOR is "system"', said)
        _, said = self.accrue("train", "run.yaml", code=2, ACCRUE_ALLOCATOR="jemalloc")
        self.assertIn('ACCRUE_ALLOCATOR is "jemalloc"', said)
        self.accrue("train", "run.yaml", "-q", ACCRUE_ALLOCATOR="system")
        plain = (self.folder / "run/model.safetensors").read_bytes()
        self.accrue("train", "run.yaml", "-q", "--overwrite")
        self.assertEqual((self.folder / "run/model.safetensors").read_bytes(), plain)


if __name__ == "__main__":
    unittest.main()
