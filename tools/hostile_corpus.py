"""The requests of hostile.py: families in which a small request causes much work, each made by a small
function. Every request is legal HTTP or nearly so, and ends when its client does.

CHAT, EMBEDDINGS and PICTURES map a family's name to a function that gives its requests, as pairs of
a name and what is called with an Attacker. BOTH are families of connections, whatever the worker
makes."""

import base64
import functools
import gzip
import json
import random
import string
import struct
import zlib

CHAT, EMBEDDINGS, PICTURES, BOTH = {}, {}, {}, {}
LOW = string.ascii_lowercase


def family(*tables):
    def keep(function):
        for table in tables:
            table[function.__name__] = functools.cache(function)
        return function
    return keep


def body(path, fields, then=None):
    """A request of JSON; `then` changes the text of it."""
    text = fields if isinstance(fields, (str, bytes)) else json.dumps(fields)
    text = text if isinstance(text, bytes) else text.encode()
    return lambda attacker: attacker.post(path, then(text) if then else text)


def completion(**fields):
    return body("/v1/completions", {"prompt": "Hi", "max_tokens": 12, "temperature": 0, **fields})


def chat(path="/v1/chat/completions", **fields):
    return body(path, {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 4, **fields})


def letters(count, seed=3):
    rng = random.Random(seed)
    return "".join(rng.choice(LOW) for _ in range(count))


def nested(depth, inner, wrap):
    for _ in range(depth):
        inner = wrap(inner)
    return inner


# Of chat workers.

@family(CHAT)
def grammars():
    rules = "root ::= " + " | ".join(f"r{i}" for i in range(200)) + "\n"
    rules += "\n".join(f'r{i} ::= [a-zA-Z ]{{60}} "{i}"' for i in range(200))
    twins = "root ::= " + " | ".join(f"a{i} b{i}" for i in range(60)) + "\n"
    twins += "\n".join(f'a{i} ::= [a-z]* [a-z]* [a-z]*\nb{i} ::= "{i}" a{i} | a{i}' for i in range(60))
    return [
        ("ambiguous", completion(max_tokens=300, grammar="root ::= s\ns ::= [a-zA-Z ,.] s? [a-zA-Z ,.]?")),
        ("palindromes", completion(max_tokens=200, grammar="root ::= p\np ::= [a-z ] p [a-z ] | [a-z ] p | [a-z ]")),
        ("rules", completion(grammar=rules)),
        ("twins", completion(grammar=twins)),
        ("chain", completion(grammar="root ::= r0\n" + "\n".join(
            f"r{i} ::= r{i + 1} r{i + 1}" for i in range(60)) + '\nr60 ::= "a"')),
        ("repeats", completion(grammar='root ::= ((("a"{0,300}){0,300}){0,300}){0,300}')),
        ("left", completion(grammar='root ::= root root | root "a" | "a"')),
        ("deep", completion(grammar="root ::= " + "(" * 20000 + '"a"' + ")" * 20000)),
        ("alternatives", completion(grammar="root ::= " + " | ".join(
            f'"{letters(8, i)}"' for i in range(20000)))),
    ]


@family(CHAT)
def expressions():
    odd = "".join(f"\\x{k:02x}" for k in range(1, 128, 2))
    wide = "[" + (LOW * 3847)[:100000] + "]*" + letters(20000)
    kept = [(f"kept {i}", completion(max_tokens=1, guided_regex=f"[{odd}]{{99990}}[{odd}]{{{70000 + i}}}"))
            for i in range(8)]
    return [
        ("wide class", completion(guided_regex=wide)), *kept,
        ("window", completion(guided_regex="(a|b)*a" + "(a|b)" * 24)),
        ("counts", completion(guided_regex="((((a{1,99}){1,99}){1,99}){1,99}){1,99}")),
        ("stars", completion(guided_regex="(" * 400 + "a*" + ")*" * 400)),
        ("look-aheads", completion(guided_regex="(?=[a-z]*1)" * 12 + "[a-z0-9]{1,400}")),
        ("letters", completion(guided_regex="[\\w\\s]{2000}[^\\W]{2000}")),
    ]


@family(CHAT)
def schemas():
    def ask(schema, **fields):
        return chat(response_format={"type": "json_schema", "json_schema": {"name": "s", "schema": schema}},
                    **fields)
    def texts(count, most):
        names = [f"t{i}" for i in range(count)]
        return {"type": "object", "required": names,
                "properties": {name: {"type": "string", "maxLength": most} for name in names}}
    many = {"type": "object", "properties": {f"k{i}": {"type": "integer"} for i in range(2000)}}
    doubling = {"$defs": {f"d{i}": {"anyOf": [{"$ref": f"#/$defs/d{i + 1}"}] * 2} for i in range(40)},
                "$ref": "#/$defs/d0"}
    doubling["$defs"]["d40"] = {"type": "null"}
    deep = nested(14, {"type": "string"}, lambda inner: {"type": "object", "properties": {"a": inner}})
    return [
        ("long strings", ask(texts(40, 5000))),
        ("longest string", ask(texts(1, 2_000_000))),
        ("optional", ask(many)),
        ("doubling", ask(doubling)),
        ("deep", ask(deep)),
        ("values", ask({"enum": [letters(20, i) for i in range(20000)]})),
        ("patterns", ask({"type": "object", "properties": {
            f"p{i}": {"type": "string", "pattern": f"^([a-z]{{1,90}}-){{1,90}}{i}$"} for i in range(60)}})),
        ("greatest counts", ask({"type": "array", "maxItems": 4000000, "items": {
            "type": "array", "maxItems": 4000000, "items": {
                "type": "string", "pattern": "(a|b)*c", "maxLength": 4000000}}})),
        ("items", ask({"type": "array", "minItems": 5000, "maxItems": 100000,
                       "items": {"type": "array", "minItems": 900, "items": {"type": "number"}}})),
        ("ranges", ask({"type": "object", "properties": {
            f"n{i}": {"type": "integer", "minimum": -10**18 + i, "maximum": 10**18 + i} for i in range(400)}})),
        ("far bounds", ask({"type": "object", "properties": {
            f"n{i}": {"type": "integer", "minimum": -87654321 * 10**11 + 977 * i, "maximum": 98765432109 + i}
            for i in range(2000)}})),
        ("formats", ask({"type": "object", "properties": {
            f"f{i}": {"format": ("email", "regex", "iri-reference", "idn-email")[i % 4], "maxLength": 90 + i}
            for i in range(300)}})),
        ("text in each way", ask({"type": "object", "properties": {"z": {"description": "x" * 200_000}},
                                  "anyOf": [{"required": [f"q{i}"]} for i in range(2000)]})),
        ("long name", ask({"type": "object", "properties": {"n" * 200_000: True}, "additionalProperties": True})),
        ("needed names", ask({"type": "object", "properties": {f"k{i}": {"type": "integer"} for i in range(400)},
                              "dependentRequired": {f"k{i}": [f"k{i + 1}"] for i in range(399)}})),
        ("crossing needs", ask({"type": "object", "properties": {f"k{i}": True for i in range(80)},
                                "dependentRequired": {f"k{i}": [f"k{i + 40}"] for i in range(40)}})),
        ("names twice", ask({"allOf": [{"required": [f"{x}{i}" for i in range(20000)]} for x in "ab"]})),
        ("choices", completion(guided_choice=[letters(30, i) for i in range(10000)])),
    ]


@family(CHAT)
def tools():
    def tool(i, parameters):
        return {"type": "function", "function": {"name": f"f{i}", "parameters": parameters}}
    def ask(some, **fields):
        return chat(tools=some, tool_choice="required", max_tokens=12, **fields)
    wide = {"type": "object", "properties": {
        f"k{i}": {"type": "string", "maxLength": 900} for i in range(40)}}
    return [
        ("many", ask([tool(i, wide) for i in range(100)])),
        ("names", ask([tool(i, {"type": "object"}) for i in range(128)])),
        ("patterns", ask([tool(i, {"type": "object", "properties": {"a": {
            "type": "string", "pattern": "^(a|b)*a(a|b){18}$"}}}) for i in range(20)])),
        ("long description", ask([{"type": "function", "function": {
            "name": "f", "description": "x" * 900_000, "parameters": {"type": "object"}}}])),
    ]


@family(CHAT)
def templates():
    def ask(path="/v1/chat/completions", **more):
        return chat(path=path, chat_template_kwargs=more)
    turns = [{"role": "user" if i % 2 == 0 else "assistant", "content": "a"} for i in range(20001)]
    wide = {f"k{i}": i for i in range(4000)}
    list_ = list(range(100_000))
    paths = ["/v1/chat/completions", "/apply-template", "/tokenize", "/v1/messages/count_tokens",
             "/v1/messages", "/v1/responses"]
    out = [("deep", ask(a=nested(28, 1, lambda inner: [inner]))), ("list", ask(a=list_)),
           ("wide objects", ask(**{f"o{i}": wide for i in range(20)})),
           ("template", chat(chat_template="{% for i in range(1000000000) %}a{% endfor %}"))]
    for path in paths:
        if path.endswith("responses"):
            out.append((f"turns of {path}", body(path, {"input": turns})))
        else:
            out.append((f"turns of {path}", body(path, {"messages": turns, "max_tokens": 1})))
            out.append((f"names of {path}", ask(path=path, **{f"k{i}": i for i in range(40000)})))
    return out


@family(CHAT)
def lists():
    return [
        ("stops", completion(stop=[letters(8, i) for i in range(50000)])),
        ("biases", completion(logit_bias={str(i): 1 for i in range(50000)})),
        ("texts of biases", body("/completion", {"prompt": "Hi", "n_predict": 4, "logit_bias": [
            [letters(90, i), 1] for i in range(1000)]})),
        ("answers", completion(n=128, max_tokens=64)), ("best of", completion(n=1, best_of=10**9)),
        ("prompts", body("/v1/completions", {"prompt": ["Hi"] * 100_000, "max_tokens": 1})),
        ("prompts in 288", body("/v1/completions", {"prompt": ["Hi " * 500] * 288, "max_tokens": 1})),
        ("bad words", completion(bad_words=[letters(90, i) for i in range(64)])),
        ("probabilities", completion(logprobs=10**6, prompt_logprobs=10**6)),
        ("probabilities of tokens", completion(logprobs=20, logprob_token_ids=list(range(100_000)))),
        ("probabilities of some tokens", completion(logprobs=20, logprob_token_ids=list(range(128)))),
        ("numbers", completion(max_tokens=10**18, seed=-10**30, top_k=10**9, temperature=1e300)),
        ("detokenize", body("/detokenize", {"tokens": [7] * 200_000})),
    ]


@family(CHAT)
def prompts():
    def text(some):
        return completion(prompt=some, max_tokens=1)
    return [
        ("one letter", text("a" * 1_000_000)), ("blanks", text(" " * 1_000_000)),
        ("lines", text("\n" * 500_000)), ("digits", text("1" * 1_000_000)),
        ("signs", text("\U0001f41d" * 80_000)), ("marks", text("e" + "\u0301" * 150_000)),
        ("specials", text("<|im_start|>" * 80_000)), ("zeros", text("\0" * 100_000)),
        ("no letters", text("!?" * 500_000)), ("context", text("word " * 8000)),
        ("tokenize", body("/tokenize", {"content": "a" * 1_000_000, "with_pieces": True})),
        ("infill", body("/infill", {"input_prefix": "a" * 400_000, "input_suffix": "b" * 400_000,
                                    "n_predict": 1})),
    ]


@family(CHAT)
def crowds():
    """Many requests at once, each within the limits."""
    def crowd(count, make, path="/v1/completions"):
        requests = [(path, make(i)) for i in range(count)]
        return lambda attacker: attacker.crowd(requests)
    def words(i, count):
        rng = random.Random(i)
        return " ".join(rng.choice(("bee", "hive", "honey", "comb", "queen")) for _ in range(count))
    long = {"ignore_eos": True, "max_tokens": 1500}
    return [
        ("answers", crowd(64, lambda i: {"prompt": letters(8, i), **long})),
        ("prompts", crowd(64, lambda i: {"prompt": words(i, 3000), "max_tokens": 1})),
        ("contexts", crowd(16, lambda i: {"prompt": words(i, 900), **long})),
        ("choices", crowd(8, lambda i: {"prompt": letters(8, i), "n": 16, **long})),
        ("drafts", crowd(16, lambda i: {"prompt": "a b c d " * 50, "speculative": True, **long})),
        ("probabilities", crowd(32, lambda i: {"prompt": words(i, 800), "prompt_logprobs": 20, "logprobs": 20,
                                               **long})),
        ("grammars", crowd(32, lambda i: {"prompt": "a", "guided_regex": f"([a-z ]{{1,90}}{i}){{1,90}}", **long})),
        ("samplers", crowd(32, lambda i: {"prompt": "a", "mirostat": 2, "temperature": 2, "logprobs": 20, **long})),
        ("texts", crowd(32, lambda i: {"content": letters(1000, i) * 900}, "/tokenize")),
    ]


# Of workers for embeddings.

@family(EMBEDDINGS)
def embeddings():
    """Long inputs and many inputs, as a single request and as crowds."""
    def text(i, count):
        rng = random.Random(i)
        return " ".join(rng.choice(("bee", "hive", "honey", "comb", "queen")) for _ in range(count))
    def embed(value, **fields):
        return body("/v1/embeddings", {"input": value, **fields})
    def crowd(count, make, path="/v1/embeddings"):
        requests = [(path, make(i)) for i in range(count)]
        return lambda attacker: attacker.crowd(requests)
    many = [text(i, 60) for i in range(2048)]
    documents = [text(i, 100) for i in range(1000)]
    return [
        ("one of 8192 tokens", embed(text(1, 8190))),
        ("numbers of 8192 tokens", embed([5] * 8192)),
        ("2048 inputs", embed(many)),
        ("2048 long inputs", embed([text(i, 400) for i in range(2048)])),
        ("2048 empty inputs", embed([""] * 2048)),
        ("base64", embed(many, encoding_format="base64")),
        ("dimensions", embed(many, dimensions=8)),
        ("wrong dimensions", embed(many, dimensions=10**9)),
        ("1000 documents", body("/v1/rerank", {"query": "bee", "documents": documents, "return_documents": True})),
        ("a long query", body("/v1/rerank", {"query": text(1, 4000), "documents": documents})),
        ("crowd of long inputs", crowd(32, lambda i: {"input": text(i, 8000)})),
        ("crowd of lists", crowd(16, lambda i: {"input": [text(i + k, 300) for k in range(200)]})),
        ("crowd of documents", crowd(16, lambda i: {"query": text(i, 10), "documents": documents}, "/v1/rerank")),
    ]


# Of pictures.

def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width=1, height=1, pixels=None, extra=b"", depth=8, colour=2, data=None):
    data = data if data is not None else zlib.compress(pixels or b"\0\0\0\0", 9)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0))
            + extra + chunk(b"IDAT", data) + chunk(b"IEND", b""))


@functools.cache
def texts_of_png(count, kind):
    text = zlib.compress(b"A" * 7_900_000, 9)
    heads = {b"zTXt": b"k%d\0\0", b"iTXt": b"k%d\0\1\0\0\0", b"iCCP": b"k%d\0\0"}
    return png(extra=b"".join(chunk(kind, heads[kind] % i + text) for i in range(count)))


def gif(frames, width=4000, height=4000):
    image = b"," + struct.pack("<HHHHB", 0, 0, width, height, 0) + b"\x02\x02\x4c\x01\x00"
    return b"GIF89a" + struct.pack("<HHBBB", width, height, 0x80, 0, 0) + b"\0\0\0\xff\xff\xff" + image * frames + b";"


def jpeg(width, height, scans):
    def part(mark, data):
        return b"\xff" + mark + struct.pack(">H", len(data) + 2) + data
    table = b"\x00\x00\x01" + b"\0" * 14 + b"\x00"
    out = b"\xff\xd8" + part(b"\xdb", b"\0" + b"\1" * 64)
    out += part(b"\xc2", struct.pack(">BHHB", 8, height, width, 1) + b"\1\x11\0") + part(b"\xc4", table)
    return out + (part(b"\xda", b"\1\1\0\0\0\0") + b"\0\0") * scans + b"\xff\xd9"


def webp(width, height):
    head = b"\x2f" + struct.pack("<I", (width - 1) | (height - 1) << 14) + b"\x88\x88\x08"
    data = b"VP8L" + struct.pack("<I", len(head)) + head
    return b"RIFF" + struct.pack("<I", len(data) + 4) + b"WEBP" + data + b"\0" * (len(data) % 2)


def animated_webp(width, height):
    size = struct.pack("<II", width - 1, height - 1)
    size = size[:3] + size[4:7]
    frame = b"\0" * 6 + size + b"\0" * 4 + webp(width, height)[12:]
    data = b"VP8X" + struct.pack("<II", 10, 2) + size + b"ANMF" + struct.pack("<I", len(frame)) + frame
    return b"RIFF" + struct.pack("<I", len(data) + 4) + b"WEBP" + data


def bmp(width, height, bits, compression, rows=b""):
    head = struct.pack("<IiiHHIIiiII", 40, width, height, 1, bits, compression, 0, 0, 0, 0, 0)
    return b"BM" + struct.pack("<III", 54 + len(rows), 0, 54) + head + rows


def hidden_bomb():
    """A text of megabytes in the lowest bits of a picture's opacity, a byte a column."""
    text = gzip.compress(b"A" * 7_000_000, 9)
    text = b"stealth_pngcomp" + struct.pack(">I", len(text) * 8) + text
    rows = b"".join(b"\0" + b"".join(bytes((0, 0, 0, byte >> (7 - row) & 1)) for byte in text) for row in range(8))
    return png(len(text), 8, pixels=rows, colour=6)


@functools.cache
def bombs():
    row = b"\0" + b"\0" * 3 * 20000
    return {
        "zTXt": texts_of_png(300, b"zTXt"), "iTXt": texts_of_png(100, b"iTXt"),
        "iCCP": texts_of_png(1, b"iCCP"),
        "size": png(2**31 - 1, 2**31 - 1), "wide": png(2**24, 64),
        "IDAT": png(64, 64, pixels=b"\0" * 100_000_000), "rows": png(20000, 20000, pixels=row * 200),
        "16 bits": png(8000, 8000, pixels=b"\0" * (1 + 8000 * 8) * 400, depth=16, colour=6),
        "GIF": gif(3000), "large GIF": gif(1, 65535, 65535),
        "JPEG": jpeg(8000, 8000, 2000), "large JPEG": jpeg(65500, 65500, 1),
        "WebP": webp(16384, 16384), "animated WebP": animated_webp(8192, 4096),
        "BMP": bmp(8192, 4096, 8, 1, b"\0\1"), "large BMP": bmp(2**31 - 1, -2**31, 32, 0),
        "runs": bmp(8192, 4096, 8, 1, b"\0\2\0\0" * 500_000), "hidden": hidden_bomb(), "nothing": b"", "zeros": b"\0" * 3_000_000,
    }


def coded(picture):
    return base64.b64encode(picture).decode()


def draw(**fields):
    return body("/sdapi/v1/txt2img", {"prompt": "a", "steps": 1, "width": 64, "height": 64, **fields})


@family(PICTURES)
def pictures():
    out = []
    plain = coded(png(64, 64, pixels=(b"\0" + b"\7" * 192) * 64))
    for name, picture in bombs().items():
        image = coded(picture)
        out.append((f"{name} to enlarge", body("/sdapi/v1/extra-single-image", {
            "image": image, "upscaling_resize": 1, "upscaler_1": "None"})))
        out.append((f"{name} to read", body("/sdapi/v1/png-info", {"image": image})))
        out.append((f"{name} to change", body("/sdapi/v1/img2img", {
            "prompt": "a", "steps": 1, "width": 64, "height": 64, "init_images": [image], "mask": image})))
        out.append((f"{name} as a mask", body("/sdapi/v1/img2img", {
            "prompt": "a", "steps": 1, "width": 64, "height": 64, "init_images": [plain], "mask": image,
            "inpaint_full_res": False})))
    return out


@family(PICTURES)
def settings():
    def read(key, text):
        note = chunk(b"tEXt", key + b"\0" + text)
        return body("/sdapi/v1/png-info", {"image": coded(png(extra=note))})
    fields = b"a\nSteps: 20" + b"".join(b", K%d: \"a, b\"" % i for i in range(60_000))
    nodes = json.dumps({str(i): {"class_type": "KSampler", "inputs": {"model": [str(i + 1), 0]}}
                        for i in range(12_000)}).encode()
    sampler = {"inputs": {"model": ["a", 0], "steps": 1, "latent_image": ["a", 0]}}
    circle = json.dumps({"1": sampler, "a": {"inputs": {"lora_name": "x" * 900_000, "model": ["a", 0]}}}).encode()
    objects = b'{"image":{"prompt":[' + b"{}," * 100_000 + b"{}]}}"
    return [("fields", read(b"parameters", fields)), ("lines", read(b"parameters", b"\n" * 1_000_000)),
            ("quotes", read(b"parameters", b"a\nSteps: 20, X: \"" + b"\\" * 900_000)),
            ("LoRAs", read(b"parameters", b"<lora:a:1>" * 90_000 + b"\nSteps: 20")),
            ("nodes", read(b"prompt", nodes)), ("circle", read(b"prompt", circle)),
            ("objects", read(b"sd-metadata", objects)), ("lists", read(b"prompt", b"[" * 900_000)),
            ("hex", read(b"Comment", b'{"prompt":"' + b"{" * 900_000 + b'"}'))]


@family(PICTURES)
def enlarging():
    plain = coded(png(64, 64, pixels=(b"\0" + b"\7" * 192) * 64))
    def ask(**fields):
        return body("/sdapi/v1/extra-single-image", {"image": plain, "upscaler_1": "Lanczos", **fields})
    return [("eightfold", ask(upscaling_resize=8)), ("hundredfold", ask(upscaling_resize=100)),
            ("to a size", ask(resize_mode=1, upscaling_resize_w=16384, upscaling_resize_h=16384)),
            ("many", body("/sdapi/v1/extra-batch-images", {"upscaling_resize": 8, "imageList": [
                {"data": plain, "name": "a"}] * 500})),
            ("sixteen", body("/sdapi/v1/extra-batch-images", {
                "upscaling_resize": 8, "upscaler_1": "Lanczos", "imageList": [{"data": plain, "name": "a"}] * 16}))]


@family(PICTURES)
def drawings():
    tags = "".join(f"<lora:{letters(20, i)}:1>" for i in range(5000))
    return [
        ("steps", draw(steps=10**6)), ("size", draw(width=10**6, height=10**6)),
        ("many", draw(batch_size=10**6, n_iter=10**6)), ("sixteen", draw(n_iter=16)),
        ("sixteen of many steps", draw(n_iter=16, steps=150)), ("sixteen together", draw(batch_size=16, steps=20)),
        ("many steps", draw(steps=150, width=256, height=256)),
        ("second passes", draw(n_iter=16, steps=20, enable_hr=True, hr_scale=2, hr_upscaler="Lanczos")),
        ("prompt", draw(prompt="a " * 400_000)), ("LoRAs", draw(prompt=tags)),
        ("brackets", draw(prompt="(" * 200_000)), ("weights", draw(prompt="(a:1e999)" * 50_000)),
        ("breaks", draw(prompt="a BREAK " * 20_000)), ("steps of prompts", draw(prompt="[a:b:0.5]" * 20_000)),
        ("scripts", draw(alwayson_scripts={f"s{i}": {"args": []} for i in range(5000)})),
        ("override", draw(override_settings={f"s{i}": i for i in range(5000)})),
    ]


@family(PICTURES)
def forms():
    def form(parts, end=b"\r\n--b--\r\n", kind="multipart/form-data; boundary=b"):
        text = b"\r\n".join(b"--b\r\nContent-Disposition: form-data; name=\"" + name + b"\"\r\n\r\n" + data
                            for name, data in parts) + end
        return lambda attacker: attacker.post("/v1/images/edits", text, kind)
    picture = png()
    return [
        ("many parts", form([(b"a", b"b")] * 300_000)),
        ("many pictures", form([(b"image[]", picture)] * 3000 + [(b"prompt", b"a")])),
        ("many prompts", form([(b"prompt", b"a")] * 10_000 + [(b"image", picture)])),
        ("one name", form([(b"x" * 5_000_000, b"a")])),
        ("dashes", form([(b"image", b"--" * 2_000_000)])),
        ("ends of lines", form([(b"image", b"\r\n--" * 1_000_000)])),
        ("no end", form([(b"image", picture)], end=b"")),
        ("boundary", form([(b"image", picture)], kind="multipart/form-data; boundary=" + "b" * 5000)),
    ]


@family(PICTURES)
def uploads():
    """Many large pictures and forms at once, each within the limits."""
    def crowd(path, count, make, *kind):
        requests = [(path, make(i), *kind) for i in range(count)]
        return lambda attacker: attacker.crowd(requests)
    def form(i, parts):
        head = b"--b\r\nContent-Disposition: form-data; name=\"image[]\"; filename=\"%d.png\"\r\n\r\n" % i
        # A small drawing: it is what is sent that is large.
        fields = {"prompt": "a", "size": "64x64"}
        text = b"".join(b"--b\r\nContent-Disposition: form-data; name=\"%s\"\r\n\r\n%s\r\n" %
                        (name.encode(), value.encode()) for name, value in fields.items())
        return text + b"".join(head + part + b"\r\n" for part in parts) + b"--b--\r\n"
    multipart = "multipart/form-data; boundary=b"
    # Noise is large both compressed and decompressed, blanks only decompressed.
    noise = png(1000, 1000, pixels=b"".join(b"\0" + random.Random(i).randbytes(3000) for i in range(1000)))
    blank = png(4000, 4000, pixels=(b"\0" + b"\0" * 12000) * 4000)
    image = coded(noise)
    change = {"prompt": "a", "steps": 1, "width": 64, "height": 64, "init_images": [image], "mask": image}
    return [
        ("forms", crowd("/v1/images/edits", 48, lambda i: form(i, [noise]), multipart)),
        ("forms of several", crowd("/v1/images/edits", 24, lambda i: form(i, [blank] * 4), multipart)),
        ("forms of noise", crowd("/v1/images/edits", 48, lambda i: form(i, [noise[40:]]), multipart)),
        ("pictures to change", crowd("/sdapi/v1/img2img", 32, lambda i: change)),
        ("pictures to read", crowd("/sdapi/v1/png-info", 48, lambda i: {"image": image})),
        ("pictures to enlarge", crowd("/sdapi/v1/extra-single-image", 32, lambda i: {
            "image": image, "upscaling_resize": 2, "upscaler_1": "Lanczos"})),
    ]


# Of both.

@family(CHAT, PICTURES)
def large_crowds():
    """Bodies that are read beside the connections' thread, many at once."""
    fields = {"prompt": "a", "max_tokens": 1, "steps": 1, "width": 64, "height": 64}
    def crowd(count):
        body = {**fields, "x": [{"a": [1000, 1000]}] * count}
        return lambda attacker: attacker.crowd([(attacker.path, body)] * 64)
    return [("some parts", crowd(8_000)), ("many parts", crowd(40_000))]


@family(CHAT, PICTURES)
def bodies():
    def post(text):
        return lambda attacker: attacker.post(attacker.path, text)
    def field(value):
        return post(b'{"prompt":"a","max_tokens":1,"steps":1,"width":64,"height":64,"x":' + value + b"}")
    most = 60_000_000
    objects = b"[" + b",".join([b'{"a":1}'] * 120_000) + b"]"
    names = b"{" + b",".join(b'"k%d":%d' % (i, i) for i in range(60_000)) + b"}"
    sets = b"[" + b",".join([b"{" + b",".join(b'"k%d":1' % i for i in range(4000)) + b"}"] * 25) + b"]"
    return [
        ("brackets", field(b"[" + b"[]," * 20_000_000 + b"1]")),
        ("short brackets", field(b"[" + b"[]," * 330_000 + b"1]")),
        ("objects", field(objects)), ("names", field(names)), ("names again", field(sets)),
        ("same name", post(b"{" + b'"a":1,' * 150_000 + b'"a":1}')),
        ("depth", field(b"[" * 1_000_000)), ("depth of objects", field(b'{"a":' * 200_000)),
        ("digits", field(b"1" * 1_000_000)), ("small", field(b"1e-" + b"9" * 1_000_000)),
        ("large", field(b"1e999999")), ("fields", post(b"{" + b",".join(
            b'"f%d":null' % i for i in range(70_000)) + b"}")),
        ("escapes", field(b'"' + b"\\u0041" * 170_000 + b'"')), ("no UTF-8", field(b'"' + b"\xff" * 900_000 + b'"')),
        ("text", field(b'"' + b"a" * most + b'"')), ("blanks", post(b" " * 1_000_000)), ("nothing", post(b"")),
    ]


@family(BOTH)
def heads():
    def raw(text):
        return lambda attacker: attacker.raw(text)
    get = b"GET /health HTTP/1.1\r\nHost: localhost\r\n"
    post = b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    return [
        ("many fields", raw(get + b"".join(b"X-%d: a\r\n" % i for i in range(50_000)) + b"\r\n")),
        ("long field", raw(get + b"X: " + b"a" * 10_000_000)),
        ("long path", raw(b"GET /" + b"a" * 5_000_000)), ("no line", raw(b"\0" * 1_000_000)),
        ("connect", raw(b"CONNECT a:1 HTTP/1.1\r\nHost: localhost\r\n\r\n")),
        ("no slash", raw(b"GET health HTTP/1.1\r\nHost: localhost\r\n\r\n")),
        ("empty lines", raw(b"\r\n" * 500_000)), ("pipeline", raw((get + b"\r\n") * 20_000)),
        ("pipeline of metrics", raw((get.replace(b"/health", b"/metrics") + b"\r\n") * 5_000)),
        ("two lengths", raw(post + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}")),
        ("length and chunks", raw(post + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")),
        ("huge length", raw(post + b"Content-Length: 99999999999999999999\r\n\r\n")),
        ("told length", raw(post + b"Content-Length: 1073741824\r\n\r\n" + b"a" * 3_000_000)),
        ("expect", raw(post + b"Expect: 100-continue\r\nContent-Length: 1073741824\r\n\r\n")),
        ("chunks", raw(post + b"Transfer-Encoding: chunked\r\n\r\n" + b"1\r\na\r\n" * 500_000)),
        ("large chunks", raw(post + b"Transfer-Encoding: chunked\r\n\r\n"
                             + (b"100000\r\n" + b"a" * 0x100000 + b"\r\n") * 100)),
        ("chunk's size", raw(post + b"Transfer-Encoding: chunked\r\n\r\n" + b"F" * 100_000)),
        ("chunk's extension", raw(post + b"Transfer-Encoding: chunked\r\n\r\n1;" + b"a" * 5_000_000)),
    ]


@family(BOTH)
def connections():
    return [("slow heads", lambda attacker: attacker.slow_heads(100)),
            ("slow bodies", lambda attacker: attacker.slow_bodies(100)),
            ("slow readers", lambda attacker: attacker.slow_readers(100)),
            ("idle", lambda attacker: attacker.idle(150)),
            ("leaving", lambda attacker: attacker.leaving(300)),
            ("half closed", lambda attacker: attacker.half_closed(100))]
