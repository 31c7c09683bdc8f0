#!/usr/bin/env bash
# Fetches AMD's headers from Debian's archive for tests/gpu/signatures, and prints their folder: HIP 5
# from Debian 12, HIP 6 or later and hipBLASLt from unstable. Nothing is installed; apt checks the
# indexes' signatures and the packages' SHA-256. Exit status 1, and one line, when it cannot.
# Usage: get_vendor_headers.sh      Folder: ${XDG_CACHE_HOME:-~/.cache}/rbee/vendor-headers
set -euo pipefail
[ "${1:-}" != --help ] || { sed -n '2,/^[^#]/s/^# //p' "$0"; exit; }

folder="${XDG_CACHE_HOME:-$HOME/.cache}/rbee/vendor-headers"
bookworm=(libamdhip64-dev)
sid=(libamdhip64-dev libhsa-runtime-dev libamd-comgr-dev libhipblaslt-dev libhipblas-common-dev)

if [ -f "$folder/complete" ]; then
  echo "$folder"
  exit 0
fi
give_up() {
  echo "vendor headers: $1; tests of signatures that need them are skipped" >&2
  exit 1
}

for program in apt-get dpkg; do
  command -v "$program" >/dev/null || give_up "no $program"
done
# The mirror that this machine uses already, and the key that it trusts for it.
mirror=$(apt-get indextargets --format '$(REPO_URI) $(ORIGIN)' 'Created-By: Packages' |
  sed -n 's/ Debian$//p' | grep -v security | head -n 1)
[ -n "$mirror" ] || give_up "apt knows no mirror of Debian"

mkdir -p "$(dirname "$folder")"
work=$(mktemp -d "$folder.XXXXXX")
trap 'rm -rf "$work"' EXIT

# fetch SUITE PACKAGE...: unpacks the packages into $work/SUITE.
fetch() {
  local suite=$1 state="$work/apt/$1"
  shift
  mkdir -p "$state"/{lists/partial,cache/archives/partial,debs} "$work/$suite"
  echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $suite main" \
    >"$state/sources.list"
  touch "$state/status"
  local apt=(apt-get -qq -o "Dir::State=$state" -o "Dir::State::status=$state/status"
             -o "Dir::State::lists=$state/lists" -o "Dir::Cache=$state/cache"
             -o "Dir::Etc::SourceList=$state/sources.list" -o Dir::Etc::SourceParts=/dev/null
             -o "APT::Sandbox::User=$(id -un)" -o Acquire::Languages=none
             -o Acquire::http::Timeout=20 -o Acquire::Retries=1 -o APT::Update::Error-Mode=any)
  "${apt[@]}" update && (cd "$state/debs" && "${apt[@]}" download "$@") || return 1
  local package
  for package in "$state"/debs/*.deb; do
    dpkg -x "$package" "$work/$suite"
  done
}

fetch bookworm "${bookworm[@]}" >"$work/log" 2>&1 && fetch sid "${sid[@]}" >>"$work/log" 2>&1 ||
  give_up "$(grep -m 1 '^[EW]:' "$work/log" || tail -n 1 "$work/log")"

rm -rf "$folder" "$work/apt" "$work/log"
touch "$work/complete"
chmod 755 "$work"
mv "$work" "$folder"
echo "$folder"
