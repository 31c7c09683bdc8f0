#include <sys/sysctl.h>

#include <cstddef>

#include "backends/cpu/arm/features.h"

namespace rbee::cpu {
namespace {

// Apple, "Determining Instruction Set Characteristics": 1 where it is there; a name that the system
// does not know counts as missing.
bool has(const char* name) {
  int value = 0;
  size_t size = sizeof(value);
  return sysctlbyname(name, &value, &size, nullptr, 0) == 0 && value == 1;
}

}  // namespace

ArmFeatures arm_features() {
  return {.fp16 = has("hw.optional.arm.FEAT_FP16"),
          .dotprod = has("hw.optional.arm.FEAT_DotProd"),
          .i8mm = has("hw.optional.arm.FEAT_I8MM"),
          .bf16 = has("hw.optional.arm.FEAT_BF16")};
}

}  // namespace rbee::cpu
