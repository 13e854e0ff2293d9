#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A workload's updates in plain PyTorch.

eager: the usual accumulation loop on padded micro-batches, PyTorch's defaults.
tuned: by hand: fused optimizer, gradients kept where that pays, head only on the positions that count, channels_last
  for pictures, nothing read back before the update's end.
compile: the tuned loop with forward and loss under torch.compile.
"""
import torch
import torch.nn.functional as F

import models
import shared


class Eager:
    def __init__(self, options):
        self.model = models.build(options)
        self.loss = models.LOSSES[options.workload]
        self.optimizer = models.optimizer(options.workload, self.model.parameters())

    @staticmethod
    def prepared(windows, _):
        return [shared.Window([tensors(part.inputs, part.targets) for part in one.parts], one.scale) for one in windows]

    def accumulate(self, window):
        total = 0.0
        for inputs, targets in window.parts:
            loss = self.loss(self.model(inputs), targets) * window.scale
            loss.backward()
            total += loss.item()
        return total

    def update(self, window):
        loss = self.accumulate(window)
        self.optimizer.step()
        self.optimizer.zero_grad()
        return loss


class Tuned:
    compiled = False

    def __init__(self, options):
        self.model = models.build(options)
        self.loss = F.mse_loss if options.workload == "T" else F.cross_entropy
        if options.workload == "V":
            self.model.to(memory_format=torch.channels_last)
        self.optimizer = models.optimizer(options.workload, self.model.parameters(), fused=True)
        self.drops_gradients = options.workload == "T"  # two small ones: taking new ones is less than clearing them
        self.run = self.token_loss if options.workload in "SG" else self.row_loss
        if self.compiled:
            self.run = torch.compile(self.run, dynamic=options.workload == "S")

    @staticmethod
    def prepared(windows, options):
        def part(one):
            if one.positions is not None:
                targets = one.targets.reshape(-1)[one.positions + 1]
                return tensors(one.inputs, one.positions, targets)
            inputs, targets = tensors(one.inputs, one.targets)
            return inputs.to(memory_format=torch.channels_last) if options.workload == "V" else inputs, targets

        return [shared.Window([part(one) for one in window.parts], torch.tensor(window.scale)) for window in windows]

    def row_loss(self, inputs, targets):
        return self.loss(self.model(inputs), targets)

    def token_loss(self, ids, positions, targets):
        return F.cross_entropy(self.model(ids, positions), targets, reduction="sum")

    def accumulate(self, window):
        losses = []
        for part in window.parts:
            loss = self.run(*part)
            loss.backward(window.scale)
            losses.append(loss.detach())
        return (torch.stack(losses).sum() * window.scale).item()

    def update(self, window):
        loss = self.accumulate(window)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=self.drops_gradients)
        return loss


class Compiled(Tuned):
    compiled = True


def tensors(*arrays):
    return tuple(torch.from_numpy(array) for array in arrays)


def main():
    kinds = {"eager": Eager, "tuned": Tuned, "compile": Compiled}
    options = shared.arguments(__doc__, list(kinds))
    torch.set_num_threads(options.threads)
    kind = kinds[options.variant]
    windows = kind.prepared(shared.windows(options), options)
    memory = shared.Memory()
    peer = kind(options)
    if options.gradients:
        loss = peer.accumulate(windows[0])
        shared.write_gradients(options, loss, models.gradients(peer.model))
    else:
        shared.measure(options, memory, windows, peer.update)


if __name__ == "__main__":
    main()
