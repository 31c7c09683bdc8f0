#!/usr/bin/env python3
"""Lets ncnn_upscaler.py convert small networks made here, and refuse other files."""

import json
import os
import struct
import subprocess
import sys
import tempfile

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "ncnn_upscaler.py")
HALF = struct.pack("<I", 0x01306B47)
LEAKY = "9=2 -23310=1,2.000000e-01"


def convolution(name, ins, outs, more=""):
    return f"Convolution {name} 1 1 a b 0={outs} 1=3 4=1 5=1 6={outs * ins * 9} {more}"


def weights(count, seed):
    """Halves, behind their tag, to a multiple of four bytes; and what of it are numbers."""
    numbers = struct.pack(f"<{count}e", *[(seed + i) % 17 for i in range(count)])
    return HALF + numbers + b"\0" * (-len(numbers) % 4), numbers


def biases(count, seed):
    return struct.pack(f"<{count}f", *[seed / 8 + i for i in range(count)])


def compact():
    """Two convolutions with slopes between them: layers, file, tensors."""
    first, first_numbers = weights(3 * 5 * 9, 1)
    slopes = biases(5, 3)
    plain = struct.pack("<I", 0) + biases(5 * 12 * 9, 4)
    layers = [convolution("c0", 3, 5), "PReLU p0 1 1 b c 0=5", convolution("c1", 5, 12),
              "PixelShuffle s 1 1 d e 0=2", "Interp r 1 1 a f 0=1 1=2.0 2=2.0",
              "BinaryOp add 2 1 e f output"]
    tensors = {"body.0.weight": ("F16", [5, 3, 3, 3], first_numbers),
               "body.0.bias": ("F32", [5], biases(5, 2)),
               "body.1.weight": ("F32", [5], slopes),
               "body.2.weight": ("F32", [12, 5, 3, 3], plain[4:]),
               "body.2.bias": ("F32", [12], biases(12, 5))}
    return layers, first + biases(5, 2) + slopes + plain + biases(12, 5), tensors


def block_network(blocks):
    names = ["conv_first"]
    sizes = [(3, 4)]
    for block in range(blocks):
        for part in (1, 2, 3):
            for conv in (1, 2, 3, 4, 5):
                names.append(f"body.{block}.rdb{part}.conv{conv}")
                sizes.append((4 + 2 * (conv - 1), 2 if conv < 5 else 4))
    names += ["conv_body", "conv_up1", "conv_up2", "conv_hr", "conv_last"]
    sizes += [(4, 4)] * 4 + [(4, 3)]
    layers, data, tensors = [], b"", {}
    for i, (name, (ins, outs)) in enumerate(zip(names, sizes)):
        layers.append(convolution(f"c{i}", ins, outs, LEAKY if i % 5 == 1 else ""))
        stored, numbers = weights(ins * outs * 9, i)
        data += stored + biases(outs, i)
        tensors[name + ".weight"] = ("F16", [outs, ins, 3, 3], numbers)
        tensors[name + ".bias"] = ("F32", [outs], biases(outs, i))
    return layers, data, tensors


def run(folder, layers, data, magic="7767517"):
    param = os.path.join(folder, "net.param")
    with open(param, "w", encoding="ascii") as file:
        file.write("\n".join([magic, f"{len(layers) + 1} 9", "Input in 0 1 data", *layers, ""]))
    with open(os.path.join(folder, "net.bin"), "wb") as file:
        file.write(data)
    return subprocess.run([sys.executable, SCRIPT, param], capture_output=True, text=True, check=False)


def read_safetensors(path):
    with open(path, "rb") as file:
        (size,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(size))
        data = file.read()
    return {
        name: (t["dtype"], t["shape"], data[t["data_offsets"][0] : t["data_offsets"][1]])
        for name, t in header.items()
    }


def main():
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        for what, (layers, data, tensors) in (("compact", compact()), ("blocks", block_network(2))):
            result = run(folder, layers, data)
            if result.returncode != 0:
                wrong.append(f"{what}: {result.stderr}")
            elif read_safetensors(os.path.join(folder, "net.safetensors")) != tensors:
                wrong.append(f"{what}: other tensors")
        layers, data, _ = compact()
        many, more, _ = block_network(1)
        cases = {
            "text form": run(folder, layers, data, magic="x"),
            "ends early": run(folder, layers, data[:-1]),
            "4 bytes more": run(folder, layers, data + b"abcd"),
            "form 0x7": run(folder, layers, struct.pack("<I", 7) + data[4:]),
            "smaller at the end": run(folder, [*layers, "Interp r 1 1 a b 0=3 1=0.5 2=0.5"], data),
            "5 convolutions are none": run(folder, many[:5], more[: more_bytes(many[:5])]),
            "what no such network has": run(folder, [layers[0] + "9=1", *layers[1:]], data),
            "not of 3 x 3": run(folder, [layers[0].replace("1=3", "1=5"), *layers[1:]], data),
        }
        for text, result in cases.items():
            if result.returncode != 2 or text not in result.stderr:
                wrong.append(f"{text!r} is not told: {result.returncode} {result.stderr}")
    print("\n".join(wrong) if wrong else "ncnn_upscaler.py: networks converted, others refused")
    sys.exit(bool(wrong))


def more_bytes(layers):
    """Of the layers' weights in block_network()'s file."""
    count = 0
    for layer in layers:
        words = dict(word.split("=", 1) for word in layer.split()[6:])
        numbers = 2 * int(words["6"])
        count += 4 + numbers + -numbers % 4 + 4 * int(words["0"])
    return count


if __name__ == "__main__":
    main()
