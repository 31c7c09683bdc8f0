#!/usr/bin/env python3
"""Has CTest run tests that fail in several ways, and expects failed_tests.py to say how."""

import os
import subprocess
import sys
import tempfile

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "failed_tests.py")

# For each test: its output, its exit status, texts that must be printed and that must not.
TESTS = {
    "good_test": ("all is well: Failure\n", 0, [], ["all is well"]),
    "sanitizer_test": (
        "[ RUN      ] A.First\n" + "[       OK ] A.Other\n" * 200 + "[ RUN      ] A.Second\n"
        "==7==ERROR: AddressSanitizer: heap-use-after-free on address 0x1\n    #0 in culprit()\n",
        1,
        ["A.Second", "heap-use-after-free", "culprit()"],
        ["A.First", "A.Other\n[       OK ] A.Other"],
    ),
    "expectation_test": (
        "[ RUN      ] B.First\nfile.cc:3: Failure\nExpected equality\n" + "filler\n" * 50
        + "[  FAILED  ] B.First (1 ms)\n",
        1,
        ["B.First", "Expected equality", "...", "FAILED"],
        ["filler\n" * 20],
    ),
    "silent_test": ("one\n" * 100 + "the end\n", 3, ["the end"], ["one\n" * 30]),
    "chatty_test": ("x.cc:1: Failure\n" * 500, 1, ["LastTest.log"], ["x.cc:1: Failure\n" * 100]),
}


def main():
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        if subprocess.run([sys.executable, SCRIPT, folder], check=True, capture_output=True).stdout:
            wrong.append("without a run something is told")
        with open(os.path.join(folder, "CTestTestfile.cmake"), "w", encoding="utf-8") as file:
            for name, (text, status, _, _) in TESTS.items():
                output = os.path.join(folder, name + ".txt")
                with open(output, "w", encoding="utf-8") as out:
                    out.write(text)
                command = f'"/bin/sh" "-c" "cat {output}; exit {status}"'
                file.write(f"add_test({name} {command})\n")
        subprocess.run(["ctest", "-j2"], cwd=folder, check=False, capture_output=True)
        told = subprocess.run(
            [sys.executable, SCRIPT, folder], check=True, capture_output=True, text=True
        ).stdout
    parts = {part.split(" failed\n", 1)[0]: part for part in told.split("\n== ")[1:]}
    if set(parts) != {name for name, test in TESTS.items() if test[1]}:
        wrong.append(f"these are told: {sorted(parts)}")
    for name, part in parts.items():
        _, _, wanted, unwanted = TESTS[name]
        wrong += [f"{name}: {text!r} is missing" for text in wanted if text not in part]
        wrong += [f"{name}: {text[:40]!r} is told" for text in unwanted if text in part]
    print("\n".join(wrong) if wrong else "failed_tests.py: all told")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
