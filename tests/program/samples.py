# SPDX-License-Identifier: Apache-2.0
"""Small data sets, drawn from a seed and written byte by byte."""
import json
import random
import struct
import zlib

CLASSES = 3
SIDE = 8
VOCABULARY = 23

IMAGES = """\
task: image-classification
data: {{train: {data}, format: safetensors, mean: 0.5, std: 0.25}}
model: {model}
batch: {{size: 16}}
optimizer: {{name: sgd, lr: 0.05, momentum: 0.9, weight_decay: 1e-3}}
train: {{updates: 4}}
output_dir: run
seed: 11
threads: 1
"""

TOKENS = """\
task: {task}
data: {{train: {data}, format: jsonl}}
model: {{kind: gpt, vocabulary: 23, context: 12, width: 16, layers: 2, heads: 2, dropout: {dropout}}}
batch: {{size: 16}}
optimizer: {{name: adamw, lr: 3e-3}}
clip_norm: 1.0
train: {{updates: 4}}
output_dir: run
seed: 11
threads: 1
"""

CNN = "{kind: cnn, channels: [4, 8], hidden: [16]}"
RESNET = "{{kind: resnet18, norm: {norm}}}"


def pictures(count, seed=0, channels=1):
    """Pictures whose brighter part tells their class, under noise: (bytes of one picture, class) pairs."""
    chance = random.Random(seed)
    made = []
    for number in range(count):
        label = number % CLASSES
        pixels = bytes(
            min(255, chance.randrange(100) + 110 * (row * CLASSES // SIDE == label))
            for _ in range(channels) for row in range(SIDE) for _ in range(SIDE))
        made.append((pixels, label))
    chance.shuffle(made)
    return made


def sequences(count, seed=0, masked=False):
    """Ragged rows of a made-up language, in which each token nearly tells the next. With `masked` each row's first
    labels do not count, and all of the third row's."""
    chance = random.Random(seed)
    rows = []
    for number in range(count):
        ids = [chance.randrange(VOCABULARY)]
        for _ in range(chance.randrange(3, 11)):
            ids.append((ids[-1] * 5 + chance.choice([1, 1, 1, 2])) % VOCABULARY)
        row = {"ids": ids}
        if masked:
            hidden = len(ids) if number == 2 else chance.randrange(1, len(ids))
            row["labels"] = [-100] * hidden + ids[hidden:]
        rows.append(row)
    return rows


def jsonl(rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


def safetensors(tensors):
    """Of {name: (type, shape, bytes)}."""
    header, data = {}, b""
    for name, (kind, shape, content) in tensors.items():
        header[name] = {"dtype": kind, "shape": list(shape), "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + data


def picture_file(made, channels=1):
    """Pictures and classes as x [n, channels, 8, 8] and y [n] of a safetensors file."""
    return safetensors({"x": ("U8", (len(made), channels, SIDE, SIDE), b"".join(pixels for pixels, _ in made)),
                        "y": ("I64", (len(made),), struct.pack(f"<{len(made)}q", *(label for _, label in made)))})


def floats(content):
    """The F32 tensors of a safetensors file by name, as tuples."""
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8:8 + length])
    values = {}
    for name, entry in header.items():
        if name != "__metadata__" and entry["dtype"] == "F32":
            begin, end = (8 + length + place for place in entry["data_offsets"])
            values[name] = struct.unpack(f"<{(end - begin) // 4}f", content[begin:end])
    return values


def idx(numbers, shape):
    """A file of unsigned bytes in MNIST's format."""
    return struct.pack(f">BBBB{len(shape)}I", 0, 0, 8, len(shape), *shape) + bytes(numbers)


def png(pixels, width, height, channels=1):
    """Eight bits a channel: gray (1) or colour (3)."""
    def chunk(kind, content):
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    row = width * channels
    lines = b"".join(b"\0" + pixels[y * row:(y + 1) * row] for y in range(height))
    head = struct.pack(">IIBBBBB", width, height, 8, {1: 0, 3: 2}[channels], 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b"")
