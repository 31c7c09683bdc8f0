#!/usr/bin/env bash
# clang-tidy over all sources, or over those that differ from a revision. Usage: tidy.sh [REVISION]
set -euo pipefail
cd "$(dirname "$0")/.."
bash tools/install_deps.sh test
cmake --preset cpu -DRBEE_TESTS=ON >/dev/null
if [ $# -gt 0 ]; then
  mapfile -t files < <(git diff --name-only --diff-filter=d "$1" -- '*.cc')
else
  mapfile -t files < <(git ls-files '*.cc')
fi
# Fuzz targets need clang's own flags, SIMD files intrinsics that differ between compilers.
kept=()
for file in "${files[@]}"; do
  case "$file" in tests/* | bench/* | */simd/*) ;; *) kept+=("$file") ;; esac
done
[ ${#kept[@]} -eq 0 ] && { echo "tidy: nothing to check"; exit 0; }
printf '%s\0' "${kept[@]}" | xargs -0 -P "$(nproc)" -n 4 clang-tidy-19 --quiet -p build/cpu
echo "tidy: ${#kept[@]} files without findings"
