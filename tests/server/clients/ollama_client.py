#!/usr/bin/env python3
"""Ollama's Python client, and others' integrations of Ollama, against a worker or the front.
Usage: ollama_client.py URL (chat | embedding GOLDEN | front)

chat: a tiny random model: what it says means nothing, but the same request says the same.
Ends with status 77 and a line that says why when a package is not installed."""

import datetime
import json
import os
import sys

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # else it downloads a list at start

try:
    import litellm
    import ollama
    from langchain_ollama import ChatOllama, OllamaEmbeddings, OllamaLLM
    from llama_index.core.llms import ChatMessage
    from llama_index.llms.ollama import Ollama
except ImportError as missing:
    print(f"SKIP: a Python package is not installed: {missing}")
    sys.exit(77)

MODEL = "tiny"
OPTIONS = {"num_predict": 12, "temperature": 0}
SCHEMA = {"type": "object", "properties": {"on": {"type": "boolean"}}, "required": ["on"],
          "additionalProperties": False}
HELLO = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello there"}]


def look(on: bool) -> str:
    """Looks.

    Args:
      on: whether to look
    """
    return str(on)


def check_models(client):
    model = client.list().models[0]
    assert model.model == MODEL and model.size > 0 and len(model.digest) == 64, model
    assert model.modified_at < datetime.datetime.now(datetime.timezone.utc), model
    shown = client.show(f"{MODEL}:latest")
    assert "completion" in shown.capabilities, shown.capabilities
    assert shown.modelinfo[f"{shown.details.family}.context_length"] == 1024, shown.modelinfo
    running = client.ps().models[0]
    assert running.model == MODEL and running.context_length == 1024, running
    assert running.expires_at.year == 9999, running


def check_generate(client):
    answer = client.generate(MODEL, "Hello there", options=OPTIONS)
    assert answer.done and answer.done_reason == "length" and answer.eval_count == 12, answer
    assert answer.total_duration >= answer.eval_duration > 0, answer
    assert answer.prompt_eval_count > 0 and answer.prompt_eval_duration > 0, answer
    pieces = list(client.generate(MODEL, "Hello there", options=OPTIONS, stream=True))
    assert "".join(piece.response for piece in pieces) == answer.response, pieces
    assert [piece.done for piece in pieces] == [False] * (len(pieces) - 1) + [True], pieces
    assert client.generate(MODEL).done_reason == "load"
    raw = client.generate(MODEL, "Hello", raw=True, options=OPTIONS, logprobs=True, top_logprobs=2)
    assert len(raw.logprobs) == 12 and len(raw.logprobs[0].top_logprobs) == 2, raw.logprobs


def check_chat(client):
    answer = client.chat(MODEL, HELLO, options=OPTIONS)
    assert answer.message.role == "assistant" and answer.message.content, answer
    pieces = list(client.chat(MODEL, HELLO, options=OPTIONS, stream=True))
    assert "".join(piece.message.content for piece in pieces) == answer.message.content, pieces
    formed = client.chat(MODEL, HELLO, format=SCHEMA, options=OPTIONS | {"num_predict": 300})
    assert isinstance(json.loads(formed.message.content)["on"], bool), formed
    # A tool as a function, and an answer to its call.
    call = {"function": {"name": "look", "arguments": {"on": True}}}
    client.chat(MODEL, HELLO + [{"role": "assistant", "tool_calls": [call]},
                                {"role": "tool", "content": "True", "tool_name": "look"}],
                tools=[look], options=OPTIONS)
    return answer.message.content


def check_errors(client):
    for ask, status, words in (
            (lambda: client.chat("other", HELLO), 404, "model 'other' not found"),
            (lambda: client.chat(MODEL, HELLO, options={"temperature": -1}), 400, "temperature"),
            (lambda: client.pull("llama3.2"), 501, "not supported"),
            (lambda: next(client.create("mine", from_=MODEL, stream=True)), 501, "not supported"),
            (lambda: client.delete(MODEL), 501, "not supported")):
        try:
            ask()
        except ollama.ResponseError as error:
            assert error.status_code == status and words in error.error, error
        else:
            raise AssertionError(f"{words}: taken")


def check_langchain(url, wanted):
    model = ChatOllama(model=MODEL, base_url=url, temperature=0, num_predict=12,
                       validate_model_on_init=True)
    messages = [("system", "Be brief."), ("human", "Hello there")]
    answer = model.invoke(messages)
    assert answer.content == wanted, (answer, wanted)
    assert answer.usage_metadata["output_tokens"] == 12, answer.usage_metadata
    assert "".join(piece.content for piece in model.stream(messages)) == wanted
    assert OllamaLLM(model=MODEL, base_url=url, num_predict=5).invoke("Hello")
    long = ChatOllama(model=MODEL, base_url=url, temperature=0, num_predict=300)
    formed = long.with_structured_output(SCHEMA | {"title": "Looks"}, method="json_schema")
    assert isinstance(formed.invoke(messages)["on"], bool)


def check_litellm(url, wanted):
    answer = litellm.completion(model=f"ollama_chat/{MODEL}", api_base=url, messages=HELLO,
                                max_tokens=12, temperature=0)
    assert answer.choices[0].message.content == wanted, answer
    assert answer.usage.completion_tokens == 12, answer.usage
    pieces = litellm.completion(model=f"ollama_chat/{MODEL}", api_base=url, messages=HELLO,
                                max_tokens=12, temperature=0, stream=True)
    assert "".join(piece.choices[0].delta.content or "" for piece in pieces) == wanted


def check_llama_index(url, wanted):
    model = Ollama(model=MODEL, base_url=url, temperature=0, request_timeout=60,
                   context_window=1024, additional_kwargs={"num_predict": 12})
    messages = [ChatMessage(role=one["role"], content=one["content"]) for one in HELLO]
    assert model.chat(messages).message.content == wanted
    assert list(model.stream_chat(messages))[-1].message.content == wanted
    assert model.complete("Hello").text


def check_embeddings(client, url, golden):
    with open(golden, encoding="utf-8") as file:
        texts = json.load(file)["texts"]
    answer = client.embed(MODEL, texts)
    assert len(answer.embeddings) == len(texts) and answer.prompt_eval_count > 0, answer
    for vector in answer.embeddings:
        assert abs(sum(number * number for number in vector) - 1) < 1e-3, vector
    assert len(client.embed(MODEL, texts[0], dimensions=8).embeddings[0]) == 8
    assert len(client.embeddings(MODEL, texts[0]).embedding) == len(answer.embeddings[0])
    assert client.show(MODEL).capabilities == ["embedding"]
    vectors = OllamaEmbeddings(model=MODEL, base_url=url).embed_documents(texts)
    assert len(vectors) == len(texts)
    try:
        client.chat(MODEL, HELLO)
    except ollama.ResponseError as error:
        assert error.status_code == 400 and "does not support chat" in error.error, error
    else:
        raise AssertionError("a model for embeddings chats")


def check_front(client):
    names = sorted(model.model for model in client.list().models)
    assert names == ["other", "parrot"], names
    assert sorted(model.model for model in client.ps().models) == names
    for name in ("parrot", "Parrot:latest"):
        pieces = list(client.chat(name, [{"role": "user", "content": "Say this"}], stream=True))
        assert "".join(piece.message.content for piece in pieces) == "Say this", pieces
        assert pieces[-1].done and pieces[-1].model == name, pieces[-1]
    assert client.show("other").details.family == "llama"


def main():
    url, kind = sys.argv[1:3]
    client = ollama.Client(host=url)
    if kind == "embedding":
        return check_embeddings(client, url, sys.argv[3])
    if kind == "front":
        check_front(client)
        return check_errors_of_front(client)
    check_models(client)
    check_generate(client)
    wanted = check_chat(client)
    check_errors(client)
    check_langchain(url, wanted)
    check_litellm(url, wanted)
    check_llama_index(url, wanted)
    return None


def check_errors_of_front(client):
    for ask, status in ((lambda: client.chat("nobody", HELLO), 404),
                        (lambda: client.pull("llama3.2"), 501)):
        try:
            ask()
        except ollama.ResponseError as error:
            assert error.status_code == status, error
        else:
            raise AssertionError("taken")


main()
