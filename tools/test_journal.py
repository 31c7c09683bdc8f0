#!/usr/bin/env python3
"""journal.py over small trees: what it prints, and what --check finds."""

import os
import subprocess
import sys
import tempfile

JOURNAL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "journal.py")
HEAD = "date,check,commit,result\n"
NEW, OLD = '2026-11-22,soak,b2,"3, pass"\n', "2026-11-21,soak,a1,2 pass\n2026-11-20,models,a0,1 pass\n"
PAGE = "# A\n<!-- journal a.csv -->\nstale\n<!-- journal end -->\nafter\n"
PRINTED = ("# A\n<!-- journal a.csv -->\n| Check | Date | Commit | Result |\n| --- | --- | --- | --- |\n"
           "| soak | 2026-11-22 | b2 | 3, pass |\n| models | 2026-11-20 | a0 | 1 pass |\n"
           "<!-- journal end -->\nafter\n")


def run(root, *arguments):
    done = subprocess.run([sys.executable, JOURNAL, *arguments, root], capture_output=True, text=True)
    return done.returncode, done.stdout


def tree(root, data, page=PAGE):
    for name, body in [("docs/journal/a.csv", data), ("docs/a.md", page)]:
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
    with tempfile.TemporaryDirectory() as root:
        rows = [f'2026-11-2{day},"{name}",a,b\n' for day, name in [(3, "f16, 8"), (2, "f16, 16"), (1, "f16, 1"), (1, "bf16, 2")]]
        tree(root, "date,check,rbee,result\n" + "".join(rows), "<!-- journal a.csv in order -->\n<!-- journal end -->\n")
        assert run(root) == (0, "")
        with open(os.path.join(root, "docs/a.md"), encoding="utf-8") as file:
            lines = file.read().split("\n")
        assert lines[1] == "| Check | Date | rbee | Result |", lines
        assert [line[2:].split(" |")[0] for line in lines[3:7]] == ["bf16, 2", "f16, 1", "f16, 8", "f16, 16"], lines
    for data, wanted in [(HEAD + OLD + NEW, "row 4 is newer"), (HEAD + "2026-11-21,soak,,2\n", "row 2 lacks"),
                         (HEAD + "today,soak,a1,2\n", "isoformat"), ("date,check\n", "columns are"),
                         ("check,date,what\n", "columns are")]:
        with tempfile.TemporaryDirectory() as root:
            tree(root, data)
            status, out = run(root, "--check")
            assert status == 1 and wanted in out, (wanted, out)
    print("journal.py: all cases pass")


if __name__ == "__main__":
    main()
