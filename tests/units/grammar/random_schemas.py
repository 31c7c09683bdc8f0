#!/usr/bin/env python3
"""random_schemas.py SEED COUNT: a JSON list of schemas that combine keywords at random."""

import json
import random
import sys

CONSTS = [None, True, False, 0, 1, 2, -1, 0.5, 3.0, "", "a", "b", "ab", [], [1], {}, {"a": 1}]
NAMES = ["a", "b", "ab", "c"]
PATTERNS = ["^a", "b$", "a", "^[ab]+$", "^.{2}$", "c|^b"]
TYPES = ["integer", "string", "boolean", "null", "number", "object", "array"]


class Maker:
    def __init__(self, seed):
        self.random = random.Random(seed)

    def maybe(self, chance):
        return self.random.random() < chance

    def pick(self, values):
        return self.random.choice(values)

    def leaf(self):
        return self.pick([
            {"type": self.pick(TYPES[:5])},
            {"const": self.pick(CONSTS)},
            {"enum": self.random.sample(CONSTS, 3)},
            {"type": "integer", "minimum": self.random.randint(-3, 3), "maximum": self.random.randint(2, 9)},
            {"type": "string", "maxLength": 2},
            {"type": "string", "pattern": self.pick(PATTERNS)},
            {"pattern": self.pick(PATTERNS)},
            {"multipleOf": 1},
            True,
            False,
        ])

    def object(self, depth):
        out = {"type": "object"} if self.maybe(0.8) else {}
        options = [
            (0.9, "properties", lambda: {x: self.schema(depth) for x in self.random.sample(NAMES, 2)}),
            (0.5, "required", lambda: self.random.sample(NAMES, self.random.randint(1, 2))),
            (0.3, "additionalProperties", lambda: self.schema(depth)),
            (0.2, "patternProperties", lambda: {self.pick(PATTERNS): self.schema(depth)}),
            (0.15, "propertyNames", lambda: self.pick([{"enum": ["a", "b"]}, {"pattern": "^[ab]+$"}, {"maxLength": 1}])),
            (0.2, "minProperties", lambda: self.random.randint(0, 2)),
            (0.2, "maxProperties", lambda: self.random.randint(0, 3)),
            (0.2, "dependentRequired", lambda: {x: self.random.sample(NAMES, self.random.randint(0, 2)) for x in self.random.sample(NAMES, 2)}),
            (0.15, "dependentSchemas", lambda: {self.pick(NAMES): self.schema(depth)}),
            (0.15, "not", lambda: self.schema(depth)),
        ]
        return self.fill(out, options)

    def array(self, depth):
        out = {"type": "array"} if self.maybe(0.8) else {}
        options = [
            (0.8, "items", lambda: self.schema(depth)),
            (0.3, "prefixItems", lambda: [self.schema(depth)]),
            (0.3, "contains", lambda: self.schema(depth)),
            (0.3, "minItems", lambda: self.random.randint(0, 2)),
            (0.4, "maxItems", lambda: self.random.randint(0, 3)),
            (0.2, "uniqueItems", lambda: True),
        ]
        return self.fill(out, options)

    def scalar(self):
        out = {"type": self.pick(["string", "integer", "number", ["integer", "string"], ["string", "null"]])}
        options = [
            (0.3, "pattern", lambda: self.pick(PATTERNS)),
            (0.2, "minLength", lambda: self.random.randint(0, 3)),
            (0.2, "maxLength", lambda: self.random.randint(1, 4)),
            (0.3, "minimum", lambda: self.pick([-2, -0.5, 0, 1, 2.5])),
            (0.3, "exclusiveMaximum", lambda: self.pick([1, 2.5, 3, 7])),
            (0.2, "multipleOf", lambda: self.pick([1, 2, 0.5, 3])),
            (0.4, "not", self.leaf),
        ]
        return self.fill(out, options)

    def logic(self, depth):
        keyword = self.pick(["anyOf", "oneOf", "allOf", "not", "if"])
        if keyword == "not":
            return {"not": self.schema(depth), "type": self.pick(TYPES)}
        if keyword == "if":
            return {name: self.schema(depth) for name in ("if", "then", "else")}
        out = {keyword: [self.schema(depth) for _ in range(self.random.randint(1, 3))]}
        beside = self.schema(depth) if self.maybe(0.3) else {}
        return {**beside, **out} if isinstance(beside, dict) else out

    def fill(self, out, options):
        for chance, keyword, make in options:
            if self.maybe(chance):
                out[keyword] = make()
        return out

    def schema(self, depth):
        if depth == 0 or self.maybe(0.1):
            return self.leaf()
        kind = self.pick([self.object, self.array, self.logic, self.logic, None])
        return self.scalar() if kind is None else kind(depth - 1)


def main():
    maker = Maker(int(sys.argv[1]))
    json.dump([maker.schema(3) for _ in range(int(sys.argv[2]))], sys.stdout)


if __name__ == "__main__":
    main()
