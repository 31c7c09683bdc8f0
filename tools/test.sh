#!/usr/bin/env bash
# Builds and runs every test: formatting, lint, the tests under ASan and UBSan, then of the Release
# build those whose outcome optimised arithmetic or time may change. Usage: test.sh [ctest arguments]
set -euo pipefail
[ "${1:-}" != --help ] || { sed -n '2,/^[^#]/s/^# //p' "$0"; exit; }
cd "$(dirname "$0")/.."
step() { printf '\n== %s\n' "$1"; }
# A preset's tests; what those that fail complain of is told again at the end.
run_tests() {
  local status=0
  ctest --preset "$@" || status=$?
  if [ "$status" -ne 0 ]; then
    python3 tools/failed_tests/failed_tests.py "build/$1"
    exit "$status"
  fi
}

step "Packages"
bash tools/install_deps.sh test

# Without them the tests of signatures, of NVIDIA's machine code, for macOS and with other people's
# clients, that need them, say that they are skipped.
bash tools/get_vendor_headers.sh || true
bash tools/get_cuda_readers.sh || true
bash tools/get_zig.sh || true
bash tools/get_test_clients.sh || true

step "Format"
git ls-files -z '*.h' '*.cc' '*.cu' '*.mm' | xargs -0 clang-format-19 --dry-run -Werror

step "Lint"
python3 tools/lint/test_lint.py
python3 tools/lint/lint.py

step "Build with ASan and UBSan"
# Kernels take long, so they are compiled for one CUDA architecture and for four of AMD's. The others
# compile in tools/kernel_resources.py; RBEE_TEST_ROCM_ARCHS names what these tests run over instead,
# gfx90a and gfx942 among them. The host side runs over fake drivers. An older build folder may
# remember an older clang.
archs=${RBEE_TEST_ROCM_ARCHS:-gfx90a;gfx942;gfx1100;gfx1201}
gpu=(-U RBEE_HIP_CLANG -DRBEE_ROCM=ON "-DRBEE_ROCM_ARCHS=$archs")
if command -v nvcc >/dev/null || [ -x /usr/local/cuda/bin/nvcc ]; then
  gpu+=(-DRBEE_CUDA=ON -DRBEE_CUDA_ARCHS=90a)
else
  echo "no nvcc: CUDA kernels are left out, and with them the tests over NVIDIA's fake driver"
fi
cmake --preset dev -DRBEE_METAL=ON "${gpu[@]}" >/dev/null
cmake --build --preset dev
step "Tests with ASan and UBSan"
run_tests dev "$@"

step "Build (Release)"
cmake --preset cpu -DRBEE_TESTS=ON >/dev/null
cmake --build --preset cpu --target release_tests
step "Tests (Release)"
run_tests cpu -L '^(ops|models|release)$' "$@"
