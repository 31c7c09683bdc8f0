#!/usr/bin/env python3
"""Checks rules of the tree that a compiler does not check: allowed includes, sizes of files and
functions, words that do not belong, ASCII, types of one name; what documents name
(documents.py), and messages of commits (commits.py). Prints one line for each finding; exit status 1 when there is any."""

import argparse
import os
import re
import sys

import commits
import contents
import documents
import folder_map
import includes

MAX_FILE_LINES = 600
MAX_FUNCTION_LINES = 60
MAX_COLUMNS = 100

# In front of a function of the C library: no other namespace, no object.
OF_C = r"(?<![\w.:>])(?:std::|::)?"
LIBRARY = ("rbee/", "backends/", "server/")
FORBIDDEN_IN_LIBRARY = [
    (re.compile(r"\bstd::(cout|cerr|clog)\b"), "prints to a standard stream"),
    (re.compile(OF_C + r"(v?f?printf|f?puts|f?putc|putchar|perror)\s*\("), "prints"),
]
ENDS = re.compile(OF_C + r"(abort|exit|_exit|_Exit|quick_exit|terminate)\s*\(")
# rbee/core/input_file.h opens files that users name, because it never waits for a FIFO.
NAMED_FILES = ("rbee/", "server/", "workers/", "cli/", "tools/")
STREAM = re.compile(r"\bstd::(basic_)?(ifstream|fstream|filebuf)\b|" + OF_C + r"f(re)?open\s*\(|"
                    r"(?<![\w>])::open(at)?\s*\(|\bO_(RDONLY|RDWR|WRONLY)\b")
# No vendor above backends/: names of the interfaces, and of the libraries that have them.
OF_VENDORS = (r"cuda[A-Z]\w*|cu[A-Z][a-z]\w*|CU[a-z]\w*|CU_[A-Z]\w*|(?:cublas|cudnn|nvrtc|nccl)[A-Z]\w*|hip[A-Z]\w*|"
              r"(?:hipblas|rocblas|hiprtc|miopen|rccl)\w+|__CUDA\w*|__HIP\w*|CUDA_VERSION")
VENDOR = re.compile(rf"\b({OF_VENDORS})\b")
VENDOR_LIBRARY = re.compile(r'"[^"]*\blib(cuda|cudart|cublas\w*|cudnn|nvrtc|nccl|amdhip64|hip\w*|rocblas|rccl)\b')
# Kernels and the host side of GPU operations name no vendor either; these are the places.
PORTABLE = ("backends/gpu/portable.h", "backends/gpu/instructions.h", "backends/gpu/e4m3_dot.h")
VENDOR_IN_GPU = re.compile(rf"\b({OF_VENDORS}|__shfl\w*|__gfx\w*|__GFX\w*|__builtin_amdgcn\w*|__syncthreads|"
                           r"threadIdx|blockIdx|asm)\b")
VENDOR_FREE = ("rbee/", "server/")
# Kernels are compiled for 32 and for 64 lanes.
LANE_COUNT = re.compile(r"\bwarpSize\b|[=!]=\s*(32|64)\b|(?:[(,=!&|?:;{]|return)\s*(32|64)\s*[=!]=")
# A route's own data says what it is, so that no second list of paths can differ from it.
SERVERS = ("server/",)
COMPARED_PATH = re.compile(r'[=!]= *"/\w|"/\w[^"]*" *[=!]=|(starts|ends)_with\("/\w')
# nlohmann's parser with a callback looks at all members again after each (rbee/core/json_shape.h).
CALLED_BACK = re.compile(r"\bparse_event_t\b")
# A list of texts that begins with a path; a list of routes has methods or handlers too.
LISTED_PATHS = re.compile(r'\b(?:string_view|string|char\s*\*)(?:\s*,\s*\d+)?[\s>]*\w+(?:\[\w*\])?\s*=?\s*\{\s*"/\w[^"]*"\s*[,}]')
TODO = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b(?!\(#\d+\))")
INCLUDE = re.compile(r'^\s*#\s*include\s+["<]([^">]+)[">]')
CODE = (".h", ".cc", ".cu", ".mm", ".metal")
COMPILED = (".a", ".co", ".cubin", ".fatbin", ".hsaco", ".o", ".so")


def strip_code(line):
    """The line without string literals and comments, so that words in them do not count."""
    line = re.sub(r'"(\\.|[^"\\])*"', '""', line)
    return line.split("//")[0]


LITERAL = re.compile(r'//[^\n]*|/\*.*?\*/|R"([^()\s\\]*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|'
                     r"(?<![0-9A-Za-z_])'(?:\\.|[^'\\\n])+'", re.DOTALL)
# A preprocessor line, a punctuation mark, or the text between them.
PIECE = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*|[{}();:\n]|[^{}();:\n]+", re.MULTILINE)
ACCESS = re.compile(r"\s*(?:public|private|protected)\s*:$")
SCOPE = re.compile(r"(?:namespace|class|struct|union|enum)\b|extern$")
IN_FRONT = re.compile(r"^(?:template\s*<.*>\s*(?=class|struct|union|concept)|inline\s+(?=namespace)|typedef\s+)")
OPERATOR = re.compile(r"\boperator\s*(?:\(\)|[^\s\w(]+)")
LAMBDA = re.compile(r"\[[^\[\]]*\]\s*(?:\(.*\))?[^()={]*$", re.DOTALL)


def blank(found):
    """Keeps only the line breaks of a comment or literal."""
    return "\n" * found.group().count("\n")


def kind_of_block(head):
    """What a brace opens that follows `head` outside of functions: a "scope", a "function" or a
    "value". The house format has a blank in front of bodies and none in front of values."""
    spaced = head.endswith((" ", "\n"))
    head = OPERATOR.sub("operator", IN_FRONT.sub("", head.strip()))
    if SCOPE.match(head):
        return "scope"
    plain = head
    while "(" in plain:  # ignore text in parentheses: defaults have "=" too
        fewer = re.sub(r"\([^()]*\)", "", plain)
        if fewer == plain:
            break
        plain = fewer
    if "=" in plain:
        return "function" if LAMBDA.search(head) else "value"
    return "function" if spaced and ")" in head else "value"


def long_functions(lines):
    """Follows braces and parentheses. A block is told by what stands between it and the end of what
    is before it, in however many lines."""
    text = LITERAL.sub(blank, "\n".join(lines))
    number, head, depth, blocks, branches = 1, "", 0, [], []
    for piece in PIECE.findall(text):
        if piece.lstrip().startswith("#"):
            word = re.match(r"\s*#\s*(\w*)", piece).group(1)
            if word.startswith("if"):
                branches.append((head, depth, list(blocks)))
            elif word.startswith("el") and branches:  # what both branches open is closed once
                head, depth, blocks = branches[-1][0], branches[-1][1], list(branches[-1][2])
            elif word == "endif" and branches:
                branches.pop()
        elif piece == "{":
            inside = any(kind == "function" for kind, *_ in blocks)
            kind = "block" if inside else "value" if depth else kind_of_block(head)
            blocks.append((kind, number, head, depth))
            head, depth = "", 0
        elif piece == "}" and blocks:
            kind, start, before, depth = blocks.pop()
            head = before if kind == "value" else ""
            if kind == "function" and number - start - 1 > MAX_FUNCTION_LINES:
                yield start, number - start - 1
        elif piece == ";" and depth == 0:
            head = ""
        else:
            depth += {"(": 1, ")": -1}.get(piece, 0)
            head += piece
            if piece == ":" and ACCESS.match(head):
                head = ""
        number += piece.count("\n")


def check_file(root, path, exceptions):
    with open(os.path.join(root, path), encoding="utf-8") as file:
        lines = file.read().split("\n")
    if len(lines) > MAX_FILE_LINES and ("size", path) not in exceptions:
        yield 1, f"{len(lines)} lines, the limit is {MAX_FILE_LINES}"
    if path.endswith(".h") and "#pragma once" not in lines:
        yield 1, "#pragma once is missing"
    if ("function", path) not in exceptions and not path.startswith("tests/"):
        for start, length in long_functions(lines):
            yield start, f"a function of {length} lines, the limit is {MAX_FUNCTION_LINES}"
    if path.startswith(SERVERS) and ("path", path) not in exceptions:
        text = "\n".join(lines)
        for match in LISTED_PATHS.finditer(text):
            yield text.count("\n", 0, match.start()) + 1, "lists paths: a member of their Route (server/http/router.h) should say it"
    for number, line in enumerate(lines, 1):
        if not line.isascii() and ("ascii", path) not in exceptions:
            yield number, "not ASCII"
        if len(line) > MAX_COLUMNS and "http" not in line and 'R"' not in line:
            yield number, f"{len(line)} columns, the limit is {MAX_COLUMNS}"
        if TODO.search(line):
            yield number, "a TODO needs an issue number: TODO(#12)"
        match = INCLUDE.match(line)
        if match:
            problem = includes.check_include(path, match.group(1))
            if problem:
                yield number, problem
            continue
        code = strip_code(line)
        if path.startswith(LIBRARY):
            for pattern, problem in FORBIDDEN_IN_LIBRARY:
                if pattern.search(code):
                    yield number, problem
            if ("exit", path) not in exceptions and ENDS.search(code):
                yield number, "ends the process"
        if path.startswith(NAMED_FILES) and ("open", path) not in exceptions and STREAM.search(code):
            yield number, "opens a file without rbee/core/input_file.h"
        if CALLED_BACK.search(code):
            yield number, "parses JSON with a callback, in quadratic time: rbee/core/json_shape.h bounds it before"
        if path.startswith(SERVERS) and ("path", path) not in exceptions and COMPARED_PATH.search(line.split("//")[0]):
            yield number, "compares a path: a member of its Route (server/http/router.h) should say it"
        if path.startswith(VENDOR_FREE) and (VENDOR.search(code) or VENDOR_LIBRARY.search(line.split("//")[0])):
            yield number, "names a GPU vendor outside backends/"
        if (path.startswith("backends/gpu/") and path not in PORTABLE
                and VENDOR_IN_GPU.search(code)):
            yield number, "names a GPU vendor outside " + ", ".join(name.split("/")[-1] for name in PORTABLE)
        if path.startswith("backends/gpu/kernels/") and LANE_COUNT.search(code):
            yield number, "may compare with a lane count; kWave of portable.h is the kernel's"


NAMESPACE = re.compile(r"^(?:inline )?namespace ?([\w:]*) \{")
NAMESPACE_END = re.compile(r"^\}  // namespace")
TYPE = re.compile(r"^(?:struct|class|union|enum(?: class)?) (\w+)(?: final)?(?: : [^{;]*)?(?: \{|$)")


def types_of(lines):
    """Types that other files' code can name, with their namespaces and lines."""
    spaces = []
    for number, line in enumerate(lines, 1):
        if (opened := NAMESPACE.match(line)) and not line.endswith("}"):
            if opened.group(1).startswith("rbee"):  # whole: the one before it has ended, with or without a comment
                spaces.clear()
            spaces.append(opened.group(1))
        elif NAMESPACE_END.match(line) and spaces:
            spaces.pop()
        elif "" not in spaces and (found := TYPE.match(line)):
            yield "::".join([*spaces, found.group(1)]), number


BACKENDS = ("backends/cpu", "backends/cuda", "backends/rocm", "backends/gpu")


def may_share_names(one, other):
    """Whether headers of these folders may have types of one name: of one folder, where the compiler finds them, and
    of backends that do not include one another."""
    apart = one in BACKENDS and other in BACKENDS and not any(
        lower in includes.MAY_INCLUDE[upper] for upper, lower in [(one, other), (other, one)])
    return one == other or apart


class TypeNames:
    """Two types of one full name in two files of a program: the linker keeps one of their members'
    instantiations, and no compiler says so. And two of one bare name in headers of two folders: a reader who looks for
    the name finds both. A namespace below the folder's (`text::jinja`) is a part of the bare name."""

    def __init__(self, exceptions=()):
        self.first = {}
        self.bare = {}  # name: [(folder, path)] of headers
        self.exceptions = exceptions

    def check(self, root, path):
        if not path.endswith((".h", ".cc")) or not path.startswith((*LIBRARY, "cli/", "tools/", "workers/")):
            return
        with open(os.path.join(root, path), encoding="utf-8") as file:
            lines = file.read().split("\n")
        for name, number in types_of(lines):
            there = self.first.setdefault(name, path)
            if there != path:
                yield number, f"{name} is a type of {there} too"
            elif path.endswith(".h"):
                yield from self.check_bare("::".join(name.split("::")[min(name.count("::"), 2):]), path, number)

    def check_bare(self, name, path, number):
        folder = includes.rule_for(path)[0] or os.path.dirname(path)
        seen = self.bare.setdefault(name, [])
        other = next((there for where, there in seen if not may_share_names(where, folder)), None)
        if other and ("type", name) not in self.exceptions:
            yield number, f"{name} is the name of a type of {other} too"
        seen.append((folder, path))


def read_exceptions(root):
    exceptions = set()
    with open(os.path.join(root, "tools/lint/exceptions.txt"), encoding="utf-8") as file:
        for line in file:
            line = line.split("#")[0].strip()
            if line:
                rule, path = line.split()
                exceptions.add((rule, path))
    return exceptions


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true",
                        help="write the include rules (includes.py) and the contents of long pages (contents.py) into the "
                             "documents that print them")
    parser.add_argument("root", nargs="?", default=".", help="of the tree; this folder")
    options = parser.parse_args()
    root = options.root
    exceptions = read_exceptions(root)
    types = TypeNames(exceptions)
    findings = files = 0
    for rule, path in sorted(exceptions):
        if rule != "type" and not os.path.exists(os.path.join(root, path)):
            print(f"tools/lint/exceptions.txt: {path} does not exist (rule {rule})")
            findings += 1
    for folder, names, found in os.walk(root):
        names[:] = [n for n in names if not n.startswith((".", "build", "__"))]
        for name in found:
            if name.endswith(COMPILED):
                print(f"{os.path.relpath(os.path.join(folder, name), root)}: is what a compiler wrote")
                findings += 1
            if not name.endswith(CODE):
                continue
            files += 1
            path = os.path.relpath(os.path.join(folder, name), root)
            for number, problem in (*check_file(root, path, exceptions), *types.check(root, path)):
                print(f"{path}:{number}: {problem}")
                findings += 1
    for path, number, problem in (*includes.stale(root, options.write), *contents.stale(root, options.write), *folder_map.stale(root),
                                  *documents.check(root)):
        print(f"{path}:{number}: {problem}")
        findings += 1
    for commit, problem in commits.check(root):
        print(f"{commit}: {problem}")
        findings += 1
    print(f"lint: {files} files{commits.said(root)}, {findings} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
