#pragma once
// Which instruction sets this processor and its system offer, found once at start.

#include <cstdint>
#include <string_view>

namespace rbee::cpu {

// Levels that kernels are written for; each includes the ones before it.
enum class Isa : uint8_t {
  portable,    // no more than the compiler's default
  avx2,        // AVX2, FMA, F16C
  avx512,      // AVX-512 F, BW, VL, DQ and VNNI
  avx512bf16,  // and BF16 dot products
  amx,         // and VBMI, AMX tiles of int8 and bf16
};

std::string_view name(Isa isa);

// The highest level that processor and system support, whatever the environment says.
Isa detect_isa();

// The level that kernels may use: detect_isa(), lowered by the environment variable RBEE_CPU_ISA
// (portable, avx2, avx512, avx512bf16 or amx; other values are ignored with a warning).
Isa cpu_isa();

// For `refuse`: null when `isa` may be used, else the reason.
const char* missing_isa(Isa isa);

}  // namespace rbee::cpu
