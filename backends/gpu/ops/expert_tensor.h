#pragma once
// Linear layers of chosen experts on matrix instructions: the host's code that vendors' kernels
// share. Weights of another type than the products' are converted to f16 or bf16 a slab of experts
// at a time, or read as they are if an expert has few choices.

#include "backends/api/args_experts.h"
#include "backends/api/device.h"
#include "backends/gpu/ops/matvec_parts.h"

namespace rbee::gpu {

// Kernels over unconverted weights, PREFIX_<x>_<type of the weight>.
struct ExpertFewKernels {
  const char* prefix;
  PackedFamilies families;
  const char* plain;  // the family for weights of x's type
};

// Kernels over shared::kExpertRows rows by `outs`: expert_gemm_<type> of family expert_gemm, or
// `few`.
struct ExpertTile {
  int64_t outs;
  uint32_t threads;
  uint32_t shared_bytes;
  const ExpertFewKernels* few = nullptr;
};

// Null for weights of f16, bf16, f8 and block types, packed or not, whose rows can be read 16 bytes
// at a time, for any number of rows; else the reason.
const char* refuse_expert_tensor(const ExpertLinearArgs& args);
// Null for weights of f16, bf16 and block types in planes whose experts have at most
// shared::kExpertRows choices on average: with more, slabs are made once for several tiles.
const char* refuse_expert_few(const ExpertLinearArgs& args);
void run_expert_tensor(const ExpertTile& tile, const ExpertLinearArgs& args, Stream& stream);

}  // namespace rbee::gpu
