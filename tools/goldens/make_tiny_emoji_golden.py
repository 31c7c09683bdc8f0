#!/usr/bin/env python3
"""Makes tests/units/engine/data/tiny_emoji.png: what diffusers draws with models/tiny-emoji, on the
CPU in float32.

Run from the repository root (wrote the committed file with the versions below):
    python3 -m venv venv && venv/bin/pip install torch==2.15.0 transformers==5.23.0 \
        diffusers==0.42.1 pillow
    venv/bin/python tools/goldens/make_tiny_emoji_golden.py tests/units/engine/data
"""


import arguments

ARGUMENTS = arguments.read(__name__, __doc__, ("folder", "tests/units/engine/data"))

import torch
from diffusers import StableDiffusionPipeline


def main():
    pipe = StableDiffusionPipeline.from_pretrained("models/tiny-emoji", torch_dtype=torch.float32)
    image = pipe("a dog face on a blue background", num_inference_steps=10, guidance_scale=4,
                 generator=torch.Generator().manual_seed(1)).images[0]
    image.save(f"{ARGUMENTS.folder}/tiny_emoji.png", optimize=True)


if __name__ == "__main__":
    main()
