"""The contents of long reference pages, made of their headings. lint.py compares them with the pages; with --write they are
written anew, below the page's first heading."""

import os
import re

import documents

BEGIN, END = "<!-- contents: lint.py --write -->\n", "<!-- end of the contents -->\n"
FOLDER = "docs/reference"
LONG = 100  # lines; shorter pages show themselves
FEWEST = 3  # sections
BLOCK = re.compile(re.escape(BEGIN) + r".*?" + re.escape(END) + r"\n?", re.DOTALL)
CODE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^(##|###) (.+)$", re.MULTILINE)


def contents(text):
    lines = []
    for level, heading in HEADING.findall(CODE.sub("", text)):
        link = f"[{heading}](#{documents.heading_anchor(heading)})"
        if level == "##" or not lines:
            lines.append(f"- {link}")
        else:
            lines[-1] += (", " if ": [" in lines[-1] else ": ") + link
    return "".join(line + "\n" for line in lines)


def with_contents(text):
    plain = BLOCK.sub("", text)
    sections = [level for level, _ in HEADING.findall(CODE.sub("", plain)) if level == "##"]
    if plain.count("\n") <= LONG or len(sections) < FEWEST:
        return plain
    title, _, rest = plain.partition("\n\n")
    return f"{title}\n\n{BEGIN}{contents(plain)}{END}\n{rest}"


def stale(root, write=False):
    """(path, line, problem) of pages whose contents are not those of their headings."""
    folder = os.path.join(root, FOLDER)
    for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
        path = os.path.join(folder, name)
        with open(path, encoding="utf-8") as file:
            text = file.read()
        wanted = with_contents(text)
        if wanted != text and write:
            with open(path, "w", encoding="utf-8") as file:
                file.write(wanted)
        elif wanted != text:
            yield f"{FOLDER}/{name}", 1, "has other contents than headings; lint.py --write mends it"
