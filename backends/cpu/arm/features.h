#pragma once
// What an arm64 processor and its system offer beyond NEON, which all of them have. One file for
// each system: linux.cc, macos.cc.

namespace rbee::cpu {

// Arm's manual (DDI 0487), "ID_AA64ISAR0_EL1" and the registers beside it.
struct ArmFeatures {
  bool fp16 = false;     // FEAT_FP16: arithmetic of f16
  bool dotprod = false;  // FEAT_DotProd: sdot, udot
  bool i8mm = false;     // FEAT_I8MM: smmla and its kin
  bool bf16 = false;     // FEAT_BF16: bfdot, bfmmla
};

ArmFeatures arm_features();

}  // namespace rbee::cpu
