#!/usr/bin/env python3
"""Prints tables of pages from the runs in docs/journal/*.csv, newest first.

The first column of a file is the date, the second says what was checked or measured. A page says where a table goes: a
line `<!-- journal NAME.csv -->`, the table, a line `<!-- journal end -->`. The table has the newest run of each check,
the newest first, or after `NAME.csv in order` sorted by the checks' names, numbers in them as numbers.
Exit status 1 if a page and its data differ (--check), or data is wrong."""

import argparse
import csv
import datetime
import os
import re
import sys

BLOCK = re.compile(r"(<!-- journal ([\w-]+\.csv)( in order)? -->\n)(.*?)(<!-- journal end -->)", re.S)


def runs(path):
    """The rows of a file; ValueError for a wrong one."""
    with open(path, encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file)
        if not reader.fieldnames or reader.fieldnames[0] != "date" or len(reader.fieldnames) < 3:
            raise ValueError(f"{path}: columns are {reader.fieldnames}, not a date, a check and more")
        rows = list(reader)
    newest = None
    for number, row in enumerate(rows, 2):
        if None in row or not all(row.values()):
            raise ValueError(f"{path}: row {number} lacks a value or has too many")
        date = datetime.date.fromisoformat(row["date"])
        if newest and date > newest:
            raise ValueError(f"{path}: row {number} is newer than the one above it")
        newest = date
    return rows


def heading(name):
    """With a capital, unless the first word is a program's or a type's name, such as llama.cpp or f16."""
    first = name.split(" ")[0]
    return name[:1].upper() + name[1:] if first.isalpha() and first.islower() and first != "rbee" else name


def in_order(check):
    """A key that puts 8 before 16, also within a name."""
    return [(not part.isdigit(), int(part) if part.isdigit() else 0, part.lower())
            for part in re.split(r"(\d+)", check) if part]


def table(rows, sort=False):
    """The newest of each check."""
    names = list(rows[0])
    date, check = names[:2]
    order = [check, date, *names[2:]]
    newest = {}
    for row in rows:
        newest.setdefault(row[check], row)
    chosen = sorted(newest, key=in_order) if sort else newest
    lines = [[heading(name) for name in order], ["---"] * len(order),
             *([row[name] for name in order] for row in map(newest.get, chosen))]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def filled(text, journal):
    """The text of a page with its tables as the data has them."""
    def fill(found):
        head, name, sort, _, end = found.groups()
        return head + table(runs(os.path.join(journal, name)), bool(sort)) + end
    return BLOCK.sub(fill, text)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, compare the pages with the data")
    parser.add_argument("root", nargs="?", default=".", help="of the tree; this folder")
    options = parser.parse_args()
    check, root = options.check, options.root
    failed = False
    for folder, _, names in os.walk(os.path.join(root, "docs")):
        for name in sorted(n for n in names if n.endswith(".md")):
            path = os.path.join(folder, name)
            with open(path, encoding="utf-8") as file:
                text = file.read()
            try:
                wanted = filled(text, os.path.join(root, "docs", "journal"))
            except (OSError, ValueError) as error:
                print(f"{path}: {error}")
                failed = True
                continue
            if wanted == text:
                continue
            if check:
                print(f"{path}: its tables are not those of docs/journal; run tools/journal.py")
                failed = True
            else:
                with open(path, "w", encoding="utf-8") as file:
                    file.write(wanted)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
