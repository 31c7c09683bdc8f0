#!/usr/bin/env bash
# Builds rbee for every Linux with glibc 2.28 or later, and makes of it a wheel, a .tar.zst, a .deb, an SBOM and sums.
# On Debian 12, after tools/install_deps.sh build (or rocm).
# Usage: make_packages.sh [--cuda] [--rocm] [-DCMAKE_OPTION=VALUE...] [OUT_FOLDER]
set -euo pipefail
cd "$(dirname "$0")/.."

options=() kinds=""
while [[ "${1:-}" == -* ]]; do
  case $1 in
    -D*) options+=("$1") ;;
    --cuda | --rocm) kind=${1#--} && options+=("-DRBEE_${kind^^}=ON") && kinds+=${kinds:+.}$kind ;;
    *) sed -n 4p "$0" >&2 && exit 2 ;;
  esac
  shift
done
mkdir -p "${1:-dist}"
out=$(realpath "${1:-dist}")
build=$PWD/build/portable${kinds:+-$kinds}
glibc=2.28
version=$(sed -n 's/^project(rbee VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
commit=$(git rev-parse HEAD 2>/dev/null || echo unknown)  # of a tree without git
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH

for tool in dpkg-shlibdeps zstd icupkg; do
  command -v "$tool" >/dev/null || { echo "$tool is missing: apt-get install dpkg-dev zstd icu-devtools" >&2; exit 1; }
done

build_program() {
  [ -x "$build/tools/bin/python" ] || python3 -m venv "$build/tools"
  "$build/tools/bin/pip" install -q --disable-pip-version-check ziglang==0.17.1
  local zig
  zig=$("$build/tools/bin/python" -c 'import os, ziglang; print(os.path.dirname(ziglang.__file__))')/zig
  bash packaging/portable/build_curl.sh "$build/curl"
  bash packaging/portable/build_icu_data.sh "$build/icu"
  cmake -G Ninja -B "$build" -DCMAKE_BUILD_TYPE=Release -DRBEE_TESTS=OFF -DRBEE_ZIG="$zig" \
    -DCMAKE_PROJECT_rbee_INCLUDE="$PWD/packaging/portable/portable.cmake" \
    -DCURL_LIBRARY="$build/curl/lib/libcurl.a" -DRBEE_ICU_DATA="$build/icu/icudata.o" ${options[@]+"${options[@]}"} >/dev/null
  local targets=(rbee)
  for kind in cpu ${kinds//./ }; do targets+=("llm-worker-rbee-$kind" "sd-worker-$kind"); done
  ninja -C "$build" "${targets[@]}"
}

# That another machine can run it, and that it does not depend on this one.
check_program() {
  local newest libraries
  newest=$(objdump -T "$1" | grep -o 'GLIBC_[0-9.]*' | sort -Vu | tail -1)
  [ "$(printf '%s\n' "GLIBC_$glibc" "$newest" | sort -V | tail -1)" = "GLIBC_$glibc" ] ||
    { echo "$1 needs $newest, later than $glibc" >&2; return 1; }
  python3 packaging/check_symbols.py "$1" >&2
  libraries=$(objdump -p "$1" | sed -n 's/^ *NEEDED *//p' |
    grep -vxE 'lib(c|m|dl|pthread|rt)\.so\.[0-9]|libgcc_s\.so\.1|ld-linux-x86-64\.so\.2' || true)
  [ -z "$libraries" ] || { echo "$1 needs $libraries" >&2; return 1; }
  ! grep -qaF "$PWD/" "$1" || { echo "$1 holds the name of this folder" >&2; return 1; }
}

make_archive() {
  local name=rbee-$version-linux-x86_64${kinds:+-$kinds}
  mkdir -p "$work/$name/share"
  cp -a "$work/root/usr/bin" "$work/$name/"
  cp -a "$work/root/usr/share/doc" "$work/$name/share/"
  tar -C "$work" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner \
    --format=gnu -cf "$work/$name.tar" "$name"
  zstd -q -19 -T1 --force "$work/$name.tar" -o "$out/$name.tar.zst"
  echo "$out/$name.tar.zst"
}

build_program
program=$build/bin/rbee
check_program "$program"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
sbom=$out/rbee-$version${kinds:+-$kinds}.spdx.json
python3 packaging/make_sbom.py "$build" "$program" "$version" "$commit" "$sbom" --notices "$work/notices"
echo "$sbom"
deb=$(bash packaging/make_deb.sh "$build" "$out" "$work/notices")
echo "$deb"
dpkg-deb -x "$deb" "$work/root"
make_archive
documents=$work/root/usr/share/doc/rbee
wheel=$(python3 packaging/make_wheel.py "$program" "$version${kinds:++$kinds}" \
  "manylinux_${glibc//./_}_x86_64" "$out" "$documents/copyright" "$documents/third-party-licences")
echo "$wheel"
(cd "$out" && sha256sum -- "$(basename "$sbom")" "$(basename "$deb")" rbee-"$version"-linux-x86_64*"$kinds".tar.zst \
  "$(basename "$wheel")") >"$out/SHA256SUMS${kinds:+-$kinds}"
cat "$out/SHA256SUMS${kinds:+-$kinds}"
