#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A workload's updates in jax: micro-batches under lax.scan and optax's optimizer, one jit around both (T and M)."""
import functools
import os

import numpy as np

import shared


def linear(jax, weights, x):
    return x @ weights["weight"].T + weights["bias"]


def mlp(jax, weights, x):
    for layer in (0, 2, 4):
        x = x @ weights[f"{layer}.weight"].T + weights[f"{layer}.bias"]
        if layer < 4:
            x = jax.nn.gelu(x, approximate=False)
    return x


class Peer:
    def __init__(self, options, jax, optax):
        read = shared.arrays(options.folder / options.workload / "weights.safetensors")
        self.weights = {name: jax.numpy.array(array) for name, array in read.items()}
        if options.workload == "T":
            self.optimizer = optax.sgd(0.01)
            model, loss = linear, lambda output, y: ((output - y) ** 2).mean()
        else:
            self.optimizer = optax.adamw(1e-3, b1=0.9, b2=0.999, eps=1e-8, weight_decay=0.01)
            model = mlp

            def loss(output, y):
                return optax.softmax_cross_entropy_with_integer_labels(output, y).mean()

        def micro_loss(weights, x, y):
            return loss(model(jax, weights, x), y)

        def accumulate(weights, x, y):
            def one(total, part):
                value, gradient = jax.value_and_grad(micro_loss)(weights, *part)
                return jax.tree.map(jax.numpy.add, total, gradient), value

            total, values = jax.lax.scan(one, jax.tree.map(jax.numpy.zeros_like, weights), (x, y))
            return values.mean(), jax.tree.map(lambda gradient: gradient / len(x), total)

        @functools.partial(jax.jit, donate_argnums=(0, 1))
        def whole(weights, state, x, y):
            value, gradient = accumulate(weights, x, y)
            change, state = self.optimizer.update(gradient, state, weights)
            return optax.apply_updates(weights, change), state, value

        self.state = self.optimizer.init(self.weights)
        self.accumulate, self.whole, self.wait = jax.jit(accumulate), whole, jax.block_until_ready

    def update(self, window):
        self.weights, self.state, loss = self.whole(self.weights, self.state, *window)
        self.wait(self.weights)
        return float(loss)


def main():
    options = shared.arguments(__doc__, ["scan"])
    cores = sorted(os.sched_getaffinity(0))[: options.threads]
    os.sched_setaffinity(0, cores)  # jax takes as many threads as it has cores
    import jax
    import optax

    def stacked(window):
        inputs = np.stack([part.inputs for part in window.parts])
        targets = np.stack([part.targets for part in window.parts])
        if options.workload != "T":
            targets = targets.astype(np.int32)
        return jax.device_put(inputs), jax.device_put(targets)

    windows = [stacked(window) for window in shared.windows(options)]
    memory = shared.Memory()
    peer = Peer(options, jax, optax)
    if options.gradients:
        loss, gradients = peer.accumulate(peer.weights, *windows[0])
        shared.write_gradients(options, float(loss), {name: np.asarray(array) for name, array in gradients.items()})
    else:
        shared.measure(options, memory, windows, peer.update)


if __name__ == "__main__":
    main()
