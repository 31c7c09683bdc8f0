#!/usr/bin/env bash
# Builds the tree for arm64 Linux and runs its tests by qemu on three processors, one for each level of kernels:
# cortex-a72 (neon), cortex-a76 (dotprod) and max without SVE (i8mm). Takes hours; CI runs tests/arm64 in minutes.
# On Debian 12, after tools/install_deps.sh test. Usage: test_arm64.sh [OPERATION...]: opcheck of these alone, else all
set -euo pipefail
[ "${1:-}" != --help ] || { sed -n '2,/^[^#]/s/^# //p' "$0"; exit; }
cd "$(dirname "$0")/.."

bash tools/arm64_root.sh
cmake --preset arm64-cross >/dev/null
if [ $# -gt 0 ]; then targets=(opcheck); else targets=(all); fi
cmake --build --preset arm64-cross --target "${targets[@]}"
echo "commit $(git rev-parse --short HEAD)"

status=0
for processor in cortex-a72 cortex-a76 max,sve=off; do
  export QEMU_CPU=$processor RBEE_TEST_ARM_CPU=$processor
  for operation in "${@:-all}"; do
    printf '\n== %s: opcheck %s\n' "$processor" "$operation"
    qemu-aarch64 -L build/arm64-root build/arm64-cross/bin/opcheck "$operation" --summary || status=1
  done
  [ $# -eq 0 ] || continue
  printf '\n== %s: ctest\n' "$processor"
  # Servers have time limits that an emulator does not keep; opcheck ran the case tables.
  ctest --preset arm64-cross -L '^(units|ops|models|text)$' -E '^op_cases_test' || status=1
done
exit "$status"
