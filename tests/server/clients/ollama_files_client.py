#!/usr/bin/env python3
"""Ollama's Python client manages the models of `rbee serve`. Usage: ollama_files_client.py URL MODEL"""

import sys

import ollama
from ollama_errors import refused


def main():
    url, name = sys.argv[1:3]
    client = ollama.Client(host=url)
    assert client.list().models == []
    refused(lambda: client.delete(name), 404)
    refused(lambda: client.show("nobody"), 404)
    refused(lambda: client.pull("nobody"), 500)
    steps = list(client.pull(name, stream=True))
    assert steps[0].status == "pulling manifest" and steps[-1].status == "success", steps
    parts = [step for step in steps if step.digest]
    assert parts[-1].completed == parts[-1].total > 0, parts
    assert client.pull(name).status == "success"
    assert name in [model.model for model in client.list().models]
    assert client.show(name).model_dump()["details"]["format"] == "gguf"
    assert len(client.embed(name, "a text").embeddings) == 1
    assert name in [model.model for model in client.list().models]
    assert len(client.ps().models) == 1
    refused(lambda: client.push(name), 501)
    assert client.delete(name).status == "success"
    assert client.list().models == [] and client.ps().models == []


main()
