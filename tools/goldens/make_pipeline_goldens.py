#!/usr/bin/env python3
"""Makes tests/units/engine/data/pipelines.json: the latents that diffusers' pipelines end with for the
tiny models of tests/models/image/data, on the CPU in float32, one generator for each image.

Run from the repository root (wrote the committed file with the versions below):
    python3 -m venv venv && venv/bin/pip install torch==2.15.0 transformers==5.23.0 \
        diffusers==0.42.1 peft tokenizers safetensors numpy pillow
    venv/bin/python tools/goldens/make_pipeline_goldens.py tests/units/engine/data
"""

import copy
import json
import pathlib

import arguments

ARGUMENTS = arguments.read(__name__, __doc__, ("folder", "tests/units/engine/data"))

import diffusers
import numpy as np
import torch
import transformers
from PIL import Image

import make_image_goldens as tiny

DATA = pathlib.Path("tests/models/image/data")
PROMPT = "a tiny golden dragon on a table"
WORDS = " with an <owl-toy>, inkwash"
NEGATIVE = "misty portrait"
WIDTH, HEIGHT = 72, 64
cases = []


def parts(name):
    case = tiny.CASES[name]
    tokenizer = tiny.read_tokenizer(DATA / "tokenizer")
    out = {}
    for i, changes in enumerate(case["text"]):
        suffix = "" if i == 0 else "_2"
        if changes is None:
            out["text_encoder" + suffix] = out["tokenizer" + suffix] = None
            continue
        config = transformers.CLIPTextConfig(**dict(tiny.TEXT, **changes))
        last = len(case["text"]) > 1 and i == 1
        kind = transformers.CLIPTextModelWithProjection if last else transformers.CLIPTextModel
        out["text_encoder" + suffix] = tiny.fill_weights(kind(config))
        out["tokenizer" + suffix] = tokenizer
    out["unet"] = tiny.fill_weights(
        diffusers.UNet2DConditionModel(**dict(tiny.UNET, **case["unet"])))
    out["vae"] = tiny.fill_weights(diffusers.AutoencoderKL(**dict(tiny.VAE, **case["vae"])))
    out["scheduler"] = dict(tiny.SCHEDULER, **case["scheduler"])
    return out


# What Stability AI's SD-Turbo and SDXL-Turbo have.
TURBO = {**tiny.SCHEDULER, "_class_name": "EulerDiscreteScheduler", "clip_sample": False,
         "interpolation_type": "linear", "prediction_type": "epsilon", "sample_max_value": 1.0,
         "timestep_spacing": "trailing", "timestep_type": "discrete", "trained_betas": None,
         "use_karras_sigmas": False}
TURBO_XL = {**TURBO, "_class_name": "EulerAncestralDiscreteScheduler"}


def scheduler_of(config, name, changes):
    config = {k: v for k, v in config.items() if k != "_class_name" or name is None}
    name = name or config.pop("_class_name")
    return getattr(diffusers, name).from_config(
        {**config, "clip_sample": False, **changes})


def init_image():
    y, x = np.mgrid[:HEIGHT, :WIDTH]
    return Image.fromarray(np.stack([x * 3, y * 4, (x + y) % 256], -1).astype(np.uint8))


def mask_image():
    mask = np.zeros((HEIGHT, WIDTH), np.uint8)
    mask[8:40, 20:56] = 255
    return Image.fromarray(mask)


def controls(request, pipeline):
    """The networks' arguments; one network's are not in lists."""
    uses = request["control"]
    picture = "control_image" if "Img2Img" in pipeline else "image"
    out = {picture: [init_image()] * len(uses),
           "controlnet_conditioning_scale": [use.get("scale", 1.0) for use in uses],
           "control_guidance_start": [use.get("start", 0.0) for use in uses],
           "control_guidance_end": [use.get("finish", 1.0) for use in uses]}
    return out if len(uses) > 1 else {name: values[0] for name, values in out.items()}


def vectors(name, count, width):
    """The tests make the same."""
    return torch.from_numpy(tiny.weight_values(f"token_embedding.{name}", (count, width))).float()


def learn_words(pipe):
    """Textual inversions: a token of three vectors, and for one encoder a word of one."""
    pipe.tokenizer = copy.deepcopy(pipe.tokenizer)
    width = pipe.text_encoder.config.hidden_size
    pipe.load_textual_inversion({"<owl-toy>": vectors("owl", 3, width)})
    if not hasattr(pipe, "text_encoder_2"):
        pipe.load_textual_inversion({"emb_params": vectors("style", 1, width)}, token="inkwash")
        return
    pipe.tokenizer_2 = copy.deepcopy(tiny.read_tokenizer(DATA / "tokenizer"))
    width = pipe.text_encoder_2.config.hidden_size
    pipe.load_textual_inversion({"<owl-toy>": vectors("large", 3, width)},
                                text_encoder=pipe.text_encoder_2, tokenizer=pipe.tokenizer_2)


def go_round(module, axes):
    """Makes the padding of convolutions circular along the axes "x", "y" or "both"."""
    def forward(conv):
        def call(x, weight, bias):
            left, right, top, bottom = conv._reversed_padding_repeated_twice
            beside = {"mode": "constant" if axes == "y" else "circular"}
            above = {"mode": "constant" if axes == "x" else "circular"}
            x = torch.nn.functional.pad(x, (left, right, 0, 0), **beside)
            x = torch.nn.functional.pad(x, (0, 0, top, bottom), **above)
            return torch.nn.functional.conv2d(x, weight, bias, conv.stride)
        return call
    for conv in module.modules():
        if isinstance(conv, torch.nn.Conv2d):
            conv._conv_forward = forward(conv)


def run(model, pipeline, request, scheduler=None, changes=None, config=None, **options):
    """request: what the test asks of the engine; options: what diffusers is asked for; config: of
    the scheduler, in place of the model's own, which the test gives the engine too."""
    kit = parts(model)
    if model == "lcm":  # whose own VAE is of another number of channels
        kit["vae"] = parts("sd1")["vae"]
    kit["scheduler"] = scheduler_of(config or kit["scheduler"], scheduler, changes or {})
    if "control" in request:
        nets = [tiny.steering_net(use["net"]) for use in request["control"]]
        options.update(controls(request, pipeline))
        kit["controlnet"] = nets[0] if len(nets) == 1 else nets
    if "tiling" in request:
        for part in ("unet", "vae"):
            go_round(kit[part], request["tiling"])
    kind = getattr(diffusers, pipeline)
    extra = {} if "XL" in pipeline else {"safety_checker": None, "feature_extractor": None}
    if "XL" in pipeline or "Latent" in pipeline:
        extra.pop("safety_checker", None)
    if "Latent" in pipeline:
        extra = {"safety_checker": None, "feature_extractor": None}
    if "XL" not in pipeline:
        extra["requires_safety_checker"] = False
    extra.update(tiny.CASES[model].get("index", {}))
    pipe = kind(**kit, **extra)
    pipe.set_progress_bar_config(disable=True)
    if request.get("words"):
        learn_words(pipe)
    count = request.get("count", 1)
    seed = 7 + len(cases)
    generators = [torch.Generator().manual_seed(seed + i) for i in range(count)]
    options.setdefault("guidance_scale", request.get("guidance_scale", 7.5))
    if "Latent" not in pipeline:
        options.setdefault("negative_prompt", NEGATIVE)
    if "Img2Img" not in pipeline:
        options.update(width=WIDTH, height=HEIGHT)
    prompt = PROMPT + WORDS if request.get("words") else PROMPT
    with torch.no_grad():
        latents = pipe(prompt, num_inference_steps=request["steps"], generator=generators,
                       num_images_per_prompt=count, output_type="latent",
                       **options).images
    more = {"scheduler": config} if config else {}
    if "tiling" in request:
        with torch.no_grad():
            picture = pipe.vae.decode(latents / pipe.vae.config.scaling_factor).sample
        picture = ((picture / 2 + 0.5).clamp(0, 1) * 255).round()
        more["decoded"] = picture[0, :, ::7, ::7].permute(1, 2, 0).int().reshape(-1).tolist()
    latents = latents.permute(0, 2, 3, 1).reshape(-1).tolist()
    cases.append({"model": model, "seed": seed, "request": request, **more,
                  "latents": [float(f"{v:.6g}") for v in latents]})
    print(model, pipeline, request, max(abs(v) for v in latents))


def changing(turns):
    """What makes a pipeline read (prompt, negative prompt) of turns[i] from step i on."""
    def after_step(pipe, step, _, tensors):
        if step + 1 in turns:
            positive, negative = pipe.encode_prompt(turns[step + 1][0], pipe.device, 1, True,
                                                    turns[step + 1][1])
            tensors["prompt_embeds"] = torch.cat([negative, positive])
        return tensors
    return {"callback_on_step_end": after_step,
            "callback_on_step_end_tensor_inputs": ["prompt_embeds"]}


def composed(request, prompts, scale):
    """Liu et al. 2022 with Stable Diffusion 1 and DDIM; prompts: (text, weight)."""
    kit = parts("sd1")
    scheduler = scheduler_of(kit["scheduler"], "DDIMScheduler", {})
    scheduler.set_timesteps(request["steps"])
    seed = 7 + len(cases)
    x = torch.randn(1, 4, HEIGHT // 4, WIDTH // 4, generator=torch.Generator().manual_seed(seed))

    def states(text):
        ids = kit["tokenizer"](text, padding="max_length", max_length=tiny.TOKENS,
                               return_tensors="pt").input_ids
        return kit["text_encoder"](ids)[0]

    context = torch.cat([states(NEGATIVE)] + [states(text) for text, _ in prompts])
    with torch.no_grad():
        for t in scheduler.timesteps:
            said = kit["unet"](torch.cat([x] * len(context)), t, context).sample
            guided = said[:1] + sum(scale * weight * (said[i + 1:i + 2] - said[:1])
                                    for i, (_, weight) in enumerate(prompts))
            x = scheduler.step(guided, t, x).prev_sample
    x = x.permute(0, 2, 3, 1).reshape(-1).tolist()
    cases.append({"model": "sd1", "seed": seed, "request": request,
                  "latents": [float(f"{v:.6g}") for v in x]})
    print("composed", request, max(abs(v) for v in x))


def main():
    plain = "StableDiffusionPipeline"
    run("sd1", plain, {"steps": 4})
    run("sd1", plain, {"steps": 4, "sampler": "Euler a", "count": 2},
        "EulerAncestralDiscreteScheduler")
    run("sd1", plain, {"steps": 5, "sampler": "DPM++ 2M", "guidance_rescale": 0.5},
        "DPMSolverMultistepScheduler", guidance_rescale=0.5)
    run("sd1", plain, {"steps": 4, "sampler": "DDIM", "guidance_scale": 1.0}, "DDIMScheduler")
    run("sd1", plain, {"steps": 5, "sampler": "UniPC"}, "UniPCMultistepScheduler")
    run("sd2", plain, {"steps": 4})
    run("sdxl", "StableDiffusionXLPipeline", {"steps": 4})
    run("lcm", "LatentConsistencyModelPipeline", {"steps": 3, "guidance_scale": 4.5})
    image, mask = init_image(), mask_image()
    run("sd1", "StableDiffusionImg2ImgPipeline",
        {"steps": 6, "sampler": "DDIM", "strength": 0.6, "init": True}, "DDIMScheduler",
        image=image, strength=0.6)
    run("sd1", "StableDiffusionInpaintPipeline",
        {"steps": 5, "sampler": "Euler", "strength": 1.0, "init": True, "mask": True},
        "EulerDiscreteScheduler", image=image, mask_image=mask, strength=1.0)
    run("sd1", "StableDiffusionInpaintPipeline",
        {"steps": 5, "sampler": "DDIM", "strength": 0.7, "init": True, "mask": True},
        "DDIMScheduler", image=image, mask_image=mask, strength=0.7)
    run("inpaint", "StableDiffusionInpaintPipeline",
        {"steps": 4, "sampler": "DDIM", "strength": 1.0, "init": True, "mask": True},
        "DDIMScheduler", image=image, mask_image=mask, strength=1.0)
    control = "StableDiffusionControlNetPipeline"
    run("sd1", control, {"steps": 4, "control": [{"net": "steer", "scale": 0.8}]})
    run("sd1", control,
        {"steps": 6, "sampler": "DDIM", "count": 2,
         "control": [{"net": "steer", "scale": 0.5, "finish": 0.5},
                     {"net": "steer", "scale": 1.25, "start": 0.3}]}, "DDIMScheduler")
    run("sd1", "StableDiffusionControlNetImg2ImgPipeline",
        {"steps": 6, "sampler": "DDIM", "strength": 0.6, "init": True,
         "control": [{"net": "steer", "finish": 0.7}]}, "DDIMScheduler", image=image, strength=0.6,
        width=WIDTH, height=HEIGHT)
    run("sdxl", "StableDiffusionXLControlNetPipeline",
        {"steps": 4, "control": [{"net": "steer_xl"}]})
    run("sd1", plain, {"steps": 3, "words": True})
    run("sdxl", "StableDiffusionXLPipeline", {"steps": 3, "words": True})
    for model in ("sdxl", "refiner"):
        run(model, "StableDiffusionXLImg2ImgPipeline",
            {"steps": 6, "strength": 0.6, "init": True}, image=image, strength=0.6)
    for steps in (1, 4):
        run("sd2", plain, {"steps": steps, "guidance_scale": 0.0}, config=TURBO)
        run("sdxl", "StableDiffusionXLPipeline",
            {"steps": steps, "guidance_scale": 0.0, "count": 2}, config=TURBO_XL)
    run("sdxl", "StableDiffusionXLPipeline", {"steps": 2, "guidance_scale": 1.5}, config=TURBO_XL)
    run("sdxl", "StableDiffusionXLImg2ImgPipeline",
        {"steps": 2, "strength": 0.5, "guidance_scale": 0.0, "init": True}, config=TURBO_XL,
        image=image, strength=0.5)
    # AUTOMATIC1111's [from:to:1] reads `from` at calls 0 and 1, its [a|b] a, a, b, a, b.
    run("sd1", plain, {"steps": 5, "sampler": "DDIM", "negative": "[misty portrait:1]",
                       "prompt": PROMPT + "[:, a fox:0.4]"},
        "DDIMScheduler", negative_prompt="",
        **changing({2: (PROMPT, NEGATIVE), 3: (PROMPT + ", a fox", NEGATIVE)}))
    run("sd1", plain, {"steps": 5, "sampler": "DDIM", "prompt": PROMPT + "[| at night]"},
        "DDIMScheduler",
        **changing({i: (PROMPT + " at night" * (i % 2 == 0), NEGATIVE) for i in range(2, 5)}))
    run("sdxl", "StableDiffusionXLPipeline", {"steps": 3, "prompt": "[a fox:" + PROMPT + ":0]"})
    composed({"steps": 4, "sampler": "DDIM", "prompt": PROMPT + " :0.7 AND a fox AND fog:-0.4"},
             [(PROMPT, 0.7), ("a fox", 1), ("fog", -0.4)], 7.5)
    for axes in ("both", "x", "y"):
        run("sd1", plain, {"steps": 3, "sampler": "DDIM", "tiling": axes}, "DDIMScheduler")
    out = pathlib.Path(ARGUMENTS.folder)
    out.mkdir(parents=True, exist_ok=True)
    with open(out / "pipelines.json", "w", encoding="ascii") as file:
        file.write("[\n" + ",\n".join(json.dumps(case) for case in cases) + "\n]\n")


if __name__ == "__main__":
    main()
