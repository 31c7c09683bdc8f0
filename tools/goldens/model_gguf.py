"""Writes a case of make_model_goldens.py as GGUF: names, keys and row order of llama.cpp's converter."""

import math

import gguf
import numpy as np
import torch

from model_delta import TYPES as DELTA_TYPES, add_delta_keys, delta_state
from model_experts import gguf_mxfp4, predicting_layer, split_experts


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
        if "llama_4_scaling_beta" in scaling:
            writer.add_rope_scaling_yarn_log_mul(scaling["mscale_all_dim"])
            writer.add_attn_temperature_scale(scaling["llama_4_scaling_beta"])
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


def rope_of(config):
    """rope_parameters of layers that see all, or the same from the fields that came before it."""
    found = config.get("rope_parameters") or {}
    found = found.get("full_attention", found)
    if "alpha" in found:  # of Hunyuan: the base that it makes
        dim = config["head_dim"]
        return {"rope_theta": found["rope_theta"] * found["alpha"] ** (dim / (dim - 2))}
    return found or {"rope_theta": config["rope_theta"],
                                             **(config.get("rope_scaling") or {})}


def add_keys(writer, arch, config, predicting=0):
    """predicting: layers behind the last that predict further tokens."""
    heads = config["num_attention_heads"]
    head_dim = config.get("head_dim") or config["hidden_size"] // heads
    writer.add_name("tiny random " + arch)
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"] + (1 if arch == "qwen35" else predicting))
    if predicting:
        writer.add_nextn_predict_layers(predicting)
    if arch != "qwen35moe":
        writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(heads)
    writer.add_head_count_kv(config["num_key_value_heads"])
    if "layer_norm_eps" in config:
        writer.add_layer_norm_eps(config["layer_norm_eps"])
    else:
        writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_rope_freq_base(rope_of(config)["rope_theta"])
    rotated = config.get("qk_rope_head_dim", head_dim)
    partial = config.get("partial_rotary_factor", 0.25 if arch in DELTA_TYPES.values() else 1.0)
    writer.add_rope_dimension_count(config.get("rotary_dim", int(rotated * partial)))
    if "head_dim" in config:
        writer.add_key_length(head_dim)
        writer.add_value_length(head_dim)
    if config.get("sliding_window"):
        writer.add_sliding_window(config["sliding_window"])
    elif "sliding_window" in config:
        writer.add_sliding_window(0)  # how readers tell Phi-4 from Phi-3
    if arch == "phi3" and not config.get("rope_scaling") and "original_max_position_embeddings" in config:
        writer.add_rope_scaling_orig_ctx_len(config["original_max_position_embeddings"])
    if arch == "gemma2":
        writer.add_attn_logit_softcapping(config["attn_logit_softcapping"])
        writer.add_final_logit_softcapping(config["final_logit_softcapping"])
    if config.get("sliding_window_pattern") or "layer_types" in config and arch == "olmo2":
        layers = range(config["num_hidden_layers"])
        types = config.get("layer_types") or [
            "sliding_attention" if (i + 1) % config["sliding_window_pattern"] else "" for i in layers]
        writer.add_sliding_window_pattern([each == "sliding_attention" for each in types])
    if arch == "cohere2":
        writer.add_logit_scale(config["logit_scale"])
    experts = config.get("num_local_experts", config.get("num_experts"))
    if experts:
        writer.add_expert_count(experts)
        writer.add_expert_used_count(config.get("num_experts_per_tok", config.get("moe_topk")))
    if "moe_intermediate_size" in config:
        writer.add_expert_feed_forward_length(config["moe_intermediate_size"])
    if "shared_expert_intermediate_size" in config:
        writer.add_expert_shared_feed_forward_length(config["shared_expert_intermediate_size"])
    if arch == "gpt-oss":
        writer.add_expert_feed_forward_length(config["intermediate_size"])
    if arch == "minimax-m2":
        writer.add_expert_feed_forward_length(config["intermediate_size"])
        writer.add_expert_gating_func(gguf.ExpertGatingFuncType.SIGMOID)
    if arch == "hunyuan-moe":
        writer.add_expert_feed_forward_length(config["intermediate_size"])
        writer.add_expert_shared_feed_forward_length(config["intermediate_size"])
    if arch == "ernie4_5-moe":
        writer.add_expert_count(config["moe_num_experts"])
        writer.add_expert_used_count(config["moe_k"])
        writer.add_interleave_moe_layer_step(config["moe_layer_interval"])
        writer.add_leading_dense_block_count(config["moe_layer_start_index"])
        writer.add_expert_shared_count(config["moe_num_shared_experts"])
        writer.add_expert_shared_feed_forward_length(
            config["moe_intermediate_size"] * config["moe_num_shared_experts"])
    if arch == "glm4moe":
        add_router_keys(writer, config, sigmoid=True)
    if arch == "granite":
        writer.add_embedding_scale(config["embedding_multiplier"])
        writer.add_residual_scale(config["residual_multiplier"])
        writer.add_attention_scale(config["attention_multiplier"])
        writer.add_logit_scale(config["logits_scaling"])
    if arch == "stablelm":
        writer.add_parallel_residual(config.get("use_parallel_residual", False))
    if arch == "gemma3":
        writer.add_float32("gemma3.rope.freq_base_swa", config["rope_local_base_freq"])


def add_router_keys(writer, config, sigmoid):
    """Of DeepSeek's router, which GLM has too."""
    writer.add_leading_dense_block_count(config["first_k_dense_replace"])
    writer.add_expert_count(config["n_routed_experts"])
    writer.add_expert_used_count(config["num_experts_per_tok"])
    writer.add_expert_shared_count(config["n_shared_experts"])
    writer.add_expert_weights_scale(config["routed_scaling_factor"])
    writer.add_expert_weights_norm(config["norm_topk_prob"])
    writer.add_expert_gating_func(gguf.ExpertGatingFuncType.SIGMOID if sigmoid
                                  else gguf.ExpertGatingFuncType.SOFTMAX)
    writer.add_expert_group_count(config["n_group"])
    writer.add_expert_group_used_count(config["topk_group"])


def add_deepseek_keys(writer, case, config):
    """joined_latents: as files before attn_k_b and attn_v_b have it."""
    v3 = case["type"] != "deepseek_v2"
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
    add_router_keys(writer, config, sigmoid=v3)
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


def stack_head_norms(state):
    """StableLM's norms of each head as one tensor, where GGUF files have them."""
    out = {}
    for key, value in state.items():
        if ".norms." not in key:
            out[key] = value
            continue
        name = key.split("norms.")[0][:-1] + ".weight"
        out[name] = torch.cat([out[name], value[None]]) if name in out else value[None]
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
            "deepseek_v3": "deepseek2", "gpt_oss": "gpt-oss", "ministral3": "mistral3",
            "glm4_moe": "glm4moe", "minimax_m2": "minimax-m2", "ernie4_5_moe": "ernie4_5-moe",
            "hunyuan_v1_dense": "hunyuan-dense", "hunyuan_v1_moe": "hunyuan-moe", "olmo3": "olmo2",
            "glm4_moe_lite": "deepseek2", **DELTA_TYPES}.get(
                case["type"], case["type"])
    arch = case.get("gguf_arch", arch)
    writer = gguf.GGUFWriter(path, arch)
    add_keys(writer, arch, config, 1 if case.get("predicts") else 0)
    if arch == "deepseek2":
        add_deepseek_keys(writer, case, config)
    if arch in DELTA_TYPES.values():
        add_delta_keys(writer, arch, config)
        state = delta_state(case, config, state)
    extra = add_rope(writer, config, rope_of(config))
    for name, values in extra.items():
        writer.add_tensor(name, values)
    if case.get("predicts"):
        for name, values in predicting_layer(config, "blk.{}.nextn.eh_proj", "blk.{}.attn_q").items():
            writer.add_tensor(name, values.numpy())
    known = {name: key for key, name in gguf.MODEL_ARCH_NAMES.items()}
    names = gguf.get_tensor_name_map(known[arch], config["num_hidden_layers"])
    if case.get("mxfp4"):
        add_gguf_mxfp4(writer, config, state)
    state = stack_head_norms(split_experts(state))
    if arch == "deepseek2" and not case.get("joined_latents"):
        state = split_latents(config, state)
    for key, tensor in state.items():
        key = key.replace("e_score_correction_bias", "e_score_correction.bias")
        if ".experts." in key and case.get("mxfp4"):
            continue
        key = key.replace(".sinks", ".sinks.weight").replace("mlp.gate.moe_statics.", "mlp.moe_statics.")
        values = tensor.float().numpy()
        if "moe_statics" in key:
            values = values.reshape(-1)
        if arch in ("llama", "mistral3", "granite", "smollm3") and ("q_proj" in key or "k_proj" in key):
            values = interleave(values, config["num_attention_heads" if "q_proj" in key
                                               else "num_key_value_heads"])
        if arch.startswith("gemma") and key.endswith("norm.weight"):
            values = values + 1
        name = names.get_name(key, try_suffixes=(".weight", ".bias"))
        assert name, key
        if name.endswith("_exps"):
            name += ".weight"
        if key.endswith(".A_log"):
            name = name.removesuffix(".weight")
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
