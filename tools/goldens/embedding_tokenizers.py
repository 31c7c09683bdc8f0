"""Tiny tokenizers of the kinds that models for embeddings have, and their GGUF form.

Vocabularies come from a few sentences by byte pair encoding with ties in the order of the pieces, so
that they are the same everywhere; the trainers of the tokenizers library break ties as their hash
maps lie.
"""

import collections
import json
import math

import gguf
from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models, normalizers,
                        pre_tokenizers, processors)

CORPUS = ["The quick brown fox jumps over the lazy dog.", "Rust and C++ are languages, too!",
          "How do magnets work?", "A field of iron turns with the current (1820).",
          "Das Wetter ist heute sehr sch\u00f6n.", "Les \u00e9l\u00e8ves mangent \u00e0 midi.",
          "embedding models map texts to vectors; rerankers score pairs of texts"]
MARK = "\u2581"


def join(symbols, pair, merged):
    out = []
    for symbol in symbols:
        if out and (out[-1], symbol) == pair:
            out[-1] = merged
        else:
            out.append(symbol)
    return out


def merges_of(words, size, inner=""):
    """words: how often each one comes. `inner` begins every symbol that does not begin its word.
    Returns the letters in order, and up to `size` merges as (left, right, merged, times)."""
    split = {word: [word[0]] + [inner + letter for letter in word[1:]] for word in sorted(words)}
    letters = sorted({symbol for symbols in split.values() for symbol in symbols})
    merges = []
    while len(merges) < size:
        pairs = collections.Counter()
        for word, symbols in split.items():
            for pair in zip(symbols, symbols[1:]):
                pairs[pair] += words[word]
        if not pairs:
            break
        pair, times = min(pairs.items(), key=lambda item: (-item[1], item[0]))
        merged = pair[0] + pair[1].removeprefix(inner)
        split = {word: join(symbols, pair, merged) for word, symbols in split.items()}
        merges.append((*pair, merged, times))
    return letters, merges


def words_of(tokenizer, texts=CORPUS):
    words = collections.Counter()
    for text in texts:
        if tokenizer.normalizer is not None:
            text = tokenizer.normalizer.normalize_str(text)
        words.update(word for word, _ in tokenizer.pre_tokenizer.pre_tokenize_str(text))
    return words


def numbered(pieces):
    return {piece: i for i, piece in enumerate(dict.fromkeys(pieces))}


def finish(tokenizer, specials, single, pair=None):
    tokenizer.add_special_tokens([AddedToken(token, special=True) for token in specials])
    tokenizer.post_processor = processors.TemplateProcessing(
        single=single, pair=pair, special_tokens=[(token, tokenizer.token_to_id(token))
                                                  for token in specials if token in single])
    return tokenizer


def wordpiece():
    out = Tokenizer(models.WordPiece(vocab={"[UNK]": 0}, unk_token="[UNK]"))
    out.normalizer = normalizers.BertNormalizer()
    out.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    letters, merges = merges_of(words_of(out), 100, inner="##")
    out.model = models.WordPiece(vocab=numbered(specials + letters + [m[2] for m in merges]),
                                 unk_token="[UNK]")
    out.decoder = decoders.WordPiece()
    return finish(out, specials, "[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1")


def unigram():
    out = Tokenizer(models.Unigram())
    out.normalizer = normalizers.NFKC()
    out.pre_tokenizer = pre_tokenizers.Metaspace()
    specials = ["<s>", "<pad>", "</s>", "<unk>"]
    words = words_of(out)
    letters, merges = merges_of(words, 100)
    times = {letter: sum(n * word.count(letter) for word, n in words.items())
             for letter in letters}
    times.update({merged: n for _, _, merged, n in merges})
    total = sum(times.values())
    pieces = [(piece, round(math.log(n / total), 4)) for piece, n in times.items()]
    out.model = models.Unigram([(token, 0.0) for token in specials] + pieces, unk_id=3)
    out.decoder = decoders.Metaspace()
    return finish(out, specials, "<s> $A </s>", "<s> $A </s> </s> $B </s>")


def byte_level(specials, single, pair=None, more=(), normalizer=None):
    """more: merges before those of the corpus, as pairs."""
    out = Tokenizer(models.BPE())
    if normalizer is not None:
        out.normalizer = normalizer
    out.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    _, merges = merges_of(words_of(out), 60)
    merges = [(left, right, left + right, 0) for left, right in more] + merges
    pieces = specials + sorted(pre_tokenizers.ByteLevel.alphabet()) + [m[2] for m in merges]
    out.model = models.BPE(vocab=numbered(pieces), merges=[m[:2] for m in merges])
    out.decoder = decoders.ByteLevel()
    return finish(out, specials, single, pair)


def qwen():
    return byte_level(["<|endoftext|>"], "$A <|endoftext|>")


def qwen_ranker():
    """With words that are a token each, and the marks of chats."""
    return byte_level(["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<think>", "</think>"], "$A",
                      more=[("y", "e"), ("ye", "s"), ("n", "o")])


def modern_bert():
    return byte_level(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"], "[CLS] $A [SEP]",
                      "[CLS] $A [SEP] $B [SEP]", normalizer=normalizers.NFC())


def gemma():
    """Pieces with the mark for spaces, and bytes for what has none."""
    out = Tokenizer(models.BPE())
    out.normalizer = normalizers.Replace(" ", MARK)
    out.pre_tokenizer = pre_tokenizers.Split(Regex(MARK), "merged_with_next")
    specials = ["<pad>", "<eos>", "<bos>", "<unk>"]
    letters, merges = merges_of(words_of(out), 80)
    pieces = specials + [f"<0x{i:02X}>" for i in range(256)] + letters + [m[2] for m in merges]
    out.model = models.BPE(vocab=numbered(pieces), merges=[m[:2] for m in merges],
                           unk_token="<unk>", byte_fallback=True, fuse_unk=True)
    out.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    out.decoder = decoders.Sequence([decoders.Replace(MARK, " "), decoders.ByteFallback(),
                                     decoders.Fuse()])
    return finish(out, specials, "<bos> $A <eos>")


TOKENIZERS = {"bert": wordpiece, "xlm-roberta": unigram, "qwen3": qwen, "modernbert": modern_bert,
              "qwen3_ranker": qwen_ranker, "nomic_bert": wordpiece, "gemma3_text": gemma}


def add_ends(writer, bos, eos):
    for name, token in (("bos", bos), ("eos", eos)):
        if token is not None:
            getattr(writer, f"add_{name}_token_id")(token)
        getattr(writer, f"add_add_{name}_token")(token is not None)


def add_vocabulary(writer, kind, tokenizer):
    """As llama.cpp's converter writes it for a model of this kind."""
    tokens = [tokenizer.id_to_token(i) for i in range(tokenizer.get_vocab_size())]
    special = {token.content for token in tokenizer.get_added_tokens_decoder().values()}
    types = [gguf.TokenType.CONTROL if t in special else gguf.TokenType.NORMAL for t in tokens]
    model = json.loads(tokenizer.to_str())["model"]
    if kind in ("bert", "nomic_bert"):
        writer.add_tokenizer_model("bert")
        tokens = [t if t in special else t[2:] if t.startswith("##") else MARK + t for t in tokens]
        writer.add_token_type_count(2)
        writer.add_bos_token_id(2)
        writer.add_sep_token_id(3)
        writer.add_unk_token_id(1)
    elif kind == "xlm-roberta":
        writer.add_tokenizer_model("t5")
        writer.add_token_scores([score for _, score in model["vocab"]])
        writer.add_add_space_prefix(True)
        writer.add_remove_extra_whitespaces(False)
        writer.add_unk_token_id(3)
        add_ends(writer, 0, 2)
    elif kind == "gemma3_text":
        writer.add_tokenizer_model("llama")
        rank = {left + right: i for i, (left, right) in enumerate(model["merges"])}
        writer.add_token_scores([-float(rank.get(token, len(rank))) for token in tokens])
        types = [gguf.TokenType.BYTE if token.startswith("<0x") else kind
                 for token, kind in zip(tokens, types)]
        writer.add_add_space_prefix(False)
        writer.add_unk_token_id(3)
        add_ends(writer, 2, 1)
    else:
        writer.add_tokenizer_model("gpt2")
        writer.add_tokenizer_pre("modern-bert" if kind == "modernbert" else "gpt-2")
        writer.add_token_merges([" ".join(merge) for merge in model["merges"]])
        ends = {"modernbert": (2, 3), "qwen3": (None, 0), "qwen3_ranker": (None, None)}
        add_ends(writer, *ends[kind])
    writer.add_token_list(tokens)
    writer.add_token_types(types)
