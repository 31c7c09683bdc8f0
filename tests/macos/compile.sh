#!/usr/bin/env bash
# Compiles for macOS on arm64, by zig's clang and headers, the sources that ask the system for something, and one
# of each layer above. What they include of libraries are the headers of this machine.
# Exit status 77: no zig (tools/get_zig.sh). Usage: compile.sh FOLDER, for its objects
set -euo pipefail
[ $# -eq 1 ] || { sed -n '2,/^[^#]/s/^# //p' "$0"; exit 2; }
folder=$1
cd "$(dirname "$0")/../.."
zig=$(bash tools/get_zig.sh --there) || { echo "skipped: no zig"; exit 77; }
mkdir -p "$folder/include"

# Not /usr/include itself, where the C library's headers are.
for name in boost nlohmann openssl; do ln -sfn "/usr/include/$name" "$folder/include/$name"; done
mkdir -p "$folder/include/machine"
machine=/usr/include/$(gcc -print-multiarch)
ln -sfn "$machine/openssl" "$folder/include/machine/openssl"
ln -sfn "$machine/curl" "$folder/include/curl"

sources=(rbee/core/system/macos/*.cc rbee/core/{background,input_file}.cc backends/cpu/{system,arm}/macos.cc
         backends/cpu/{cpu_features,thread_pool,topology}.cc backends/cpu/simd/rms_norm_neon.cc
         backends/gpu/dynamic_library.cc backends/metal/objc.cc
         rbee/group/{memory_door,network,rank_link,rank_process}.cc
         rbee/io/{lost_pages,mapped_file}.cc rbee/hub/file_lock.cc
         server/front/child.cc server/http/process_metrics.cc workers/common/crash_handler.cc)
{
  echo "rule compile"
  echo "  command = $zig c++ -target aarch64-macos.13.0 -std=c++20 -O0 -Wall -Wextra -Wshadow -Wno-missing-field-initializers -Werror" \
    "-ffp-contract=off -fno-math-errno -DBOOST_ASIO_NO_DEPRECATED -DBOOST_ASIO_SEPARATE_COMPILATION" \
    "-I$PWD -isystem include -isystem include/machine -c \$in -o \$out"
  for source in "${sources[@]}"; do echo "build ${source//\//_}.o: compile $PWD/$source"; done
} >"$folder/build.ninja"
ninja -C "$folder" --quiet -j2 -k0

# A Mach-O object for arm64: its magic number and its processor's.
for source in "${sources[@]}"; do
  head -c 8 "$folder/${source//\//_}.o" | od -An -tx4 | grep -q "feedfacf 0100000c" ||
    { echo "$source: no object for macOS on arm64"; exit 1; }
done
echo "${#sources[@]} sources compiled for macOS"
