#include "backends/cpu/cpu_features.h"

#ifdef __linux__
#include <sys/syscall.h>
#include <unistd.h>
#endif
#ifdef __x86_64__
#include <cpuid.h>
#endif

#include <cstdlib>
#include <string>

#include "rbee/core/log.h"
#ifdef __aarch64__
#include "backends/cpu/arm/features.h"
#endif

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
  std::string levels;
  for (const Isa isa : kIsas) levels.append(levels.empty() ? "" : ", ").append(name(isa));
  log(LogLevel::warn, "RBEE_CPU_ISA names no level of this architecture; ignored",
      {{"value", text}, {"levels", levels}});
  return best;
}

#ifdef __x86_64__
struct CpuidRegisters {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
};

// CPUID, for what clang 14 does not know by name (Intel's manual, volume 2, CPUID); zeros where the
// processor has no such leaf. Whether the system saves the registers is asked elsewhere.
CpuidRegisters cpuid(unsigned leaf, unsigned part = 0) {
  CpuidRegisters out;
  __get_cpuid_count(leaf, part, &out.eax, &out.ebx, &out.ecx, &out.edx);
  return out;
}

constexpr unsigned bit(int number) {
  return 1u << number;
}

bool has_f16c() {
  return (cpuid(1).ecx & bit(29)) != 0;
}

bool has_avxvnni() {
  const bool has_part = cpuid(7).eax >= 1;
  return has_part && (cpuid(7, 1).eax & bit(4)) != 0;
}

bool has_tiles() {
  constexpr unsigned kTiles = bit(24), kInt8 = bit(25), kBf16 = bit(22);
  constexpr unsigned kAll = kTiles | kInt8 | kBf16;
  return (cpuid(7).edx & kAll) == kAll;
}

// Linux gives a process the tiles' 8 KiB of state when it asks for them (arch_prctl(2)), its later
// and its present threads; it refuses where it does not save them.
bool may_use_tiles() {
#ifdef __linux__
  constexpr int kAskForState = 0x1023, kTileData = 18;
  static const bool granted = has_tiles() && __builtin_cpu_supports("avx512vbmi") &&
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
    case Isa::neon:
      return "neon";
    case Isa::dotprod:
      return "dotprod";
    case Isa::i8mm:
      return "i8mm";
  }
  return "unknown";
}

IsaSet supported_isas() {
  IsaSet isas;
#ifdef __x86_64__
  // These also ask the system, by XGETBV, whether it saves the wide registers.
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !has_f16c()) {
    return isas;
  }
  isas.add(Isa::avx2);
  if (has_avxvnni()) isas.add(Isa::avxvnni);
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
#ifdef __aarch64__
  isas.add(Isa::neon);
  const ArmFeatures features = arm_features();
  if (!features.dotprod || !features.fp16) return isas;
  isas.add(Isa::dotprod);
  if (features.i8mm && features.bf16) isas.add(Isa::i8mm);
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
    case Isa::neon:
      return "needs NEON";
    case Isa::dotprod:
      return "needs NEON with dot products and FP16";
    case Isa::i8mm:
      return "needs NEON with I8MM and BF16";
    case Isa::portable:
      break;
  }
  return nullptr;
}

}  // namespace rbee::cpu
