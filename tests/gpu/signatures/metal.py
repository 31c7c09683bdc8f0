#!/usr/bin/env python3
"""Compares backends/metal/metal_messages.h with Apple's headers, as PyObjC's metadata tells them (read
as data, never run). Exit status 77, and a line that says so, where the metadata is not found.
Usage: metal.py METAL_MESSAGES_H FILE_OF_METADATA"""

import ast
import os
import re
import sys

TYPES = {"void": "v", "bool": "Z", "Id": "@", "int64_t": "q", "uint64_t": "Q", "uint8_t": "C", "double": "d",
         "const char*": "*", "void*": "^v", "const void*": "^v", "Id*": "^@", "const Id*": "^@",
         "MTLSize": "{MTLSize=QQQ}", "NSRange": "{_NSRange=QQ}"}
# PyObjC's own letter for a byte that is a number.
SAME = {"z": "C"}
# What the metadata does not hold, and why: plain properties, and Foundation's methods that need no words.
NOT_TOLD = {
    "setLanguageVersion:": "a plain property of MTLCompileOptions (NSUInteger)",
    "setUrl:": "a plain property of MTLBinaryArchiveDescriptor (NSURL)",
    "setComputeFunction:": "a plain property of MTLComputePipelineDescriptor (MTLFunction)",
    "setBinaryArchives:": "a plain property of MTLComputePipelineDescriptor (NSArray)",
    "fileURLWithPath:": "NSURL's, of Foundation",
    "arrayWithObject:": "NSArray's, of Foundation",
    "new": "NSObject's",
    "stringWithUTF8String:": "NSString's, of Foundation",
    "UTF8String": "NSString's, of Foundation",
    "localizedDescription": "NSError's, of Foundation",
    "code": "NSError's, of Foundation",
    "objectAtIndex:": "NSArray's, of Foundation",
    "processInfo": "NSProcessInfo's, of Foundation",
    "operatingSystemVersionString": "NSProcessInfo's, of Foundation",
}
# The metadata keeps one entry for protocols that share a name.
SHARED_NAME = {"status": ("q", "MTLIOCommandBuffer's is an NSInteger; MTLCommandBuffer's is an NSUInteger")}

ENTRY = re.compile(r'F\(\s*(\w+),\s*"(\+?)(\w+)",\s*"([\w:]+)",\s*(\w+(?:\s+\w+)*\*?),\s*\(([^()]*)\)\)')
VALUE = re.compile(r"inline constexpr \w+ k\w+ = (\d+); *// (.*)")


def table_of(text):
    """[(receiver, selector, [result, arguments…])] with encoded types."""
    text = re.sub(r"\\\n", " ", text)
    out = []
    for _, _, receiver, selector, result, parameters in ENTRY.findall(text):
        names = [result, *(p.strip() for p in parameters.split(",") if p.strip())]
        out.append((receiver, selector, [TYPES[name] for name in names]))
    return out


def metadata_of(text):
    """{(class, selector): entry}; protocols are filed under NSObject."""
    out = {}
    for node in ast.walk(ast.parse(text)):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and len(node.args) == 3):
            continue
        try:
            owner, selector, entry = (ast.literal_eval(arg) for arg in node.args)
        except ValueError:
            continue
        if isinstance(owner, bytes) and isinstance(entry, dict):
            out[owner.decode(), selector.decode()] = entry
    return out


def type_in(entry):
    kind = entry.get("type", "")
    kind = kind.decode() if isinstance(kind, bytes) else kind
    return SAME.get(kind, kind)


def differences(receiver, selector, types, metadata):
    if selector.count(":") != len(types) - 1:
        yield f"{selector} has {len(types) - 1} arguments here"
    entry = metadata.get(("NSObject", selector)) or metadata.get((receiver, selector))
    if entry is None:
        if selector not in NOT_TOLD:
            yield f"{receiver} has no {selector}"
        return
    if selector in NOT_TOLD:
        yield f"{selector} is told now: take it from NOT_TOLD"
    arguments = entry.get("arguments", {})
    told = [entry.get("retval", {}), *(arguments.get(i + 2, {}) for i in range(len(types) - 1))]
    for place, (ours, theirs) in enumerate(zip(types, map(type_in, told))):
        if theirs == SHARED_NAME.get(selector, ("",))[0]:
            continue
        if theirs and ours != theirs:
            yield f"{selector}: {'result' if place == 0 else f'argument {place}'} is {ours} here, {theirs} there"


def wrong_values(text, metadata_text):
    known = dict(re.findall(r"\b(MTL\w+)@(-?\d+)", metadata_text))
    for value, comment in VALUE.findall(text):
        names = re.findall(r"MTL\w+", comment)
        missing = [name for name in names if name not in known]
        if missing or not names:
            yield f"the value {value} names {', '.join(missing) or 'nothing of Apple'}, which the metadata lacks"
        elif sum(int(known[name]) for name in names) != int(value):
            yield f"{' + '.join(names)} is not {value}"


def main():
    header, source = sys.argv[1:]
    if not os.path.exists(source):
        print(f"skipped: no {source}; tools/get_vendor_headers.sh brings it")
        return 77
    with open(header, encoding="utf-8") as file:
        text = file.read()
    with open(source, encoding="utf-8") as file:
        metadata_text = file.read()
    table, metadata = table_of(text), metadata_of(metadata_text)
    entries = len(re.findall(r"F\(\w+, ", re.sub(r"\\\n\s*", " ", text)))
    problems = [f"{entries} messages, of which {len(table)} were read"] if entries != len(table) else []
    for receiver, selector, types in table:
        problems += differences(receiver, selector, types, metadata)
    problems += wrong_values(text, metadata_text)
    for problem in problems:
        print(problem)
    print(f"{len(table)} messages compared, of which {len(NOT_TOLD)} are not in the metadata")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
