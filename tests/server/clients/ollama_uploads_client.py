#!/usr/bin/env python3
"""Ollama's Python client uploads files to `rbee serve` and makes models of them. Usage: ollama_uploads_client.py URL FILES, with
the paths of a GGUF file and of a folder with an adapter for it, and a comma between"""

import os
import sys

import ollama
from ollama_errors import refused


def main():
    url, paths = sys.argv[1:3]
    model, folder = paths.split(",")
    client = ollama.Client(host=url)
    before = {each.model for each in client.list().models}
    files = {"model.gguf": client.create_blob(model)}
    assert client.create_blob(model) == files["model.gguf"]  # it is there
    adapters = {name: client.create_blob(os.path.join(folder, name)) for name in os.listdir(folder)}
    assert client.create("own", files=files).status == "success"
    steps = list(client.create("small", files=files, quantize="q8_0", stream=True))
    assert steps[-1].status == "success", steps
    assert any(step.total and step.completed == step.total for step in steps), steps
    assert client.create("tuned", from_="own", adapters=adapters).status == "success"
    hello = [{"role": "user", "content": "Hello"}]
    options = {"temperature": 0, "num_predict": 8}
    said = {name: client.chat(name, hello, options=options).message.content for name in ("own", "small", "tuned")}
    assert said["own"] != said["tuned"], said
    assert client.show("small").details.format == "gguf"
    refused(lambda: client.create("m", files={"model.gguf": "sha256:" + "0" * 64}), 400)
    refused(lambda: client.create("m", from_="own", quantize="q9"), 400)
    for name in ("own", "small", "tuned"):
        assert client.delete(name).status == "success"
    assert {each.model for each in client.list().models} == before


main()
