#!/usr/bin/env python3
"""Plants one offence of each kind in a small tree and expects lint.py to name it."""

import os
import shutil
import subprocess
import sys
import tempfile

LINT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "lint.py")
HOOK = os.path.join(os.path.dirname(LINT), "../../.githooks/commit-msg")

CASES = [
    ("rbee/core/a.h", '#pragma once\n#include "rbee/tensor/tensor.h"\n', "may not include"),
    ("rbee/nn/a.h", '#pragma once\n#include "backends/cpu/cpu_device.h"\n', "may not include"),
    ("backends/shared/a.h", "#pragma once\n#include <cmath>\n", "no standard header"),
    ("rbee/io/a.cc", "#include <boost/asio.hpp>\n", "belongs only in"),
    ("rbee/io/a.cc", 'void f() { std::cerr << "x"; }\n', "prints"),
    *(("rbee/io/a.cc", f"void f() {{ {call}; }}\n", "a.cc:1: prints") for call in [
        'std::printf("x")', '::printf("x")', 'printf("x")', "std::fprintf(stderr, x)", "std::fputs(x, stderr)",
        "vfprintf(stderr, x, y)", "putchar(1)"]),
    *(("server/http/a.cc", f"void f() {{ {call}; }}\n", "ends the process") for call in [
        "std::abort()", "_Exit(1)", "std::_Exit(1)", "::_exit(1)", "std::quick_exit(1)"]),
    *(("workers/a.cc", f"auto f = {call};\n", "without rbee/core/input_file.h") for call in [
        "std::ifstream(path)", "std::fstream(path)", 'std::fopen(path, "r")', 'fopen(path, "r")', 'freopen(path, "r", f)',
        "::open(path, flags)", "open(path, O_RDONLY)", "std::filebuf()"]),
    *(("rbee/models/a.cc", f"auto x = {name};\n", "GPU vendor") for name in [
        "cudaMalloc", "hipMalloc", "CUstream()", "CU_STREAM_DEFAULT", "cuMemAlloc", "hipblasLtHandle_t()",
        "cublasLtCreate", "ncclAllReduce", 'dlopen("libcuda.so", 1)', 'dlopen("/opt/lib/libamdhip64.so.6", 1)']),
    *(("backends/gpu/ops/a.cc", f"auto x = {name};\n", "GPU vendor") for name in ["CUstream()", "hipblasLtCreate"]),
    *(("backends/gpu/kernels/a.cu", f"bool x = {test};\n", "lane count") for test in [
        "warpSize > y", "kWave == 64", "y != 32", "32 == y"]),
    *(("server/front/a.cc", f"{listed};\n", "lists paths") for listed in [
        'constexpr std::string_view kOurs[] = {"/api/pull", "/api/copy"}',
        'constexpr std::array<std::string_view, 2> kOurs = {\n    "/api/pull", "/api/copy"}',
        'const std::vector<std::string> ours{"/api/pull"}', 'const char* kOurs[] = {"/api/pull"}']),
    *(("server/front/a.cc", f"bool x = {test};\n", "compares a path") for test in [
        'path == "/api/chat"', '"/v1/jobs" != path', 'path.starts_with("/api/")']),
    ("rbee/core/a.cc", "void f(int depth, json::parse_event_t event);\n", "in quadratic time"),
    ("rbee/core/a.h", "int x;\n", "#pragma once"),
    ("rbee/core/a.cc", "// caf\u00e9\n", "not ASCII"),
    ("rbee/core/a.cc", "// " + "x" * 110 + "\n", "columns"),
    ("rbee/core/a.cc", "// TODO later\n", "issue number"),
    ("rbee/core/a.cc", "int x;\n" * 700, "the limit is 600"),
    ("rbee/core/a.cc", "void f() {\n" + "  g();\n" * 61 + "}\n", "a function of 61 lines"),
    *(("rbee/core/a.cc", head + " {\n" + "  g();\n" * 61 + "}\n" + tail, "a function of 6")
      for head, tail in [
          # As clang-format breaks signatures.
          ("int f(int first,\n      int x)", ""),
          ("std::optional<std::string> f(\n    int x, int y,\n    int z)", ""),
          ("const std::map<std::string, int>& A::\n    f(int x)", ""),
          ("A::A(int x)\n    : a_(x),\n      b_{x}", ""),
          ("void f(int x, std::vector<int> y = {1, 2}, A z = A{.b = 2})", ""),
          ("void f(int (*g)(int),\n       int x)", ""),
          ("template <typename T>\n  requires std::integral<T>\nauto f(T x) -> int", ""),
          ("bool operator==(const A& a, int x)", ""),
          ("const auto f = [](int x)", ";"),
          ('extern "C" void f(int x)', ""),
          ('extern "C" {\nvoid f(int x)', "}\n"),
          ("namespace a {\nstruct S {\n  int y{0};\n  void f(int first,\n         int x) const noexcept",
           "};\n}\n"),
          ("#if A\nvoid f(int x) {\n#else\nvoid f(long x) {\n#endif\n  if (x)", "}\n"),
          ("int f(int x) {  // }\n  char c = '{';\n  use(R\"(\n}})\", \"}\");\n  if (x)", "}\n"),
      ]),
    ("kernel.gfx942.co", "x", "what a compiler wrote"),
    ("rbee/core/two.cc", "namespace rbee {\nstruct First : Base {\n};\n}  // namespace rbee\n", "First is a type of"),
    ("server/llm/first.h", "#pragma once\nnamespace rbee::server {\nstruct Twice {\n};\n}  // namespace rbee::server\n",
     "Twice is the name of a type of "),
    ("cli/first.h", "#pragma once\nnamespace rbee::io {\nclass A;\n}\nnamespace rbee::tools {\nclass Twice {\n};\n"
     "}  // namespace rbee::tools\n", "Twice is the name of a type of "),
    ("rbee/io/README.md", "# io\n\nMay include: `rbee/text`. More.\n", "prints other include rules"),
    ("rbee/io/image/README.md", "May include: everything.\n", "prints other include rules"),
    ("rbee/io/README.md", "# io\n", "has no sentence"),
    ("CONTRIBUTING.md", "<!-- the include rules: lint.py --write -->\n<!-- end of the include rules -->\n",
     "prints other include rules"),
    ("docs/design/map.svg", "<svg></svg>\n", "shows other arrows"),
    ("README.md", "[a](b.md)\n", "b.md, which is not there"),
    ("README.md", "# One\n[a](#two)\n", "no such heading"),
    ("README.md", "```\n# Two\n```\n[a](#two)\n", "no such heading"),
    ("README.md", "See tools/lint/absent.txt.\n", "names tools/lint/absent.txt"),
    ("README.md", "`prog --no-such-flag 1`\n", "the flag --no-such-flag"),
    ("README.md", "Set RBEE_NO_SUCH_NAME.\n", "names RBEE_NO_SUCH_NAME"),
    ("README.md", "`Twice::absent()`\n", "names absent(), which no source has"),
    ("README.md", "`absent.cc`\n", "no file is called so"),
    ("README.md", "| You see | Do |\n|---|---|\n| `a: type x7 is not here: …` | `so it is` |\n",
     "quotes 'type x7 is not here', which no program says"),
    ("docs/reference/a.md", "# A\n\n" + "## B\n\nx\n\n## C\n\n## D\n" * 20, "has other contents than headings"),
    ("docs/a.md", "| A | B |\n|---|---|\n| a | " + "x" * 601 + " |\n", "a cell of 601 characters"),
    ("docs/decisions/0001-a.md", "# 1. A\n\nStatus: accepted.\n", "lacks 'Date:"),
    ("docs/decisions/0001-a.md", "# 1. A\n\nDate: 2026-11-21. Status: some.\n", "lacks 'Date:"),
    ("docs/decisions/0001-a.md", "# 1. A\n\nDate: 2026-11-21. Status: accepted.\n" + "x\n" * 78,
     "81 lines, the limit of a decision is 80"),
]
CLEAN = [
    ("rbee/nn/a.cc", '#include "rbee/ops/run.h"\n// prints nothing\nvoid f() {\n'
     + "  g();\n" * 60 + "}\n"),
    ("rbee/core/a.cc", 'const char* a = "std::cerr";  // exit()\n'),
    ("rbee/core/two.cc", "namespace rbee {\nclass First;\nnamespace {\nclass First {\n};\n}  // namespace\n"
     "class Hidden {\n};\n}  // namespace rbee\nnamespace other {\nclass First {\n};\n}  // namespace other\n"),
    # Of a namespace below the folder's, of one folder, and in no header.
    *((path, f"#pragma once\nnamespace {space} {{\nstruct Twice {{\n}};\n}}  // namespace {space}\n") for path, space in [
        ("rbee/text/a.h", "rbee::text::jinja"), ("rbee/core/a.h", "rbee::f64"), ("rbee/text/a.cc", "rbee::text")]),
    ("rbee/io/a.cc", 'void f() { log.printf(x); std::snprintf(a, 1, "x"); Checkpoint::open(path); fmt::printf(x); }\n'),
    ("server/front/a.cc", 'constexpr Row kRows[] = {{"GET", "/api/tags"}, {"/sdapi/v1/scripts", "[]"}};\nfor (const char* path : {"/a", "/b"}) open(path);\n'),
    ("server/front/a.cc", 'auto x = y == "/" ? "/api/chat" : cat(z, "/stream");  // path == "/a"\n'),
    ("rbee/models/a.cc", "int current = cut + cube; // CUstream\n"),
    ("backends/gpu/kernels/a.cu", "bool x = y == 640 || z >> 32 != 1 || w % 32 == 0 || w <= 64;\n"),
    # A lambda within a class does not start a function that lasts until the class ends.
    ("rbee/core/a.h", "#pragma once\nstruct A {\n  void f() {\n    each([&](int x) {\n      g(x);\n"
     + "    });\n  }\n" + "  int y;\n" * 70 + "};\n"),
    # Lists, types and namespaces are no functions.
    *(("rbee/core/a.cc", head + " {\n" + "    1,\n" * 70 + tail) for head, tail in [
        ("constexpr int kAll[] =", "};\n"), ("const std::vector<int> all = make(3) + A", "};\n"),
        ("const A all(each([](int x) { return x; }), A", "});\n"), ("enum class E : int", "};\n"),
        ("template <typename T>\nstruct S : Base<decltype(f(0))>", "};\n"),
        ("namespace a::b", "}\n"), ("class __attribute__((packed)) A", "};\n")]),
    ("rbee/io/README.md", "# io\n\nMay include: `rbee/core`. libpng stays in .cc files.\n"),
    ("docs/a.md", "# `One` two\n[a](#one-two), [b](../tools/lint), [c](https://a.example/b.md#x), "
     "tools/lint/exceptions.txt, `docker --gpus all`\n"),
    ("docs/a.md", "`size()`, `Twice::size()`, `call()` of many\n```\nabsent()\n```\n", [("tools/a.py", "call()\n")]),
    # Values, what stands in front, and words that are no message.
    ("docs/a.md", "| It says | Do |\n|---|---|\n| `open: the type \"x\" is not read: … (12)` | `not said` |\n\n"
     "| Other | table |\n|---|---|\n| `of other words` | |\n"),
    ("docs/a.md", "| A | B |\n|---|---|\n| " + "x" * 600 + " | " + "y" * 600 + " |\n\n" + "x" * 700 + "\n"),
    ("docs/decisions/0001-a.md", "# 1. A\n\nDate: 2026-11-21. Status: accepted.\n" + "x\n" * 77),
]


TWICE = "#pragma once\nnamespace rbee {\nstruct Twice {\n  int size();\n};\n}  // namespace rbee\n"

# In every tree.
FIRST = """namespace rbee {
class First {
};
namespace {
class Hidden {
};
const char* const kSaid[] = {"the " "type \\"", "\\" is not read: "};
}  // namespace
}  // namespace rbee
"""


def run(path, text, more=()):
    with tempfile.TemporaryDirectory() as root:
        for name, body in [("tools/lint/exceptions.txt", ""), ("rbee/core/one.cc", FIRST),
                           ("rbee/core/twice.h", TWICE), *more, (path, text)]:
            os.makedirs(os.path.dirname(os.path.join(root, name)), exist_ok=True)
            with open(os.path.join(root, name), "w", encoding="utf-8") as file:
                file.write(body)
        done = subprocess.run([sys.executable, LINT, root], capture_output=True, text=True)
        return done.returncode, done.stdout


SUBJECTS = {
    "folder: say what changed\n\nWhy.\n": None,
    "rbee/io, server/{llm,image}: take turns\n# the editor's line\n": None,
    "Merge branch 'a' of a name that makes the line longer than seventy-two columns are": None,
    "folder: " + "x" * 65: "73 columns",
    "made models, docs: say what changed": None,
    "a sentence with colon: in it": "is not `folder: what changed`",
    "Say what changed": "is not `folder: what changed`",
    "": "is not `folder: what changed`",
    "folder: say what changed.": "full stop",
    "folder: say what changed\nwhy\n": "not blank",
}


def check_subjects():
    """The hook, as Git calls it."""
    for message, wanted in SUBJECTS.items():
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
            file.write(message)
            file.flush()
            done = subprocess.run([sys.executable, HOOK, file.name], capture_output=True, text=True)
        assert done.returncode == (1 if wanted else 0) and (wanted or "") in done.stderr, (message, done.stderr)


CIRCLE = [("rbee/core/a.h", '#pragma once\n#include "rbee/io/b.h"\n'), ("docs/design/map.svg", "<svg></svg>\n")]


def check_circle():
    """Folders that include one another are a finding, and no end of lint."""
    status, out = run("rbee/io/b.h", '#pragma once\n#include "rbee/core/a.h"\n', CIRCLE)
    assert status == 1 and "rbee/core -> rbee/io -> rbee/core include one another" in out, out


def check_commits():
    """The hook over a repository's commits, whole and shallow."""
    with tempfile.TemporaryDirectory() as root:
        def git(where, *words):
            subprocess.run(["git", "-C", where, "-c", "user.name=a", "-c", "user.email=a@b.example", *words], check=True,
                           capture_output=True)

        def lint(where):
            done = subprocess.run([sys.executable, LINT, where], capture_output=True, text=True)
            return done.returncode, done.stdout

        whole, part = os.path.join(root, "whole"), os.path.join(root, "part")
        for name, body in [("tools/lint/exceptions.txt", ""), (".githooks/commit-msg", "old")]:
            os.makedirs(os.path.dirname(os.path.join(whole, name)), exist_ok=True)
            with open(os.path.join(whole, name), "w", encoding="utf-8") as file:
                file.write(body)
        git(whole, "init", "-q")
        git(whole, "add", "-A")
        git(whole, "commit", "-qm", "No folder: of an older rule")
        shutil.copy(HOOK, os.path.join(whole, ".githooks/commit-msg"))
        git(whole, "commit", "-qam", "folder: change the hook")
        git(whole, "commit", "--allow-empty", "-qm", "folder: say what changed")
        status, out = lint(whole)
        assert status == 0 and "2 commits, 0 findings" in out, out
        git(whole, "commit", "--allow-empty", "-qm", "Say what changed")
        git(whole, "commit", "--allow-empty", "-qm", "folder: say it again")
        status, out = lint(whole)
        assert status == 1 and "is not `folder: what changed`" in out and "4 commits, 1 findings" in out, out
        git(root, "clone", "-q", "--depth", "2", f"file://{whole}", part)
        status, out = lint(part)
        assert status == 0 and "1 commits of a shallow clone, 0 findings" in out, out


def scripts():
    """Of tools/: files that people start. Tests have no arguments."""
    for folder, _, names in os.walk(os.path.join(os.path.dirname(LINT), "..")):
        for name in names:
            path = os.path.join(folder, name)
            if not name.endswith((".py", ".sh")) or name.startswith("test_"):
                continue
            with open(path, encoding="utf-8") as file:
                text = file.read()
            if text.startswith("#!") or '__name__ == "__main__"' in text:
                yield path


def check_help():
    """Each script tells its arguments, also where PyTorch and other packages are missing (-S)."""
    found = list(scripts())
    assert len(found) > 40, found
    for path in found:
        command = ["bash", path] if path.endswith(".sh") else [sys.executable, "-S", path]
        done = subprocess.run([*command, "--help"], capture_output=True, text=True, stdin=subprocess.DEVNULL)
        assert done.returncode == 0 and "usage:" in done.stdout.lower(), (path, done.stdout, done.stderr)


def main():
    check_subjects()
    check_circle()
    check_commits()
    check_help()
    for path, text, wanted in CASES:
        status, out = run(path, text)
        assert status == 1 and wanted in out, (path, wanted, out)
    for path, text, *more in CLEAN:
        status, out = run(path, text, *more)
        assert status == 0, (path, out)
    print(f"{len(CASES) + len(CLEAN) + len(SUBJECTS)} cases pass")


if __name__ == "__main__":
    main()
