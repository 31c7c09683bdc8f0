#!/usr/bin/env bash
# Makes a folder with Debian's arm64 libraries and headers, which `cmake --preset arm64-cross` builds with and
# qemu-aarch64 runs with. apt works in that folder alone: nothing is installed, and the machine's own list of
# architectures stays as it is. Usage: arm64_root.sh [FOLDER]; build/arm64-root if none is named.
set -euo pipefail
[ "${1:-}" != --help ] || { sed -n '2,/^[^#]/s/^# //p' "$0"; exit; }

cd "$(dirname "$0")/.."
folder="${1:-build/arm64-root}"
# What tools/install_deps.sh installs to build and test on x86-64: libraries only.
packages=(libstdc++6 libboost1.81-dev libcurl4-openssl-dev libssl-dev nlohmann-json3-dev libcli11-dev
          libspdlog-dev libpcre2-dev libicu-dev libpng-dev libjpeg62-turbo-dev libwebp-dev libgif-dev
          libzstd-dev zlib1g-dev libgtest-dev libgmock-dev)
list="${packages[*]}"
if [ "$(cat "$folder/packages" 2>/dev/null || true)" = "$list" ]; then exit 0; fi

mkdir -p "$folder"
folder="$(realpath "$folder")"
apt="$folder/apt"
mkdir -p "$apt/state/lists/partial" "$apt/cache/archives/partial"
: >"$apt/state/status"
cat >"$apt/apt.conf" <<END
APT::Architecture "arm64";
APT::Architectures { "arm64"; };
APT::Sandbox::User "";
Dir::State "$apt/state";
Dir::State::status "$apt/state/status";
Dir::Cache "$apt/cache";
END
export APT_CONFIG="$apt/apt.conf"
apt-get update -qq
apt-get install -y -qq --no-install-recommends --download-only "${packages[@]}" >/dev/null
for package in "$apt"/cache/archives/*.deb; do
  # The cross compiler has these of its own, and finds others' linker scripts where they are not.
  case "$(basename "$package")" in libc6-dev_* | linux-libc-dev_* | libc-dev* | libgcc-*-dev_* | libstdc++-*-dev_*) continue ;; esac
  dpkg-deb -x "$package" "$folder"
done
rm -rf "$apt"
echo "$list" >"$folder/packages"
