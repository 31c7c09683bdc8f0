#!/usr/bin/env python3
"""Prints the tables of backends/shared/code_books.h from gguf's Python implementation.

A word is one point of a grid, its digits from the lowest bits up: two bits for each of 8 elements
(IQ1, IQ2) or three bits for each of 4 (IQ3).

Run from the repository root (made the committed file with the versions below):
    python3 -m venv venv && venv/bin/pip install gguf==0.19.0 numpy==2.4.6
    venv/bin/python tools/goldens/make_code_books.py > backends/shared/code_books.h
    clang-format-19 -i backends/shared/code_books.h
"""

import arguments

arguments.read(__name__, __doc__)

import gguf.quants as quants
import numpy as np

HEAD = """#pragma once
// Code books of ggml's IQ1, IQ2 and IQ3 types, made by tools/goldens/make_code_books.py. A word is
// one point: its digits, two bits for each of 8 elements or three bits for each of 4, from the
// lowest bits up. What a digit stands for: code_book_blocks.h.

#include "backends/shared/rb_fn.h"

namespace rbee {
namespace shared {
"""
TAIL = """
}  // namespace shared
}  // namespace rbee
"""
BOOKS = [("kBookIQ2_XXS", quants.IQ2_XXS, 2), ("kBookIQ2_XS", quants.IQ2_XS, 2),
         ("kBookIQ2_S", quants.IQ2_S, 2), ("kBookIQ3_XXS", quants.IQ3_XXS, 3),
         ("kBookIQ3_S", quants.IQ3_S, 3), ("kBookIQ1", quants.IQ1_S, 2)]


def words(quant, bits):
    quant.init_grid()
    points = quant.grid.reshape(quant.grid_shape)
    digits = np.searchsorted(np.array(quant.grid_map), points).astype(np.uint32)
    shifts = np.arange(points.shape[1], dtype=np.uint32) * bits
    return (digits << shifts).sum(axis=1)


def main():
    print(HEAD)
    for name, quant, bits in BOOKS:
        table = words(quant, bits)
        text = ", ".join(f"0x{word:04x}" for word in table)
        print(f"RB_TABLE u16 {name}[{len(table)}] = {{{text}}};")
    print(TAIL)


if __name__ == "__main__":
    main()
