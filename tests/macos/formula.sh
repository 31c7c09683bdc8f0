#!/usr/bin/env bash
# The syntax of Homebrew's formula. Exit status 77: no Ruby.
set -euo pipefail
command -v ruby >/dev/null || { echo "skipped: no ruby"; exit 77; }
cd "$(dirname "$0")/../.."
ruby -c packaging/homebrew/rbee.rb
