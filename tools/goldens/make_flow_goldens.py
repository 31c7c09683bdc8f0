#!/usr/bin/env python3
"""Makes the tiny random models of Stable Diffusion 3 and FLUX among tests/models/image/data, and what
diffusers and transformers make of them; see make_image_goldens.py, whose weights and files these
are too. T5's tokenizer is trained when there is none yet, in SentencePiece's form, from which
transformers makes the other one.

Run from the repository root, in make_image_goldens.py's environment with sentencepiece besides:
    venv/bin/python tools/goldens/make_flow_goldens.py tests/models/image/data [case ...]
"""

import io
import json
import pathlib
import shutil

import arguments

ARGUMENTS = arguments.read(__name__, __doc__, ("folder", "tests/models/image/data"), ("cases...", "only these"))

import diffusers
import numpy as np
import sentencepiece
import torch
import transformers

import make_image_goldens as base

T5_PIECES = 400
T5_TOKENS = 24
# What SentencePiece's own rules do is too much to commit: ligatures, fractions, wide spaces.
RULES = [("\ufb01", "fi"), ("\ufb02", "fl"), ("\u00bd", "1\u20442"), ("e\u0301", "\u00e9"),
         ("\u3000", " "), ("\u00a0", " "), ("\t", " "), ("\n", " "), ("\u200b", "")]

T5 = dict(vocab_size=512, d_model=80, d_kv=12, num_heads=4, d_ff=96, num_layers=2,
          relative_attention_num_buckets=16, relative_attention_max_distance=12,
          feed_forward_proj="gated-gelu", tie_word_embeddings=False)
CLIP_L = dict(kind="CLIPTextModelWithProjection")
CLIP_G = dict(kind="CLIPTextModelWithProjection", hidden_act="gelu", hidden_size=40,
              num_attention_heads=5, projection_dim=20)
SD3 = dict(sample_size=16, patch_size=2, in_channels=8, out_channels=8, num_layers=3,
           attention_head_dim=8, num_attention_heads=3, joint_attention_dim=80,
           caption_projection_dim=24, pooled_projection_dim=44, pos_embed_max_size=12)
FLUX = dict(in_channels=32, num_layers=2, num_single_layers=2, attention_head_dim=32,
            num_attention_heads=2, joint_attention_dim=80, pooled_projection_dim=32,
            axes_dims_rope=(4, 14, 14))
VAE = dict(latent_channels=8, use_quant_conv=False, use_post_quant_conv=False)
SD3_VAE = dict(VAE, scaling_factor=1.5305, shift_factor=0.0609)
FLUX_VAE = dict(VAE, scaling_factor=0.3611, shift_factor=0.1159)
DYNAMIC = dict(shift=3.0, use_dynamic_shifting=True, base_shift=0.5, max_shift=1.15,
               base_image_seq_len=256, max_image_seq_len=4096)

CASES = {
    "sd3": dict(pipeline="StableDiffusion3Pipeline", clips=[CLIP_L, CLIP_G], t5=True,
                transformer=SD3, vae=SD3_VAE, scheduler=dict(shift=3.0)),
    "sd35": dict(pipeline="StableDiffusion3Pipeline", clips=[CLIP_L, CLIP_G], t5=False,
                 transformer=dict(SD3, dual_attention_layers=(0, 1), qk_norm="rms_norm"),
                 vae=SD3_VAE, scheduler=dict(shift=3.0)),
    "flux": dict(pipeline="FluxPipeline", clips=[dict(kind="CLIPTextModel")], t5=True,
                 transformer=dict(FLUX, guidance_embeds=True), vae=FLUX_VAE, scheduler=DYNAMIC),
    "schnell": dict(pipeline="FluxPipeline", clips=[dict(kind="CLIPTextModel")], t5=True,
                    transformer=FLUX, vae=FLUX_VAE, scheduler=dict(shift=1.0)),
    # Two latents; two latents and the 4 x 4 pixels of a mask.
    "flux_control": dict(pipeline="FluxPipeline", clips=[dict(kind="CLIPTextModel")], t5=True,
                         transformer=dict(FLUX, in_channels=64, out_channels=32,
                                          guidance_embeds=True),
                         vae=FLUX_VAE, scheduler=DYNAMIC),
    "flux_fill": dict(pipeline="FluxPipeline", clips=[dict(kind="CLIPTextModel")], t5=True,
                      transformer=dict(FLUX, in_channels=128, out_channels=32,
                                       guidance_embeds=True),
                      vae=FLUX_VAE, scheduler=DYNAMIC),
}


def train_t5_tokenizer(folder):
    """spiece.model with T5's special ids, and transformers' tokenizer.json of it."""
    folder.mkdir(parents=True, exist_ok=True)
    rules = folder / "rules.tsv.tmp"
    lines = ["\t".join(" ".join(f"{ord(c):X}" for c in side) for side in rule) for rule in RULES]
    rules.write_text("\n".join(lines) + "\n", encoding="utf-8")
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(base.prompts(4000, 1) + base.ODD * 20), model_writer=model,
        model_type="unigram", vocab_size=T5_PIECES, character_coverage=0.99, pad_id=0, eos_id=1,
        unk_id=2, bos_id=-1, normalization_rule_tsv=str(rules), hard_vocab_limit=False,
        minloglevel=2)
    rules.unlink()
    (folder / "spiece.model").write_bytes(model.getvalue())
    tokenizer = transformers.T5Tokenizer.from_pretrained(folder)
    tokenizer.backend_tokenizer.save(str(folder / "tokenizer.json"), pretty=False)
    pieces = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    texts = base.ODD + base.prompts(200 - len(base.ODD), 2)
    base.save_json(folder / "golden.json",
                   [[t, tokenizer(t)["input_ids"], pieces.encode(t) + [1]] for t in texts])


def t5_tokenizer(folder):
    if not (folder / "spiece.model").exists():
        train_t5_tokenizer(folder)
    return transformers.T5Tokenizer.from_pretrained(folder)


def tied_shapes(model):
    """Without the second name of the table of tokens, which files leave out."""
    state = {k: v for k, v in model.state_dict().items() if k != "encoder.embed_tokens.weight"}
    return {k: list(v.shape) for k, v in state.items() if v.is_floating_point()}


def t5_encoder():
    model = base.fill_weights(transformers.T5EncoderModel(transformers.T5Config(**T5)))
    table = base.weight_values("shared.weight", tuple(model.shared.weight.shape))
    with torch.no_grad():
        model.shared.weight.copy_(torch.from_numpy(table))
    model.encoder.embed_tokens = model.shared
    return model


def clip_encoder(changes):
    config = {k: v for k, v in changes.items() if k != "kind"}
    kind = getattr(transformers, changes["kind"])
    return base.fill_weights(kind(transformers.CLIPTextConfig(**dict(base.TEXT, **config))))


def transformer(case):
    kind = (diffusers.FluxTransformer2DModel if case["pipeline"] == "FluxPipeline"
            else diffusers.SD3Transformer2DModel)
    return base.fill_weights(kind(**case["transformer"]))


def vae(case):
    return base.fill_weights(diffusers.AutoencoderKL(**dict(base.VAE, **case["vae"])))


def make_text(case, out, folder, clip_tokens, t5_tokens):
    texts = ["a red cat on a table", "a tiny glowing owl, at sunset!"]
    ids = base.token_rows(clip_tokens, texts, 14)
    np.save(out / "ids.npy", ids.numpy().astype(np.int32))
    hidden, pooled = [], []
    for i, changes in enumerate(case["clips"]):
        model = clip_encoder(changes)
        name = f"text_encoder{'' if i == 0 else f'_{i + 1}'}"
        base.save_part(model, folder / name, case, "model")
        states = model(ids, output_hidden_states=True)
        projected = changes["kind"].endswith("Projection")
        hidden.append(states.hidden_states[-2] if projected else states.last_hidden_state)
        pooled.append(states.text_embeds if projected else states.pooler_output)
        base.store(out, f"{name}.skip0", hidden[-1])
        base.store(out, f"{name}.pooled", pooled[-1])
    flux = case["pipeline"] == "FluxPipeline"
    if case["t5"]:
        model = t5_encoder()
        name = f"text_encoder_{len(case['clips']) + 1}"
        base.save_part(model, folder / name, case, "model")
        base.save_json(folder / name / "tensors.json", {"model.safetensors": tied_shapes(model)},
                       separators=(",", ":"))
        rows = base.token_rows(t5_tokens, texts, T5_TOKENS)
        np.save(out / f"{name}.ids.npy", rows.numpy().astype(np.int32))
        t5 = model(rows).last_hidden_state
        base.store(out, f"{name}.skip0", t5)
    else:
        t5 = torch.zeros(2, 256, T5["d_model"])
    if flux:
        return t5, pooled[0]
    clip = torch.cat(hidden, dim=-1)
    clip = torch.nn.functional.pad(clip, (0, T5["d_model"] - clip.shape[-1]))
    return torch.cat([clip, t5], dim=1), torch.cat(pooled, dim=-1)


def run_flux(model, x, steps, context, pooled, guidance):
    pipeline = diffusers.FluxPipeline
    batch, channels, height, width = x.shape
    packed = pipeline._pack_latents(x, batch, channels, height, width)
    places = pipeline._prepare_latent_image_ids(batch, height // 2, width // 2, "cpu", x.dtype)
    made = model(packed, context, pooled, steps / 1000, places, torch.zeros(context.shape[1], 3),
                 guidance).sample
    made = made.reshape(batch, height // 2, width // 2, -1, 2, 2)
    return made.permute(0, 3, 1, 4, 2, 5).reshape(batch, -1, height, width)


def make_denoiser(case, out, folder, context, pooled, seed):
    model = transformer(case)
    base.save_part(model, folder / "transformer", case, "diffusion_pytorch_model")
    generator = torch.Generator().manual_seed(seed)
    channels = case["transformer"]["in_channels"] // (4 if case["pipeline"] == "FluxPipeline" else 1)
    x = torch.randn(2, channels, 6, 10, generator=generator)
    steps = torch.tensor([981.0, 20.5])
    base.store(out, "unet.x", x)
    base.store(out, "unet.steps", steps)
    if case["pipeline"] != "FluxPipeline":
        made = model(x, context, pooled, steps).sample
    else:
        guidance = torch.tensor([3.5, 1.25]) if model.config.guidance_embeds else None
        if guidance is not None:
            base.store(out, "unet.guidance", guidance)
        made = run_flux(model, x, steps, context, pooled, guidance)
    base.store(out, "unet.out", made)


def make_vae(case, out, folder, seed):
    model = vae(case)
    base.save_part(model, folder / "vae", case, "diffusion_pytorch_model")
    base.run_vae(model, out, seed, model.config.latent_channels)
    image = torch.from_numpy(np.load(out / "vae.image.npy")).permute(0, 3, 1, 2)
    distribution = model.encode(image).latent_dist
    base.store(out, "vae.mean", distribution.mean)
    base.store(out, "vae.log_variance", distribution.logvar)


def write_index(case, folder):
    scheduler = dict(_class_name="FlowMatchEulerDiscreteScheduler", num_train_timesteps=1000,
                     **case["scheduler"])
    kind = "FluxTransformer2DModel" if case["pipeline"] == "FluxPipeline" else "SD3Transformer2DModel"
    index = dict(_class_name=case["pipeline"], _diffusers_version=diffusers.__version__,
                 scheduler=["diffusers", scheduler["_class_name"]],
                 transformer=["diffusers", kind], vae=["diffusers", "AutoencoderKL"])
    encoders = [("CLIPTokenizer", clip["kind"]) for clip in case["clips"]]
    if case["t5"]:
        encoders.append(("T5TokenizerFast", "T5EncoderModel"))
    for i, (tokenizer, encoder) in enumerate(encoders):
        suffix = "" if i == 0 else f"_{i + 1}"
        index[f"text_encoder{suffix}"] = ["transformers", encoder]
        index[f"tokenizer{suffix}"] = ["transformers", tokenizer]
    base.save_json(folder / "model_index.json", index, indent=1)
    (folder / "scheduler").mkdir(exist_ok=True)
    base.save_json(folder / "scheduler" / "scheduler_config.json", scheduler, indent=1)


def make_case(case, out, clip_tokens, t5_tokens):
    shutil.rmtree(out, ignore_errors=True)
    folder = out / "model"
    folder.mkdir(parents=True)
    with torch.no_grad():
        context, pooled = make_text(case, out, folder, clip_tokens, t5_tokens)
        make_denoiser(case, out, folder, context, pooled, base.SEED + 11)
        make_vae(case, out, folder, base.SEED + 20)
    write_index(case, folder)


def main():
    out = pathlib.Path(ARGUMENTS.folder)
    clip_tokens = base.read_tokenizer(out / "tokenizer")
    t5_tokens = t5_tokenizer(out / "t5_tokenizer")
    for name, case in CASES.items():
        if not ARGUMENTS.cases or name in ARGUMENTS.cases:
            make_case(case, out / name, clip_tokens, t5_tokens)


if __name__ == "__main__":
    main()
