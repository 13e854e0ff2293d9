#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Limits that the system sets to the process: an answer of the program, never a library's last word."""
import os
import pathlib
import resource
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from support import PROGRAM, ProgramTest  # noqa: E402

MIB = 1 << 20
TRAIN = ["train", "run.yaml", "-q", "--overwrite"]


class Limits(ProgramTest):
    def limited(self, *words, limits, user=None, **environment):
        """The exit code and what is said on standard error, under the limits of {resource: bytes or number}."""

        def prepare():
            for kind, size in limits.items():
                resource.setrlimit(kind, (size, size))

        done = subprocess.run(
            [PROGRAM, *words],
            cwd=self.folder,
            env=self.environment(**environment),
            preexec_fn=prepare,
            user=user,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        return done.returncode, done.stderr

    def least_address_space(self):
        """Where the libraries themselves can be loaded; below that the system does not start the program."""
        for size in range(200, 2000, 10):
            if self.limited("--version", limits={resource.RLIMIT_AS: size * MIB})[0] == 0:
                return size
        return self.skipTest("the program takes more address space than a limit leaves (a sanitizer?)")

    def assert_is_answer(self, code, said):
        """A run that may have warned, or one error that says what the remedy is."""
        lines = said.splitlines()
        if code == 0:
            self.assertTrue(all(line.startswith("warning: ") for line in lines), said)
            return
        self.assertEqual(code, 5, said)
        self.assertTrue(lines[-2].startswith("accrue: error: "), said)
        self.assertIn("ulimit -v", lines[-2])
        self.assertRegex(lines[-1], r"\Aaccrue: BudgetError \[[a-z_.]+\]\Z")

    def test_little_address_space_is_an_answer_at_every_size(self):
        least = self.least_address_space()
        codes = set()
        for size in [*range(least, least + 200, 8), *range(least + 200, 2000, 300)]:
            code, said = self.limited(*TRAIN, "--threads", "2", limits={resource.RLIMIT_AS: size * MIB})
            with self.subTest(mebibytes=size):
                self.assert_is_answer(code, said)
            codes.add(code)
        self.assertEqual(codes, {0, 5})
        self.assertEqual((code, said), (0, ""), "the largest is enough for all")

    def test_one_thread_that_multiplies_with_openblas_has_its_buffer(self):
        # Below 16 samples a chain is not multiplied by kernels of our own.
        words = ["--threads", "1", "--set", "model.hidden=[1024,1024]", "--set", "batch.micro_batch=8", "--set", "batch.size=8"]
        words += ["--set", "train.epochs=null", "--set", "train.updates=1", "--set", "schedule.warmup_updates=0"]
        least = self.least_address_space()
        for size in range(least + 40, least + 320, 20):
            code, said = self.limited(*TRAIN, *words, limits={resource.RLIMIT_AS: size * MIB})
            with self.subTest(mebibytes=size):
                self.assert_is_answer(code, said)

    def test_little_room_for_data_is_an_answer_at_every_size(self):
        self.least_address_space()
        for size in range(40, 280, 24):
            code, said = self.limited(*TRAIN, "--threads", "2", limits={resource.RLIMIT_DATA: size * MIB})
            if code == 0 or "accrue" in said:  # below, the libraries cannot be loaded
                with self.subTest(mebibytes=size):
                    self.assert_is_answer(code, said)

    def test_openblas_that_was_asked_for_and_has_no_room_is_an_error(self):
        size = self.least_address_space() + 40
        code, said = self.limited(*TRAIN, limits={resource.RLIMIT_AS: size * MIB}, ACCRUE_PRODUCTS="openblas")
        self.assertEqual(code, 5, said)
        self.assertIn("[nn.openblas_no_room]", said)

    def test_stacks_that_find_no_room_are_told_of(self):
        size = self.least_address_space() + 200
        code, said = self.limited(*TRAIN, "--threads", "100", limits={resource.RLIMIT_AS: size * MIB})
        self.assertEqual(code, 5, said)
        self.assertRegex(said, r"threads is 100, and the system has room for \d+: each further one takes 16.0 MiB of address space for stacks")

    @unittest.skipUnless(os.geteuid() == 0, "root alone can take another user's name, and is not limited itself")
    def test_few_processes_are_told_of(self):
        os.chmod(self.folder, 0o755)
        words = ["train", "run.yaml", "-q", "--dry-run", "--threads"]
        one_process = {"limits": {resource.RLIMIT_NPROC: 1}, "user": 54321}
        try:
            code, said = self.limited(*words, "2", **one_process)
        except PermissionError:
            self.skipTest("another user cannot run the program here")
        if "cannot open" in said:
            self.skipTest("another user cannot read the program's files here")
        self.assertEqual(code, 1, said)
        self.assertIn("threads is 2, and the system has processes for 1 (", said)
        self.assertIn("or set threads to 1\naccrue: StateError [microstep.no_more_threads]", said)
        code, said = self.limited(*words, "1", **one_process)
        self.assertEqual(code, 0, said)


if __name__ == "__main__":
    unittest.main()
