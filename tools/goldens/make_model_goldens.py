#!/usr/bin/env python3
"""Makes the tiny random checkpoints of tests/models/data and their golden logits.

Each case is a model of transformers with weights from a fixed seed, saved as a Hugging Face folder
and, with the names, keys and row order of llama.cpp's converter, as GGUF. transformers runs it in
float32; logits and the residual stream after each layer are stored for every position. A case may
share the weights of another and differ in its config only.

A case also lists ablations: changes of the config that must change the logits, which proves that
the case would notice a missing feature.

Run from the repository root (wrote the committed files with the versions below):
    python3 -m venv venv && venv/bin/pip install torch==2.15.0 transformers==5.23.0 gguf==0.19.0
    venv/bin/python tools/goldens/make_model_goldens.py tests/models/data
"""

import copy
import json
import math
import pathlib
import shutil
import sys

import gguf
import numpy as np
import torch
import transformers
from safetensors.torch import save_file

VOCAB = 160
DIM = 64


def base_config(**changes):
    config = dict(vocab_size=VOCAB, hidden_size=DIM, intermediate_size=96, num_hidden_layers=2,
                  num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=64,
                  rms_norm_eps=1e-5, rope_theta=10000.0, tie_word_embeddings=False)
    config.update(changes)
    return config


def gemma_config(**changes):
    config = base_config(head_dim=16, rms_norm_eps=1e-6, tie_word_embeddings=True,
                         hidden_activation="gelu_pytorch_tanh", sliding_window=8,
                         query_pre_attn_scalar=16)
    config.update(changes)
    return config


def deepseek_config(**changes):
    config = base_config(num_key_value_heads=4, rms_norm_eps=1e-6,
                         kv_lora_rank=32, qk_nope_head_dim=16, qk_rope_head_dim=8, v_head_dim=12,
                         n_routed_experts=8, num_experts_per_tok=3, moe_intermediate_size=32,
                         first_k_dense_replace=1, n_group=4, topk_group=2, moe_layer_freq=1)
    config.update(changes)
    return config


def rope(**scaling):
    return {"rope_scaling": scaling}


LONGROPE = rope(rope_type="longrope", short_factor=[1.0, 1.1, 1.2, 1.4, 1.6, 1.9],
                long_factor=[1.5, 2.0, 3.0, 4.5, 6.0, 9.0])
LONGROPE["original_max_position_embeddings"] = 16

# name -> settings. type: model_type of config.json; weights_of: the case that owns the weights;
# prompts: lengths; ablations: changes that must show in the logits.
CASES = {
    "llama": dict(
        type="llama", config=base_config(), dtype=torch.float32, shards=2, gguf=True,
        ablations=[dict(rope_theta=500.0), dict(rms_norm_eps=0.1)]),
    "llama_bias": dict(
        type="llama", config=base_config(attention_bias=True, mlp_bias=True), gguf=True,
        ablations=[]),
    "smollm": dict(
        type="llama", config=base_config(num_attention_heads=3, num_key_value_heads=1, head_dim=16,
                                         hidden_size=48, tie_word_embeddings=True),
        gguf=True, ablations=[]),
    "rope_linear": dict(
        type="llama", weights_of="smollm", gguf=True,
        changes=rope(rope_type="linear", factor=4.0), ablations=[dict(rope_scaling=None)]),
    "rope_dynamic": dict(
        type="llama", weights_of="smollm", prompts=[24, 24, 24],
        changes=dict(rope(type="dynamic", factor=4.0), max_position_embeddings=12),
        ablations=[dict(rope_scaling=None)]),
    "rope_yarn": dict(
        type="llama", weights_of="smollm", gguf=True,
        changes=dict(rope(type="yarn", factor=4.0, original_max_position_embeddings=512),
                     max_position_embeddings=2048),
        ablations=[dict(rope_scaling=None),
                   rope(type="linear", factor=4.0),
                   rope(type="yarn", factor=4.0, original_max_position_embeddings=512,
                        attention_factor=1.0)]),
    "rope_llama3": dict(
        type="llama", weights_of="smollm", gguf=True, saved_by_v5=True,
        changes=rope(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
                     original_max_position_embeddings=64) | dict(max_position_embeddings=512),
        ablations=[dict(rope_scaling=None), rope(rope_type="linear", factor=8.0)]),
    "mistral": dict(
        type="mistral", config=base_config(head_dim=24, sliding_window=8), gguf=True,
        ablations=[dict(sliding_window=None), dict(sliding_window=7)]),
    "qwen2": dict(type="qwen2", config=base_config(), gguf=True, ablations=[]),
    "qwen2_window": dict(
        type="qwen2", weights_of="qwen2",
        changes=dict(use_sliding_window=True, sliding_window=6, max_window_layers=1),
        ablations=[dict(use_sliding_window=False), dict(max_window_layers=0)]),
    "qwen3": dict(
        type="qwen3", config=base_config(head_dim=32, tie_word_embeddings=True),
        dtype=torch.bfloat16, gguf=True, ablations=[]),
    "gemma2": dict(
        type="gemma2", config=gemma_config(num_hidden_layers=3, attn_logit_softcapping=4.0,
                                           final_logit_softcapping=6.0), gguf=True,
        ablations=[dict(attn_logit_softcapping=None), dict(final_logit_softcapping=None),
                   dict(sliding_window=64), dict(sliding_window=9)]),
    "gemma2_scalar": dict(
        type="gemma2", weights_of="gemma2", changes=dict(query_pre_attn_scalar=40),
        ablations=[dict(query_pre_attn_scalar=16)]),
    "gemma3": dict(
        type="gemma3_text", config=gemma_config(
            num_hidden_layers=7, num_key_value_heads=1, intermediate_size=64,
            rope_theta=1000000.0, rope_local_base_freq=100.0), gguf=True,
        ablations=[dict(rope_local_base_freq=1000000.0), dict(rope_theta=100.0),
                   dict(sliding_window=64), dict(sliding_window_pattern=5)]),
    "gemma3_linear": dict(
        type="gemma3_text", weights_of="gemma3", changes=rope(rope_type="linear", factor=8.0),
        saved_by_v5=True,
        ablations=[dict(rope_scaling=None)]),
    "gemma3_multimodal": dict(
        type="gemma3_text", config=gemma_config(
            num_hidden_layers=3, num_key_value_heads=1, intermediate_size=64,
            layer_types=["sliding_attention", "full_attention", "sliding_attention"],
            rope_theta=1000000.0, rope_local_base_freq=100.0), multimodal=True,
        ablations=[dict(layer_types=["full_attention"] * 3)]),
    "phi3": dict(
        type="phi3", config=base_config(partial_rotary_factor=0.75, sliding_window=10, pad_token_id=0,
                                        bos_token_id=1, eos_token_id=2), gguf=True,
        ablations=[dict(partial_rotary_factor=1.0), dict(sliding_window=None)]),
    "phi3_long": dict(
        type="phi3", weights_of="phi3", changes=LONGROPE, gguf=True, prompts=[24, 17, 20],
        ablations=[dict(rope_scaling=None)]),
    "phi3_short": dict(
        type="phi3", weights_of="phi3", changes=LONGROPE, prompts=[16, 7, 11],
        ablations=[dict(rope_scaling=None)]),
    "gemma": dict(
        type="gemma", config=base_config(head_dim=24, rms_norm_eps=1e-6, num_key_value_heads=1,
                                         tie_word_embeddings=True, hidden_act="gelu_pytorch_tanh"),
        gguf=True, ablations=[dict(hidden_act="silu"), dict(rope_theta=500.0)]),
    "phi4_mini": dict(
        type="phi3", config=base_config(
            partial_rotary_factor=0.75, tie_word_embeddings=True, pad_token_id=0, bos_token_id=1,
            eos_token_id=2, num_key_value_heads=1, **LONGROPE), gguf=True, prompts=[24, 17, 20],
        ablations=[dict(rope_scaling=None), dict(partial_rotary_factor=1.0, rope_scaling=None)]),
    "mixtral": dict(
        type="mixtral", config=base_config(num_local_experts=5, num_experts_per_tok=2,
                                           intermediate_size=32), gguf=True,
        ablations=[dict(num_experts_per_tok=1), dict(num_experts_per_tok=5)]),
    "qwen2_moe": dict(
        type="qwen2_moe", config=base_config(
            num_experts=6, num_experts_per_tok=3, moe_intermediate_size=32, norm_topk_prob=False,
            shared_expert_intermediate_size=48, decoder_sparse_step=1), gguf=True,
        ablations=[dict(norm_topk_prob=True), dict(num_experts_per_tok=2)]),
    "qwen3_moe": dict(
        type="qwen3_moe", config=base_config(
            head_dim=24, num_experts=8, num_experts_per_tok=3, moe_intermediate_size=32,
            norm_topk_prob=True, decoder_sparse_step=1), gguf=True,
        ablations=[dict(norm_topk_prob=False), dict(num_experts_per_tok=2)]),
    "qwen3_moe_mixed": dict(
        type="qwen3_moe", config=base_config(
            head_dim=16, num_hidden_layers=3, num_experts=4, num_experts_per_tok=1,
            moe_intermediate_size=32, intermediate_size=48, norm_topk_prob=False,
            decoder_sparse_step=1, mlp_only_layers=[1]),
        ablations=[dict(norm_topk_prob=True)]),
    "deepseek_v2": dict(
        type="deepseek_v2", config=deepseek_config(
            q_lora_rank=None, topk_method="group_limited_greedy", norm_topk_prob=False,
            routed_scaling_factor=1.5, n_shared_experts=2,
            **rope(type="yarn", factor=4.0, original_max_position_embeddings=16, beta_fast=32,
                   beta_slow=1, mscale=0.707, mscale_all_dim=0.707)),
        gguf=True,
        ablations=[dict(rope_scaling=None), dict(topk_method="greedy"), dict(topk_group=1),
                   dict(routed_scaling_factor=1.0)]),
    "deepseek_v3": dict(
        type="deepseek_v3", config=deepseek_config(
            q_lora_rank=24, norm_topk_prob=True, routed_scaling_factor=2.5, n_shared_experts=1),
        gguf=True, joined_latents=True,
        ablations=[dict(norm_topk_prob=False), dict(topk_group=1), dict(n_group=1, topk_group=1),
                   dict(num_experts_per_tok=1)]),
    "gpt_oss": dict(
        type="gpt_oss", config=base_config(
            head_dim=16, num_local_experts=5, num_experts_per_tok=2, intermediate_size=32,
            sliding_window=8, swiglu_limit=7.0, rope_theta=150000.0,
            layer_types=["sliding_attention", "full_attention"],
            **rope(rope_type="yarn", factor=4.0, original_max_position_embeddings=16, beta_fast=32.0,
                   beta_slow=1.0, truncate=False)), gguf=True, mxfp4=True,
        ablations=[dict(swiglu_limit=70.0), dict(rope_scaling=None), dict(num_experts_per_tok=1),
                   dict(layer_types=["full_attention"] * 2)]),
}


def config_of(name):
    case = CASES[name]
    config = copy.deepcopy(CASES[case.get("weights_of", name)]["config"])
    config.update(copy.deepcopy(case.get("changes", {})))
    return config


E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])


def random_mxfp4(rng, experts, rows, columns):
    """Codes (experts, rows, columns), scales (experts, rows, columns / 32), and their values."""
    codes = rng.integers(0, 16, (experts, rows, columns)).astype(np.uint8)
    scales = rng.integers(121, 124, (experts, rows, columns // 32)).astype(np.uint8)
    factors = np.repeat(2.0 ** (scales.astype(np.float64) - 127), 32, axis=2)
    return codes, scales, (E2M1[codes] * factors).astype(np.float32)


def add_mxfp4(state, key, rng, shape):
    """An expert's matrices, (experts, columns, rows) in transformers, and how folders hold them."""
    experts, columns, rows = shape
    codes, scales, values = random_mxfp4(rng, experts, rows, columns)
    pairs = codes[:, :, 0::2] | codes[:, :, 1::2] << 4
    state[key] = torch.from_numpy(values.swapaxes(1, 2).copy())
    state[key + "_blocks"] = torch.from_numpy(pairs.reshape(experts, rows, columns // 32, 16))
    state[key + "_scales"] = torch.from_numpy(scales)


def gguf_mxfp4(state, key, part):
    """Rows `part` of all experts as ggml's blocks: the scale, then codes i and i + 16 in a byte."""
    pairs = state[key + "_blocks"].numpy()[:, part]
    codes = np.stack([pairs & 15, pairs >> 4], axis=-1).reshape(*pairs.shape[:3], 32)
    packed = codes[..., :16] | codes[..., 16:] << 4
    scales = state[key + "_scales"].numpy()[:, part, :, None]
    blocks = np.concatenate([scales, packed], axis=-1)
    return np.ascontiguousarray(blocks.reshape(*blocks.shape[:2], -1))


def build(case, config, state=None):
    """The transformers model of a config, in float32, with the given weights."""
    config = copy.deepcopy(config)
    made = transformers.AutoConfig.for_model(case["type"], **config)
    made._attn_implementation = "eager"
    model = transformers.AutoModelForCausalLM.from_config(made).float().eval()
    if state is not None:
        missing, unexpected = model.load_state_dict(state, strict=False)
        assert not unexpected, unexpected
        assert all(m == "lm_head.weight" for m in missing), missing
        model.tie_weights()
    return model


def random_state(name, case, config, seed):
    """Weights large enough that scores, windows and caps matter, rounded to the stored type."""
    model = build(case, config)
    tied = config["tie_word_embeddings"]
    gemma = case["type"].startswith("gemma")
    rng = np.random.default_rng(seed)
    state = {}
    for key, parameter in model.state_dict().items():
        if tied and key == "lm_head.weight":
            continue
        shape = tuple(parameter.shape)
        if case.get("mxfp4") and key.endswith(("experts.gate_up_proj", "experts.down_proj")):
            add_mxfp4(state, key, rng, shape)
            continue
        values = rng.standard_normal(shape)
        if key.endswith("norm.weight") or "layernorm" in key:
            values = 0.3 * values + (0.0 if gemma else 1.0)
        elif key.endswith("gate_up_proj_bias"):
            values = 4.0 * values  # GPT-OSS: some beyond its limit
        elif key.endswith((".bias", "_proj_bias")):
            values = 0.5 * values
        elif key.endswith(".sinks"):
            values = 1.0 + values
        elif "embed_tokens" in key:
            values = values * (1.0 / math.sqrt(shape[1]) if tied else 1.0)
        else:
            gain = 2.0 if any(k in key for k in ("q_proj", "k_proj", "qkv_proj")) else 1.0
            gain = 4.0 if key.endswith(("mlp.gate.weight", "mlp.router.weight")) else gain
            values = values * gain / math.sqrt(shape[-1])
        dtype = case.get("dtype", torch.float16)
        state[key] = torch.from_numpy(values.astype(np.float32)).to(dtype)
    return state


def run(model, prompts):
    """Logits (tokens, vocab) and layer outputs (layers, tokens, dim) of all prompts in a row."""
    outputs = []
    layers = model.model.layers
    seen = [None] * len(layers)

    def keep(index):
        def hook(_module, _inputs, output):
            seen[index] = (output[0] if isinstance(output, tuple) else output)[0]
        return hook

    handles = [layer.register_forward_hook(keep(i)) for i, layer in enumerate(layers)]
    for ids in prompts:
        with torch.no_grad():
            logits = model(torch.tensor([ids]), use_cache=False).logits[0]
        outputs.append((logits.numpy(), np.stack([x.numpy() for x in seen])))
    for handle in handles:
        handle.remove()
    return (np.concatenate([o[0] for o in outputs]).astype(np.float32),
            np.concatenate([o[1] for o in outputs], axis=1).astype(np.float32))


def check_ablations(name, case, config, state, prompts, logits):
    for change in case["ablations"]:
        changed = copy.deepcopy(config)
        changed.update(change)
        other, _ = run(build(case, changed, state), prompts)
        difference = float(np.abs(other - logits).max())
        assert difference > 0.05, (name, change, difference)
        print(f"  {name}: without {change}: logits differ by {difference:.2f}")


# Names of experts' matrices on published checkpoints, gate, up and down; transformers 5 stacks them.
MIXTRAL_EXPERTS = ("w1", "w3", "w2")
EXPERTS = ("gate_proj", "up_proj", "down_proj")


def split_experts(state):
    """The state with gate and up apart: (experts, rows, columns) under GGUF's role names."""
    out = {}
    for key, value in state.items():
        if value.dtype == torch.uint8 or key + "_blocks" in state:
            continue
        if key.endswith("experts.gate_up_proj"):
            half = value.shape[1] // 2
            out[key.replace("gate_up_proj", EXPERTS[0])] = value[:, :half]
            out[key.replace("gate_up_proj", EXPERTS[1])] = value[:, half:]
        else:
            out[key] = value
    return out


def published(case, state):
    """The state under the names of published checkpoints: a tensor for each expert."""
    mixtral = case["type"] == "mixtral"
    out = {key: value for key, value in state.items() if value.dtype == torch.uint8}
    for key, value in split_experts(state).items():
        if mixtral:
            key = key.replace(".mlp.", ".block_sparse_moe.")
        role = key.rsplit(".", 1)[1]
        if ".experts." not in key or role not in EXPERTS:
            out[key] = value
            continue
        name = MIXTRAL_EXPERTS[EXPERTS.index(role)] if mixtral else role
        for expert, matrix in enumerate(value):
            out[f"{key.rsplit('.', 1)[0]}.{expert}.{name}.weight"] = matrix.contiguous()
    return out


def hf_config(case, config):
    """config.json in the spelling found on published checkpoints, or as transformers 5 saves it."""
    out = dict(config, model_type=case["type"])
    if case.get("mxfp4"):
        out["quantization_config"] = {"quant_method": "mxfp4"}
    if case.get("saved_by_v5"):
        made = transformers.AutoConfig.for_model(case["type"], **copy.deepcopy(config))
        return json.loads(made.to_json_string(use_diff=False))
    if case.get("multimodal"):
        text = dict(out)
        # Published Gemma 3 configs leave out what equals the defaults.
        return {"model_type": "gemma3", "architectures": ["Gemma3ForConditionalGeneration"],
                "text_config": text, "vision_config": {"model_type": "siglip_vision_model"}}
    return out


def save_hf(folder, case, config, state):
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(hf_config(case, config), indent=1) + "\n")
    if state is None:
        return
    state = published(case, state)
    if case.get("multimodal"):
        state = {f"language_model.{key}": value for key, value in state.items()}
        state["vision_tower.vision_model.embeddings.patch_embedding.weight"] = torch.zeros(4, 4)
    shards = case.get("shards", 1)
    if shards == 1:
        save_file(state, folder / "model.safetensors", metadata={"format": "pt"})
        return
    keys = list(state)
    index = {}
    for i in range(shards):
        part = keys[i * len(keys) // shards:(i + 1) * len(keys) // shards]
        file = f"model-{i + 1:05d}-of-{shards:05d}.safetensors"
        save_file({k: state[k] for k in part}, folder / file, metadata={"format": "pt"})
        index.update({k: file for k in part})
    total = sum(v.numel() * v.element_size() for v in state.values())
    (folder / "model.safetensors.index.json").write_text(
        json.dumps({"metadata": {"total_size": total}, "weight_map": index}, indent=1) + "\n")


def interleave(rows, heads):
    """Llama's rope pairs as neighbours: within a head, row i of each half side by side."""
    half = rows.shape[0] // heads // 2
    return rows.reshape(heads, 2, half, *rows.shape[1:]).swapaxes(1, 2).reshape(rows.shape)


def llama3_divisors(config, scaling):
    dim = config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]
    out = []
    for i in range(0, dim, 2):
        wavelength = 2 * math.pi * config["rope_theta"] ** (i / dim)
        original = scaling["original_max_position_embeddings"]
        low, high = scaling["low_freq_factor"], scaling["high_freq_factor"]
        if wavelength < original / high:
            out.append(1.0)
        elif wavelength > original / low:
            out.append(scaling["factor"])
        else:
            smooth = (original / wavelength - low) / (high - low)
            out.append(1 / ((1 - smooth) / scaling["factor"] + smooth))
    return np.array(out, dtype=np.float32)


def add_rope(writer, config, scaling):
    """Scaling keys; returns extra tensors."""
    if not scaling:
        return {}
    kind = scaling.get("rope_type", scaling.get("type"))
    if kind == "linear":
        writer.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
        writer.add_rope_scaling_factor(scaling["factor"])
    elif kind == "yarn":
        writer.add_rope_scaling_type(gguf.RopeScalingType.YARN)
        writer.add_rope_scaling_factor(scaling["factor"])
        writer.add_rope_scaling_orig_ctx_len(scaling["original_max_position_embeddings"])
    elif kind == "llama3":
        return {"rope_freqs.weight": llama3_divisors(config, scaling)}
    elif kind == "longrope":
        original = config["original_max_position_embeddings"]
        factor = config["max_position_embeddings"] / original
        writer.add_rope_scaling_orig_ctx_len(original)
        writer.add_rope_scaling_attn_factors(math.sqrt(1 + math.log(factor) / math.log(original)))
        return {"rope_factors_long.weight": np.array(scaling["long_factor"], dtype=np.float32),
                "rope_factors_short.weight": np.array(scaling["short_factor"], dtype=np.float32)}
    return {}


def add_keys(writer, arch, config):
    heads = config["num_attention_heads"]
    head_dim = config.get("head_dim") or config["hidden_size"] // heads
    writer.add_name("tiny random " + arch)
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(heads)
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_rope_freq_base(config["rope_theta"])
    rotated = config.get("qk_rope_head_dim", head_dim)
    writer.add_rope_dimension_count(int(rotated * config.get("partial_rotary_factor", 1.0)))
    if "head_dim" in config:
        writer.add_key_length(head_dim)
        writer.add_value_length(head_dim)
    if config.get("sliding_window"):
        writer.add_sliding_window(config["sliding_window"])
    if arch == "gemma2":
        writer.add_attn_logit_softcapping(config["attn_logit_softcapping"])
        writer.add_final_logit_softcapping(config["final_logit_softcapping"])
    experts = config.get("num_local_experts", config.get("num_experts"))
    if experts:
        writer.add_expert_count(experts)
        writer.add_expert_used_count(config["num_experts_per_tok"])
    if "moe_intermediate_size" in config:
        writer.add_expert_feed_forward_length(config["moe_intermediate_size"])
    if "shared_expert_intermediate_size" in config:
        writer.add_expert_shared_feed_forward_length(config["shared_expert_intermediate_size"])
    if arch == "gpt-oss":
        writer.add_expert_feed_forward_length(config["intermediate_size"])
    if arch == "gemma3":
        writer.add_float32("gemma3.rope.freq_base_swa", config["rope_local_base_freq"])


def add_deepseek_keys(writer, case, config):
    """joined_latents: as files before attn_k_b and attn_v_b have it."""
    v3 = case["type"] == "deepseek_v3"
    rank, rotated = config["kv_lora_rank"], config["qk_rope_head_dim"]
    key, value = config["qk_nope_head_dim"] + rotated, config["v_head_dim"]
    if case.get("joined_latents"):
        writer.add_key_length(key)
        writer.add_value_length(value)
    else:
        writer.add_key_length(rank + rotated)
        writer.add_value_length(rank)
        writer.add_key_length_mla(key)
        writer.add_value_length_mla(value)
    writer.add_kv_lora_rank(rank)
    if config["q_lora_rank"]:
        writer.add_q_lora_rank(config["q_lora_rank"])
    writer.add_leading_dense_block_count(config["first_k_dense_replace"])
    writer.add_expert_count(config["n_routed_experts"])
    writer.add_expert_used_count(config["num_experts_per_tok"])
    writer.add_expert_shared_count(config["n_shared_experts"])
    writer.add_expert_weights_scale(config["routed_scaling_factor"])
    writer.add_expert_weights_norm(config["norm_topk_prob"])
    writer.add_expert_gating_func(gguf.ExpertGatingFuncType.SIGMOID if v3
                                  else gguf.ExpertGatingFuncType.SOFTMAX)
    writer.add_expert_group_count(config["n_group"])
    writer.add_expert_group_used_count(config["topk_group"])
    scaling = config.get("rope_scaling")
    if scaling:
        writer.add_rope_scaling_yarn_log_mul(0.1 * scaling["mscale_all_dim"])


def split_latents(config, state):
    """kv_b_proj as the two matrices of each head that it holds, the keys' transposed."""
    out = {}
    for key, value in state.items():
        if "kv_b_proj" not in key:
            out[key] = value
            continue
        heads, plain = config["num_attention_heads"], config["qk_nope_head_dim"]
        both = value.reshape(heads, plain + config["v_head_dim"], -1)
        out[key.replace("kv_b_proj", "k_b_proj")] = both[:, :plain].transpose(1, 2).contiguous()
        out[key.replace("kv_b_proj", "v_b_proj")] = both[:, plain:].contiguous()
    return out


def add_gguf_mxfp4(writer, config, state):
    """The experts of GPT-OSS: gate and up, whose rows folders have in turn, apart."""
    for layer in range(config["num_hidden_layers"]):
        source = f"model.layers.{layer}.mlp.experts."
        for role, key, part in (("gate", "gate_up_proj", slice(0, None, 2)),
                                ("up", "gate_up_proj", slice(1, None, 2)),
                                ("down", "down_proj", slice(None))):
            name = f"blk.{layer}.ffn_{role}_exps"
            writer.add_tensor(name + ".weight", gguf_mxfp4(state, source + key, part),
                              raw_dtype=gguf.GGMLQuantizationType.MXFP4)
            bias = state[source + key + "_bias"].float().numpy()[:, part]
            writer.add_tensor(name + ".bias", np.ascontiguousarray(bias))


def save_gguf(path, case, config, state):
    arch = {"mistral": "llama", "mixtral": "llama", "gemma3_text": "gemma3",
            "qwen2_moe": "qwen2moe", "qwen3_moe": "qwen3moe", "deepseek_v2": "deepseek2",
            "deepseek_v3": "deepseek2", "gpt_oss": "gpt-oss"}.get(case["type"], case["type"])
    writer = gguf.GGUFWriter(path, arch)
    add_keys(writer, arch, config)
    if arch == "deepseek2":
        add_deepseek_keys(writer, case, config)
    extra = add_rope(writer, config, config.get("rope_scaling"))
    for name, values in extra.items():
        writer.add_tensor(name, values)
    names = gguf.get_tensor_name_map(getattr(gguf.MODEL_ARCH, arch.upper().replace("-", "_")),
                                     config["num_hidden_layers"])
    if case.get("mxfp4"):
        add_gguf_mxfp4(writer, config, state)
    state = split_experts(state)
    if arch == "deepseek2" and not case.get("joined_latents"):
        state = split_latents(config, state)
    for key, tensor in state.items():
        key = key.replace("e_score_correction_bias", "e_score_correction.bias")
        if ".experts." in key and case.get("mxfp4"):
            continue
        key = key.replace(".sinks", ".sinks.weight")
        values = tensor.float().numpy()
        if arch == "llama" and ("q_proj" in key or "k_proj" in key):
            values = interleave(values, config["num_attention_heads" if "q_proj" in key
                                               else "num_key_value_heads"])
        if arch.startswith("gemma") and key.endswith("norm.weight"):
            values = values + 1
        name = names.get_name(key, try_suffixes=(".weight", ".bias"))
        assert name, key
        if name.endswith("_exps"):
            name += ".weight"
        if values.ndim == 1 or tensor.dtype == torch.float32:
            writer.add_tensor(name, np.ascontiguousarray(values, dtype=np.float32))
        elif tensor.dtype == torch.bfloat16:
            raw = torch.from_numpy(np.ascontiguousarray(values)).bfloat16().view(torch.uint8)
            writer.add_tensor(name, raw.numpy(), raw_dtype=gguf.GGMLQuantizationType.BF16)
        else:
            writer.add_tensor(name, np.ascontiguousarray(values, dtype=np.float16))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def make(root, name, states):
    case = CASES[name]
    config = config_of(name)
    owner = case.get("weights_of", name)
    if owner == name:
        states[name] = random_state(name, case, config, seed=1 + list(CASES).index(name))
    state = states[owner]
    rng = np.random.default_rng(1000 + list(CASES).index(name))
    prompts = [rng.integers(0, VOCAB, n).tolist() for n in case.get("prompts", [24, 9, 17])]
    floats = {key: value.float() for key, value in state.items() if value.dtype != torch.uint8}
    logits, hidden = run(build(case, config, floats), prompts)
    assert np.isfinite(logits).all()
    check_ablations(name, case, config, floats, prompts, logits)

    folder = root / name
    save_hf(folder / "hf", case, config, state if owner == name else None)
    if case.get("gguf"):
        save_gguf(folder / "model.gguf", case, config, state)
    np.save(folder / "ids.npy", np.concatenate(prompts).astype(np.int32))
    np.save(folder / "lengths.npy", np.array([len(p) for p in prompts], dtype=np.int32))
    np.save(folder / "logits.npy", logits)
    np.save(folder / "hidden.npy", hidden)
    print(f"{name}: logits within {np.abs(logits).max():.1f}")


def main():
    root = pathlib.Path(sys.argv[1])
    if root.exists():
        shutil.rmtree(root)
    states = {}
    for name in CASES:
        make(root, name, states)


if __name__ == "__main__":
    main()
