#!/usr/bin/env python3
"""Runs others' test suites and clients against our worker and prints what came of it.

    run.py llama.cpp CHECKOUT    tools/server/tests of a checkout of llama.cpp
    run.py vllm SOURCE           tests/entrypoints of vLLM's source package
    run.py clients               client libraries, see clients/
    run.py openai-3              those of them that take openai 3

--worker names the program, --model a GGUF chat model whose tokenizer a small random model gets
(--whole: which is served itself), --embedding-model the folder of a BERT for embeddings, --image-worker
and --image-model what draws. Packages go
into virtual environments below --work. What is missing is named, and skipped with the status 0."""

import argparse
import os
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import suites

HERE = os.path.dirname(os.path.abspath(__file__))


def environment_of(suite, work):
    """The Python of the suite's packages, or None where they cannot be had."""
    folder = os.path.join(work, f"venv-{suite}")
    python = os.path.join(folder, "bin", "python")
    if not os.path.exists(python):
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    wanted = os.path.join(HERE, f"requirements-{suite}.txt")
    pip = [python, "-m", "pip", "install", "--quiet", "--requirement", wanted]
    return python if subprocess.run(pip).returncode == 0 else None


def make_models(python, options):
    """Paths of the models that are served, made where they are not there."""
    models = os.path.join(options.work, "models")
    os.makedirs(models, exist_ok=True)
    paths = {
        "RBEE_CHAT_MODEL": os.path.join(models, "small.gguf"),
        "RBEE_RANKING_MODEL": os.path.join(models, "ranker"),
        "RBEE_TOKENIZER": os.path.join(models, "tokenizer"),
        "RBEE_EMBEDDING_MODEL": options.embedding_model,
    }
    code = (
        "import sys; import small_models as s; model, bert, chat, ranker, tokenizer = sys.argv[1:];"
        "s.write_chat_model(model, chat); s.write_ranker(bert, ranker);"
        "s.write_tokenizer(model, tokenizer)"
    )
    subprocess.run(
        [python, "-c", code, options.model, options.embedding_model, paths["RBEE_CHAT_MODEL"],
         paths["RBEE_RANKING_MODEL"], paths["RBEE_TOKENIZER"]],
        cwd=HERE, check=True,
    )  # fmt: skip
    if options.whole:
        paths["RBEE_CHAT_MODEL"] = options.model
    return paths


def outcomes(report):
    """(name, outcome, reason) of each test of a JUnit report."""
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        name = f"{case.get('classname')}::{case.get('name')}"
        for kind in ("failure", "error", "skipped"):
            found = case.find(kind)
            if found is not None:
                text = (found.get("message") or "").split("\n")[0]
                yield name, "skipped" if kind == "skipped" else "failed", text
                break
        else:
            yield name, "passed", ""


def table(report):
    """Counts by file as Markdown, then each failure."""
    files, failures = {}, []
    for name, outcome, reason in outcomes(report):
        file = name.split("::")[0]
        counts = files.setdefault(file, {"passed": 0, "failed": 0, "skipped": 0})
        counts[outcome] += 1
        if outcome == "failed":
            failures.append((name, reason))
    lines = ["| Tests | Passed | Failed | Not applicable |", "|---|---|---|---|"]
    total = {"passed": 0, "failed": 0, "skipped": 0}
    for file, counts in sorted(files.items()):
        lines.append(f"| {file} | {counts['passed']} | {counts['failed']} | {counts['skipped']} |")
        for outcome, count in counts.items():
            total[outcome] += count
    lines.append(f"| all | {total['passed']} | {total['failed']} | {total['skipped']} |")
    lines.append("")
    lines += [f"- `{name}`: {reason[:200]}" for name, reason in failures]
    return "\n".join(lines)


def run(options):
    suite = suites.SUITES[options.suite]
    missing = suite.missing(options.source)
    if missing:
        return print(f"{options.suite}: skipped, {missing}")
    for name in ("worker", "model", "embedding_model", "image_worker", "image_model"):
        if not os.path.exists(getattr(options, name)):
            return print(f"{options.suite}: skipped, there is no {getattr(options, name)}")
    python = environment_of(options.suite, options.work)
    if python is None:
        return print(f"{options.suite}: skipped, its packages cannot be installed")
    folder = os.path.join(options.work, options.suite)
    shutil.rmtree(folder, ignore_errors=True)
    suite.copy(options.source, folder)
    report = os.path.join(options.work, f"{options.suite}.xml")
    variables = {
        **os.environ,
        **make_models(python, options),
        **suite.variables(folder),
        "RBEE_WORKER": os.path.abspath(options.worker),
        "RBEE_IMAGE_WORKER": os.path.abspath(options.image_worker),
        "RBEE_IMAGE_MODEL": os.path.abspath(options.image_model),
        "RBEE_REFUSAL": os.path.join(options.work, "refusal"),
        "RBEE_WHOLE": "1" if options.whole else "",
        "PORT": str(options.port),
        "NO_PROXY": "*",
    }
    command = [python, "-m", "pytest", "-q", "--timeout", "300", f"--junitxml={report}"]
    tests = options.tests or suite.tests
    subprocess.run([*command, *suite.flags, *tests], cwd=suite.start(folder), env=variables)
    print(table(report))
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("suite", choices=suites.SUITES)
    parser.add_argument("source", nargs="?", default="")
    parser.add_argument("--worker", default="build/cpu/bin/llm-worker-rbee-cpu")
    parser.add_argument("--model", required=True)
    parser.add_argument("--embedding-model", required=True)
    parser.add_argument("--image-worker", default="build/cpu/bin/sd-worker-cpu")
    parser.add_argument("--image-model", default="models/tiny-emoji")
    parser.add_argument("--whole", action="store_true")
    parser.add_argument("--work", default="build/peer_suites")
    parser.add_argument("--port", type=int, default=9220)
    parser.add_argument("--tests", nargs="*", help="files in place of the suite's")
    options = parser.parse_args()
    options.work = os.path.abspath(options.work)
    os.makedirs(options.work, exist_ok=True)
    run(options)


if __name__ == "__main__":
    main()
