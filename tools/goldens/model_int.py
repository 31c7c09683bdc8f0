"""Weights of 4 and 8 bits with scales for groups of inputs, as AutoAWQ, AutoGPTQ and llm-compressor store them.

Scales and zeros follow from an element's place, so that the codes of a rounded matrix are found again; every 32 rows
they repeat, as transformers stacks experts' matrices of 32. It runs scale * (code - zero) in float32.
"""

import torch

GROUP = 32
AWQ_ORDER = (0, 2, 4, 6, 1, 3, 5, 7)


def is_quantised(key):
    """Whether a matrix of the model is stored so; embeddings, heads, norms and routers are not."""
    inside = ".experts." in key and key.endswith((".weight", "_proj"))
    return inside or key.endswith("_proj.weight")


def group_of(form, inputs):
    """The group of each input; an order by activations deals them out."""
    at = torch.arange(inputs)
    return (37 * at % inputs if form.get("order") else at) // GROUP


def scales_of(form, shape):
    """(out, groups) in the type of the file, with full mantissas."""
    rows, groups = torch.arange(shape[0])[:, None] % 32, torch.arange(-(-shape[1] // GROUP))[None, :]
    step = 5.0 / 2 ** form["bits"] / shape[1] ** 0.5
    return (step * (0.8 + (7 * rows + 3 * groups) % 13 / 29.0)).to(form["scale_type"])


def zeros_of(form, shape):
    middle = 2 ** (form["bits"] - 1)
    rows, groups = torch.arange(shape[0])[:, None] % 32, torch.arange(-(-shape[1] // GROUP))[None, :]
    return torch.full((shape[0], groups.shape[1]), middle) + (0 if form["symmetric"] else (rows + groups) % 5 - 2)


def spread(form, matrix):
    """Codes, and the scale and zero of each element."""
    groups = group_of(form, matrix.shape[1])
    scales = scales_of(form, matrix.shape).float()[:, groups]
    zeros = zeros_of(form, matrix.shape)[:, groups]
    codes = torch.clamp(torch.round(matrix.float() / scales) + zeros, 0, 2 ** form["bits"] - 1).long()
    return codes, scales, zeros


def rounded(form, matrix):
    codes, scales, zeros = spread(form, matrix)
    return (codes - zeros).float() * scales


def round_to_integers(form, state):
    """Makes matrices, in float32, what their codes will say; stacked experts one by one."""
    for key, value in state.items():
        if is_quantised(key):
            state[key] = torch.stack([rounded(form, m) for m in value]) if value.dim() == 3 else rounded(form, value)


def packed(codes, bits, axis):
    """Codes of 32 / bits neighbours along an axis as one int32, lowest bits first."""
    codes = codes.movedim(axis, -1)
    each = 32 // bits
    assert codes.shape[-1] % each == 0
    shifted = codes.reshape(*codes.shape[:-1], -1, each) << (bits * torch.arange(each))
    words = shifted.sum(-1)
    words = torch.where(words >= 2 ** 31, words - 2 ** 32, words).to(torch.int32)
    return words.movedim(-1, axis).contiguous()


def awq_packed(codes):
    order = torch.tensor(AWQ_ORDER)
    return packed(codes.reshape(codes.shape[0], -1, 8)[:, :, order].reshape(codes.shape), 4, 1)


def tensors_of(form, matrix, layer):
    codes, _, _ = spread(form, matrix)
    scales, zeros = scales_of(form, matrix.shape), zeros_of(form, matrix.shape)
    bits = form["bits"]
    if form["kind"] == "compressed":
        out = {"weight_packed": packed(codes, bits, 1), "weight_scale": scales,
               "weight_shape": torch.tensor(matrix.shape)}
        if not form["symmetric"]:
            out["weight_zero_point"] = packed(zeros, bits, 0)
    elif form["kind"] == "awq":
        out = {"qweight": awq_packed(codes.T), "qzeros": awq_packed(zeros.T), "scales": scales.T.contiguous()}
    else:
        less = 1 if form["config"]["checkpoint_format"] == "gptq" else 0
        out = {"qweight": packed(codes.T, bits, 0), "qzeros": packed(zeros.T - less, bits, 1),
               "scales": scales.T.contiguous(), "g_idx": group_of(form, matrix.shape[1]).to(torch.int32)}
    return {f"{layer}.{name}": value for name, value in out.items()}


def add_integers(form, state):
    """Words, scales and zeros in place of matrices, under the names of published checkpoints."""
    for key in [key for key in state if is_quantised(key)]:
        matrix = state.pop(key)
        assert torch.equal(rounded(form, matrix), matrix), key
        state.update(tensors_of(form, matrix, key.removesuffix(".weight")))
