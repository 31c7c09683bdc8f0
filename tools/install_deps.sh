#!/usr/bin/env bash
# Installs the Debian packages that are missing. Usage: install_deps.sh build|rocm|test
set -euo pipefail

build=(g++ cmake ninja-build git ccache python3 python3-venv python3-pip curl ca-certificates unzip
       libboost1.81-dev libssl-dev nlohmann-json3-dev libcli11-dev libspdlog-dev libpcre2-dev
       libicu-dev libpng-dev libjpeg62-turbo-dev libwebp-dev libgif-dev zlib1g-dev libjs-markdown-it libjs-highlight.js)
rocm=("${build[@]}" clang-22 lld-22)  # of the security archive
test=("${rocm[@]}" libgtest-dev libgmock-dev openssl libbenchmark-dev python3-jinja2 python3-jsonschema chromium)
lint=(clang-format-19 clang-tidy-19 llvm-19)

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
echo "Installing Debian packages: ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
