"""The table of allowed includes. lint.py checks every #include against it, and that CONTRIBUTING.md and
the folders' READMEs print it; with --write they are written anew."""

import os
import re

# Folder -> folders it may include besides its own. Longest prefix wins. None: anything.
MAY_INCLUDE = {
    "rbee/core": [],
    "backends/shared": [],
    "backends/api": ["rbee/core", "backends/shared"],
    "backends/cpu": ["rbee/core", "backends/api", "backends/shared"],
    "backends/gpu": ["rbee/core", "backends/api", "backends/shared"],
    "backends/cuda": ["rbee/core", "backends/api", "backends/shared", "backends/gpu"],
    "backends/rocm": ["rbee/core", "backends/api", "backends/shared", "backends/gpu"],
    "backends/metal": ["rbee/core", "backends/api", "backends/shared", "backends/gpu"],
    "backends/linked": ["backends"],
    "rbee/tensor": ["rbee/core", "backends/api"],
    "rbee/group": ["rbee/core", "rbee/tensor", "backends/api"],
    "rbee/ops": ["rbee/core", "rbee/tensor", "backends/api"],
    "rbee/quant": ["rbee/core", "backends/api", "backends/shared"],
    "rbee/io": ["rbee/core"],
    "rbee/hub": ["rbee/core"],
    "rbee/text": ["rbee/core"],
    "rbee/grammar": ["rbee/core"],
    "rbee/nn": ["rbee/core", "rbee/tensor", "rbee/group", "rbee/ops", "rbee/quant", "rbee/io", "backends/api"],
    "rbee/models": ["rbee/core", "rbee/tensor", "rbee/group", "rbee/ops", "rbee/quant", "rbee/io", "rbee/nn",
                    "backends/api"],
    "rbee/diffusion": ["rbee/core", "rbee/tensor", "rbee/ops", "rbee/io", "backends/api"],
    "rbee/engine/api": ["rbee/core", "rbee/io", "rbee/diffusion"],
    "rbee/engine/common": ["rbee/core", "rbee/tensor", "rbee/io", "rbee/text", "backends/api"],
    "rbee/engine/infotext": ["rbee/core", "rbee/io", "rbee/engine/api"],
    "rbee/engine/text": ["rbee/core", "rbee/tensor", "rbee/group", "rbee/ops", "rbee/quant", "rbee/io", "rbee/nn",
                         "rbee/models", "rbee/text", "rbee/grammar", "rbee/engine/api", "rbee/engine/common",
                         "backends/api"],
    "rbee/engine/embedding": ["rbee/core", "rbee/tensor", "rbee/ops", "rbee/io", "rbee/models", "rbee/text",
                              "rbee/engine/api", "rbee/engine/common", "rbee/engine/text", "backends/api"],
    "rbee/engine/image": ["rbee/core", "rbee/tensor", "rbee/ops", "rbee/io", "rbee/nn", "rbee/models", "rbee/text",
                          "rbee/diffusion", "rbee/engine/api", "rbee/engine/common", "backends/api"],
    "server/http": ["rbee/core"],
    "server/wire": ["rbee/core", "rbee/engine/api"],
    "server/worker": ["rbee/core", "server/http", "server/wire"],
    "server/llm": ["rbee/core", "rbee/engine/api", "rbee/io", "server/http", "server/wire", "server/worker"],
    "server/embedding": ["rbee/core", "rbee/engine/api", "server/http", "server/wire", "server/worker"],
    "server/image": ["rbee/core", "rbee/engine/api", "rbee/io", "server/http", "server/wire", "server/worker"],
    "server/apis": ["rbee/core", "rbee/engine/api", "rbee/engine/infotext", "rbee/io", "server/http", "server/wire",
                    "server/worker", "server/llm", "server/embedding", "server/image"],
    "server/front": ["rbee/core", "server/http", "server/worker", "server/apis"],
    "workers/common": ["rbee/core", "rbee/group", "rbee/hub", "rbee/io", "server/http", "server/worker"],
    "workers/device": ["rbee/core", "rbee/engine/common", "backends/api", "backends/cpu", "workers/common"],
    "workers": None,
    "cli": None,
    "tools": None,
    "tests": None,
    "bench": None,
}

# Headers of outside libraries stay in few places.
EXTERNAL_ONLY_IN = {
    "boost/": ["server/front", "server/http", "tests", "cli", "workers"],
    "curl/": ["rbee/hub"],
    "openssl/": ["rbee/engine/text/step", "rbee/group", "rbee/hub", "server", "tests", "workers"],
    "CLI/": ["workers", "cli", "tools", "tests", "bench"],
    "spdlog/": ["workers", "cli"],
    "pcre2": ["rbee/text"],
    "unicode/": ["rbee/grammar", "rbee/text", "tests"],
    "png.h": ["rbee/io/image"],
    "jpeglib.h": ["rbee/io/image"],
    "zlib.h": ["rbee/io/image", "tests"],
    "zstd.h": ["backends/gpu", "tests"],
}

INTERNAL = ("rbee/", "backends/", "server/", "workers/", "cli/")
BEGIN, END = "<!-- the include rules: lint.py --write -->\n", "<!-- end of the include rules -->\n"
SENTENCE = re.compile(r"^May include: [^.;]*[.;]", re.MULTILINE)


def rule_for(path):
    """(the rule's folder, the folders that it may include) for a file or folder."""
    own = max((f for f in MAY_INCLUDE if (path + "/").startswith(f + "/")), key=len, default=None)
    return own, MAY_INCLUDE.get(own)


def check_include(path, target):
    own, allowed = rule_for(path)
    internal = target.startswith(INTERNAL)
    if own and allowed is not None and internal:
        if not any(target.startswith(f + "/") for f in [own, *allowed]):
            return f"{own} may not include {target}"
    for prefix, places in EXTERNAL_ONLY_IN.items():
        if target.startswith(prefix) and not path.startswith(tuple(places)):
            return f"<{target}> belongs only in {', '.join(places)}"
    if own == "backends/shared" and not internal:
        return f"backends/shared includes no standard header ({target})"
    return None


def words_of(allowed):
    if allowed is None:
        return "everything"
    return ", ".join(f"`{folder}`" for folder in allowed) or "nothing"


def printed_table():
    rows = [f"| `{folder}` | {words_of(allowed)} |\n" for folder, allowed in MAY_INCLUDE.items()]
    return "".join(["| Folder | May include, besides itself |\n|---|---|\n", *rows])


def with_rules(path, text):
    """The document with the rules as they are: CONTRIBUTING.md's table, the sentence in a folder's README."""
    if path == "CONTRIBUTING.md" and BEGIN in text and END in text:
        before, _, rest = text.partition(BEGIN)
        return before + BEGIN + printed_table() + END + rest.partition(END)[2]
    own, allowed = rule_for(os.path.dirname(path))
    if own and path.endswith("/README.md"):
        return SENTENCE.sub(lambda found: f"May include: {words_of(allowed)}{found.group()[-1]}", text, count=1)
    return text


def stale(root, write=False):
    """(path, line, problem) of documents that print other rules, or none where a folder has a rule of its own."""
    for path in ["CONTRIBUTING.md", *(f"{folder}/README.md" for folder in with_readme(root))]:
        if not os.path.exists(os.path.join(root, path)):
            continue
        with open(os.path.join(root, path), encoding="utf-8") as file:
            text = file.read()
        wanted = with_rules(path, text)
        if wanted != text and write:
            with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                file.write(wanted)
        elif wanted != text:
            yield path, 1, "prints other include rules than tools/lint/includes.py; lint.py --write mends it"
        if os.path.dirname(path) in MAY_INCLUDE and not SENTENCE.search(text):
            yield path, 1, "has no sentence 'May include: ...'"


def with_readme(root):
    for folder in sorted({*MAY_INCLUDE}):
        for here, names, found in os.walk(os.path.join(root, folder)):
            names[:] = sorted(n for n in names if not n.startswith((".", "build", "__")))
            if "README.md" in found:
                yield os.path.relpath(here, root)
