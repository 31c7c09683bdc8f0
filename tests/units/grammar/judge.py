#!/usr/bin/env python3
"""judge.py FILE: FILE is a JSON list of {"schema" or "regex": ..., "texts": [...]}; with "names_repeat"
texts of objects whose names come twice are left out. Exit status 0 when every text fits, 77 without
the package jsonschema."""

import json
import re
import sys

try:
    from jsonschema import Draft202012Validator
except ImportError:
    sys.exit(77)


class RepeatedName(Exception):
    pass


def unique(pairs):
    names = [name for name, _ in pairs]
    if len(set(names)) != len(names):
        raise RepeatedName
    return dict(pairs)


def fault(entry, text):
    """Why the text is not valid; None if it is."""
    if "regex" in entry:
        fits = re.fullmatch(entry["regex"], text, re.ASCII)
        return None if fits else "no match"
    try:
        value = json.loads(text, object_pairs_hook=unique)
    except RepeatedName:
        return None if entry.get("names_repeat") else "a name occurs twice"
    except ValueError as error:
        return str(error)
    validator = Draft202012Validator(entry["schema"], format_checker=Draft202012Validator.FORMAT_CHECKER)
    error = next(validator.iter_errors(value), None)
    return error.message if error else None


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        work = json.load(file)
    faults = 0
    for entry in work:
        for text in entry["texts"]:
            why = fault(entry, text)
            if why:
                faults += 1
                print(json.dumps(entry.get("schema", entry.get("regex"))), repr(text), why)
    print(sum(len(entry["texts"]) for entry in work), "texts,", faults, "faults")
    return 1 if faults or not work else 0


if __name__ == "__main__":
    sys.exit(main())
