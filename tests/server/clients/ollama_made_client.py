#!/usr/bin/env python3
"""Ollama's Python client makes models of one of `rbee serve`. Usage: ollama_made_client.py URL MODEL"""

import sys

import ollama
from ollama_errors import refused


def main():
    url, base = sys.argv[1:3]
    client = ollama.Client(host=url)
    steps = list(client.create("mario", from_=base, system="Say Arr.", parameters={"temperature": 0, "num_predict": 3},
                               stream=True))
    assert steps[-1].status == "success", steps
    assert client.create("brief", from_="mario", parameters={"num_predict": 1}).status == "success"
    assert client.copy("mario", "luigi").status == "success"
    assert {"mario", "brief", "luigi"} <= {model.model for model in client.list().models}
    hello = [{"role": "user", "content": "Hi"}]
    counts = {name: client.chat(name, hello).eval_count for name in ("mario", "brief", "luigi")}
    assert counts == {"mario": 3, "brief": 1, "luigi": 3}, counts
    assert client.generate("mario", "Hi").eval_count == 3
    shown = client.show("luigi")
    assert shown.parameters.split() == ["temperature", "0", "num_predict", "3"], shown.parameters
    refused(lambda: client.create("m", from_=base, quantize="q9"), 400)
    refused(lambda: client.create("m", from_="nobody"), 404)
    refused(lambda: client.copy("nobody", "m"), 404)
    for name in ("mario", "brief", "luigi"):
        assert client.delete(name).status == "success"
    assert [model.model for model in client.list().models] == [base]


main()
