#!/usr/bin/env bash
# Line coverage of rbee/, backends/, server/ and workers/ by the tests. Prints a table and the total.
# Usage: coverage.sh
set -euo pipefail
[ "${1:-}" != --help ] || { sed -n '2,/^[^#]/s/^# //p' "$0"; exit; }
cd "$(dirname "$0")/.."
bash tools/install_deps.sh test
command -v gcovr >/dev/null || { apt-get update -qq && apt-get install -y -qq gcovr >/dev/null; }
cmake --preset coverage >/dev/null
cmake --build --preset coverage
find build/coverage -name '*.gcda' -delete
ctest --preset coverage
gcovr --root . --object-directory build/coverage -j "$(nproc)" --exclude-unreachable-branches \
  --filter 'rbee/' --filter 'backends/' --filter 'server/' --filter 'workers/' \
  --txt build/coverage/coverage.txt --print-summary
echo "the table by file is in build/coverage/coverage.txt"
