"""pytest's plugin for vLLM's suite: `vllm` and `torch` cannot be imported here, and a test that
uses more of their code than `vllm_stand_ins` has is not applicable. Its tokenizers are those of the
model that is served."""

import importlib.abc
import importlib.machinery
import os
import sys
import types

import pytest
import rules
import vllm_stand_ins

OWN = ("vllm", "torch", "fastapi", "openai_harmony", "tests.models", "tests.reasoning")


class Meta(type):
    """A missing name can be imported, also in types; its use skips the test."""

    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return cls

    def __or__(cls, other):
        return cls

    def __ror__(cls, other):
        return cls

    def __getitem__(cls, key):
        return cls

    def __iter__(cls):
        return iter(())

    def __call__(cls, *_, **__):
        pytest.skip("not applicable: it tests vLLM's own code", allow_module_level=True)


class Missing(metaclass=Meta):
    pass


class MissingError(Exception):
    """So that a test may name it where it expects one."""


class Module(types.ModuleType):
    """A module that has every name."""

    __path__ = []

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return MissingError if name.endswith("Error") else Missing


class Platform:
    """No GPU of any kind."""

    def __getattr__(self, name):
        return lambda *_, **__: False


def get_tokenizer(*_, **__):
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(os.environ["RBEE_TOKENIZER"])


def vocab_size(_):
    return len(get_tokenizer())


class ModelConfig:
    """As far as tests ask the size of the vocabulary."""

    def __init__(self, **_):
        self.get_vocab_size = lambda: vocab_size(self)


KNOWN = vllm_stand_ins.KNOWN | {
    "vllm.platforms": {"current_platform": Platform()},
    "vllm.tokenizers": {"get_tokenizer": get_tokenizer},
    "vllm.config": {"ModelConfig": ModelConfig},
}


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path=None, target=None):
        if not any(name == own or name.startswith(own + ".") for own in OWN):
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        return Module(spec.name)

    def exec_module(self, module):
        for name, value in KNOWN.get(module.__name__, {}).items():
            setattr(module, name, value)


sys.meta_path.insert(0, Finder())


def pytest_collection_modifyitems(items):
    rules.mark(items, rules.read(os.path.join(os.path.dirname(__file__), "vllm.toml")))


@pytest.fixture(scope="session")
def hf_runner():
    pytest.skip("not applicable: it compares with PyTorch")
