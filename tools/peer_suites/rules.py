"""Parts of a suite that do not apply to our worker, and why: a TOML file beside this one.

    [[not_applicable]]            # skipped
    tests = "unit/test_x.py::test_a"   # or a file, or one case "...::test_a[1]"
    reason = "..."
    small = true                  # of small random models alone, not with --whole

    [[left_out]]                  # the line is taken out of the copy that runs
    file = "unit/test_x.py"
    line = "assert a == b"
    reason = "..."
"""

import os
import tomllib


def read(path):
    with open(path, "rb") as file:
        return tomllib.load(file)


def without_lines(folder, rules):
    """Takes the lines that are left out from the copy of a suite in `folder`."""
    for rule in rules.get("left_out", []):
        path = os.path.join(folder, rule["file"])
        with open(path, encoding="utf-8") as file:
            lines = file.read().split("\n")
        wanted = rule["line"]
        found = [i for i, line in enumerate(lines) if line.strip() == wanted]
        if not found:
            raise SystemExit(f"{rule['file']} has no line {wanted!r}: is it another version?")
        for i in found:
            lines[i] = lines[i].replace(wanted, "pass")
        with open(path, "w", encoding="utf-8") as file:
            file.write("\n".join(lines))


def matches(tests, name):
    """Whether a rule for a file, a class, a test or one of its cases is for this test."""
    return name == tests or name.startswith((f"{tests}::", f"{tests}["))


def applied(rules, whole):
    """The rules that hold where the whole model is served, or a small one."""
    return [rule for rule in rules.get("not_applicable", []) if not (whole and rule.get("small"))]


def mark(items, rules):
    """Skips the tests that are not applicable. For pytest's plugins, where pytest is."""
    import pytest

    for item in items:
        for rule in applied(rules, os.environ.get("RBEE_WHOLE")):
            if matches(rule["tests"], item.nodeid):
                reason = f"not applicable: {rule['reason']}"
                item.add_marker(pytest.mark.skip(reason=reason))
                break
