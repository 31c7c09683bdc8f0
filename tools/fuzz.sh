#!/usr/bin/env bash
# Runs every fuzz target for some seconds each. Usage: fuzz.sh [SECONDS]
# Findings are left in build/fuzz/findings.
set -euo pipefail
[ "${1:-}" != --help ] || { sed -n '2,/^[^#]/s/^# //p' "$0"; exit; }
cd "$(dirname "$0")/.."
bash tools/install_deps.sh test
seconds="${1:-60}"
cmake --preset fuzz -DRBEE_TESTS=ON >/dev/null
mkdir -p build/fuzz/findings
for folder in tests/fuzz/*/; do
  name="$(basename "$folder")"
  [ -f "$folder/fuzz.cc" ] || continue
  cmake --build --preset fuzz --target "${name}_fuzz"
  mkdir -p "build/fuzz/corpus/$name"
  echo "== $name, $seconds s"
  "build/fuzz/bin/${name}_fuzz" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 \
    -print_final_stats=1 -artifact_prefix="build/fuzz/findings/$name-" \
    "build/fuzz/corpus/$name" "$folder/seeds" 2>&1 | tail -n 12
done
