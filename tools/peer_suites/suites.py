"""The suites: where their files are, how a copy of them is made to run, and what runs."""

import dataclasses
import os
import shutil

import rules

HERE = os.path.dirname(os.path.abspath(__file__))


@dataclasses.dataclass
class Suite:
    place: str  # of the tests within the source
    to: str  # and within the copy
    tests: list
    flags: list
    rules: str = ""

    def missing(self, source):
        """What keeps the suite from running; empty: nothing."""
        path = os.path.join(source or HERE, self.place)
        return "" if os.path.isdir(path) else f"there is no {path}"

    def copy(self, source, folder):
        shutil.copytree(os.path.join(source or HERE, self.place), os.path.join(folder, self.to))
        if self.rules:
            rules.without_lines(self.start(folder), rules.read(os.path.join(HERE, self.rules)))

    def start(self, folder):
        """Where pytest starts."""
        return os.path.join(folder, self.to)

    def variables(self, folder):
        return {"PYTHONPATH": HERE}


class LlamaCpp(Suite):
    """Templates are read from the checkout, three folders above the tests."""

    def copy(self, source, folder):
        super().copy(source, folder)
        shutil.copytree(
            os.path.join(source, "models", "templates"), os.path.join(folder, "models", "templates")
        )

    def variables(self, folder):
        shim = os.path.join(HERE, "llama_server.py")
        return {"PYTHONPATH": HERE, "LLAMA_SERVER_BIN_PATH": shim}


class Vllm(Suite):
    """Tests import `tests.utils`, which becomes ours."""

    def copy(self, source, folder):
        super().copy(source, folder)
        tests = os.path.join(folder, "tests")
        for name in ("__init__.py", "entrypoints/__init__.py"):
            open(os.path.join(tests, name), "w").close()
        shutil.copy(os.path.join(HERE, "vllm_server.py"), os.path.join(tests, "utils.py"))

    def start(self, folder):
        return folder

    def variables(self, folder):
        return {"PYTHONPATH": os.pathsep.join([HERE, folder])}


OPENAI = "tests/entrypoints/openai"
SUITES = {
    "llama.cpp": LlamaCpp(
        place="tools/server/tests",
        to="tools/server/tests",
        tests=["unit"],
        flags=["-p", "pytest_llama_cpp"],
        rules="llama_cpp.toml",
    ),
    "vllm": Vllm(
        place="tests/entrypoints",
        to="tests/entrypoints",
        tests=[
            f"{OPENAI}/completion/test_completion.py",
            f"{OPENAI}/chat_completion/test_chat.py",
            f"{OPENAI}/chat_completion/test_chat_completion.py",
            f"{OPENAI}/chat_completion/test_chat_echo.py",
            f"{OPENAI}/chat_completion/test_chat_logit_bias_validation.py",
            f"{OPENAI}/chat_completion/test_completion_with_function_calling.py",
            f"{OPENAI}/chat_completion/test_enable_force_include_usage.py",
            f"{OPENAI}/chat_completion/test_include_reasoning.py",
            f"{OPENAI}/chat_completion/test_logprob_token_ids.py",
            f"{OPENAI}/chat_completion/test_root_path.py",
            f"{OPENAI}/models/test_models.py",
            f"{OPENAI}/responses/test_basic.py",
            f"{OPENAI}/responses/test_simple.py",
            f"{OPENAI}/test_chunked_prompt.py",
            f"{OPENAI}/test_return_token_ids.py",
            f"{OPENAI}/test_return_tokens_as_ids.py",
            "tests/entrypoints/anthropic/test_messages.py",
            "tests/entrypoints/serve/instrumentator/test_basic.py",
            "tests/entrypoints/serve/tokenize/test_tokenization.py",
            "tests/entrypoints/pooling/embed/test_online.py",
            "tests/entrypoints/pooling/embed/test_cohere_online.py",
            "tests/entrypoints/pooling/embed/test_cohere_openai_parity.py",
            "tests/entrypoints/pooling/scoring/test_cross_encoder_online.py",
        ],
        flags=["-p", "pytest_vllm", "--continue-on-collection-errors", "-o", "asyncio_mode=strict", "-o", "addopts="],
        rules="vllm.toml",
    ),
    "clients": Suite(place="clients", to="clients", tests=["."], flags=[]),
    # The same with the newest openai, which some of the libraries do not allow; theirs are skipped.
    "openai-3": Suite(place="clients", to="clients", tests=["."], flags=[]),
}
