#!/usr/bin/env python3
"""Makes tests/models/image/data/upscalers.json: what networks that enlarge pictures make of a small one
with made-up weights, and the names and shapes of their tensors as published files have them.

Networks are RRDBNet (ESRGAN, Wang et al. 2018; ESRGAN+, Rakotonirina and Rasoanaivo 2020; Real-ESRGAN,
Wang et al. 2021) and SRVGGNetCompact (Real-ESRGAN), written here as modules of PyTorch in float64. A
module's attributes have the names of the published ones, so that state_dict() gives those of the files.

Weights are weight_values() of make_image_goldens.py, slopes of activations those of "slopes" in the place
of "weight". Colour c of pixel (y, x) is (37 x + 59 y + 83 c) % 256 / 255.

Run from the repository root (wrote the committed file with the versions below):
    python3 -m venv venv && venv/bin/pip install torch==2.15.0 transformers==5.24.0 \
        diffusers==0.42.1 tokenizers safetensors numpy
    venv/bin/python tools/goldens/make_upscaler_goldens.py tests/models/image/data
"""

import json
import pathlib

import arguments

ARGUMENTS = arguments.read(__name__, __doc__, ("folder", "tests/models/image/data"))

import torch
import torch.nn.functional as F
from make_image_goldens import weight_values
from torch import nn

WIDTH, GROWTH, BLOCKS, CONVS = 8, 4, 2, 3


def conv(inputs, outputs):
    return nn.Conv2d(inputs, outputs, 3, padding=1)


def leaky(x):
    return F.leaky_relu(x, 0.2)


class Dense(nn.Module):
    """wrapped: each convolution is the first layer of a chain, as in ESRGAN's old form."""

    def __init__(self, wrapped, plus):
        super().__init__()
        for k in range(1, 6):
            layer = conv(WIDTH + (k - 1) * GROWTH, GROWTH if k < 5 else WIDTH)
            setattr(self, f"conv{k}", nn.Sequential(layer) if wrapped else layer)
        if plus:
            self.conv1x1 = nn.Conv2d(WIDTH, GROWTH, 1, bias=False)

    def forward(self, x):
        x1 = leaky(self.conv1(x))
        x2 = leaky(self.conv2(torch.cat([x, x1], 1)))
        if hasattr(self, "conv1x1"):
            x2 = x2 + self.conv1x1(x)
        x3 = leaky(self.conv3(torch.cat([x, x1, x2], 1)))
        x4 = leaky(self.conv4(torch.cat([x, x1, x2, x3], 1)))
        if hasattr(self, "conv1x1"):
            x4 = x4 + x2
        return x + 0.2 * self.conv5(torch.cat([x, x1, x2, x3, x4], 1))


class Residual(nn.Module):
    def __init__(self, name, wrapped=False, plus=False):
        super().__init__()
        for k in (1, 2, 3):
            setattr(self, f"{name}{k}", Dense(wrapped, plus))

    def forward(self, x):
        inner = x
        for dense in self.children():
            inner = dense(inner)
        return x + 0.2 * inner


class Named(nn.Module):
    """RRDBNet with a name for each part; names: of first, blocks, dense ones, body, doublings, the
    convolution behind them, last."""

    REAL = ("conv_first", "body", "rdb", "conv_body", "conv_up", "conv_hr", "conv_last")
    FIRST = ("conv_first", "RRDB_trunk", "RDB", "trunk_conv", "upconv", "HRconv", "conv_last")

    def __init__(self, names, doublings, squares=1, plus=False):
        super().__init__()
        self.names, self.doublings, self.squares = names, doublings, squares
        first, blocks, dense, body, up, hr, last = names
        self.add_module(first, conv(3 * squares * squares, WIDTH))
        self.add_module(blocks, nn.Sequential(*(Residual(dense, plus=plus) for _ in range(BLOCKS))))
        self.add_module(body, conv(WIDTH, WIDTH))
        for i in range(doublings):
            self.add_module(f"{up}{i + 1}", conv(WIDTH, WIDTH))
        self.add_module(hr, conv(WIDTH, WIDTH))
        self.add_module(last, conv(WIDTH, 3))

    def forward(self, x):
        first, blocks, _, body, up, hr, last = self.names
        part = self.get_submodule
        x = part(first)(F.pixel_unshuffle(x, self.squares))
        x = x + part(body)(part(blocks)(x))
        for i in range(self.doublings):
            x = leaky(part(f"{up}{i + 1}")(F.interpolate(x, scale_factor=2, mode="nearest")))
        return part(last)(leaky(part(hr)(x)))


class Shortcut(nn.Module):
    def __init__(self, sub):
        super().__init__()
        self.sub = sub

    def forward(self, x):
        return x + self.sub(x)


class Chain(nn.Module):
    """RRDBNet in ESRGAN's old form: one chain of layers, whose numbers are the names."""

    def __init__(self, doublings, squares=1, plus=False):
        super().__init__()
        self.squares = squares
        blocks = [Residual("RDB", wrapped=True, plus=plus) for _ in range(BLOCKS)]
        layers = [conv(3 * squares * squares, WIDTH),
                  Shortcut(nn.Sequential(*blocks, conv(WIDTH, WIDTH)))]
        for _ in range(doublings):
            layers += [nn.Upsample(scale_factor=2), conv(WIDTH, WIDTH), nn.LeakyReLU(0.2)]
        layers += [conv(WIDTH, WIDTH), nn.LeakyReLU(0.2), conv(WIDTH, 3)]
        self.model = nn.Sequential(*layers)

    def forward(self, x):
        return self.model(F.pixel_unshuffle(x, self.squares))


class Compact(nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.scale = scale
        layers = [conv(3, WIDTH), nn.PReLU(WIDTH)]
        for _ in range(CONVS):
            layers += [conv(WIDTH, WIDTH), nn.PReLU(WIDTH)]
        self.body = nn.Sequential(*layers, conv(WIDTH, 3 * scale * scale))

    def forward(self, x):
        base = F.interpolate(x, scale_factor=self.scale, mode="nearest")
        return base + F.pixel_shuffle(self.body(x), self.scale)


def filled(network, prefix):
    network = network.double()
    with torch.no_grad():
        for name, tensor in network.state_dict().items():
            seed = prefix + name
            if tensor.dim() == 1 and name.endswith("weight"):
                seed = seed.removesuffix("weight") + "slopes"
            tensor.copy_(torch.from_numpy(weight_values(seed, tuple(tensor.shape))))
    return network


def picture_of(height, columns):
    colour, y, x = torch.meshgrid(torch.arange(3), torch.arange(height), torch.arange(columns),
                                  indexing="ij")
    return ((37 * x + 59 * y + 83 * colour) % 256).double()[None] / 255


# Name, network, what is before the names of the tensors that count, other prefixes in the file, sides of
# the picture.
CASES = [
    ("Real-ESRGAN, 4 times", Named(Named.REAL, 2), "params_ema.", ["params."], (3, 4)),
    ("Real-ESRGAN, 2 times", Named(Named.REAL, 2, squares=2), "params.", [], (4, 6)),
    ("Real-ESRGAN, same size", Named(Named.REAL, 2, squares=4), "", [], (4, 8)),
    ("Real-ESRGAN, 8 times", Named(Named.REAL, 3), "", [], (1, 2)),
    ("ESRGAN as published, 4 times", Named(Named.FIRST, 2), "", [], (2, 3)),
    ("ESRGAN as published, 2 times", Named(Named.FIRST, 1), "", [], (4, 6)),
    ("old ESRGAN, same size", Chain(0), "", [], (4, 6)),
    ("old ESRGAN, 2 times", Chain(1), "", [], (4, 6)),
    ("old ESRGAN, 4 times", Chain(2), "", [], (2, 3)),
    ("old ESRGAN, 8 times", Chain(3), "", [], (1, 2)),
    ("old ESRGAN, 16 times", Chain(4), "", [], (1, 1)),
    ("old ESRGAN, squares of 2", Chain(2, squares=2), "", [], (4, 6)),
    ("ESRGAN+", Chain(2, plus=True), "", [], (2, 3)),
    ("ESRGAN+ with newer names", Named(Named.REAL, 1, plus=True), "params.", [], (4, 6)),
    ("compact, same size", Compact(1), "", [], (4, 6)),
    ("compact, 2 times", Compact(2), "params_ema.", ["params."], (3, 4)),
    ("compact, 3 times", Compact(3), "", [], (3, 2)),
    ("compact, 4 times", Compact(4), "params.", [], (2, 3)),
]


def main():
    cases = []
    for name, network, prefix, others, (height, columns) in CASES:
        with torch.no_grad():
            result = filled(network, prefix)(picture_of(height, columns))[0].permute(1, 2, 0)
        shapes = {key: list(value.shape) for key, value in network.state_dict().items()}
        tensors = {before + key: shape for before in (prefix, *others) for key, shape in shapes.items()}
        cases.append({"name": name, "height": height, "columns": columns,
                      "scale": result.shape[0] // height, "tensors": tensors,
                      "result": [float(f"{v:.6g}") for v in result.flatten().tolist()]})
    with open(pathlib.Path(ARGUMENTS.folder) / "upscalers.json", "w", encoding="ascii") as file:
        file.write("[\n" + ",\n".join(json.dumps(case, separators=(",", ":")) for case in cases) + "\n]\n")


if __name__ == "__main__":
    main()
