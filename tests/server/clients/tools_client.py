#!/usr/bin/env python3
"""Tools and reasoning with OpenAI's and Anthropic's own Python clients. Usage: tools_client.py URL
echo|forced|thinking

echo: the worker repeats the system prompt, in the form of Hermes with <think>. forced: a tiny random
model, whose calls are forced. thinking: one whose template opens its reasoning. Ends with status 77 when neither package is installed."""

import json
import sys

try:
    import openai
except ImportError:
    openai = None
try:
    import anthropic
except ImportError:
    anthropic = None
if openai is None and anthropic is None:
    print("SKIP: neither of the Python packages openai and anthropic is installed")
    sys.exit(77)

URL, KIND = sys.argv[1], sys.argv[2]
SCHEMA = {"type": "object", "required": ["city"],
          "properties": {"city": {"type": "string", "enum": ["Rome", "Oslo"]}}}
TEXT = ("<think>\nWhich city?\n</think>\n\nI look.\n<tool_call>\n"
        '{"name": "get_weather", "arguments": {"city": "Rome"}}\n</tool_call>')
CHAT_TOOL = {"type": "function", "function": {
    "name": "get_weather", "description": "Weather of a city", "parameters": SCHEMA}}
HI = {"role": "user", "content": "Hi"}
THINKS_FOR_EVER = {"159": -100}  # the tiny model's mark that ends the reasoning


def check_call(name, arguments):
    assert name == "get_weather", name
    assert json.loads(arguments)["city"] in ("Rome", "Oslo"), arguments


# ---- OpenAI's chats

def chat_echo(client):
    ask = {"model": "tiny", "tools": [CHAT_TOOL],
           "messages": [{"role": "system", "content": TEXT}, HI]}
    choice = client.chat.completions.create(**ask).choices[0]
    assert choice.finish_reason == "tool_calls", choice
    assert choice.message.content == "I look.", choice
    assert choice.message.reasoning == "Which city?", choice
    assert choice.message.reasoning_content == "Which city?", choice
    call = choice.message.tool_calls[0]
    check_call(call.function.name, call.function.arguments)
    with client.chat.completions.stream(**ask) as stream:
        for _ in stream:
            pass
        final = stream.get_final_completion().choices[0]
    assert final.message.content == "I look.", final
    check_call(final.message.tool_calls[0].function.name,
               final.message.tool_calls[0].function.arguments)
    # The client sends the call and its result back unchanged.
    answer = client.chat.completions.create(model="tiny", tools=[CHAT_TOOL], messages=[
        {"role": "system", "content": "Fine."}, HI, choice.message.to_dict(),
        {"role": "tool", "tool_call_id": call.id, "content": "Sun"}])
    assert answer.choices[0].message.content == "Fine.", answer
    assert answer.choices[0].finish_reason == "stop", answer


def chat_forced(client):
    for choice in ("required", {"type": "function", "function": {"name": "get_weather"}}):
        answer = client.chat.completions.create(
            model="tiny", messages=[HI], tools=[CHAT_TOOL], tool_choice=choice,
            parallel_tool_calls=False, max_tokens=150).choices[0]
        assert answer.finish_reason == "tool_calls", answer
        assert len(answer.message.tool_calls) == 1, answer
        check_call(answer.message.tool_calls[0].function.name,
                   answer.message.tool_calls[0].function.arguments)


def what_cannot_be_done(client):
    try:
        client.chat.completions.create(
            model="tiny", messages=[HI], response_format={"type": "json_schema", "json_schema": {
                "name": "n", "schema": {"unevaluatedProperties": False}}})
    except openai.UnprocessableEntityError as error:
        assert "unevaluatedProperties" in error.body["message"], error.body
    else:
        raise AssertionError("a schema with unevaluatedProperties was taken")


def chat_budget(client):
    """The model never ends its reasoning by itself; its text is random."""
    ask = {"model": "tiny", "messages": [HI], "max_tokens": 40, "temperature": 1,
           "logit_bias": THINKS_FOR_EVER}
    for budget in (0, 9):
        answer = client.chat.completions.create(
            **ask, n=2, extra_body={"thinking_token_budget": budget})
        details = answer.usage.completion_tokens_details
        assert details.reasoning_tokens == 2 * budget, answer.usage
        for choice in answer.choices:
            assert choice.message.content, choice
        *_, last = client.chat.completions.create(
            **ask, stream=True, stream_options={"include_usage": True},
            extra_body={"reasoning_budget_tokens": budget})
        assert last.usage.completion_tokens_details.reasoning_tokens == budget, last
    off = client.chat.completions.create(**ask, reasoning_effort="none")
    assert off.usage.completion_tokens_details.reasoning_tokens == 0, off
    try:
        client.chat.completions.create(**ask, extra_body={"thinking_token_budget": -2})
    except openai.BadRequestError as error:
        assert error.body["param"] == "thinking_token_budget", error.body
    else:
        raise AssertionError("a budget of -2 was taken")
    answer = client.responses.create(
        model="tiny", input="Hi", max_output_tokens=40,
        extra_body={"thinking_token_budget": 7, "logit_bias": THINKS_FOR_EVER})
    assert answer.usage.output_tokens_details.reasoning_tokens == 7, answer.usage
    assert answer.output_text, answer


# ---- OpenAI's responses

RESPONSE_TOOL = {"type": "function", "name": "get_weather", "parameters": SCHEMA, "strict": False}


def check_output(output):
    assert [item.type for item in output] == ["reasoning", "message", "function_call"], output
    assert output[0].content[0].text == "Which city?", output
    assert output[1].content[0].text == "I look.", output
    check_call(output[2].name, output[2].arguments)


def responses_echo(client):
    ask = {"model": "tiny", "instructions": TEXT, "input": "Hi", "tools": [RESPONSE_TOOL]}
    answer = client.responses.create(**ask)
    check_output(answer.output)
    types = []
    with client.responses.stream(**ask) as stream:
        for event in stream:
            types.append(event.type)
        check_output(stream.get_final_response().output)
    for wanted in ("response.reasoning_text.delta", "response.output_text.delta",
                   "response.function_call_arguments.delta",
                   "response.function_call_arguments.done"):
        assert wanted in types, (wanted, types)
    items = [{"role": "user", "content": "Hi"}] + [item.to_dict() for item in answer.output]
    items.append({"type": "function_call_output", "call_id": answer.output[2].call_id,
                  "output": "Sun"})
    again = client.responses.create(model="tiny", instructions="Fine.", input=items,
                                    tools=[RESPONSE_TOOL])
    assert again.output_text == "Fine.", again


def responses_forced(client):
    answer = client.responses.create(
        model="tiny", input="Hi", tools=[RESPONSE_TOOL], tool_choice="required",
        parallel_tool_calls=False, max_output_tokens=150)
    check_call(answer.output[0].name, answer.output[0].arguments)
    form = {"format": {"type": "json_schema", "name": "city", "schema": SCHEMA, "strict": True}}
    answer = client.responses.create(model="tiny", input="Hi", text=form, max_output_tokens=150)
    assert json.loads(answer.output_text)["city"] in ("Rome", "Oslo"), answer


# ---- Anthropic's messages

MESSAGE_TOOL = {"name": "get_weather", "description": "Weather", "input_schema": SCHEMA}


def check_blocks(message):
    assert message.stop_reason == "tool_use", message
    assert [block.type for block in message.content] == ["thinking", "text", "tool_use"], message
    assert message.content[0].thinking == "Which city?", message
    assert message.content[1].text == "I look.", message
    assert message.content[2].name == "get_weather", message
    assert message.content[2].input == {"city": "Rome"}, message


def messages_echo(client):
    ask = {"model": "tiny", "system": TEXT, "messages": [HI], "max_tokens": 500,
           "tools": [MESSAGE_TOOL]}
    answer = client.messages.create(**ask)
    check_blocks(answer)
    with client.messages.stream(**ask) as stream:
        for _ in stream:
            pass
        check_blocks(stream.get_final_message())
    result = {"type": "tool_result", "tool_use_id": answer.content[2].id, "content": "Sun"}
    again = client.messages.create(
        model="tiny", system="Fine.", max_tokens=50, tools=[MESSAGE_TOOL],
        messages=[HI, {"role": "assistant", "content": answer.content},
                  {"role": "user", "content": [result]}])
    assert again.content[0].text == "Fine." and again.stop_reason == "end_turn", again


def messages_forced(client):
    for choice in ({"type": "any", "disable_parallel_tool_use": True},
                   {"type": "tool", "name": "get_weather", "disable_parallel_tool_use": True}):
        answer = client.messages.create(model="tiny", messages=[HI], max_tokens=150,
                                        tools=[MESSAGE_TOOL], tool_choice=choice)
        assert answer.stop_reason == "tool_use", answer
        assert answer.content[0].input["city"] in ("Rome", "Oslo"), answer


def messages_budget(client):
    ask = {"model": "tiny", "messages": [HI], "max_tokens": 60,
           "extra_body": {"temperature": 0}}
    answer = client.messages.create(**ask, thinking={"type": "enabled", "budget_tokens": 12})
    assert [block.type for block in answer.content] == ["thinking", "text"], answer
    off = client.messages.create(**ask, thinking={"type": "disabled"})
    assert [block.type for block in off.content] == ["text"], off


CHECKS = {"echo": (chat_echo, responses_echo),
          "forced": (chat_forced, what_cannot_be_done, responses_forced),
          "thinking": (chat_budget,)}
MESSAGE_CHECKS = {"echo": messages_echo, "forced": messages_forced, "thinking": messages_budget}


def main():
    if openai is not None:
        client = openai.OpenAI(base_url=URL + "/v1", api_key="none", max_retries=0)
        for check in CHECKS[KIND]:
            check(client)
        print("OpenAI's Python client", openai.__version__, "is content")
    if anthropic is not None:
        client = anthropic.Anthropic(base_url=URL, api_key="none", max_retries=0)
        MESSAGE_CHECKS[KIND](client)
        print("Anthropic's Python client", anthropic.__version__, "is content")


main()
