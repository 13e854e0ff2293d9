#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs every command of both READMEs and compares every quoted output with what the examples print.

A fenced block `sh` is run line by line from a folder that has the project's build, examples, tools and .venv; `make`
is CI's own. A
block `text output of examples/NAME` must stand in examples/expected/NAME.txt. ACCRUE_BUILD_DIR, ACCRUE_SOURCE_DIR: ctest.
"""
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ["ACCRUE_SOURCE_DIR"])
BUILD = pathlib.Path(os.environ["ACCRUE_BUILD_DIR"])
FENCE = re.compile(r"^```(\S+)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PAGES = [SOURCE / "README.md", SOURCE / "README.zh.md", *sorted((SOURCE / "docs").glob("*.md"))]


def blocks(page, language):
    return [(rest.strip(), body) for found, rest, body in FENCE.findall(page.read_text()) if found == language]


class Docs(unittest.TestCase):
    def run_commands(self, page):
        with tempfile.TemporaryDirectory(prefix="accrue docs ") as folder:
            (pathlib.Path(folder) / "build").symlink_to(BUILD)
            for name in ("examples", "tools", ".venv"):
                (pathlib.Path(folder) / name).symlink_to(SOURCE / name)
            (pathlib.Path(folder) / "runs").mkdir()
            commands = [line for _, body in blocks(page, "sh") for line in body.splitlines() if line.strip()]
            self.assertTrue(commands)
            for command in commands:
                if command.startswith("make ") or (page.name != "README.md" and command.startswith("examples/run ")):
                    continue  # CI's own; the first page's own
                done = subprocess.run(["bash", "-c", command], cwd=folder, capture_output=True, text=True, check=False,
                                      env={**os.environ, "EXAMPLE_SHORT": "1"})
                self.assertEqual(done.returncode, 0, f"{page.name}: {command}\n{done.stdout}{done.stderr}")

    def test_commands_of_the_readme(self):
        self.run_commands(SOURCE / "README.md")

    def test_commands_of_the_chinese_readme(self):
        self.run_commands(SOURCE / "README.zh.md")

    def test_both_readmes_give_the_same_commands(self):
        bare = [
            [line.split("#")[0].strip() for _, body in blocks(SOURCE / name, "sh") for line in body.splitlines()]
            for name in ("README.md", "README.zh.md")
        ]
        self.assertEqual([line for line in bare[1] if line not in bare[0]], [])

    def test_other_pages_have_only_commands_that_are_run_elsewhere(self):
        for page in PAGES[2:]:
            self.assertEqual(blocks(page, "sh"), [], page.name)

    def test_quoted_outputs_are_what_the_examples_print(self):
        quoted = 0
        for page in PAGES:
            for title, body in blocks(page, "text"):
                if not title.startswith("output of examples/"):
                    continue
                expected = SOURCE / "examples/expected" / (title.removeprefix("output of examples/") + ".txt")
                self.assertIn(body, expected.read_text(), f"{page.name}: {title}")
                self.assertTrue(body.strip(), f"{page.name}: {title} is empty")
                quoted += 1
        self.assertGreater(quoted, 0)


if __name__ == "__main__":
    unittest.main()
