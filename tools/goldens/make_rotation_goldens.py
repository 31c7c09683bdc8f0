#!/usr/bin/env python3
"""Makes tests/models/image/data/rotations.json: layers of OFT and BOFT adapters with random tensors
in the form of kohya's scripts and LyCORIS, and what they add to a layer's weight at strength 1.

The formulas, by the two papers (arXiv 2306.07280, 2311.06243) and LyCORIS's files:
    S = Q - Q^T, scaled down to a norm of alpha * rows where alpha is above 0
    R = (I + S) (I - S)^-1
    OFT: a block of rows w of the weight becomes R^T w
    BOFT: for each factor i a block of rows becomes R w, where a block takes rows that are
        2^i b / 2 apart
    rescale: a factor for each row that comes out

Run from the repository root (wrote the committed file with numpy 2.4.6):
    python3 tools/goldens/make_rotation_goldens.py tests/models/image/data
"""

import json
import pathlib

import arguments

ARGUMENTS = arguments.read(__name__, __doc__, ("folder", "tests/models/image/data"))

import numpy as np

cases = []


def numbers(array):
    return [float(f"{v:.7g}") for v in np.asarray(array, dtype=np.float32).flatten()]


def described(array):
    return {"shape": list(np.shape(array)), "values": numbers(array)}


def rotations(blocks, alpha, rows):
    skew = blocks - np.swapaxes(blocks, -1, -2)
    norm = np.linalg.norm(skew)
    if alpha > 0 and norm > alpha * rows:
        skew = skew * (alpha * rows / norm)
    eye = np.eye(blocks.shape[-1])
    return (eye + skew) @ np.linalg.inv(eye - skew)


def turned(weight, blocks, alpha):
    rows = weight.reshape(len(weight), -1)
    rotation = rotations(blocks, alpha, len(rows))
    if blocks.ndim == 3:
        parts = rows.reshape(*blocks.shape[:2], -1)
        return np.einsum("knm,knx->kmx", rotation, parts).reshape(weight.shape)
    side = blocks.shape[-1]
    for i, factor in enumerate(rotation):
        apart = 2**i * side // 2
        order = np.arange(len(rows)).reshape(-1, 2, apart).swapaxes(1, 2).flatten()
        parts = rows[order].reshape(-1, side, rows.shape[-1])
        rows = rows.copy()
        rows[order] = np.einsum("kij,kjx->kix", factor, parts).reshape(rows.shape)
    return rows.reshape(weight.shape)


def add(name, shape, blocks, alpha=None, rescaled=False):
    random = np.random.default_rng(len(cases))
    weight = np.float32(random.standard_normal(shape))
    tensors = {"oft_blocks": np.float32(random.standard_normal(blocks) * 0.3)}
    if alpha is not None:
        tensors["alpha"] = np.float32(alpha)
    if rescaled:
        sizes = (shape[0],) + (1,) * (len(shape) - 1)
        tensors["rescale"] = np.float32(1 + 0.2 * random.standard_normal(sizes))
    wanted = turned(np.float64(weight), np.float64(tensors["oft_blocks"]), alpha or 0)
    change = wanted * tensors.get("rescale", 1.0) - weight
    cases.append({"name": name, "weight": described(weight),
                  "tensors": {key: described(value) for key, value in tensors.items()},
                  "change": numbers(change)})


def main():
    add("oft", (8, 6), (4, 2, 2))
    add("oft_free", (8, 6), (4, 2, 2), alpha=0)
    add("oft_bound", (8, 6), (4, 2, 2), alpha=0.0625)
    add("oft_conv", (12, 3, 2, 2), (4, 3, 3), alpha=100)
    add("oft_rescaled", (8, 3), (4, 2, 2), rescaled=True)
    add("oft_large", (64, 2), (4, 16, 16))
    add("boft", (8, 6), (3, 4, 2, 2), alpha=0)
    add("boft_bound", (16, 3), (2, 4, 4, 4), alpha=0.0625)
    add("boft_conv_rescaled", (8, 3, 2, 2), (2, 2, 4, 4), rescaled=True)
    path = pathlib.Path(ARGUMENTS.folder) / "rotations.json"
    path.write_text("[" + ",\n".join(json.dumps(case) for case in cases) + "]\n")
    print(f"{len(cases)} cases, {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
