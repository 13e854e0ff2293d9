# SPDX-License-Identifier: Apache-2.0
"""The commands beside train: their output, exit codes and refusals."""
import json
import pathlib
import subprocess
import unittest

from support import DIGITS, PROGRAM, ProgramTest, strict


class Commands(ProgramTest):
    def test_help_and_version_go_to_standard_output(self):
        out, err = self.accrue("--help")
        for command in ("train", "plan", "verify", "check", "init", "schema", "doctor"):
            self.assertIn(command, out)
        for word in ("more passes", "throughput", "learning rate"):
            self.assertIn(word, out)
        self.assertEqual(err, "")
        out, _ = self.accrue("--version")
        self.assertRegex(out, r"^accrue \d+\.\d+\.\d+")
        out, _ = self.accrue("train", "--help")
        self.assertIn("--resume", out)

    def test_plan_says_what_the_batch_is_cut_into(self):
        out, _ = self.accrue("plan", "run.yaml", "--json")
        report = strict(out)
        self.assertEqual(report["batch"], 128)
        self.assertEqual(report["micro_sizes"], [50, 50, 28])
        self.assertEqual(report["num_micro_steps"], 3)
        self.assertEqual(report["weight"], 128)
        parameters = 4 * (64 * 16 + 16 + 16 * 10 + 10)
        categories = report["memory"]["categories"]
        self.assertEqual(categories["parameters"], parameters)
        self.assertEqual(categories["gradients"], parameters)
        self.assertEqual(categories["optimizer_state"], 2 * parameters)
        self.assertGreater(categories["activations"], 0)
        self.assertIsNone(report["memory"]["budget_bytes"])
        text, _ = self.accrue("plan", "run.yaml")
        self.assertIn("num_micro_steps", text)

    def test_the_long_lived_rows_do_not_depend_on_the_split(self):
        long_lived = ("parameters", "gradients", "optimizer_state", "masters", "average")
        reports = [strict(self.accrue("plan", "run.yaml", "--json", "--set", f"batch.micro_batch={size}")[0])
                   for size in (1, 16, 128)]
        rows = [{name: report["memory"]["categories"][name] for name in long_lived} for report in reports]
        self.assertEqual(rows[0], rows[1])
        self.assertEqual(rows[0], rows[2])

    def test_verify_is_equal_for_any_micro_batch(self):
        for size in (1, 7, 50, 128):
            out, _ = self.accrue("verify", "run.yaml", "--json", "--set", f"batch.micro_batch={size}")
            verdict = strict(out)
            self.assertEqual(verdict["verdict"], "equal")
            self.assertLess(verdict["float64_difference"], 1e-10)
            self.assertEqual(verdict["updates"], {"full": 1, "accumulated": 1}
                             if isinstance(verdict["updates"], dict) else verdict["updates"])
            self.assertTrue(all(condition["holds"] for condition in verdict["conditions"]))
            self.assertAlmostEqual(verdict["loss_full"], verdict["loss_accumulated"], places=6)

    def test_verify_says_where_nothing_was_split(self):
        _, err = self.accrue("verify", "run.yaml", "--set", "batch.micro_batch=128")
        self.assertIn("nothing was split", err)
        _, err = self.accrue("verify", "run.yaml")
        self.assertNotIn("nothing was split", err)

    def test_verify_says_different_of_a_mean_of_means(self):
        out, _ = self.accrue("verify", "run.yaml", "--json", "--set", "loss.reduction=micro_mean", code=1)
        self.assertEqual(strict(out)["verdict"], "different")

    def shell(self, line):
        """Runs a line of bash in which $accrue is the program; gives exit code, output and errors."""
        done = subprocess.run(["bash", "-c", line], cwd=self.folder, env=self.environment(accrue=PROGRAM),
                              capture_output=True, text=True, timeout=300, check=False)
        return done.returncode, done.stdout, done.stderr

    def test_results_that_cannot_be_written_are_an_error(self):
        for words in ("--help", "schema", "init", "doctor --json --no-speed", "plan run.yaml --json", "check run.yaml --print"):
            for place, reason in ((">/dev/full", "No space left on device"), (">&-", "Bad file descriptor")):
                code, _, err = self.shell(f"$accrue {words} {place}")
                self.assertEqual(code, 1, words)
                self.assertIn(f"standard output: {reason}", err)
                self.assertIn("[cli.output_lost]", err)

    def test_a_reader_that_leaves_early_hears_no_complaint(self):
        _, out, err = self.shell("$accrue schema | head -n 1; exit 0")
        self.assertEqual((out, err), ("{\n", ""))

    def test_verify_changes_nothing_on_disk(self):
        before = sorted(path.name for path in self.folder.iterdir())
        self.accrue("verify", "run.yaml")
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()), before)

    def test_verify_compares_the_part_that_fits(self):
        out, _ = self.accrue("verify", "run.yaml", "--json", "--memory", "150KiB")
        scope = strict(out)["scope"]
        self.assertEqual(scope["samples_in_batch"], 128)
        self.assertLess(scope["samples"], 128)

    def test_verify_exports_what_another_program_can_repeat(self):
        self.accrue("verify", "run.yaml", "--export", "proof")
        for name in ("batch", "parameters", "gradients_whole", "gradients_split"):
            self.assertTrue((self.folder / "proof" / f"{name}.safetensors").exists(), name)
        manifest = strict((self.folder / "proof/manifest.json").read_text())
        self.assertEqual(manifest["task"], "classification")

    def test_check_finds_no_mistake_or_every_one(self):
        out, err = self.accrue("check", "run.yaml", "--print")
        self.assertIn("micro_batch: 50", out)
        self.write("bad.yaml", "task: clasification\nbatch: {size: 0, micro_btach: 4}\noptimizer: {lr: '1e-3'}\n")
        _, err = self.accrue("check", "bad.yaml", code=2)
        for place in ("bad.yaml:1:7", "bad.yaml:2:15", "bad.yaml:2:18", "bad.yaml:3:17"):
            self.assertIn(place, err)
        self.assertIn("micro_batch", err)

    def test_init_lists_writes_and_does_not_overwrite(self):
        out, _ = self.accrue("init")
        names = [line.split()[0] for line in out.splitlines()]
        self.assertIn("digits", names)
        for name in names:
            self.accrue("init", name)
            self.assertTrue((self.folder / f"{name}.yaml").exists())
        _, err = self.accrue("init", "digits", code=2)
        self.assertIn("-o", err)
        self.accrue("init", "digits", "-o", "other.yaml")
        _, err = self.accrue("init", "digts", code=2)
        self.assertIn("digits", err)

    def test_schema_is_json_schema_that_refuses_unknown_keys(self):
        schema = strict(self.accrue("schema")[0])
        self.assertFalse(schema["additionalProperties"])
        self.assertIn("batch", schema["properties"])

    def test_doctor_says_what_the_machine_has(self):
        report = strict(self.accrue("doctor", "--json", "--no-speed")[0])
        for key in ("accrue", "libtorch", "blas", "kernels", "products", "threads", "threads_origin", "memory_total_bytes"):
            self.assertTrue(report[key], key)
        self.assertIsInstance(report["warnings"], list)
        self.assertNotIn("speed", report)
        text, _ = self.accrue("doctor", "--no-speed")
        self.assertIn("LibTorch", text)
        self.assertNotIn("GFLOP/s", text)

    def test_products_are_by_the_library_that_is_asked_for(self):
        said = lambda **environment: strict(self.accrue("doctor", "--json", "--no-speed", **environment)[0])["products"]
        self.assertEqual(said(ACCRUE_PRODUCTS="torch"), "LibTorch")
        self.assertEqual(said(ACCRUE_PRODUCTS=""), said())
        self.assertEqual(said(ACCRUE_PRODUCTS="openblas", ACCRUE_NN="plain"), "LibTorch")
        if said() != "LibTorch":
            self.assertRegex(said(ACCRUE_PRODUCTS="openblas"), r"^OpenBLAS [0-9.]+ \([A-Za-z0-9]+\)$")
        _, err = self.accrue("train", "run.yaml", ACCRUE_PRODUCTS="mkl", code=2)
        self.assertIn('ACCRUE_PRODUCTS is "mkl"; needed "openblas", "torch"', err)

    def test_doctor_measures_the_machine(self):
        speed = strict(self.accrue("doctor", "--json")[0])["speed"]
        for key in ("fma_gflops", "fma_gflops_one_thread", "sgemm_gflops", "wide_sgemm_gflops", "small_sgemm_gflops",
                    "bf16_gemm_gflops", "stream_gbytes_per_second", "fresh_gbytes_per_second",
                    "fresh_huge_gbytes_per_second", "page_faults_per_second"):
            self.assertGreater(speed[key], 0, key)

    def test_doctor_warns_of_more_threads_than_are_of_use(self):
        report = strict(self.accrue("doctor", "--json", "--no-speed", "--threads", "4096")[0])
        self.assertEqual(report["threads"], 4096)
        self.assertEqual(report["threads_origin"], "--threads")
        self.assertIn("report.speed_threads", [warning["code"] for warning in report["warnings"]])
        _, err = self.accrue("doctor", "--no-speed", ACCRUE_THREADS="4096")
        self.assertIn("warning: threads is 4096, and ", err)
        _, err = self.accrue("doctor", "--no-speed", "--threads", "0", code=2)
        self.assertIn("--threads: threads: got 0, needed a whole number from 1 to 4096", err)

    def test_computing_in_bf16_without_units_for_it_is_a_warning(self):
        has_units = bool({"avx512_bf16", "amx_bf16", "bf16"} & set(pathlib.Path("/proc/cpuinfo").read_text().split()))
        half = ("--set", "precision={parameters: bf16}")
        for command in ("plan", "verify"):
            _, err = self.accrue(command, "run.yaml", *half)
            self.assertEqual(err.count("has no units for it (avx512_bf16, amx_bf16)"), 0 if has_units else 1, command)
        _, err = self.accrue("plan", "run.yaml")
        self.assertNotIn("avx512_bf16", err)


class Refusals(ProgramTest):
    def check(self, words, code, *texts):
        out, err = self.accrue(*words, code=code)
        self.assertEqual(out, "")
        for text in texts:
            self.assertIn(text, err)
        for bare in ("terminate called", "what():", "Exception raised from", "yaml-cpp", "bad_alloc", "[json.exception"):
            self.assertNotIn(bare, err)

    def test_usage(self):
        self.check([], 2, "no command")
        self.check(["trian", "run.yaml"], 2, 'unknown command "trian"', 'did you mean "train"?')
        self.check(["train"], 2, "CONFIG")
        self.check(["train", "run.yaml", "--overwite"], 2, "--overwite", 'did you mean "--overwrite"?')
        self.check(["train", "run.yaml", "extra"], 2, "extra")
        self.check(["train", "run.yaml", "--overwite", "--lr", "3"], 2, "--overwite", 'did you mean "--overwrite"?')
        self.check(["train", "run.yaml", "--lr", "0.1"], 2, "--lr", "--set optimizer.lr=VALUE")
        self.check(["train", "run.yaml", "batch.size=4"], 2, "--set batch.size=VALUE")
        self.check(["train", "run.yaml", "--set"], 2, "--set needs an assignment")
        self.check(["train", "run.yaml", "--set", "seed"], 2, "argument 4")
        self.check(["train", "run.yaml", "-q", "-v"], 2, "-q and -v")
        self.check(["train", "run.yaml", "--resume", "--overwrite"], 2, "--resume", "--overwrite")
        self.check(["verify", "run.yaml", "--memory", "lots"], 2, "--memory", "lots")

    def test_configuration_files(self):
        self.check(["train", "nowhere.yaml"], 2, str(self.folder / "nowhere.yaml"))
        self.check(["train", "."], 2)
        self.write("empty.yaml", "")
        self.check(["train", "empty.yaml"], 2, "empty.yaml")
        self.write("broken.yaml", "task: [regression\n")
        self.check(["train", "broken.yaml"], 2, "broken.yaml:")
        for count in ("0", "-1", "2.5", '"4"', "true"):
            self.write("count.yaml", f"task: classification\ndata: {{train: {DIGITS}}}\n"
                                     f"batch: {{size: 64, num_micro_steps: {count}}}\noutput_dir: run\n")
            self.check(["train", "count.yaml"], 2, "count.yaml:3:", "num_micro_steps")

    def test_data_files(self):
        self.check(["train", "run.yaml", "--set", "data.train=gone.csv"], 3, str(self.folder / "gone.csv"))
        for name, text in (("short.csv", "a,b\n1\n"), ("empty.csv", ""), ("head.csv", "a,b\n"),
                           ("quote.csv", 'a,b\n"1,2\n'), ("twice.csv", "a,a\n1,2\n")):
            self.write(name, text)
            self.check(["train", "run.yaml", "--set", f"data.train={name}"], 3, name)
        self.write("lie.safetensors", (1 << 62).to_bytes(8, "little") + b"{}")
        self.check(["train", "run.yaml", "--set", "data.train=lie.safetensors"], 3, "lie.safetensors")

    def test_model_files(self):
        self.write("weights.safetensors", b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n")
        self.check(["train", "run.yaml", "--set", "model.weights=weights.safetensors"], 4, "weights.safetensors")

    def test_an_exact_number_of_micro_steps_and_a_short_last_batch(self):
        self.check(["train", "run.yaml", "--set", "batch={micro_batch: null, num_micro_steps: 4}"], 3, "batch.last")
        self.accrue("train", "run.yaml", "-q", "--set", "batch={micro_batch: null, num_micro_steps: 4, last: drop}")


if __name__ == "__main__":
    unittest.main()
