#!/usr/bin/env python3
"""Writes a Hugging Face folder of a real model's shape, or a tiny one, with random weights.

    tools/make_random_model.py llama-3-8b DIR [--dtype bfloat16] [--layers N] [--fp8 block|row|tensor]
        [--int4 awq|gptq|gptq_order|compressed] [--lora ADAPTER]

Needs PyTorch and safetensors, and uses a GPU for the random numbers when there is one; tiny shapes in a plain type
need neither, and no NumPy. The tokenizer knows single bytes only. Weights are normal with a deviation that keeps
activations in range. --fp8 stores layers' matrices as e4m3 codes with a scale for each block of 128 x 128, row or
matrix, --int4 as integers with a scale for each 128 inputs, as published checkpoints do. --lora writes another folder:
an adapter of a tiny shape, as PEFT does.
"""
import argparse
import array
import json
import random
import struct
from pathlib import Path

SHAPES = {
    "llama-3-8b": dict(hidden_size=4096, intermediate_size=14336, num_hidden_layers=32, num_attention_heads=32,
                       num_key_value_heads=8, vocab_size=128256, rope_theta=500000.0, max_position_embeddings=8192),
    "llama-3-70b": dict(hidden_size=8192, intermediate_size=28672, num_hidden_layers=80, num_attention_heads=64,
                        num_key_value_heads=8, vocab_size=128256, rope_theta=500000.0, max_position_embeddings=8192),
    "smollm2-135m": dict(hidden_size=576, intermediate_size=1536, num_hidden_layers=30, num_attention_heads=9,
                         num_key_value_heads=3, vocab_size=49152, rope_theta=100000.0, max_position_embeddings=8192),
    "llama-3.2-1b": dict(hidden_size=2048, intermediate_size=8192, num_hidden_layers=16, num_attention_heads=32,
                         num_key_value_heads=8, vocab_size=128256, rope_theta=500000.0, max_position_embeddings=8192),
    "qwen3-30b-a3b": dict(hidden_size=2048, intermediate_size=6144, moe_intermediate_size=768, num_hidden_layers=48,
                          num_attention_heads=32, num_key_value_heads=4, head_dim=128, num_experts=128,
                          num_experts_per_tok=8, norm_topk_prob=True, decoder_sparse_step=1, mlp_only_layers=[],
                          vocab_size=151936, rope_theta=1000000.0, max_position_embeddings=40960),
    "tiny": dict(hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
                 num_key_value_heads=2, vocab_size=258, rope_theta=10000.0, max_position_embeddings=128),  # emulators
}
SHAPES["tiny-experts"] = dict(SHAPES["tiny"], num_local_experts=4, num_experts_per_tok=2)

DEVIATIONS = {"tiny": 0.15, "tiny-experts": 0.15}  # of weights; 0.02 would leave a layer of 64 features without influence
PLAIN_TYPES = {"float32": "F32", "float16": "F16", "bfloat16": "BF16"}  # PyTorch's names and safetensors'


def byte_alphabet():
    """GPT-2's printable stand-in for each byte."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    extra = iter(range(256, 512))
    return [chr(b) if b in printable else chr(next(extra)) for b in range(256)]


def write_tokenizer(folder):
    vocab = {piece: i for i, piece in enumerate(byte_alphabet())}
    vocab["<|end|>"] = 256
    vocab["th"] = 257
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    tokenizer = {
        "version": "1.0", "truncation": None, "padding": None, "normalizer": None, "post_processor": None,
        "added_tokens": [{"id": 256, "content": "<|end|>", "single_word": False, "lstrip": False, "rstrip": False,
                          "normalized": False, "special": True}],
        "pre_tokenizer": byte_level, "decoder": byte_level,
        "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
                  "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "vocab": vocab,
                  "merges": ["t h"]},
    }
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    (folder / "tokenizer_config.json").write_text(json.dumps({"eos_token": "<|end|>"}))


def layer_shapes(shape):
    dim, ffn, heads = shape["hidden_size"], shape["intermediate_size"], shape["num_attention_heads"]
    head = shape.get("head_dim", dim // heads)
    q, kv = head * heads, head * shape["num_key_value_heads"]
    out = {"self_attn.q_proj": (q, dim), "self_attn.k_proj": (kv, dim), "self_attn.v_proj": (kv, dim),
           "self_attn.o_proj": (dim, q)}
    experts = shape.get("num_local_experts", 0)
    if "num_experts" in shape:  # Qwen 3's names
        ffn = shape["moe_intermediate_size"]
        out.update({"mlp.gate": (shape["num_experts"], dim), "self_attn.q_norm": (head,), "self_attn.k_norm": (head,)})
        for expert in range(shape["num_experts"]):
            for name, size in (("gate", (ffn, dim)), ("up", (ffn, dim)), ("down", (dim, ffn))):
                out[f"mlp.experts.{expert}.{name}_proj"] = size
    elif experts:
        out["block_sparse_moe.gate"] = (experts, dim)  # Mixtral's names
    else:
        out.update({"mlp.gate_proj": (ffn, dim), "mlp.up_proj": (ffn, dim), "mlp.down_proj": (dim, ffn)})
    for expert in range(experts):
        for name, size in (("w1", (ffn, dim)), ("w2", (dim, ffn)), ("w3", (ffn, dim))):
            out[f"block_sparse_moe.experts.{expert}.{name}"] = size
    return {**out, "input_layernorm": (dim,), "post_attention_layernorm": (dim,)}


def write_lora(folder, shape, write):
    """Factors of rank 4 for the queries, values and results of attention."""
    rank, layers = 4, ("q_proj", "v_proj", "o_proj")
    factors = {}
    for layer in range(shape["num_hidden_layers"]):
        for name in layers:
            rows, columns = layer_shapes(shape)[f"self_attn.{name}"]
            place = f"base_model.model.model.layers.{layer}.self_attn.{name}"
            factors[f"{place}.lora_A.weight"], factors[f"{place}.lora_B.weight"] = (rank, columns), (rows, rank)
    folder.mkdir(parents=True, exist_ok=True)
    write(factors, folder / "adapter_model.safetensors")
    (folder / "adapter_config.json").write_text(json.dumps({
        "peft_type": "LORA", "r": rank, "lora_alpha": 8, "target_modules": list(layers), "bias": "none"}))


FP8_CONFIGS = {
    "block": {"quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic", "weight_block_size": [128, 128],
              "modules_to_not_convert": ["lm_head"]},
    "row": {"quant_method": "compressed-tensors", "format": "float-quantized", "ignore": ["lm_head"],
            "config_groups": {"group_0": {"targets": ["Linear"],
                                          "weights": {"num_bits": 8, "type": "float", "strategy": "channel"}}}},
    "tensor": {"quant_method": "fp8", "activation_scheme": "static"},
}


def fp8(form, name, matrix):
    """Codes and scales of a matrix, by the names of the form's published checkpoints."""
    rows, columns = matrix.shape
    down, across = {"block": (128, 128), "row": (1, columns), "tensor": (rows, columns)}[form]
    padded = torch.zeros(-(-rows // down) * down, -(-columns // across) * across)
    padded[:rows, :columns] = matrix.float()
    blocks = padded.reshape(padded.shape[0] // down, down, padded.shape[1] // across, across)
    scales = blocks.abs().amax(dim=(1, 3)) / 448
    codes = (blocks / scales[:, None, :, None]).reshape(padded.shape)[:rows, :columns]
    suffix = "scale_inv" if form == "block" else "scale"
    return {name: codes.to(torch.float8_e4m3fn).contiguous(),
            f"{name}_{suffix}": scales[0, 0].clone() if form == "tensor" else scales}


INT4_CONFIGS = {
    "awq": {"quant_method": "awq", "version": "gemm", "bits": 4, "group_size": 128, "zero_point": True},
    "gptq": {"quant_method": "gptq", "checkpoint_format": "gptq", "bits": 4, "group_size": 128, "sym": True,
             "desc_act": False},
    "gptq_order": {"quant_method": "gptq", "checkpoint_format": "gptq", "bits": 4, "group_size": 128, "sym": True,
                   "desc_act": True},
    "compressed": {"quant_method": "compressed-tensors", "format": "pack-quantized", "ignore": ["lm_head"],
                   "config_groups": {"group_0": {"targets": ["Linear"],
                                                 "weights": {"num_bits": 4, "type": "int", "symmetric": True,
                                                             "strategy": "group", "group_size": 128}}}},
}


def groups_of(form, columns):
    """The group of each input; layers of one input have one order by its activations."""
    order = torch.arange(columns)
    if form == "gptq_order":
        order = torch.randperm(columns, generator=torch.Generator().manual_seed(columns))
    return (order // 128).int()


def int4(form, name, size):
    """Random codes of a matrix, by the names of the form's published checkpoints."""
    (rows, columns), groups = size, -(-size[1] // 128)

    def words(*shape):
        return torch.randint(-2 ** 31, 2 ** 31, shape, dtype=torch.int32)

    layer = name.removesuffix(".weight")
    scale = (0.01 + 0.002 * torch.rand(rows, groups)).half() / 2  # codes deviate by 4.6
    if form == "compressed":
        return {f"{layer}.weight_packed": words(rows, columns // 8), f"{layer}.weight_scale": scale,
                f"{layer}.weight_shape": torch.tensor(size)}
    out = {f"{layer}.scales": scale.T.contiguous()}
    if form == "awq":
        return {f"{layer}.qweight": words(columns, rows // 8), f"{layer}.qzeros": words(groups, rows // 8), **out}
    middle = torch.full((groups, rows // 8), 0x77777777, dtype=torch.int32)  # stored zeros are one less
    return {f"{layer}.qweight": words(columns // 8, rows), f"{layer}.qzeros": middle, **out,
            f"{layer}.g_idx": groups_of(form, columns)}


def bytes_of(values, dtype):
    if dtype == "float16":
        return struct.pack(f"<{len(values)}e", *values)
    words = array.array("I", struct.pack(f"<{len(values)}f", *values))
    if dtype == "float32":
        return words.tobytes()
    rounded = (word + 0x7FFF + (word >> 16 & 1) >> 16 for word in words)  # to the nearest, ties to even
    return array.array("H", rounded).tobytes()


def plain_writer(dtype, deviation):
    """Returns a function that writes tensors of these sizes, by name, into a file and returns the names."""
    numbers = random.Random(0)

    def write(part, file):
        header, data = {}, bytearray()
        for name, size in part.items():
            count = size[0] * (size[1] if len(size) == 2 else 1)
            values = [1.0] * count if len(size) == 1 else [numbers.gauss(0, deviation) for _ in range(count)]
            begin = len(data)
            data += bytes_of(values, dtype)
            header[name] = {"dtype": PLAIN_TYPES[dtype], "shape": size, "data_offsets": [begin, len(data)]}
        text = json.dumps(header).encode()
        text += b" " * (-len(text) % 8)
        file.write_bytes(struct.pack("<Q", len(text)) + text + data)
        return list(part)

    return write


def torch_writer(options, deviation):
    """The same with PyTorch, which is quick enough for large shapes and knows coded matrices."""
    global torch  # fp8() and int4() use it
    import torch
    from safetensors.torch import save_file
    dtype = getattr(torch, options.dtype)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)

    def weight(size):
        if len(size) == 1:
            return torch.ones(size, dtype=dtype)
        return (torch.randn(size, device=device, dtype=torch.float32) * deviation).to(dtype).cpu()

    def write(part, file):
        out = {}
        for name, size in part.items():
            coded = len(size) == 2 and name.startswith("model.layers.")
            if coded and options.int4:
                out.update(int4(options.int4, name, size))
                continue
            made = weight(size)
            coded = coded and options.fp8
            out.update(fp8(options.fp8, name, made) if coded else {name: made})
        save_file(out, file)
        return list(out)

    return write


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("shape", choices=sorted(SHAPES))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--layers", type=int, help="fewer layers than the real model has")
    parser.add_argument("--fp8", choices=sorted(FP8_CONFIGS), help="e4m3 codes with a scale for each of these")
    parser.add_argument("--int4", choices=sorted(INT4_CONFIGS), help="integers of 4 bits as these tools store them")
    parser.add_argument("--lora", type=Path, help="a folder for an adapter of a tiny shape")
    options = parser.parse_args()
    shape = dict(SHAPES[options.shape])
    if options.layers:
        shape["num_hidden_layers"] = options.layers
    options.folder.mkdir(parents=True, exist_ok=True)
    plain = options.shape.startswith("tiny") and not options.fp8 and not options.int4 and options.dtype in PLAIN_TYPES
    deviation = DEVIATIONS.get(options.shape, 0.02)
    if options.lora and not plain:
        parser.error("--lora takes a tiny shape in a plain type")
    write = plain_writer(options.dtype, deviation) if plain else torch_writer(options, deviation)

    table = (shape["vocab_size"], shape["hidden_size"])
    parts = [{"model.embed_tokens.weight": table, "lm_head.weight": table,
              "model.norm.weight": (shape["hidden_size"],)}]
    for layer in range(shape["num_hidden_layers"]):
        parts.append({f"model.layers.{layer}.{name}.weight": size for name, size in layer_shapes(shape).items()})
    names = {}
    for i, part in enumerate(parts):
        file = f"model-{i + 1:05d}-of-{len(parts):05d}.safetensors"
        names.update({name: file for name in write(part, options.folder / file)})
    (options.folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": names}))
    if options.lora:
        write_lora(options.lora, shape, write)
    family = ("LlamaForCausalLM", "llama")
    if "num_local_experts" in shape:
        family = ("MixtralForCausalLM", "mixtral")
    if "num_experts" in shape:
        family = ("Qwen3MoeForCausalLM", "qwen3_moe")
    config = {"architectures": [family[0]], "model_type": family[1], "hidden_act": "silu",
              "rms_norm_eps": 1e-5, "tie_word_embeddings": False, "torch_dtype": options.dtype,
              "bos_token_id": 256, "eos_token_id": 256, **shape}
    if options.fp8:
        config["quantization_config"] = FP8_CONFIGS[options.fp8]
    if options.int4:
        config["quantization_config"] = INT4_CONFIGS[options.int4]
    (options.folder / "config.json").write_text(json.dumps(config))
    write_tokenizer(options.folder)


if __name__ == "__main__":
    main()
