#!/usr/bin/env python3
"""Makes the goldens of tests/units/quant/data with gguf's Python implementation of the formats.

<type>.blocks   blocks of random bits; the first ones hold all zeros, all ones and scales at the
                limits of binary16 (infinities and NaNs too)
<type>.values   float32: what they decode to. gguf has no q8_k: its golden follows the definition
                (float32 scale times int8)
input           float32 rows for the encoders: normal values of several magnitudes, then ties,
                zeros, constants, subnormals and values just below powers of two
<type>.encoded  their blocks, for the types that gguf encodes

Run from the repository root (wrote the committed files with the versions below):
    python3 -m venv venv && venv/bin/pip install gguf==0.19.0 numpy==2.4.6
    venv/bin/python tools/goldens/make_quant_goldens.py tests/units/quant/data
"""

import pathlib

import arguments

ARGUMENTS = arguments.read(__name__, __doc__, ("folder", "tests/units/quant/data"))

import gguf
import numpy as np
from gguf.quants import dequantize, quantize

TYPES = ["Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "Q8_K",
         "IQ4_NL", "IQ4_XS", "MXFP4"]
# Types without an encoder here.
READ_ONLY = ["IQ1_S", "IQ1_M", "IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS", "IQ3_S", "TQ1_0", "TQ2_0",
             "NVFP4"]
ENCODED = ["Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "MXFP4"]
# Byte offsets of the binary16 scales in a block.
SCALES = {"Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0], "Q2_K": [80, 82],
          "Q3_K": [108], "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208], "IQ4_NL": [0],
          "IQ4_XS": [0], "IQ1_S": [0], "IQ2_XXS": [0], "IQ2_XS": [0], "IQ2_S": [0], "IQ3_XXS": [0],
          "IQ3_S": [0], "TQ1_0": [52], "TQ2_0": [64]}
# Zero, the smallest and largest subnormal, the smallest normal, the largest, infinity, NaN.
HALVES = [0x0000, 0x8000, 0x0001, 0x83ff, 0x0400, 0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7e00]
Q8_K_BYTES = 292


def random_blocks(name, rng):
    qtype = gguf.GGMLQuantizationType[name]
    elements, size = (256, Q8_K_BYTES) if name == "Q8_K" else gguf.GGML_QUANT_SIZES[qtype]
    blocks = rng.integers(0, 256, (64 if elements == 32 else 24, size), dtype=np.uint8)
    blocks[0] = 0x00
    blocks[1] = 0xff
    for row, half in enumerate(HALVES, 2):
        for offset in SCALES.get(name, []):
            blocks[row, offset:offset + 2] = np.frombuffer(np.uint16(half).tobytes(), np.uint8)
    # Scales of ordinary size in the last third, as weights have them.
    ordinary = len(blocks) * 2 // 3
    for offset in SCALES.get(name, []):
        halves = rng.normal(0, 0.01, len(blocks) - ordinary).astype(np.float16)
        blocks[ordinary:, offset:offset + 2] = halves.view(np.uint8).reshape(-1, 2)
    return blocks


def put_iq1_m_scales(blocks):
    """IQ1_M has its scale's nibbles at the top of four words: as SCALES where it is elsewhere."""
    words = blocks[:, 48:56].view(np.uint16).copy()
    ordinary = np.random.default_rng(21).normal(0, 0.01, len(blocks) - 12).astype(np.float16)
    halves = np.concatenate([np.array(HALVES, np.uint16), ordinary.view(np.uint16)])
    for row, half in enumerate(halves, 2):
        for i in range(4):
            words[row, i] = (words[row, i] & 0x0fff) | ((int(half) >> (4 * i) & 15) << 12)
    blocks[:, 48:56] = words.view(np.uint8)


def decode(name, blocks):
    if name != "Q8_K":
        return dequantize(blocks, gguf.GGMLQuantizationType[name])
    scale = np.ascontiguousarray(blocks[:, :4]).view(np.float32)
    return scale * blocks[:, 4:260].view(np.int8).astype(np.float32)


def encoder_input(rng):
    rows = [rng.normal(0, scale, 32) for scale in (1e-6, 1e-3, 0.02, 1, 30, 5000)
            for _ in range(12)]
    rows += [rng.laplace(0, 0.05, 32) for _ in range(16)]
    rows += [rng.integers(-8, 8, 32) * 0.25 for _ in range(8)]  # many ties
    rows += [np.zeros(32), np.full(32, 0.3), np.full(32, -0.3), np.arange(32) - 15.5,
             np.where(np.arange(32) % 2, -1.0, 1.0), np.where(np.arange(32) % 2, 1.0, -1.0),
             np.eye(1, 32, 7)[0], -np.eye(1, 32, 31)[0], np.full(32, -0.0), rng.normal(5, 0.1, 32),
             np.geomspace(1e-30, 6e4, 32), -np.geomspace(1e-12, 1, 32)]
    tops = [np.nextafter(np.float32(2.0**k), np.float32(0)) for k in (-20, -3, 0, 1, 4, 12)]
    rows += [np.linspace(-1, 1, 32, dtype=np.float32) * top for top in tops]
    rows += [np.linspace(-1, 1, 32) * 65504.0, np.linspace(-2, 1, 32) * 1e-7]
    return np.array(rows, dtype=np.float32)


def main():
    folder = pathlib.Path(ARGUMENTS.folder)
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(20)
    for name in TYPES:
        blocks = random_blocks(name, rng)
        with np.errstate(all="ignore"):
            values = decode(name, blocks)
        blocks.tofile(folder / f"{name.lower()}.blocks")
        values.astype(np.float32).tofile(folder / f"{name.lower()}.values")
    rows = encoder_input(rng)
    read_only = np.random.default_rng(22)
    for name in READ_ONLY:
        blocks = random_blocks(name, read_only)
        if name == "IQ1_M":
            put_iq1_m_scales(blocks)
        with np.errstate(all="ignore"):
            values = decode(name, blocks)
        blocks.tofile(folder / f"{name.lower()}.blocks")
        values.astype(np.float32).tofile(folder / f"{name.lower()}.values")
    rows.tofile(folder / "input")
    for name in ENCODED:
        encoded = quantize(rows, gguf.GGMLQuantizationType[name])
        encoded.tofile(folder / f"{name.lower()}.encoded")


if __name__ == "__main__":
    main()
