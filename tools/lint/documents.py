"""Checks that everything that documents name exists: links and their headings, files and folders, flags,
functions, environment variables, metrics and targets, and messages that people look up. Records of decisions
have a date and a status, and are short; so are the cells of tables. lint.py calls it over every .md file of
the tree."""

import os
import re

# Flags of other people's programs that documents show.
OUTSIDE_FLAGS = {
    "cmake": ["--install", "--prefix"],
    "compute-sanitizer": ["--tool"],
    "docker": ["--group-add", "--gpus"],
    "helm": ["--set"],
    "pip": ["--isolation"],
    "sd-cli": ["--cfg-scale", "--convert-name", "--diffusion-conv-direct", "--diffusion-fa",
               "--sampling-method", "--type", "--vae-conv-direct"],
}
# The system's words that documents quote after ours.
OUTSIDE_MESSAGES = ["address already in use"]
MOST_BYTES = 1 << 20  # larger files are weights and pictures
MOST_DECISION_LINES = 80
MOST_CELL_CHARACTERS = 600  # a longer text is a section below the table

LINK = re.compile(r"\]\(([^)\s]+)\)")
# The table of a request's fields; each is an option too.
FIELDS = "constexpr SamplingField kFields[]"
FIELD = re.compile(r'\.name = "(\w+)"')
FLAG = re.compile(r"(?<![\w#-])--[a-z][a-z0-9-]*[a-z0-9]")
NAME = re.compile(r"\b(?:RBEE|rbee)_\w+")
SOURCE = re.compile(r"`(\w+\.(?:h|cc|cu|py|sh|cmake))`")
FUNCTION = re.compile(r"`(?:[\w<>]+(?:::|\.|->))*(\w+)\(\)`")
CALLED = re.compile(r"\b(\w+)\(")
LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
LITERALS = re.compile(r'(?:"(?:[^"\\\n]|\\.)*"\s*)+')  # neighbours are one text
DECISION = re.compile(r"docs/decisions/\d{4}-[\w-]+\.md")
DECISION_HEAD = re.compile(r"# \d+\. .+\n\nDate: \d{4}-\d\d-\d\d\. Status: (?:accepted|superseded)\b")
CELL_BORDER = re.compile(r"(?<!\\)\|")
MESSAGE_TABLE = re.compile(r"\| (?:You see|It says) \|")
# In a message: placeholders of values, and prefixes that callers add.
VALUE = re.compile(r"""\w*…|\.\.\.|"[^"]*"|\([^)]*\)?|\b[\w.]*:\d+|\b[\d.,]+\b|^[\w ]+: """)


def heading_anchor(heading):
    """The anchor that GitHub gives a heading."""
    heading = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
    return re.sub(r"[^\w\- ]", "", heading).replace(" ", "-")


class Tree:
    """The names that documents may use."""

    def __init__(self, root):
        self.paths, self.tops, self.documents = set(), set(), {}
        code, programs = [], []
        for folder, names, found in os.walk(root):
            names[:] = [n for n in names if not n.startswith((".", "build", "__"))]
            here = os.path.relpath(folder, root)
            if here == ".":
                self.tops.update(names)
            self.paths.update(os.path.normpath(os.path.join(here, n)) for n in [*names, *found])
            for name in found:
                path = os.path.join(folder, name)
                if os.path.getsize(path) > MOST_BYTES:
                    continue
                with open(path, encoding="utf-8", errors="ignore") as file:
                    text = file.read()
                if name.endswith(".md"):
                    self.documents[os.path.normpath(os.path.join(here, name))] = text
                else:
                    code.append(text)
                if name.endswith((".cc", ".h", ".cu")) and not here.startswith("tests"):
                    programs.append(text)
        self.basenames = {os.path.basename(path) for path in self.paths}
        self.flags = {flag for flags in OUTSIDE_FLAGS.values() for flag in flags}
        self.names, self.functions = set(), set()
        self.literals = "\n".join(
            "".join(LITERAL.findall(run)).replace('\\"', '"')
            for text in programs for run in LITERALS.findall(text)) + "\n".join(OUTSIDE_MESSAGES)
        for text in code:
            self.flags.update(FLAG.findall(text))
            if FIELDS in text:
                self.flags.update("--" + name.replace("_", "-") for name in FIELD.findall(text))
            self.names.update(NAME.findall(text))
            self.functions.update(CALLED.findall(text))
        self.path = re.compile(r"(?<![\w./<>-])((?:" + "|".join(sorted(map(re.escape, self.tops)))
                               + r")/[\w./+-]+)") if self.tops else None

    def anchors(self, document):
        text = re.sub(r"^```.*?^```", "", self.documents[document], flags=re.M | re.S)
        return {heading_anchor(h) for h in re.findall(r"^#+\s+(.*)$", text, flags=re.M)}

    def has(self, path, beside):
        """Whether the path is there, from the root or beside the document. The beginning of a
        name counts: `tests/models/gemma` stands for `gemma3.cc` and others."""
        wanted = {path, os.path.normpath(os.path.join(beside, path))}
        return any(w in self.paths for w in wanted) or any(
            p.startswith(path) and "/" not in p[len(path):] for p in self.paths)


def check_link(tree, document, target):
    if re.match(r"[a-z]+:", target):
        return None
    path, _, anchor = target.partition("#")
    to = os.path.normpath(os.path.join(os.path.dirname(document), path)) if path else document
    if to != "." and to not in tree.paths:
        return f"links to {target}, which is not there"
    if anchor and to in tree.documents and anchor not in tree.anchors(to):
        return f"links to {target}, and {to} has no such heading"
    return None


def check_messages(tree, row):
    """Of a row of a table of messages: each one in its first cell is made of texts of programs."""
    for message in re.findall(r"`([^`]+)`", row.split(" | ")[0]):
        for part in VALUE.split(message):
            part = part.strip(" ;:,")
            if re.search(r"\w[ _]\w", part) and part not in tree.literals:
                yield f"quotes '{part}', which no program says"


def check_cells(row):
    """Of a row of a table: the length of its cells."""
    for cell in CELL_BORDER.split(row):
        if len(cell.strip()) > MOST_CELL_CHARACTERS:
            yield (f"a cell of {len(cell.strip())} characters, the limit is {MOST_CELL_CHARACTERS}: "
                   "move the text below the table")


def check_decision(text):
    """Of a record of a decision: its head and its length."""
    if not DECISION_HEAD.match(text):
        yield "lacks 'Date: YYYY-MM-DD. Status: accepted' (or superseded) below its heading"
    lines = text.count("\n")
    if lines > MOST_DECISION_LINES:
        yield f"{lines} lines, the limit of a decision is {MOST_DECISION_LINES}"


def check_line(tree, document, line):
    for target in LINK.findall(line):
        problem = check_link(tree, document, target)
        if problem:
            yield problem
    line = LINK.sub("]", line)
    for path in tree.path.findall(line) if tree.path else []:
        path = path.rstrip("./")
        if not tree.has(path, os.path.dirname(document)):
            yield f"names {path}, which is not there"
    for flag in FLAG.findall(line):
        if flag not in tree.flags:
            yield f"names the flag {flag}, which no program or script has"
    for name in NAME.findall(line):
        if not any(n.startswith(name) for n in tree.names):
            yield f"names {name}, which no source has"
    for name in FUNCTION.findall(line):
        if name not in tree.functions:
            yield f"names {name}(), which no source has"
    for name in SOURCE.findall(line):
        if name not in tree.basenames and not any(b.endswith(name) for b in tree.basenames):
            yield f"names {name}, and no file is called so"


def check(root):
    """(path, line number, problem) of every document below root."""
    tree = Tree(root)
    for document, text in sorted(tree.documents.items()):
        messages = False
        for problem in check_decision(text) if DECISION.fullmatch(document) else []:
            yield document, 1, problem
        for number, line in enumerate(text.split("\n"), 1):
            messages = bool(MESSAGE_TABLE.match(line)) or messages and line.startswith("|")
            for problem in [*check_line(tree, document, line),
                            *(check_cells(line) if line.startswith("|") else []),
                            *(check_messages(tree, line) if messages else [])]:
                yield document, number, problem
