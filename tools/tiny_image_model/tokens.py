"""A byte-level BPE vocabulary in CLIP's format (Radford et al. 2021), learned from captions."""
import collections
import json
import os
import re

WORD = re.compile(r"'s|'t|'re|'ve|'m|'ll|'d|[^\W\d_]+|\d|[^\s\w]+|_")


def byte_letters():
    """GPT-2's printable letter of each byte."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    letters, spare = {}, 256
    for byte in range(256):
        if byte in printable:
            letters[byte] = chr(byte)
        else:
            letters[byte], spare = chr(spare), spare + 1
    return [letters[byte] for byte in printable] + [
        letters[byte] for byte in range(256) if byte not in printable], letters


def learn_merges(texts, count):
    """The `count` best merges of the words in `texts`, best first (Sennrich et al. 2016)."""
    _, letters = byte_letters()
    words = collections.Counter()
    for text in texts:
        words.update(WORD.findall(text.lower()))
    split = {}
    for word in words:
        symbols = [letters[byte] for byte in word.encode()]
        split[word] = [*symbols[:-1], symbols[-1] + "</w>"]
    merges = []
    while len(merges) < count:
        pairs = collections.Counter()
        for word, symbols in split.items():
            for pair in zip(symbols, symbols[1:]):
                pairs[pair] += words[word]
        best = min(pairs, key=lambda pair: (-pairs[pair], pair))
        merges.append(best)
        for word, symbols in split.items():
            split[word] = merge(symbols, best)
    return merges


def merge(symbols, pair):
    out, at = [], 0
    while at < len(symbols):
        if tuple(symbols[at:at + 2]) == pair:
            out.append(symbols[at] + symbols[at + 1])
            at += 2
        else:
            out.append(symbols[at])
            at += 1
    return out


def write_tokenizer(folder, texts, size):
    """vocab.json, merges.txt and tokenizer_config.json of `size` entries; ids of begin and end."""
    letters, _ = byte_letters()
    merges = learn_merges(texts, size - 514)
    entries = [*letters, *(letter + "</w>" for letter in letters), *(a + b for a, b in merges),
               "<|startoftext|>", "<|endoftext|>"]
    os.makedirs(folder, exist_ok=True)
    with open(f"{folder}/vocab.json", "w", encoding="utf-8") as out:
        json.dump({entry: place for place, entry in enumerate(entries)}, out, ensure_ascii=False)
    with open(f"{folder}/merges.txt", "w", encoding="utf-8") as out:
        out.write("#version: 0.2\n" + "".join(f"{a} {b}\n" for a, b in merges))
    with open(f"{folder}/tokenizer_config.json", "w", encoding="utf-8") as out:
        json.dump({"tokenizer_class": "CLIPTokenizer", "model_max_length": 77,
                   "do_lower_case": True, "errors": "replace",
                   "bos_token": "<|startoftext|>", "eos_token": "<|endoftext|>",
                   "unk_token": "<|endoftext|>", "pad_token": "<|endoftext|>"}, out, indent=2)
    return size - 2, size - 1
