#!/usr/bin/env bash
# Compiles the kernels of arm64's levels with Debian's cross compiler and runs them by qemu on three
# processors: the level that runs is the best that each has, and one that it lacks ends in SIGILL.
# Exit status 77: no compiler or no qemu. Usage: levels.sh FOLDER, for its objects
set -euo pipefail
[ $# -eq 1 ] || { sed -n '2,/^[^#]/s/^# //p' "$0"; exit 2; }
for tool in aarch64-linux-gnu-g++ qemu-aarch64 ninja; do
  command -v "$tool" >/dev/null || { echo "skipped: no $tool"; exit 77; }
done
folder=$1
cd "$(dirname "$0")/../.."
mkdir -p "$folder"

# -O1: optimising further takes most of the time.
flags="-std=c++20 -O1 -w -fno-math-errno -ffp-contract=off -DNDEBUG -I$PWD"
compiler=aarch64-linux-gnu-g++
# Paths relative to the tree: clones share the cache.
if command -v ccache >/dev/null; then
  compiler="ccache $compiler"
  export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1
fi
{
  echo "rule compile"
  echo "  command = $compiler $flags \$level -MMD -MF \$out.d -c \$in -o \$out"
  echo "  depfile = \$out.d"
  echo "rule link"
  echo "  command = aarch64-linux-gnu-g++ -static \$in -o \$out"
  objects=""
  for source in tests/arm64/levels.cc backends/cpu/{cpu_features,thread_pool,topology,control_groups,workspace}.cc \
    backends/cpu/{region_heap,caching_allocator}.cc backends/cpu/{arm,system}/linux.cc backends/cpu/linear/*.cc \
    backends/cpu/ref/{attention,unary,rms_norm}.cc backends/cpu/simd/{attention,elementwise,float_rows,rms_norm}_neon.cc \
    backends/cpu/simd/linear/*_{neon,dotprod,i8mm}.cc rbee/core/{dtype,error,log,shape}.cc; do
    object=${source//\//_}.o
    echo "build $object: compile $PWD/$source"
    case $source in
      *_dotprod.cc) echo "  level = -march=armv8.2-a+dotprod+fp16" ;;
      *_i8mm.cc) echo "  level = -march=armv8.2-a+dotprod+fp16+i8mm+bf16" ;;
    esac
    objects+=" $object"
  done
  echo "build levels: link$objects"
} >"$folder/build.ninja"
ninja -C "$folder" --quiet -j2

status=0
run() { qemu-aarch64 -cpu "$1" "$folder/levels" "${@:2}"; }
run cortex-a72 neon || status=1
run cortex-a76 dotprod || status=1
run max,sve=off i8mm || status=1
# That these processors would tell.
for pair in "cortex-a72 dotprod" "cortex-a76 i8mm"; do
  read -r processor level <<<"$pair"
  code=0
  (ulimit -c 0 && run "$processor" --run "$level") >/dev/null 2>&1 || code=$?
  [ "$code" -eq 132 ] || { echo "$level on $processor: exit status $code, not SIGILL"; status=1; }
done
exit "$status"
