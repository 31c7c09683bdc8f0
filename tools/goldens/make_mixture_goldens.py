#!/usr/bin/env python3
"""Asks llama.cpp's llama-quantize which type each tensor gets in each mixture, for models of several
shapes without real weights, and writes the answers for tests/units/quantize.

Run from the repository root (wrote the committed file with build 11669 of Debian unstable):
    python3 -m venv venv && venv/bin/pip install gguf==0.19.0
    venv/bin/python tools/goldens/make_mixture_goldens.py llama-quantize \\
        tests/units/quantize/data/mixtures.json
"""

import json
import pathlib
import re
import subprocess
import tempfile

import arguments

ARGUMENTS = arguments.read(__name__, __doc__, ("program", "llama.cpp's, llama-quantize"),
                           ("file", "tests/units/quantize/data/mixtures.json"))

import gguf
import numpy as np

# Grouped heads; as many heads of keys as of queries; SmolLM2's odd width with a tied table; the
# depth of Llama 2 70B; Phi-3's fused matrices.
SHAPES = {
    "gqa": dict(arch="llama", layers=32, dim=256, heads=8, kv_heads=2, ffn=512),
    "mha": dict(arch="llama", layers=18, dim=256, heads=4, kv_heads=4, ffn=256),
    "odd": dict(arch="llama", layers=30, dim=96, heads=3, kv_heads=1, ffn=256, tied=True),
    "deep": dict(arch="llama", layers=80, dim=256, heads=8, kv_heads=4, ffn=256),
    "deep_gqa": dict(arch="llama", layers=80, dim=256, heads=8, kv_heads=1, ffn=256),
    "fused": dict(arch="phi3", layers=32, dim=256, heads=4, kv_heads=4, ffn=512),
}
MIXTURES = ["Q8_0", "Q6_K", "Q5_K_M", "Q5_K_S", "Q5_1", "Q5_0", "Q4_K_M", "Q4_K_S", "Q4_1", "Q4_0",
            "IQ4_NL", "IQ4_XS", "Q3_K_L", "Q3_K_M", "Q3_K_S", "Q2_K", "Q2_K_S"]
VOCAB = 32
LINE = re.compile(r"^\[ *\d+/ *\d+\] (\S+) .*\((\w+)\)$", re.MULTILINE)


def matrices(shape):
    dim, ffn = shape["dim"], shape["ffn"]
    kv = shape["kv_heads"] * dim // shape["heads"]
    yield "token_embd", (VOCAB, dim)
    if not shape.get("tied"):
        yield "output", (VOCAB, dim)
    for i in range(shape["layers"]):
        if shape["arch"] == "phi3":
            yield f"blk.{i}.attn_qkv", (dim + 2 * kv, dim)
            yield f"blk.{i}.ffn_up", (2 * ffn, dim)
        else:
            yield f"blk.{i}.attn_q", (dim, dim)
            yield f"blk.{i}.attn_k", (kv, dim)
            yield f"blk.{i}.attn_v", (kv, dim)
            yield f"blk.{i}.ffn_gate", (ffn, dim)
            yield f"blk.{i}.ffn_up", (ffn, dim)
        yield f"blk.{i}.attn_output", (dim, dim)
        yield f"blk.{i}.ffn_down", (dim, ffn)


def write_model(path, shape):
    writer = gguf.GGUFWriter(path, shape["arch"])
    writer.add_context_length(128)
    writer.add_embedding_length(shape["dim"])
    writer.add_block_count(shape["layers"])
    writer.add_feed_forward_length(shape["ffn"])
    writer.add_head_count(shape["heads"])
    writer.add_head_count_kv(shape["kv_heads"])
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(VOCAB)
    writer.add_tokenizer_model("no_vocab")
    for name, size in matrices(shape):
        writer.add_tensor(name + ".weight", np.zeros(size, dtype=np.float16))
    writer.add_tensor("output_norm.weight", np.zeros(shape["dim"], dtype=np.float32))
    for i in range(shape["layers"]):
        for norm in ("attn_norm", "ffn_norm"):
            writer.add_tensor(f"blk.{i}.{norm}.weight", np.zeros(shape["dim"], dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def types_of(command, path, mixture):
    """By role: one type, or a list by layer where they differ."""
    out = subprocess.run([command, "--dry-run", str(path), mixture], capture_output=True, text=True,
                         check=True)
    found = {name.removesuffix(".weight"): dtype.lower()
             for name, dtype in LINE.findall(out.stdout + out.stderr)}
    roles = {}
    for name, dtype in found.items():
        roles.setdefault(re.sub(r"^blk\.\d+\.", "", name), []).append((name, dtype))
    types = {}
    for role, pairs in sorted(roles.items()):
        pairs.sort(key=lambda pair: [int(n) for n in re.findall(r"\.(\d+)\.", pair[0])])
        listed = [dtype for _, dtype in pairs]
        types[role] = listed[0] if len(set(listed)) == 1 else " ".join(listed)
    return types


def main():
    command, out = ARGUMENTS.program, ARGUMENTS.file
    goldens = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, shape in SHAPES.items():
            path = pathlib.Path(folder) / f"{name}.gguf"
            write_model(path, shape)
            goldens[name] = {"shape": shape, "mixtures": {
                mixture.lower(): types_of(command, path, mixture) for mixture in MIXTURES}}
    pathlib.Path(out).write_text(json.dumps(goldens, indent=1) + "\n")


if __name__ == "__main__":
    main()
