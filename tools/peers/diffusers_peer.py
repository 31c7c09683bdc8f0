"""What diffusers does with the parts of a text-to-image folder on the same device. Imported only
where torch and diffusers are installed."""

import contextlib
import gc
import json
import pathlib
import statistics
import time

import torch
from diffusers import (AutoencoderKL, ControlNetModel, DiffusionPipeline, FluxFillPipeline,
                       FluxPipeline, FluxTransformer2DModel, SD3Transformer2DModel,
                       StableDiffusionControlNetPipeline, UNet2DConditionModel)
from torch.utils.flop_counter import FlopCounterMode

from peers.torch_peer import timed

CLIP_TOKENS = 77
SD3_TOKENS = CLIP_TOKENS + 256
FLUX_TOKENS = {True: 512, False: 256}  # by whether it has guidance: dev, schnell
DTYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}


def operations(work):
    """Multiplications and additions of products, convolutions and attention."""
    counter = FlopCounterMode(display=False)
    with counter:
        work()
    return counter.get_total_flops()


def seconds_of(device, calls, work):
    if device != "cpu":
        return timed(device, calls, work)
    work()
    start = time.perf_counter()
    for _ in range(calls):
        work()
    return (time.perf_counter() - start) / calls


class Where:
    """A device and the type that parts compute in."""

    def __init__(self, device, dtype):
        self.device = device
        self.dtype = DTYPES[dtype]

    def load(self, kind, folder, part):
        module = kind.from_pretrained(folder, subfolder=part, torch_dtype=self.dtype)
        return module.to(self.device, memory_format=torch.channels_last).eval()

    def normal(self, *shape):
        return torch.randn(shape, dtype=self.dtype, device=self.device)

    def filled(self, value, *shape):
        return torch.full(shape, value, dtype=self.dtype, device=self.device)


class Part:
    """A part with its channels last; `call` runs it on inputs of its own."""

    def __init__(self, where, module, call, by_block=False):
        self.device = where.device
        self.module = module
        self.call = call
        self.by_block = by_block  # compiling the whole takes minutes: its blocks are, each once

    @torch.inference_mode()
    def seconds(self, compiled, rounds=5, calls=10):
        """Of one call: the median of the rounds. Steps that are compiled as a whole are captured
        as a graph."""
        step = self.call
        if compiled and self.by_block:
            self.module.compile_repeated_blocks(fullgraph=True)
        elif compiled:
            step = torch.compile(self.call, mode="reduce-overhead", fullgraph=True)
        if compiled:
            for _ in range(3):
                step()
        return statistics.median(seconds_of(self.device, calls, step) for _ in range(rounds))

    @torch.inference_mode()
    def operations(self):
        return operations(self.call)


def unet(where, folder, size, batch):
    model = where.load(UNet2DConditionModel, folder, "unet")
    config = model.config
    x = where.normal(batch, config.in_channels, size // 8, size // 8).to(
        memory_format=torch.channels_last)
    text = where.normal(batch, CLIP_TOKENS, config.cross_attention_dim)
    step = torch.full((batch,), 500, device=where.device)
    guided = config.time_cond_proj_dim  # LCM's guidance is an input
    guidance = where.normal(batch, guided) if guided else None
    added = None
    if config.addition_embed_type == "text_time":
        width = config.projection_class_embeddings_input_dim - 6 * config.addition_time_embed_dim
        added = {"text_embeds": where.normal(batch, width), "time_ids": where.normal(batch, 6)}
    return Part(where, model,
                lambda: model(x, step, text, timestep_cond=guidance, added_cond_kwargs=added,
                              return_dict=False)[0])


def mmdit(where, folder, size, batch):
    model = where.load(SD3Transformer2DModel, folder, "transformer")
    config = model.config
    inputs = {"hidden_states": where.normal(batch, config.in_channels, size // 8, size // 8),
              "encoder_hidden_states": where.normal(batch, SD3_TOKENS, config.joint_attention_dim),
              "pooled_projections": where.normal(batch, config.pooled_projection_dim),
              "timestep": where.filled(500, batch)}
    return Part(where, model, lambda: model(**inputs, return_dict=False)[0])


def flux(where, folder, size, batch):
    model = where.load(FluxTransformer2DModel, folder, "transformer")
    config = model.config
    side, tokens = size // 16, FLUX_TOKENS[config.guidance_embeds]
    places = torch.zeros(side, side, 3, dtype=where.dtype, device=where.device)
    places[..., 1] += torch.arange(side, device=where.device)[:, None]
    places[..., 2] += torch.arange(side, device=where.device)[None, :]
    inputs = {"hidden_states": where.normal(batch, side * side, config.in_channels),
              "encoder_hidden_states": where.normal(batch, tokens, config.joint_attention_dim),
              "pooled_projections": where.normal(batch, config.pooled_projection_dim),
              "timestep": where.filled(0.5, batch), "img_ids": places.reshape(-1, 3),
              "txt_ids": where.filled(0, tokens, 3),
              "guidance": where.filled(3.5, batch) if config.guidance_embeds else None}
    return Part(where, model, lambda: model(**inputs, return_dict=False)[0], by_block=True)


DENOISERS = {"StableDiffusion3Pipeline": mmdit, "FluxPipeline": flux, "FluxFillPipeline": flux}


def denoiser(where, pipeline, folder, size, batch):
    """The denoiser of a folder in diffusers' layout whose index names `pipeline`, for `batch`
    pictures of `size` pixels along each side."""
    return DENOISERS.get(pipeline, unet)(where, folder, size, batch)


def decoder(where, folder, size):
    vae = where.load(AutoencoderKL, folder, "vae")
    latent = where.normal(1, vae.config.latent_channels, size // 8, size // 8).to(
        memory_format=torch.channels_last)
    return Part(where, vae, lambda: vae.decode(latent, return_dict=False)[0])


def release():
    torch.compiler.reset()
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def load_pipeline(folder, control_net):
    index = json.loads((pathlib.Path(folder) / "model_index.json").read_text(encoding="utf-8"))
    parts = {name: None for name, of in index.items() if of == [None, None]}
    kind = DiffusionPipeline
    if control_net:
        kind = StableDiffusionControlNetPipeline
        parts["controlnet"] = ControlNetModel.from_pretrained(control_net,
                                                              torch_dtype=torch.float32)
    return kind.from_pretrained(folder, torch_dtype=torch.float32, **parts)


@contextlib.contextmanager
def noise_as_in_f32():
    """Noise of 16 bits is that of f32 rounded, as ours is, whatever numbers this PyTorch draws."""
    drawn = torch.randn

    def randn(*size, dtype=None, **options):
        return drawn(*size, dtype=torch.float32, **options).to(dtype or torch.float32)

    torch.randn = randn
    try:
        yield
    finally:
        torch.randn = drawn


def noise_difference(dtype, seed):
    """How far this PyTorch's noise of a type is from that of f32: (mean, largest) difference."""
    one, other = (torch.randn(1 << 16, generator=torch.Generator().manual_seed(seed), dtype=kind)
                  for kind in (torch.float32, DTYPES[dtype]))
    off = (one - other.float()).abs()
    return off.mean().item(), off.max().item()


@torch.inference_mode()
def pictures(folder, device, dtypes, settings, control_net="", given=None):
    """The whole pipeline without rounded products, in each of the types in turn, which files of
    that type or a narrower one lose nothing by: {type: (height, width, 3) of 0 ... 255}.
    settings: prompt, size, steps, guidance, seed. given: pictures for the pipeline by name."""
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    pipeline = load_pipeline(folder, control_net)
    pipeline.set_progress_bar_config(disable=True)
    asked = dict(given or {})
    if "mask_image" in asked:
        asked["strength"] = 1.0
    if isinstance(pipeline, (FluxPipeline, FluxFillPipeline)):
        asked["max_sequence_length"] = FLUX_TOKENS[pipeline.transformer.config.guidance_embeds]
    out = {}
    for dtype in dtypes:
        pipeline.to(device, DTYPES[dtype])
        with noise_as_in_f32():
            made = pipeline(prompt=settings["prompt"], height=settings["size"],
                            width=settings["size"], num_inference_steps=settings["steps"],
                            guidance_scale=settings["guidance"],
                            generator=torch.Generator("cpu").manual_seed(settings["seed"]),
                            output_type="np", **asked)
        out[dtype] = 255 * made.images[0]
    return out
