#!/usr/bin/env python3
"""Writes a diffusers folder of a real image model's shape with random weights, for benchmarks and comparisons.

    tools/make_random_image_model.py sd15 DIR [--dtype float16] [--device cuda]
    tools/make_random_image_model.py flux-dev DIR --dtype bfloat16 --fp8 FLUX.safetensors
    tools/make_random_image_model.py flux-fill DIR --dtype bfloat16 --gguf FLUX.gguf --gguf-type q4_0

Needs PyTorch, diffusers, transformers and safetensors, for --gguf gguf besides. Weights are normal with a deviation of
1 / sqrt(inputs), norms are ones, biases zeros, so that activations stay in range. CLIP's tokenizer knows single bytes
only, T5's is that of the tests. sd3 and sd35-medium have no T5, which their pipelines do without. controlnet-sd15 is
the network alone. With --tiny everything is narrow and shallow, to try programs on.

--fp8 also writes FLUX's transformer to a file of its own in the original layout, matrices as float8_e4m3 with a scale;
the folder then holds the same values. --gguf does so with matrices in blocks of 32.
"""
import argparse
import json
import shutil
from pathlib import Path

T5_TOKENIZER = Path(__file__).parent.parent / "tests/models/image/data/t5_tokenizer"

CLIP_L = dict(hidden_size=768, intermediate_size=3072, num_hidden_layers=12, num_attention_heads=12,
              hidden_act="quick_gelu", projection_dim=768)
CLIP_H = dict(hidden_size=1024, intermediate_size=4096, num_hidden_layers=23, num_attention_heads=16,
              hidden_act="gelu", projection_dim=512)
CLIP_BIGG = dict(hidden_size=1280, intermediate_size=5120, num_hidden_layers=32, num_attention_heads=20,
                 hidden_act="gelu", projection_dim=1280)
T5_XXL = dict(vocab_size=32128, d_model=4096, d_kv=64, num_heads=64, d_ff=10240, num_layers=24,
              relative_attention_num_buckets=32, relative_attention_max_distance=128,
              feed_forward_proj="gated-gelu", tie_word_embeddings=False)
VAE = dict(block_out_channels=[128, 256, 512, 512], down_block_types=["DownEncoderBlock2D"] * 4,
           up_block_types=["UpDecoderBlock2D"] * 4, layers_per_block=2, latent_channels=4)
VAE16 = dict(VAE, latent_channels=16, sample_size=1024, use_quant_conv=False, use_post_quant_conv=False)
UNET1 = dict(sample_size=64, block_out_channels=[320, 640, 1280, 1280], cross_attention_dim=768, attention_head_dim=8)
XL_BLOCKS = dict(down_block_types=["DownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D"],
                 up_block_types=["CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "UpBlock2D"])
FLUX = dict(in_channels=64, num_layers=19, num_single_layers=38, attention_head_dim=128, num_attention_heads=24,
            joint_attention_dim=4096, pooled_projection_dim=768, axes_dims_rope=[16, 56, 56])
CHECKER = ["safety_checker", "feature_extractor"]
EULER = {"_class_name": "EulerDiscreteScheduler", "beta_start": 0.00085, "beta_end": 0.012,
         "beta_schedule": "scaled_linear", "num_train_timesteps": 1000, "prediction_type": "epsilon",
         "steps_offset": 1, "timestep_spacing": "leading"}
FLOW = {"_class_name": "FlowMatchEulerDiscreteScheduler", "num_train_timesteps": 1000, "shift": 3.0}
DYNAMIC = dict(FLOW, use_dynamic_shifting=True, base_shift=0.5, max_shift=1.15, base_image_seq_len=256,
               max_image_seq_len=4096)
CLIP, CLIP_P, T5 = "CLIPTextModel", "CLIPTextModelWithProjection", "T5EncoderModel"
LCM = {"_class_name": "LCMScheduler", "beta_start": 0.00085, "beta_end": 0.012, "beta_schedule": "scaled_linear",
       "num_train_timesteps": 1000, "prediction_type": "epsilon", "original_inference_steps": 50,
       "timestep_scaling": 10.0}
SD3 = dict(sample_size=128, patch_size=2, in_channels=16, out_channels=16, num_layers=24, attention_head_dim=64,
           num_attention_heads=24, joint_attention_dim=4096, caption_projection_dim=1536, pooled_projection_dim=2048)
SD3_PARTS = dict(
    pipeline="StableDiffusion3Pipeline", text=[(CLIP_P, CLIP_L), (CLIP_P, CLIP_BIGG)],
    absent=["text_encoder_3", "tokenizer_3"], vae=dict(VAE16, scaling_factor=1.5305, shift_factor=0.0609),
    scheduler=FLOW)
SD15_PARTS = dict(absent=CHECKER, text=[(CLIP, CLIP_L)], vae=dict(VAE, sample_size=512, scaling_factor=0.18215))
FLUX_PARTS = dict(pipeline="FluxPipeline", text=[(CLIP, CLIP_L), (T5, T5_XXL)],
                  vae=dict(VAE16, scaling_factor=0.3611, shift_factor=0.1159))
SHAPES = {
    "sd15": dict(SD15_PARTS, pipeline="StableDiffusionPipeline", denoiser=("UNet2DConditionModel", UNET1),
                 scheduler=EULER),
    # Latents, a mask, and the latents of the kept part.
    "sd15-inpaint": dict(SD15_PARTS, pipeline="StableDiffusionInpaintPipeline",
                         denoiser=("UNet2DConditionModel", dict(UNET1, in_channels=9)), scheduler=EULER),
    "lcm-sd15": dict(SD15_PARTS, pipeline="LatentConsistencyModelPipeline",
                     denoiser=("UNet2DConditionModel", dict(UNET1, time_cond_proj_dim=256)), scheduler=LCM),
    "sd21": dict(
        pipeline="StableDiffusionPipeline", absent=CHECKER, text=[(CLIP, CLIP_H)],
        denoiser=("UNet2DConditionModel", dict(UNET1, sample_size=96, cross_attention_dim=1024,
                                               attention_head_dim=[5, 10, 20, 20], use_linear_projection=True)),
        vae=dict(VAE, sample_size=768, scaling_factor=0.18215),
        scheduler=dict(EULER, prediction_type="v_prediction")),
    "sdxl": dict(
        pipeline="StableDiffusionXLPipeline", text=[(CLIP, CLIP_L), (CLIP_P, CLIP_BIGG)],
        denoiser=("UNet2DConditionModel", dict(
            XL_BLOCKS, sample_size=128, block_out_channels=[320, 640, 1280], cross_attention_dim=2048,
            attention_head_dim=[5, 10, 20], transformer_layers_per_block=[1, 2, 10], use_linear_projection=True,
            addition_embed_type="text_time", addition_time_embed_dim=256,
            projection_class_embeddings_input_dim=2816)),
        vae=dict(VAE, sample_size=1024, scaling_factor=0.13025), scheduler=EULER),
    "sd3": dict(SD3_PARTS, denoiser=("SD3Transformer2DModel", dict(SD3, pos_embed_max_size=192))),
    "sd35-medium": dict(SD3_PARTS, denoiser=("SD3Transformer2DModel", dict(
        SD3, pos_embed_max_size=384, dual_attention_layers=list(range(13)), qk_norm="rms_norm"))),
    "flux-dev": dict(FLUX_PARTS, denoiser=("FluxTransformer2DModel", dict(FLUX, guidance_embeds=True)),
                     scheduler=DYNAMIC),
    # Latents, those of the kept part, and the 8 x 8 pixels of a mask, four places each.
    "flux-fill": dict(FLUX_PARTS, pipeline="FluxFillPipeline", scheduler=DYNAMIC, denoiser=(
        "FluxTransformer2DModel", dict(FLUX, in_channels=384, out_channels=64, guidance_embeds=True))),
    "flux-schnell": dict(FLUX_PARTS, denoiser=("FluxTransformer2DModel", FLUX), scheduler=dict(FLOW, shift=1.0)),
    "controlnet-sd15": dict(controlnet=dict(
        block_out_channels=UNET1["block_out_channels"], cross_attention_dim=768, attention_head_dim=8)),
}
# Settings of tiny models.
TINY = dict(hidden_size=64, intermediate_size=96, num_hidden_layers=2, d_model=64, d_kv=16, num_heads=4, d_ff=96,
            caption_projection_dim=64, pos_embed_max_size=32, transformer_layers_per_block=[1, 1, 2],
            dual_attention_layers=[0])
TINY_WIDTHS = {"UNet2DConditionModel": [32, 64, 64, 64], "ControlNetModel": [32, 64, 64, 64],
               "AutoencoderKL": [32, 32, 64, 64]}
LARGEST = {"q8_0": 127, "q4_0": 7}  # of a block's whole numbers


def read_options():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("shape", choices=sorted(SHAPES))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--dtype", default="float16")
    parser.add_argument("--device", default="cpu", help="where the random numbers are made")
    parser.add_argument("--fp8", type=Path, metavar="FILE", help="FLUX's transformer in this file too")
    parser.add_argument("--gguf", type=Path, metavar="FILE", help="FLUX's transformer in this file too")
    parser.add_argument("--gguf-type", choices=sorted(LARGEST), default="q8_0", help="of its matrices")
    parser.add_argument("--tiny", action="store_true", help="few and narrow layers")
    options = parser.parse_args()
    if (options.fp8 or options.gguf) and not options.shape.startswith("flux"):
        parser.error("--fp8 and --gguf are for FLUX")
    if options.fp8 and options.gguf:
        parser.error("the folder holds the values of one of --fp8 and --gguf")
    return options


OPTIONS = read_options() if __name__ == "__main__" else None

# Below the options, so that --help works without them.
import diffusers  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402
from safetensors.torch import save_file  # noqa: E402


def tiny(kind, config, text_width):
    """The same settings with few and narrow layers; `text_width`: of the states that a denoiser reads."""
    small = {name: TINY.get(name, value) for name, value in config.items()}
    if kind == T5:
        small["num_layers"] = 2
    elif "block_out_channels" in config:
        small["block_out_channels"] = TINY_WIDTHS[kind][:len(config["block_out_channels"])]
        if "attention_head_dim" in config:
            heads = config["attention_head_dim"]
            small["attention_head_dim"] = 4 if isinstance(heads, int) else [2, 4, 4, 4][:len(heads)]
    elif "num_attention_heads" in config:
        small.update(num_attention_heads=4)
        if "num_layers" in config:
            small.update(num_layers=2, attention_head_dim=16, joint_attention_dim=text_width)
        if "num_single_layers" in config:
            small.update(num_single_layers=2, attention_head_dim=32, axes_dims_rope=[4, 14, 14])
        if kind == CLIP:
            small.update(projection_dim=64)
    if "cross_attention_dim" in config:
        small["cross_attention_dim"] = text_width
    return small


def tiny_shape(shape):
    out = dict(shape)
    width = 64 * (2 if shape.get("pipeline") == "StableDiffusionXLPipeline" else 1)
    if "controlnet" in shape:
        return {"controlnet": tiny("ControlNetModel", shape["controlnet"], 64)}
    if shape["pipeline"] == "StableDiffusion3Pipeline":
        width = 160  # both CLIPs side by side and zeros
    out["text"] = [(kind, tiny(kind, config, 0)) for kind, config in shape["text"]]
    kind, config = shape["denoiser"]
    config = tiny(kind, config, width)
    if kind == "FluxTransformer2DModel":
        config["pooled_projection_dim"] = TINY["hidden_size"]
    out["denoiser"] = (kind, config)
    out["vae"] = tiny("AutoencoderKL", shape["vae"], 0)
    return out


def byte_alphabet():
    """GPT-2's printable stand-in for each byte."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    extra = iter(range(256, 512))
    return [chr(b) if b in printable else chr(next(extra)) for b in range(256)]


def write_clip_tokenizer(folder):
    folder.mkdir(exist_ok=True)
    pieces = byte_alphabet()
    vocab = {piece: i for i, piece in enumerate(pieces + [piece + "</w>" for piece in pieces])}
    vocab.update({"<|startoftext|>": 49406, "<|endoftext|>": 49407})
    (folder / "vocab.json").write_text(json.dumps(vocab))
    (folder / "merges.txt").write_text("#version: 0.2\n")
    config = {"bos_token": "<|startoftext|>", "eos_token": "<|endoftext|>", "pad_token": "<|endoftext|>",
              "unk_token": "<|endoftext|>", "model_max_length": 77, "tokenizer_class": "CLIPTokenizer"}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))


def write_t5_tokenizer(folder):
    folder.mkdir(exist_ok=True)
    for file in ("spiece.model", "tokenizer.json"):
        shutil.copyfile(T5_TOKENIZER / file, folder / file)
    config = {"eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>", "extra_ids": 0,
              "model_max_length": 512, "tokenizer_class": "T5Tokenizer"}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))


def deviation(name, shape, head_dim):
    if name.endswith("pos_embed"):
        return 0.5
    inputs = 1000 if "embedding.weight" in name else shape[1:].numel()
    # T5 does not divide its scores by the root of a head's width; its queries are that much smaller.
    return (inputs * (head_dim if ".SelfAttention.q." in name else 1)) ** -0.5


def random_value(name, shape, options, head_dim):
    if name.endswith("position_ids"):
        return torch.arange(shape[-1]).expand(shape).contiguous()
    dtype = getattr(torch, options.dtype)
    if len(shape) < 2:
        return (torch.zeros if name.endswith("bias") else torch.ones)(shape, dtype=dtype)
    value = torch.randn(shape, device=options.device) * deviation(name, shape, head_dim)
    return value.to(dtype).cpu()


def save(state, file):
    save_file(state, file, metadata={"format": "pt"})


def random_state(model, options, head_dim=1):
    # T5's table of tokens has two names.
    return {name: random_value(name, value.shape, options, head_dim) for name, value in model.state_dict().items()
            if name != "encoder.embed_tokens.weight"}


def write_part(folder, config, state, file):
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config, indent=1))
    save(state, folder / file)


def diffusers_part(folder, kind, config, options, change=lambda state: None):
    with torch.device("meta"):
        model = getattr(diffusers, kind).from_config(config)
    state = random_state(model, options)
    change(state)
    write_part(folder, dict(model.config, _class_name=kind), state,
               "diffusion_pytorch_model.safetensors")


def write_text(folder, number, kind, settings, options):
    suffix = f"_{number + 1}" if number > 0 else ""
    if kind == T5:
        config = transformers.T5Config(**settings)
        write_t5_tokenizer(folder / f"tokenizer{suffix}")
    else:
        config = transformers.CLIPTextConfig(vocab_size=49408, max_position_embeddings=77, bos_token_id=49406,
                                             eos_token_id=49407, **settings)
        write_clip_tokenizer(folder / f"tokenizer{suffix}")
    with torch.device("meta"):
        model = getattr(transformers, kind)(config)
    write_part(folder / f"text_encoder{suffix}", dict(config.to_dict(), architectures=[kind]),
               random_state(model, options, settings.get("d_kv", 1)), "model.safetensors")
    tokenizer = "T5TokenizerFast" if kind == T5 else "CLIPTokenizer"
    return {f"text_encoder{suffix}": ["transformers", kind],
            f"tokenizer{suffix}": ["transformers", tokenizer]}


GGUF_BLOCK = 32
FP8_SCALE = 2.0**-8  # a power of two: 16-bit floats hold the products

FLUX_DOUBLE = {"img_attn.qkv": ["attn.to_q", "attn.to_k", "attn.to_v"],
               "txt_attn.qkv": ["attn.add_q_proj", "attn.add_k_proj", "attn.add_v_proj"],
               "img_attn.norm.query_norm": ["attn.norm_q"], "img_attn.norm.key_norm": ["attn.norm_k"],
               "txt_attn.norm.query_norm": ["attn.norm_added_q"], "txt_attn.norm.key_norm": ["attn.norm_added_k"],
               "img_attn.proj": ["attn.to_out.0"], "txt_attn.proj": ["attn.to_add_out"],
               "img_mod.lin": ["norm1.linear"], "txt_mod.lin": ["norm1_context.linear"],
               "img_mlp.0": ["ff.net.0.proj"], "img_mlp.2": ["ff.net.2"],
               "txt_mlp.0": ["ff_context.net.0.proj"], "txt_mlp.2": ["ff_context.net.2"]}
FLUX_SINGLE = {"linear1": ["attn.to_q", "attn.to_k", "attn.to_v", "proj_mlp"], "linear2": ["proj_out"],
               "modulation.lin": ["norm.linear"], "norm.query_norm": ["attn.norm_q"],
               "norm.key_norm": ["attn.norm_k"]}
FLUX_ROOT = {"img_in": ["x_embedder"], "txt_in": ["context_embedder"], "final_layer.linear": ["proj_out"],
             "final_layer.adaLN_modulation.1": ["norm_out.linear"],
             **{f"{mine}_in.{side}_layer": [f"time_text_embed.{theirs}_embedder.linear_{i}"]
                for mine, theirs in (("time", "timestep"), ("vector", "text"), ("guidance", "guidance"))
                for i, side in ((1, "in"), (2, "out"))}}


def original_flux_layers(config):
    """{layer of the original file: layers of diffusers, one on top of the other}."""
    layers = {name: of for name, of in FLUX_ROOT.items()
              if config.get("guidance_embeds") or not name.startswith("guidance")}
    for theirs, mine, table, count in (
            ("double_blocks", "transformer_blocks", FLUX_DOUBLE, config["num_layers"]),
            ("single_blocks", "single_transformer_blocks", FLUX_SINGLE, config["num_single_layers"])):
        for i in range(count):
            layers.update({f"{theirs}.{i}.{name}": [f"{mine}.{i}.{of}" for of in parts]
                           for name, parts in table.items()})
    return layers


def original_value(name, layer, state, kind):
    value = torch.cat([state.pop(f"{part}.{kind}") for part in layer])
    # The last norm has its shift before its scale.
    return torch.cat(value.chunk(2)[::-1]) if name == "final_layer.adaLN_modulation.1" else value


def one_byte(value, device):
    return (value.to(device) / FP8_SCALE).to(torch.float8_e4m3fn)


def write_fp8(state, config, file, device):
    """Rounds the matrices of `state` and writes them as the original file has them."""
    for name, value in state.items():
        if value.dim() == 2:
            state[name] = (one_byte(value, device).to(value.dtype) * FP8_SCALE).cpu()
    left, out = dict(state), {}
    for name, layer in original_flux_layers(config).items():
        value = original_value(name, layer, left, "weight")
        if value.dim() == 2:
            out[f"{name}.weight"] = one_byte(value, device).cpu()
            out[f"{name}.scale_weight"] = torch.tensor(FP8_SCALE)
        else:
            out[f"{name}.scale"] = value
        if f"{layer[0]}.bias" in left:
            out[f"{name}.bias"] = original_value(name, layer, left, "bias")
    assert not left, f"the original layout has no place for {sorted(left)}"
    out["scaled_fp8"] = torch.zeros(0, dtype=torch.float8_e4m3fn)
    save(out, file)


def blocks_of(value, largest):
    """(blocks, 32) whole numbers and the blocks' scales, powers of two: 16-bit floats hold the products."""
    blocks = value.float().reshape(-1, GGUF_BLOCK)
    most = blocks.abs().amax(1, keepdim=True).clamp(min=2.0**-14)
    scale = torch.exp2(torch.ceil(torch.log2(most / largest)))
    return torch.round(blocks / scale), scale


def block_bytes(numbers, scale, kind):
    """As ggml stores them, a scale in f16 before each block."""
    if kind == "q4_0":
        shifted = (numbers + 8).to(torch.uint8)
        packed = shifted[:, :GGUF_BLOCK // 2] | shifted[:, GGUF_BLOCK // 2:] << 4
    else:
        packed = numbers.to(torch.int8).view(torch.uint8)
    return torch.cat([scale.half().view(torch.uint8), packed], 1)


def add_gguf_tensor(writer, name, value, options):
    import gguf

    if value.dim() != 2:
        writer.add_tensor(name, value.float().numpy())
        return
    kind = options.gguf_type
    numbers, scale = blocks_of(value.to(options.device), LARGEST[kind])
    rows = block_bytes(numbers, scale, kind).reshape(value.shape[0], -1).cpu().numpy()
    writer.add_tensor(name, rows, raw_dtype=gguf.GGMLQuantizationType[kind.upper()])


def write_gguf(state, config, options):
    """Rounds the matrices of `state` and writes them as the original file has them."""
    import gguf

    for name, value in state.items():
        if value.dim() == 2:
            numbers, scale = blocks_of(value.to(options.device), LARGEST[options.gguf_type])
            state[name] = (numbers * scale).reshape(value.shape).to(value.dtype).cpu()
    left = dict(state)
    writer = gguf.GGUFWriter(options.gguf, "flux")
    for name, layer in original_flux_layers(config).items():
        value = original_value(name, layer, left, "weight")
        add_gguf_tensor(writer, f"{name}.weight" if value.dim() == 2 else f"{name}.scale", value, options)
        if f"{layer[0]}.bias" in left:
            add_gguf_tensor(writer, f"{name}.bias", original_value(name, layer, left, "bias"), options)
    assert not left, f"the original layout has no place for {sorted(left)}"
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def write_model(shape, folder, options):
    index = {"_class_name": shape["pipeline"], "_diffusers_version": diffusers.__version__,
             "vae": ["diffusers", "AutoencoderKL"], "scheduler": ["diffusers", shape["scheduler"]["_class_name"]]}
    for i, (kind, settings) in enumerate(shape["text"]):
        index.update(write_text(folder, i, kind, settings, options))
    kind, config = shape["denoiser"]
    name = "unet" if kind == "UNet2DConditionModel" else "transformer"
    index[name] = ["diffusers", kind]
    index.update({absent: [None, None] for absent in shape.get("absent", [])})

    def change(state):
        if options.fp8:
            write_fp8(state, config, options.fp8, options.device)
        if options.gguf:
            write_gguf(state, config, options)

    diffusers_part(folder / name, kind, config, options, change)
    diffusers_part(folder / "vae", "AutoencoderKL", shape["vae"], options)
    (folder / "scheduler").mkdir(exist_ok=True)
    (folder / "scheduler" / "scheduler_config.json").write_text(json.dumps(shape["scheduler"]))
    (folder / "model_index.json").write_text(json.dumps(index))


def main(options):
    shape = tiny_shape(SHAPES[options.shape]) if options.tiny else SHAPES[options.shape]
    options.folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    if "controlnet" in shape:
        diffusers_part(options.folder, "ControlNetModel", shape["controlnet"], options)
    else:
        write_model(shape, options.folder, options)


if __name__ == "__main__":
    main(OPTIONS)
