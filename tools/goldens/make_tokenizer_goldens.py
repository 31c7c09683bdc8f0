#!/usr/bin/env python3
"""Makes tests/units/text/data: small tokenizers of every kind in use, trained here on the mixed text
of the tests, and what Hugging Face `tokenizers` and `sentencepiece` make of that text.

Run with: pip install tokenizers==0.23.3 sentencepiece==0.2.3; python make_tokenizer_goldens.py
Optional: RBEE_MODEL_DIR=folder with the GGUF files of the README; needs `gguf` too.

A golden holds a few samples with all their ids, one hash for each block of the text, and one for the
text as a whole. The hash of a list of ids is FNV-1a, 64 bit, with one step for each id."""

import io
import json
import os
import re
import struct
import sys

import arguments

arguments.read(__name__, __doc__)

import sentencepiece
from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models, normalizers,
                        pre_tokenizers, processors, trainers)

DATA = os.path.join(os.path.dirname(__file__), "..", "..", "tests", "units", "text", "data")
TEXT_BYTES = 1 << 20
VOCAB = 1300

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
          r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
HEAD, TAIL = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
ENDS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
REST = r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
GPT4O = (rf"[^\r\n\p{{L}}\p{{N}}]?{HEAD}*{TAIL}+{ENDS}|[^\r\n\p{{L}}\p{{N}}]?{HEAD}+{TAIL}*{ENDS}"
         r"|\p{N}{1,3}" + REST)
TEKKEN = (rf"[^\r\n\p{{L}}\p{{N}}]?{HEAD}*{TAIL}+|[^\r\n\p{{L}}\p{{N}}]?{HEAD}+{TAIL}*|\p{{N}}"
          + REST)
DEEPSEEK3 = (r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+"
             r"|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*"
             r"|\s*[\r\n]+|\s+(?!\S)|\s+")
CLIP = r"<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"
MARK = "\u2581"


class Random:
    """Knuth's 64-bit linear congruential generator; the upper half is used."""

    def __init__(self, seed):
        self.state = seed

    def below(self, limit):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) % (1 << 64)
        return (self.state >> 33) % limit


def unescape(text):
    known = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"\\": b"\\"}

    def one(match):
        code = match.group(1)
        return known[code] if code in known else bytes.fromhex(code[1:].decode())

    return re.sub(rb"\\(n|t|r|\\|x[0-9A-F]{2})", one, text)


def read_fragments():
    kinds = {b"w": [], b"f": [], b"r": [], b"s": []}
    with open(os.path.join(DATA, "fragments.txt"), "rb") as file:
        for line in file.read().split(b"\n"):
            kind, value = line[:1], line[2:]
            if kind == b"w":
                kinds[kind] += value.split(b" ")
            elif kind in kinds:
                kinds[kind].append(unescape(value))
    return kinds


def make_blocks(kinds, seed, size):
    """The rule of tests/units/text/mixed_text.cc, step for step."""
    words, fragments, runs, marks = (kinds[k] for k in (b"w", b"f", b"r", b"s"))
    random, blocks, total = Random(seed), [], 0
    while total < size:
        wanted, block = 64 + random.below(3000), b""
        while len(block) < wanted:
            kind = random.below(8)
            if kind < 4:
                for _ in range(1 + random.below(10)):
                    block += words[random.below(len(words))]
                    block += marks[random.below(len(marks))]
            elif kind < 7:
                block += fragments[random.below(len(fragments))]
            else:
                run = runs[random.below(len(runs))]
                block += run * (1 + random.below(40))
        blocks.append(block)
        total += len(block)
    return blocks


def hash_ids(ids):
    value = 0xCBF29CE484222325
    for i in ids:
        value = ((value ^ i) * 0x100000001B3) % (1 << 64)
    return f"{value:016x}"


def samples(kinds):
    fixed = ["", " ", "a", "  a", "Hello world", " Hello  world ", "\n", " \n", "\n\n a",
             "<|im_start|>user\nHi<|im_end|>", "a<|endoftext|>b", "  <mask>  x", "x<mask>y",
             "a" * 300, " " * 100, "<s>a</s> b", "caf\u00e9 cafe\u0301", "\ufffd", "\u2581a \u2581"]
    return fixed + [f.decode("utf-8", "replace") for f in kinds[b"f"]]


def write_golden(name, encode, decode, texts, blocks):
    """encode(text, special) -> ids; decode(ids, special) -> text."""
    strings = [block.decode("utf-8", "replace") for block in blocks]
    golden = {
        "samples": [{"text": t, "ids": encode(t, True), "decoded": decode(encode(t, False), True),
                     "decoded_plain": decode(encode(t, True), False)} for t in texts],
        "blocks": [hash_ids(encode(s, False))[8:] for s in strings],
        "whole": hash_ids(encode(b"".join(blocks).decode("utf-8", "replace"), False)),
    }
    with open(os.path.join(DATA, name + ".golden.json"), "w", encoding="utf-8") as file:
        json.dump(golden, file, ensure_ascii=True, separators=(",", ":"))
        file.write("\n")
    print(name, len(strings), "blocks", golden["whole"])


def golden_of(name, tokenizer, texts, blocks):
    write_golden(
        name,
        lambda text, special: tokenizer.encode(text, add_special_tokens=special).ids,
        lambda ids, special: tokenizer.decode(ids, skip_special_tokens=not special),
        texts, blocks)


def save(name, tokenizer, edit=None):
    """Writes name.json, compact, and gives back what `tokenizers` reads from it."""
    content = json.loads(tokenizer.to_str())
    if edit:
        edit(content)
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    with open(os.path.join(DATA, name + ".json"), "w", encoding="utf-8") as file:
        file.write(text + "\n")
    return Tokenizer.from_str(text)


def train_bpe(pre, normalizer=None, specials=(), post=None, corpus=(), **options):
    tokenizer = Tokenizer(models.BPE(**options))
    tokenizer.pre_tokenizer = pre
    if normalizer:
        tokenizer.normalizer = normalizer
    suffix = options.get("end_of_word_suffix")
    tokenizer.train_from_iterator(corpus, trainers.BpeTrainer(
        vocab_size=VOCAB, special_tokens=list(specials), show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        **({"end_of_word_suffix": suffix} if suffix else {})))
    tokenizer.decoder = decoders.ByteLevel()
    if post:
        tokenizer.post_processor = post(tokenizer)
    return tokenizer


def template(before, after):
    def make(tokenizer):
        text = " ".join(filter(None, [before, "$A", after]))
        tokens = [(t, tokenizer.token_to_id(t)) for t in (before, after) if t]
        return processors.TemplateProcessing(single=text, special_tokens=tokens)
    return make


def split_then_bytes(*patterns, behavior="isolated", invert=False):
    stages = [pre_tokenizers.Split(Regex(p), behavior, invert) for p in patterns]
    return pre_tokenizers.Sequence(
        stages + [pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def byte_level_kinds(corpus):
    chat = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    gpt2 = pre_tokenizers.ByteLevel(add_prefix_space=False)
    falcon = pre_tokenizers.Sequence([
        pre_tokenizers.Punctuation("contiguous"), gpt2, pre_tokenizers.Digits(False),
        pre_tokenizers.Split(Regex("[0-9][0-9][0-9]"), "isolated")])
    digits = pre_tokenizers.Sequence([pre_tokenizers.Digits(True), gpt2])
    bos = template("<|endoftext|>", None)
    yield "gpt2", train_bpe(pre_tokenizers.ByteLevel(add_prefix_space=True), corpus=corpus,
                            specials=["<|endoftext|>", AddedToken("<mask>", lstrip=True)])
    yield "llama3", train_bpe(split_then_bytes(LLAMA3), corpus=corpus, specials=chat, post=bos,
                              ignore_merges=True)
    marks = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|im_sep|>"]
    yield "phi4", train_bpe(split_then_bytes(LLAMA3), corpus=corpus,
                            specials=[AddedToken(t, lstrip=True, rstrip=True) for t in marks])
    yield "qwen2", train_bpe(split_then_bytes(QWEN2), normalizers.NFC(), chat, corpus=corpus)
    yield "smollm", train_bpe(digits, corpus=corpus, specials=chat)
    yield "gpt4o", train_bpe(split_then_bytes(GPT4O, behavior="removed", invert=True),
                             corpus=corpus, specials=chat)
    yield "tekken", train_bpe(split_then_bytes(TEKKEN), corpus=corpus, specials=chat,
                              ignore_merges=True)
    yield "deepseek3", train_bpe(split_then_bytes(r"\p{N}{1,3}", "[\u4e00-\u9fa5\u3040-\u309f"
                                                  "\u30a0-\u30ff]+", DEEPSEEK3),
                                 corpus=corpus, specials=chat)
    yield "falcon", train_bpe(falcon, corpus=corpus, specials=chat)
    yield "clip", train_bpe(split_then_bytes(CLIP, behavior="removed", invert=True),
                            normalizers.Sequence([normalizers.NFC(),
                                                  normalizers.Replace(Regex(r"\s+"), " "),
                                                  normalizers.Lowercase()]),
                            ["<|startoftext|>", "<|endoftext|>"], corpus=corpus,
                            post=template("<|startoftext|>", "<|endoftext|>"),
                            unk_token="<|endoftext|>", end_of_word_suffix="</w>")


def add_byte_tokens(content):
    """Puts "<0x00>" ... "<0xFF>" behind the unknown token, as SentencePiece's exports have them."""
    vocab = content["model"]["vocab"]
    order = sorted(vocab, key=vocab.get)
    first = 1 + order.index("<unk>")
    order[first:first] = [f"<0x{b:02X}>" for b in range(256)]
    content["model"]["vocab"] = {token: i for i, token in enumerate(order)}
    for token in content["added_tokens"]:
        token["id"] = content["model"]["vocab"][token["content"]]
    content["model"]["byte_fallback"] = True


def marked_kinds(corpus):
    """BPE over characters with a mark for the space."""
    specials = [AddedToken(t, normalized=False, special=True) for t in ("<unk>", "<s>", "</s>")]

    def train(normalizer, pre, limit):
        tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True))
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
        tokenizer.train_from_iterator(corpus, trainers.BpeTrainer(
            vocab_size=VOCAB, special_tokens=specials, limit_alphabet=limit, show_progress=False))
        if normalizer:
            tokenizer.normalizer = normalizer
        tokenizer.pre_tokenizer = pre
        return tokenizer

    tail = [decoders.Replace(MARK, " "), decoders.ByteFallback(), decoders.Fuse()]
    llama2 = train(normalizers.Sequence([normalizers.Prepend(MARK), normalizers.Replace(" ", MARK)]),
                   None, 150)
    llama2.decoder = decoders.Sequence(tail + [decoders.Strip(" ", 1, 0)])

    def finish_llama2(content):
        add_byte_tokens(content)
        content["pre_tokenizer"] = None
        ids = content["model"]["vocab"]
        content["post_processor"] = {
            "type": "TemplateProcessing",
            "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}},
                       {"Sequence": {"id": "A", "type_id": 0}}],
            "pair": [{"Sequence": {"id": "A", "type_id": 0}}],
            "special_tokens": {"<s>": {"id": "<s>", "ids": [ids["<s>"]], "tokens": ["<s>"]}}}

    yield "llama2", llama2, finish_llama2
    gemma = train(normalizers.Replace(" ", MARK), pre_tokenizers.Split(" ", "merged_with_previous"),
                  300)
    gemma.decoder = decoders.Sequence(tail)
    yield "gemma", gemma, add_byte_tokens
    first = train(None, pre_tokenizers.Metaspace(prepend_scheme="first", split=True), 200)
    first.decoder = decoders.Metaspace(prepend_scheme="first")
    yield "metaspace", first, None


def sentencepiece_model(corpus, model_type, **options):
    out = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(corpus), model_writer=out, vocab_size=VOCAB, model_type=model_type,
        num_threads=1, minloglevel=2, hard_vocab_limit=False, max_sentence_length=20000, **options)
    return sentencepiece.SentencePieceProcessor(model_proto=out.getvalue()), out.getvalue()


def charsmap_of(proto):
    """precompiled_charsmap (field 2) of normalizer_spec (field 3) of a serialized ModelProto."""
    def fields(data):
        at = 0

        def varint():
            nonlocal at
            value = shift = 0
            while True:
                byte = data[at]
                at += 1
                value |= (byte & 127) << shift
                shift += 7
                if byte < 128:
                    return value
        while at < len(data):
            tag = varint()
            if tag & 7 == 0:
                varint()
            elif tag & 7 == 2:
                size = varint()
                yield tag >> 3, data[at:at + size]
                at += size
            else:
                at += {1: 8, 5: 4}[tag & 7]
    spec = b"".join(v for k, v in fields(proto) if k == 3)
    return b"".join(v for k, v in fields(spec) if k == 2)


def unigram_kinds(corpus):
    """unigram: a charsmap of a few rules (the full NFKC one is too big to commit) as T5 has it."""
    import base64
    rules = os.path.join(DATA, "rules.tsv.tmp")
    with open(rules, "w", encoding="utf-8") as file:
        for source, target in [("\ufb01", "fi"), ("\ufb02", "fl"), ("\u00bd", "1\u20442"),
                               ("e\u0301", "\u00e9"), ("\u3000", " "), ("\u00a0", " "), ("\t", " "),
                               ("\n", " "), ("\r", " "), ("\u200b", ""), ("\u2122", "TM"),
                               ("\u1100\u1161", "\uac00"), ("a\u030a", "\u00e5")]:
            codes = [" ".join(f"{ord(c):X}" for c in s) for s in (source, target)]
            file.write("\t".join(codes) + "\n")
    model, proto = sentencepiece_model(corpus, "unigram", normalization_rule_tsv=rules,
                                       character_coverage=0.98, unk_id=0, bos_id=-1, eos_id=1)
    os.remove(rules)
    pieces = [(model.id_to_piece(i), model.get_score(i)) for i in range(model.get_piece_size())]
    t5 = Tokenizer(models.Unigram(pieces, unk_id=0, byte_fallback=False))
    t5.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    t5.decoder = decoders.Metaspace()
    t5.add_special_tokens(["</s>", "<unk>"])
    t5.post_processor = template(None, "</s>")(t5)

    def add_charsmap(content):
        encoded = base64.b64encode(charsmap_of(proto)).decode()
        content["normalizer"] = {"type": "Sequence", "normalizers": [
            {"type": "Precompiled", "precompiled_charsmap": encoded},
            {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}]}

    yield "unigram", t5, add_charsmap
    plain, _ = sentencepiece_model(corpus, "unigram", normalization_rule_name="identity",
                                   byte_fallback=True, character_coverage=0.98)
    pieces = [(plain.id_to_piece(i), plain.get_score(i)) for i in range(plain.get_piece_size())]
    bytes_ = Tokenizer(models.Unigram(pieces, unk_id=0, byte_fallback=True))
    bytes_.normalizer = normalizers.Sequence([normalizers.Nmt(), normalizers.NFKC(),
                                              normalizers.Strip(), normalizers.StripAccents()])
    bytes_.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(prepend_scheme="always")])
    bytes_.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace()])
    yield "unigram_bytes", bytes_, None


def wordpiece_kind(corpus):
    specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    bert = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    bert.normalizer = normalizers.BertNormalizer()
    bert.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    bert.train_from_iterator(corpus, trainers.WordPieceTrainer(
        vocab_size=VOCAB, special_tokens=specials, limit_alphabet=200, show_progress=False))
    bert.decoder = decoders.WordPiece()
    bert.post_processor = processors.BertProcessing(("[SEP]", bert.token_to_id("[SEP]")),
                                                    ("[CLS]", bert.token_to_id("[CLS]")))
    return bert


def spm_golden(corpus, texts, blocks):
    """SentencePiece's own BPE, for the GGUF loader: its vocabulary and its ids."""
    model, _ = sentencepiece_model(corpus, "bpe", normalization_rule_name="identity",
                                   byte_fallback=True, character_coverage=0.985,
                                   remove_extra_whitespaces=False,
                                   user_defined_symbols=["<mask>"])
    kinds = [6 if model.is_byte(i) else 2 if model.is_unknown(i) else 3 if model.is_control(i) else
             4 if model.id_to_piece(i) == "<mask>" else 1 for i in range(model.get_piece_size())]
    with open(os.path.join(DATA, "spm_bpe.vocab.json"), "w", encoding="utf-8") as file:
        json.dump({"tokens": [model.id_to_piece(i) for i in range(len(kinds))],
                   "scores": [model.get_score(i) for i in range(len(kinds))], "types": kinds},
                  file, ensure_ascii=False, separators=(",", ":"))
        file.write("\n")
    # SentencePiece takes no notice of the texts of control tokens, and of NUL: both are left out.
    texts = [t for t in texts if not re.search("<s>|</s>|<unk>|\0", t)]
    blocks = [re.sub(rb"</?s>|<unk>|\0", b"", block) for block in blocks]
    write_golden("spm_bpe", lambda text, special: model.encode(text, add_bos=special),
                 lambda ids, special: model.decode(ids), texts, blocks)


def component_goldens(texts):
    """Single normalizers, pre-tokenizers and decoders that the tokenizers above do not use."""
    n, p, d = normalizers, pre_tokenizers, decoders
    behaviors = ["removed", "isolated", "merged_with_previous", "merged_with_next", "contiguous"]
    norms = [n.NFC(), n.NFD(), n.NFKC(), n.NFKD(), n.Lowercase(), n.StripAccents(), n.Nmt(),
             n.Strip(True, False), n.Strip(False, True), n.Prepend("_"), n.ByteLevel(),
             n.Replace("a", "<A>"), n.Replace(Regex(r"\s+"), " "), n.Replace(Regex(r"\w+"), "W"),
             n.BertNormalizer(strip_accents=False, lowercase=False),
             n.BertNormalizer(clean_text=False, handle_chinese_chars=False)]
    pres = ([p.Split(" ", b, invert) for b in behaviors for invert in (False, True)]
            + [p.Split(Regex(r"\d+|[\w']{2,}"), b, invert)
               for b in behaviors for invert in (False, True)]
            + [p.Punctuation(b) for b in behaviors]
            + [p.Whitespace(), p.WhitespaceSplit(), p.BertPreTokenizer(), p.CharDelimiterSplit("e"),
               p.Digits(False), p.Digits(True), p.ByteLevel(True, True), p.ByteLevel(False, False)]
            + [p.Metaspace(prepend_scheme=s, split=t)
               for s in ("always", "first", "never") for t in (False, True)]
            + [p.Sequence([p.WhitespaceSplit(), p.Metaspace(prepend_scheme="first")])])
    decs = [d.ByteLevel(), d.Metaspace(), d.Metaspace(prepend_scheme="never"), d.WordPiece(),
            d.WordPiece(prefix="@@", cleanup=False), d.ByteFallback(), d.Fuse(),
            d.Replace("a", "bb"), d.Replace(Regex("[ab]+"), "-"), d.Strip("_", 1, 2),
            d.Sequence([d.Replace(MARK, " "), d.ByteFallback(), d.Fuse(), d.Strip(" ", 2, 0)])]
    tokens = [["Hello", MARK + "wor", "ld", MARK, MARK + "a"], [MARK * 3 + "a", MARK + "b"],
              ["it", "##s", "do", "n't", ".", "a", "!"], ["<0xE4>", "<0xB8>", "<0xAD>", "x"],
              ["__a___", "_b_", "@@c", "\u0120d", "ab ba", "  e"], []]

    def config(component):
        return json.loads(component.__getstate__())

    golden = {
        "normalizers": [{"config": config(c), "cases": [[t, c.normalize_str(t)] for t in texts]}
                        for c in norms],
        "pre_tokenizers": [{"config": config(c),
                            "cases": [[t, [w for w, _ in c.pre_tokenize_str(t)]] for t in texts]}
                           for c in pres],
        "decoders": [{"config": config(c), "cases": [[t, c.decode(t)] for t in tokens]}
                     for c in decs],
    }
    with open(os.path.join(DATA, "components.golden.json"), "w", encoding="utf-8") as file:
        json.dump(golden, file, ensure_ascii=True, separators=(",", ":"))
        file.write("\n")


def read_gguf(name):
    from gguf import GGUFReader
    fields = GGUFReader(os.path.join(os.environ["RBEE_MODEL_DIR"], name)).fields
    return {key.removeprefix("tokenizer.ggml."): field.contents()
            for key, field in fields.items() if key.startswith("tokenizer.ggml.")}


def smollm2_golden(blocks):
    """The vocabulary of SmolLM2 as its tokenizer.json is built."""
    vocab = read_gguf("SmolLM2-135M-Instruct.Q4_1.gguf")
    merges = [tuple(m.split(" ")) for m in vocab["merges"]]
    tokenizer = Tokenizer(models.BPE({t: i for i, t in enumerate(vocab["tokens"])}, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Digits(True), pre_tokenizers.ByteLevel(add_prefix_space=False)])
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(
        [t for t, kind in zip(vocab["tokens"], vocab["token_type"]) if kind == 3])
    golden_of("smollm2_real", tokenizer, [], blocks)


def proto_field(number, value):
    """One field of a protocol buffer: bytes, or a whole number."""
    def varint(rest):
        out = b""
        while rest > 127:
            out += bytes([rest & 127 | 128])
            rest >>= 7
        return out + bytes([rest])
    if isinstance(value, bytes):
        return varint(number << 3 | 2) + varint(len(value)) + value
    return varint(number << 3) + varint(value)


def gemma_golden(blocks):
    """SentencePiece itself, with the pieces and scores that the GGUF file kept."""
    vocab = read_gguf("gemma-3-270m-q4_k_m.gguf")
    proto = b""
    for text, score, kind in zip(vocab["tokens"], vocab["scores"], vocab["token_type"]):
        kind = 2 if text == "<unk>" else kind
        piece = text.replace(" ", MARK).encode()
        proto += proto_field(1, proto_field(1, piece) + b"\x15" + struct.pack("<f", score)
                             + proto_field(3, kind))
    bpe_with_bytes = proto_field(3, 2) + proto_field(35, 1)
    plain = proto_field(1, b"identity") + proto_field(3, 0) + proto_field(4, 0) + proto_field(5, 1)
    proto += proto_field(2, bpe_with_bytes) + proto_field(3, plain)
    model = sentencepiece.SentencePieceProcessor(model_proto=proto)
    # A mark in the text would be taken for a space.
    blocks = [re.sub(b"\xe2\x96\x81|\0", b"", block) for block in blocks]
    write_golden("gemma3_real", lambda text, special: model.encode(text),
                 lambda ids, special: model.decode(ids), [], blocks)


def main():
    kinds = read_fragments()
    blocks = make_blocks(kinds, 1, TEXT_BYTES)
    texts = samples(kinds)
    corpus = [block.decode("utf-8", "ignore").replace("\0", "")
              for block in make_blocks(kinds, 2, TEXT_BYTES // 4)]
    for name, tokenizer in byte_level_kinds(corpus):
        golden_of(name, save(name, tokenizer), texts, blocks)
    for name, tokenizer, edit in [*marked_kinds(corpus), *unigram_kinds(corpus)]:
        golden_of(name, save(name, tokenizer, edit), texts, blocks)
    golden_of("bert", save("bert", wordpiece_kind(corpus)), texts, blocks)
    spm_golden(corpus, texts, blocks)
    component_goldens([t for t in texts if len(t) < 40])
    if os.environ.get("RBEE_MODEL_DIR"):
        smollm2_golden(blocks)
        gemma_golden(blocks)


if __name__ == "__main__":
    sys.exit(main())
