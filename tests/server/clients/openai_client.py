#!/usr/bin/env python3
"""OpenAI's own Python client against a picture worker. Usage: openai_client.py URL

Ends with status 77 and a line that says why when the package `openai` is not installed."""

import base64
import io
import struct
import sys
import zlib

try:
    import openai
except ImportError:
    print("SKIP: the Python package openai is not installed")
    sys.exit(77)


def png(width, height, pixel):
    """A picture with opacity, row by row."""
    rows = b"".join(b"\0" + b"".join(bytes(pixel(x, y)) for x in range(width))
                    for y in range(height))

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(
            ">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) +
            chunk(b"IEND", b""))


def size_of(data):
    assert data.startswith(b"\x89PNG"), data[:8]
    return struct.unpack(">II", data[16:24])


def named(data, name):
    file = io.BytesIO(data)
    file.name = name
    return file


def check_generations(client, model):
    answer = client.images.generate(model=model, prompt="a cat", n=2, size="64x72",
                                    response_format="b64_json", extra_body={"steps": 2, "seed": 5})
    assert len(answer.data) == 2 and answer.created > 0
    pictures = [base64.b64decode(entry.b64_json) for entry in answer.data]
    assert [size_of(picture) for picture in pictures] == [(64, 72)] * 2
    assert pictures[0] != pictures[1]
    linked = client.images.generate(model=model, prompt="a cat", size="64x72",
                                    response_format="url", extra_body={"steps": 2, "seed": 5})
    for name, start in (("webp", b"RIFF"), ("jpeg", b"\xff\xd8")):
        other = client.images.generate(model=model, prompt="a cat", size="64x72",
                                       output_format=name, output_compression=60,
                                       extra_body=dict(seed=3, steps=4))
        assert other.output_format == name, other
        assert base64.b64decode(other.data[0].b64_json).startswith(start), name
    prefix = "data:image/png;base64,"
    assert linked.data[0].url.startswith(prefix)
    assert base64.b64decode(linked.data[0].url[len(prefix):]) == pictures[0]


def check_stream(events, operation):
    kinds, last = [], None
    for event in events:
        kinds.append(event.type)
        assert size_of(base64.b64decode(event.b64_json))
        if event.type.endswith("partial_image"):
            assert event.partial_image_index == len(kinds) - 1
        last = event
    assert kinds[0] == operation + ".partial_image", kinds
    assert kinds[-1] == operation + ".completed" and len(kinds) == 3, kinds
    return last


def check_edits(client, model):
    start = png(64, 72, lambda x, y: (x * 3, y * 3, 90, 255))
    hole = png(64, 72, lambda x, y: (0, 0, 0, 0 if x < 32 else 255))
    fields = dict(model=model, prompt="a cat", extra_body={"steps": 3, "seed": 1})
    answer = client.images.edit(image=named(start, "start.png"), mask=named(hole, "mask.png"),
                                response_format="b64_json", **fields)
    assert size_of(base64.b64decode(answer.data[0].b64_json)) == (64, 72)
    fields["extra_body"] = {"steps": 8, "seed": 1}
    events = client.images.edit(image=[named(start, "start.png")], stream=True, partial_images=2,
                                **fields)
    check_stream(events, "image_edit")


def check_errors(client, model):
    for wrong in (dict(size="63x64"), dict(n=99), dict(extra_body={"sampler": "magic"})):
        try:
            client.images.generate(model=model, prompt="a cat", **wrong)
        except openai.BadRequestError as error:
            assert error.message, wrong
        else:
            raise AssertionError(f"{wrong} was taken")


def main():
    client = openai.OpenAI(base_url=sys.argv[1] + "/v1", api_key="none", max_retries=0)
    model = client.models.list().data[0].id
    assert client.models.retrieve(model).id == model
    check_generations(client, model)
    events = client.images.generate(model=model, prompt="a cat", size="64x64", stream=True,
                                    partial_images=2, extra_body={"steps": 6})
    assert check_stream(events, "image_generation").size == "64x64"
    check_edits(client, model)
    check_errors(client, model)
    print("OpenAI's Python client", openai.__version__, "is content")


if __name__ == "__main__":
    main()
