"""What diffusers does with the parts of a text-to-image folder on the same device. Imported only
where torch and diffusers are installed."""

import gc
import statistics

import torch
from diffusers import AutoencoderKL, DiffusionPipeline, UNet2DConditionModel
from torch.utils.flop_counter import FlopCounterMode

from peers.torch_peer import timed

PROMPT_TOKENS = 77


def operations(work):
    """Multiplications and additions of products, convolutions and attention."""
    counter = FlopCounterMode(display=False)
    with counter:
        work()
    return counter.get_total_flops()


class Part:
    """A part in f16 with its channels last; `inputs` are what it is called with."""

    def __init__(self, module, call):
        self.module = module
        self.call = call

    @torch.inference_mode()
    def seconds(self, compiled, rounds=5, calls=10):
        """Of one call: the median of the rounds. Compiled steps are recorded as a graph."""
        step = self.call
        if compiled:
            step = torch.compile(self.call, mode="reduce-overhead", fullgraph=True)
            for _ in range(3):
                step()
        return statistics.median(timed("cuda:0", calls, step) for _ in range(rounds))

    @torch.inference_mode()
    def operations(self):
        return operations(self.call)


def on_device(module):
    return module.to("cuda:0", torch.float16, memory_format=torch.channels_last).eval()


def normal(*shape):
    return torch.randn(shape, dtype=torch.float16, device="cuda:0")


def denoiser(folder, size, batch):
    """The UNet of a folder in diffusers' layout, for pictures of `size` pixels along each side."""
    unet = on_device(UNet2DConditionModel.from_pretrained(folder, subfolder="unet"))
    side = size // 8
    x = normal(batch, unet.config.in_channels, side, side).to(memory_format=torch.channels_last)
    text = normal(batch, PROMPT_TOKENS, unet.config.cross_attention_dim)
    time = torch.full((batch,), 500, device="cuda:0")
    added = None
    if unet.config.addition_embed_type == "text_time":
        width = (unet.config.projection_class_embeddings_input_dim
                 - 6 * unet.config.addition_time_embed_dim)
        added = {"text_embeds": normal(batch, width), "time_ids": normal(batch, 6)}
    return Part(unet, lambda: unet(x, time, text, added_cond_kwargs=added, return_dict=False)[0])


def decoder(folder, size):
    vae = on_device(AutoencoderKL.from_pretrained(folder, subfolder="vae"))
    latent = normal(1, vae.config.latent_channels, size // 8, size // 8).to(
        memory_format=torch.channels_last)
    return Part(vae, lambda: vae.decode(latent, return_dict=False)[0])


def release():
    torch.compiler.reset()
    gc.collect()
    torch.cuda.empty_cache()


@torch.inference_mode()
def picture(folder, prompt, size, steps, guidance, seed):
    """The whole pipeline in f32 without rounded products: (height, width, 3) of 0 ... 255."""
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    pipeline = DiffusionPipeline.from_pretrained(folder, torch_dtype=torch.float32,
                                                 safety_checker=None)
    pipeline.set_progress_bar_config(disable=True)
    pipeline.to("cuda:0")
    made = pipeline(prompt, height=size, width=size, num_inference_steps=steps,
                    guidance_scale=guidance, output_type="np",
                    generator=torch.Generator("cpu").manual_seed(seed)).images[0]
    return 255 * made
