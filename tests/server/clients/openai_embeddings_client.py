#!/usr/bin/env python3
"""OpenAI's own Python client against a worker for embeddings. Usage:
openai_embeddings_client.py URL GOLDEN

GOLDEN: the golden.json of the model that the worker serves: texts, their ids and vectors. Ends with
status 77 and a line that says why when the package `openai` is not installed."""

import json
import pathlib
import sys

try:
    import openai
except ImportError:
    print("SKIP: the Python package openai is not installed")
    sys.exit(77)


def check_vectors(answer, golden):
    assert [one.index for one in answer.data] == list(range(len(golden["texts"]))), answer
    for one, wanted in zip(answer.data, golden["vectors"]):
        assert len(one.embedding) == len(wanted), one
        assert all(abs(a - b) < 1e-4 for a, b in zip(one.embedding, wanted)), one


def check_errors(client):
    for make in (lambda: client.embeddings.create(model="m", input=[]),
                 lambda: client.embeddings.create(model="m", input="a", dimensions=33),
                 lambda: client.embeddings.create(model="m", input="word " * 500),
                 lambda: client.chat.completions.create(
                     model="m", messages=[{"role": "user", "content": "Hi"}])):
        try:
            make()
        except openai.BadRequestError as error:
            assert error.body["type"] == "invalid_request_error", error.body
        else:
            raise AssertionError("a wrong request was answered")


def main():
    golden = json.loads(pathlib.Path(sys.argv[2]).read_text())
    client = openai.OpenAI(base_url=sys.argv[1] + "/v1", api_key="none", max_retries=0)
    model = client.models.list().data[0].id
    # By default the client requests base64 and decodes it itself.
    answer = client.embeddings.create(model=model, input=golden["texts"])
    check_vectors(answer, golden)
    assert answer.usage.prompt_tokens == sum(len(ids) for ids in golden["ids"]), answer.usage
    check_vectors(client.embeddings.create(model=model, input=golden["texts"],
                                           encoding_format="float"), golden)
    check_vectors(client.embeddings.create(model=model, input=golden["ids"]), golden)
    short = client.embeddings.create(model=model, input="the lazy dog", dimensions=8)
    assert len(short.data[0].embedding) == 8, short
    check_errors(client)


if __name__ == "__main__":
    main()
