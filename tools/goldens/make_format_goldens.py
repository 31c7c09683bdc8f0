#!/usr/bin/env python3
"""Prints texts of JSON schema's formats, made from a few by changes at random, with what the format checkers of
Python's jsonschema say of them.

Usage: make_format_goldens.py > tests/units/grammar/data/formats.json
Needs `pip install 'jsonschema[format]'` (4.26.0 made the committed file).
Left out: email and idn-email, of which jsonschema asks for an @ alone; duration, uuid and uri-template, where
it takes more than the RFCs do; relative-json-pointer, where it refuses numbers such as 100."""

import json
import random
import sys

import arguments

arguments.read(__name__, __doc__)

from jsonschema import Draft202012Validator

SEEDS = {
    "date": ["2024-02-29", "1999-12-31", "2023-02-28", "2000-01-01"],
    "time": ["12:30:45Z", "23:59:59.123+05:30", "00:00:00-00:00", "08:05:09z"],
    "date-time": ["2024-02-29T12:30:45Z", "1985-04-12T23:20:50.52Z", "1996-12-19T16:39:57-08:00"],
    "hostname": ["www.example.com", "a-b.c", "xn--bcher-kva.example", "a1.b2.c3.d4.e5"],
    "ipv4": ["192.168.0.1", "0.0.0.0", "255.255.255.255", "10.20.30.40"],
    "ipv6": ["::1", "2001:db8::8a2e:370:7334", "::ffff:1.2.3.4", "1:2:3:4:5:6:7:8", "fe80::", "1::2:3"],
    "uri": ["http://example.com/a/b?c=d#e", "mailto:a@b.c", "urn:isbn:0451450523", "file:///etc/hosts",
            "https://u:p@h:8080/%20", "ftp://[::1]:21/x", "tel:+1-816-555-1212", "a:", "http://[v7.a]/"],
    "uri-reference": ["/a/b", "../x?y#z", "//host/p", "#frag", "a/b:c", "?q", "http://a/b", "./a:b"],
    "iri": ["http://\u00e9xample.com/\u4e2d\u6587?q=\u00fc#\u00df", "urn:\u03b1", "http://a/b"],
    "iri-reference": ["/\u4e2d", "\u00e9/b", "//\u00e9/p", "#\u00e4", "http://a/\u00f6"],
    "json-pointer": ["/a/b", "", "/a~0b/~1", "/0/ /\"", "/\u00e9"],
    "idn-hostname": ["b\u00fccher.example", "\u4e2d\u6587.com", "\ud55c\uad6d.kr", "a.b"],
    "regex": ["^[a-z]+$", "(a|b)*c?", "\\d{3}-\\d{4}", "(?:x(?=y))", "[^0-9]+?", "a{2,}", "\\bword\\b", "(?!a)."],
}
EACH = 60
EXTRA = "aZ09.-:/%#?@[]{}~ _+,*\\|^$()=!\u00e9\u4e2d\"'"


def change(rng, text, other):
    at = rng.randrange(len(text) + 1)
    kind = rng.randrange(5)
    if kind == 0:
        return text[:at] + text[at + 1:]
    if kind == 1:
        return text[:at] + rng.choice(EXTRA) + text[at:]
    if kind == 2:
        return text[:at] + rng.choice(EXTRA) + text[at + 1:]
    if kind == 3:
        end = rng.randrange(len(text) + 1)
        return text[:at] + text[min(at, end):max(at, end)] + text[at:]
    return text[:at] + other[rng.randrange(len(other) + 1):]


def make(name, seeds):
    rng = random.Random(name)
    validator = Draft202012Validator({"format": name}, format_checker=Draft202012Validator.FORMAT_CHECKER)
    out = {"valid": list(seeds), "invalid": []}
    seen = set(seeds)
    for text in seeds:
        assert validator.is_valid(text), (name, text)
    for _ in range(100_000):
        start = rng.choice(out["valid"])
        text = change(rng, start, rng.choice(seeds))[:80]
        if text in seen:
            continue
        seen.add(text)
        kind = "valid" if validator.is_valid(text) else "invalid"
        if len(out[kind]) < EACH:
            out[kind].append(text)
    return out


def main():
    made = {name: make(name, seeds) for name, seeds in SEEDS.items()}
    json.dump(made, sys.stdout, ensure_ascii=True, indent=0, separators=(",", ":"))
    print()


if __name__ == "__main__":
    main()
