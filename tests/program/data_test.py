# SPDX-License-Identifier: Apache-2.0
"""Files of every format of pictures and tokens, saved classes, and the ready configurations."""
import json
import shutil
import struct
import unittest

from samples import CNN, SIDE, VOCABULARY, idx, jsonl, picture_file, pictures, png, safetensors, sequences
from support import ProgramTest, records, strict

IMAGES = """\
task: image-classification
data: {{train: {train}, valid: {valid}{more}}}
model: {model}
batch: {{size: 8, micro_batch: 3}}
optimizer: {{name: sgd, lr: 0.05, momentum: 0.9}}
train: {{epochs: 3}}
output_dir: {run}
seed: 3
threads: 1
"""

TOKENS = """\
task: causal-lm
data: {{train: {train}}}
model: {{kind: gpt, vocabulary: 23, context: 12, width: 16, layers: 1, heads: 2}}
batch: {{size: 8, micro_batch: 3}}
train: {{epochs: 2}}
output_dir: {run}
seed: 3
threads: 1
"""

NAMES = ("ant", "bee", "cat")


class DataTest(ProgramTest):
    def picture_folder(self, place, made, channels=1):
        for number, (pixels, label) in enumerate(made):
            self.write(f"{place}/{NAMES[label]}/{number:03}.png", png(pixels, SIDE, SIDE, channels))

    def train(self, text, run):
        self.write(f"{run}.yaml", text)
        self.accrue("train", f"{run}.yaml", "-q")
        return (self.folder / run / "model.safetensors").read_bytes()


class Pictures(DataTest):
    def images(self, run, train, valid, more="", model=CNN):
        return self.train(IMAGES.format(run=run, train=train, valid=valid, more=more, model=model), run)

    def test_the_same_pictures_as_idx_and_safetensors_give_the_same_bits(self):
        for name, packed, made in (("train", "train", pictures(24)), ("valid", "t10k", pictures(9, seed=1))):
            self.write(f"{name}.safetensors", picture_file(made))
            self.write(f"digits/{packed}-images-idx3-ubyte",
                       idx(b"".join(pixels for pixels, _ in made), (len(made), SIDE, SIDE)))
            self.write(f"digits/{packed}-labels-idx1-ubyte", idx((label for _, label in made), (len(made),)))
        first = self.images("arrays", "train.safetensors", "valid.safetensors")
        self.assertEqual(self.images("packed", "digits", "digits"), first)
        self.assertEqual(*(records(self.folder / run / "eval.jsonl")[-1]["loss"] for run in ("arrays", "packed")))

    def test_a_folder_of_pictures_gives_the_bits_of_their_pixels(self):
        made = sorted(pictures(24, channels=3), key=lambda entry: entry[1])  # folders are read class by class
        self.picture_folder("train", made, channels=3)
        # PNG holds colours pixel by pixel, tensors channel by channel.
        planes = [(bytes(value for channel in range(3) for value in pixels[channel::3]), label) for pixels, label in made]
        self.write("planes.safetensors", picture_file(planes, channels=3))
        self.assertEqual(self.images("folder", "train", 0.25), self.images("arrays", "planes.safetensors", 0.25))

    def test_cifar_gives_the_bits_of_its_pixels(self):
        made = []
        for number in range(20):
            pixels = bytes((number * 7 + place // 97) % 256 for place in range(3 * 32 * 32))
            made.append((pixels, number % 10))
        self.write("cifar/data_batch_1.bin", b"".join(bytes([label]) + pixels for pixels, label in made))
        self.write("cifar/test_batch.bin", b"".join(bytes([label]) + pixels for pixels, label in made[:10]))
        self.write("same.safetensors", safetensors({
            "x": ("U8", (20, 3, 32, 32), b"".join(pixels for pixels, _ in made)),
            "y": ("I64", (20,), struct.pack("<20q", *(label for _, label in made)))}))
        cifar = self.images("cifar-run", "cifar", "cifar", ", format: cifar, variant: cifar10")
        self.assertEqual(cifar, self.images("arrays", "same.safetensors", "null"))

    def test_resize_and_gray_let_pictures_of_any_size_in(self):
        self.picture_folder("train", pictures(12, channels=3), channels=3)
        self.write("train/cat/large.png", png(bytes(range(240)) * 2, 20, 8, 3))
        self.write("train/cat/notes.txt", "no picture")
        self.write("train/.hidden/x.png", b"")
        config = IMAGES.format(run="run", train="train", valid=0.25, more="", model=CNN)
        self.write("sizes.yaml", config)
        _, err = self.accrue("check", "sizes.yaml", code=3)
        self.assertIn("large.png", err)
        self.write("sizes.yaml", config.replace("valid: 0.25", "valid: 0.25, resize: [6, 10], channels: 1"))
        self.accrue("train", "sizes.yaml", "-q")
        self.assertEqual(strict((self.folder / "run/data.json").read_text())["shape"], [1, 6, 10])

    def test_a_damaged_picture_is_named_before_training(self):
        self.picture_folder("train", pictures(12))
        path = next((self.folder / "train/bee").iterdir())
        path.write_bytes(path.read_bytes()[:60])
        self.write("run.yaml", IMAGES.format(run="run", train="train", valid=0.25, more="", model=CNN))
        _, err = self.accrue("check", "run.yaml", code=3)
        self.assertIn(f"bee/{path.name}", err)


class SavedClasses(DataTest):
    def setUp(self):
        super().setUp()
        self.picture_folder("train", pictures(24))
        self.picture_folder("valid", pictures(12, seed=1))
        self.train(IMAGES.format(run="run", train="train", valid="valid", more="", model=CNN), "run")

    def loss(self, *words):
        return strict(self.accrue("eval", "run.yaml", "--json", *words)[0])["metrics"]["loss"]

    def test_are_those_of_the_run_after_the_training_folder_has_changed(self):
        self.assertEqual(strict((self.folder / "run/data.json").read_text())["classes"], list(NAMES))
        expected = self.loss()
        shutil.rmtree(self.folder / "train/ant")  # by itself the folder would now make bee class 0
        self.assertEqual(self.loss(), expected)
        self.assertEqual(self.loss("--best"), expected)
        shutil.rmtree(self.folder / "valid/ant")
        saved = self.loss()
        (self.folder / "run/data.json").rename(self.folder / "kept.json")
        out, _ = self.accrue("eval", "run.yaml", code=4)
        self.assertEqual(out, "")  # two classes do not fit the weights of three
        (self.folder / "kept.json").rename(self.folder / "run/data.json")
        self.assertEqual(self.loss(), saved)

    def test_a_new_class_is_an_error(self):
        self.write("valid/dog/0.png", png(bytes(SIDE * SIDE), SIDE, SIDE))
        _, err = self.accrue("eval", "run.yaml", code=3)
        self.assertIn("dog", err)
        self.assertIn("ant, bee, cat", err)


class Tokens(DataTest):
    def tokens(self, run, train, *words):
        self.write(f"{run}.yaml", TOKENS.format(run=run, train=train))
        self.accrue("train", f"{run}.yaml", "-q", *words)
        return (self.folder / run / "model.safetensors").read_bytes()

    def test_shards_jsonl_and_tensors_of_the_same_rows_give_the_same_bits(self):
        ids = [(7 * number + number // 5) % VOCABULARY for number in range(12 * 20)]
        rows = [ids[begin:begin + 12] for begin in range(0, len(ids), 12)]
        self.write("ids.bin", struct.pack("<245H", *ids, *range(5)))  # the rest of a row at the end is left out
        self.write("shards/0.bin", struct.pack("<120H", *ids[:120]))
        self.write("shards/1.bin", struct.pack("<120H", *ids[120:]))
        self.write("rows.jsonl", jsonl([{"ids": row} for row in rows[:10]]) + "\n" +
                   jsonl([{"input_ids": row} for row in rows[10:]]))
        packed = struct.pack("<240q", *ids)
        self.write("rows.safetensors", safetensors({"input_ids": ("I64", (20, 12), packed)}))
        first = self.tokens("shard", "ids.bin")
        for run, train in (("folder", "shards"), ("lines", "rows.jsonl"), ("arrays", "rows.safetensors")):
            self.assertEqual(self.tokens(run, train), first, train)

    def test_ragged_rows_as_lines_masks_and_ends_give_the_same_bits(self):
        rows = sequences(20, masked=True)
        self.write("rows.jsonl", jsonl(rows))
        ids = [value for row in rows for value in row["ids"]]
        labels = [value for row in rows for value in row["labels"]]
        ends = [sum(len(row["ids"]) for row in rows[:count]) for count in range(len(rows) + 1)]
        flat = {name: ("I64", (len(values),), struct.pack(f"<{len(values)}q", *values))
                for name, values in (("input_ids", ids), ("labels", labels), ("offsets", ends))}
        self.write("flat.safetensors", safetensors(flat))
        width = max(len(row["ids"]) for row in rows)
        padded = {}
        for name, key, filler in (("input_ids", "ids", 0), ("labels", "labels", 5), ("attention_mask", None, 0)):
            values = [value for row in rows
                      for value in (row[key] if key else [1] * len(row["ids"])) + [filler] * (width - len(row["ids"]))]
            padded[name] = ("I64", (len(rows), width), struct.pack(f"<{len(values)}q", *values))
        self.write("padded.safetensors", safetensors(padded))
        first = self.tokens("lines", "rows.jsonl")
        self.assertEqual(self.tokens("flat", "flat.safetensors"), first)
        self.assertEqual(self.tokens("padded", "padded.safetensors"), first)

    def test_wrong_rows_are_named_by_place(self):
        for text, place in (('{"ids": [1, 2]}\n{"ids": [1, 23]}\n', "2"), ('{"ids": [1, 2]\n', "1"),
                            ('{"ids": [1, 2], "labels": [1]}\n', "1"), ('{"ids": [1, 2.5]}\n', "1")):
            self.write("bad.jsonl", text)
            self.write("bad.yaml", TOKENS.format(run="bad", train="bad.jsonl"))
            _, err = self.accrue("train", "bad.yaml", code=3)
            self.assertIn(f"bad.jsonl:{place}", err)
        self.write("long.jsonl", json.dumps({"ids": list(range(20))}) + "\n")
        _, err = self.accrue("train", "bad.yaml", "--set", "data.train=long.jsonl", code=3)
        self.assertIn("max_length", err)
        self.accrue("train", "bad.yaml", "-q", "--set", "data.train=long.jsonl", "--set", "data.max_length=12")
        self.assertEqual(records(self.folder / "bad/metrics.jsonl")[0]["tokens"], 12)


class Templates(DataTest):
    def test_of_pictures_passes_the_check_with_data(self):
        self.accrue("init", "image-classification")
        _, err = self.accrue("check", "image-classification.yaml", code=3)
        self.assertIn(str(self.folder / "images/train"), err)
        self.picture_folder("images/train", pictures(12))
        self.picture_folder("images/valid", pictures(6))
        self.assertIn("no mistakes found", "".join(self.accrue("check", "image-classification.yaml")))

    def test_of_tokens_passes_the_check_with_data(self):
        self.accrue("init", "causal-lm")
        _, err = self.accrue("check", "causal-lm.yaml", code=3)
        self.assertIn(str(self.folder / "tokens/train.bin"), err)
        for split in ("train", "valid"):
            self.write(f"tokens/{split}.bin", struct.pack("<600H", *range(600)))
        self.assertIn("no mistakes found", "".join(self.accrue("check", "causal-lm.yaml")))

    def test_of_instructions_passes_the_check_with_data(self):
        self.accrue("init", "sft")
        _, err = self.accrue("check", "sft.yaml", code=3)
        self.assertIn(str(self.folder / "train.jsonl"), err)
        self.write("train.jsonl", jsonl(sequences(30, masked=True)))
        # One block in place of twelve: the whole model takes two gigabytes.
        self.assertIn("no mistakes found", "".join(self.accrue("check", "sft.yaml", "--set", "model.layers=1")))


if __name__ == "__main__":
    unittest.main()
