#!/usr/bin/env bash
# A program that links a library of a GPU does not start without it. Usage: check_linked.sh PROGRAM...
set -euo pipefail
status=0
for program in "$@"; do
  linked=$(readelf -d "$program" | grep NEEDED)
  if grep -iE 'libcu(da|dnn|blas)|libnv|libamd|libhip|libhsa|libroc|libmiopen|librccl' <<< "$linked"; then
    echo "$program links them"
    status=1
  fi
done
exit $status
