"""Weights of one byte (e4m3) with scales, as on published checkpoints.

Scales are powers of two, so that code times scale is exact in 16 bits: transformers runs the very
numbers that a reader of the codes has.
"""

import torch


def is_fp8(key):
    """Whether a matrix of the model is stored so; embeddings, heads, norms and routers are not."""
    inside = ".experts." in key and key.endswith((".weight", "_proj"))
    return inside or key.endswith("_proj.weight")


def scales_of(form, shape):
    """(rows, columns) of scales: a number for all, for each row or for each block."""
    if form["each"] == "tensor":
        return torch.tensor([[2.0 ** -7]])
    rows, columns = form["block"] if form["each"] == "block" else (1, shape[1])
    down, across = -(-shape[0] // rows), -(-shape[1] // columns)
    steps = 3 * torch.arange(down)[:, None] + torch.arange(across)[None, :]
    return torch.pow(2.0, -7 + steps % 4)


def spread(form, scales, shape):
    """The scale of each element."""
    if form["each"] == "tensor":
        return scales.expand(*shape)
    rows, columns = form["block"] if form["each"] == "block" else (1, shape[1])
    full = scales.repeat_interleave(rows, 0).repeat_interleave(columns, 1)
    return full[:shape[0], :shape[1]]


def coded(form, matrix):
    scales = scales_of(form, matrix.shape)
    codes = (matrix.float() / spread(form, scales, matrix.shape)).to(torch.float8_e4m3fn)
    return codes, scales


def rounded(form, matrix):
    codes, scales = coded(form, matrix)
    return (codes.float() * spread(form, scales, matrix.shape)).to(matrix.dtype)


def round_to_fp8(form, state):
    """Makes matrices what their codes will say; stacked experts one by one."""
    for key, value in state.items():
        if not is_fp8(key):
            continue
        if value.dim() == 3:
            assert form["each"] == "tensor", "experts are stacked here, and apart in files"
            state[key] = torch.stack([rounded(form, matrix) for matrix in value])
        else:
            state[key] = rounded(form, value)


def add_fp8(form, state):
    """Codes and scales in place of matrices, under the names of published checkpoints."""
    for key in [key for key in state if is_fp8(key)]:
        codes, scales = coded(form, state[key])
        spread_back = codes.float() * spread(form, scales, state[key].shape)
        assert torch.equal(spread_back, state[key].float()), key
        state[key] = codes
        layer = key.removesuffix(".weight")
        one = form["each"] == "tensor"
        state[f"{layer}.{form['name']}"] = scales[0, 0].clone() if one else scales
        if form.get("input_scale"):
            state[f"{layer}.input_scale"] = torch.tensor(0.5)
