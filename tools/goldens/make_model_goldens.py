#!/usr/bin/env python3
"""Makes the tiny random checkpoints of tests/models/language/data and their golden logits.

Each case is a model of transformers with weights from a fixed seed, saved as a Hugging Face folder
and, with the names, keys and row order of llama.cpp's converter, as GGUF. transformers runs it in
float32; logits and the residual stream after each layer are stored for every position, and what
follows the second prompt greedily. A case may share the weights of another and differ in its config
only.

A case also lists ablations: changes of the config that must change the logits, which proves that
the case would notice a missing feature.

Run from the repository root (wrote the committed files with the versions below):
    python3 -m venv venv && venv/bin/pip install torch==2.15.0 transformers==5.24.0 gguf==0.19.0
    venv/bin/python tools/goldens/make_model_goldens.py tests/models/language/data
    venv/bin/python tools/goldens/make_model_goldens.py tests/models/language/data qwen3    # this case alone
"""

import copy
import json
import math
import pathlib
import shutil

import arguments

ARGUMENTS = arguments.read(__name__, __doc__, ("folder", "tests/models/language/data; without cases it is removed first"),
                           ("cases...", "only these, whose folders are replaced; default: all"))

import numpy as np
import torch
import transformers
from safetensors.torch import save_file

from model_cases import CASES, VOCAB, config_of
from model_fp8 import add_fp8, round_to_fp8
from model_int import add_integers, round_to_integers
from model_experts import EXPERTS, MIXTRAL_EXPERTS, add_mxfp4, predicting_layer, split_experts
from model_gguf import save_gguf


def build(case, config, state=None):
    """The transformers model of a config, in float32, with the given weights."""
    config = copy.deepcopy(config)
    made = transformers.AutoConfig.for_model(case["type"], **config)
    made._attn_implementation = "eager"
    model = transformers.AutoModelForCausalLM.from_config(made).float().eval()
    if state is not None:
        missing, unexpected = model.load_state_dict(state, strict=False)
        assert not unexpected, unexpected
        assert all(m == "lm_head.weight" for m in missing), missing
        model.tie_weights()
    return model


def random_state(name, case, config, seed):
    """Weights large enough that scores, windows and caps matter, rounded to the stored type."""
    model = build(case, config)
    tied = config["tie_word_embeddings"]
    centred = case["type"].startswith(("gemma", "qwen3_next", "qwen3_5"))  # norms around 0
    rng = np.random.default_rng(seed)
    state = {}
    for key, parameter in model.state_dict().items():
        if tied and key == "lm_head.weight":
            continue
        shape = tuple(parameter.shape)
        if case.get("mxfp4") and key.endswith(("experts.gate_up_proj", "experts.down_proj")):
            add_mxfp4(state, key, rng, shape)
            continue
        values = rng.standard_normal(shape)
        if key.endswith("norm.weight") or "layernorm" in key and not key.endswith(".bias"):
            plain = not centred or key.endswith("linear_attn.norm.weight")
            values = 0.3 * values + (1.0 if plain else 0.0)
        elif key.endswith("gate_up_proj_bias"):
            values = 4.0 * values  # GPT-OSS: some beyond its limit
        elif key.endswith((".bias", "_proj_bias")):
            values = 0.5 * values
        elif key.endswith(".sinks"):
            values = 1.0 + values
        elif "embed_tokens" in key:
            values = values * (1.0 / math.sqrt(shape[1]) if tied else 1.0)
        else:
            gain = 2.0 if any(k in key for k in ("q_proj", "k_proj", "qkv_proj")) else 1.0
            gain = 4.0 if key.endswith(("mlp.gate.weight", "mlp.router.weight")) else gain
            values = values * gain / math.sqrt(shape[-1])
        dtype = case.get("dtype", torch.float16)
        state[key] = torch.from_numpy(values.astype(np.float32)).to(dtype)
    if case.get("fp8"):
        round_to_fp8(case["fp8"], state)
    if case.get("integers"):
        round_to_integers(case["integers"], state)
    return state


def run(model, prompts):
    """Logits (tokens, vocab) and layer outputs (layers, tokens, dim) of all prompts in a row."""
    outputs = []
    layers = model.model.layers
    seen = [None] * len(layers)

    def keep(index):
        def hook(_module, _inputs, output):
            seen[index] = (output[0] if isinstance(output, tuple) else output)[0]
        return hook

    handles = [layer.register_forward_hook(keep(i)) for i, layer in enumerate(layers)]
    for ids in prompts:
        with torch.no_grad():
            logits = model(torch.tensor([ids]), use_cache=False).logits[0]
        outputs.append((logits.numpy(), np.stack([x.numpy() for x in seen])))
    for handle in handles:
        handle.remove()
    return (np.concatenate([o[0] for o in outputs]).astype(np.float32),
            np.concatenate([o[1] for o in outputs], axis=1).astype(np.float32))


def greedy(model, prompt, length):
    """The likeliest token after each, until the text has `length` or two are nearly as likely."""
    ids = list(prompt)
    with torch.no_grad():
        while len(ids) < length:
            logits = model(torch.tensor([ids]), use_cache=False).logits[0, -1]
            best = logits.topk(2)
            if best.values[0] - best.values[1] < 0.004:
                break
            ids.append(int(best.indices[0]))
    return ids[len(prompt):]


def check_ablations(name, case, config, state, prompts, logits):
    for change in case["ablations"]:
        changed = copy.deepcopy(config)
        changed.update(change)
        other, _ = run(build(case, changed, state), prompts)
        difference = float(np.abs(other - logits).max())
        assert difference > 0.05, (name, change, difference)
        print(f"  {name}: without {change}: logits differ by {difference:.2f}")


# Names of experts' matrices on published checkpoints, gate, up and down; transformers 5 stacks them.


def published(case, state):
    """The state under the names of published checkpoints: a tensor for each expert."""
    mixtral = case["type"] in ("mixtral", "minimax_m2")
    out = {key: value for key, value in state.items() if value.dtype == torch.uint8}
    if case.get("stacked"):
        return dict(state)
    for key, value in split_experts(state).items():
        key = key.replace("mlp.gate.moe_statics.", "mlp.moe_statics.")
        if mixtral:
            key = key.replace(".mlp.", ".block_sparse_moe.")
        role = key.rsplit(".", 1)[1]
        if ".experts." not in key or role not in EXPERTS:
            out[key] = value
            continue
        name = MIXTRAL_EXPERTS[EXPERTS.index(role)] if mixtral else role
        for expert, matrix in enumerate(value):
            out[f"{key.rsplit('.', 1)[0]}.{expert}.{name}.weight"] = matrix.contiguous()
    return out


def hf_config(case, config):
    """config.json in the spelling found on published checkpoints, or as transformers 5 saves it."""
    out = dict(config, model_type=case.get("saved_type", case["type"]))
    if case.get("mxfp4"):
        out["quantization_config"] = {"quant_method": "mxfp4"}
    if case.get("fp8"):
        out["quantization_config"] = case["fp8"]["config"]
    if case.get("integers"):
        out["quantization_config"] = case["integers"]["config"]
    if case.get("saved_by_v5"):
        made = transformers.AutoConfig.for_model(case["type"], **copy.deepcopy(config))
        return json.loads(made.to_json_string(use_diff=False))
    if case.get("multimodal") == "qwen3_5":
        return {"model_type": "qwen3_5", "architectures": ["Qwen3_5ForConditionalGeneration"],
                "tie_word_embeddings": out.pop("tie_word_embeddings"), "text_config": out,
                "vision_config": {"model_type": "qwen3_5_vision"}}
    if case.get("multimodal"):
        text = dict(out)
        # Published Gemma 3 configs leave out what equals the defaults.
        tower = {"gemma3": "siglip_vision_model", "mistral3": "pixtral"}[case["multimodal"]]
        architecture = case["multimodal"].capitalize() + "ForConditionalGeneration"
        return {"model_type": case["multimodal"], "architectures": [architecture],
                "text_config": text, "vision_config": {"model_type": tower}}
    return out


def save_hf(folder, case, config, state):
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(hf_config(case, config), indent=1) + "\n")
    if state is None:
        return
    state = published(case, state)
    if case.get("predicts"):
        state |= predicting_layer(config, "model.layers.{}.eh_proj", "model.layers.{}.self_attn.q_proj")
    if case.get("fp8"):
        add_fp8(case["fp8"], state)
    if case.get("integers"):
        add_integers(case["integers"], state)
    if case.get("multimodal") == "qwen3_5":
        state = {key.replace("model.", "model.language_model.", 1): value for key, value in state.items()}
        state["model.visual.patch_embed.proj.weight"] = torch.zeros(4, 4)
        state["mtp.fc.weight"] = torch.zeros(4, 4)
    elif case.get("multimodal"):
        state = {f"language_model.{key}": value for key, value in state.items()}
        state["vision_tower.vision_model.embeddings.patch_embedding.weight"] = torch.zeros(4, 4)
    shards = case.get("shards", 1)
    if shards == 1:
        save_file(state, folder / "model.safetensors", metadata={"format": "pt"})
        return
    keys = list(state)
    index = {}
    for i in range(shards):
        part = keys[i * len(keys) // shards:(i + 1) * len(keys) // shards]
        file = f"model-{i + 1:05d}-of-{shards:05d}.safetensors"
        save_file({k: state[k] for k in part}, folder / file, metadata={"format": "pt"})
        index.update({k: file for k in part})
    total = sum(v.numel() * v.element_size() for v in state.values())
    (folder / "model.safetensors.index.json").write_text(
        json.dumps({"metadata": {"total_size": total}, "weight_map": index}, indent=1) + "\n")


def weights_of(owner, states):
    if owner not in states:
        seed = 1 + list(CASES).index(owner)
        states[owner] = random_state(owner, CASES[owner], config_of(owner), seed)
    return states[owner]


def make(root, name, states):
    case = CASES[name]
    config = config_of(name)
    owner = case.get("weights_of", name)
    state = weights_of(owner, states)
    rng = np.random.default_rng(1000 + list(CASES).index(name))
    prompts = [rng.integers(0, VOCAB, n).tolist() for n in case.get("prompts", [24, 9, 17])]
    floats = {key: value.float() for key, value in state.items() if value.dtype != torch.uint8}
    model = build(case, config, floats)
    logits, hidden = run(model, prompts)
    assert np.isfinite(logits).all()
    text = greedy(model, prompts[1], max(map(len, prompts)))
    assert text or len(prompts[1]) == max(map(len, prompts)), name
    check_ablations(name, case, config, floats, prompts, logits)

    folder = root / name
    save_hf(folder / "hf", case, config, state if owner == name else None)
    if case.get("gguf"):
        save_gguf(folder / "model.gguf", case, config, state)
    np.save(folder / "ids.npy", np.concatenate(prompts).astype(np.int32))
    np.save(folder / "lengths.npy", np.array([len(p) for p in prompts], dtype=np.int32))
    np.save(folder / "logits.npy", logits)
    np.save(folder / "hidden.npy", hidden)
    if text:
        np.save(folder / "greedy.npy", np.array(text, dtype=np.int32))
    print(f"{name}: logits within {np.abs(logits).max():.1f}")


def main():
    root = pathlib.Path(ARGUMENTS.folder)
    unknown = [name for name in ARGUMENTS.cases if name not in CASES]
    assert not unknown, f"no such cases: {unknown}; there are {', '.join(CASES)}"
    if not ARGUMENTS.cases and root.exists():
        shutil.rmtree(root)
    states = {}
    for name in ARGUMENTS.cases or CASES:
        shutil.rmtree(root / name, ignore_errors=True)
        make(root, name, states)


if __name__ == "__main__":
    main()
