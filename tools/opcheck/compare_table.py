#!/usr/bin/env python3
"""Compares docs/reference/kernels.md with the output of `opcheck --table`: operations, implementations in
their order, numbers of cases. How many of them an implementation takes depends on the machine. With
--write the document gets the printed table; the words around it are yours to change.
Usage: compare_table.py OPCHECK DOCUMENT [--write]"""

import difflib
import re
import subprocess
import sys


def rows(text):
    found = re.findall(r"^\| (\w+) \| (\w+) \| \d+ of (\d+) \|", text, flags=re.M)
    return [f"{op} {implementation}, {cases} cases" for op, implementation, cases in found]


def main():
    table = subprocess.run([sys.argv[1], "--table"], capture_output=True, text=True, check=True).stdout
    with open(sys.argv[2], encoding="utf-8") as file:
        document = file.read()
    if "--write" in sys.argv[3:]:
        first = re.escape(table.split("\n", maxsplit=1)[0])
        document = re.sub(f"^{first}\n(\\|.*\n)+", lambda _: table.replace("|  |", "| |"), document,
                          flags=re.M)
        with open(sys.argv[2], "w", encoding="utf-8") as file:
            file.write(document)
    documented, printed = rows(document), rows(table)
    difference = list(difflib.unified_diff(documented, printed, sys.argv[2], "opcheck --table",
                                           lineterm="", n=0))
    print("\n".join(difference) or f"{len(printed)} rows agree")
    return 1 if difference or not printed else 0


if __name__ == "__main__":
    sys.exit(main())
