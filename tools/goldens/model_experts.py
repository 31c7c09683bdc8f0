"""Weights of experts as transformers, published folders and GGUF files hold them."""

import numpy as np
import torch

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


# Names of experts' matrices on published checkpoints, gate, up and down; transformers 5 stacks them.
MIXTRAL_EXPERTS = ("w1", "w3", "w2")
EXPERTS = ("gate_proj", "up_proj", "down_proj")


def predicting_layer(config, joint, query):
    """Two matrices of a layer behind the last, under these names."""
    layer, dim = config["num_hidden_layers"], config["hidden_size"]
    rows = config["num_attention_heads"] * config.get("head_dim", 8)
    return {joint.format(layer) + ".weight": torch.ones(dim, 2 * dim, dtype=torch.float16),
            query.format(layer) + ".weight": torch.ones(rows, dim, dtype=torch.float16)}


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
