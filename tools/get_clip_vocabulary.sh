#!/usr/bin/env bash
# Puts the vocabulary that OpenAI published with CLIP (MIT licence) beside Stable Diffusion checkpoints in one
# file, which do not bring their tokenizer along. Usage: get_clip_vocabulary.sh FOLDER
# It is taken from the package open_clip_torch of PyPI and written to FOLDER/tokenizer/merges.txt.
set -euo pipefail
[ "${1:-}" != --help ] || { sed -n '2,/^[^#]/s/^# //p' "$0"; exit; }
[ $# -eq 1 ] && [ -d "$1" ] || { echo "usage: $0 FOLDER" >&2; exit 2; }
package="open_clip_torch==3.2.0"
merges=48894 # of the published rules, those that became tokens

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
python3 -m pip download -q --no-deps --disable-pip-version-check -d "$scratch" "$package"
unzip -q -o -j "$scratch"/*.whl 'open_clip/bpe_simple_vocab_16e6.txt.gz' -d "$scratch"
mkdir -p "$1/tokenizer"
gzip -dc "$scratch/bpe_simple_vocab_16e6.txt.gz" |
  awk -v count="$merges" 'NR == 1 { print "#version: 0.2"; next } NR <= count + 1' \
    >"$1/tokenizer/merges.txt"
echo "$1/tokenizer/merges.txt"
