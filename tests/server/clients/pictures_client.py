#!/usr/bin/env python3
"""OpenAI's and Anthropic's own Python clients with pictures. Usage: pictures_client.py URL

The model is tiny and random: what it says means nothing, but the same request says the same.
Ends with status 77 and a line that says why when a package is not installed."""

import base64
import struct
import sys
import zlib

try:
    import anthropic
    import openai
except ImportError as missing:
    print(f"SKIP: {missing}")
    sys.exit(77)

ROWS = 16  # tokens of a picture
AROUND = 6  # two line breaks, both marks, two line breaks


def png(shade):
    rows = b"".join(b"\0" + bytes((x * shade) % 256 for x in range(24 * 3)) for _ in range(18))

    def chunk(kind, data):
        return (struct.pack(">I", len(data)) + kind + data
                + struct.pack(">I", zlib.crc32(kind + data)))
    header = struct.pack(">IIBBBBB", 24, 18, 8, 2, 0, 0, 0)
    data = (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows))
            + chunk(b"IEND", b""))
    return base64.b64encode(data).decode()


def parts(*shades):
    return [{"type": "image_url", "image_url": {"url": "data:image/png;base64," + png(shade)}}
            for shade in shades] + [{"type": "text", "text": "What is it?"}]


def chat(client, *shades, **more):
    return client.chat.completions.create(
        model="tiny", messages=[{"role": "user", "content": parts(*shades)}], temperature=0,
        max_tokens=8, logprobs=True, **more)


def check_openai(client):
    plain = chat(client)
    one, again, other = chat(client, 3), chat(client, 3), chat(client, 250)
    two = chat(client, 3, 250)
    tokens = plain.usage.prompt_tokens
    assert one.usage.prompt_tokens == tokens + ROWS + AROUND, (one.usage, tokens)
    assert two.usage.prompt_tokens == tokens + 2 * (ROWS + AROUND), (two.usage, tokens)

    def first(answer):
        return answer.choices[0].logprobs.content[0].logprob
    assert abs(first(one) - first(again)) < 1e-3, (first(one), first(again))
    assert abs(first(one) - first(other)) > 1e-3, "what is seen does not show"
    streamed = "".join(piece.choices[0].delta.content or "" for piece in
                       chat(client, 3, stream=True) if piece.choices)
    assert streamed == one.choices[0].message.content, (streamed, one)
    several = chat(client, 3, n=2)
    assert [c.message.content for c in several.choices] == [streamed] * 2, several
    answer = client.responses.create(model="tiny", temperature=0, max_output_tokens=8, input=[
        {"role": "user", "content": [
            {"type": "input_image", "image_url": "data:image/png;base64," + png(3),
             "detail": "auto"}, {"type": "input_text", "text": "What is it?"}]}])
    assert answer.output_text == streamed, (answer.output_text, streamed)
    assert answer.usage.input_tokens == one.usage.prompt_tokens, answer.usage
    return streamed, one.usage.prompt_tokens


def check_refusals(client):
    for url, words in (("https://example.com/cat.png", "fetches nothing"),
                       ("data:image/png;base64,AAAA", "image_url.url")):
        try:
            client.chat.completions.create(model="tiny", messages=[{"role": "user", "content": [
                {"type": "image_url", "image_url": {"url": url}}]}])
        except openai.BadRequestError as error:
            assert words in str(error), error
        else:
            raise AssertionError(f"{url} was taken")


def check_anthropic(client, text, tokens):
    source = {"type": "base64", "media_type": "image/png", "data": png(3)}
    messages = [{"role": "user", "content": [{"type": "image", "source": source},
                                             {"type": "text", "text": "What is it?"}]}]
    answer = client.messages.create(model="tiny", max_tokens=8, messages=messages,
                                    extra_body={"temperature": 0})
    assert answer.content[0].text == text, (answer, text)
    # Anthropic counts cached tokens separately from the rest of the input.
    usage = answer.usage
    assert usage.cache_read_input_tokens > 0, usage
    assert usage.input_tokens + usage.cache_read_input_tokens == tokens, (usage, tokens)
    counted = client.messages.count_tokens(model="tiny", messages=messages)
    assert counted.input_tokens == tokens, (counted, tokens)


def main():
    client = openai.OpenAI(base_url=sys.argv[1] + "/v1", api_key="none", max_retries=0)
    text, tokens = check_openai(client)
    check_refusals(client)
    check_anthropic(anthropic.Anthropic(base_url=sys.argv[1], api_key="none", max_retries=0), text,
                    tokens)
    print("ok")


main()
