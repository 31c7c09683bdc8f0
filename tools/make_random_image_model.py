#!/usr/bin/env python3
"""Writes a diffusers folder of a real image model's shape with random weights, for benchmarks.

    tools/make_random_image_model.py sd15 DIR [--dtype float16]

Needs PyTorch, diffusers, transformers and safetensors. Weights are normal with a deviation of 1 / sqrt(inputs), norms
are ones, biases zeros, so that activations stay in range. The tokenizer knows single bytes only.
"""
import argparse
import json
from pathlib import Path

import torch
from diffusers import AutoencoderKL, UNet2DConditionModel
from safetensors.torch import save_file
from transformers import CLIPTextConfig, CLIPTextModel, CLIPTextModelWithProjection

CLIP_L = dict(hidden_size=768, intermediate_size=3072, num_hidden_layers=12, num_attention_heads=12,
              hidden_act="quick_gelu", projection_dim=768)
CLIP_BIGG = dict(hidden_size=1280, intermediate_size=5120, num_hidden_layers=32, num_attention_heads=20,
                 hidden_act="gelu", projection_dim=1280)
VAE = dict(block_out_channels=[128, 256, 512, 512], down_block_types=["DownEncoderBlock2D"] * 4,
           up_block_types=["UpDecoderBlock2D"] * 4, layers_per_block=2, latent_channels=4)
SHAPES = {
    "sd15": dict(
        pipeline="StableDiffusionPipeline", text=[CLIP_L], vae=dict(VAE, sample_size=512, scaling_factor=0.18215),
        unet=dict(sample_size=64, block_out_channels=[320, 640, 1280, 1280], cross_attention_dim=768,
                  attention_head_dim=8)),
    "sdxl": dict(
        pipeline="StableDiffusionXLPipeline", text=[CLIP_L, CLIP_BIGG],
        vae=dict(VAE, sample_size=1024, scaling_factor=0.13025),
        unet=dict(sample_size=128, block_out_channels=[320, 640, 1280], cross_attention_dim=2048,
                  attention_head_dim=[5, 10, 20], transformer_layers_per_block=[1, 2, 10],
                  down_block_types=["DownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D"],
                  up_block_types=["CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "UpBlock2D"],
                  use_linear_projection=True, addition_embed_type="text_time", addition_time_embed_dim=256,
                  projection_class_embeddings_input_dim=2816)),
}


def byte_alphabet():
    """GPT-2's printable stand-in for each byte."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    extra = iter(range(256, 512))
    return [chr(b) if b in printable else chr(next(extra)) for b in range(256)]


def write_tokenizer(folder):
    folder.mkdir(exist_ok=True)
    pieces = byte_alphabet()
    vocab = {piece: i for i, piece in enumerate(pieces + [piece + "</w>" for piece in pieces])}
    vocab.update({"<|startoftext|>": 49406, "<|endoftext|>": 49407})
    (folder / "vocab.json").write_text(json.dumps(vocab))
    (folder / "merges.txt").write_text("#version: 0.2\n")
    config = {"bos_token": "<|startoftext|>", "eos_token": "<|endoftext|>", "pad_token": "<|endoftext|>",
              "unk_token": "<|endoftext|>", "model_max_length": 77, "tokenizer_class": "CLIPTokenizer"}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))


def random_value(name, shape, dtype, device):
    if name.endswith("position_ids"):
        return torch.arange(shape[-1]).expand(shape).contiguous()
    if len(shape) < 2:
        return (torch.zeros if name.endswith("bias") else torch.ones)(shape, dtype=dtype)
    inputs = shape[1:].numel() if "embedding.weight" not in name else 1000
    return (torch.randn(shape, device=device) * inputs**-0.5).to(dtype).cpu()


def write_part(folder, config, model, file, dtype, device):
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config, indent=1))
    save_file({name: random_value(name, value.shape, dtype, device) for name, value in model.state_dict().items()},
              folder / file, metadata={"format": "pt"})


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("shape", choices=sorted(SHAPES))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--dtype", default="float16")
    parser.add_argument("--device", default="cpu", help="where the random numbers are made")
    options = parser.parse_args()
    shape, folder, dtype = SHAPES[options.shape], options.folder, getattr(torch, options.dtype)
    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    index = {"_class_name": shape["pipeline"], "unet": ["diffusers", "UNet2DConditionModel"],
             "vae": ["diffusers", "AutoencoderKL"], "scheduler": ["diffusers", "EulerDiscreteScheduler"]}
    with torch.device("meta"):
        unet = UNet2DConditionModel.from_config(shape["unet"])
        vae = AutoencoderKL.from_config(shape["vae"])
    for i, text in enumerate(shape["text"]):
        suffix = f"_{i + 1}" if i > 0 else ""
        kind = CLIPTextModelWithProjection if i > 0 else CLIPTextModel
        config = CLIPTextConfig(vocab_size=49408, max_position_embeddings=77, bos_token_id=49406,
                                eos_token_id=49407, **text)
        with torch.device("meta"):
            model = kind(config)
        write_part(folder / f"text_encoder{suffix}", dict(config.to_dict(), architectures=[kind.__name__]), model,
                   "model.safetensors", dtype, options.device)
        write_tokenizer(folder / f"tokenizer{suffix}")
        index[f"text_encoder{suffix}"] = ["transformers", kind.__name__]
        index[f"tokenizer{suffix}"] = ["transformers", "CLIPTokenizer"]
    for name, model in (("unet", unet), ("vae", vae)):
        config = dict(model.config, _class_name=type(model).__name__)
        write_part(folder / name, config, model, "diffusion_pytorch_model.safetensors", dtype,
                   options.device)
    scheduler = {"_class_name": "EulerDiscreteScheduler", "beta_start": 0.00085, "beta_end": 0.012,
                 "beta_schedule": "scaled_linear", "num_train_timesteps": 1000, "prediction_type": "epsilon",
                 "steps_offset": 1, "timestep_spacing": "leading"}
    (folder / "scheduler").mkdir(exist_ok=True)
    (folder / "scheduler" / "scheduler_config.json").write_text(json.dumps(scheduler))
    (folder / "model_index.json").write_text(json.dumps(index))


if __name__ == "__main__":
    main()
