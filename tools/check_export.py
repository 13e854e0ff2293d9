#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Repeats the whole batch's gradient in PyTorch from the files of `accrue verify --export DIR`, and compares.

    tools/check_export.py DIR [DIR ...]

Needs PyTorch and nothing else. Model, loss and batch are rebuilt from DIR; the gradient is computed by torch.autograd
of one forward and backward of the whole batch, in float64 and in fp32, and set beside both exported gradients: the one
of the whole batch and the one accumulated from micro-batches. Exit code: 0 all agree, 1 one does not, 2 DIR cannot be
used.
"""
import json
import sys
import warnings
from pathlib import Path

warnings.filterwarnings("ignore", message="Failed to initialize NumPy")
try:
    import torch
except ImportError:
    print("check_export.py needs PyTorch: run it with the Python that has it, such as .venv/bin/python", file=sys.stderr)
    sys.exit(2)

# Relative l2. fp32 rounds each of some hundred additions by 6e-8 of what is there: 1e-6 is usual, and 1e-5 leaves room
# for contributions that cancel. A sample left out of a thousand, or weighed wrongly, moves the gradient by 1e-3.
LIMITS = {"fp32": 1e-5, "bf16": 0.05, "fp16": 0.01, "float64": 1e-6}  # the exported gradients are fp32 in any case
FLOOR = 1e-4  # of the gradient of all parameters: one that is zero by mathematics is rounding alone
TYPES = {"F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16, "I64": torch.int64,
         "I32": torch.int32, "I16": torch.int16, "I8": torch.int8, "U8": torch.uint8, "BOOL": torch.bool}


class Unusable(Exception):
    """The folder does not hold what is needed."""


def read_tensors(path):
    """The tensors of a safetensors file: 8 bytes of header length, a JSON header, the bytes."""
    try:
        content = bytearray(path.read_bytes())
        length = int.from_bytes(content[:8], "little")
        header = json.loads(content[8:8 + length].decode("utf-8"))
    except (OSError, ValueError) as error:
        raise Unusable(f"{path}: {error}") from error
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        if entry["dtype"] not in TYPES:
            raise Unusable(f"{path}: tensor {name} has type {entry['dtype']}")
        begin, end = entry["data_offsets"]
        piece = content[8 + length + begin:8 + length + end]
        dtype = TYPES[entry["dtype"]]
        flat = torch.frombuffer(piece, dtype=dtype) if piece else torch.empty(0, dtype=dtype)
        tensors[name] = flat.reshape(entry["shape"])
    return tensors


ACTIVATIONS = {"relu": torch.relu, "tanh": torch.tanh, "silu": torch.nn.functional.silu,
               "gelu": torch.nn.functional.gelu,
               "gelu_tanh": lambda x: torch.nn.functional.gelu(x, approximate="tanh")}


def forward(model, parameters, x):
    if model["kind"] == "linear":
        return torch.nn.functional.linear(x, parameters["weight"], parameters["bias"])
    if model["kind"] != "mlp":
        raise Unusable(f"model {model['kind']} is not known here")
    layers = len(model["sizes"]) - 1
    for layer in range(layers):
        x = torch.nn.functional.linear(x, parameters[f"{2 * layer}.weight"], parameters[f"{2 * layer}.bias"])
        if layer + 1 < layers:
            x = ACTIVATIONS[model["activation"]](x)
    return x


def loss_of(loss, output, target):
    functional = torch.nn.functional
    if loss["kind"] == "cross_entropy":
        return functional.cross_entropy(output, target.long(), label_smoothing=loss["label_smoothing"])
    target = target.to(output.dtype)
    if loss["kind"] == "mse":
        return functional.mse_loss(output, target)
    if loss["kind"] == "l1":
        return functional.l1_loss(output, target)
    if loss["kind"] == "huber":
        return functional.huber_loss(output, target, delta=loss["delta"])
    if loss["kind"] == "binary_cross_entropy":
        return functional.binary_cross_entropy_with_logits(output, target)
    raise Unusable(f"loss {loss['kind']} is not known here")


def gradient(manifest, batch, stored, dtype):
    """Loss and gradients of the whole batch in one forward and backward."""
    parameters = {name: tensor.to(dtype).requires_grad_() for name, tensor in stored.items()}
    inputs = [batch[name].to(dtype).flatten(1) if batch[name].dim() > 1 else batch[name].to(dtype).unsqueeze(1)
              for name in manifest["inputs"]]
    output = forward(manifest["model"], parameters, torch.cat(inputs, 1))
    loss = loss_of(manifest["loss"], output, batch[manifest["target"]])
    loss.backward()
    return loss.item(), {name: parameter.grad for name, parameter in parameters.items()}


def distance(exported, reference):
    """The largest relative l2 difference over the parameters, and whose it is."""
    total = torch.sqrt(sum(tensor.double().square().sum() for tensor in reference.values())).item()
    worst, whose = 0.0, "-"
    for name, tensor in exported.items():
        size = max(reference[name].double().norm().item(), FLOOR * total)
        difference = (tensor.double() - reference[name].double()).norm().item()
        relative = difference / size if difference else 0.0
        if not relative <= worst:  # also for NaN
            worst, whose = relative, name
    return worst, whose


def check(folder):
    try:
        manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise Unusable(f"{folder / 'manifest.json'}: {error}") from error
    batch = read_tensors(folder / "batch.safetensors")
    stored = read_tensors(folder / "parameters.safetensors")
    exported = {way: read_tensors(folder / f"gradients_{way}.safetensors") for way in ("whole", "split")}
    for way, tensors in exported.items():
        if not tensors or set(tensors) - set(stored):
            raise Unusable(f"{folder}: gradients_{way}.safetensors does not belong to parameters.safetensors")

    limit = LIMITS[manifest["compute_type"]]
    model = manifest["model"]
    print(f"{manifest['task']}, {manifest['loss']['kind']}, {model['kind']} {model['sizes']}: "
          f"{manifest['samples']} samples, micro-batches {manifest['micro_sizes']}, PyTorch {torch.__version__}")
    print(f"{'exported':10}{'PyTorch':10}{'difference':>12}{'allowed':>10}  {'worst parameter'}")
    agree = True
    for name, dtype in (("float64", torch.float64), ("fp32", torch.float32)):
        loss, reference = gradient(manifest, batch, stored, dtype)
        for way, tensors in exported.items():
            worst, whose = distance(tensors, reference)
            good = worst < limit
            agree = agree and good
            print(f"{way:10}{name:10}{worst:12.2e}{limit:10.0e}  {whose}{'' if good else '  DIFFERS'}")
        print(f"{'loss':10}{name:10}{loss:12.6f}  (exported: whole {manifest['loss_full']:.6f}, "
              f"split {manifest['loss_accumulated']:.6f})")
    print("PyTorch's gradient of the whole batch is the exported one, both ways" if agree else
          "PyTorch's gradient of the whole batch is NOT the exported one")
    return 0 if agree else 1


def main(arguments):
    if not arguments or arguments[0].startswith("-"):
        print(__doc__)
        return 0 if arguments in (["-h"], ["--help"]) else 2
    code = 0
    for folder in arguments:
        try:
            code = max(code, check(Path(folder)))
        except Unusable as error:
            print(f"check_export.py: {error}", file=sys.stderr)
            code = 2
        except KeyError as error:
            print(f"check_export.py: {folder}: {error} is missing", file=sys.stderr)
            code = 2
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
