#!/usr/bin/env python3
"""Makes the tiny random models for embeddings of tests/models/data_embedding and what transformers
and tokenizers make of some texts.

Each case is a folder as sentence-transformers has it (tokenizer.json, modules.json, pooling) and a
GGUF file with the names and keys of llama.cpp's converter. golden.json has the ids of each text and
its vector, of rankers the ids and the score of each pair. Texts go through the model one by one,
in float32.

Run from the repository root (wrote the committed files with the versions below):
    python3 -m venv venv && venv/bin/pip install torch==2.15.0 transformers==5.23.0 gguf==0.19.0
    venv/bin/python tools/goldens/make_embedding_goldens.py tests/models/data_embedding
"""

import json
import pathlib
import shutil
import sys

import gguf
import numpy as np
import torch
import transformers
from safetensors.torch import save_file
from tokenizers import (Tokenizer, decoders, models, normalizers, pre_tokenizers, processors,
                        trainers)

CORPUS = ["The quick brown fox jumps over the lazy dog.", "Rust and C++ are languages, too!",
          "How do magnets work?", "A field of iron turns with the current (1820).",
          "Das Wetter ist heute sehr sch\u00f6n.", "Les \u00e9l\u00e8ves mangent \u00e0 midi.",
          "embedding models map texts to vectors; rerankers score pairs of texts"]
TEXTS = ["How do magnets work?", "the lazy dog", "A", "Les \u00e9l\u00e8ves mangent \u00e0 midi, "
         "and the quick brown fox jumps over a field of iron.", "vectors of texts",
         "THE LAZY DOG", "\u4e2d\u6587 and rust"]
PAIRS = [["How do magnets work?", "A field of iron turns with the current (1820)."],
         ["How do magnets work?", "the dog"], ["texts", "embedding models map texts to vectors"]]

SIZES = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48)
CASES = {
    "bert": dict(type="bert", pooling="mean", config=dict(
        SIZES, max_position_embeddings=64, type_vocab_size=2, layer_norm_eps=1e-12)),
    "bert_cls": dict(type="bert", pooling="cls", normalise=False, weights_of="bert", max_length=40),
    "xlm_roberta": dict(type="xlm-roberta", pooling="cls", config=dict(
        SIZES, max_position_embeddings=66, type_vocab_size=1, layer_norm_eps=1e-5, pad_token_id=1,
        bos_token_id=0, eos_token_id=2)),
    "bert_ranker": dict(type="bert", ranker=True, config=dict(
        SIZES, max_position_embeddings=64, type_vocab_size=2, layer_norm_eps=1e-12, num_labels=1)),
    "xlm_roberta_ranker": dict(type="xlm-roberta", ranker=True, config=dict(
        SIZES, max_position_embeddings=66, type_vocab_size=1, layer_norm_eps=1e-5, pad_token_id=1,
        bos_token_id=0, eos_token_id=2, num_labels=1)),
    "qwen3": dict(type="qwen3", pooling="lasttoken", config=dict(
        SIZES, num_key_value_heads=2, head_dim=8, max_position_embeddings=64, rms_norm_eps=1e-6,
        tie_word_embeddings=True)),
    # As LaBSE has one, and one more without bias and activation.
    "bert_dense": dict(type="bert", pooling="cls", weights_of="bert", dense=[
        dict(in_features=32, out_features=40, bias=True,
             activation_function="torch.nn.modules.activation.Tanh"),
        dict(in_features=40, out_features=24, bias=False,
             activation_function="torch.nn.modules.linear.Identity")]),
}


def wordpiece():
    out = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    out.normalizer = normalizers.BertNormalizer()
    out.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    out.train_from_iterator(CORPUS, trainers.WordPieceTrainer(
        vocab_size=180, special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"],
        show_progress=False))
    out.decoder = decoders.WordPiece()
    out.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    return out


def unigram():
    out = Tokenizer(models.Unigram())
    out.normalizer = normalizers.NFKC()
    out.pre_tokenizer = pre_tokenizers.Metaspace()
    out.train_from_iterator(CORPUS, trainers.UnigramTrainer(
        vocab_size=180, special_tokens=["<s>", "<pad>", "</s>", "<unk>"], unk_token="<unk>",
        show_progress=False))
    out.decoder = decoders.Metaspace()
    out.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>",
        special_tokens=[("<s>", 0), ("</s>", 2)])
    return out


def byte_level():
    out = Tokenizer(models.BPE())
    out.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    out.train_from_iterator(CORPUS, trainers.BpeTrainer(
        vocab_size=300, special_tokens=["<|endoftext|>"], show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    out.decoder = decoders.ByteLevel()
    out.post_processor = processors.TemplateProcessing(
        single="$A <|endoftext|>", special_tokens=[("<|endoftext|>", 0)])
    return out


TOKENIZERS = {"bert": wordpiece, "xlm-roberta": unigram, "qwen3": byte_level}


def build(case, config):
    made = transformers.AutoConfig.for_model(case["type"], **config)
    made._attn_implementation = "eager"
    kind = (transformers.AutoModelForSequenceClassification if case.get("ranker")
            else transformers.AutoModel)
    return kind.from_config(made).float().eval()


def random_state(model, seed):
    """Large enough that each weight shows."""
    rng = np.random.default_rng(seed)
    state = {}
    for key, parameter in model.state_dict().items():
        shape = tuple(parameter.shape)
        values = rng.standard_normal(shape)
        norm = "LayerNorm" in key or "norm" in key
        if key.endswith("bias"):
            values = 0.5 * values
        elif norm:
            values = 1 + 0.3 * values
        elif "embedding" not in key and "embed_tokens" not in key:
            values = 1.5 * values / np.sqrt(shape[-1])
        state[key] = torch.from_numpy(values.astype(np.float32))
    return state


def dense_states(case):
    rng = np.random.default_rng(91)
    states = []
    for module in case.get("dense", []):
        rows, columns = module["out_features"], module["in_features"]
        values = {"linear.weight": rng.standard_normal((rows, columns)) / np.sqrt(columns)}
        if module["bias"]:
            values["linear.bias"] = 0.5 * rng.standard_normal(rows)
        states.append({key: torch.from_numpy(value.astype(np.float32))
                       for key, value in values.items()})
    return states


def vector(case, model, ids):
    with torch.no_grad():
        states = model(torch.tensor([ids]))[0][0]
    out = {"mean": states.mean(0), "cls": states[0], "lasttoken": states[-1]}[case["pooling"]]
    for module, state in zip(case.get("dense", []), dense_states(case)):
        out = torch.nn.functional.linear(out, state["linear.weight"], state.get("linear.bias"))
        if module["activation_function"].endswith("Tanh"):
            out = torch.tanh(out)
    if case.get("normalise", True):
        out = out / out.norm()
    return out.numpy().tolist()


def golden(case, model, tokenizer):
    if not case.get("ranker"):
        ids = [tokenizer.encode(text).ids for text in TEXTS]
        return {"texts": TEXTS, "ids": ids, "vectors": [vector(case, model, i) for i in ids]}
    pairs = [tokenizer.encode(*pair) for pair in PAIRS]
    scores = []
    for pair in pairs:
        inputs = {"input_ids": torch.tensor([pair.ids])}
        if case["type"] == "bert":
            inputs["token_type_ids"] = torch.tensor([pair.type_ids])
        with torch.no_grad():
            scores.append(float(model(**inputs).logits[0, 0]))
    segments = [p.type_ids if case["type"] == "bert" else [0] * len(p.ids) for p in pairs]
    return {"pairs": PAIRS, "ids": [p.ids for p in pairs], "segments": segments, "scores": scores}


def dump(path, value):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=1) + "\n")


def save_hf(folder, case, config, tokenizer, state):
    folder.mkdir(parents=True)
    names = {"bert": "Bert", "xlm-roberta": "XLMRoberta", "qwen3": "Qwen3"}
    head = "ForSequenceClassification" if case.get("ranker") else "Model"
    dump(folder / "config.json",
         dict(config, model_type=case["type"], architectures=[names[case["type"]] + head]))
    tokenizer.save(str(folder / "tokenizer.json"))
    if not case.get("ranker"):
        base = "sentence_transformers.models."
        modules = [dict(idx=0, name="0", path="", type=base + "Transformer"),
                   dict(idx=1, name="1", path="1_Pooling", type=base + "Pooling")]
        for module, weights in zip(case.get("dense", []), dense_states(case)):
            index = len(modules)
            modules.append(dict(idx=index, name=str(index), path=f"{index}_Dense",
                                type=base + "Dense"))
            dump(folder / f"{index}_Dense" / "config.json", module)
            save_file(weights, folder / f"{index}_Dense" / "model.safetensors")
        if case.get("normalise", True):
            index = len(modules)
            modules.append(dict(idx=index, name=str(index), path=f"{index}_Normalize",
                                type=base + "Normalize"))
        dump(folder / "modules.json", modules)
        modes = dict(cls="cls_token", mean="mean_tokens", lasttoken="lasttoken")
        dump(folder / "1_Pooling" / "config.json",
             {"word_embedding_dimension": SIZES["hidden_size"],
              **{f"pooling_mode_{mode}": name == case["pooling"] for name, mode in modes.items()}})
    if "max_length" in case:
        dump(folder / "sentence_bert_config.json",
             dict(max_seq_length=case["max_length"], do_lower_case=False))
    if state is not None:
        save_file(state, folder / "model.safetensors", metadata={"format": "pt"})


def add_vocabulary(writer, case, tokenizer):
    tokens = [tokenizer.id_to_token(i) for i in range(tokenizer.get_vocab_size())]
    special = {token.content for token in tokenizer.get_added_tokens_decoder().values()}
    types = [gguf.TokenType.CONTROL if t in special else gguf.TokenType.NORMAL for t in tokens]
    model = json.loads(tokenizer.to_str())["model"]
    if case["type"] == "bert":
        writer.add_tokenizer_model("bert")
        tokens = [t if t in special else t[2:] if t.startswith("##") else "\u2581" + t
                  for t in tokens]
        writer.add_token_type_count(2)
        writer.add_bos_token_id(2)
        writer.add_sep_token_id(3)
        writer.add_unk_token_id(1)
    elif case["type"] == "xlm-roberta":
        writer.add_tokenizer_model("t5")
        writer.add_token_scores([score for _, score in model["vocab"]])
        writer.add_add_space_prefix(True)
        writer.add_remove_extra_whitespaces(False)
        writer.add_bos_token_id(0)
        writer.add_eos_token_id(2)
        writer.add_unk_token_id(3)
        writer.add_add_bos_token(True)
        writer.add_add_eos_token(True)
    else:
        writer.add_tokenizer_model("gpt2")
        writer.add_tokenizer_pre("gpt-2")
        writer.add_token_merges([" ".join(merge) for merge in model["merges"]])
        writer.add_eos_token_id(0)
        writer.add_add_eos_token(True)
    writer.add_token_list(tokens)
    writer.add_token_types(types)


def gguf_names(case, config, state):
    arch = gguf.MODEL_ARCH.QWEN3 if case["type"] == "qwen3" else gguf.MODEL_ARCH.BERT
    names = gguf.get_tensor_name_map(arch, config["num_hidden_layers"])
    for key, tensor in state.items():
        key = key.removeprefix("bert.").removeprefix("roberta.")
        if "position_ids" in key or key.startswith("pooler.") and not case.get("ranker"):
            continue
        head, leaf = key.rsplit(".", 1)
        ranked = {"pooler.dense": "cls", "classifier.dense": "cls", "classifier": "cls.output",
                  "classifier.out_proj": "cls.output"}
        name = ranked.get(head) or names.get_name(head) or names.get_name("model." + head)
        assert name, key
        if name == "position_embd" and case["type"] == "xlm-roberta":
            tensor = tensor[config["pad_token_id"] + 1:]
        yield f"{name}.{leaf}", tensor


def save_gguf(path, case, config, tokenizer, state):
    decoder = case["type"] == "qwen3"
    writer = gguf.GGUFWriter(path, "qwen3" if decoder else "bert")
    writer.add_name("tiny " + case["type"])
    skipped = config["pad_token_id"] + 1 if case["type"] == "xlm-roberta" else 0
    writer.add_context_length(config["max_position_embeddings"] - skipped)
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    kinds = dict(mean=gguf.PoolingType.MEAN, cls=gguf.PoolingType.CLS,
                 lasttoken=gguf.PoolingType.LAST)
    writer.add_pooling_type(kinds[case["pooling"]] if "pooling" in case else gguf.PoolingType.RANK)
    if decoder:
        writer.add_head_count_kv(config["num_key_value_heads"])
        writer.add_key_length(config["head_dim"])
        writer.add_value_length(config["head_dim"])
        writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
        writer.add_rope_freq_base(10000.0)
    else:
        writer.add_layer_norm_eps(config["layer_norm_eps"])
        writer.add_causal_attention(False)
    add_vocabulary(writer, case, tokenizer)
    for name, tensor in gguf_names(case, config, state):
        writer.add_tensor(name, tensor.numpy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def make(root, name, states):
    case = CASES[name]
    owner = case.get("weights_of", name)
    tokenizer = TOKENIZERS[case["type"]]()
    config = dict(CASES[owner]["config"], vocab_size=tokenizer.get_vocab_size())
    model = build(case, config)
    if owner == name:
        states[name] = random_state(model, 7 + list(CASES).index(name))
    model.load_state_dict(states[owner])
    folder = root / name
    save_hf(folder / "hf", case, config, tokenizer, states[owner])
    if owner == name:
        save_gguf(folder / "model.gguf", case, config, tokenizer, states[name])
    dump(folder / "golden.json", golden(case, model, tokenizer))
    print(name)


def main():
    root = pathlib.Path(sys.argv[1])
    if root.exists():
        shutil.rmtree(root)
    states = {}
    for name in CASES:
        make(root, name, states)


if __name__ == "__main__":
    main()
