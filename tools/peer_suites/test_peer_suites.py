#!/usr/bin/env python3
"""Tests of the shims: which flags of our worker stand for those of a peer's server."""

import os
import sys
import tempfile
import types
import unittest
from unittest import mock

# Only the suites' environments have these.
for name in ("anthropic", "openai", "pytest", "requests"):
    sys.modules.setdefault(name, types.ModuleType(name))

import llama_server  # noqa: E402
import rules  # noqa: E402
import run  # noqa: E402
import suites  # noqa: E402
import vllm_server  # noqa: E402

MODELS = {
    "RBEE_CHAT_MODEL": "/chat.gguf",
    "RBEE_EMBEDDING_MODEL": "/bert",
    "RBEE_RANKING_MODEL": "/ranker",
}
HERE = os.path.dirname(os.path.abspath(__file__))


def flags(arguments):
    """As a dictionary, of flags that come once."""
    return dict(zip(arguments[::2], arguments[1::2]))


class LlamaServer(unittest.TestCase):
    def arguments(self, *more):
        line = ["--port", "8080", "--no-slots", "--hf-repo", "ggml-org/models", *more]
        return llama_server.worker_arguments(line, MODELS)

    def test_what_has_an_equal_is_told_to_the_worker(self):
        out = flags(
            self.arguments(
                "--hf-file", "bert-bge-small/ggml-model-f16.gguf", "--ctx-size", "512",
                "--parallel", "2", "--batch-size", "32", "--temp", "0.8", "--pooling", "last",
            )
        )  # fmt: skip
        self.assertEqual(out["--model"], "/bert")
        self.assertEqual(out["--context"], "256")  # two slots share it
        self.assertEqual(out["--cache-tokens"], "512")
        self.assertEqual(out["--max-running"], "2")
        self.assertEqual(out["--step-tokens"], "32")
        self.assertEqual(out["--temp"], "0.8")
        self.assertEqual(out["--pooling"], "last")

    def test_slots_may_share_the_whole_context(self):
        tiny = ["--hf-file", "tinyllamas/x.gguf", "--ctx-size", "512", "--parallel", "2"]
        self.assertEqual(flags(self.arguments(*tiny, "--kv-unified"))["--context"], "512")

    def test_keys_and_templates_become_files(self):
        out = flags(
            self.arguments(
                "--hf-file", "tinyllamas/x.gguf", "--api-key", "secret",
                "--chat-template", "chatml",
            )
        )  # fmt: skip
        for flag, text in (("--api-keys", "key0 secret\n"), ("--chat-template", "<|im_start|>")):
            with open(out[flag], encoding="utf-8") as file:
                self.assertIn(text, file.read())
            os.remove(out[flag])

    def test_others_are_refused_by_name(self):
        tiny = ["--hf-file", "tinyllamas/x.gguf"]
        for more, name in (
            ([*tiny, "--context-shift"], "--context-shift"),
            ([*tiny, "--pooling", "none"], "--pooling none"),
            ([*tiny, "--sleep-idle-seconds", "1"], "--sleep-idle-seconds"),
            (["--hf-file", "other.gguf"], "other.gguf"),
        ):
            with self.assertRaisesRegex(llama_server.NotApplicable, name):
                self.arguments(*more)


class Vllm(unittest.TestCase):
    def test_what_has_an_equal_is_told_to_the_worker(self):
        arguments = ["--enforce-eager", "--max-model-len", "2048", "--tool-call-parser", "hermes"]
        out = vllm_server.worker_arguments("Qwen/Qwen3-0.6B", arguments, MODELS)
        self.assertEqual(flags(out)["--model"], "/chat.gguf")
        self.assertEqual(flags(out)["--context"], "2048")
        self.assertEqual(flags(out)["--tool-parser"], "hermes")
        self.assertEqual(flags(out)["--alias"], "Qwen/Qwen3-0.6B")

    def test_names_and_models(self):
        names = ["--served-model-name", "a", "b", "--dtype", "float16"]
        out = vllm_server.worker_arguments("BAAI/bge-reranker-base", names, MODELS)
        self.assertEqual(flags(out)["--alias"], "a,b")
        self.assertEqual(flags(out)["--model"], "/ranker")

    def test_others_are_refused_by_name(self):
        for arguments in (["--enable-lora"], ["--tool-call-parser", "olmo3"]):
            with self.assertRaisesRegex(vllm_server.NotApplicable, arguments[0]):
                vllm_server.worker_arguments("any", arguments, MODELS)


class Rules(unittest.TestCase):
    def test_lines_are_left_out_of_the_copy(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "test_a.py")
            with open(path, "w", encoding="utf-8") as file:
                file.write("def test():\n    assert a == 1\n    assert b\n")
            rule = {"file": "test_a.py", "line": "assert a == 1", "reason": "r"}
            rules.without_lines(folder, {"left_out": [rule]})
            with open(path, encoding="utf-8") as file:
                self.assertEqual(file.read(), "def test():\n    pass\n    assert b\n")
            with self.assertRaisesRegex(SystemExit, "another version"):
                rules.without_lines(folder, {"left_out": [rule]})

    def test_a_rule_is_for_a_file_a_test_or_a_case(self):
        for tests in ("a.py", "a.py::test_b", "a.py::test_b[1]"):
            self.assertTrue(rules.matches(tests, "a.py::test_b[1]"))
        self.assertFalse(rules.matches("a.py::test", "a.py::test_b[1]"))

    def test_some_rules_are_of_small_models_alone(self):
        both, small = {"tests": "a", "reason": "r"}, {"tests": "b", "reason": "r", "small": True}
        told = {"not_applicable": [both, small]}
        self.assertEqual(rules.applied(told, whole=""), [both, small])
        self.assertEqual(rules.applied(told, whole="1"), [both])

    def test_every_rule_has_a_reason(self):
        for suite in suites.SUITES.values():
            if not suite.rules:
                continue
            for kind in rules.read(os.path.join(HERE, suite.rules)).values():
                for rule in kind:
                    self.assertTrue(rule["reason"])


class Run(unittest.TestCase):
    def test_the_table_counts_and_names_failures(self):
        with tempfile.NamedTemporaryFile("w", suffix=".xml") as file:
            file.write(
                '<testsuites><testsuite><testcase classname="a" name="x"/>'
                '<testcase classname="a" name="y"><failure message="no&#10;more"/></testcase>'
                '<testcase classname="b" name="z"><skipped message="why"/></testcase>'
                "</testsuite></testsuites>"
            )
            file.flush()
            text = run.table(file.name)
        self.assertIn("| a | 1 | 1 | 0 |", text)
        self.assertIn("| all | 1 | 1 | 1 |", text)
        self.assertIn("- `a::y`: no", text)

    def test_without_a_checkout_it_says_so(self):
        options = types.SimpleNamespace(suite="vllm", source="/nowhere")
        with mock.patch("builtins.print") as said:
            run.run(options)
        self.assertIn("skipped, there is no /nowhere", said.call_args[0][0])


if __name__ == "__main__":
    unittest.main()
