#!/usr/bin/env python3
"""Makes tests/ops/data/ops.safetensors: inputs, options and results of operations as PyTorch has
them, for sizes, strides, padding, dilation and groups that differ along every axis.

A case is named "<op>.<case>"; its tensors are "<op>.<case>/<operand>", the options single i64 or
f32 elements under the option's name. PyTorch computes in float64 from float32 values, so that the
results hold whatever the order of a sum; they are stored as float32.

Run from the repository root (wrote the committed file with the versions below):
    python3 -m venv venv && venv/bin/pip install torch==2.15.0 safetensors
    venv/bin/python tools/goldens/make_op_goldens.py tests/ops/data
"""

import math
import pathlib

import arguments

ARGUMENTS = arguments.read(__name__, __doc__, ("folder", "tests/ops/data"))

import torch
import torch.nn.functional as F
from safetensors.torch import save_file

generator = torch.Generator().manual_seed(20)
tensors = {}


def values(*shape):
    return torch.randn(*shape, generator=generator)


def integers(low, high, *shape, dtype=torch.int64):
    return torch.randint(low, high, shape, generator=generator).to(dtype)


def store(case, options, **operands):
    for name, value in options.items():
        dtype = torch.float32 if isinstance(value, float) else torch.int64
        tensors[f"{case}/{name}"] = torch.tensor([value], dtype=dtype)
    for name, value in operands.items():
        if value is None:
            continue
        value = value.float() if value.is_floating_point() else value
        tensors[f"{case}/{name}"] = value.contiguous().clone()


def wide(x):
    return None if x is None else x.double()


def pair(options, name, default):
    return options.get(f"{name}_h", default), options.get(f"{name}_w", default)


def conv1d(case, batch, channels, out, length, kernel, bias=True, **options):
    groups = options.get("groups", 1)
    x, weight = values(batch, channels, length), values(out, channels // groups, kernel)
    b = values(out) if bias else None
    y = F.conv1d(wide(x), wide(weight), wide(b), **options)
    store(f"conv1d.{case}", options, x=x, weight=weight, bias=b, y=y)


def conv2d(case, batch, channels, out, size, kernel, bias=True, **options):
    groups = options.get("groups", 1)
    x, weight = values(batch, channels, *size), values(out, channels // groups, *kernel)
    b = values(out) if bias else None
    y = F.conv2d(wide(x), wide(weight), wide(b), pair(options, "stride", 1),
                 pair(options, "padding", 0), pair(options, "dilation", 1), groups)
    store(f"conv2d.{case}", options, x=x, weight=weight, bias=b, y=y)


def conv_transpose1d(case, batch, channels, out, length, kernel, bias=True, **options):
    groups = options.get("groups", 1)
    x, weight = values(batch, channels, length), values(channels, out // groups, kernel)
    b = values(out) if bias else None
    y = F.conv_transpose1d(wide(x), wide(weight), wide(b), **options)
    store(f"conv_transpose1d.{case}", options, x=x, weight=weight, bias=b, y=y)


def conv_transpose2d(case, batch, channels, out, size, kernel, bias=True, **options):
    groups = options.get("groups", 1)
    x, weight = values(batch, channels, *size), values(channels, out // groups, *kernel)
    b = values(out) if bias else None
    y = F.conv_transpose2d(wide(x), wide(weight), wide(b), pair(options, "stride", 1),
                           pair(options, "padding", 0), pair(options, "output_padding", 0), groups,
                           pair(options, "dilation", 1))
    store(f"conv_transpose2d.{case}", options, x=x, weight=weight, bias=b, y=y)


def convolutions():
    conv1d("plain", 2, 3, 4, 11, 3, bias=False)
    conv1d("all", 2, 6, 9, 23, 4, stride=3, padding=5, dilation=2, groups=3)
    conv1d("pointwise", 1, 5, 7, 13, 1)
    conv1d("depthwise", 2, 7, 7, 9, 3, padding=1, groups=7)
    conv2d("plain", 1, 3, 5, (7, 9), (3, 2), bias=False)
    conv2d("all", 2, 4, 6, (13, 11), (3, 5), stride_h=2, stride_w=3, padding_h=1, padding_w=4,
           dilation_h=3, dilation_w=2, groups=2)
    conv2d("same", 2, 5, 3, (8, 6), (3, 3), padding_h=1, padding_w=1)
    conv2d("depthwise", 1, 6, 12, (9, 10), (5, 3), stride_h=2, padding_w=1, groups=6)
    conv_transpose1d("plain", 2, 3, 4, 5, 3, bias=False)
    conv_transpose1d("all", 2, 6, 4, 7, 4, stride=3, padding=2, output_padding=2, groups=2,
                     dilation=2)
    conv_transpose1d("wide_dilation", 1, 2, 3, 6, 3, output_padding=2, dilation=3)
    conv_transpose2d("plain", 1, 3, 2, (4, 5), (2, 3), bias=False)
    conv_transpose2d("all", 2, 4, 6, (5, 4), (3, 4), stride_h=2, stride_w=3, padding_h=1,
                     padding_w=2, output_padding_h=1, output_padding_w=2, dilation_h=2,
                     dilation_w=1, groups=2)


def pools():
    for case, size, options in [
            ("square", (8, 6), dict(kernel_h=2, kernel_w=2, stride_h=2, stride_w=2)),
            ("overlap", (11, 13), dict(kernel_h=3, kernel_w=4, stride_h=2, stride_w=3)),
            ("sparse", (9, 9), dict(kernel_h=1, kernel_w=2, stride_h=3, stride_w=4))]:
        x = values(2, 3, *size)
        kernel, stride = pair(options, "kernel", 1), pair(options, "stride", 1)
        store(f"pool2d.{case}", options, x=x, avg=F.avg_pool2d(wide(x), kernel, stride),
              max=F.max_pool2d(wide(x), kernel, stride))


def upsamples():
    for case, length, out in [("up", 5, 12), ("down", 13, 4), ("one", 1, 3)]:
        x = values(2, 3, length)
        store(f"upsample_nearest1d.{case}", {}, x=x, y=F.interpolate(wide(x), out))
    for case, size, out in [("up", (3, 5), (7, 10)), ("down", (9, 8), (4, 3)),
                            ("mixed", (4, 7), (9, 2)), ("one", (1, 1), (3, 2)),
                            ("to_one", (3, 4), (1, 1))]:
        x = values(2, 2, *size)
        both = dict(size=out, mode="bilinear")
        store(f"upsample2d.{case}", {}, x=x, nearest=F.interpolate(wide(x), out),
              free=F.interpolate(wide(x), align_corners=False, **both),
              aligned=F.interpolate(wide(x), align_corners=True, **both))


def indices():
    for case, axis, shape, ids_shape, dtype in [
            ("first", 0, (5, 4), (7, 3), torch.int64), ("last", 2, (3, 4, 6), (3, 4, 9), torch.uint8),
            ("middle", 1, (4, 7, 3), (2, 5, 3), torch.int32)]:
        x, ids = values(*shape), integers(0, shape[axis], *ids_shape, dtype=dtype)
        y = torch.gather(x, axis, ids.long())
        store(f"gather.{case}", dict(axis=axis), x=x, ids=ids, y=y)
        picked = integers(0, shape[axis], 11, dtype=dtype)
        y = torch.index_select(x, axis, picked.long())
        store(f"index_select.{case}", dict(axis=axis), x=x, ids=picked, y=y)
        added = list(shape)
        added[axis] = 11
        src = values(*added)
        y = wide(x).index_add(axis, picked.long(), wide(src))
        store(f"index_add.{case}", dict(axis=axis), x=x, ids=picked, src=src, y=y)

        src = values(*ids_shape)
        y = wide(x).scatter_add(axis, ids.long(), wide(src))
        store(f"scatter_add.{case}", dict(axis=axis), x=x, ids=ids, src=src, y=y)
        # Every id once: PyTorch leaves the winner of equal ids open.
        once_shape = [min(a, b) for a, b in zip(ids_shape, shape)]
        order = values(*[n if i == axis else m
                         for i, (n, m) in enumerate(zip(shape, once_shape))]).argsort(axis)
        once = order.narrow(axis, 0, once_shape[axis]).to(dtype)
        src = values(*once_shape)
        y = x.scatter(axis, once.long(), src)
        store(f"scatter.{case}", dict(axis=axis), x=x, ids=once, src=src, y=y)


def products():
    for case, a_shape, b_shape in [("plain", (5, 7), (7, 3)), ("batch", (3, 4, 6), (3, 6, 5)),
                                   ("broadcast", (2, 1, 3, 4), (5, 4, 2)),
                                   ("shared_a", (4, 6), (3, 6, 5)), ("empty_sum", (3, 0), (0, 4))]:
        a, b = values(*a_shape), values(*b_shape)
        store(f"matmul.{case}", {}, a=a, b=b, y=wide(a) @ wide(b))


def attention(case, batch, heads, kv_heads, q_len, kv_len, dim, v_dim, mask_shape=None,
              slopes=False, hidden_row=None, **options):
    """Scores by explicit matrices. PyTorch's own attention has the same result where it has the
    options; main() compares them."""
    q, k = values(batch, heads, q_len, dim), values(batch, kv_heads, kv_len, dim)
    v = values(batch, kv_heads, kv_len, v_dim)
    repeat = heads // kv_heads
    wide_k, wide_v = (wide(t).repeat_interleave(repeat, 1) for t in (k, v))
    scores = wide(q) @ wide_k.mT * options.get("scale", 1 / math.sqrt(dim))
    if "softcap" in options:
        scores = torch.tanh(scores / options["softcap"]) * options["softcap"]
    place = torch.arange(q_len)[:, None] + kv_len - q_len
    key = torch.arange(kv_len)[None, :]
    alibi = None
    if slopes:
        alibi = 2.0 ** -torch.arange(1, heads + 1).float()
        scores = scores - wide(alibi)[:, None, None] * (place - key).abs()
    mask = None
    if mask_shape:
        mask = values(*mask_shape)
        mask[values(*mask_shape) > 1] = -math.inf
        if hidden_row is not None:
            mask[..., hidden_row, :] = -math.inf
        scores = scores + wide(mask)
    hidden = torch.zeros(q_len, kv_len, dtype=torch.bool)
    if options.get("causal"):
        hidden |= key > place
    if options.get("window"):
        hidden |= key <= place - options["window"]
    scores = scores.masked_fill(hidden, -math.inf)
    y = torch.nan_to_num(torch.softmax(scores, -1)) @ wide_v
    store(f"attention.{case}", options, q=q, k=k, v=v, mask=mask, alibi_slopes=alibi, y=y)
    return q, wide_k, wide_v, mask, y


def attentions():
    q, k, v, _, y = attention("plain", 2, 3, 3, 5, 7, 8, 6)
    torch.testing.assert_close(F.scaled_dot_product_attention(wide(q), k, v), y)
    q, k, v, _, y = attention("causal", 1, 4, 2, 6, 6, 5, 5, causal=1)
    torch.testing.assert_close(F.scaled_dot_product_attention(wide(q), k, v, is_causal=True), y)
    q, k, v, mask, y = attention("mask", 2, 4, 1, 3, 5, 4, 4, mask_shape=(2, 1, 3, 5), scale=0.3)
    mine = F.scaled_dot_product_attention(wide(q), k, v, attn_mask=wide(mask), scale=0.3)
    torch.testing.assert_close(torch.nan_to_num(mine), y, rtol=1e-6, atol=1e-6)
    attention("decode", 2, 6, 2, 1, 19, 16, 16, causal=1)
    attention("window", 1, 2, 1, 9, 14, 8, 8, causal=1, window=4)
    attention("window_both_sides", 1, 2, 2, 7, 7, 4, 4, window=3)
    attention("softcap", 2, 2, 1, 4, 9, 8, 8, causal=1, softcap=1.5, scale=1.0)
    attention("alibi", 1, 3, 3, 8, 8, 6, 6, causal=1, slopes=True)
    attention("alibi_both_sides", 1, 2, 1, 4, 7, 6, 6, slopes=True)
    attention("more_queries", 1, 2, 1, 7, 4, 8, 8, causal=1)
    attention("hidden_row", 2, 2, 2, 4, 5, 4, 4, mask_shape=(4, 5), hidden_row=2)
    attention("everything", 2, 4, 2, 6, 11, 8, 3, mask_shape=(1, 4, 1, 11), slopes=True, causal=1,
              window=5, softcap=2.0, scale=0.7)


def main():
    convolutions()
    pools()
    upsamples()
    indices()
    products()
    attentions()
    path = pathlib.Path(ARGUMENTS.folder) / "ops.safetensors"
    save_file(tensors, path)
    print(f"{path}: {len(tensors)} tensors, {path.stat().st_size} bytes,",
          f"torch {torch.__version__}")


main()
