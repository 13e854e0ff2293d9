#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A workload's updates through Hugging Face's accelerate: its `accumulate` and its recipe for sums over tokens."""
import torch
from accelerate import Accelerator

import models
import shared
from pytorch import Eager


class Loop(Eager):
    def __init__(self, options):
        super().__init__(options)
        size, count = shared.MICRO[options.workload]
        self.count = size * count // (options.micro_batch or size)
        self.accelerator = Accelerator(cpu=True, gradient_accumulation_steps=self.count)
        self.model, self.optimizer = self.accelerator.prepare(self.model, self.optimizer)

    def accumulate(self, window, apply=False):
        total = 0.0
        for inputs, targets in window.parts:
            with self.accelerator.accumulate(self.model):
                loss = self.loss(self.model(inputs), targets) * window.scale
                self.accelerator.backward(loss * self.count)  # which divides by the number of micro-batches
                total += loss.item()
                if apply:  # both are left out by accelerate until the last micro-batch
                    self.optimizer.step()
                    self.optimizer.zero_grad()
        return total

    def update(self, window):
        return self.accumulate(window, apply=True)


def main():
    options = shared.arguments(__doc__, ["loop"])
    torch.set_num_threads(options.threads)
    windows = Loop.prepared(shared.windows(options), options)
    memory = shared.Memory()
    peer = Loop(options)
    if options.gradients:
        loss = peer.accumulate(windows[0])
        shared.write_gradients(options, loss, models.gradients(peer.accelerator.unwrap_model(peer.model)))
    else:
        shared.measure(options, memory, windows, peer.update)


if __name__ == "__main__":
    main()
