#!/usr/bin/env python3
"""Stands in for llama-server: reads its command line and becomes our worker.

The suite of llama.cpp starts the program that LLAMA_SERVER_BIN_PATH names. Of the environment:
RBEE_WORKER is our worker; RBEE_CHAT_MODEL, RBEE_EMBEDDING_MODEL and RBEE_RANKING_MODEL are what is
served in place of the models that the suite would download; RBEE_REFUSAL is a file that says which
flag or model this worker has no equal of, in which case the status is 77."""

import os
import sys
import tempfile

REFUSED = 77

# Flags that our worker has under another name.
SAME = {
    "--port": "--port",
    "--threads": "--threads",
    "--batch-size": "--step-tokens",
    "--chat-template-file": "--chat-template",
    "--reasoning-budget": "--reasoning-budget",
    "--lora": "--lora",
    "--alias": "--alias",
    "--tags": "--tags",
    "--temp": "--temp",
    "--seed": "--seed",
    "--n-predict": "--n-predict",
}
# Flags for behaviour that our worker always has, or for llama-server's internals.
IGNORED = {
    "--cont-batching", "--embedding", "--reranking", "--metrics", "--slots", "--no-slots",
    "--kv-unified", "--swa-full", "--jinja", "--no-jinja", "--offline", "--verbose",
    "--backend_sampling", "--no-mmproj",
}  # fmt: skip
IGNORED_WITH_VALUE = {"--ubatch-size", "--n-gpu-layers", "-fa", "--cache-ram", "--reasoning-format"}
CACHE_TYPES = {"f32", "f16", "bf16", "q8_0"}
REASONING = {"on": None, "auto": None, "off": "0"}
# The suite's downloads, by the beginning of the repository's or the file's name.
MODELS = {
    "ggml-org/test-model-stories260K": "RBEE_CHAT_MODEL",
    "tinyllamas/": "RBEE_CHAT_MODEL",
    "bert-bge-small/": "RBEE_EMBEDDING_MODEL",
    "jina-reranker-v1-tiny-en/": "RBEE_RANKING_MODEL",
}
# llama-server knows these by name; a client of our worker gives the template itself.
TEMPLATES = {
    "chatml": "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}",
    "llama3": "{% for m in messages %}<|start_header_id|>{{ m.role }}<|end_header_id|>\n\n"
    "{{ m.content }}<|eot_id|>{% endfor %}{% if add_generation_prompt %}"
    "<|start_header_id|>assistant<|end_header_id|>\n\n{% endif %}",
    "command-r": "{% for m in messages %}<|START_OF_TURN_TOKEN|><|{% if m.role == 'assistant' %}"
    "CHATBOT{% else %}{{ m.role | upper }}{% endif %}_TOKEN|>{{ m.content }}<|END_OF_TURN_TOKEN|>"
    "{% endfor %}{% if add_generation_prompt %}<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>{% endif %}",
}


class NotApplicable(Exception):
    """Names flags without a counterpart in our worker."""


def model_of(repository, file, environment):
    """Our model in place of the suite's, by the suite's names."""
    for name in (file, repository):
        for begin, variable in MODELS.items():
            if name and name.startswith(begin):
                model = environment.get(variable)
                if model is None:
                    raise NotApplicable(f"no model is given in place of {name} ({variable})")
                return model
    raise NotApplicable(f"the model {file or repository} is not here")


def written(text, suffix):
    """A file with this text, which outlives the server."""
    with tempfile.NamedTemporaryFile("w", suffix=suffix, delete=False) as file:
        file.write(text)
    return file.name


def pairs(arguments):
    """The flags with their values; None where a flag has none."""
    out = []
    at = 0
    while at < len(arguments):
        flag = arguments[at]
        at += 1
        if flag in IGNORED:
            out.append((flag, None))
            continue
        if at == len(arguments):
            raise NotApplicable(flag)
        # An unknown flag may have no value, and is refused whatever follows.
        out.append((flag, arguments[at]))
        at += 1
    return out


def template_flags(value):
    return ["--chat-template", written(TEMPLATES.get(value, value), ".jinja")]


def reasoning_flags(value):
    return [] if REASONING[value] is None else ["--reasoning-budget", REASONING[value]]


def key_flags(value):
    lines = [f"key{i} {key}\n" for i, key in enumerate(value.split(","))]
    return ["--api-keys", written("".join(lines), ".keys")]


def cache_flags(value):
    if value not in CACHE_TYPES:
        raise NotApplicable(f"a cache of type {value}")
    return ["--cache-type", value]


def host_flags(value):
    if "," in value:
        raise NotApplicable("--host with several addresses")
    return ["--host", value]


def pooling_flags(value):
    if value not in ("mean", "cls", "last"):
        raise NotApplicable(f"--pooling {value}")
    return ["--pooling", value]


def origin_flags(value):
    if "localhost" in value.split(","):
        raise NotApplicable("--cors-origins localhost")
    return [part for origin in value.split(",") for part in ("--cors-origin", origin)]


MADE = {
    "--host": host_flags,
    "--chat-template": template_flags,
    "--reasoning": reasoning_flags,
    "--api-key": key_flags,
    "-ctk": cache_flags,
    "-ctv": lambda value: [],  # llama-server sets keys and values separately, ours together
    "--pooling": pooling_flags,
    "--cors-origins": origin_flags,
}


def worker_arguments(arguments, environment):
    """Our worker's flags for a command line of llama-server's. Throws NotApplicable."""
    out = []
    model = repository = file = None
    context, slots = 4096, 4
    for flag, value in pairs(arguments):
        if flag == "--model":
            model = value
        elif flag == "--hf-repo":
            repository = value
        elif flag == "--hf-file":
            file = value
        elif flag == "--ctx-size":
            context = int(value)
        elif flag == "--parallel":
            slots = int(value)
        elif flag in SAME:
            out += [SAME[flag], value]
        elif flag in MADE:
            out += MADE[flag](value)
        elif flag not in IGNORED and flag not in IGNORED_WITH_VALUE:
            raise NotApplicable(flag)
    # llama-server's slots share the context unless a flag turns it off.
    each = context if "--kv-unified" in arguments else context // slots
    sizes = ["--context", str(each), "--max-running", str(slots), "--cache-tokens", str(context)]
    return ["--model", model or model_of(repository, file, environment), *sizes, *out]


def main():
    if sys.argv[1:] == ["--help"]:
        print("usage: llama_server.py [a flag of llama-server's ...]\n\n" + __doc__)
        return
    try:
        arguments = worker_arguments(sys.argv[1:], os.environ)
    except NotApplicable as error:
        with open(os.environ["RBEE_REFUSAL"], "w", encoding="utf-8") as file:
            file.write(str(error))
        sys.exit(REFUSED)
    worker = os.environ["RBEE_WORKER"]
    os.execv(worker, [worker, *arguments])


if __name__ == "__main__":
    main()
