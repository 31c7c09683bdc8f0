#pragma once
// Linear layers of chosen experts on matrix instructions: what the vendors' kernels have in common
// on the host. Weights of another type than the products' are made f16 or bf16 a slab of experts at
// a time.

#include "backends/api/args_experts.h"
#include "backends/api/device.h"

namespace rbee::gpu {

// Kernels expert_gemm_<type> of family expert_gemm: shared::kExpertRows rows by `outs`.
struct ExpertTile {
  int64_t outs;
  uint32_t threads;
  uint32_t shared_bytes;
};

// Null for weights of f16, bf16, f8 and block types, packed or not, whose rows can be read 16 bytes
// at a time, for any number of rows; else why not.
const char* refuse_expert_tensor(const ExpertLinearArgs& args);
void run_expert_tensor(const ExpertTile& tile, const ExpertLinearArgs& args, Stream& stream);

}  // namespace rbee::gpu
