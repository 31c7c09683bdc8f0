#!/usr/bin/env python3
"""Makes the tiny random Z-Image among tests/models/image/data, a tokenizer as Qwen's, and what diffusers and
transformers make of them; see make_image_goldens.py, whose weights and files these are too. Besides, it makes
z_image_pipelines.json: the latents that diffusers' pipelines end with, on the CPU in float32. The tokenizer is
trained when there is none yet.

Run from the repository root (wrote the committed files with the versions below):
    python3 -m venv venv && venv/bin/pip install torch==2.15.0 transformers==5.24.0 \
        diffusers==0.42.1 tokenizers safetensors numpy pillow
    venv/bin/python tools/goldens/make_z_image_goldens.py tests/models/image/data tests/units/engine/data
"""

import json
import pathlib
import shutil

import arguments

ARGUMENTS = arguments.read(__name__, __doc__, ("folder", "tests/models/image/data"),
                           ("pipelines", "tests/units/engine/data"))

import diffusers
import numpy as np
import tokenizers
import torch
import transformers

import make_image_goldens as base
import make_pipeline_goldens as plain

NAME = "z_image"
WORDS = 420
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
# Qwen's own, and the part of its template that a single user's message takes.
SPLIT = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
         r"|\s+(?!\S)|\s+")
TEMPLATE = ("{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n"
            "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}")
TEXT = dict(vocab_size=448, hidden_size=40, intermediate_size=56, num_hidden_layers=4, num_attention_heads=4,
            num_key_value_heads=2, head_dim=16, max_position_embeddings=600, rope_theta=1000000.0,
            rms_norm_eps=1e-6, tie_word_embeddings=True)
TRANSFORMER = dict(all_patch_size=(2,), all_f_patch_size=(1,), in_channels=8, dim=96, n_layers=2,
                   n_refiner_layers=2, n_heads=3, n_kv_heads=3, norm_eps=1e-5, qk_norm=True, cap_feat_dim=40,
                   rope_theta=256.0, t_scale=1000.0, axes_dims=[8, 12, 12], axes_lens=[256, 64, 64])
VAE = dict(base.VAE, latent_channels=8, use_quant_conv=False, use_post_quant_conv=False,
           scaling_factor=0.3611, shift_factor=0.1159)
SCHEDULER = dict(num_train_timesteps=1000, use_dynamic_shifting=False, shift=3.0)
LONG = " ".join(["a tiny golden dragon on a table, misty portrait of a stormy castle by the window"] * 4)
CASE = {}  # what make_image_goldens reads of a case: nothing


def train_tokenizer(folder):
    """Byte-level merges as in Qwen's tokenizer.json."""
    model = tokenizers.Tokenizer(tokenizers.models.BPE())
    model.normalizer = tokenizers.normalizers.NFC()
    model.pre_tokenizer = tokenizers.pre_tokenizers.Sequence([
        tokenizers.pre_tokenizers.Split(tokenizers.Regex(SPLIT), "isolated", invert=False),
        tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    model.decoder = tokenizers.decoders.ByteLevel()
    model.train_from_iterator(base.prompts(4000, 1), tokenizers.trainers.BpeTrainer(
        vocab_size=WORDS, initial_alphabet=sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False))
    model.add_special_tokens(SPECIAL)
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=model, eos_token="<|im_end|>", pad_token="<|endoftext|>", chat_template=TEMPLATE)
    folder.mkdir(parents=True, exist_ok=True)
    model.save(str(folder / "tokenizer.json"), pretty=False)
    base.save_json(folder / "tokenizer_config.json",
                   {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<|im_end|>",
                    "pad_token": "<|endoftext|>", "chat_template": TEMPLATE}, indent=1)
    return tokenizer


def read_tokenizer(folder):
    if not (folder / "tokenizer.json").exists():
        train_tokenizer(folder)
    return transformers.PreTrainedTokenizerFast.from_pretrained(folder)


def text_encoder():
    return base.fill_weights(transformers.Qwen3Model(transformers.Qwen3Config(**TEXT)))


def transformer():
    return base.fill_weights(diffusers.ZImageTransformer2DModel(**TRANSFORMER))


def vae():
    return base.fill_weights(diffusers.AutoencoderKL(**VAE))


def make_text(out, folder, tokenizer):
    model = text_encoder()
    base.save_part(model, folder / "text_encoder", CASE, "model")
    turns = [tokenizer.apply_chat_template([{"role": "user", "content": text}], tokenize=False,
                                           add_generation_prompt=True)
             for text in ("a red cat on a table", "a tiny glowing owl, at sunset!")]
    rows = [tokenizer(turn)["input_ids"] for turn in turns]
    ids = torch.tensor([row[:min(map(len, rows))] for row in rows])
    np.save(out / "ids.npy", ids.numpy().astype(np.int32))
    states = model(ids, output_hidden_states=True).hidden_states[-2]
    base.store(out, "text_encoder.skip0", states)
    return states


def make_denoiser(out, folder, states):
    model = transformer()
    base.save_part(model, folder / "transformer", CASE, "diffusion_pytorch_model")
    x = torch.randn(2, TRANSFORMER["in_channels"], 6, 10,
                    generator=torch.Generator().manual_seed(base.SEED + 11))
    steps = torch.tensor([981.0, 20.5])
    base.store(out, "unet.x", x)
    base.store(out, "unet.steps", steps)
    made = model(list(x.unsqueeze(2).unbind(0)), (1000 - steps) / 1000, list(states.unbind(0)),
                 return_dict=False)[0]
    base.store(out, "unet.out", -torch.stack(made).squeeze(2))


def make_vae(out, folder):
    model = vae()
    base.save_part(model, folder / "vae", CASE, "diffusion_pytorch_model")
    base.run_vae(model, out, base.SEED + 20, model.config.latent_channels)
    image = torch.from_numpy(np.load(out / "vae.image.npy")).permute(0, 3, 1, 2)
    distribution = model.encode(image).latent_dist
    base.store(out, "vae.mean", distribution.mean)
    base.store(out, "vae.log_variance", distribution.logvar)


def write_index(folder):
    scheduler = dict(_class_name="FlowMatchEulerDiscreteScheduler", **SCHEDULER)
    base.save_json(folder / "model_index.json", dict(
        _class_name="ZImagePipeline", _diffusers_version=diffusers.__version__,
        scheduler=["diffusers", scheduler["_class_name"]], text_encoder=["transformers", "Qwen3Model"],
        tokenizer=["transformers", "Qwen2Tokenizer"],
        transformer=["diffusers", "ZImageTransformer2DModel"], vae=["diffusers", "AutoencoderKL"]), indent=1)
    (folder / "scheduler").mkdir(exist_ok=True)
    base.save_json(folder / "scheduler" / "scheduler_config.json", scheduler, indent=1)


def run(tokenizer, pipeline, request, **options):
    """request: what the test asks of the engine; options: what diffusers is asked for besides."""
    pipe = getattr(diffusers, pipeline)(
        scheduler=diffusers.FlowMatchEulerDiscreteScheduler(**SCHEDULER), vae=vae(),
        text_encoder=text_encoder(), tokenizer=tokenizer, transformer=transformer())
    pipe.set_progress_bar_config(disable=True)
    count = request.get("count", 1)
    request.setdefault("prompt", plain.PROMPT)
    # diffusers' guidance is one less than the usual number.
    with torch.no_grad():
        latents = pipe(request["prompt"], negative_prompt=plain.NEGATIVE, width=plain.WIDTH,
                       height=plain.HEIGHT, num_inference_steps=request["steps"], num_images_per_prompt=count,
                       generator=[torch.Generator().manual_seed(request["seed"] + i) for i in range(count)],
                       guidance_scale=request["guidance_scale"] - 1, output_type="latent", **options).images
    values = latents.permute(0, 2, 3, 1).reshape(-1).tolist()
    print(pipeline, {k: v for k, v in request.items() if k != "prompt"}, max(map(abs, values)))
    seed = request.pop("seed")
    return {"model": NAME, "seed": seed, "request": request, "latents": [float(f"{v:.6g}") for v in values]}


def make_pipelines(tokenizer, out):
    image = plain.init_image()
    cases = [
        run(tokenizer, "ZImagePipeline", dict(seed=90, steps=2, guidance_scale=1.0, count=2)),
        run(tokenizer, "ZImagePipeline", dict(seed=92, steps=3, guidance_scale=4.0)),
        # Its text is longer than the negative one by more than the padding of either.
        run(tokenizer, "ZImagePipeline", dict(seed=93, steps=2, guidance_scale=4.0, count=2, prompt=LONG)),
        run(tokenizer, "ZImageImg2ImgPipeline",
            dict(seed=95, steps=6, guidance_scale=1.0, strength=0.5, init=True), image=image, strength=0.5)]
    for strength in (1.0, 0.7):
        cases.append(run(tokenizer, "ZImageInpaintPipeline",
                         dict(seed=97, steps=5, guidance_scale=1.0, strength=strength, init=True, mask=True),
                         image=image, mask_image=plain.mask_image(), strength=strength))
    with open(out / "z_image_pipelines.json", "w", encoding="ascii") as file:
        file.write("[\n" + ",\n".join(json.dumps(case) for case in cases) + "\n]\n")


def main():
    data = pathlib.Path(ARGUMENTS.folder)
    tokenizer = read_tokenizer(data / "qwen_tokenizer")
    out = data / NAME
    shutil.rmtree(out, ignore_errors=True)
    folder = out / "model"
    folder.mkdir(parents=True)
    with torch.no_grad():
        make_denoiser(out, folder, make_text(out, folder, tokenizer))
        make_vae(out, folder)
    write_index(folder)
    make_pipelines(tokenizer, pathlib.Path(ARGUMENTS.pipelines))


if __name__ == "__main__":
    main()
