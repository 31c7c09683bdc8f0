#!/usr/bin/env python3
"""random_patterns.py SEED COUNT: a JSON list of regular expressions that look ahead or have ^, $ and \\b,
made at random, with the texts that Python's `re` says match them as a whole, and those of which some part does."""

import itertools
import json
import random
import re
import sys

TEXTS = ["".join(text) for length in range(6) for text in itertools.product("a-", repeat=length)]


class Maker:
    def __init__(self, seed):
        self.random = random.Random(seed)

    def pick(self, *ways):
        return self.random.choice(ways)

    def choice(self, depth, ends=False):
        ways = [self.sequence(depth) + (self.pick("", "", "$") if ends else "")
                for _ in range(self.pick(1, 1, 2))]
        return "|".join(ways)

    def sequence(self, depth):
        return "".join(self.part(depth) for _ in range(self.pick(0, 1, 2, 2, 3)))

    def part(self, depth):
        kind = self.random.random()
        if depth > 0 and kind < 0.25:
            return f"(?{self.pick('=', '!')}{self.choice(depth - 1, ends=True)})"
        if depth > 0 and kind < 0.5:
            return f"(?:{self.choice(depth - 1)}){self.pick('', '*', '+', '?', '{2}', '{1,2}')}"
        if kind > 0.9:
            return self.pick("^", "$", r"\b", r"\b", r"(?!\b)")
        return self.pick("a", "-", ".", "[a-]", "a*", "-+", "a?", "-{2}", "(?i:A)", r"\w", r"\W")


def main():
    maker = Maker(int(sys.argv[1]))
    out, seen = [], set()
    while len(out) < int(sys.argv[2]):
        pattern = maker.pick("", "", "^") + maker.sequence(3)
        if not re.search(r"\(\?[=!]|[$^]|\\b", pattern) or pattern in seen:
            continue
        seen.add(pattern)
        known = re.compile(pattern)
        out.append({"pattern": pattern,
                    "whole": [text for text in TEXTS if known.fullmatch(text)],
                    "anywhere": [text for text in TEXTS if known.search(text)]})
    json.dump({"texts": TEXTS, "patterns": out}, sys.stdout)


main()
