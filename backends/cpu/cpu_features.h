#pragma once
// Which instruction sets this processor and its system offer, found once at start.

#include <cstdint>
#include <string_view>

namespace rbee::cpu {

// The instruction set levels for which kernels exist. Each includes those of its architecture
// before it, except avxvnni: some processors have VNNI only with AVX-512 (Ice Lake, Zen 4), others
// only without it (Alder Lake).
enum class Isa : uint8_t {
  portable,  // only the compiler's default
  // x86-64
  avx2,        // AVX2, FMA, F16C
  avxvnni,     // and AVX-VNNI
  avx512,      // avx2 and AVX-512 F, BW, VL, DQ and VNNI
  avx512bf16,  // and BF16 dot products
  amx,         // and VBMI, AMX tiles of int8 and bf16
  // arm64
  neon,     // what every processor has
  dotprod,  // and dot products of int8, arithmetic of f16
  i8mm,     // and matrix products of int8 and of bf16
};

// The levels of this program's architecture, in order.
#if defined(__x86_64__)
inline constexpr Isa kIsas[] = {Isa::portable, Isa::avx2,       Isa::avxvnni,
                                Isa::avx512,   Isa::avx512bf16, Isa::amx};
#elif defined(__aarch64__)
inline constexpr Isa kIsas[] = {Isa::portable, Isa::neon, Isa::dotprod, Isa::i8mm};
#else
inline constexpr Isa kIsas[] = {Isa::portable};
#endif

std::string_view name(Isa isa);

// A set of levels; portable is always among them.
class IsaSet {
 public:
  constexpr void add(Isa isa) { bits_ |= bit(isa); }
  constexpr bool has(Isa isa) const { return (bits_ & bit(isa)) != 0; }
  // The highest level in the set up to `limit`.
  constexpr Isa highest(Isa limit = Isa::i8mm) const {
    Isa best = Isa::portable;
    for (const Isa isa : kIsas) {
      if (isa <= limit && has(isa)) best = isa;
    }
    return best;
  }

 private:
  static constexpr unsigned bit(Isa isa) { return 1u << static_cast<unsigned>(isa); }
  unsigned bits_ = bit(Isa::portable);
};

// The levels that processor and system support, whatever the environment says.
IsaSet supported_isas();

// The level that kernels may use: the highest supported one, lowered by the environment variable
// RBEE_CPU_ISA (a level's name). Ignores an unknown value with a warning; for an unsupported level,
// takes the next lower one, also with a warning.
Isa cpu_isa();

// For `refuse`: null if `isa` may be used (it is supported and not above cpu_isa()), else the
// reason.
const char* missing_isa(Isa isa);

}  // namespace rbee::cpu
