#!/usr/bin/env python3
"""OpenAI's own Python client chooses adapters of a chat worker. Usage: openai_lora_client.py URL
ADAPTER

The worker has ADAPTER as "loud" at the scale 1 and as "quiet" at 0.25. Ends with status 77 and a
line that says why when the package `openai` is not installed."""

import concurrent.futures
import json
import sys
import urllib.error
import urllib.request

try:
    import openai
except ImportError:
    print("SKIP: the Python package openai is not installed")
    sys.exit(77)

CHAT = [{"role": "user", "content": "Hello there"}]
MODEL = "hf:tiny/chat"


def post(url, body):
    """The status."""
    request = urllib.request.Request(url, json.dumps(body).encode(),
                                     {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code


def say(client, model, **more):
    answer = client.chat.completions.create(model=model, messages=CHAT, temperature=0,
                                            max_tokens=16, **more)
    return answer.model, answer.choices[0].message.content


def check_models(client):
    models = {model.id: model for model in client.models.list().data}
    assert list(models) == [MODEL, "loud", "quiet"], models
    assert models["loud"].parent == MODEL, models
    assert client.models.retrieve("loud") == models["loud"]


def check_names(client):
    """Each name gives its own answer, alone and with others; returns the answers."""
    alone = {model: say(client, model) for model in (MODEL, "loud", "quiet")}
    for model, (name, _) in alone.items():
        assert name == model, alone
    assert len({text for _, text in alone.values()}) == 3, alone
    with concurrent.futures.ThreadPoolExecutor(9) as pool:
        together = [(model, pool.submit(say, client, model)) for model in list(alone) * 3]
        for model, answer in together:
            assert answer.result() == alone[model], (model, answer.result(), alone)
    return {model: text for model, (_, text) in alone.items()}


def check_lists(client, wanted):
    def listed(*entries):
        return say(client, MODEL, extra_body={"lora": list(entries)})[1]

    assert listed() == wanted[MODEL]
    assert listed({"id": 0}) == wanted["loud"]
    assert listed({"id": 0, "scale": 0.25}) == wanted["quiet"]
    assert listed({"name": "quiet"}) == wanted["quiet"]
    try:
        listed({"id": 2})
    except openai.NotFoundError:
        return
    raise AssertionError("an adapter that is not there was taken")


def check_scales(client, base, wanted):
    assert post(base + "/lora-adapters", [{"id": 0, "scale": 1}]) == 200
    assert say(client, MODEL)[1] == wanted["loud"]
    assert post(base + "/lora-adapters", []) == 200
    assert say(client, MODEL)[1] == wanted[MODEL]


def check_loading(client, base, adapter, wanted):
    order = {"lora_name": "late", "lora_path": adapter}
    assert post(base + "/v1/load_lora_adapter", order) == 200
    assert say(client, "late") == ("late", wanted["loud"])
    assert post(base + "/v1/load_lora_adapter", order) == 400
    assert post(base + "/v1/unload_lora_adapter", {"lora_name": "late"}) == 200
    assert say(client, "late") == (MODEL, wanted[MODEL])
    nowhere = {"lora_name": "bad", "lora_path": "/nowhere"}
    assert post(base + "/v1/load_lora_adapter", nowhere) == 404


def main():
    base, adapter = sys.argv[1], sys.argv[2]
    client = openai.OpenAI(base_url=base + "/v1", api_key="none", max_retries=0)
    check_models(client)
    wanted = check_names(client)
    check_lists(client, wanted)
    check_scales(client, base, wanted)
    check_loading(client, base, adapter, wanted)


if __name__ == "__main__":
    main()
