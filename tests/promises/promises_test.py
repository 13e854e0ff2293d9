#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/promises.md: every promise names tests, and every test that it names exists."""
import pathlib
import re
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
PAGE = SOURCE / "docs/promises.md"
GUIDE = SOURCE / "docs/gradient-accumulation.md"
COSTS = "What it costs, and what stays as you set it"
GOOGLE_TEST = re.compile(r"^(?:TEST|TEST_F|TEST_P|RC_GTEST_PROP)\(\s*(\w+),\s*(\w+)", re.MULTILINE)


def programs():
    """Test program -> its sources, as the build lists them."""
    found = {}
    for listing in SOURCE.glob("tests/*/tests.cmake"):
        for name, files in re.findall(r"accrue_test\((\w+)([^)]*)\)", listing.read_text()):
            found[f"test_{name}"] = [listing.parent / file for file in files.split() if file.endswith(".cpp")]
    return found


def google_tests(sources):
    return {f"{suite}.{name}" for source in sources for suite, name in GOOGLE_TEST.findall(source.read_text())}


def python_tests(source):
    found, group = set(), None
    for line in source.read_text().splitlines():
        if match := re.match(r"class (\w+)", line):
            group = match.group(1)
        elif match := re.match(r"    def (test_\w+)", line):
            found.add(f"{group}.{match.group(1)}")
    return found


def missing(citation):
    """Why a cited test does not exist, or None."""
    place, _, name = citation.partition(": ")
    if place.startswith("example_"):
        example = place.removeprefix("example_")
        wanted = [SOURCE / f"examples/{example}.cpp", SOURCE / f"examples/expected/{example}.txt"]
        absent = [str(path.relative_to(SOURCE)) for path in wanted if not path.exists()]
        return f"{', '.join(absent)} does not exist" if absent else None
    if place.endswith(".py"):
        if not (SOURCE / place).exists():
            return f"{place} does not exist"
        tests = python_tests(SOURCE / place)
    elif place in programs():
        tests = google_tests(programs()[place])
    else:
        return f"there is no test program {place}"
    return None if name in tests else f"{place} has no test {name}"


def rows(text):
    """(promise, citations) of every table row."""
    for line in text.splitlines():
        if line.startswith("|") and not re.match(r"\| (promise|---) ", line):
            promise, _, cited = line.strip("| ").rpartition(" | ")
            yield promise, re.findall(r"`([^`]+)`", cited)


def problems(text):
    for promise, citations in rows(text):
        if not promise or not citations:
            yield f"no test: {promise}"
        for citation in citations:
            if why := missing(citation):
                yield f"{promise}: {why}"


class Promises(unittest.TestCase):
    def test_every_promise_names_tests_that_exist(self):
        text = PAGE.read_text()
        self.assertGreater(len(list(rows(text))), 80)
        self.assertEqual(list(problems(text)), [])

    def test_a_missing_test_is_found(self):
        for cited, why in (
            ("", "no test"),
            ("words", "no test"),
            ("`test_plan: Plan.NoSuchTest`", "has no test"),
            ("`test_plan: Updater.ClipsTheNormOfTheAveragedGradient`", "has no test"),
            ("`test_nowhere: Plan.RemainderByPolicy`", "no test program"),
            ("`tests/program/train_test.py: Train.test_nothing`", "has no test"),
            ("`tests/program/train_test.py: Resume.test_regression_from_a_csv_file`", "has no test"),
            ("`tests/program/gone_test.py: Train.test_nothing`", "does not exist"),
            ("`example_0-nothing`", "does not exist"),
        ):
            found = list(problems(f"| a promise | {cited} |\n"))
            self.assertEqual(len(found), 1, cited)
            self.assertIn(why, found[0])

    def test_promises_are_unique(self):
        promises = [promise for promise, _ in rows(PAGE.read_text())]
        self.assertEqual(sorted(promises), sorted(set(promises)))


class Documents(unittest.TestCase):
    def section(self, heading):
        match = re.search(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", GUIDE.read_text(), re.MULTILINE | re.DOTALL)
        self.assertTrue(match, heading)
        return " ".join(match.group(1).split())

    def test_the_page_names_the_trade(self):
        self.assertIn("more, smaller passes, so throughput is not promised to rise", self.section(COSTS))

    def test_the_page_says_when_it_is_not_equal(self):
        text = self.section("When it is not equal")
        for cause in ("BatchNorm", "Dropout", "mix samples", "mean inside the loss", "tail", "Rounding"):
            self.assertIn(cause, text)

    def test_the_page_says_that_the_learning_rate_stays(self):
        self.assertIn("learning rate stays as configured", self.section(COSTS))

    def test_the_classic_loop_prints_its_22_lines(self):
        lines = (SOURCE / "examples/expected/3-stream-loop.txt").read_text().split("\n\n")[0].splitlines()
        self.assertEqual(len(lines), 22)
        self.assertIn("4 micro-steps in one update", lines[0])
        self.assertIn("5 updates", lines[-1])
        for number, line in enumerate(lines[1:-1], 1):
            tail = r"updated, loss \d+\.\d+" if number % 4 == 0 else "accumulated"
            self.assertRegex(line, rf"^Micro-step {number}: {tail}$")


if __name__ == "__main__":
    unittest.main()
