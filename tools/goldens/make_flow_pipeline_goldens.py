#!/usr/bin/env python3
"""Makes tests/units/engine/data/flow_pipelines.json: the latents that diffusers' pipelines of Stable
Diffusion 3 and FLUX end with for the tiny models of tests/models/image/data, on the CPU in float32,
one generator for each image.

Run from the repository root, in make_flow_goldens.py's environment with peft and pillow besides:
    venv/bin/python tools/goldens/make_flow_pipeline_goldens.py tests/units/engine/data
"""

import json
import pathlib

import arguments

ARGUMENTS = arguments.read(__name__, __doc__, ("folder", "tests/units/engine/data"))

import diffusers
import torch

import make_flow_goldens as flow
import make_image_goldens as base
import make_pipeline_goldens as plain

cases = []


def parts(name):
    case = flow.CASES[name]
    clip_tokens = base.read_tokenizer(plain.DATA / "tokenizer")
    out = {"transformer": flow.transformer(case), "vae": flow.vae(case),
           "scheduler": diffusers.FlowMatchEulerDiscreteScheduler(num_train_timesteps=1000,
                                                                  **case["scheduler"])}
    encoders = [(clip_tokens, flow.clip_encoder(clip)) for clip in case["clips"]]
    t5_tokens = flow.t5_tokenizer(plain.DATA / "t5_tokenizer")
    encoders.append((t5_tokens, flow.t5_encoder()) if case["t5"] else (None, None))
    for i, (tokenizer, encoder) in enumerate(encoders):
        suffix = "" if i == 0 else f"_{i + 1}"
        out[f"tokenizer{suffix}"] = tokenizer
        out[f"text_encoder{suffix}"] = encoder
    return out


def run(model, pipeline, request, **options):
    """request: what the test asks of the engine; options: what diffusers is asked for besides."""
    pipe = getattr(diffusers, pipeline)(**parts(model))
    pipe.set_progress_bar_config(disable=True)
    count, seed = request.get("count", 1), 70 + len(cases)
    generators = [torch.Generator().manual_seed(seed + i) for i in range(count)]
    flux = pipeline.startswith("Flux")
    if not flux:
        options["negative_prompt"] = plain.NEGATIVE
    with torch.no_grad():
        latents = pipe(plain.PROMPT, num_inference_steps=request["steps"], generator=generators,
                       num_images_per_prompt=count, output_type="latent", width=plain.WIDTH,
                       height=plain.HEIGHT, guidance_scale=request.get("guidance_scale", 3.5),
                       **options).images
    if flux:
        latents = pipe._unpack_latents(latents, plain.HEIGHT, plain.WIDTH, pipe.vae_scale_factor)
    values = latents.permute(0, 2, 3, 1).reshape(-1).tolist()
    cases.append({"model": model, "seed": seed, "request": request,
                  "latents": [float(f"{v:.6g}") for v in values]})
    print(model, pipeline, request, max(abs(v) for v in values))


def main():
    image = plain.init_image()
    run("sd3", "StableDiffusion3Pipeline", {"steps": 4, "guidance_scale": 5.0})
    run("sd35", "StableDiffusion3Pipeline", {"steps": 3, "count": 2})
    run("sd3", "StableDiffusion3Img2ImgPipeline", {"steps": 6, "strength": 0.5, "init": True},
        image=image, strength=0.5)
    run("flux", "FluxPipeline", {"steps": 4, "count": 2})
    run("flux", "FluxImg2ImgPipeline", {"steps": 6, "strength": 0.5, "init": True}, image=image,
        strength=0.5)
    run("schnell", "FluxPipeline", {"steps": 3}, max_sequence_length=256)
    # 3.3 steps: these pipelines round up.
    for model, pipeline in (("sd3", "StableDiffusion3Img2ImgPipeline"),
                            ("flux", "FluxImg2ImgPipeline")):
        run(model, pipeline, {"steps": 6, "strength": 0.55, "init": True}, image=image,
            strength=0.55)
    for strength in (1.0, 0.7):
        run("flux_fill", "FluxFillPipeline",
            {"steps": 5, "strength": strength, "init": True, "mask": True, "guidance_scale": 30.0},
            image=image, mask_image=plain.mask_image(), strength=strength)
    run("flux_control", "FluxControlPipeline", {"steps": 4, "control": True}, control_image=image)
    out = pathlib.Path(ARGUMENTS.folder)
    out.mkdir(parents=True, exist_ok=True)
    with open(out / "flow_pipelines.json", "w", encoding="ascii") as file:
        file.write("[\n" + ",\n".join(json.dumps(case) for case in cases) + "\n]\n")


if __name__ == "__main__":
    main()
