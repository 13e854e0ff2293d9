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
import math
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
DISTANCE_FACTOR = 4  # as in verify: how much farther from float64 than PyTorch's own fp32 run
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


F = torch.nn.functional


def linear_model(model, parameters, x):
    return F.linear(x.flatten(1), parameters["weight"], parameters["bias"])


def mlp(model, parameters, x):
    x = x.flatten(1)
    layers = len(model["sizes"]) - 1
    for layer in range(layers):
        x = F.linear(x, parameters[f"{2 * layer}.weight"], parameters[f"{2 * layer}.bias"])
        if layer + 1 < layers:
            x = ACTIVATIONS[model["activation"]](x)
    return x


def cnn(model, parameters, x):
    """nn.Sequential(Conv2d, ReLU, MaxPool2d, ..., Flatten, Linear, ReLU, ..., Linear), by its parameters' shapes."""
    layers = sorted(int(name.split(".")[0]) for name in parameters if name.endswith(".weight"))
    for layer in layers:
        weight, bias = parameters[f"{layer}.weight"], parameters[f"{layer}.bias"]
        if weight.dim() == 4:
            x = F.max_pool2d(F.relu(F.conv2d(x, weight, bias, padding=1)), 2)
            continue
        x = F.linear(x.flatten(1), weight, bias)
        if layer != layers[-1]:
            x = F.relu(x)
    return x


def resnet(model, parameters, x):
    """torchvision's structure with the norm that the manifest names."""

    def norm(name, y):
        if model["norm"] == "none":
            return y
        groups = model["groups"] if model["norm"] == "group" else 1
        return F.group_norm(y, groups, parameters[name + ".weight"], parameters[name + ".bias"])

    def convolution(name, y, stride=1):
        weight = parameters[name + ".weight"]
        return F.conv2d(y, weight, stride=stride, padding=weight.shape[2] // 2)

    if model["norm"] == "batch":
        raise Unusable("a model with BatchNorm is not repeated here: its running statistics are not exported")
    large = parameters["conv1.weight"].shape[2] == 7
    x = F.relu(norm("bn1", convolution("conv1", x, 2 if large else 1)))
    if large:
        x = F.max_pool2d(x, 3, 2, 1)
    blocks = sorted({tuple(map(int, name[5:].split(".")[:2])) for name in parameters if name.startswith("layer")})
    for stage, block in blocks:
        place = f"layer{stage}.{block}."
        stride = 2 if stage > 1 and block == 0 else 1
        count = 3 if place + "conv3.weight" in parameters else 2
        y = x
        for i in range(1, count + 1):
            y = convolution(f"{place}conv{i}", y, stride if i == count - 1 else 1)
            y = norm(f"{place}bn{i}", y)
            if i < count:
                y = F.relu(y)
        if place + "downsample.0.weight" in parameters:
            x = norm(place + "downsample.1", convolution(place + "downsample.0", x, stride))
        x = F.relu(x + y)
    return F.linear(x.mean((2, 3)), parameters["fc.weight"], parameters["fc.bias"])


def gpt_sequence(model, parameters, ids):
    """Logits of one sequence of a GPT-2."""

    def get(name):
        return parameters["transformer." + name]

    def layer_norm(name, x):
        return F.layer_norm(x, x.shape[-1:], get(name + ".weight"), get(name + ".bias"))

    def linear(name, x):
        return x @ get(name + ".weight") + get(name + ".bias")

    x = get("wte.weight")[ids] + get("wpe.weight")[: len(ids)]
    for layer in range(model["layers"]):
        place = f"h.{layer}."
        heads = linear(place + "attn.c_attn", layer_norm(place + "ln_1", x)).chunk(3, -1)
        query, key, value = (part.unflatten(-1, (model["heads"], -1)).transpose(0, 1) for part in heads)
        scores = query @ key.transpose(1, 2) / math.sqrt(query.shape[-1])
        hidden = torch.full_like(scores[0], -math.inf).triu(1)
        mixed = (torch.softmax(scores + hidden, -1) @ value).transpose(0, 1).flatten(1)
        x = x + linear(place + "attn.c_proj", mixed)
        inner = F.gelu(linear(place + "mlp.c_fc", layer_norm(place + "ln_2", x)), approximate="tanh")
        x = x + linear(place + "mlp.c_proj", inner)
    return layer_norm("ln_f", x) @ get("wte.weight").T


MODELS = {"linear": linear_model, "mlp": mlp, "cnn": cnn, "resnet18": resnet, "resnet34": resnet, "resnet50": resnet}


def token_loss(manifest, parameters, batch):
    """Sum over the sequences' counted targets, divided by their number."""
    if manifest["model"]["kind"] != "gpt":
        raise Unusable(f"model {manifest['model']['kind']} is not known here")
    if manifest["model"].get("dropout", 0) != 0:
        raise Unusable("a model with dropout draws its masks by Accrue's counter")
    total, count = 0, 0
    bounds = batch["offsets"].tolist()
    for begin, end in zip(bounds, bounds[1:]):
        labels = batch["labels"][begin + 1:end]
        logits = gpt_sequence(manifest["model"], parameters, batch["input_ids"][begin:end])[:-1]
        total = total + F.cross_entropy(logits, labels, ignore_index=-100, reduction="sum",
                                        label_smoothing=manifest["loss"]["label_smoothing"])
        count += (labels != -100).sum().item()
    return total / count


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


def outputs_of(manifest, parameters, batch, dtype):
    kind = manifest["model"]["kind"]
    if kind not in MODELS:
        raise Unusable(f"model {kind} is not known here")
    inputs = [batch[name].to(dtype) if batch[name].dim() > 1 else batch[name].to(dtype).unsqueeze(1)
              for name in manifest["inputs"]]
    joined = inputs[0] if len(inputs) == 1 else torch.cat([part.flatten(1) for part in inputs], 1)
    return MODELS[kind](manifest["model"], parameters, joined)


def gradient(manifest, batch, stored, dtype):
    """Loss and gradients of the whole batch in one forward and backward."""
    parameters = {name: tensor.to(dtype).requires_grad_() for name, tensor in stored.items()}
    if "offsets" in batch:
        loss = token_loss(manifest, parameters, batch)
    else:
        loss = loss_of(manifest["loss"], outputs_of(manifest, parameters, batch, dtype), batch[manifest["target"]])
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
    print(f"{manifest['task']}, {manifest['loss']['kind']}, {model['kind']} {model.get('sizes', '')}: "
          f"{manifest['samples']} samples, micro-batches {manifest['micro_sizes']}, PyTorch {torch.__version__}")
    print(f"{'exported':10}{'PyTorch':10}{'difference':>12}{'allowed':>10}  {'worst parameter'}")
    agree = True
    runs = {name: gradient(manifest, batch, stored, dtype)
            for name, dtype in (("float64", torch.float64), ("fp32", torch.float32))}
    # fp32 may be as far from float64 as PyTorch's own fp32 run of the whole batch is, which in deep nets is far.
    rounding, _ = distance(runs["fp32"][1], runs["float64"][1])
    allowed = {"float64": max(limit, DISTANCE_FACTOR * rounding), "fp32": limit}
    for name, (loss, reference) in runs.items():
        for way, tensors in exported.items():
            worst, whose = distance(tensors, reference)
            good = worst < allowed[name]
            agree = agree and good
            print(f"{way:10}{name:10}{worst:12.2e}{allowed[name]:10.0e}  {whose}{'' if good else '  DIFFERS'}")
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
