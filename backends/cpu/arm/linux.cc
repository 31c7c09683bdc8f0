#include <asm/hwcap.h>
#include <sys/auxv.h>

#include "backends/cpu/arm/features.h"

namespace rbee::cpu {

// Bits of AT_HWCAP and AT_HWCAP2: Linux' Documentation/arch/arm64/elf_hwcaps.rst.
ArmFeatures arm_features() {
  const unsigned long first = getauxval(AT_HWCAP), second = getauxval(AT_HWCAP2);
  return {.fp16 = (first & HWCAP_FPHP) != 0 && (first & HWCAP_ASIMDHP) != 0,
          .dotprod = (first & HWCAP_ASIMDDP) != 0,
          .i8mm = (second & HWCAP2_I8MM) != 0,
          .bf16 = (second & HWCAP2_BF16) != 0};
}

}  // namespace rbee::cpu
