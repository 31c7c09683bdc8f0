#!/usr/bin/env bash
# Checks this program on a GPU that it never ran on, and leaves one file for its developers.
# Usage: tools/first_card.sh [MODEL.gguf]; --help has the rest, docs/guide/amd.md what it is for.
set -u
if ! python3 -c 'import sys; sys.exit(sys.version_info < (3, 9))' 2>/dev/null; then
  echo "Python 3.9 or later is missing (python3)" >&2
  exit 2
fi
exec python3 "$(dirname "$0")/first_card/first_card.py" "$@"
