#include "backends/cpu/cpu_features.h"

#ifdef __linux__
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include <cstdlib>
#include <string>

#include "rbee/core/log.h"

namespace rbee::cpu {
namespace {

Isa lowered_by_environment(IsaSet supported) {
  const Isa best = supported.highest();
  // Read once, before any thread of this backend exists.
  const char* text = std::getenv("RBEE_CPU_ISA");  // NOLINT(concurrency-mt-unsafe)
  if (text == nullptr || *text == '\0') return best;
  for (const Isa wanted : kIsas) {
    if (name(wanted) != text) continue;
    const Isa used = supported.highest(wanted);
    if (used != wanted) {
      log(LogLevel::warn,
          "RBEE_CPU_ISA names a level that this processor lacks; a lower one is used",
          {{"value", text}, {"used", std::string(name(used))}});
    }
    return used;
  }
  log(LogLevel::warn,
      "RBEE_CPU_ISA is not portable, avx2, avxvnni, avx512, avx512bf16 or amx; ignored",
      {{"value", text}});
  return best;
}

#ifdef __x86_64__
// Linux gives a process the tiles' 8 KiB of state when it asks for them (arch_prctl(2)), its later
// and its present threads. The first question asks the system by XGETBV whether it saves them.
bool may_use_tiles() {
#ifdef __linux__
  constexpr int kAskForState = 0x1023, kTileData = 18;
  static const bool granted =
      __builtin_cpu_supports("amx-tile") && __builtin_cpu_supports("amx-int8") &&
      __builtin_cpu_supports("amx-bf16") && __builtin_cpu_supports("avx512vbmi") &&
      ::syscall(SYS_arch_prctl, kAskForState, kTileData) == 0;
  return granted;
#else
  return false;
#endif
}
#endif

}  // namespace

std::string_view name(Isa isa) {
  switch (isa) {
    case Isa::portable:
      return "portable";
    case Isa::avx2:
      return "avx2";
    case Isa::avxvnni:
      return "avxvnni";
    case Isa::avx512:
      return "avx512";
    case Isa::avx512bf16:
      return "avx512bf16";
    case Isa::amx:
      return "amx";
  }
  return "unknown";
}

IsaSet supported_isas() {
  IsaSet isas;
#ifdef __x86_64__
  // These also ask the system, by XGETBV, whether it saves the wide registers.
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") ||
      !__builtin_cpu_supports("f16c")) {
    return isas;
  }
  isas.add(Isa::avx2);
  if (__builtin_cpu_supports("avxvnni")) isas.add(Isa::avxvnni);
  if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
      !__builtin_cpu_supports("avx512vl") || !__builtin_cpu_supports("avx512dq") ||
      !__builtin_cpu_supports("avx512vnni")) {
    return isas;
  }
  isas.add(Isa::avx512);
  if (!__builtin_cpu_supports("avx512bf16")) return isas;
  isas.add(Isa::avx512bf16);
  if (may_use_tiles()) isas.add(Isa::amx);
#endif
  return isas;
}

Isa cpu_isa() {
  static const Isa isa = lowered_by_environment(supported_isas());
  return isa;
}

const char* missing_isa(Isa isa) {
  static const IsaSet supported = supported_isas();
  if (isa <= cpu_isa() && supported.has(isa)) return nullptr;
  switch (isa) {
    case Isa::avx2:
      return "needs AVX2, FMA and F16C";
    case Isa::avxvnni:
      return "needs AVX-VNNI";
    case Isa::avx512:
      return "needs AVX-512 with VNNI";
    case Isa::avx512bf16:
      return "needs AVX-512 BF16";
    case Isa::amx:
      return "needs AMX with int8 and BF16";
    case Isa::portable:
      break;
  }
  return nullptr;
}

}  // namespace rbee::cpu
