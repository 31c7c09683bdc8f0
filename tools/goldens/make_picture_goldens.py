#!/usr/bin/env python3
"""Makes the tiny random Gemma 3 with a vision tower of tests/models/vision/data and what
transformers makes of prompts with pictures.

hf: the model as published checkpoints lay it out, with a tokenizer of bytes and a chat template;
hf_nested/model.safetensors: the same weights under the names of newer files; hf_wide/config.json:
windows that see all of a picture; model.gguf and mmproj.gguf: the names, keys and norms of
llama.cpp's converter. Everything runs in float32.

golden.json lists the prompts; .npy files hold pixels as the tower reads them (pictures, height,
width, channels), the tower's states, the projector's rows, and logits of all prompts in a row, with
narrow and wide windows. resized.json has pictures before and after the processor's resizing,
pan_and_scan.json which parts it makes of long ones.

Ablations change what must show: the pictures' order, attention within them, the window.

Run from the repository root (wrote the committed files with the versions below):
    python3 -m venv venv
    venv/bin/pip install torch==2.15.0 transformers==5.23.0 gguf==0.19.0 pillow==13.0.0
    venv/bin/python tools/goldens/make_picture_goldens.py tests/models/vision/data
"""

import json
import math
import pathlib
import shutil
import types

import arguments

ARGUMENTS = arguments.read(__name__, __doc__, ("folder", "tests/models/vision/data"))

import gguf
import numpy as np
import torch
import transformers
from PIL import Image
from safetensors.torch import save_file
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers.models.gemma3.image_processing_pil_gemma3 import Gemma3ImageProcessorPil

SPECIAL = ["<pad>", "<eos>", "<bos>", "<unk>", "<start_of_turn>", "<end_of_turn>",
           "<start_of_image>", "<end_of_image>", "<image_soft_token>"]
PAD, EOS, BOS = 0, 1, 2
MERGE = ("\u0120", "a")  # one, as files have to have some
IMAGE_BEGIN, IMAGE_END, SOFT = 6, 7, 8
VOCAB = 272
SIDE, PATCH, TOKENS = 32, 2, 16
PICTURES = 3

TEXT = dict(vocab_size=VOCAB, hidden_size=64, intermediate_size=64, num_hidden_layers=3,
            num_attention_heads=4, num_key_value_heads=1, head_dim=16,
            max_position_embeddings=512, rms_norm_eps=1e-6, rope_theta=1000000.0,
            rope_local_base_freq=100.0, query_pre_attn_scalar=16,
            hidden_activation="gelu_pytorch_tanh", sliding_window=8,
            layer_types=["sliding_attention", "full_attention", "sliding_attention"],
            tie_word_embeddings=True, pad_token_id=PAD, bos_token_id=BOS, eos_token_id=EOS)
VISION = dict(model_type="siglip_vision_model", hidden_size=32, intermediate_size=48,
              num_hidden_layers=2, num_attention_heads=2, image_size=SIDE, patch_size=PATCH,
              num_channels=3, layer_norm_eps=1e-6, hidden_act="gelu_pytorch_tanh",
              vision_use_head=False)
CONFIG = dict(mm_tokens_per_image=TOKENS, boi_token_index=IMAGE_BEGIN, eoi_token_index=IMAGE_END,
              image_token_index=SOFT)

TEMPLATE = """{{ bos_token }}{%- if messages[0]['role'] == 'system' -%}
{%- set first = messages[0]['content'] + '\n\n' -%}{%- set rest = messages[1:] -%}
{%- else -%}{%- set first = '' -%}{%- set rest = messages -%}{%- endif -%}
{%- for message in rest -%}
{{ '<start_of_turn>' + ('model' if message['role'] == 'assistant' else message['role']) + '\n' }}
{{- first if loop.first else '' -}}
{%- if message['content'] is string -%}{{ message['content'] | trim }}
{%- else -%}{%- for item in message['content'] -%}
{%- if item['type'] == 'image' -%}{{ '<start_of_image>' }}
{%- elif item['type'] == 'text' -%}{{ item['text'] | trim }}{%- endif -%}
{%- endfor -%}{%- endif -%}
{{ '<end_of_turn>\n' }}
{%- endfor -%}
{%- if add_generation_prompt -%}{{ '<start_of_turn>model\n' }}{%- endif -%}
"""


def build(window, state=None):
    text = dict(TEXT, sliding_window=window)
    config = transformers.Gemma3Config(
        text_config=transformers.Gemma3TextConfig(**text),
        vision_config=transformers.SiglipVisionConfig(**VISION), **CONFIG)
    config._attn_implementation = "eager"
    model = transformers.Gemma3ForConditionalGeneration(config).float().eval()
    if state is not None:
        missing, unexpected = model.load_state_dict(state, strict=False)
        assert not unexpected and missing in ([], ["lm_head.weight"]), (missing, unexpected)
        model.tie_weights()
    return model


def random_state():
    """Weights large enough that scores and windows matter, rounded to f16."""
    rng = np.random.default_rng(77)
    state = {}
    for key, parameter in build(8).state_dict().items():
        if key == "lm_head.weight":
            continue
        shape = tuple(parameter.shape)
        values = rng.standard_normal(shape)
        vision = "vision_tower" in key
        if "norm" in key and key.endswith("weight"):
            values = 0.3 * values + (1.0 if vision else 0.0)
        elif key.endswith("bias"):
            values = 0.3 * values
        elif "position_embedding" in key:
            values = 0.5 * values
        elif "mm_input_projection" in key:
            values = 2 * values / math.sqrt(shape[0])
        else:
            gain = 2.0 if any(k in key for k in ("q_proj", "k_proj")) else 1.0
            values = values * gain / math.sqrt(np.prod(shape[1:]))
        state[key] = torch.from_numpy(values.astype(np.float32)).to(torch.float16)
    return state


def text_ids(rng, count):
    return rng.integers(len(SPECIAL), VOCAB, count).tolist()


def picture_ids():
    return [IMAGE_BEGIN] + [SOFT] * TOKENS + [IMAGE_END]


def make_prompts():
    """Ids, and the pictures in their order. The last has no words between its pictures."""
    rng = np.random.default_rng(78)
    out = [(text_ids(rng, 5) + picture_ids() + text_ids(rng, 9), [0]),
           (text_ids(rng, 3) + picture_ids() + text_ids(rng, 11) + picture_ids()
            + text_ids(rng, 4), [1, 2]),
           (text_ids(rng, 21), []),
           (text_ids(rng, 2) + [SOFT] * TOKENS + [IMAGE_END] + [SOFT] * TOKENS + text_ids(rng, 2),
            [2, 0])]
    return out


def run(model, prompts, pixels, blind=False):
    rows = []
    for ids, pictures in prompts:
        tokens = torch.tensor([ids])
        kinds = (tokens == SOFT).long()
        inputs = dict(input_ids=tokens, use_cache=False)
        if pictures:
            inputs["pixel_values"] = pixels[pictures]
            if not blind:
                inputs["token_type_ids"] = kinds
        with torch.no_grad():
            rows.append(model(**inputs).logits[0].numpy())
    return np.concatenate(rows).astype(np.float32)


def published(state):
    out = {}
    for key, value in state.items():
        inner = key.removeprefix("model.")
        if inner.startswith("language_model."):
            out["language_model.model." + inner.removeprefix("language_model.")] = value
        else:
            out[tower_name(inner)] = value
    return out


def tower_name(name):
    """Published files have another level, which newer code has not."""
    if name.startswith("vision_tower.") and ".vision_model." not in name:
        return name.replace("vision_tower.", "vision_tower.vision_model.")
    return name


def nested(state):
    return {"model." + tower_name(key.removeprefix("model.")): value
            for key, value in state.items()}


def save_tokenizer(folder):
    pieces = SPECIAL + sorted(pre_tokenizers.ByteLevel.alphabet())
    pieces.append("".join(MERGE))
    made = Tokenizer(models.BPE(vocab={piece: i for i, piece in enumerate(pieces)},
                                merges=[MERGE]))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens([AddedToken(text, special=True) for text in SPECIAL])
    made.save(str(folder / "tokenizer.json"))
    settings = {"bos_token": "<bos>", "eos_token": "<eos>", "chat_template": TEMPLATE,
                "add_bos_token": True}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings, indent=1) + "\n")
    return pieces


def save_hf(root, state):
    config = dict(model_type="gemma3", architectures=["Gemma3ForConditionalGeneration"],
                  text_config=dict(TEXT, model_type="gemma3_text"), vision_config=VISION,
                  eos_token_id=[EOS, 5], **CONFIG)
    for name, window, weights in (("hf", 8, published(state)), ("hf_nested", 8, nested(state)),
                                  ("hf_wide", 64, None)):
        folder = root / name
        folder.mkdir(parents=True)
        config["text_config"]["sliding_window"] = window
        if name != "hf_nested":
            (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")
        if weights is not None:
            save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


def add(writer, name, values):
    kind = np.float32 if values.ndim == 1 or name == "v.position_embd.weight" else np.float16
    writer.add_tensor(name, np.ascontiguousarray(values, dtype=kind))


def finish(writer):
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def save_text_gguf(path, state, pieces):
    writer = gguf.GGUFWriter(path, "gemma3")
    writer.add_name("tiny random gemma3 with pictures")
    writer.add_context_length(TEXT["max_position_embeddings"])
    writer.add_embedding_length(TEXT["hidden_size"])
    writer.add_block_count(TEXT["num_hidden_layers"])
    writer.add_feed_forward_length(TEXT["intermediate_size"])
    writer.add_head_count(TEXT["num_attention_heads"])
    writer.add_head_count_kv(TEXT["num_key_value_heads"])
    writer.add_layer_norm_rms_eps(TEXT["rms_norm_eps"])
    writer.add_rope_freq_base(TEXT["rope_theta"])
    writer.add_float32("gemma3.rope.freq_base_swa", TEXT["rope_local_base_freq"])
    writer.add_key_length(TEXT["head_dim"])
    writer.add_value_length(TEXT["head_dim"])
    writer.add_sliding_window(TEXT["sliding_window"])
    writer.add_array("gemma3.attention.sliding_window_pattern",
                     [kind == "sliding_attention" for kind in TEXT["layer_types"]])
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    pieces = pieces + [f"<unused{i}>" for i in range(VOCAB - len(pieces))]
    writer.add_token_list(pieces)
    kinds = [gguf.TokenType.CONTROL if p in SPECIAL else gguf.TokenType.UNUSED
             if p.startswith("<unused") else gguf.TokenType.NORMAL for p in pieces]
    writer.add_token_types(kinds)
    writer.add_token_merges([" ".join(MERGE)])
    writer.add_bos_token_id(BOS)
    writer.add_eos_token_id(EOS)
    writer.add_chat_template(TEMPLATE)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.GEMMA3, TEXT["num_hidden_layers"])
    for key, tensor in published(state).items():
        if not key.startswith("language_model."):
            continue
        values = tensor.float().numpy()
        if key.endswith("norm.weight"):
            values = values + 1
        add(writer, names.get_name(key.removeprefix("language_model."),
                                   try_suffixes=(".weight", ".bias")), values)
    finish(writer)


TOWER_NAMES = {"embeddings.patch_embedding": "v.patch_embd",
               "embeddings.position_embedding": "v.position_embd", "post_layernorm": "v.post_ln"}
LAYER_NAMES = {"layer_norm1": "ln1", "layer_norm2": "ln2", "self_attn.q_proj": "attn_q",
               "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
               "self_attn.out_proj": "attn_out", "mlp.fc1": "ffn_up", "mlp.fc2": "ffn_down"}


def save_mmproj(path, state):
    writer = gguf.GGUFWriter(path, "clip")
    writer.add_bool("clip.has_vision_encoder", True)
    writer.add_string("clip.projector_type", "gemma3")
    writer.add_bool("clip.use_gelu", True)
    vision = {"image_size": SIDE, "patch_size": PATCH, "embedding_length": VISION["hidden_size"],
              "feed_forward_length": VISION["intermediate_size"],
              "block_count": VISION["num_hidden_layers"],
              "attention.head_count": VISION["num_attention_heads"],
              "projection_dim": TEXT["hidden_size"]}
    for key, value in vision.items():
        writer.add_uint32("clip.vision." + key, value)
    writer.add_float32("clip.vision.attention.layer_norm_epsilon", VISION["layer_norm_eps"])
    writer.add_array("clip.vision.image_mean", [0.5, 0.5, 0.5])
    writer.add_array("clip.vision.image_std", [0.5, 0.5, 0.5])
    for key, tensor in published(state).items():
        values = tensor.float().numpy()
        if key == "multi_modal_projector.mm_input_projection_weight":
            add(writer, "mm.input_projection.weight", values)
        elif key == "multi_modal_projector.mm_soft_emb_norm.weight":
            add(writer, "mm.soft_emb_norm.weight", values + 1)
        elif key.startswith("vision_tower.vision_model."):
            role, leaf = key.removeprefix("vision_tower.vision_model.").rsplit(".", 1)
            if role.startswith("encoder.layers."):
                number, role = role.removeprefix("encoder.layers.").split(".", 1)
                add(writer, f"v.blk.{number}.{LAYER_NAMES[role]}.{leaf}", values)
            else:
                add(writer, f"{TOWER_NAMES[role]}.{leaf}", values)
    finish(writer)


def resized_pictures():
    """Pictures of several sizes as the processor resizes them: larger, smaller, both at once."""
    rng = np.random.default_rng(79)
    out = []
    for width, height in ((37, 23), (9, 70), (5, 3), (32, 32), (64, 16)):
        picture = rng.integers(0, 256, (height, width, 3), dtype=np.uint8)
        processor = Gemma3ImageProcessorPil(size={"height": SIDE, "width": SIDE})
        values = processor(Image.fromarray(picture), return_tensors="np")["pixel_values"][0]
        done = np.rint((values.transpose(1, 2, 0) * 0.5 + 0.5) * 255)
        assert np.abs(done / 255 * 2 - 1 - values.transpose(1, 2, 0)).max() < 1e-6
        out.append(dict(width=width, height=height, pixels=picture.flatten().tolist(),
                        resized=done.astype(int).flatten().tolist()))
    return out


def pan_and_scan():
    """Which parts pictures of some sizes have, some pictures with their parts resized, and the
    processor's words around three parts."""
    settings = dict(min_crop=256, max_crops=4, min_ratio=1.2)
    sizes = [dict(settings, width=width, height=height, **more) for width, height, more in (
        (896, 896, {}), (1000, 900, {}), (1200, 1000, {}), (1024, 768, {}), (768, 1024, {}),
        (2000, 500, {}), (500, 2000, {}), (3001, 300, {}), (1003, 400, dict(min_crop=100)),
        (600, 200, {}), (1600, 400, dict(max_crops=3)), (900, 300, dict(max_crops=1)),
        (1100, 1000, dict(min_ratio=1.0)))]
    rng = np.random.default_rng(81)
    small = dict(min_crop=8, max_crops=4, min_ratio=1.2)
    pictures = [dict(small, width=width, height=height) for width, height in
                ((64, 22), (17, 41), (30, 28))]

    def processed(item, values):
        processor = Gemma3ImageProcessorPil(
            size={"height": SIDE, "width": SIDE}, do_pan_and_scan=True,
            pan_and_scan_min_crop_size=item["min_crop"],
            pan_and_scan_max_num_crops=item["max_crops"],
            pan_and_scan_min_ratio_to_activate=item["min_ratio"])
        return processor(Image.fromarray(values), return_tensors="np")

    for item in sizes:
        blank = np.zeros((3, item["height"], item["width"]), np.uint8)
        parts = Gemma3ImageProcessorPil().pan_and_scan(
            blank, item["min_crop"], item["max_crops"], item["min_ratio"])
        item["parts"] = [[part.shape[2], part.shape[1]] for part in parts]
    for item in pictures:
        values = rng.integers(0, 256, (item["height"], item["width"], 3), dtype=np.uint8)
        made = processed(item, values)["pixel_values"]
        item["pixels"] = values.flatten().tolist()
        item["squares"] = [np.rint((square.transpose(1, 2, 0) * 0.5 + 0.5) * 255).astype(int)
                           .flatten().tolist() for square in made]
    whole = "\n\n<start_of_image>" + "<image_soft_token>" * TOKENS + "<end_of_image>\n\n"
    words = transformers.Gemma3Processor.replace_image_token(
        types.SimpleNamespace(full_image_sequence=whole),
        {"num_crops": [len(pictures[0]["squares"]) - 1]}, 0)
    return dict(sizes=sizes, pictures=pictures, text=words)


def main():
    root = pathlib.Path(ARGUMENTS.folder)
    if root.exists():
        shutil.rmtree(root)
    state = random_state()
    save_hf(root, state)
    pieces = save_tokenizer(root / "hf")
    save_text_gguf(root / "model.gguf", state, pieces)
    save_mmproj(root / "mmproj.gguf", state)

    floats = {key: value.float() for key, value in state.items()}
    rng = np.random.default_rng(80)
    pixels = torch.from_numpy(rng.uniform(-1, 1, (PICTURES, 3, SIDE, SIDE)).astype(np.float32))
    prompts = make_prompts()
    model = build(8, floats)
    with torch.no_grad():
        seen = model.model.get_image_features(pixels, return_dict=True)
    narrow = run(model, prompts, pixels)
    wide = run(build(64, floats), prompts, pixels)
    swapped = run(model, [(ids, pictures[::-1]) for ids, pictures in prompts], pixels)
    blind = run(model, prompts, pixels, blind=True)
    for name, other in (("wide", wide), ("swapped", swapped), ("causal", blind)):
        difference = float(np.abs(other - narrow).max())
        assert difference > 0.05, (name, difference)
        print(f"{name}: logits differ by {difference:.2f}")
    np.save(root / "pixels.npy", pixels.permute(0, 2, 3, 1).contiguous().numpy())
    np.save(root / "states.npy", seen.last_hidden_state.numpy().astype(np.float32))
    np.save(root / "rows.npy", seen.pooler_output.numpy().astype(np.float32))
    np.save(root / "logits.npy", narrow)
    np.save(root / "logits_wide.npy", wide)
    listed = [dict(ids=ids, pictures=pictures) for ids, pictures in prompts]
    (root / "golden.json").write_text(json.dumps(listed) + "\n")
    (root / "resized.json").write_text(json.dumps(resized_pictures()) + "\n")
    (root / "pan_and_scan.json").write_text(json.dumps(pan_and_scan()) + "\n")
    print(f"logits within {np.abs(narrow).max():.1f}")


if __name__ == "__main__":
    main()
