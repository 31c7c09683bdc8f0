#!/usr/bin/env python3
"""Compares docs/reference/kernels.md with the output of `opcheck --table`: operations, implementations in
their order, numbers of cases. How many of them an implementation takes depends on the machine."""

import argparse
import difflib
import re
import subprocess
import sys


def rows(text):
    found = re.findall(r"^\| (\w+) \| (\w+) \| \d+ of (\d+) \|", text, flags=re.M)
    return [f"{op} {implementation}, {cases} cases" for op, implementation, cases in found]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("opcheck", help="the program")
    parser.add_argument("document", help="docs/reference/kernels.md")
    parser.add_argument("--write", action="store_true",
                        help="put the printed table into the document; the words around it are yours to change")
    options = parser.parse_args()
    table = subprocess.run([options.opcheck, "--table"], capture_output=True, text=True, check=True).stdout
    with open(options.document, encoding="utf-8") as file:
        document = file.read()
    if options.write:
        first = re.escape(table.split("\n", maxsplit=1)[0])
        document = re.sub(f"^{first}\n(\\|.*\n)+", lambda _: table.replace("|  |", "| |"), document,
                          flags=re.M)
        with open(options.document, "w", encoding="utf-8") as file:
            file.write(document)
    documented, printed = rows(document), rows(table)
    difference = list(difflib.unified_diff(documented, printed, options.document, "opcheck --table",
                                           lineterm="", n=0))
    print("\n".join(difference) or f"{len(printed)} rows agree")
    return 1 if difference or not printed else 0


if __name__ == "__main__":
    sys.exit(main())
