#!/usr/bin/env bash
# Fetches zig from PyPI, whose clang compiles and links for macOS without Apple's SDK, and prints its path. Nothing
# is installed; pip checks sums. Exit status 1, and one line, when it cannot.
# Usage: get_zig.sh [--there]      --there: only if it was fetched before
# Folder: ${XDG_CACHE_HOME:-~/.cache}/rbee/zig, 411 MB
set -euo pipefail
[ "${1:-}" != --help ] || { sed -n '2,/^[^#]/s/^# //p' "$0"; exit; }

folder="${XDG_CACHE_HOME:-$HOME/.cache}/rbee/zig"
version=0.17.1
zig="$folder/$version/ziglang/zig"
if [ -x "$zig" ]; then
  echo "$zig"
  exit 0
fi
[ "${1:-}" != --there ] || { echo "zig: not fetched; bash tools/get_zig.sh does that" >&2; exit 1; }
case "$(uname -sm)" in
  "Linux x86_64") ;;
  *) echo "zig: this script knows the one of x86-64 Linux only" >&2; exit 1 ;;
esac
mkdir -p "$folder"
made=$(mktemp -d "$folder/XXXXXX")
trap 'rm -rf "$made"' EXIT
echo "ziglang==$version --hash=sha256:ea6cc5d87b033cf0aedfbc8f9549a908cae6c50ac31f1698188fa48a74524b54" >"$made/wanted"
if ! python3 -m pip download -q --no-deps --require-hashes --only-binary=:all: -r "$made/wanted" -d "$made" \
  >"$made/log" 2>&1; then
  echo "zig: $(grep -m 1 ERROR "$made/log"); nothing is compiled for macOS" >&2
  exit 1
fi
unzip -q "$made"/*.whl -d "$made/$version"
chmod +x "$made/$version/ziglang/zig"
mv -T "$made/$version" "$folder/$version"
echo "$zig"
