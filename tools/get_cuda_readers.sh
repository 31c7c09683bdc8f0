#!/usr/bin/env bash
# Fetches NVIDIA's cuobjdump and nvdisasm (5 MB) from PyPI for tests/gpu/code_objects, and prints
# their folder. A toolkit that was installed for nvcc alone lacks them. Nothing is installed. Exit
# status 1, and one line, when it cannot.
# Usage: get_cuda_readers.sh      Folder: ${XDG_CACHE_HOME:-~/.cache}/rbee/cuda-readers
set -euo pipefail
[ "${1:-}" != --help ] || { sed -n '2,/^[^#]/s/^# //p' "$0"; exit; }

folder="${XDG_CACHE_HOME:-$HOME/.cache}/rbee/cuda-readers"
if [ ! -d "$folder" ]; then
  mkdir -p "$(dirname "$folder")"
  work=$(mktemp -d "$folder.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  if ! python3 -m pip install --quiet --disable-pip-version-check --no-deps --only-binary :all: \
    --target "$work/packages" nvidia-cuda-cuobjdump nvidia-cuda-nvdisasm >"$work/log" 2>&1; then
    echo "CUDA readers: $(tail -n 1 "$work/log"); NVIDIA's machine code is not checked" >&2
    exit 1
  fi
  mv "$work/packages" "$folder"
fi
echo "$folder"
