#!/usr/bin/env bash
# Installs the Debian packages that are missing. Usage: install_deps.sh build|rocm|test
set -euo pipefail
[ "${1:-}" != --help ] || { sed -n '2,/^[^#]/s/^# //p' "$0"; exit; }

build=(g++ cmake ninja-build git ccache python3 python3-venv python3-pip curl ca-certificates unzip
       libboost1.81-dev libcurl4-openssl-dev libssl-dev nlohmann-json3-dev libcli11-dev libspdlog-dev libpcre2-dev
       libicu-dev libpng-dev libjpeg62-turbo-dev libwebp-dev libgif-dev libzstd-dev zlib1g-dev libjs-markdown-it libjs-highlight.js)
rocm=("${build[@]}" zstd clang-22 lld-22)  # the last two of the security archive
test=("${rocm[@]}" clang-19 libclang-rt-19-dev libobjc-12-dev llvm-19 libgtest-dev libgmock-dev openssl
      libzmq5 libbenchmark-dev python3-jinja2 python3-jsonschema chromium
      g++-aarch64-linux-gnu qemu-user)
lint=(clang-format-19 clang-tidy-19 llvm-22)  # llvm-22 reads clang-22's output

case "${1:-}" in
  build) wanted=("${build[@]}") ;;
  rocm) wanted=("${rocm[@]}") ;;
  test) wanted=("${test[@]}" "${lint[@]}") ;;
  *) echo "usage: $0 build|rocm|test" >&2; exit 2 ;;
esac

missing=()
for package in "${wanted[@]}"; do
  status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$status" = installed ] || missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || { echo "needs root or sudo to install: ${missing[*]}" >&2; exit 1; }
  as_root=(sudo)
fi
export DEBIAN_FRONTEND=noninteractive
"${as_root[@]}" apt-get update -qq
# bookworm itself has 19.
fallback=()
for i in "${!missing[@]}"; do
  case "${missing[i]}" in clang-22 | lld-22 | llvm-22) ;; *) continue ;; esac
  apt-cache show "${missing[i]}" >/dev/null 2>&1 && continue
  fallback+=("${missing[i]}")
  missing[i]="${missing[i]%22}19"
done
if [ ${#fallback[@]} -ne 0 ]; then
  echo "No ${fallback[*]} in this machine's package archives, which Debian's security archive has:" \
       "version 19 instead, which does not know gfx950 and gfx1153"
fi
echo "Installing Debian packages: ${missing[*]}"
"${as_root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
