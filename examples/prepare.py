#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lays the shipped data out as the examples read them. Needs Python alone.

usage: prepare.py text|pictures FOLDER

text      FOLDER/train.bin and valid.bin: the Jargon File's bytes as token ids (uint16), the last 5 % for validation
pictures  FOLDER/train and valid with a folder of PNG files for each of ten digits; every fifth is for validation
"""
import array
import csv
import gzip
import pathlib
import struct
import sys
import zlib

DATA = pathlib.Path(__file__).resolve().parent / "data"


def text(folder):
    tokens = array.array("H", list(gzip.decompress((DATA / "jargon.txt.gz").read_bytes())))
    if sys.byteorder == "big":
        tokens.byteswap()
    cut = len(tokens) * 95 // 100
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "train.bin").write_bytes(tokens[:cut].tobytes())
    (folder / "valid.bin").write_bytes(tokens[cut:].tobytes())


def png(width, height, pixels):
    """A gray picture of one byte a pixel."""

    def chunk(kind, content):
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    rows = b"".join(b"\0" + bytes(pixels[row * width : (row + 1) * width]) for row in range(height))
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def pictures(folder):
    with open(DATA / "digits.csv", newline="") as file:
        rows = list(csv.reader(file))[1:]
    for number, row in enumerate(rows):
        place = folder / ("valid" if number % 5 == 4 else "train") / f"digit-{row[-1]}"
        place.mkdir(parents=True, exist_ok=True)
        pixels = [round(float(value) * 255 / 16) for value in row[:-1]]
        (place / f"{number:04}.png").write_bytes(png(8, 8, pixels))


if __name__ == "__main__":
    makers = {"text": text, "pictures": pictures}
    if len(sys.argv) != 3 or sys.argv[1] not in makers:
        sys.exit(__doc__)
    makers[sys.argv[1]](pathlib.Path(sys.argv[2]))
