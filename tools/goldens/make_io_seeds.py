#!/usr/bin/env python3
"""Writes the seeds of tests/fuzz/gguf, safetensors, scaled_file, integer_folder, tiny_file, lora,
image_file, control_file, upscaler_file, embedding and scheduler: small files, valid and broken.

The valid ones come from the formats' own packages (gguf 0.19, safetensors 0.8, numpy), so that they
are also files of another program; the broken ones are changed copies. Usage: make_io_seeds.py
"""

import json
import struct
import tempfile
from pathlib import Path

import arguments

arguments.read(__name__, __doc__)

import gguf
import numpy as np
from safetensors.numpy import save

FUZZ = Path(__file__).resolve().parents[2] / "tests" / "fuzz"


def write(folder, name, data):
    path = FUZZ / folder / "seeds" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def gguf_bytes(fill, **options):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "seed.gguf"
        writer = gguf.GGUFWriter(path, "llama", **options)
        fill(writer)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        return path.read_bytes()


def every_value(writer):
    for bits in (8, 16, 32, 64):
        getattr(writer, f"add_uint{bits}")(f"u{bits}", 2**bits - 1)
        getattr(writer, f"add_int{bits}")(f"i{bits}", -(2 ** (bits - 1)))
    writer.add_float32("f32", 1.5)
    writer.add_float64("f64", 2.25)
    writer.add_bool("bool", True)
    writer.add_array("strings", ["a", "", "three"])
    writer.add_array("numbers", [1, 2, 3])
    writer.add_array("floats", [0.5, -1.0])
    writer.add_array("nested", [[1, 2], [3]])


def some_tensors(writer):
    writer.add_tensor("token_embd.weight", np.arange(8, dtype=np.float32).reshape(2, 4))
    writer.add_tensor("half", np.ones((1, 2, 3), np.float16))
    blocks = np.arange(72, dtype=np.uint8).reshape(2, 36)
    writer.add_tensor("blocks", blocks, raw_dtype=gguf.GGMLQuantizationType.Q4_0)


def patched(data, at, value):
    return data[:at] + value + data[at + len(value):]


def gguf_seeds():
    values = gguf_bytes(every_value)
    tensors = gguf_bytes(some_tensors)
    write("gguf", "values.gguf", values)
    write("gguf", "tensors.gguf", tensors)
    write("gguf", "alignment.gguf", gguf_bytes(
        lambda writer: (writer.add_custom_alignment(64), some_tensors(writer))))
    write("gguf", "version2.gguf", patched(tensors, 4, struct.pack("<I", 2)))
    write("gguf", "version1.gguf", patched(tensors, 4, struct.pack("<I", 1)))
    write("gguf", "big_endian.gguf", patched(tensors, 4, struct.pack(">I", 3)))
    write("gguf", "many_tensors.gguf", patched(tensors, 8, struct.pack("<Q", 2**64 - 1)))
    write("gguf", "many_pairs.gguf", patched(tensors, 16, struct.pack("<Q", 2**63)))
    write("gguf", "cut_header.gguf", tensors[:60])
    write("gguf", "cut_data.gguf", tensors[:-40])
    nested = struct.pack("<4sIQQQ1sI", b"GGUF", 3, 0, 1, 1, b"k", 9)
    write("gguf", "deep_array.gguf", nested + struct.pack("<IQ", 9, 1) * 100)


def safetensors_bytes(header, data):
    text = json.dumps(header).encode() if isinstance(header, dict) else header
    return struct.pack("<Q", len(text)) + text + data


def entry(dtype, shape, offsets):
    return {"dtype": dtype, "shape": shape, "data_offsets": offsets}


def safetensors_seeds():
    valid = save({"a": np.arange(6, dtype=np.float32).reshape(2, 3), "b": np.ones(3, np.int64),
                  "c": np.zeros((0, 2), np.float16)}, {"format": "pt"})
    write("safetensors", "valid.safetensors", valid)
    write("safetensors", "cut.safetensors", valid[:-7])
    write("safetensors", "long_header.safetensors", patched(valid, 0, struct.pack("<Q", 2**63)))
    cases = {
        "hole": {"a": entry("U8", [1], [0, 1]), "b": entry("U8", [1], [2, 3])},
        "overlap": {"a": entry("U8", [2], [0, 2]), "b": entry("U8", [2], [1, 3])},
        "negative": {"a": entry("F32", [-1], [0, 3])},
        "overflow": {"a": entry("F32", [2**40, 2**40], [0, 3])},
        "unknown_type": {"a": entry("F4", [3], [0, 3])},
        "wrong_size": {"a": entry("BF16", [3], [0, 3])},
    }
    for name, header in cases.items():
        write("safetensors", f"{name}.safetensors", safetensors_bytes(header, b"xyz"))
    twice = b'{"a":%s,"a":%s}' % ((json.dumps(entry("U8", [1], [0, 1])).encode(),) * 2)
    write("safetensors", "twice.safetensors", safetensors_bytes(twice, b"x"))
    write("safetensors", "deep.safetensors", safetensors_bytes(b'{"a":' + b"[" * 200, b""))


def header_of(tensors):
    """The header of {name: (dtype, shape, bytes)}, whose data lie one after the other."""
    header, at = {}, 0
    for name, (dtype, shape, size) in tensors.items():
        header[name] = entry(dtype, shape, [at, at + size])
        at += size
    return json.dumps(header, separators=(",", ":")).encode(), at


def scaled_seeds():
    matrix = {"a.weight": ("F8_E4M3", [2, 2], 4)}
    half = struct.pack("<f", 0.5)
    cases = {
        "scaled": ({**matrix, "a.scale_weight": ("F32", [], 4), "a.scale_input": ("F32", [], 4),
                    "scaled_fp8": ("F8_E4M3", [0], 0)}, half * 2),
        "comfy": ({"a.weight": ("F8_E5M2", [2, 2], 4), "a.weight_scale": ("BF16", [1], 2),
                   "a.comfy_quant": ("U8", [2], 2)}, b"\x80\x3e{}"),
        "two_scales": ({**matrix, "a.weight_scale": ("F16", [2], 4)}, half),
        "no_number": ({**matrix, "a.weight_scale": ("F32", [1], 4)}, b"\0\0\xc0\x7f"),
        "wide": ({"a.weight": ("F16", [1, 2], 4), "a.scale_weight": ("F32", [1], 4)}, half),
        "plain": ({"a.weight": ("F32", [1], 4)}, b""),
    }
    for name, (tensors, data) in cases.items():
        write("scaled_file", name, header_of(tensors)[0] + b"\0" + bytes([56, 60, 184, 0]) + data)

    def with_scale(writer):
        writer.add_tensor("a.weight", np.ones((2, 2), np.float32))
        writer.add_tensor("a.scale_weight", np.ones(1, np.float32))

    write("scaled_file", "scale.gguf", gguf_bytes(with_scale))


def integer_seeds():
    def config(**fields):
        return json.dumps({"quantization_config": fields}, separators=(",", ":")).encode()

    def gptq(bits, **fields):
        return config(quant_method="gptq", bits=bits, group_size=32, **fields)

    def columns(bits, inputs, rows):
        groups, words = -(-inputs // 32), rows * bits // 32
        return {"a.g_idx": ("I32", [inputs], 4 * inputs),
                "a.qweight": ("I32", [inputs * bits // 32, rows], inputs * bits // 8 * rows),
                "a.qzeros": ("I32", [groups, words], 4 * groups * words),
                "a.scales": ("F16", [groups, rows], 2 * groups * rows)}

    weights = {"num_bits": 4, "type": "int", "strategy": "channel", "symmetric": False}
    cases = {
        "gptq_4": (gptq(4), columns(4, 32, 8), bytes(4 * 32 + 128) + b"\x77" * 4),
        "gptq_3_order": (gptq(3, desc_act=True, checkpoint_format="gptq_v2"), columns(3, 64, 32),
                         struct.pack("<64i", *[i % 2 for i in range(64)])),
        "gptq_8": (gptq(8), columns(8, 32, 4), bytes(4 * 32 + 128) + b"\x7f" * 4),
        "gptq_bad_group": (gptq(4), columns(4, 32, 8), struct.pack("<32i", *range(32))),
        "awq": (config(quant_method="awq", bits=4, group_size=32, version="gemm"),
                {"a.qweight": ("I32", [32, 1], 128), "a.qzeros": ("I32", [1, 1], 4),
                 "a.scales": ("F16", [1, 8], 16)}, b""),
        "packed": (config(quant_method="compressed-tensors", format="pack-quantized",
                          config_groups={"group_0": {"weights": weights}}),
                   {"a.weight_shape": ("I64", [2], 16), "a.weight_packed": ("I32", [3, 2], 24),
                    "a.weight_scale": ("BF16", [3, 1], 6),
                    "a.weight_zero_point": ("I32", [1, 1], 4)}, struct.pack("<2q", 3, 11)),
        "no_scales": (gptq(4), {"a.qweight": ("I32", [4, 8], 128)}, b""),
    }
    for name, (text, tensors, start) in cases.items():
        header, size = header_of(tensors)
        data = start + b"\x2e" * (size - len(start))
        write("integer_folder", name, text + b"\0" + header + b"\0" + data)


def tiny_layers(first, resizing, last, blocks, prefix, shift=0, width=2, channels=1):
    """The tensors of one half whose layers `resizing` have no bias."""
    out = {}

    def conv(name, rows, columns, bias=True):
        out[f"{prefix}{name}.weight"] = ("F16", [rows, columns, 3, 3], 18 * rows * columns)
        if bias:
            out[f"{prefix}{name}.bias"] = ("F16", [rows], 2 * rows)

    conv(shift, width, first)
    for i in blocks:
        for part in (0, 2, 4):
            conv(f"{i + shift}.conv.{part}", width, width)
    for i in resizing:
        conv(i + shift, width, width, bias=False)
    conv(max([*blocks, *resizing]) + 1 + shift, last, width)
    return out


def tiny_seeds():
    # One block, a change of size, one block, at a width of 2 with one latent channel.
    def encoder(prefix):
        return tiny_layers(3, [2], 1, [1, 3], prefix)

    def decoder(prefix, shift=0):
        return tiny_layers(1, [4], 3, [2, 5], prefix, shift)

    config = {"_class_name": "AutoencoderTiny", "num_encoder_blocks": [1, 1],
              "num_decoder_blocks": [1, 1], "encoder_block_out_channels": [2, 2],
              "decoder_block_out_channels": [2, 2], "latent_channels": 1, "scaling_factor": 0.5}
    cases = {
        "diffusers": ({**encoder("encoder.layers."), **decoder("decoder.layers.")}, {}, config),
        "no_config": ({**encoder("encoder.layers."), **decoder("decoder.layers.")}, {}, None),
        "authors": ({**encoder("encoder."), **decoder("decoder.", 1)}, {}, None),
        "comfy": (decoder("taesd_decoder.", 1), {}, None),
        "halves": (decoder("", 1), encoder(""), None),
        "other": ({"conv_in.weight": ("F16", [1], 2)}, {}, {"_class_name": "AutoencoderKL"}),
        "many_levels": (tiny_layers(1, range(3, 131, 2), 3, [], "decoder.layers.", width=1), {},
                        {**config, "num_decoder_blocks": [0] * 65, "num_encoder_blocks": [0] * 65,
                         "encoder_block_out_channels": [1], "decoder_block_out_channels": [1]}),
    }
    for name, (one, other, beside) in cases.items():
        (first, size), second = header_of(one), header_of(other) if other else (b"", 0)
        text = json.dumps(beside, separators=(",", ":")).encode() if beside else b""
        data = bytes(max(size, second[1]))
        write("tiny_file", name, b"\0".join([first, second[0], text, data]))


def upscaler_seeds():
    def network(first, dense, body, ups, hr, last, squares=1, plus=False):
        out = {}

        def conv(name, rows, columns):
            out[f"{name}.weight"] = ("F16", [rows, columns, 3, 3], 18 * rows * columns)
            out[f"{name}.bias"] = ("F16", [rows], 2 * rows)

        conv(first, 2, 3 * squares * squares)
        for block in (1, 2, 3):
            for k in range(1, 6):
                conv(dense.format(block, k), 2 if k == 5 else 1, k + 1)
            if plus:
                shortcut = dense.format(block, 1).replace("conv1", "conv1x1").removesuffix(".0")
                out[f"{shortcut}.weight"] = ("F16", [1, 2, 1, 1], 4)
        for name in (body, *ups, hr):
            conv(name, 2, 2)
        conv(last, 3, 2)
        return out

    def compact(channels, slopes=2):
        out = {}
        for layer, (rows, columns) in enumerate([(2, 3), (2, 2), (channels, 2)]):
            out[f"body.{2 * layer}.weight"] = ("F16", [rows, columns, 3, 3], 18 * rows * columns)
            out[f"body.{2 * layer}.bias"] = ("F16", [rows], 2 * rows)
            if layer < 2:
                out[f"body.{2 * layer + 1}.weight"] = ("F16", [slopes], 2 * slopes)
        return out

    def below(prefix, tensors):
        return {prefix + name: tensor for name, tensor in tensors.items()}

    current = ("conv_first", "body.0.rdb{}.conv{}", "conv_body", ["conv_up1", "conv_up2"],
               "conv_hr", "conv_last")
    cases = {
        "current": network(*current),
        "squares": network(*current, squares=4),
        "published": network("conv_first", "RRDB_trunk.0.RDB{}.conv{}", "trunk_conv",
                             ["upconv1", "upconv2"], "HRconv", "conv_last"),
        "old": network("model.0", "model.1.sub.0.RDB{}.conv{}.0", "model.1.sub.1",
                       ["model.3", "model.6"], "model.8", "model.10"),
        "plus": network("model.0", "model.1.sub.0.RDB{}.conv{}.0", "model.1.sub.1",
                        ["model.3", "model.6", "model.9"], "model.11", "model.13", plus=True),
        "params": {**below("params_ema.", network(*current)), "params.conv_first.bias": ("F16", [1], 2)},
        "compact": compact(12),
        "compact_params": below("params.", compact(3)),
        "compact_slopes": compact(12, slopes=1),
        "compact_size": compact(15),
        "compact_wide": {**compact(12), "body.4.weight": ("F16", [2**62, 0, 3, 3], 0)},
        "same_size": network("model.0", "model.1.sub.0.RDB{}.conv{}.0", "model.1.sub.1", [],
                             "model.2", "model.4"),
        "more": {**network(*current), "conv_extra.weight": ("F16", [1], 2)},
        "no_end": {key: value for key, value in network(*current).items() if "last" not in key},
        "wide": {**network(*current), "conv_first.weight": ("F16", [2**40, 0, 3, 3], 0)},
    }
    for name, tensors in cases.items():
        header, size = header_of(tensors)
        write("upscaler_file", name, header + b"\0" + bytes(size))


def lora_seeds():
    module = "base_model.model.model.layers.0.self_attn.q_proj"
    pair = {f"{module}.lora_A.weight": ("F32", [2, 3], 24),
            f"{module}.lora_B.weight": ("F32", [4, 2], 32)}
    plain = {"peft_type": "LORA", "r": 2, "lora_alpha": 4}
    cases = {
        "plain": (plain, pair),
        "stabilised": ({**plain, "use_rslora": True, "alpha_pattern": {"q_proj": 3},
                        "rank_pattern": {"self_attn.q_proj": 2}}, pair),
        "dora": ({**plain, "use_dora": True}, pair),
        "alone": (plain, {f"{module}.lora_A.weight": ("F32", [2, 3], 24)}),
        "empty_rank": ({**plain, "r": 0}, {f"{module}.lora_A.weight": ("F32", [0, 3], 0),
                                           f"{module}.lora_B.weight": ("F32", [4, 0], 0)}),
        "copy": (plain, {**pair, "lm_head.base_layer.weight": ("F32", [1], 4)}),
    }
    for name, (config, tensors) in cases.items():
        header, size = header_of(tensors)
        text = json.dumps(config, separators=(",", ":")).encode()
        write("lora", name, b"\0".join([text, header, bytes(size)]))

    def adapter(writer):
        writer.add_string("general.type", "adapter")
        writer.add_string("adapter.type", "lora")
        writer.add_float32("adapter.lora.alpha", 4)
        writer.add_tensor("blk.0.attn_q.weight.lora_a", np.ones((2, 3), np.float32))
        writer.add_tensor("blk.0.attn_q.weight.lora_b", np.ones((4, 2), np.float16))

    write("lora", "adapter.gguf", gguf_bytes(adapter))
    write("lora", "model.gguf", gguf_bytes(some_tensors))


class Shapes:
    """{name: shape} of a model whose layers are 32 wide."""

    WIDTH, TIME = 32, 128

    def __init__(self):
        self.out = {}

    def add(self, name, *shape, bias=True):
        self.out[f"{name}.weight"] = list(shape)
        if bias:
            self.out[f"{name}.bias"] = [shape[0]]

    def conv(self, name, rows, columns, side=3):
        self.add(name, rows, columns, side, side)

    def unet_resnet(self, name, columns=WIDTH):
        self.add(f"{name}.in_layers.0", columns)
        self.conv(f"{name}.in_layers.2", self.WIDTH, columns)
        self.add(f"{name}.emb_layers.1", self.WIDTH, self.TIME)
        self.add(f"{name}.out_layers.0", self.WIDTH)
        self.conv(f"{name}.out_layers.3", self.WIDTH, self.WIDTH)
        if columns != self.WIDTH:
            self.conv(f"{name}.skip_connection", self.WIDTH, columns, 1)

    def unet_attention(self, name, context):
        width, block = self.WIDTH, f"{name}.transformer_blocks.0"
        self.add(f"{name}.norm", width)
        self.conv(f"{name}.proj_in", width, width, 1)
        for i in (1, 2, 3):
            self.add(f"{block}.norm{i}", width)
        for attention, columns in (("attn1", width), ("attn2", context)):
            self.add(f"{block}.{attention}.to_q", width, width, bias=False)
            self.add(f"{block}.{attention}.to_k", width, columns, bias=False)
            self.add(f"{block}.{attention}.to_v", width, columns, bias=False)
            self.add(f"{block}.{attention}.to_out.0", width, width)
        self.add(f"{block}.ff.net.0.proj", 8 * width, width)
        self.add(f"{block}.ff.net.2", width, 4 * width)
        self.conv(f"{name}.proj_out", width, width, 1)

    def unet_down(self, prefix, context):
        """One level of one resnet, and the middle."""
        self.add(f"{prefix}time_embed.0", self.TIME, self.WIDTH)
        self.add(f"{prefix}time_embed.2", self.TIME, self.TIME)
        self.conv(f"{prefix}input_blocks.0.0", self.WIDTH, 4)
        self.unet_resnet(f"{prefix}input_blocks.1.0")
        self.unet_attention(f"{prefix}input_blocks.1.1", context)
        self.unet_resnet(f"{prefix}middle_block.0")
        self.unet_attention(f"{prefix}middle_block.1", context)
        self.unet_resnet(f"{prefix}middle_block.2")

    def unet(self, prefix, context):
        self.unet_down(prefix, context)
        for i in (0, 1):
            self.unet_resnet(f"{prefix}output_blocks.{i}.0", 2 * self.WIDTH)
            self.unet_attention(f"{prefix}output_blocks.{i}.1", context)
        self.add(f"{prefix}out.0", self.WIDTH)
        self.conv(f"{prefix}out.2", 4, self.WIDTH)

    def vae(self, prefix):
        def resnet(name):
            for i in (1, 2):
                self.add(f"{name}.norm{i}", self.WIDTH)
                self.conv(f"{name}.conv{i}", self.WIDTH, self.WIDTH)

        for half, first, last in (("encoder", 3, 8), ("decoder", 4, 3)):
            name = prefix + half
            self.conv(f"{name}.conv_in", self.WIDTH, first)
            resnet(f"{name}.mid.block_1")
            self.add(f"{name}.mid.attn_1.norm", self.WIDTH)
            for part in ("q", "k", "v", "proj_out"):
                self.conv(f"{name}.mid.attn_1.{part}", self.WIDTH, self.WIDTH, 1)
            resnet(f"{name}.mid.block_2")
            self.add(f"{name}.norm_out", self.WIDTH)
            self.conv(f"{name}.conv_out", last, self.WIDTH)
        resnet(f"{prefix}encoder.down.0.block.0")
        for i in (0, 1):
            resnet(f"{prefix}decoder.up.0.block.{i}")
        self.conv(f"{prefix}quant_conv", 8, 8, 1)
        self.conv(f"{prefix}post_quant_conv", 4, 4, 1)

    def clip(self, prefix, width=8):
        self.add(f"{prefix}embeddings.token_embedding", 16, width, bias=False)
        self.add(f"{prefix}embeddings.position_embedding", 77, width, bias=False)
        layer = f"{prefix}encoder.layers.0"
        for part in ("q_proj", "k_proj", "v_proj", "out_proj"):
            self.add(f"{layer}.self_attn.{part}", width, width)
        for i in (1, 2):
            self.add(f"{layer}.layer_norm{i}", width)
        self.add(f"{layer}.mlp.fc1", 2 * width, width)
        self.add(f"{layer}.mlp.fc2", width, 2 * width)
        self.add(f"{prefix}final_layer_norm", width)

    def control(self, prefix):
        self.unet_down(prefix, 8)
        for at, rows, columns in ((0, 16, 3), (2, 16, 16), (4, 32, 16), (6, self.WIDTH, 32)):
            self.conv(f"{prefix}input_hint_block.{at}", rows, columns)
        for name in ("zero_convs.0.0", "zero_convs.1.0", "middle_block_out.0"):
            self.conv(f"{prefix}{name}", self.WIDTH, self.WIDTH, 1)


def write_padded(folder, name, tensors, kind="F8_E4M3", size=1, data=b""):
    """The form of tests/fuzz/padded_file.h, of {name: shape}."""
    header, total = header_of({key: (kind, shape, size * int(np.prod(shape)))
                               for key, shape in tensors.items()})
    write(folder, name, b"\0".join([header, str(total).encode(), data]))


def picture_file_seeds():
    whole = Shapes()
    whole.clip("cond_stage_model.transformer.text_model.")
    whole.unet("model.diffusion_model.", 8)
    whole.vae("first_stage_model.")
    write_padded("image_file", "whole", whole.out)
    narrow = {**whole.out, "model.diffusion_model.input_blocks.1.0.out_layers.3.weight": []}
    write_padded("image_file", "number_for_matrix", narrow)
    alone = Shapes()
    alone.unet("", 768)
    write_padded("image_file", "unet", alone.out)
    vae = Shapes()
    vae.vae("vae.")
    write_padded("image_file", "vae", vae.out)
    write_padded("image_file", "flux", {
        "double_blocks.0.img_attn.qkv.weight": [24, 8],
        "double_blocks.0.img_attn.norm.query_norm.scale": [8], "img_in.weight": [8, 4],
        "single_blocks.0.linear1.weight": [56, 8], "final_layer.linear.weight": [4, 8],
        "final_layer.adaLN_modulation.1.weight": [16, 8], "txt_in.weight": [8, 8],
        "vector_in.in_layer.weight": [8, 8]})
    sd3 = {"joint_blocks.0.context_block.attn.qkv.weight": [24, 8],
           "joint_blocks.0.x_block.attn.qkv.weight": [24, 8],
           "joint_blocks.0.x_block.attn.ln_q.weight": [8], "x_embedder.proj.weight": [8, 4, 2, 2],
           "final_layer.linear.weight": [16, 8], "context_embedder.weight": [8, 8],
           "y_embedder.mlp.0.weight": [8, 8], "pos_embed": [1, 4, 8]}
    write_padded("image_file", "sd3", sd3)
    # Whose square is 2^64.
    write_padded("image_file", "sd3_patch", {**sd3, "x_embedder.proj.weight": [8, 4, 2**32, 0]})
    control = Shapes()
    control.control("control_model.")
    write_padded("control_file", "whole", control.out)
    plain = Shapes()
    plain.control("")
    write_padded("control_file", "no_prefix", plain.out)
    write_padded("control_file", "few_hints",
                 {key: shape for key, shape in plain.out.items() if "hint_block.6" not in key})
    write_padded("control_file", "other", vae.out)


def embedding_seeds():
    for name, tensors in {"a1111": {"emb_params": [2, 4]}, "diffusers": {"<word>": [4]},
                          "large": {"clip_l": [3, 4], "clip_g": [3, 6]},
                          "two_counts": {"clip_l": [3, 4], "clip_g": [2, 6]},
                          "many": {"emb_params": [76, 4]}, "none": {"emb_params": [0, 4]},
                          "wide": {"emb_params": [2, 5]}, "two": {"a": [4], "b": [4]}}.items():
        write_padded("embedding", name, tensors, "F16", 2)


def scheduler_seeds():
    old = {"beta_schedule": "scaled_linear", "beta_start": 0.00085, "beta_end": 0.012,
           "num_train_timesteps": 1000, "steps_offset": 1, "set_alpha_to_one": False}
    flow = {"_class_name": "FlowMatchEulerDiscreteScheduler", "shift": 3.0}
    cases = {
        "pndm": {**old, "_class_name": "PNDMScheduler"},
        "karras": {**old, "_class_name": "DPMSolverMultistepScheduler", "use_karras_sigmas": True,
                   "algorithm_type": "sde-dpmsolver++", "timestep_spacing": "linspace"},
        "zero_snr": {**old, "_class_name": "DDIMScheduler", "rescale_betas_zero_snr": True,
                     "prediction_type": "v_prediction", "timestep_spacing": "trailing"},
        # The last but one of so many has less than 2^-24 of its signal.
        "zero_snr_many": {**old, "_class_name": "DDIMScheduler", "rescale_betas_zero_snr": True,
                          "num_train_timesteps": 6693, "timestep_spacing": "trailing"},
        "lcm": {**old, "_class_name": "LCMScheduler", "original_inference_steps": 50},
        "cosine": {**old, "_class_name": "UniPCMultistepScheduler",
                   "beta_schedule": "squaredcos_cap_v2"},
        "trained": {"trained_betas": [0.1, 0.2, 0.3]},
        "flow": flow,
        "dynamic": {**flow, "use_dynamic_shifting": True, "base_image_seq_len": 256,
                    "max_image_seq_len": 4096, "base_shift": 0.5, "max_shift": 1.15},
        "no_picture_left": {"beta_start": 0.5, "beta_end": 0.5, "num_train_timesteps": 5000},
        "far_offset": {**old, "_class_name": "DDIMScheduler", "steps_offset": 2**31 - 1},
        "far_tokens": {**flow, "use_dynamic_shifting": True, "base_image_seq_len": -2**63,
                       "max_image_seq_len": 2**63 - 1},
        "endless_shift": {**flow, "use_dynamic_shifting": True, "base_shift": 1e300},
    }
    for name, config in cases.items():
        write("scheduler", f"{name}.json", json.dumps(config, separators=(",", ":")).encode())


if __name__ == "__main__":
    gguf_seeds()
    safetensors_seeds()
    scaled_seeds()
    integer_seeds()
    tiny_seeds()
    upscaler_seeds()
    lora_seeds()
    picture_file_seeds()
    embedding_seeds()
    scheduler_seeds()
