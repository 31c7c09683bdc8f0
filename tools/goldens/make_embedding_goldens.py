#!/usr/bin/env python3
"""Makes the tiny random models for embeddings of tests/models/embedding/data and what transformers
and tokenizers make of some texts.

Each case is a folder as sentence-transformers has it (tokenizer.json, modules.json, pooling) and a
GGUF file with the names and keys of llama.cpp's converter. golden.json has the ids of each text and
its vector, of rankers the ids and the score of each pair. Texts go through the model one by one,
in float32.

Run from the repository root (wrote the committed files with the versions below):
    python3 -m venv venv && venv/bin/pip install torch==2.15.0 transformers==5.23.0 gguf==0.19.0
    venv/bin/python tools/goldens/make_embedding_goldens.py tests/models/embedding/data
"""

import json
import pathlib
import shutil

import arguments

ARGUMENTS = arguments.read(__name__, __doc__, ("folder", "tests/models/embedding/data; it is removed first"))

import gguf
import numpy as np
import torch
import transformers
from safetensors.torch import save_file

import nomic_experts
from embedding_tokenizers import TOKENIZERS, add_vocabulary

TEXTS = ["How do magnets work?", "the lazy dog", "A", "Les \u00e9l\u00e8ves mangent \u00e0 midi, "
         "and the quick brown fox jumps over a field of iron.", "vectors of texts",
         "THE LAZY DOG", "\u4e2d\u6587 and rust"]
PAIRS = [["How do magnets work?", "A field of iron turns with the current (1820)."],
         ["How do magnets work?", "the dog"], ["texts", "embedding models map texts to vectors"]]

MODERN = dict(hidden_size=32, num_hidden_layers=5, num_attention_heads=4, intermediate_size=48,
              max_position_embeddings=64, norm_eps=1e-5, local_attention=8,
              global_attn_every_n_layers=3, global_rope_theta=160000.0, local_rope_theta=100.0,
              hidden_activation="gelu", pad_token_id=0, bos_token_id=2, eos_token_id=3,
              cls_token_id=2, sep_token_id=3)
IDENTITY = "torch.nn.modules.linear.Identity"
SIZES = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48)
QWEN = dict(SIZES, num_key_value_heads=2, head_dim=8, rms_norm_eps=1e-6, tie_word_embeddings=True)
NOMIC = dict(vocab_size=0, n_embd=32, n_layer=2, n_head=4, n_inner=48, n_positions=64,
             rotary_emb_base=100, rotary_emb_fraction=1.0, rotary_emb_interleaved=False,
             rotary_emb_scale_base=None, rotary_scaling_factor=None, activation_function="swiglu",
             qkv_proj_bias=False, mlp_fc1_bias=False, mlp_fc2_bias=False, prenorm=False,
             causal=False, layer_norm_epsilon=1e-12, type_vocab_size=2)
NOMIC_EXPERTS = dict(NOMIC, n_layer=3, num_experts=5, moe_top_k=2, moe_every_n_layers=2,
                     moe_normalize_expert_weights=False, expert_choice_router=False, ffn_div=1,
                     num_shared_experts=0, activation_function="gelu", qkv_proj_bias=True,
                     mlp_fc1_bias=True, mlp_fc2_bias=True, layer_norm_epsilon=1e-5,
                     type_vocab_size=1, pad_token_id=1)
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
    "qwen3": dict(type="qwen3", pooling="lasttoken",
                  config=dict(QWEN, max_position_embeddings=64)),
    # As LaBSE has one, and one more without bias and activation.
    "bert_dense": dict(type="bert", pooling="cls", weights_of="bert", dense=[
        dict(in_features=32, out_features=40, bias=True,
             activation_function="torch.nn.modules.activation.Tanh"),
        dict(in_features=40, out_features=24, bias=False,
             activation_function=IDENTITY)]),
    "gemma": dict(type="gemma3_text", pooling="mean", gguf_arch="gemma-embedding", config=dict(
        SIZES, num_hidden_layers=4, num_key_value_heads=1, head_dim=16, query_pre_attn_scalar=16,
        max_position_embeddings=64, rms_norm_eps=1e-6, tie_word_embeddings=True,
        hidden_activation="gelu_pytorch_tanh", sliding_window=8, sliding_window_pattern=3,
        layer_types=["sliding_attention", "sliding_attention", "full_attention",
                     "sliding_attention"],
        use_bidirectional_attention=True, rope_theta=1000000.0, rope_local_base_freq=100.0),
        dense=[dict(in_features=32, out_features=48, bias=False, activation_function=IDENTITY),
               dict(in_features=48, out_features=32, bias=False, activation_function=IDENTITY)],
        prompts={"query": "task: search result | query: ", "document": "title: none | text: "},
        ablations=[dict(use_bidirectional_attention=False), dict(sliding_window=10),
                   dict(sliding_window=6), dict(rope_local_base_freq=1000000.0)]),
    "modern_bert": dict(type="modernbert", pooling="cls", gguf_arch="modern-bert", config=MODERN,
                        ablations=[dict(local_attention=10), dict(local_attention=6),
                                   dict(local_rope_theta=160000.0), dict(global_rope_theta=100.0),
                                   dict(global_attn_every_n_layers=2),
                                   dict(hidden_activation="silu")]),
    "modern_bert_ranker": dict(type="modernbert", ranker=True, gguf_arch="modern-bert",
                               config=dict(MODERN, num_labels=1, classifier_pooling="mean"),
                               ablations=[dict(classifier_pooling="cls"),
                                          dict(classifier_activation="silu")]),
    "nomic": dict(type="nomic_bert", pooling="mean", gguf_arch="nomic-bert", config=NOMIC,
                  default_prompt="search_query",
                  prompts={"search_query": "search_query: ", "search_document": "search_document: "},
                  ablations=[dict(rotary_emb_base=10000), dict(activation_function="geglu")]),
    # A decoder that says yes or no, and one with a row that was made of the two words'.
    "qwen3_ranker": dict(type="qwen3", ranker=True, words=("yes", "no"), tokenizer="qwen3_ranker",
                         config=dict(QWEN, max_position_embeddings=512)),
    "qwen3_classifier": dict(type="qwen3", ranker=True, tokenizer="qwen3_ranker",
                             config=dict(QWEN, max_position_embeddings=512, num_labels=1)),
    # With the settings as transformers writes them.
    "nomic_native": dict(type="nomic_bert", pooling="mean", weights_of="nomic", native=True),
    # GGUF files have no bias of the experts.
    "nomic_experts": dict(type="nomic_bert", pooling="mean", tokenizer="xlm-roberta", experts=True,
                          config=NOMIC_EXPERTS, gguf=False,
                          ablations=[dict(moe_top_k=1), dict(moe_top_k=3), dict(rotary_emb_base=10000),
                                     dict(moe_normalize_expert_weights=True)]),
    "nomic_experts_gguf": dict(type="nomic_bert", pooling="mean", tokenizer="xlm-roberta", experts=True,
                               gguf_arch="nomic-bert-moe", config=NOMIC_EXPERTS),
}
# https://huggingface.co/Qwen/Qwen3-Reranker-0.6B says how a pair is asked about.
INSTRUCTION = "Given a web search query, retrieve relevant passages that answer the query"
QUESTION = ('<|im_start|>system\nJudge whether the Document meets the requirements based on the Query '
            'and the Instruct provided. Note that the answer can only be "yes" or "no".<|im_end|>\n'
            "<|im_start|>user\n<Instruct>: {instruction}\n<Query>: {query}\n"
            "<Document>: {document}<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n")


def native_config(case, config):
    """Nomic's own words are not those of transformers."""
    if case["type"] != "nomic_bert":
        return config
    act = {"swiglu": "silu", "geglu": "gelu"}.get(config["activation_function"], config["activation_function"])
    return dict(vocab_size=config["vocab_size"], hidden_size=config["n_embd"],
                num_hidden_layers=config["n_layer"], num_attention_heads=config["n_head"],
                intermediate_size=config["n_inner"], max_position_embeddings=config["n_positions"],
                type_vocab_size=config["type_vocab_size"],
                layer_norm_eps=config["layer_norm_epsilon"],
                hidden_act=act,
                rope_parameters=dict(rope_type="default", rope_theta=config["rotary_emb_base"]))


def build(case, config):
    if case.get("experts"):
        return nomic_experts.Model(config).eval()
    made = transformers.AutoConfig.for_model(case["type"], **native_config(case, config))
    made._attn_implementation = "eager"
    if "pad_token_id" not in config and case.get("ranker"):
        made.pad_token_id = 0
    kind = (transformers.AutoModelForCausalLM if "words" in case
            else transformers.AutoModelForSequenceClassification if case.get("ranker")
            else transformers.AutoModel)
    return kind.from_config(made).float().eval()


def random_state(model, seed):
    """Large enough that each weight shows."""
    rng = np.random.default_rng(seed)
    state = {}
    for key, parameter in model.state_dict().items():
        shape = tuple(parameter.shape)
        values = rng.standard_normal(shape)
        norm = "LayerNorm" in key or "norm" in key or "emb_ln" in key
        stored_less_one = norm and "Gemma3" in type(model).__name__
        if key.endswith("bias"):
            values = 0.5 * values
        elif norm:
            values = 0.3 * values + (0 if stored_less_one else 1)
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


def golden_of_questions(case, model, tokenizer):
    """Instead of segments, an instruction for each pair; of the first one the usual."""
    instructions = [INSTRUCTION, "Is it the same?", "Do both name animals?"]
    ids = [tokenizer.encode(QUESTION.format(instruction=instruction, query=query,
                                            document=document)).ids
           for instruction, (query, document) in zip(instructions, PAIRS)]
    with torch.no_grad():
        logits = [model(torch.tensor([i])).logits[0] for i in ids]
    if "words" in case:
        yes, no = (tokenizer.token_to_id(word) for word in case["words"])
        scores = [float(made[-1, yes] - made[-1, no]) for made in logits]
    else:
        scores = [float(made[0]) for made in logits]
    return {"pairs": PAIRS, "instructions": instructions, "ids": ids, "scores": scores,
            "segments": [[0] * len(i) for i in ids]}


def golden(case, model, tokenizer):
    if not case.get("ranker"):
        ids = [tokenizer.encode(text).ids for text in TEXTS]
        made = {"texts": TEXTS, "ids": ids, "vectors": [vector(case, model, i) for i in ids]}
        if "prompts" in case:
            prompted = {name: tokenizer.encode(prompt + TEXTS[0]).ids
                        for name, prompt in case["prompts"].items()}
            made["prompted"] = {name: {"ids": i, "vector": vector(case, model, i)}
                                for name, i in prompted.items()}
        return made
    if case["type"] == "qwen3":
        return golden_of_questions(case, model, tokenizer)
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
    names = {"bert": "Bert", "xlm-roberta": "XLMRoberta", "qwen3": "Qwen3",
             "gemma3_text": "Gemma3Text", "modernbert": "ModernBert", "nomic_bert": "NomicBert"}
    head = ("ForCausalLM" if "words" in case
            else "ForSequenceClassification" if case.get("ranker") else "Model")
    if case.get("native"):
        config = native_config(case, config)
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
    if "words" in case:
        base = "sentence_transformers."
        yes, no = (tokenizer.token_to_id(word) for word in case["words"])
        dump(folder / "modules.json",
             [dict(idx=0, name="0", path="", type=base + "base.modules.transformer.Transformer"),
              dict(idx=1, name="1", path="1_LogitScore",
                   type=base + "cross_encoder.modules.logit_score.LogitScore")])
        dump(folder / "1_LogitScore" / "config.json",
             dict(true_token_id=yes, false_token_id=no, module_input_name="causal_logits"))
    if "prompts" in case:
        dump(folder / "config_sentence_transformers.json",
             dict(prompts=case["prompts"], default_prompt_name=case.get("default_prompt")))
    if "max_length" in case:
        dump(folder / "sentence_bert_config.json",
             dict(max_seq_length=case["max_length"], do_lower_case=False))
    if state is not None:
        save_file(published_names(case, state), folder / "model.safetensors",
                  metadata={"format": "pt"})


def published_names(case, state):
    """Nomic's own code has other names, and q, k and v in one matrix."""
    if case["type"] != "nomic_bert" or case.get("experts"):
        return {key: value for key, value in state.items()
                if not ("words" in case and key == "lm_head.weight")}
    renamed = {"embeddings.LayerNorm": "emb_ln", "self_attn.o_proj": "attn.out_proj",
               "up_proj": "fc11", "gate_proj": "fc12", "down_proj": "fc2",
               "post_attention_layernorm": "norm1", "post_mlp_layernorm": "norm2"}
    out = {}
    for key, value in state.items():
        if ".q_proj" in key:
            value = torch.cat([state[key.replace(".q_proj", f".{x}_proj")] for x in "qkv"])
            key = key.replace("self_attn.q_proj", "attn.Wqkv")
        elif ".k_proj" in key or ".v_proj" in key:
            continue
        for old, new in renamed.items():
            key = key.replace(old, new)
        out[("encoder." if key.startswith("layers.") else "") + key] = value
    return out


def gguf_arch(case):
    return case.get("gguf_arch", case["type"] if case["type"] == "qwen3" else "bert")


def gguf_names(case, config, tokenizer, state):
    arch = next(a for a, name in gguf.MODEL_ARCH_NAMES.items() if name == gguf_arch(case))
    names = gguf.get_tensor_name_map(arch, config["num_hidden_layers"])
    for i, dense in enumerate(dense_states(case) if case["type"] == "gemma3_text" else []):
        yield f"dense_{i + 2}.weight", dense["linear.weight"]
    if "words" in case:
        rows = [tokenizer.token_to_id(word) for word in case["words"]]
        yield "cls.output.weight", state["lm_head.weight"][rows]
    for key, tensor in published_names(case, state).items():
        key = key.removeprefix("bert.").removeprefix("roberta.")
        if case["type"] == "modernbert":
            key = key.removeprefix("model.")
        if key.endswith(".experts.bias"):
            assert not tensor.any()
            continue
        if ".experts.mlp." in key:
            yield nomic_experts.gguf_tensor(key, tensor, config)
            continue
        if "position_ids" in key or key.startswith("pooler.") and not case.get("ranker"):
            continue
        head, leaf = key.rsplit(".", 1)
        ranked = {"pooler.dense": "cls", "classifier.dense": "cls", "classifier": "cls.output",
                  "classifier.out_proj": "cls.output", "head.dense": "cls",
                  "head.norm": "cls.norm", "score": "cls.output"}
        name = ranked.get(head) or names.get_name(head) or names.get_name("model." + head)
        assert name, key
        if name == "position_embd" and case["type"] == "xlm-roberta":
            tensor = tensor[config["pad_token_id"] + 1:]
        if case["type"] == "gemma3_text" and name.endswith("norm"):
            tensor = tensor + 1
        yield f"{name}.{leaf}", tensor


def save_gguf(path, case, config, tokenizer, state):
    decoder = case["type"] in ("qwen3", "gemma3_text")
    writer = gguf.GGUFWriter(path, gguf_arch(case))
    writer.add_name("tiny " + case["type"])
    skipped = config["pad_token_id"] + 1 if case["type"] == "xlm-roberta" else 0
    config = dict(config, **native_config(case, config))
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
        writer.add_rope_freq_base(config.get("rope_theta", 10000.0))
        if case["type"] == "gemma3_text":
            writer.add_sliding_window(config["sliding_window"])
            writer.add_sliding_window_pattern(config["sliding_window_pattern"])
            writer.add_rope_freq_base_swa(config["rope_local_base_freq"])
            for i, module in enumerate(case["dense"]):
                writer.add_dense_features_dims(f"dense_{i + 2}", module["in_features"],
                                               module["out_features"])
    else:
        writer.add_layer_norm_eps(config.get("layer_norm_eps", config.get("norm_eps")))
        writer.add_causal_attention(False)
    if case["type"] == "modernbert":
        writer.add_sliding_window(config["local_attention"])
        writer.add_sliding_window_pattern(config["global_attn_every_n_layers"])
        writer.add_rope_freq_base(config["global_rope_theta"])
        writer.add_rope_freq_base_swa(config["local_rope_theta"])
        writer.add_rope_scaling_type(gguf.RopeScalingType.NONE)
    if case["type"] == "nomic_bert":
        writer.add_rope_freq_base(float(config["rotary_emb_base"]))
    if case.get("experts"):
        writer.add_moe_every_n_layers(config["moe_every_n_layers"])
        writer.add_expert_count(config["num_experts"])
        writer.add_expert_used_count(config["moe_top_k"])
    if "words" in case:
        writer.add_classifier_output_labels(list(case["words"]))
        writer.add_chat_template([dict(name="rerank", template=QUESTION.replace(
            "{instruction}", INSTRUCTION))])
    add_vocabulary(writer, case.get("tokenizer", case["type"]), tokenizer)
    for name, tensor in gguf_names(case, config, tokenizer, state):
        writer.add_tensor(name, tensor.numpy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def check_ablations(case, config, state, tokenizer):
    """Each feature must show: without it vectors or scores are others."""
    def made(changes):
        model = build(case, {**config, **changes})
        model.load_state_dict(state)
        return np.array(sum(golden(case, model, tokenizer)[kind], []) if kind == "vectors"
                        else golden(case, model, tokenizer)[kind])

    kind = "scores" if case.get("ranker") else "vectors"

    for changes in case.get("ablations", []):
        difference = np.abs(made(changes) - made({})).max()
        assert difference > 0.005, (changes, difference)


def make(root, name, states):
    case = CASES[name]
    owner = case.get("weights_of", name)
    tokenizer = TOKENIZERS[case.get("tokenizer", case["type"])]()
    config = dict(CASES[owner]["config"], vocab_size=tokenizer.get_vocab_size())
    model = build(case, config)
    if owner == name:
        states[name] = random_state(model, 7 + list(CASES).index(name))
        if config.get("tie_word_embeddings") and "words" in case:
            states[name]["lm_head.weight"] = states[name]["model.embed_tokens.weight"]
        if case.get("experts") and case.get("gguf", True):
            for key, value in states[name].items():
                if key.endswith(".experts.bias"):
                    value.zero_()
    model.load_state_dict(states[owner])
    check_ablations(case, config, states[owner], tokenizer)
    folder = root / name
    save_hf(folder / "hf", case, config, tokenizer, states[owner])
    if owner == name and case.get("gguf", True):
        save_gguf(folder / "model.gguf", case, config, tokenizer, states[name])
    dump(folder / "golden.json", golden(case, model, tokenizer))
    print(name)


def main():
    root = pathlib.Path(ARGUMENTS.folder)
    if root.exists():
        shutil.rmtree(root)
    states = {}
    for name in CASES:
        make(root, name, states)


if __name__ == "__main__":
    main()
