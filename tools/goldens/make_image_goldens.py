#!/usr/bin/env python3
"""Makes the tiny random image models of tests/models/image/data and what diffusers makes of them.

Each case is a folder in diffusers' layout; diffusers and transformers run its parts in float32, and
inputs and outputs of each part are stored beside it as .npy. Weights are a function of a tensor's
name and shape, see weight_values(), so that tensors.json with the shapes stands for a weights file;
tests/checkpoints/image_folder.cc makes the file of it. A small CLIP tokenizer is trained when there is
none yet (ties between merges make each training another one); all cases share it.

Run from the repository root (wrote the committed files with the versions below):
    python3 -m venv venv && venv/bin/pip install torch==2.15.0 transformers==5.23.0 \
        diffusers==0.42.1 tokenizers safetensors numpy
    venv/bin/python tools/goldens/make_image_goldens.py tests/models/image/data [case ...]
"""

import json
import pathlib
import random
import shutil

import arguments

ARGUMENTS = arguments.read(__name__, __doc__, ("folder", "tests/models/image/data"), ("cases...", "only these"))

import diffusers
import numpy as np
import tokenizers
import torch
import transformers

VOCAB = 1024
TOKENS = 77
SEED = 20260830

NOUNS = ("cat dog fox owl tree house river mountain star moon boat train lamp clock robot dragon "
         "teapot violin castle forest desert city street market garden bridge tower portrait").split()
LOOKS = ("red green blue golden tiny huge ancient shiny wooden glass fluffy striped lonely cheerful "
         "stormy misty neon detailed intricate photorealistic watercolour pencil pixel").split()
PLACES = ("on a table", "in the rain", "under the sea", "by the window", "at sunset", "on mars",
          "in the style of an old master", "with a hat", "next to a teapot", "over the clouds")
# Case, white space, digits, contractions, punctuation, scripts, emoji, combining marks, and the
# texts of the special tokens.
ODD = [
    "", " ", "a", "A CAT", "  two   spaces\tand\n\nlines  ", "it's they're we've I'm she'll he'd don't",
    "1234567890", "3 cats, 12.5% off!!!", "hello...world?!", "(masterpiece:1.2), [blurry]",
    "éclair E\u0301CLAIR ÀÉÎõü ÅNGSTRÖM", "straße STRASSE ẞ", "ΑΒΓ αβγ ΣΊΣΥΦΟΣ",
    "Привет, МИР", "日本語のテキスト 漢字", "한국어 문장", "مرحبا بالعالم", "שלום עולם",
    "नमस्ते दुनिया", "สวัสดีชาวโลก", "🐱🐶 cat 🏳️‍🌈 👨‍👩‍👧‍👦", "İstanbul ıI", "ﬁne ﬂower ½ ² Ⅷ",
    "tab\tand\u00a0no-break\u3000wide\u2003em", "<|startoftext|>a<|endoftext|>b", "<|endoftext|>",
    "<|startoftext|", "don’t “quote” — dash…", "a_b-c/d\\e", "x\u200by zero width", "\ufeffbom",
    "e\u0323\u0302 ệ", "ǅ ǆ Ǆ", "１２３ ٣٤", "`~!@#$%^&*()_+-={}[]|;:'\",.<>/?", "'s 't 're 've 'm 'll 'd 'S",
]


def save_json(path, value, **options):
    path.write_text(json.dumps(value, ensure_ascii=False, **options) + "\n", encoding="utf-8")


def prompts(count, seed):
    pick = random.Random(seed)
    return [f"a {pick.choice(LOOKS)} {pick.choice(LOOKS)} {pick.choice(NOUNS)} {pick.choice(PLACES)}"
            for _ in range(count)]


def train_tokenizer():
    """CLIP's pipeline around byte-level merges: the bytes, the bytes that end a word, then merges."""
    empty = transformers.CLIPTokenizer(vocab={"<|startoftext|>": 0, "<|endoftext|>": 1}, merges=[])
    letters = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    learner = tokenizers.Tokenizer(tokenizers.models.BPE(end_of_word_suffix="</w>"))
    learner.normalizer = empty.backend_tokenizer.normalizer
    learner.pre_tokenizer = empty.backend_tokenizer.pre_tokenizer
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=VOCAB - 2, initial_alphabet=letters, end_of_word_suffix="</w>",
        show_progress=False)
    learner.train_from_iterator(prompts(4000, 1) + ODD * 20, trainer)
    merges = [tuple(m) for m in json.loads(learner.to_str())["model"]["merges"]]
    pieces = letters + [letter + "</w>" for letter in letters]
    merges = merges[:VOCAB - 2 - len(pieces)]
    pieces += [a + b for a, b in merges]
    vocab = {piece: i for i, piece in enumerate(dict.fromkeys(pieces))}
    for special in ("<|startoftext|>", "<|endoftext|>"):
        vocab[special] = len(vocab)
    return vocab, merges


def read_tokenizer(folder):
    if not (folder / "vocab.json").exists():
        write_tokenizer(folder)
    return transformers.CLIPTokenizer.from_pretrained(folder)


def write_tokenizer(folder):
    vocab, merges = train_tokenizer()
    folder.mkdir(parents=True, exist_ok=True)
    save_json(folder / "vocab.json", vocab, separators=(",", ":"))
    lines = ["#version: 0.2"] + [f"{a} {b}" for a, b in merges]
    (folder / "merges.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    save_json(folder / "tokenizer_config.json",
              {"tokenizer_class": "CLIPTokenizer", "model_max_length": TOKENS, "pad_token": "!",
               "bos_token": "<|startoftext|>",
               "eos_token": {"__type": "AddedToken", "content": "<|endoftext|>"},
               "unk_token": "<|endoftext|>"}, indent=1)
    tokenizer = transformers.CLIPTokenizer(vocab=vocab, merges=merges, pad_token="!")
    texts = ODD + prompts(200 - len(ODD), 2)
    save_json(folder / "golden.json", [[t, tokenizer(t)["input_ids"]] for t in texts])


# Sizes are as small as they can be without two of them being equal by chance; sides of latents are
# odd, so that halving rounds. unet, vae, text: changes of the bases below; None: no such part.
TEXT = dict(vocab_size=VOCAB, hidden_size=32, intermediate_size=48, num_hidden_layers=3,
            num_attention_heads=4, max_position_embeddings=TOKENS, hidden_act="quick_gelu",
            projection_dim=24, bos_token_id=VOCAB - 2, eos_token_id=VOCAB - 1, pad_token_id=0)
UNET = dict(sample_size=16, in_channels=4, out_channels=4, layers_per_block=1,
            block_out_channels=(16, 24, 32), cross_attention_dim=32, attention_head_dim=4,
            norm_num_groups=4,
            down_block_types=("CrossAttnDownBlock2D", "CrossAttnDownBlock2D", "DownBlock2D"),
            up_block_types=("UpBlock2D", "CrossAttnUpBlock2D", "CrossAttnUpBlock2D"))
VAE = dict(block_out_channels=(8, 12, 16), layers_per_block=1, norm_num_groups=4, latent_channels=4,
           down_block_types=("DownEncoderBlock2D",) * 3, up_block_types=("UpDecoderBlock2D",) * 3)
SCHEDULER = dict(_class_name="PNDMScheduler", num_train_timesteps=1000, beta_start=0.00085,
                 beta_end=0.012, beta_schedule="scaled_linear", steps_offset=1,
                 set_alpha_to_one=False, skip_prk_steps=True)

CASES = {
    "sd1": dict(pipeline="StableDiffusionPipeline", variant="fp16",
                text=[{}], unet=dict(layers_per_block=2), vae={}, scheduler={}),
    "sd2": dict(pipeline="StableDiffusionPipeline",
                text=[dict(hidden_act="gelu", num_hidden_layers=2)],
                unet=dict(use_linear_projection=True, attention_head_dim=[2, 3, 4],
                          upcast_attention=True),
                vae=dict(scaling_factor=0.25),
                scheduler=dict(_class_name="DDIMScheduler", prediction_type="v_prediction",
                               rescale_betas_zero_snr=True, timestep_spacing="trailing")),
    "sdxl": dict(pipeline="StableDiffusionXLPipeline", shards=True,
                 text=[{}, dict(hidden_act="gelu", hidden_size=40, num_attention_heads=5,
                                projection_dim=20)],
                 unet=dict(block_out_channels=(16, 32), cross_attention_dim=72,
                           down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
                           up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
                           attention_head_dim=[2, 4], transformer_layers_per_block=[1, 2],
                           use_linear_projection=True, addition_embed_type="text_time",
                           addition_time_embed_dim=6, projection_class_embeddings_input_dim=56),
                 vae=dict(force_upcast=True, scaling_factor=0.13025),
                 scheduler=dict(_class_name="EulerDiscreteScheduler")),
    # SDXL's second encoder alone; fifth of what it is told beside the text is an aesthetic score.
    "refiner": dict(pipeline="StableDiffusionXLImg2ImgPipeline",
                    text=[None, dict(hidden_act="gelu", hidden_size=40, num_attention_heads=5,
                                     projection_dim=20)],
                    unet=dict(block_out_channels=(16, 32, 32), cross_attention_dim=40,
                              down_block_types=("DownBlock2D", "CrossAttnDownBlock2D",
                                                "DownBlock2D"),
                              up_block_types=("UpBlock2D", "CrossAttnUpBlock2D", "UpBlock2D"),
                              attention_head_dim=[2, 4, 4], transformer_layers_per_block=2,
                              use_linear_projection=True, addition_embed_type="text_time",
                              addition_time_embed_dim=6, projection_class_embeddings_input_dim=50),
                    vae=dict(force_upcast=True, scaling_factor=0.13025),
                    scheduler=dict(_class_name="EulerDiscreteScheduler"),
                    index=dict(force_zeros_for_empty_prompt=False,
                               requires_aesthetics_score=True)),
    "inpaint": dict(pipeline="StableDiffusionInpaintPipeline", text=[dict(eos_token_id=2)],
                    unet=dict(in_channels=9, layers_per_block=[1, 2, 1], freq_shift=1,
                              flip_sin_to_cos=False),
                    vae=dict(mid_block_add_attention=False, latent_channels=4), scheduler={}),
    "lcm": dict(pipeline="LatentConsistencyModelPipeline", text=[{}],
                unet=dict(time_cond_proj_dim=12, mid_block_type=None),
                vae=dict(latent_channels=16, use_quant_conv=False, use_post_quant_conv=False,
                         shift_factor=0.0609), scheduler=dict(_class_name="LCMScheduler")),
    "taesd": dict(tiny=dict(encoder_block_out_channels=(8,) * 3, decoder_block_out_channels=(8,) * 3,
                            num_encoder_blocks=(1, 2, 1), num_decoder_blocks=(2, 1, 1))),
    # Steers the UNet of sd1.
    "control": dict(control=dict(conditioning_embedding_out_channels=(4, 6), layers_per_block=2)),
    # For whole pipelines, whose hints are four times the latents' size.
    "steer": dict(of="sd1", steer=dict(conditioning_embedding_out_channels=(4, 6, 8),
                                       layers_per_block=2)),
    "steer_xl": dict(of="sdxl", steer=dict(conditioning_embedding_out_channels=(4, 5, 6))),
}


def weight_values(name, shape):
    """Uniform numbers from splitmix64 (Steele et al. 2014), whose state starts at the FNV-1a hash of
    the name; wide enough that every weight matters, rounded to f16, which the files hold."""
    state = 0xCBF29CE484222325
    for byte in name.encode():
        state = (state ^ byte) * 0x100000001B3 % 2 ** 64
    count = int(np.prod(shape))
    with np.errstate(over="ignore"):
        z = np.uint64(state) + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z ^= z >> np.uint64(31)
    uniform = (z >> np.uint64(40)).astype(np.float32) * np.float32(2 ** -23) - np.float32(1)
    if len(shape) == 1:
        values = uniform * np.float32(0.25) + np.float32(name.endswith("weight"))
    elif "embedding" in name.rpartition(".")[0].rpartition(".")[2] or name.endswith("pos_embed.pos_embed"):
        values = uniform * np.float32(0.5)
    else:
        values = uniform * np.float32((3 / (count // shape[0])) ** 0.5)
    return values.reshape(shape).astype(np.float16)


def fill_weights(model):
    with torch.no_grad():
        for name, tensor in model.state_dict().items():
            if tensor.is_floating_point():
                tensor.copy_(torch.from_numpy(weight_values(name, tuple(tensor.shape))))
    return model.eval()


def save_weights(model, folder, stem, case):
    shapes = {k: list(v.shape) for k, v in model.state_dict().items() if v.is_floating_point()}
    variant = f".{case['variant']}" if "variant" in case else ""
    files = {f"{stem}{variant}.safetensors": shapes}
    if case.get("shards") and len(shapes) > 100:
        names = sorted(shapes)
        files = {f"{stem}-0000{i + 1}-of-00002.safetensors": {k: shapes[k] for k in names[i::2]}
                 for i in range(2)}
        save_json(folder / f"{stem}.safetensors.index.json",
                  {"metadata": {}, "weight_map": {k: f for f, part in files.items() for k in part}})
    save_json(folder / "tensors.json", files, separators=(",", ":"))


def save_part(model, folder, case, stem):
    folder.mkdir(parents=True, exist_ok=True)
    config = json.loads(model.config.to_json_string()) if stem == "model" else dict(model.config)
    if stem != "model":
        config["_class_name"] = type(model).__name__
    save_json(folder / "config.json", config, indent=1)
    save_weights(model, folder, stem, case)


def store(folder, name, tensor):
    """Channels last where there are pictures."""
    x = tensor.detach()
    if x.ndim == 4:
        x = x.permute(0, 2, 3, 1)
    np.save(folder / f"{name}.npy", np.ascontiguousarray(x.float().numpy()))


def token_rows(tokenizer, texts, length):
    rows = [tokenizer(t)["input_ids"] for t in texts]
    return torch.tensor([row + [0] * (length - len(row)) for row in rows])


def make_text(case, golden, folder, tokenizer):
    ids = token_rows(tokenizer, ["a red cat on a table", "a tiny glowing owl, at sunset!"], 14)
    np.save(golden / "ids.npy", ids.numpy().astype(np.int32))
    encodings = []
    for i, changes in enumerate(case["text"]):
        if changes is None:
            continue
        config = transformers.CLIPTextConfig(**dict(TEXT, **changes))
        last = len(case["text"]) > 1 and i == 1
        kind = transformers.CLIPTextModelWithProjection if last else transformers.CLIPTextModel
        model = fill_weights(kind(config))
        part = f"text_encoder{'' if i == 0 else f'_{i + 1}'}"
        save_part(model, folder / part, case, "model")
        # Goldens count the encoders that there are.
        name = f"text_encoder{f'_{len(encodings) + 1}' if encodings else ''}"
        out = model(ids, output_hidden_states=True)
        inner = model.text_model if last else model
        if len(case["text"]) == 1:  # Stable Diffusion 1 and 2: the final norm over the states
            states = {0: out.last_hidden_state}
            states[2] = inner.final_layer_norm(out.hidden_states[-2])
        else:
            states = {0: out.hidden_states[-2], 3: out.hidden_states[-3]}
        for skip, value in states.items():
            store(golden, f"{name}.skip{skip}", value)
        if last:
            store(golden, f"{name}.pooled", out.text_embeds)
        encodings.append((states[0], out.text_embeds if last else None))
        (folder / part.replace("text_encoder", "tokenizer")).mkdir(exist_ok=True)
    return encodings


def make_unet(case, golden, folder, encodings, seed):
    changes = dict(case["unet"])
    model = diffusers.UNet2DConditionModel(**dict(UNET, **changes))
    fill_weights(model)
    save_part(model, folder / "unet", case, "diffusion_pytorch_model")
    generator = torch.Generator().manual_seed(seed + 1)
    x = torch.randn(2, model.config.in_channels, 7, 10, generator=generator)
    steps = torch.tensor([981.0, 20.5])
    store(golden, "unet.x", x)
    store(golden, "unet.steps", steps)
    options = {}
    if model.config.addition_embed_type:
        sizes = torch.tensor([[512, 640, 0, 8, 512, 640], [1024, 768, 16, 0, 896, 1024]],
                             dtype=torch.float32)
        if case.get("index", {}).get("requires_aesthetics_score"):
            sizes = torch.cat([sizes[:, :4], torch.tensor([[6.0], [2.5]])], dim=-1)
        store(golden, "unet.size_ids", sizes)
        options["added_cond_kwargs"] = dict(text_embeds=encodings[-1][1], time_ids=sizes)
    if model.config.time_cond_proj_dim:
        guidance = torch.tensor([7.5, 0.5])
        store(golden, "unet.guidance", guidance)
        embed = diffusers.LatentConsistencyModelPipeline.get_guidance_scale_embedding
        options["timestep_cond"] = embed(None, guidance, model.config.time_cond_proj_dim)
    context = torch.cat([e[0] for e in encodings], dim=-1)
    store(golden, "unet.out", model(x, steps, context, **options).sample)


def make_vae(case, golden, folder, seed):
    model = fill_weights(diffusers.AutoencoderKL(**dict(VAE, **case["vae"])))
    save_part(model, folder / "vae", case, "diffusion_pytorch_model")
    run_vae(model, golden, seed, model.config.latent_channels)
    distribution = model.encode(torch.from_numpy(np.load(golden / "vae.image.npy"))
                                .permute(0, 3, 1, 2)).latent_dist
    store(golden, "vae.mean", distribution.mean)
    store(golden, "vae.log_variance", distribution.logvar)


def run_vae(model, golden, seed, channels):
    generator = torch.Generator().manual_seed(seed + 1)
    image = torch.rand(2, 3, 20, 12, generator=generator) * 2 - 1
    latent = torch.randn(2, channels, 5, 3, generator=generator) * 2
    store(golden, "vae.image", image)
    store(golden, "vae.latent", latent)
    store(golden, "vae.decoded", model.decode(latent).sample)


def make_tiny(case, out, seed):
    model = fill_weights(diffusers.AutoencoderTiny(**case["tiny"]))
    save_part(model, out / "model", case, "diffusion_pytorch_model")
    run_vae(model, out, seed, 4)
    image = torch.from_numpy(np.load(out / "vae.image.npy")).permute(0, 3, 1, 2)
    store(out, "vae.mean", model.encode(image).latents)


def control_net(unet, changes):
    shared = {k: v for k, v in dict(UNET, **unet).items()
              if k not in ("sample_size", "out_channels", "up_block_types")}
    return fill_weights(diffusers.ControlNetModel(**dict(shared, **changes)))


def steering_net(name):
    case = CASES[name]
    return control_net(CASES[case["of"]]["unet"], case["steer"])


def make_control(case, out, seed):
    model = control_net({}, case["control"])
    save_part(model, out / "model", case, "diffusion_pytorch_model")
    unet = fill_weights(diffusers.UNet2DConditionModel(**dict(UNET, layers_per_block=2)))
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(2, 4, 7, 10, generator=generator)
    hint = torch.rand(2, 3, 14, 20, generator=generator)
    context = torch.randn(2, 5, 32, generator=generator)
    steps = torch.tensor([981.0, 20.5])
    for name, value in dict(x=x, hint=hint, context=context, steps=steps).items():
        store(out, name, value)
    with torch.no_grad():
        skips, middle = model(x, steps, context, hint, 0.75, return_dict=False)
        store(out, "last_skip", skips[-1])
        store(out, "middle", middle)
        store(out, "out", unet(x, steps, context, down_block_additional_residuals=skips,
                               mid_block_additional_residual=middle).sample)


def write_index(case, folder):
    index = dict(_class_name=case["pipeline"], _diffusers_version=diffusers.__version__,
                 scheduler=["diffusers", dict(SCHEDULER, **case["scheduler"])["_class_name"]],
                 unet=["diffusers", "UNet2DConditionModel"], vae=["diffusers", "AutoencoderKL"],
                 safety_checker=[None, None], requires_safety_checker=False)
    for i, changes in enumerate(case["text"]):
        suffix = "" if i == 0 else f"_{i + 1}"
        kind = "CLIPTextModel" + ("WithProjection" if i else "")
        absent = changes is None
        index[f"text_encoder{suffix}"] = [None, None] if absent else ["transformers", kind]
        index[f"tokenizer{suffix}"] = [None, None] if absent else ["transformers", "CLIPTokenizer"]
    if len(case["text"]) > 1:
        index["force_zeros_for_empty_prompt"] = True
    index.update(case.get("index", {}))
    save_json(folder / "model_index.json", index, indent=1)
    (folder / "scheduler").mkdir(exist_ok=True)
    save_json(folder / "scheduler" / "scheduler_config.json", dict(SCHEDULER, **case["scheduler"]),
              indent=1)


def make_case(name, case, out, tokenizer):
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    seed = SEED
    if "tiny" in case:
        return make_tiny(case, out, seed)
    if "control" in case:
        return make_control(case, out, seed)
    if "steer" in case:
        return save_part(steering_net(name), out / "model", case, "diffusion_pytorch_model")
    folder = out / "model"
    folder.mkdir()
    with torch.no_grad():
        encodings = make_text(case, out, folder, tokenizer)
        make_unet(case, out, folder, encodings, seed + 10)
        make_vae(case, out, folder, seed + 20)
    write_index(case, folder)


def main():
    out = pathlib.Path(ARGUMENTS.folder)
    tokenizer = read_tokenizer(out / "tokenizer")
    for name, case in CASES.items():
        if not ARGUMENTS.cases or name in ARGUMENTS.cases:
            make_case(name, case, out / name, tokenizer)


if __name__ == "__main__":
    main()
