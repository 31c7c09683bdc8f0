"""Qwen3-Next and Qwen3.5 as llama.cpp's converter writes them (conversion/qwen.py there)."""

import torch

TYPES = {"qwen3_next": "qwen3next", "qwen3_5_text": "qwen35", "qwen3_5_moe_text": "qwen35moe"}


def add_delta_keys(writer, arch, config):
    writer.add_ssm_conv_kernel(config["linear_conv_kernel_dim"])
    writer.add_ssm_state_size(config["linear_key_head_dim"])
    writer.add_ssm_group_count(config["linear_num_key_heads"])
    writer.add_ssm_time_step_rank(config["linear_num_value_heads"])
    writer.add_ssm_inner_size(config["linear_num_value_heads"] * config["linear_value_head_dim"])
    writer.add_uint32(f"{arch}.full_attention_interval", config["full_attention_interval"])
    if arch == "qwen35":
        # One more layer, for drafts.
        writer.add_uint32("qwen35.nextn_predict_layers", 1)
    if arch != "qwen3next":
        writer.add_array(f"{arch}.rope.dimension_sections", [11, 11, 10, 0])


def tiled(rows, config, size):
    """Value heads of `size` rows, from those of one key head together to one of each in turn."""
    keys = config["linear_num_key_heads"]
    each = config["linear_num_value_heads"] // keys
    return rows.reshape(keys, each, size, *rows.shape[1:]).transpose(0, 1).reshape(rows.shape)


def tile_heads(key, value, config):
    size, keys = config["linear_value_head_dim"], config["linear_num_key_heads"]
    first = 2 * keys * config["linear_key_head_dim"]
    if ".in_proj_qkv." in key or ".conv1d." in key:
        return torch.cat([value[:first], tiled(value[first:], config, size)])
    if ".in_proj_z." in key:
        return tiled(value, config, size)
    if key.endswith((".in_proj_a.weight", ".in_proj_b.weight", ".A_log", ".dt_bias")):
        return tiled(value, config, 1)
    if ".out_proj." in key:
        return tiled(value.T, config, size).T
    return value


def part_inputs(key, value, config):
    """in_proj_qkvz, rows by key head, as in_proj_qkv and in_proj_z."""
    keys, size = config["linear_num_key_heads"], config["linear_key_head_dim"]
    values = config["linear_num_value_heads"] // keys * config["linear_value_head_dim"]
    parts = value.reshape(keys, 2 * (size + values), -1).split([size, size, values, values], dim=1)
    q, k, v, z = (part.reshape(-1, value.shape[1]) for part in parts)
    name = key.replace("in_proj_qkvz", "in_proj_{}")
    return {name.format("qkv"): torch.cat([q, k, v]), name.format("z"): z}


def delta_state(case, config, state):
    """The state with the converter's changes, under names that the gguf package maps."""
    out = {}
    for key, value in state.items():
        if case["type"] != "qwen3_next" and "linear_attn." in key:
            value = tile_heads(key, value, config)
        if key.endswith(".A_log"):
            value = -torch.exp(value.float())
        elif key.endswith(".dt_bias"):
            key = key.replace(".dt_bias", ".dt_proj.bias")
        elif ".conv1d." in key:
            value = value.squeeze(1).float()
        elif key.endswith("norm.weight") and not key.endswith("linear_attn.norm.weight"):
            value = value.float() + 1
        if "in_proj_qkvz" in key:
            out.update(part_inputs(key, value, config))
        else:
            out[key] = value.contiguous()
    return out
