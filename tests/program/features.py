# SPDX-License-Identifier: Apache-2.0
"""A folder with tiny pictures, tokens and a configuration for each, for the tests of what training can do."""
from samples import CNN, IMAGES, TOKENS, jsonl, picture_file, pictures, sequences
from support import ProgramTest, records

AUGMENTED = ("data={valid: 0.25, flip: true, crop: 1}", "train={updates: 12, ema: 0.9}",
             "schedule={name: cosine, warmup_updates: 2}", "batch={size: 8, micro_batch: 3}")
NOISY = ("data={valid: 0.25}", "train={updates: 12, ema: 0.9, noise_scale: true}",
         "schedule={name: linear, warmup_updates: 2}", "batch={size: 8, micro_batch: 3}")


class FeatureTest(ProgramTest):
    def setUp(self):
        super().setUp()
        self.write("pictures.safetensors", picture_file(pictures(40)))
        self.write("rows.jsonl", jsonl(sequences(40)))
        self.write("cnn.yaml", IMAGES.format(data="pictures.safetensors", model=CNN))
        self.write("gpt.yaml", TOKENS.format(task="causal-lm", data="rows.jsonl", dropout=0.2))

    def words(self, *settings):
        return [word for setting in settings for word in ("--set", setting)]

    def train(self, config, run, *settings):
        self.accrue("train", config, "-q", "--output-dir", run, *self.words(*settings))

    def written(self, run):
        return records(self.folder / run / "metrics.jsonl")

    def file(self, run, name="model.safetensors"):
        return (self.folder / run / name).read_bytes()
