#!/usr/bin/env python3
"""Makes tests/models/data_image/upscalers.json: what RRDBNet (Wang et al. 2018 and 2021), written here
with PyTorch's functions in float64, makes of a small picture with made-up weights.

Weights are weight_values() of make_image_goldens.py, by Real-ESRGAN's names. Colour c of pixel (y, x)
is (37 x + 59 y + 83 c) % 256 / 255.

Run from the repository root (wrote the committed file with the versions below):
    python3 -m venv venv && venv/bin/pip install torch==2.15.0 transformers==5.24.0 \
        diffusers==0.42.1 tokenizers safetensors numpy
    venv/bin/python tools/goldens/make_upscaler_goldens.py tests/models/data_image
"""

import json
import pathlib
import sys

import torch
import torch.nn.functional as F
from make_image_goldens import weight_values

WIDTH, GROWTH, BLOCKS = 8, 4, 2
HEIGHT, COLUMNS = 8, 12


def conv(x, name, out):
    weight = weight_values(name + ".weight", (out, x.shape[1], 3, 3))
    bias = weight_values(name + ".bias", (out,))
    return F.conv2d(x, torch.from_numpy(weight).double(), torch.from_numpy(bias).double(), padding=1)


def leaky(x):
    return F.leaky_relu(x, 0.2)


def dense(x, name):
    known = x
    for k in range(1, 5):
        known = torch.cat([known, leaky(conv(known, f"{name}.conv{k}", GROWTH))], dim=1)
    return x + 0.2 * conv(known, f"{name}.conv5", WIDTH)


def network(x, unshuffle, doublings):
    first = conv(F.pixel_unshuffle(x, unshuffle), "conv_first", WIDTH)
    h = first
    for i in range(BLOCKS):
        inner = h
        for k in (1, 2, 3):
            inner = dense(inner, f"body.{i}.rdb{k}")
        h = h + 0.2 * inner
    h = first + conv(h, "conv_body", WIDTH)
    for i in range(doublings):
        h = leaky(conv(F.interpolate(h, scale_factor=2, mode="nearest"), f"conv_up{i + 1}", WIDTH))
    return conv(leaky(conv(h, "conv_hr", WIDTH)), "conv_last", 3)


def main():
    colour, y, x = torch.meshgrid(torch.arange(3), torch.arange(HEIGHT), torch.arange(COLUMNS),
                                  indexing="ij")
    picture = ((37 * x + 59 * y + 83 * colour) % 256).double()[None] / 255
    cases = []
    for unshuffle, doublings in ((1, 2), (2, 2), (4, 2), (1, 1), (1, 0)):
        result = network(picture, unshuffle, doublings)[0].permute(1, 2, 0)
        cases.append({"unshuffle": unshuffle, "doublings": doublings, "width": WIDTH,
                      "growth": GROWTH, "blocks": BLOCKS, "height": HEIGHT, "columns": COLUMNS,
                      "result": [float(f"{v:.6g}") for v in result.flatten().tolist()]})
    with open(pathlib.Path(sys.argv[1]) / "upscalers.json", "w", encoding="ascii") as file:
        file.write("[\n" + ",\n".join(json.dumps(case) for case in cases) + "\n]\n")


if __name__ == "__main__":
    main()
