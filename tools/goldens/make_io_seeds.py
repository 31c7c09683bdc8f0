#!/usr/bin/env python3
"""Writes the seeds of tests/fuzz/gguf and tests/fuzz/safetensors: small files, valid and broken.

The valid ones come from the formats' own packages (gguf 0.19, safetensors 0.8, numpy), so that they
are also files of another program; the broken ones are changed copies. Usage: make_io_seeds.py
"""

import json
import struct
import tempfile
from pathlib import Path

import gguf
import numpy as np
from safetensors.numpy import save

FUZZ = Path(__file__).resolve().parents[2] / "tests" / "fuzz"


def write(folder, name, data):
    path = FUZZ / folder / "seeds" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def gguf_bytes(fill, **options):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "seed.gguf"
        writer = gguf.GGUFWriter(path, "llama", **options)
        fill(writer)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        return path.read_bytes()


def every_value(writer):
    for bits in (8, 16, 32, 64):
        getattr(writer, f"add_uint{bits}")(f"u{bits}", 2**bits - 1)
        getattr(writer, f"add_int{bits}")(f"i{bits}", -(2 ** (bits - 1)))
    writer.add_float32("f32", 1.5)
    writer.add_float64("f64", 2.25)
    writer.add_bool("bool", True)
    writer.add_array("strings", ["a", "", "three"])
    writer.add_array("numbers", [1, 2, 3])
    writer.add_array("floats", [0.5, -1.0])
    writer.add_array("nested", [[1, 2], [3]])


def some_tensors(writer):
    writer.add_tensor("token_embd.weight", np.arange(8, dtype=np.float32).reshape(2, 4))
    writer.add_tensor("half", np.ones((1, 2, 3), np.float16))
    blocks = np.arange(72, dtype=np.uint8).reshape(2, 36)
    writer.add_tensor("blocks", blocks, raw_dtype=gguf.GGMLQuantizationType.Q4_0)


def patched(data, at, value):
    return data[:at] + value + data[at + len(value):]


def gguf_seeds():
    values = gguf_bytes(every_value)
    tensors = gguf_bytes(some_tensors)
    write("gguf", "values.gguf", values)
    write("gguf", "tensors.gguf", tensors)
    write("gguf", "alignment.gguf", gguf_bytes(
        lambda writer: (writer.add_custom_alignment(64), some_tensors(writer))))
    write("gguf", "version2.gguf", patched(tensors, 4, struct.pack("<I", 2)))
    write("gguf", "version1.gguf", patched(tensors, 4, struct.pack("<I", 1)))
    write("gguf", "big_endian.gguf", patched(tensors, 4, struct.pack(">I", 3)))
    write("gguf", "many_tensors.gguf", patched(tensors, 8, struct.pack("<Q", 2**64 - 1)))
    write("gguf", "many_pairs.gguf", patched(tensors, 16, struct.pack("<Q", 2**63)))
    write("gguf", "cut_header.gguf", tensors[:60])
    write("gguf", "cut_data.gguf", tensors[:-40])
    nested = struct.pack("<4sIQQQ1sI", b"GGUF", 3, 0, 1, 1, b"k", 9)
    write("gguf", "deep_array.gguf", nested + struct.pack("<IQ", 9, 1) * 100)


def safetensors_bytes(header, data):
    text = json.dumps(header).encode() if isinstance(header, dict) else header
    return struct.pack("<Q", len(text)) + text + data


def entry(dtype, shape, offsets):
    return {"dtype": dtype, "shape": shape, "data_offsets": offsets}


def safetensors_seeds():
    valid = save({"a": np.arange(6, dtype=np.float32).reshape(2, 3), "b": np.ones(3, np.int64),
                  "c": np.zeros((0, 2), np.float16)}, {"format": "pt"})
    write("safetensors", "valid.safetensors", valid)
    write("safetensors", "cut.safetensors", valid[:-7])
    write("safetensors", "long_header.safetensors", patched(valid, 0, struct.pack("<Q", 2**63)))
    cases = {
        "hole": {"a": entry("U8", [1], [0, 1]), "b": entry("U8", [1], [2, 3])},
        "overlap": {"a": entry("U8", [2], [0, 2]), "b": entry("U8", [2], [1, 3])},
        "negative": {"a": entry("F32", [-1], [0, 3])},
        "overflow": {"a": entry("F32", [2**40, 2**40], [0, 3])},
        "unknown_type": {"a": entry("F4", [3], [0, 3])},
        "wrong_size": {"a": entry("BF16", [3], [0, 3])},
    }
    for name, header in cases.items():
        write("safetensors", f"{name}.safetensors", safetensors_bytes(header, b"xyz"))
    twice = b'{"a":%s,"a":%s}' % ((json.dumps(entry("U8", [1], [0, 1])).encode(),) * 2)
    write("safetensors", "twice.safetensors", safetensors_bytes(twice, b"x"))
    write("safetensors", "deep.safetensors", safetensors_bytes(b'{"a":' + b"[" * 200, b""))


if __name__ == "__main__":
    gguf_seeds()
    safetensors_seeds()
