#!/usr/bin/env bash
# clang-tidy over the build's files, two at a time. Usage:
#   tidy.sh                    every file of the build
#   tidy.sh FILE...            these
#   tidy.sh --changed [LIMIT]  those changed since the branch left origin/main, at most LIMIT
set -euo pipefail
[ "${1:-}" != --help ] || { sed -n '2,/^[^#]/s/^# //p' "$0"; exit; }
cd "$(dirname "$0")/.."

# The commit to compare with: where this branch left origin/main, else the one before.
base() {
  local fork head
  head="$(git rev-parse HEAD)"
  fork="$(git merge-base HEAD origin/main 2>/dev/null || true)"
  if [ -z "$fork" ] || [ "$fork" = "$head" ]; then
    fork="$(git rev-parse --quiet --verify HEAD~1 || true)"
  fi
  echo "$fork"
}

# A header is checked with the source beside it.
changed() {
  git diff --name-only --diff-filter=d "$1" -- '*.cc' '*.h' | sed 's/\.h$/.cc/' | sort -u
}

limit=0
wanted=("$@")
if [ "${1:-}" = "--changed" ]; then
  limit="${2:-0}"
  since="$(base)"
  [ -n "$since" ] || { echo "tidy: nothing to compare with (shallow history?), skipped"; exit 0; }
  mapfile -t wanted < <(changed "$since")
  [ ${#wanted[@]} -gt 0 ] || { echo "tidy: no source changed since $since"; exit 0; }
fi

bash tools/install_deps.sh test
# Nothing is built here; the commands are all that is needed. The GPUs' host code is among them.
gpu=(-DRBEE_ROCM=ON "-DRBEE_ROCM_ARCHS=gfx942;gfx1100")
if command -v nvcc >/dev/null || [ -x /usr/local/cuda/bin/nvcc ]; then
  gpu+=(-DRBEE_CUDA=ON -DRBEE_CUDA_ARCHS=90a)
else
  echo "tidy: no nvcc: backends/cuda and its tests are left out"
fi
cmake -G Ninja -S . -B build/tidy -DRBEE_TESTS=ON -DRBEE_BENCH=ON "${gpu[@]}" >/dev/null
mapfile -t built < <(python3 - "$PWD/" <<'PY'
import json, sys
entries = json.load(open("build/tidy/compile_commands.json"))
files = {e["file"].removeprefix(sys.argv[1]) for e in entries}
print("\n".join(sorted(f for f in files if not f.startswith("build/"))))
PY
)
files=("${built[@]}")
if [ ${#wanted[@]} -gt 0 ]; then
  mapfile -t files < <(comm -12 <(printf '%s\n' "${built[@]}" | sort) \
                                <(printf '%s\n' "${wanted[@]#./}" | sort))
fi
[ ${#files[@]} -gt 0 ] || { echo "tidy: none of these files is part of the build"; exit 0; }
if [ "$limit" -gt 0 ] && [ ${#files[@]} -gt "$limit" ]; then
  echo "tidy: ${#files[@]} files changed, $limit of them are checked here"
  files=("${files[@]:0:limit}")
fi

check() {
  clang-tidy-19 --quiet -p build/tidy "$1" 2> >(grep -v 'warnings\? generated' >&2)
}
export -f check
printf '%s\0' "${files[@]}" | xargs -0 -P 2 -I {} bash -c 'check "$1"' tidy {}
echo "tidy: ${#files[@]} files without findings"
