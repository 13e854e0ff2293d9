#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a program and compares its output with a file: text exactly, numbers with a fraction within 2e-5.

The bound covers the order of fp32 additions, which differs between processors; counts are compared exactly.

usage: compare_output.py EXPECTED PROGRAM [ARGUMENTS]     (--write EXPECTED PROGRAM ... makes the file)
"""
import re
import subprocess
import sys

NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?")


def same_number(expected, got):
    if "." not in expected and "e" not in expected:
        return expected == got
    return abs(float(expected) - float(got)) <= 2e-5 * max(1.0, abs(float(expected)))


def difference(expected, got):
    """The first line that differs, or None."""
    expected_lines, got_lines = expected.splitlines(), got.splitlines()
    for number, (want, have) in enumerate(zip(expected_lines, got_lines), 1):
        same_text = NUMBER.sub("#", want) == NUMBER.sub("#", have)
        if not same_text or not all(map(same_number, NUMBER.findall(want), NUMBER.findall(have))):
            return f"line {number}:\n  expected: {want}\n  got:      {have}"
    if len(expected_lines) != len(got_lines):
        return f"expected {len(expected_lines)} lines, got {len(got_lines)}"
    return None


def main(arguments):
    write = arguments[:1] == ["--write"]
    path, program = arguments[write], arguments[write + 1 :]
    result = subprocess.run(program, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        print(f"{program[0]} ended with {result.returncode}\n{result.stdout}{result.stderr}")
        return 1
    if write:
        with open(path, "w", encoding="utf-8") as file:
            file.write(result.stdout)
        return 0
    with open(path, encoding="utf-8") as file:
        found = difference(file.read(), result.stdout)
    if found:
        print(f"output differs from {path}, {found}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
