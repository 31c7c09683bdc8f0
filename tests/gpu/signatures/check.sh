#!/usr/bin/env bash
# Compiles a comparison with a vendor's header. Exit status 77, and a line that says so, where the header
# is not found. Usage: check.sh COMPILER SOURCE HEADER FOLDER...
set -euo pipefail
compiler=$1 source=$2 header=$3
shift 3
root=$(cd "$(dirname "$0")/../../.." && pwd)
for folder in "$@"; do
  if [ -f "$folder/$header" ]; then
    echo "comparing with $folder/$header"
    exec "$compiler" -std=c++20 -fsyntax-only -I "$root" -isystem "$folder" "$source"
  fi
done
echo "skipped: no $header in: $*"
exit 77
