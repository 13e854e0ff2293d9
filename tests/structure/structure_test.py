#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads the sources as text and fails where the structure is broken.

Checked: includes go downward, accrue::core stays free of torch, files stay small, every file has its licence line,
and every source is listed. `structure_test.py ROOT` checks a tree; `structure_test.py --self-test` plants one
violation of each kind in a small tree and expects its message.
"""
import re
import sys
import tempfile
from pathlib import Path

# Folders of one rank may include each other as long as no circle arises.
RANKS = [["base"], ["memory", "formats"], ["config"], ["data"], ["batch"], ["plan"], ["microstep"], ["accumulate"],
         ["update"], ["report"], ["nn"], ["train", "evaluate", "checkpoint", "task"], ["verify"]]
RANK = {folder: rank for rank, folders in enumerate(RANKS) for folder in folders}

MAX_LINES = {".h": 250, ".cpp": 400}
LICENCE = "// SPDX-License-Identifier: Apache-2.0"
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]')
TORCH = re.compile(r"^(torch|ATen|c10|caffe2)/")
SIZED_ROOTS = ["accrue", "models", "cli", "examples"]
LICENSED_ROOTS = SIZED_ROOTS + ["tests", "benchmarks"]


def cpp_files(root, folders):
    for folder in folders:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in MAX_LINES:
                yield path


def includes(path):
    """Yields (line number, included name)."""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        match = INCLUDE.match(line)
        if match:
            yield number, match.group(1)


def folder_of(name):
    parts = name.split("/")
    return parts[1] if len(parts) > 2 and parts[0] == "accrue" else None


def may_see(source, target, name):
    """Option structs and the schedule's description are torch-free, so that config can fill them."""
    if source == "config" and (name.endswith("_options.h") or name == "accrue/update/schedule.h"):
        return True
    return RANK[target] <= RANK[source]


def check_direction(root):
    edges = {}
    for path in cpp_files(root, ["accrue"]):
        place = path.relative_to(root)
        source = folder_of(str(place))
        if source is None:
            continue
        if source not in RANK:
            yield f"{place}: folder '{source}' has no place in the order of the stages"
            continue
        for number, name in includes(path):
            if name.startswith(("models/", "cli/", "tests/", "examples/")):
                yield f"{place}:{number}: the library includes {name}, which stands above it"
            target = folder_of(name)
            if target is None or target == source:
                continue
            if target not in RANK:
                yield f"{place}:{number}: {name} is in a folder without a place in the order of the stages"
            elif not may_see(source, target, name):
                yield f"{place}:{number}: upward include of {name} ('{target}' stands above '{source}')"
            elif RANK[target] == RANK[source]:
                edges.setdefault(source, {})[target] = f"{place}:{number}"
    yield from find_circle(edges)


def find_circle(edges):
    def walk(folder, path):
        for target, place in edges.get(folder, {}).items():
            if target in path:
                circle = " -> ".join(path[path.index(target):] + [target])
                yield f"{place}: folders include each other in a circle: {circle}"
            else:
                yield from walk(target, path + [target])

    for folder in sorted(edges):
        circles = list(walk(folder, [folder]))
        if circles:
            yield circles[0]
            return


def listed_sources(root):
    """The ring of every source named in a sources.cmake."""
    rings = {}
    for listing in sorted(root.glob("accrue/*/sources.cmake")):
        text = re.sub(r"#.*", "", listing.read_text(encoding="utf-8"))
        for body in re.findall(r"accrue_sources\(([^)]*)\)", text):
            ring, folder, *names = body.split()
            for name in names:
                rings[f"accrue/{folder}/{name}"] = ring
    return rings


def check_listing(root):
    rings = listed_sources(root)
    found = {str(path.relative_to(root)) for path in cpp_files(root, ["accrue"]) if path.suffix == ".cpp"}
    for name in sorted(found - set(rings)):
        yield f"{name}: not listed in a sources.cmake"
    for name in sorted(set(rings) - found):
        yield f"{name}: listed in a sources.cmake, and no such file exists"


def torch_trail(root, path, known):
    """The chain of includes from a file to a torch header, or None."""
    key = str(path.relative_to(root))
    if key not in known:
        known[key] = None
        for _, name in includes(path):
            if TORCH.match(name):
                known[key] = [name]
            elif name.startswith("accrue/") and (root / name).is_file():
                trail = torch_trail(root, root / name, known)
                known[key] = [name] + trail if trail else None
            if known[key]:
                break
    return known[key]


def check_core(root):
    known = {}
    for name, ring in sorted(listed_sources(root).items()):
        if ring == "core" and (root / name).is_file():
            trail = torch_trail(root, root / name, known)
            if trail:
                yield f"{name}: a source of accrue::core includes torch: {' -> '.join(trail)}"
    for path in cpp_files(root, ["accrue"]):
        for number, name in includes(path):
            if name == "torch/torch.h" and path.suffix == ".h":
                yield f"{path.relative_to(root)}:{number}: torch/torch.h in a library header; include the narrowest"


def check_files(root):
    for path in cpp_files(root, LICENSED_ROOTS):
        place = path.relative_to(root)
        lines = path.read_text(encoding="utf-8").splitlines()
        if not lines or lines[0] != LICENCE:
            yield f"{place}:1: the first line must be '{LICENCE}'"
        if place.parts[0] in SIZED_ROOTS and len(lines) > MAX_LINES[path.suffix]:
            yield f"{place}: {len(lines)} lines, and at most {MAX_LINES[path.suffix]} are allowed; split it"
        if path.suffix == ".h" and "#pragma once" not in lines:
            yield f"{place}: a header without '#pragma once'"
        for number, line in enumerate(lines, 1):
            if not line.isascii():
                yield f"{place}:{number}: a character outside ASCII"
                break


def check(root):
    problems = []
    for part in (check_direction, check_listing, check_core, check_files):
        problems += part(root)
    return problems


def write(root, name, text, licence=LICENCE + "\n"):
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(licence + text, encoding="utf-8")


def sound_tree(root):
    write(root, "accrue/base/error.h", "#pragma once\n")
    write(root, "accrue/base/error.cpp", '#include "accrue/base/error.h"\n')
    write(root, "accrue/base/sources.cmake", "accrue_sources(core base error.cpp)\n", "")
    write(root, "accrue/data/data_options.h", "#pragma once\n")
    write(root, "accrue/data/tensors.h", "#pragma once\n#include <ATen/core/Tensor.h>\n")
    write(root, "accrue/config/run.h", '#pragma once\n#include "accrue/data/data_options.h"\n')
    write(root, "accrue/train/loop.cpp", '#include "accrue/checkpoint/save.h"\n')
    write(root, "accrue/train/loop.h", "#pragma once\n")
    write(root, "accrue/train/sources.cmake", "accrue_sources(torch train\n  loop.cpp)\n", "")
    write(root, "accrue/checkpoint/save.h", '#pragma once\n#include "accrue/data/tensors.h"\n')


PLANTED = [
    ("accrue/base/error.cpp", '#include "accrue/train/loop.h"\n', "upward include of accrue/train/loop.h"),
    ("accrue/config/run.h", '#pragma once\n#include "accrue/data/tensors.h"\n', "('data' stands above 'config')"),
    ("accrue/checkpoint/save.h", '#pragma once\n#include "accrue/train/loop.h"\n', "in a circle"),
    ("accrue/train/loop.h", '#pragma once\n#include "cli/main.h"\n', "which stands above it"),
    ("accrue/odd/x.h", "#pragma once\n", "has no place in the order"),
    ("accrue/base/error.h", "#pragma once\n#include <ATen/core/Tensor.h>\n",
     "a source of accrue::core includes torch: accrue/base/error.h -> ATen/core/Tensor.h"),
    ("accrue/data/tensors.h", "#pragma once\n#include <torch/torch.h>\n", "torch/torch.h in a library header"),
    ("accrue/base/lost.cpp", "", "accrue/base/lost.cpp: not listed"),
    ("accrue/train/loop.h", "#pragma once\n" + "\n" * 250, "252 lines, and at most 250"),
    ("cli/main.cpp", "\n" * 400, "401 lines, and at most 400"),
    ("accrue/train/loop.h", "", "without '#pragma once'"),
    ("accrue/train/loop.h", "#pragma once\n// \u00e9\n", "a character outside ASCII"),
]


def self_test():
    failures = 0
    cases = [("", "", "")] + PLANTED + [("accrue/train/loop.h", None, "the first line must be")]
    for name, text, expected in cases:
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            sound_tree(root)
            if name:
                write(root, name, "#pragma once\n" if text is None else text, "" if text is None else LICENCE + "\n")
            problems = check(root)
        right = any(expected in problem for problem in problems) if expected else not problems
        if not right:
            failures += 1
            print(f"self-test: planted '{expected or 'nothing'}', got {problems}")
    print(f"self-test: {len(cases) - failures} of {len(cases)} cases right")
    return 1 if failures else 0


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    if len(sys.argv) != 2:
        print(__doc__)
        return 2
    problems = check(Path(sys.argv[1]).resolve())
    print("\n".join(problems) if problems else "structure: the include lines, lists, sizes and licence lines are right")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
