#!/usr/bin/env python3
"""Cohere's own Python client against a chat worker. Usage: cohere_client.py URL

The model is tiny and random: what it says means nothing, but the same request says the same.
Ends with status 77 and a line that says why when the package `cohere` is not installed."""

import json
import sys

try:
    import cohere
except ImportError:
    print("SKIP: the Python package cohere is not installed")
    sys.exit(77)

CHAT = {"model": "tiny", "max_tokens": 12, "temperature": 0,
        "messages": [{"role": "system", "content": "Be brief."},
                     {"role": "user", "content": "Hello there"}]}
LOOK = {"type": "function", "function": {
    "name": "look", "description": "Looks.", "parameters": {
        "type": "object", "properties": {"on": {"type": "boolean"}}, "required": ["on"],
        "additionalProperties": False}}}
CALL = CHAT | {"tools": [LOOK], "tool_choice": "REQUIRED", "max_tokens": 300}


def check_chat(client):
    answer = client.chat(**CHAT, logprobs=True)
    assert answer.message.role == "assistant" and answer.finish_reason == "MAX_TOKENS", answer
    assert answer.usage.tokens.output_tokens == 12 and answer.usage.tokens.input_tokens > 0, answer
    assert len(answer.logprobs) == 12 and answer.logprobs[0].logprobs[0] <= 0, answer.logprobs
    return answer.message.content[0].text


def check_stream(client, wanted):
    text, types, last = "", [], None
    for event in client.chat_stream(**CHAT):
        types.append(event.type)
        if event.type == "content-delta":
            text += event.delta.message.content.text
        last = event
    assert types[:2] == ["message-start", "content-start"], types
    assert types[-2:] == ["content-end", "message-end"], types
    assert text == wanted, (text, wanted)
    assert last.delta.finish_reason == "MAX_TOKENS", last
    assert last.delta.usage.tokens.output_tokens == 12, last


def check_call(client):
    answer = client.chat(**CALL)
    assert answer.finish_reason in ("TOOL_CALL", "MAX_TOKENS"), answer  # calls may never end
    call = answer.message.tool_calls[0]
    assert call.function.name == "look" and call.id, call
    assert isinstance(json.loads(call.function.arguments)["on"], bool), call
    name, arguments = "", ""
    for event in client.chat_stream(**CALL):
        if event.type.startswith("tool-call") and event.index > 0:
            break
        if event.type == "tool-call-start":
            name += event.delta.message.tool_calls.function.name
        if event.type == "tool-call-delta":
            arguments += event.delta.message.tool_calls.function.arguments
    assert name == "look" and json.loads(arguments) == json.loads(call.function.arguments), arguments
    messages = CHAT["messages"] + [
        {"role": "assistant", "tool_calls": [call], "tool_plan": "I look."},
        {"role": "tool", "tool_call_id": call.id,
         "content": [{"type": "document", "document": {"data": "{\"seen\": 1}"}}]}]
    after = client.chat(**(CHAT | {"messages": messages, "tools": [LOOK], "tool_choice": "NONE"}))
    assert after.message.content[0].text, after


def check_form(client):
    schema = {"type": "object", "properties": {"on": {"type": "boolean"}}, "required": ["on"],
              "additionalProperties": False}
    answer = client.chat(**(CHAT | {"max_tokens": 300}), response_format={
        "type": "json_object", "json_schema": schema})
    assert isinstance(json.loads(answer.message.content[0].text)["on"], bool), answer


def check_errors(client):
    try:
        client.chat(**(CHAT | {"temperature": -1}))
    except cohere.core.ApiError as error:
        assert error.status_code == 400 and "temperature" in error.body["message"], error
    else:
        raise AssertionError("a wrong temperature was taken")


def main():
    client = cohere.ClientV2(api_key="none", base_url=sys.argv[1])
    text = check_chat(client)
    check_stream(client, text)
    check_call(client)
    check_form(client)
    check_errors(client)


main()
