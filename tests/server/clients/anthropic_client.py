#!/usr/bin/env python3
"""Anthropic's own Python client against a chat worker. Usage: anthropic_client.py URL

The model is tiny and random: what it says means nothing, but the same request says the same.
Ends with status 77 and a line that says why when the package `anthropic` is not installed."""

import json
import sys

try:
    import anthropic
except ImportError:
    print("SKIP: the Python package anthropic is not installed")
    sys.exit(77)

CHAT = {"model": "tiny", "system": "Be brief.", "max_tokens": 12,
        "extra_body": {"temperature": 0},
        "messages": [{"role": "user", "content": [{"type": "text", "text": "Hello there"}]}]}


def check_message(client):
    answer = client.messages.create(**CHAT)
    assert answer.type == "message" and answer.role == "assistant", answer
    assert answer.model == "hf:tiny/chat" and answer.stop_reason == "max_tokens", answer
    assert answer.usage.output_tokens == 12 and answer.usage.input_tokens > 0, answer
    assert answer._request_id, answer
    named = client.messages.create(**CHAT, extra_headers={"X-Request-ID": "mine-1"})
    assert named._request_id == "mine-1", named._request_id
    return answer.content[0].text


def check_stream(client, wanted):
    with client.messages.stream(**CHAT) as stream:
        text = "".join(stream.text_stream)
        final = stream.get_final_message()
        assert stream.response.headers["request-id"] == stream.request_id != "", stream.request_id
    assert text == wanted, (text, wanted)
    assert final.content[0].text == wanted and final.stop_reason == "max_tokens", final
    assert final.usage.output_tokens == 12, final


def check_stop(client, whole):
    stop = whole[2:5]
    answer = client.messages.create(**CHAT, stop_sequences=[stop])
    assert answer.stop_reason == "stop_sequence" and answer.stop_sequence == stop, answer
    assert answer.content[0].text == whole[:whole.find(stop)], (answer, whole)


def check_count(client):
    counted = client.messages.count_tokens(model="tiny", system=CHAT["system"],
                                           messages=CHAT["messages"])
    answer = client.messages.create(**CHAT)
    usage = answer.usage
    assert usage.cache_creation_input_tokens == 0, usage
    # An earlier request was the same.
    assert usage.cache_read_input_tokens > 0, usage
    whole = usage.input_tokens + usage.cache_read_input_tokens
    assert counted.input_tokens == whole, (counted, usage)


def check_schema(client):
    schema = {"type": "object", "properties": {"a": {"enum": ["x", "y"]}}, "required": ["a"],
              "additionalProperties": False}
    answer = client.messages.create(
        **{**CHAT, "max_tokens": 100}, output_config={"format": {"type": "json_schema", "schema": schema}})
    assert json.loads(answer.content[0].text)["a"] in ("x", "y"), answer


def check_models(client):
    page = client.models.list()
    assert [model.id for model in page] == ["hf:tiny/chat"], page
    model = client.models.retrieve("hf:tiny/chat")
    assert model.type == "model" and model.display_name == "hf:tiny/chat", model
    assert model.created_at.year >= 2024, model
    try:
        client.models.retrieve("other")
    except anthropic.NotFoundError as error:
        assert error.body["error"]["type"] == "not_found_error", error.body
    else:
        raise AssertionError("a model that is not there was found")


def check_errors(client):
    try:
        client.messages.create(**{**CHAT, "extra_body": {"temperature": 3}})
    except anthropic.BadRequestError as error:
        assert "temperature" in error.body["error"]["message"], error.body
        assert error.body["error"]["type"] == "invalid_request_error", error.body
        assert error.request_id == error.response.headers["x-request-id"], error.request_id
    else:
        raise AssertionError("a temperature of 3 was taken")
    stranger = anthropic.Anthropic(base_url=sys.argv[1], api_key="wrong", max_retries=0)
    try:
        stranger.messages.create(**CHAT)
    except anthropic.AuthenticationError as error:
        assert error.request_id, error
    else:
        raise AssertionError("a wrong key was taken")


def main():
    client = anthropic.Anthropic(base_url=sys.argv[1], api_key="secret", max_retries=0)
    text = check_message(client)
    check_stream(client, text)
    check_stop(client, text)
    check_count(client)
    check_schema(client)
    check_models(client)
    check_errors(client)
    print("Anthropic's Python client", anthropic.__version__, "is content")


main()
