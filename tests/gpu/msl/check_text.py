#!/usr/bin/env python3
"""Checks the printed text of kernels: every kernel of the IR is there, and of AMD's code objects where they were built, but
those that share too much memory; the words are allowed ones; the memory that a threadgroup shares fits; clang reads it as C++14 with address spaces as types.

    check_text.py FOLDER --stdlib tests/gpu/fake [--objects build/dev/backends/rocm]

FOLDER has FAMILY.metal and FAMILY.ll of each family. Ends with 77 where there is no clang 19 or later."""
import argparse
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "tools/metal"), str(ROOT / "tests/gpu/code_objects")]

import metadata
from words import KEYWORDS, WORD, code_only, complaints

MOST_SHARED = 32768
LEFT_OUT = re.compile(r"^// left out: (\w+) shared (\d+)$", re.M)
HEAD = re.compile(r"^// kernel (\w+) threads (\d+) shared (\d+)$", re.M)


def kernels_of_text(text):
    """name -> (bytes of shared memory, text)"""
    heads = list(HEAD.finditer(text))
    ends = [head.start() for head in heads[1:]] + [len(text)]
    return {head[1]: (int(head[3]), text[head.end():end]) for head, end in zip(heads, ends)}


def kernels_of_ir(path):
    return set(re.findall(r"^define .*amdgpu_kernel void @(\w+)\(", path.read_text(encoding="utf-8"), re.M))


def missing(family, text, folder, objects):
    """Kernels that the text lacks without saying so, or lacks without a reason."""
    printed, left_out = set(kernels_of_text(text)), dict(LEFT_OUT.findall(text))
    found = [f"{family}: {name} is left out with {size} bytes" for name, size in left_out.items()
             if int(size) <= MOST_SHARED]
    there = printed | set(left_out)
    found += [f"{family}: no text of {name}" for name in sorted(kernels_of_ir(folder / f"{family}.ll") - there)]
    image = objects and objects / f"{family}.gfx1100.co"
    if image and image.exists():
        of_image = {kernel[".name"]: kernel[".group_segment_fixed_size"]
                    for kernel in metadata.kernels(image.read_bytes())}
        if set(of_image) != there:
            found.append(f"{family}: AMD's code has other kernels: {sorted(set(of_image) ^ there)[:5]}")
        found += [f"{family}: {name} is left out, but AMD's takes {of_image[name]} bytes" for name in left_out
                  if of_image.get(name, 0) <= MOST_SHARED]
    return found


def syntax(path, arguments):
    """What clang says of a family's text."""
    command = [arguments.clang, "-std=c++14", "-x", "c++", "-pedantic-errors", "-DRB_SPACES", "-fsyntax-only",
               "-isystem", arguments.stdlib, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    said = [line for line in done.stderr.splitlines() if ": error: " in line or ": warning: " in line]
    return said or ([done.stderr] if done.returncode else [])


def check_family(path, arguments):
    folder = Path(arguments.folder)
    text = path.read_text(encoding="utf-8")
    kernels = kernels_of_text(text)
    head = text[:HEAD.search(text).start()] if kernels else ""
    found = [f"{path.stem}: the head's word {word}" for word in sorted(KEYWORDS & set(WORD.findall(code_only(head))))]
    found += missing(path.stem, text, folder, arguments.objects and Path(arguments.objects))
    for name, (shared, body) in kernels.items():
        found += [f"{name}: {what}" for what in complaints(name, body)]
        if shared > MOST_SHARED:
            found.append(f"{name}: {shared} bytes of shared memory, the limit is {MOST_SHARED}")
    return len(kernels), found + syntax(path, arguments)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", help="the printed text and its IR")
    parser.add_argument("--stdlib", required=True, help="the folder of a metal_stdlib for clang")
    parser.add_argument("--objects", help="AMD's code objects")
    parser.add_argument("--clang", default="clang++-19")
    arguments = parser.parse_args()
    if shutil.which(arguments.clang) is None:
        print(f"skipped: no {arguments.clang}")
        return 77
    paths = sorted(Path(arguments.folder).glob("*.metal"))
    if not paths:
        print(f"no text in {arguments.folder}")
        return 1
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(lambda path: check_family(path, arguments), paths))
    found = [line for _, lines in results for line in lines]
    for line in found[:50]:
        print(line)
    print(f"{sum(n for n, _ in results)} kernels of {len(paths)} families, {len(found)} findings")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
