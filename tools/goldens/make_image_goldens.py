#!/usr/bin/env python3
"""Makes the tiny random image models of tests/models/data_image and what diffusers makes of them.

Each case is a folder in diffusers' layout with weights from a fixed seed; diffusers and transformers
run its parts in float32, and inputs and outputs of each part are stored beside it as .npy. A small
CLIP tokenizer is trained on the spot; all cases share it.

Run from the repository root (wrote the committed files with the versions below):
    python3 -m venv venv && venv/bin/pip install torch==2.15.0 transformers==5.23.0 \
        diffusers==0.42.1 tokenizers safetensors numpy
    venv/bin/python tools/goldens/make_image_goldens.py tests/models/data_image [case ...]
"""

import json
import pathlib
import random
import sys

import tokenizers
import transformers

VOCAB = 1024
TOKENS = 77
SEED = 20260830

NOUNS = ("cat dog fox owl tree house river mountain star moon boat train lamp clock robot dragon "
         "teapot violin castle forest desert city street market garden bridge tower portrait").split()
LOOKS = ("red green blue golden tiny huge ancient shiny wooden glass fluffy striped lonely cheerful "
         "stormy misty neon detailed intricate photorealistic watercolour pencil pixel").split()
PLACES = ("on a table", "in the rain", "under the sea", "by the window", "at sunset", "on mars",
          "in the style of an old master", "with a hat", "next to a teapot", "over the clouds")
# Case, white space, digits, contractions, punctuation, scripts, emoji, combining marks, and the
# texts of the special tokens.
ODD = [
    "", " ", "a", "A CAT", "  two   spaces\tand\n\nlines  ", "it's they're we've I'm she'll he'd don't",
    "1234567890", "3 cats, 12.5% off!!!", "hello...world?!", "(masterpiece:1.2), [blurry]",
    "éclair E\u0301CLAIR ÀÉÎõü ÅNGSTRÖM", "straße STRASSE ẞ", "ΑΒΓ αβγ ΣΊΣΥΦΟΣ",
    "Привет, МИР", "日本語のテキスト 漢字", "한국어 문장", "مرحبا بالعالم", "שלום עולם",
    "नमस्ते दुनिया", "สวัสดีชาวโลก", "🐱🐶 cat 🏳️‍🌈 👨‍👩‍👧‍👦", "İstanbul ıI", "ﬁne ﬂower ½ ² Ⅷ",
    "tab\tand\u00a0no-break\u3000wide\u2003em", "<|startoftext|>a<|endoftext|>b", "<|endoftext|>",
    "<|startoftext|", "don’t “quote” — dash…", "a_b-c/d\\e", "x\u200by zero width", "\ufeffbom",
    "e\u0323\u0302 ệ", "ǅ ǆ Ǆ", "１２３ ٣٤", "`~!@#$%^&*()_+-={}[]|;:'\",.<>/?", "'s 't 're 've 'm 'll 'd 'S",
]


def save_json(path, value, **options):
    path.write_text(json.dumps(value, ensure_ascii=False, **options) + "\n", encoding="utf-8")


def prompts(count, seed):
    pick = random.Random(seed)
    return [f"a {pick.choice(LOOKS)} {pick.choice(LOOKS)} {pick.choice(NOUNS)} {pick.choice(PLACES)}"
            for _ in range(count)]


def train_tokenizer():
    """CLIP's pipeline around byte-level merges: the bytes, the bytes that end a word, then merges."""
    empty = transformers.CLIPTokenizer(vocab={"<|startoftext|>": 0, "<|endoftext|>": 1}, merges=[])
    letters = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    learner = tokenizers.Tokenizer(tokenizers.models.BPE(end_of_word_suffix="</w>"))
    learner.normalizer = empty.backend_tokenizer.normalizer
    learner.pre_tokenizer = empty.backend_tokenizer.pre_tokenizer
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=VOCAB - 2, initial_alphabet=letters, end_of_word_suffix="</w>",
        show_progress=False)
    learner.train_from_iterator(prompts(4000, 1) + ODD * 20, trainer)
    merges = [tuple(m) for m in json.loads(learner.to_str())["model"]["merges"]]
    pieces = letters + [letter + "</w>" for letter in letters]
    merges = merges[:VOCAB - 2 - len(pieces)]
    pieces += [a + b for a, b in merges]
    vocab = {piece: i for i, piece in enumerate(dict.fromkeys(pieces))}
    for special in ("<|startoftext|>", "<|endoftext|>"):
        vocab[special] = len(vocab)
    return vocab, merges


def write_tokenizer(folder):
    vocab, merges = train_tokenizer()
    folder.mkdir(parents=True, exist_ok=True)
    save_json(folder / "vocab.json", vocab, separators=(",", ":"))
    lines = ["#version: 0.2"] + [f"{a} {b}" for a, b in merges]
    (folder / "merges.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    save_json(folder / "tokenizer_config.json",
              {"tokenizer_class": "CLIPTokenizer", "model_max_length": TOKENS, "pad_token": "!",
               "bos_token": "<|startoftext|>",
               "eos_token": {"__type": "AddedToken", "content": "<|endoftext|>"},
               "unk_token": "<|endoftext|>"}, indent=1)
    tokenizer = transformers.CLIPTokenizer(vocab=vocab, merges=merges, pad_token="!")
    texts = ODD + prompts(200 - len(ODD), 2)
    save_json(folder / "golden.json", [[t, tokenizer(t)["input_ids"]] for t in texts])
    return tokenizer


def main():
    out = pathlib.Path(sys.argv[1])
    write_tokenizer(out / "tokenizer")


if __name__ == "__main__":
    main()
