#!/usr/bin/env python3
"""Prints the complaints of the tests that failed in CTest's last run in a build folder: a
long run ends with it."""

import argparse
import os
import re

# First lines of failures by GoogleTest, the sanitizers, the C++ library and Python.
COMPLAINT = re.compile(
    r": Failure$|: error: |ERROR: \w+Sanitizer|WARNING: ThreadSanitizer|runtime error: |"
    r"^terminate called|^\[  FAILED  \]|Traceback \(most recent|C\+\+ exception with description|"
    r"[Aa]ssertion.*failed"
)
SHOWN_BEHIND = 14  # lines
SHOWN_IN_ALL = 80  # of a test
SHOWN_AT_THE_END = 20  # where there is no complaint
RULE = "-" * 58


def failed_in(folder):
    """Names of the tests that failed, or None when CTest has none on record."""
    try:
        with open(os.path.join(folder, "LastTestsFailed.log"), encoding="utf-8") as file:
            return [line.strip().split(":", 1)[1] for line in file if ":" in line]
    except FileNotFoundError:
        return None


def outputs_in(folder):
    """Each test's output, by its name."""
    with open(os.path.join(folder, "LastTest.log"), encoding="utf-8", errors="replace") as file:
        text = file.read()
    out = {}
    for match in re.finditer(
        rf"^\d+/\d+ Test: (.+?)\n.*?^Output:\n{RULE}\n(.*?)^<end of output>$", text, re.M | re.S
    ):
        out[match.group(1)] = match.group(2).splitlines()
    return out


def complaints(lines):
    """Of a test's output the lines that matter."""
    shown = []
    last = -1
    for at, line in enumerate(lines):
        if not COMPLAINT.search(line):
            continue
        first = max(at - 1, last + 1)  # one before: often the name of the check
        end = min(at + 1 + SHOWN_BEHIND, len(lines))
        if first >= end:
            continue
        if shown and first > last + 1:
            shown.append("...")
        shown += lines[first:end]
        last = end - 1
    if not shown:
        shown = lines[-SHOWN_AT_THE_END:]
    if len(shown) > SHOWN_IN_ALL:
        shown = shown[:SHOWN_IN_ALL] + ["... and more, in Testing/Temporary/LastTest.log"]
    return shown


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build", help="the folder where CTest ran")
    folder = os.path.join(parser.parse_args().build, "Testing", "Temporary")
    failed = failed_in(folder)
    if not failed:
        return
    outputs = outputs_in(folder)
    for name in failed:
        print(f"\n== {name} failed")
        print("\n".join(complaints(outputs.get(name, ["(it printed nothing that was kept)"]))))


if __name__ == "__main__":
    main()
