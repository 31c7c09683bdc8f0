#!/usr/bin/env python3
"""Checks commands that documents show: each subcommand and flag of `rbee` and of its workers must be in their --help, each
flag of a script in the script. Records of the past (decisions, the journal) are not checked. programs_test runs it.

    python3 tools/lint/commands.py build/dev/bin/rbee
"""

import argparse
import functools
import os
import re
import subprocess
import sys

PAST = ("docs/decisions", "docs/journal")
SPAN = re.compile(r"`([^`\n]+)`")
BLOCK = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
INDENTED = re.compile(r"^ {4,}(.+)$", re.MULTILINE)
COMMAND = re.compile(r"\s(?:\||\|\||&&|;)\s")
# The program of a command, after variables, other programs that start it, and its folder.
PROGRAM = re.compile(r"\s*\$?\s*(?:[A-Z_]+=(?:\"[^\"]*\"|\S*)\s+)*(?:(?:bash|python3|sudo|exec|env|time|nice)\s+)*"
                     r"(?P<program>(?:[\w./-]*/)?(?:rbee|(?:llm|sd)-worker[a-z-]*|[\w-]+\.(?:py|sh)))(?=\s)")
END = re.compile(r"\s(?:&|--|#)(?:\s|$)|[;`)\]>]")
FLAG = re.compile(r"(?<!\S)(--?[a-zA-Z][a-zA-Z0-9-]*)(?=[=\s,]|$)")
WORD = re.compile(r"[a-z][a-z-]*$")
HELP = re.compile(r"^  (\S+)", re.MULTILINE)
ANY_WORKER = "llm-worker-rbee-cpu"


def commands(text):
    """(line number, program, arguments) of what stands in code."""
    text = text.replace("\\\n", "  ")
    places = [(found.start(), found.group()) for found in BLOCK.finditer(text)]
    rest = BLOCK.sub(lambda found: "\n" * found.group().count("\n"), text)
    for pattern in (SPAN, INDENTED):
        places += [(found.start(1), found.group(1)) for found in pattern.finditer(text if pattern is SPAN else rest)]
    for start, code in places:
        for number, line in enumerate(code.split("\n"), text.count("\n", 0, start) + 1):
            for command in COMMAND.split(line):
                found = PROGRAM.match(command)
                if found:
                    yield number, found["program"], END.split(command[found.end():] + " ", maxsplit=1)[0]


class Programs:
    def __init__(self, rbee):
        self.rbee = rbee

    @functools.lru_cache(None)
    def help(self, *words):
        out = subprocess.run([self.rbee, *words, "--help"], capture_output=True, text=True, timeout=600)
        return out.stdout if out.returncode == 0 else None

    def subcommands(self, *words):
        text = (self.help(*words) or "").partition("Subcommands:")[2]
        return set(HELP.findall(text))

    def problems(self, program, arguments):
        program = os.path.basename(program)
        words, rest = [], arguments.split()
        if program != "rbee":  # other workers need another build
            words = ["sd-worker-cpu" if program.startswith("sd-") else ANY_WORKER]
        else:
            while rest and rest[0] in self.subcommands(*words):
                words.append(rest.pop(0))
            if not words and rest and WORD.match(rest[0]) and "-worker" not in rest[0]:
                yield f"shows `rbee {rest[0]}`, which is no command"
                return
        known = self.help(*words) or ""
        for flag in FLAG.findall(arguments):
            if not re.search(rf"(?<![\w-]){re.escape(flag)}(?![\w-])", known):
                yield f"shows {flag} of {' '.join(['rbee', *words])}, whose --help has no such flag"


def script_problems(root, beside, script, arguments):
    name = os.path.basename(script)
    paths = [p for p in (os.path.join(root, script), os.path.join(root, beside, script)) if os.path.isfile(p)]
    if not paths:
        return
    text = ""  # of the script, its neighbours, and the parts in a folder of its name
    for folder in (os.path.dirname(paths[0]), os.path.splitext(paths[0])[0]):
        for each in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
            if each.endswith((".py", ".sh")):
                with open(os.path.join(folder, each), encoding="utf-8") as file:
                    text += file.read()
    for flag in FLAG.findall(arguments):
        if flag not in text and flag not in ("-h", "--help"):
            yield f"shows {flag} of {name}, which has no such flag"


def documents(root):
    for folder, names, files in os.walk(root):
        names[:] = [n for n in names if not n.startswith((".", "build", "__"))]
        here = os.path.relpath(folder, root)
        if here.startswith(PAST):
            continue
        yield from (os.path.normpath(os.path.join(here, f)) for f in sorted(files) if f.endswith(".md"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rbee", help="the program")
    options = parser.parse_args()
    root = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
    programs = Programs(os.path.abspath(options.rbee))
    if programs.help() is None:
        sys.exit(f"{options.rbee} --help failed")
    count = bad = 0
    for path in documents(root):
        with open(os.path.join(root, path), encoding="utf-8") as file:
            text = file.read()
        for number, program, arguments in commands(text):
            count += 1
            script = program.endswith((".py", ".sh"))
            for problem in (script_problems(root, os.path.dirname(path), program, arguments) if script
                            else programs.problems(program, arguments)):
                bad += 1
                print(f"{path}:{number}: {problem}")
    print(f"commands: {count} looked at, {bad} wrong")
    return 1 if bad or count == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
