"""Small models with random weights for others' suites: fast, and what they say means nothing.

write_chat_model() makes a Llama of two layers as a GGUF file with the tokenizer and the chat
template of another one, write_tokenizer() that tokenizer as a Hugging Face folder, and
write_ranker() a BERT that ranks, with the tokenizer of another BERT's folder. Need PyPI's gguf,
numpy, safetensors and tokenizers."""

import json
import os
import shutil

import gguf
import numpy as np
import safetensors.numpy
import tokenizers

LAYERS, WIDTH, HEADS, FFN, CONTEXT = 2, 64, 4, 128, 8192
POSITIONS = 512  # of the ranker
# Special tokens of the other model whose places get the marks by which one fills in.
FILL_IN = {"<reponame>": "<|fim_prefix|>", "<filename>": "<|fim_suffix|>",
           "<gh_stars>": "<|fim_middle|>"}  # fmt: skip


def copy_tokenizer(reader, writer):
    """All of the other model's metadata but what tells its shape."""
    for name, field in reader.fields.items():
        if not name.startswith("tokenizer."):
            continue
        kind = field.types[0]
        part = field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None
        value = field.contents()
        if name == "tokenizer.ggml.tokens":
            value = [FILL_IN.get(token, token) for token in value]
        writer.add_key_value(name, value, kind, part)


def add_shape(writer):
    writer.add_block_count(LAYERS)
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_feed_forward_length(FFN)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_rope_freq_base(10000.0)
    writer.add_name("small random model")


def add_weights(writer, words):
    random = np.random.default_rng(1)

    def matrix(name, rows, columns):
        # Logits spread enough that the likeliest tokens are told apart.
        values = random.normal(0, 0.3, (rows, columns))
        writer.add_tensor(name, values.astype(np.float16))

    def ones(name):
        writer.add_tensor(name, np.ones(WIDTH, np.float32))

    matrix("token_embd.weight", words, WIDTH)
    ones("output_norm.weight")
    for layer in range(LAYERS):
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            matrix(f"blk.{layer}.{name}.weight", WIDTH, WIDTH)
        matrix(f"blk.{layer}.ffn_gate.weight", FFN, WIDTH)
        matrix(f"blk.{layer}.ffn_up.weight", FFN, WIDTH)
        matrix(f"blk.{layer}.ffn_down.weight", WIDTH, FFN)
        ones(f"blk.{layer}.attn_norm.weight")
        ones(f"blk.{layer}.ffn_norm.weight")


def write_chat_model(other, path):
    """other: a GGUF file."""
    reader = gguf.GGUFReader(other)
    writer = gguf.GGUFWriter(path, "llama")
    copy_tokenizer(reader, writer)
    add_shape(writer)
    add_weights(writer, len(reader.fields["tokenizer.ggml.tokens"].data))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def write_tokenizer(other, folder):
    """The byte-level BPE of a GGUF file, split as SmolLM's is: each digit by itself."""
    fields = gguf.GGUFReader(other).fields

    def value(name):
        return fields[f"tokenizer.{name}"].contents()

    tokens, kinds = value("ggml.tokens"), value("ggml.token_type")
    merges = [tuple(merge.split(" ")) for merge in value("ggml.merges")]
    vocabulary = {token: i for i, token in enumerate(tokens)}
    out = tokenizers.Tokenizer(tokenizers.models.BPE(vocabulary, merges))
    split = tokenizers.pre_tokenizers
    out.pre_tokenizer = split.Sequence(
        [split.Digits(individual_digits=True), split.ByteLevel(add_prefix_space=False)]
    )
    out.decoder = tokenizers.decoders.ByteLevel()
    control = int(gguf.TokenType.CONTROL)
    out.add_special_tokens([t for t, kind in zip(tokens, kinds) if kind == control])
    os.makedirs(folder, exist_ok=True)
    out.save(os.path.join(folder, "tokenizer.json"))
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": tokens[value("ggml.bos_token_id")],
        "eos_token": tokens[value("ggml.eos_token_id")],
        "chat_template": value("chat_template"),
    }
    with open(os.path.join(folder, "tokenizer_config.json"), "w", encoding="utf-8") as file:
        json.dump(config, file)


def write_ranker(other, folder):
    """other: the folder of a BERT."""
    os.makedirs(folder, exist_ok=True)
    for name in ("tokenizer.json", "tokenizer_config.json", "vocab.txt"):
        shutil.copy(os.path.join(other, name), folder)
    with open(os.path.join(other, "config.json"), encoding="utf-8") as file:
        words = json.load(file)["vocab_size"]
    config = {
        "model_type": "bert", "architectures": ["BertForSequenceClassification"],
        "hidden_size": WIDTH, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS,
        "intermediate_size": FFN, "max_position_embeddings": POSITIONS, "type_vocab_size": 2,
        "layer_norm_eps": 1e-12, "num_labels": 1, "vocab_size": words,
    }  # fmt: skip
    with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
        json.dump(config, file)
    random = np.random.default_rng(1)
    tensors = {}

    def matrix(name, rows, columns):
        tensors[f"{name}.weight"] = random.normal(0, 0.3, (rows, columns)).astype(np.float32)

    def linear(name, rows, columns):
        matrix(name, rows, columns)
        tensors[f"{name}.bias"] = np.zeros(rows, np.float32)

    def norm(name):
        tensors[f"{name}.weight"] = np.ones(WIDTH, np.float32)
        tensors[f"{name}.bias"] = np.zeros(WIDTH, np.float32)

    begin = "bert.embeddings"
    matrix(f"{begin}.word_embeddings", words, WIDTH)
    matrix(f"{begin}.position_embeddings", POSITIONS, WIDTH)
    matrix(f"{begin}.token_type_embeddings", 2, WIDTH)
    norm(f"{begin}.LayerNorm")
    for layer in range(LAYERS):
        at = f"bert.encoder.layer.{layer}"
        for name in ("query", "key", "value"):
            linear(f"{at}.attention.self.{name}", WIDTH, WIDTH)
        linear(f"{at}.attention.output.dense", WIDTH, WIDTH)
        norm(f"{at}.attention.output.LayerNorm")
        linear(f"{at}.intermediate.dense", FFN, WIDTH)
        linear(f"{at}.output.dense", WIDTH, FFN)
        norm(f"{at}.output.LayerNorm")
    linear("bert.pooler.dense", WIDTH, WIDTH)
    linear("classifier", 1, WIDTH)
    safetensors.numpy.save_file(tensors, os.path.join(folder, "model.safetensors"))
