#!/usr/bin/env python3
"""Makes a .safetensors file, as --upscale-model reads it, of a network of Real-ESRGAN that was published
for ncnn, as a .param and a .bin file: an RRDBNet of four times the size, or a compact one of 1 to 8.
Needs Python's standard library alone.

  ncnn_upscaler.py NAME.param [-o FILE.safetensors]

With --rbee it also draws a picture, with the network behind it and without, has ncnn (from PyPI, with
numpy and pillow) enlarge the small one in f32 on the CPU, and says how far the two are apart:

  ncnn_upscaler.py NAME.param --rbee build/cpu/bin/rbee --model models/tiny-emoji

Exit status: 0, or 1 where bytes of the pictures differ by more than one or more than one in a
thousand differs, or 2 for files that are no such network."""

import argparse
import json
import os
import struct
import subprocess
import sys
import tempfile

MAGIC = "7767517"
HALF = 0x01306B47  # in front of weights of 16 bits
SLOPE = 0.2  # of an RRDBNet's leaky ReLU
BLOCK_CONVS = 15  # of an RRDBNet's block
OTHER_CONVS = 6


class Wrong(Exception):
    pass


def read_layers(path):
    """Kind and numbered parameters of each layer."""
    with open(path, encoding="ascii") as file:
        lines = file.read().splitlines()
    if not lines or lines[0].strip() != MAGIC:
        raise Wrong(f"{path} is no .param file of ncnn in text form")
    layers = []
    for line in lines[2:]:
        words = line.split()
        if len(words) < 4:
            continue
        blobs = int(words[2]) + int(words[3])
        layers.append((words[0], dict(word.split("=", 1) for word in words[4 + blobs :])))
    return layers


class Weights:
    def __init__(self, path):
        with open(path, "rb") as file:
            self.data = file.read()
        self.path = path
        self.at = 0

    def take(self, count):
        if self.at + count > len(self.data):
            raise Wrong(f"{self.path} ends early")
        self.at += count
        return self.data[self.at - count : self.at]

    def floats(self, count):
        return "F32", self.take(4 * count)

    def tagged(self, count):
        (tag,) = struct.unpack("<I", self.take(4))
        if tag == HALF:
            data = self.take((2 * count + 3) // 4 * 4)
            return "F16", data[: 2 * count]
        if tag != 0:
            raise Wrong(f"{self.path}: weights of the form {tag:#x} are not read")
        return self.floats(count)


def read_convolution(layer, weights):
    outs, count, kernel = int(layer["0"]), int(layer["6"]), int(layer["1"])
    if kernel != 3 or layer.get("4") != "1" or layer.get("5") != "1":
        raise Wrong("a convolution is not of 3 x 3 with its edges and a bias")
    shape = [outs, count // (outs * 9), 3, 3]
    kind, data = weights.tagged(count)
    bias_kind, bias = weights.floats(outs)
    return [("weight", kind, shape, data), ("bias", bias_kind, [outs], bias)]


def read_network(path):
    """Tensors by name: (type, shape, bytes)."""
    layers = read_layers(path)
    weights = Weights(os.path.splitext(path)[0] + ".bin")
    parts = []  # of each layer that has any
    slopes = 0
    for kind, layer in layers:
        if kind == "Convolution":
            # 9: the activation of the result; 2 is a leaky ReLU.
            slope = layer.get("-23310", "1,0").split(",")[1]
            if layer.get("9", "0") not in ("0", "2") or float(slope) not in (0, SLOPE):
                raise Wrong("a convolution is followed by what no such network has")
            parts.append(read_convolution(layer, weights))
        elif kind == "PReLU":
            slopes += 1
            parts.append([("weight", *slope_of(int(layer["0"]), weights))])
    if weights.at != len(weights.data):
        raise Wrong(f"{weights.path} has {len(weights.data) - weights.at} bytes more than its layers")
    if layers[-1][0] == "Interp":
        raise Wrong(f"{path} makes its picture smaller at the end, which no such network does")
    names = compact_names(len(parts)) if slopes else block_names(len(parts))
    return {
        f"{name}.{part}": (kind, shape, data)
        for name, tensors in zip(names, parts)
        for part, kind, shape, data in tensors
    }


def slope_of(count, weights):
    kind, data = weights.floats(count)
    return kind, [count], data


def compact_names(count):
    return [f"body.{i}" for i in range(count)]


def block_names(count):
    blocks, rest = divmod(count - OTHER_CONVS, BLOCK_CONVS)
    if blocks < 1 or rest != 0:
        raise Wrong(f"{count} convolutions are none of an RRDBNet of four times the size")
    inner = [
        f"body.{block}.rdb{part}.conv{conv}"
        for block in range(blocks)
        for part in (1, 2, 3)
        for conv in (1, 2, 3, 4, 5)
    ]
    return ["conv_first", *inner, "conv_body", "conv_up1", "conv_up2", "conv_hr", "conv_last"]


def write_safetensors(path, tensors):
    header = {}
    at = 0
    for name, (kind, shape, data) in tensors.items():
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for _, _, data in tensors.values():
            file.write(data)


def enlarged_by_ncnn(param, picture):
    import ncnn  # needed only for a comparison
    import numpy as np

    net = ncnn.Net()
    for option in ("vulkan_compute", "fp16_packed", "fp16_storage", "fp16_arithmetic"):
        setattr(net.opt, "use_" + option, False)
    net.load_param(param)
    net.load_model(os.path.splitext(param)[0] + ".bin")
    with open(param, encoding="ascii") as file:
        lines = [line.split() for line in file.read().splitlines()[2:]]
    planes = np.ascontiguousarray(picture.transpose(2, 0, 1), dtype=np.float32) / 255
    extractor = net.create_extractor()
    extractor.input(lines[0][4], ncnn.Mat(planes).clone())
    _, out = extractor.extract(lines[-1][4 + int(lines[-1][2])])
    return np.clip(np.round(np.array(out).transpose(1, 2, 0) * 255), 0, 255)


def compare(args, network):
    import numpy as np
    from PIL import Image

    with tempfile.TemporaryDirectory() as folder:
        pictures = []
        for name, more in (("small", []), ("large", ["--upscale-model", network])):
            out = os.path.join(folder, name + ".png")
            draw = [args.rbee, "imagine", args.prompt, "-m", args.model, "--device", args.device]
            subprocess.run(
                [*draw, "--seed", "3", "-o", out, *more], check=True, stdout=subprocess.DEVNULL
            )
            pictures.append(np.asarray(Image.open(out).convert("RGB"), dtype=np.float32))
    apart = np.abs(enlarged_by_ncnn(args.param, pictures[0]) - pictures[1])
    share = float((apart > 0).mean())
    print(f"{pictures[1].shape[1]} x {pictures[1].shape[0]}: {share:.2e} of the bytes differ, "
          f"by {apart.max():.0f} at most")
    return apart.max() <= 1 and share <= 1e-3


def main():
    parser = argparse.ArgumentParser(description="networks of ncnn's form for --upscale-model")
    parser.add_argument("param")
    parser.add_argument("-o", "--output", help="default: NAME.safetensors, beside it")
    parser.add_argument("--rbee", help="compare with ncnn, drawing with this")
    parser.add_argument("--model", default="models/tiny-emoji")
    parser.add_argument("--device", default="cpu:0")
    parser.add_argument("--prompt", default="a red heart")
    args = parser.parse_args()
    output = args.output or os.path.splitext(args.param)[0] + ".safetensors"
    try:
        write_safetensors(output, read_network(args.param))
    except (Wrong, OSError, ValueError, KeyError, IndexError) as error:
        print(f"ncnn_upscaler.py: {error}", file=sys.stderr)
        return 2
    print(output)
    return 0 if args.rbee is None or compare(args, output) else 1


if __name__ == "__main__":
    sys.exit(main())
