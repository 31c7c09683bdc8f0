#!/usr/bin/env bash
# Fetches vendors' headers for tests/gpu/signatures, and prints their folder. AMD's from Debian's archive: HIP 5
# from Debian 12, HIP 6 or later and hipBLASLt from unstable. Apple's as PyObjC tells them, from PyPI. Nothing
# is installed; apt and pip check sums. Exit status 1, and one line, when it cannot.
# Usage: get_vendor_headers.sh      Folder: ${XDG_CACHE_HOME:-~/.cache}/rbee/vendor-headers
set -euo pipefail
[ "${1:-}" != --help ] || { sed -n '2,/^[^#]/s/^# //p' "$0"; exit; }

folder="${XDG_CACHE_HOME:-$HOME/.cache}/rbee/vendor-headers"
bookworm=(libamdhip64-dev)
sid=(libamdhip64-dev libhsa-runtime-dev libamd-comgr-dev libhipblaslt-dev libhipblas-common-dev)

give_up() {
  echo "vendor headers: $1; tests of signatures that need them are skipped" >&2
  exit 1
}

# PyObjC's wheel for Macs, of which one file is read as text.
fetch_metal() {
  local name=Metal/_metadata.py made
  made=$(mktemp -d "$metal.XXXXXX")
  echo "pyobjc_framework_metal==12.2.2" \
    "--hash=sha256:fb0421195ded2a02a83c94dbc1bf815b4a879c51804c43bcaf4680a6dc1b4aa2" >"$made/wanted" &&
    python3 -m pip download -q --no-deps --require-hashes --only-binary=:all: --platform macosx_11_0_universal2 \
      --python-version 312 --implementation cp -r "$made/wanted" -d "$made" >"$made/log" 2>&1 &&
    unzip -q "$made"/*.whl "$name" -d "$made" && mv "$made/$name" "$metal"
  local status=$?
  [ $status -eq 0 ] || echo "vendor headers: $(grep -m 1 ERROR "$made/log"); Metal's messages are not compared" >&2
  rm -rf "$made"
}
metal="$(dirname "$folder")/metal-metadata.py"
mkdir -p "$(dirname "$folder")"
[ -f "$metal" ] || fetch_metal || true

if [ -f "$folder/complete" ]; then
  echo "$folder"
  exit 0
fi

for program in apt-get dpkg; do
  command -v "$program" >/dev/null || give_up "no $program"
done
# The mirror that this machine uses already, and the key that it trusts for it.
mirror=$(apt-get indextargets --format '$(REPO_URI) $(ORIGIN)' 'Created-By: Packages' |
  sed -n 's/ Debian$//p' | grep -v security | head -n 1)
[ -n "$mirror" ] || give_up "apt knows no mirror of Debian"

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
