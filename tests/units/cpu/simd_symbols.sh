#!/usr/bin/env bash
# Fails when an object compiled for more than the least instruction set defines a weak symbol: the
# linker may keep that copy for the whole program, which then dies on older processors.
# Usage: simd_symbols.sh LIBRARY
set -euo pipefail
nm -A -C --defined-only "$1" | awk '
  match($0, /[A-Za-z0-9_]+_(avx2|avxvnni|avx512|avx512bf16|amx|neon|dotprod|i8mm)\.cc\.o:/) {
    objects[substr($0, RSTART, RLENGTH)] = 1
    if ($2 ~ /^[wWuVv]$/) { print "weak: " $0; bad = 1 }
  }
  END {
    count = length(objects)
    if (count < 4) { print "only " count " simd objects in the library"; exit 1 }
    exit bad
  }'
