#!/usr/bin/env python3
"""Trains the tiny text-to-image model of this repository on one GPU, in about 25 minutes.

    train.py --bank emoji.npz --out model --vae-minutes 6 --unet-minutes 16

Writes a diffusers folder (AutoencoderKL, CLIPTextModel, UNet2DConditionModel, float16) after each
stage and now and then in between. Needs torch, diffusers and transformers. Stages are bounded by
time, and their learning rates follow the time that has passed. With --state DIR and --pause-after
the second stage stops where it is, and the same command goes on from there.
"""
import argparse
import copy
import json
import math
import multiprocessing
import os
import shutil
import time


def read_options():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--bank", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--vae-minutes", type=float, default=6)
    parser.add_argument("--unet-minutes", type=float, default=16)
    parser.add_argument("--vae-batch", type=int, default=64)
    parser.add_argument("--unet-batch", type=int, default=512)
    parser.add_argument("--vae-rate", type=float, default=6e-4)
    parser.add_argument("--rate", type=float, default=6e-4, help="of the UNet")
    parser.add_argument("--scenes", type=int, default=786432)
    parser.add_argument("--vae-from", help="a model whose VAE goes on; --vae-minutes 0 keeps it")
    parser.add_argument("--unet-from", help="a model whose tokenizer, text encoder and UNet go on")
    parser.add_argument("--state", help="a folder for what a pause has to keep")
    parser.add_argument("--pause-after", type=float, default=math.inf, help="minutes of the UNet")
    parser.add_argument("--eager", action="store_true", help="compile nothing")
    return parser.parse_args()


OPTIONS = read_options() if __name__ == "__main__" else None

# Below the options, so that --help works without them.
import numpy as np  # noqa: E402
import torch  # noqa: E402
import torch.nn.functional as functional  # noqa: E402
from diffusers import AutoencoderKL, UNet2DConditionModel  # noqa: E402
from transformers import CLIPTextConfig, CLIPTextModel, CLIPTokenizer  # noqa: E402

import scenes as scenery  # noqa: E402
import tokens  # noqa: E402

TOKENS = 77
VOCABULARY = 1024
VARIANTS = 2  # captions of a scene
GAMMA = 5.0  # of min-SNR weighting (Hang et al. 2023)
OFFSET_NOISE = 0.1


def make_vae():
    return AutoencoderKL(
        in_channels=3, out_channels=3, latent_channels=4, block_out_channels=(32, 64, 96, 96),
        down_block_types=("DownEncoderBlock2D",) * 4, up_block_types=("UpDecoderBlock2D",) * 4,
        layers_per_block=1, norm_num_groups=8, sample_size=scenery.SIDE)


def make_unet():
    return UNet2DConditionModel(
        sample_size=scenery.SIDE // 8, in_channels=4, out_channels=4,
        block_out_channels=(64, 128, 192, 192), layers_per_block=1,
        down_block_types=("CrossAttnDownBlock2D",) * 3 + ("DownBlock2D",),
        up_block_types=("UpBlock2D",) + ("CrossAttnUpBlock2D",) * 3,
        attention_head_dim=(1, 2, 3, 3), cross_attention_dim=192, norm_num_groups=16)


def make_text_encoder(begin, end):
    return CLIPTextModel(CLIPTextConfig(
        vocab_size=VOCABULARY, hidden_size=192, intermediate_size=768, num_hidden_layers=4,
        num_attention_heads=3, max_position_embeddings=TOKENS, hidden_act="quick_gelu",
        projection_dim=192, bos_token_id=begin, eos_token_id=end, pad_token_id=end))


class Average:
    """Exponential moving average of a module's parameters."""

    def __init__(self, modules, decay):
        self.sources = [p for module in modules for p in module.parameters()]
        self.copies = [copy.deepcopy(module).eval().requires_grad_(False) for module in modules]
        self.values = [p for module in self.copies for p in module.parameters()]
        self.decay, self.steps = decay, 0

    @torch.no_grad()
    def update(self):
        self.steps += 1
        decay = min(self.decay, (1 + self.steps) / (10 + self.steps))
        torch._foreach_lerp_(self.values, self.sources, 1 - decay)


def make_optimizer(parameters, weight_decay, device):
    """AdamW whose learning rate is a tensor, so that captured steps follow it."""
    cuda = device == "cuda"
    return torch.optim.AdamW(parameters, lr=torch.tensor(0.0, device=device), betas=(0.9, 0.99),
                             weight_decay=weight_decay, fused=cuda, capturable=cuda)


def record(step, device):
    """`step` as one launch: small models are bound by launches, not by arithmetic. It must not
    wait for the device."""
    if device != "cuda":
        return step
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(5):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    try:
        with torch.cuda.graph(graph):
            step()
    except RuntimeError as error:
        print(f"steps are not captured: {error}", flush=True)
        return step
    return graph.replay


class Course:
    """Learning rate and end of a stage by the share of its time that has passed."""

    def __init__(self, name, minutes, optimizer, peak, warm_up):
        self.name, self.seconds, self.optimizer = name, minutes * 60, optimizer
        self.peak, self.warm_up, self.step, self.start = peak, warm_up, 0, None
        self.before = 0.0  # seconds, of earlier processes

    def elapsed(self):
        return self.before + (time.time() - self.start if self.start else 0)

    def go_on(self, loss):
        if self.start is None:  # the first step compiles
            self.start = time.time()
        self.step += 1
        part = self.elapsed() / self.seconds
        rate = self.peak * min(1, self.step / self.warm_up) * (
            0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * min(part, 1))))
        for group in self.optimizer.param_groups:
            group["lr"].fill_(rate)
        if self.step % 500 == 0:
            print(f"{self.name} step {self.step} of {self.step / max(part, 1e-9):.0f}, "
                  f"loss {loss.item():.4f}, rate {rate:.2e}", flush=True)
        return part < 1


def gradients(x):
    return x[..., 1:, :] - x[..., :-1, :], x[..., :, 1:] - x[..., :, :-1]


def picture_loss(result, wanted):
    """L1 of pixels, of two coarser scales and of differences between neighbours."""
    loss = functional.l1_loss(result, wanted)
    for factor in (2, 4):
        loss = loss + 0.5 * functional.l1_loss(functional.avg_pool2d(result, factor),
                                               functional.avg_pool2d(wanted, factor))
    for ours, theirs in zip(gradients(result), gradients(wanted)):
        loss = loss + functional.l1_loss(ours, theirs)
    return loss


def train_vae(args, painter, count, vae):
    vae = vae.to(painter.device, memory_format=torch.channels_last)
    average = Average([vae], 0.999)
    optimizer = make_optimizer(vae.parameters(), 1e-4, painter.device)

    def loss_of(pixels):
        with torch.autocast(painter.device, torch.bfloat16):
            latents = vae.encode(pixels).latent_dist
            result = vae.decode(latents.sample()).sample
        return picture_loss(result.float(), pixels) + 1e-4 * latents.kl().mean() / 1024

    if not args.eager:
        loss_of = torch.compile(loss_of)
    course = Course("vae", args.vae_minutes, optimizer, args.vae_rate, 300)
    rng, going = np.random.default_rng(7), True
    while going:
        pixels = painter.render(rng.integers(count, size=args.vae_batch))
        loss = loss_of(pixels.contiguous(memory_format=torch.channels_last))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(vae.parameters(), 1.0)
        optimizer.step()
        average.update()
        going = course.go_on(loss)
    return average.copies[0]


@torch.no_grad()
def encode_all(vae, painter, count, batch):
    """Means of all scenes' latents, scaled to a deviation of one, float16."""
    latents = torch.empty(count, 4, scenery.SIDE // 8, scenery.SIDE // 8, dtype=torch.float16,
                          device=painter.device)
    error = 0.0
    for first in range(0, count, batch):
        rows = np.arange(first, min(first + batch, count))
        pixels = painter.render(rows).contiguous(memory_format=torch.channels_last)
        with torch.autocast(painter.device, torch.bfloat16):
            mean = vae.encode(pixels).latent_dist.mean
        latents[first:first + len(rows)] = mean
        if first == 0:
            result = vae.decode(mean.float()).sample.clamp(-1, 1)
            error = ((result - pixels) / 2).square().mean().item()
    deviation = latents[:65536].float().std().item()
    print(f"vae: PSNR {-10 * math.log10(max(error, 1e-10)):.2f} dB, latents' mean "
          f"{latents[:65536].float().mean().item():.3f}, deviation {deviation:.3f}", flush=True)
    vae.register_to_config(scaling_factor=round(1 / deviation, 5))
    return latents.mul_(vae.config.scaling_factor)


def tokenize(job):
    folder, scenes, items, seed = job
    tokenizer = CLIPTokenizer.from_pretrained(folder)
    texts = scenery.captions(scenes, items, seed, VARIANTS)
    ids = tokenizer([text for row in texts for text in row], padding="max_length",
                    max_length=TOKENS, truncation=True)["input_ids"]
    return np.array(ids, np.int16).reshape(-1, VARIANTS, TOKENS)


def noise_levels(device):
    """Cumulative products of the schedule of Stable Diffusion 1."""
    betas = torch.linspace(0.00085 ** 0.5, 0.012 ** 0.5, 1000, dtype=torch.float64) ** 2
    return torch.cumprod(1 - betas, 0).float().to(device)


def train_unet(args, device, latents, ids, models, save):
    """Predicts the noise; text encoder and UNet learn together. Saves averages of both."""
    unet, text = models
    unet = unet.to(device, memory_format=torch.channels_last)
    text = text.to(device)
    average = Average([unet, text], 0.9995)
    parameters = [*unet.parameters(), *text.parameters()]
    optimizer = make_optimizer(parameters, 0.01, device)
    levels = noise_levels(device)
    ratio = levels / (1 - levels)
    weights = ratio.clamp(max=GAMMA) / ratio

    def loss_of(clean, tokens_, noise, t):
        with torch.autocast(device, torch.bfloat16):
            states = text(tokens_).last_hidden_state
            level = levels[t][:, None, None, None]
            noisy = level.sqrt() * clean + (1 - level).sqrt() * noise
            guess = unet(noisy.contiguous(memory_format=torch.channels_last), t, states).sample
        return ((guess.float() - noise).square().mean((1, 2, 3)) * weights[t]).mean()

    if not args.eager:
        loss_of = torch.compile(loss_of)
    course = Course("unet", args.unet_minutes, optimizer, args.rate, 1000)
    shown = torch.zeros((), device=device)

    def step():
        rows = torch.randint(len(latents), (args.unet_batch,), device=device)
        variant = torch.randint(VARIANTS, (args.unet_batch,), device=device)
        clean = latents[rows].float()
        noise = torch.randn_like(clean)
        noise = noise + OFFSET_NOISE * torch.randn(len(noise), 4, 1, 1, device=device)
        t = torch.randint(1000, (args.unet_batch,), device=device)
        optimizer.zero_grad(set_to_none=True)
        loss = loss_of(clean, ids[rows, variant].long(), noise, t)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        shown.copy_(loss.detach())

    state = f"{args.state}/unet.pt" if args.state else None
    keepers = {"unet": unet, "text": text, "average unet": average.copies[0],
               "average text": average.copies[1], "optimizer": optimizer}
    if state and os.path.exists(state):
        saved = torch.load(state, map_location=device)
        for name, keeper in keepers.items():
            keeper.load_state_dict(saved[name])
        average.steps = course.step = saved["step"]
        course.before = saved["seconds"]
    step_at_once = record(step, device)
    going, pause, kept = True, args.pause_after * 60, time.time()
    while going:
        step_at_once()
        average.update()
        going = course.go_on(shown) and course.elapsed() - course.before < pause
        if time.time() - kept > 100:
            save(*average.copies)
            kept = time.time()
    save(*average.copies)
    print(f"{course.step} steps in {course.elapsed():.0f} s", flush=True)
    if state:
        torch.save({name: keeper.state_dict() for name, keeper in keepers.items()} |
                   {"step": course.step, "seconds": course.elapsed()}, state)


def write_json(path, value):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as out:
        json.dump(value, out, indent=2)
        out.write("\n")


def write_pipeline_files(folder):
    write_json(f"{folder}/model_index.json", {
        "_class_name": "StableDiffusionPipeline", "feature_extractor": [None, None],
        "requires_safety_checker": False, "safety_checker": [None, None],
        "scheduler": ["diffusers", "DPMSolverMultistepScheduler"],
        "text_encoder": ["transformers", "CLIPTextModel"],
        "tokenizer": ["transformers", "CLIPTokenizer"],
        "unet": ["diffusers", "UNet2DConditionModel"], "vae": ["diffusers", "AutoencoderKL"]})
    # The noise of Stable Diffusion 1. Its PNDM goes astray on this model under guidance.
    write_json(f"{folder}/scheduler/scheduler_config.json", {
        "_class_name": "DPMSolverMultistepScheduler", "algorithm_type": "dpmsolver++",
        "beta_end": 0.012, "beta_schedule": "scaled_linear", "beta_start": 0.00085,
        "num_train_timesteps": 1000, "prediction_type": "epsilon", "solver_order": 2,
        "solver_type": "midpoint", "steps_offset": 1, "timestep_spacing": "leading",
        "use_karras_sigmas": True})
    write_json(f"{folder}/generation_config.json",
               {"guidance_scale": 4, "num_inference_steps": 20})


def save_part(module, path):
    copy.deepcopy(module).half().save_pretrained(path, max_shard_size="16MB")


def prepare(args, device):
    """Trains the VAE; gives the latents and the captions' ids of all scenes, and keeps them."""
    kept = f"{args.state}/scenes.pt" if args.state else None
    if kept and os.path.exists(kept):
        return torch.load(kept, map_location=device)
    images, items = scenery.load_bank(args.bank)
    all_scenes = scenery.draw_scenes(args.scenes, len(items), seed=1)
    sample = scenery.captions(scenery.part(all_scenes, 0, 100000), items, 0, 1)
    if args.unet_from:
        shutil.copytree(f"{args.unet_from}/tokenizer", f"{args.out}/tokenizer", dirs_exist_ok=True)
    else:
        tokens.write_tokenizer(f"{args.out}/tokenizer", [row[0] for row in sample], VOCABULARY)
    write_pipeline_files(args.out)
    jobs = [(f"{args.out}/tokenizer", scenery.part(all_scenes, first, first + 16384), items, first)
            for first in range(0, args.scenes, 16384)]
    with multiprocessing.get_context("fork").Pool(max(os.cpu_count() - 2, 1)) as pool:
        captions = pool.map_async(tokenize, jobs, chunksize=1)
        painter = scenery.Painter(images, all_scenes, device)
        vae = make_vae()
        if args.vae_from:
            vae = AutoencoderKL.from_pretrained(f"{args.vae_from}/vae").float()
        if args.vae_minutes > 0:
            vae = train_vae(args, painter, args.scenes, vae)
        vae = vae.to(device, memory_format=torch.channels_last)
        latents = encode_all(vae, painter, args.scenes, 512)
        save_part(vae, f"{args.out}/vae")
        ids = torch.from_numpy(np.concatenate(captions.get())).to(device)
    if kept:
        os.makedirs(args.state, exist_ok=True)
        torch.save((latents, ids), kept)
    return latents, ids


def main(args):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(1)
    torch.set_float32_matmul_precision("high")
    torch.backends.cudnn.benchmark = True
    torch._dynamo.config.suppress_errors = True  # eager where the compiler fails
    latents, ids = prepare(args, device)
    if args.unet_from:
        models = (UNet2DConditionModel.from_pretrained(f"{args.unet_from}/unet").float(),
                  CLIPTextModel.from_pretrained(f"{args.unet_from}/text_encoder").float())
    else:
        models = (make_unet(), make_text_encoder(VOCABULARY - 2, VOCABULARY - 1))

    def save(unet, text):
        save_part(unet, f"{args.out}/unet")
        save_part(text, f"{args.out}/text_encoder")
        print(f"saved {args.out}", flush=True)

    train_unet(args, device, latents, ids, models, save)


if __name__ == "__main__":
    main(OPTIONS)
