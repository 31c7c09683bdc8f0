#!/usr/bin/env python3
"""Names and shapes of the tensors that stable-diffusion.cpp's converter writes of models/tiny-emoji.

Usage: make_convert_golden.py SD_CLI > tests/models/image/data/converted.txt

SD_CLI: stable-diffusion.cpp's program (the committed file is of the source that the Python package
stable-diffusion-cpp-python 0.4.7 holds). Its converter reads no shards, so the denoiser's are put into
one file first. Lines are a name and the sizes of its axes,
sorted, as the converter writes from several threads."""

import json
import pathlib
import shutil
import struct
import subprocess
import tempfile

import arguments

ARGUMENTS = arguments.read(__name__, __doc__, ("program", "stable-diffusion.cpp's, sd-cli"))

MODEL = pathlib.Path(__file__).resolve().parents[2] / "models/tiny-emoji"


def read(path):
    data = path.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    header.pop("__metadata__", None)
    return header, data[8 + size:]


def join(shards, path):
    header, parts, end = {}, [], 0
    for shard in shards:
        tensors, data = read(shard)
        for name, tensor in tensors.items():
            first, last = tensor["data_offsets"]
            header[name] = {**tensor, "data_offsets": [end, end + last - first]}
            parts.append(data[first:last])
            end += last - first
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(parts))


def main():
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary) / "model"
        shutil.copytree(MODEL, folder)
        shards = sorted((folder / "unet").glob("*-of-*.safetensors"))
        join(shards, folder / "unet/diffusion_pytorch_model.safetensors")
        out = pathlib.Path(temporary) / "converted.safetensors"
        subprocess.run([ARGUMENTS.program, "-M", "convert", "-m", folder, "-o", out, "--type", "f16"],
                       check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for name, tensor in sorted(read(out)[0].items()):
            print(name, *tensor["shape"])


main()
