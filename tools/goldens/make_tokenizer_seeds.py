#!/usr/bin/env python3
"""Makes tests/fuzz/tokenizer/seeds from the tokenizers of tests/units/text/data: each with a
vocabulary of some dozens of tokens, so that a fuzzer gets through it fast. Needs nothing but Python."""

import json
import os

import arguments

arguments.read(__name__, __doc__)

ROOT = os.path.join(os.path.dirname(__file__), "..", "..", "tests")
DATA = os.path.join(ROOT, "units", "text", "data")
SEEDS = os.path.join(ROOT, "fuzz", "tokenizer", "seeds")
TEXTS = {"gpt2": "don't <mask> 12", "llama2": "<s>a b", "unigram": "\ufb01 x e\u0301",
         "bert": "[CLS] Caf\u00e9 \u4e2d!", "deepseek3": "\u4e2d12345 #a"}
BROKEN = {
    "deep": "[" * 100,
    "cut": '{"model": {"type": "BPE", "vocab": {"a": 0',
    "huge_id": '{"model": {"vocab": {"a": 4294967295}, "merges": []}}',
    "merge_of_three": '{"model": {"vocab": {"a": 0}, "merges": [["a", "a", "a"]]}}',
    "no_scores": '{"model": {"type": "Unigram", "vocab": [["a"]]}}',
    "slow_pattern": '{"model": {"vocab": {"a": 0}, "merges": []}, "pre_tokenizer": {"type": "Split",'
                    ' "pattern": {"Regex": "(a+)+$"}, "behavior": "Isolated"}}\0' + "a" * 40 + "b",
    "charsmap": '{"model": {"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0]]}, "normalizer": '
                '{"type": "Precompiled", "precompiled_charsmap": "BAAAAAAAAAA="}}\0abc',
}


def shorten(file):
    model = file["model"]
    if isinstance(model["vocab"], list):
        model["vocab"] = model["vocab"][:60]
        return
    special = {t["content"] for t in file["added_tokens"]}
    texts = [t for t in model["vocab"] if len(t) == 1 or t in special or t.startswith("<0x")]
    merges = [m for m in model.get("merges", []) if len(m[0] + m[1]) < 3][:20]
    kept = dict.fromkeys(texts[:330] + [m[0] + m[1] for m in merges])
    kept.update(dict.fromkeys([t for t in model["vocab"] if t.startswith("##")][:10]))
    model["vocab"] = {t: i for i, t in enumerate(kept)}
    if "merges" in model:
        model["merges"] = [m for m in merges if set(m) <= set(kept)]
    for token in file["added_tokens"]:
        token["id"] = model["vocab"][token["content"]]


def main():
    os.makedirs(SEEDS, exist_ok=True)
    for entry in sorted(os.listdir(DATA)):
        name, _, kind = entry.partition(".")
        if kind != "json":
            continue
        with open(os.path.join(DATA, entry), encoding="utf-8") as stream:
            file = json.load(stream)
        shorten(file)
        text = json.dumps(file, ensure_ascii=False, separators=(",", ":"))
        with open(os.path.join(SEEDS, name), "w", encoding="utf-8") as stream:
            stream.write(text + "\0" + TEXTS.get(name, "Hello  world\n 1"))
    for name, text in BROKEN.items():
        with open(os.path.join(SEEDS, name), "w", encoding="utf-8") as stream:
            stream.write(text)


if __name__ == "__main__":
    main()
