#!/usr/bin/env python3
"""OpenAI's own Python client against a chat worker. Usage: openai_chat_client.py URL

The model is tiny and random: what it says means nothing, but the same request says the same.
Ends with status 77 and a line that says why when the package `openai` is not installed."""

import concurrent.futures
import sys
import time

try:
    import openai
except ImportError:
    print("SKIP: the Python package openai is not installed")
    sys.exit(77)

CHAT = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello there"}]
GREEDY = {"temperature": 0, "max_tokens": 12}


def check_chat(client, model):
    answer = client.chat.completions.create(model=model, messages=CHAT, **GREEDY)
    choice = answer.choices[0]
    assert answer.model == model and answer.object == "chat.completion", answer
    assert choice.message.role == "assistant" and choice.finish_reason == "length", answer
    assert answer.usage.completion_tokens == 12, answer
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + 12, answer
    return choice.message.content


def check_chat_stream(client, model, wanted):
    pieces = list(client.chat.completions.create(
        model=model, messages=CHAT, stream=True, stream_options={"include_usage": True}, **GREEDY))
    assert pieces[0].choices[0].delta.role == "assistant", pieces[0]
    text = "".join(piece.choices[0].delta.content or "" for piece in pieces[:-1])
    assert text == wanted, (text, wanted)
    assert pieces[-2].choices[0].finish_reason == "length", pieces[-2]
    assert pieces[-1].choices == [] and pieces[-1].usage.completion_tokens == 12, pieces[-1]


def check_stop(client, model, whole):
    stop = whole[2:5]
    answer = client.chat.completions.create(model=model, messages=CHAT, stop=[stop], **GREEDY)
    assert answer.choices[0].finish_reason == "stop", answer
    assert answer.choices[0].message.content == whole[:whole.find(stop)], (answer, whole)


def check_completions(client, model):
    answer = client.completions.create(model=model, prompt="Once upon a time", temperature=0)
    assert answer.object == "text_completion" and answer.usage.completion_tokens == 16, answer
    streamed = client.completions.create(model=model, prompt="Once upon a time", temperature=0,
                                         stream=True)
    assert "".join(piece.choices[0].text for piece in streamed) == answer.choices[0].text


def near(figures, others):
    return len(figures) == len(others) and all(abs(a - b) < 1e-3 for a, b in zip(figures, others))


def check_echo(client, model):
    """lm-evaluation-harness requests the likelihood of a text this way: by its tokens."""
    fields = dict(model=model, temperature=0)
    answer = client.completions.create(prompt="Once upon", max_tokens=6, logprobs=1, **fields)
    said = answer.choices[0]
    text = "Once upon" + said.text
    echoed = client.completions.create(prompt="Once upon", max_tokens=6, logprobs=1, echo=True,
                                       **fields).choices[0]
    assert echoed.text == text, (echoed.text, text)
    figures = echoed.logprobs
    assert figures.token_logprobs[0] is None and figures.text_offset[0] == 0, figures
    assert near(figures.token_logprobs[-6:], said.logprobs.token_logprobs), (figures, said)
    assert figures.text_offset[-6:] == [9 + at for at in said.logprobs.text_offset], figures
    prompts = [client.post("../tokenize", cast_to=object, body={"content": each})["tokens"]
               for each in ("Once upon", "Once upon a time")]
    both = client.completions.create(prompt=prompts, max_tokens=1, logprobs=1, echo=True, seed=1,
                                     **fields)
    assert [choice.index for choice in both.choices] == [0, 1], both
    for ids, choice in zip(prompts, both.choices):
        assert len(choice.logprobs.token_logprobs) == len(ids) + 1, choice
        alone = client.completions.create(prompt=ids, max_tokens=0, logprobs=1, echo=True, **fields)
        assert alone.usage.completion_tokens == 0, alone
        whole, part = choice.logprobs.token_logprobs, alone.choices[0].logprobs.token_logprobs
        assert part[0] is None and len(part) == len(ids), part
        assert near(whole[1:-1], part[1:]), (whole, part)
    chat = client.chat.completions.create(model=model, messages=CHAT,
                                          extra_body={"prompt_logprobs": 1}, **GREEDY)
    known = chat.model_extra["prompt_logprobs"]
    assert len(known) == chat.usage.prompt_tokens and known[0] is None, known
    assert all(min(entry["rank"] for entry in each.values()) == 1 for each in known[1:]), known


def check_background(client, fields, wanted):
    """Responses that are made without a client, and their events."""
    begun = client.responses.create(**fields, background=True)
    assert begun.background and begun.status in ("queued", "in_progress", "completed"), begun
    for _ in range(6000):
        now = client.responses.retrieve(begun.id)
        if now.status not in ("queued", "in_progress"):
            break
        time.sleep(0.01)
    assert (now.status, now.output_text) == ("incomplete", wanted), now
    assert client.responses.cancel(begun.id).status == "incomplete"
    events = list(client.responses.create(**fields, background=True, stream=True))
    last = events[-1].response
    rest = list(client.responses.retrieve(last.id, stream=True, starting_after=events[2].sequence_number))
    assert [e.sequence_number for e in rest] == [e.sequence_number for e in events[3:]]
    assert rest[-1].response.output_text == wanted
    client.responses.delete(last.id)


def check_responses(client, model, wanted):
    fields = dict(model=model, instructions="Be brief.", input="Hello there", temperature=0,
                  max_output_tokens=12)
    answer = client.responses.create(**fields)
    assert answer.output_text == wanted, (answer.output_text, wanted)
    assert answer.status == "incomplete" and answer.usage.output_tokens == 12, answer
    with client.responses.stream(**fields) as stream:
        events = list(stream)
    text = "".join(event.delta for event in events if event.type == "response.output_text.delta")
    assert text == wanted == events[-1].response.output_text, events[-1]
    assert events[-1].type == "response.incomplete", events[-1]
    check_memory(client, fields)
    check_background(client, fields, wanted)
    check_conversation(client, fields)


def check_memory(client, fields):
    """A chat of stored responses, beside the same chat sent whole."""
    first = client.responses.create(**fields)
    assert first.store, first
    more = dict(fields, input="And then?")
    second = client.responses.create(**more, previous_response_id=first.id)
    assert second.previous_response_id == first.id, second
    chat = [{"role": "user", "content": fields["input"]}, *first.output,
            {"role": "user", "content": more["input"]}]
    whole = client.responses.create(**dict(more, input=chat))
    assert second.output_text == whole.output_text, (second.output_text, whole.output_text)
    assert second.usage.input_tokens == whole.usage.input_tokens, (second.usage, whole.usage)
    counted = client.responses.input_tokens.count(
        model=fields["model"], instructions=fields["instructions"], input=more["input"],
        previous_response_id=first.id)
    assert counted.input_tokens == whole.usage.input_tokens, counted
    assert client.responses.retrieve(second.id).output_text == second.output_text
    pages = list(client.responses.input_items.list(second.id, limit=2, order="asc"))
    assert [item.role for item in pages] == ["user", "assistant", "user"], pages
    assert pages[1].id == first.output[0].id, pages
    with client.responses.stream(**more, previous_response_id=first.id) as stream:
        last = list(stream)[-1].response
    assert last.output_text == second.output_text, last
    named = [{"role": "user", "content": fields["input"]},
             {"type": "item_reference", "id": first.output[0].id}, chat[-1]]
    third = client.responses.create(**dict(more, input=named))
    assert third.output_text == whole.output_text, (third.output_text, whole.output_text)
    client.responses.delete(first.id)
    for ask in (lambda: client.responses.retrieve(first.id),
                lambda: client.responses.input_items.list(first.id)):
        try:
            ask()
        except openai.NotFoundError as error:
            assert error.type == "invalid_request_error", error.body
        else:
            raise AssertionError("a response that is deleted was found")
    try:
        client.responses.create(**more, previous_response_id=first.id)
    except openai.BadRequestError as error:
        assert error.code == "previous_response_not_found", error.body
        assert error.param == "previous_response_id", error.body
    else:
        raise AssertionError("a response that is deleted was taken")
    client.responses.create(**more, previous_response_id=second.id)


def check_conversation(client, fields):
    """A chat that the worker holds under its own name, beside the same chat sent whole."""
    talk = client.conversations.create(metadata={"of": "test"}, items=[
        {"type": "message", "role": "user", "content": "Hello there"},
        {"type": "message", "role": "assistant", "content": "Hi."}])
    assert client.conversations.retrieve(talk.id).metadata == {"of": "test"}, talk
    assert client.conversations.update(talk.id, metadata={"of": "us"}).metadata == {"of": "us"}
    more = dict(fields, input="And then?")
    answer = client.responses.create(**more, conversation=talk.id)
    assert answer.conversation.id == talk.id, answer
    chat = [{"role": "user", "content": "Hello there"}, {"role": "assistant", "content": "Hi."},
            {"role": "user", "content": more["input"]}]
    whole = client.responses.create(**dict(more, input=chat))
    assert answer.output_text == whole.output_text, (answer.output_text, whole.output_text)
    assert answer.usage.input_tokens == whole.usage.input_tokens, (answer.usage, whole.usage)
    items = list(client.conversations.items.list(talk.id, limit=2, order="asc"))
    assert [item.role for item in items] == ["user", "assistant"] * 2, items
    assert items[3].id == answer.output[0].id, items
    added = client.conversations.items.create(talk.id, items=[
        {"type": "message", "role": "user", "content": "Stop."}],
        include=["message.output_text.logprobs"]).data[0]
    assert client.conversations.items.retrieve(added.id, conversation_id=talk.id) == added
    assert client.conversations.items.delete(added.id, conversation_id=talk.id).id == talk.id
    with client.responses.stream(**more, conversation={"id": talk.id}) as stream:
        last = list(stream)[-1].response
    items = list(client.conversations.items.list(talk.id))
    assert [item.role for item in items] == ["assistant", "user"] * 3, items
    assert items[0].content[0].text == last.output_text, items[0]
    deleted = client.conversations.delete(talk.id)
    assert deleted.deleted and deleted.object == "conversation.deleted", deleted
    for ask in (lambda: client.conversations.retrieve(talk.id),
                lambda: client.responses.create(**more, conversation=talk.id)):
        try:
            ask()
        except openai.NotFoundError as error:
            assert talk.id in error.body["message"], error.body
        else:
            raise AssertionError("a conversation that is deleted was found")


def check_seed(client, model):
    def text(seed):
        answer = client.chat.completions.create(model=model, messages=CHAT, max_tokens=20,
                                                temperature=1.5, seed=seed)
        return answer.choices[0].message.content

    assert text(1) == text(1)
    assert text(1) != text(2)


def check_errors(client, model):
    try:
        client.chat.completions.create(model=model, messages=CHAT, temperature=101)
    except openai.BadRequestError as error:
        assert error.param == "temperature" and error.type == "invalid_request_error", error.body
    else:
        raise AssertionError("a temperature of 101 was taken")
    long = [{"role": "user", "content": "x" * 5000}]
    for stream in (False, True):
        try:
            client.chat.completions.create(model=model, messages=long, stream=stream)
        except openai.BadRequestError as error:
            assert error.code == "context_length_exceeded", error.body
        else:
            raise AssertionError("a prompt beyond the context was taken")


def check_model(client, model):
    assert client.models.retrieve(model) == client.models.list().data[0]
    try:
        client.models.retrieve("no/such")
    except openai.NotFoundError as error:
        assert error.code == "model_not_found" and error.param == "model", error.body
    else:
        raise AssertionError("a model that is not there was found")


def check_many(client, model, wanted):
    def ask(_):
        answer = client.chat.completions.create(model=model, messages=CHAT, **GREEDY)
        return answer.choices[0].message.content

    with concurrent.futures.ThreadPoolExecutor(24) as pool:
        texts = list(pool.map(ask, range(48)))
    assert texts == [wanted] * 48, set(texts)


def main():
    client = openai.OpenAI(base_url=sys.argv[1] + "/v1", api_key="none", max_retries=0)
    models = [entry.id for entry in client.models.list()]
    if sys.argv[2:] == ["memory"]:
        fields = dict(model=models[0], instructions="Be brief.", input="Hello there", temperature=0,
                      max_output_tokens=12)
        for _ in range(4):
            check_memory(client, fields)
            check_conversation(client, fields)
        print("ok")
        return
    assert models == ["hf:tiny/chat"], models
    check_model(client, models[0])
    text = check_chat(client, models[0])
    check_chat_stream(client, models[0], text)
    check_stop(client, models[0], text)
    check_completions(client, models[0])
    check_echo(client, models[0])
    check_responses(client, models[0], text)
    check_seed(client, models[0])
    check_errors(client, models[0])
    check_many(client, models[0], text)
    print("ok")


main()
