#!/usr/bin/env python3
"""Makes the adapters of tests/models/language/data/lora and what PEFT's models say with them.

Each case is an adapter with random factors for one of the tiny checkpoints that
make_model_goldens.py wrote, saved by PEFT's save_pretrained, and the logits of that checkpoint's
prompts (ids.npy, lengths.npy beside it) by transformers in float32 with the adapter applied.

Run from the repository root (wrote the committed files with the versions below):
    python3 -m venv venv && venv/bin/pip install torch==2.15.0 transformers==5.23.0 peft==0.21.2
    venv/bin/python tools/goldens/make_lora_goldens.py tests/models/language/data [CASE ...]
"""

import pathlib
import shutil
import tempfile

import arguments

ARGUMENTS = arguments.read(__name__, __doc__, ("folder", "tests/models/language/data"), ("cases...", "only these"))

import numpy as np
import peft
import torch
import transformers

ATTENTION = ["q_proj", "k_proj", "v_proj", "o_proj"]
MLP = ["gate_proj", "up_proj", "down_proj"]

# name: the checkpoint, and PEFT's settings
CASES = {
    "llama_all": ("llama", dict(r=4, lora_alpha=8, target_modules=ATTENTION + MLP)),
    # Ranks that differ, of few layers, with the head, and both patterns.
    "llama_patterns": ("llama", dict(
        r=3, lora_alpha=5, use_rslora=True, target_modules=["q_proj", "up_proj", "lm_head"],
        layers_to_transform=None, rank_pattern={"q_proj": 2},
        alpha_pattern={"layers.1.mlp.up_proj": 9})),
    "qwen2": ("qwen2", dict(r=8, lora_alpha=16, target_modules=ATTENTION + MLP)),
    "phi3": ("phi3", dict(r=4, lora_alpha=4,
                          target_modules=["qkv_proj", "o_proj", "gate_up_proj", "down_proj"])),
    "gemma2": ("gemma2", dict(r=2, lora_alpha=4, target_modules=ATTENTION + MLP)),
    "olmo2": ("olmo2", dict(r=2, lora_alpha=4, target_modules=ATTENTION + MLP)),
    "granite": ("granite", dict(r=4, lora_alpha=4, target_modules=ATTENTION + MLP)),
    # The router, the experts and the shared expert's gate stay as they are.
    "qwen2_moe": ("qwen2_moe", dict(
        r=4, lora_alpha=4,
        target_modules=r".*(q_proj|o_proj|shared_expert\.(gate|up|down)_proj)")),
    "stablelm_parallel": ("stablelm_parallel",
                          dict(r=2, lora_alpha=4, target_modules=ATTENTION + MLP)),
    "smollm": ("smollm", dict(r=4, lora_alpha=8, target_modules=ATTENTION + MLP)),
}


def base_model(folder):
    """The checkpoint in float32."""
    model = transformers.AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager")
    return model.eval()


def logits_of(model, data):
    """Logits (tokens, vocab) of all prompts in a row."""
    ids = np.load(data / "ids.npy")
    out, first = [], 0
    for length in np.load(data / "lengths.npy"):
        row = torch.from_numpy(ids[first:first + length].astype(np.int64))[None]
        with torch.no_grad():
            out.append(model(row, use_cache=False).logits[0].numpy())
        first += length
    return np.concatenate(out).astype(np.float32)


def make(root, name, seed):
    checkpoint, settings = CASES[name]
    data = root / checkpoint
    plain = logits_of(base_model(data / "hf"), data)
    assert np.abs(plain - np.load(data / "logits.npy")).max() < 1e-3, name
    model = peft.get_peft_model(base_model(data / "hf"), peft.LoraConfig(**settings)).eval()
    rng = np.random.default_rng(seed)
    for key, parameter in model.named_parameters():
        if "lora_" not in key:
            continue
        values = rng.standard_normal(tuple(parameter.shape)) * 0.7 / np.sqrt(parameter.shape[-1])
        with torch.no_grad():
            parameter.copy_(torch.from_numpy(values.astype(np.float32)))
    logits = logits_of(model, data)
    difference = float(np.abs(logits - plain).max())
    assert difference > 0.3, (name, difference)
    folder = root / "lora" / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as saved:
        model.save_pretrained(saved, save_embedding_layers=False)
        for file in ("adapter_config.json", "adapter_model.safetensors"):
            shutil.copy(pathlib.Path(saved) / file, folder / file)
    np.save(folder / "logits.npy", logits)
    print(f"{name}: logits differ from the model's by {difference:.2f}")


def main():
    root = pathlib.Path(ARGUMENTS.folder)
    wanted = ARGUMENTS.cases or CASES
    for seed, name in enumerate(CASES):
        if name in wanted:
            make(root, name, 700 + seed)


if __name__ == "__main__":
    main()
