"""Stands in for vLLM's tests/utils.py: RemoteOpenAIServer starts our worker.

Of the environment: RBEE_WORKER is our worker; RBEE_CHAT_MODEL, RBEE_EMBEDDING_MODEL and
RBEE_RANKING_MODEL are served in place of the models that the suite names, RBEE_TOKENIZER is the
folder of the chat model's tokenizer, and PORT is where the worker listens."""

import os
import subprocess
import tempfile
import time

import anthropic
import openai
import pytest
import requests

START_SECONDS = 60
MOST_TOKENS = "200"  # without a request's own limit: a random model does not end by itself
API_KEY = "EMPTY"
PATIENCE = {"max_retries": 0, "timeout": 120}

# What else tests import of that file.
ROCM_EXTRA_ARGS = []

# Flags whose value our worker takes under another name.
SAME = {
    "--max-model-len": "--context",
    "--max-num-seqs": "--max-running",
    "--max-num-batched-tokens": "--step-tokens",
    "--seed": "--seed",
}
PARSERS = {"hermes": "hermes", "llama3_json": "llama3", "mistral": "mistral"}
REASONING = {"qwen3": "think", "deepseek_r1": "think"}
# Flags that name what our worker does anyway, or how vLLM computes.
IGNORED = {
    "--enforce-eager", "--enable-auto-tool-choice", "--enable-prompt-tokens-details",
    "--enable-chunked-prefill", "--no-enable-prefix-caching", "--trust-remote-code",
    "--enable-tokenizer-info-endpoint", "--enable-server-load-tracking",
    "--enable-per-request-metrics",
}  # fmt: skip
IGNORED_WITH_VALUE = {
    "--dtype", "--gpu-memory-utilization", "--max-logprobs", "--limit-mm-per-prompt", "--runner",
    "--tensor-parallel-size", "--structured-outputs-config.backend",
}  # fmt: skip
RANKERS = ("reranker", "cross-encoder")
EMBEDDERS = ("e5-", "bge-", "embed", "MiniLM")


class NotApplicable(Exception):
    """Names what has no equal in our worker."""


def model_of(name, environment):
    """The model that stands for one of the suite's."""
    kind = "CHAT"
    if any(part in name for part in RANKERS):
        kind = "RANKING"
    elif any(part in name for part in EMBEDDERS):
        kind = "EMBEDDING"
    if any(part in name for part in ("VLM", "-VL", "vision", "gemma", "Audio", "gpt-oss")):
        raise NotApplicable(f"the model {name} is not here")
    return environment[f"RBEE_{kind}_MODEL"]


def template_flags(value):
    if os.path.exists(value):
        return ["--chat-template", value]
    with tempfile.NamedTemporaryFile("w", suffix=".jinja", delete=False) as file:
        file.write(value)
    return ["--chat-template", file.name]


def known(table, value, flag):
    if value not in table:
        raise NotApplicable(f"{flag} {value}")
    return table[value]


def worker_arguments(name, arguments, environment):
    """Our worker's flags for those of `vllm serve`. Throws NotApplicable."""
    out = ["--model", model_of(name, environment), "--generation-config", "off"]
    out += ["--n-predict", MOST_TOKENS]
    names, same = [], {}
    at = 0
    while at < len(arguments):
        flag = arguments[at].replace("_", "-")
        at += 1
        if flag in IGNORED:
            continue
        if flag == "--served-model-name":
            while at < len(arguments) and not arguments[at].startswith("--"):
                names.append(arguments[at])
                at += 1
            continue
        value = arguments[at] if at < len(arguments) else ""
        at += 1
        if flag in SAME:
            same[SAME[flag]] = value  # the last one counts
        elif flag == "--chat-template":
            out += template_flags(value)
        elif flag == "--tool-call-parser":
            out += ["--tool-parser", known(PARSERS, value, flag)]
        elif flag == "--reasoning-parser":
            out += ["--reasoning-parser", known(REASONING, value, flag)]
        elif flag not in IGNORED_WITH_VALUE:
            raise NotApplicable(flag)
    for flag, value in same.items():
        out += [flag, value]
    return [*out, "--alias", ",".join(names or [name])]


class RemoteOpenAIServer:
    """Our worker in place of `vllm serve`; a context manager."""

    DUMMY_API_KEY = API_KEY

    def __init__(self, model, vllm_serve_args, *, env_dict=None, **_):
        self.host, self.port = "127.0.0.1", int(os.environ["PORT"])
        try:
            arguments = worker_arguments(model, list(vllm_serve_args), os.environ)
        except NotApplicable as error:
            pytest.skip(f"not applicable: {error}")
        if self.answers():
            raise RuntimeError(f"another server answers on port {self.port}")
        worker = os.environ["RBEE_WORKER"]
        self.log = tempfile.NamedTemporaryFile("w+", suffix=".log")
        self.process = subprocess.Popen(
            [worker, *arguments, "--port", str(self.port)],
            env={**os.environ, **(env_dict or {})},
            stdout=self.log,
            stderr=self.log,
        )
        end = time.monotonic() + START_SECONDS
        while not self.answers():
            if self.process.poll() is not None or time.monotonic() > end:
                self.stop()
                self.log.seek(0)
                raise RuntimeError(f"the worker does not start: {self.log.read()[-2000:]}")
            time.sleep(0.05)

    def answers(self):
        try:
            return requests.get(self.url_for("health"), timeout=5).status_code == 200
        except requests.exceptions.ConnectionError:
            return False

    def stop(self):
        self.process.terminate()
        self.process.wait(timeout=10)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    @property
    def url_root(self):
        return f"http://{self.host}:{self.port}"

    def url_for(self, *parts):
        return "/".join([self.url_root, *(part.lstrip("/") for part in parts)])

    def get_client(self, **named):
        return openai.OpenAI(base_url=self.url_for("v1"), api_key=API_KEY, **(PATIENCE | named))

    def get_async_client(self, **named):
        return openai.AsyncOpenAI(base_url=self.url_for("v1"), api_key=API_KEY, **(PATIENCE | named))

    def get_client_anthropic(self, **named):
        return anthropic.Anthropic(base_url=self.url_root, api_key=API_KEY, **(PATIENCE | named))

    def get_async_client_anthropic(self, **named):
        return anthropic.AsyncAnthropic(base_url=self.url_root, api_key=API_KEY, **(PATIENCE | named))
