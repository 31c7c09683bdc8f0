#!/usr/bin/env python3
"""journal.py over small trees: what it prints, and what --check finds."""

import os
import subprocess
import sys
import tempfile

JOURNAL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "journal.py")
HEAD = "date,commit,machine,what,result\n"
NEW, OLD = '2026-11-22,b2,H200,"f, g",3 pass\n', "2026-11-21,a1,H100,f,2 pass\n"
PAGE = "# A\n<!-- journal a.csv 1 -->\nstale\n<!-- journal end -->\nafter\n"
PRINTED = ("# A\n<!-- journal a.csv 1 -->\n| Date | Commit | Machine | What | Result |\n"
           "| --- | --- | --- | --- | --- |\n| 2026-11-22 | b2 | H200 | f, g | 3 pass |\n"
           "<!-- journal end -->\nafter\n")


def run(root, *arguments):
    done = subprocess.run([sys.executable, JOURNAL, *arguments, root], capture_output=True, text=True)
    return done.returncode, done.stdout


def tree(root, data):
    for name, body in [("docs/journal/a.csv", data), ("docs/a.md", PAGE)]:
        os.makedirs(os.path.dirname(os.path.join(root, name)), exist_ok=True)
        with open(os.path.join(root, name), "w", encoding="utf-8") as file:
            file.write(body)


def main():
    with tempfile.TemporaryDirectory() as root:
        tree(root, HEAD + NEW + OLD)
        status, out = run(root, "--check")
        assert status == 1 and "are not those of docs/journal" in out, out
        assert run(root) == (0, "")
        with open(os.path.join(root, "docs/a.md"), encoding="utf-8") as file:
            assert file.read() == PRINTED
        assert run(root, "--check") == (0, "")
    for data, wanted in [(HEAD + OLD + NEW, "row 3 is newer"), (HEAD + "2026-11-21,a1,,f,2\n", "row 2 lacks"),
                         (HEAD + "today,a1,H200,f,2\n", "isoformat"), ("date,what\n", "columns are")]:
        with tempfile.TemporaryDirectory() as root:
            tree(root, data)
            status, out = run(root, "--check")
            assert status == 1 and wanted in out, (wanted, out)
    print("journal.py: all cases pass")


if __name__ == "__main__":
    main()
