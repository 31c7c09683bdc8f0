#include "backends/metal/ops/experts_simdgroup.h"

#include <algorithm>

#include "backends/gpu/ops/experts.h"
#include "backends/gpu/ops/matvec_parts.h"
#include "backends/gpu/ops/pack_weight.h"
#include "backends/gpu/product_tiles.h"
#include "backends/gpu/rows.h"

namespace rbee::metal {
namespace {

// As in kernels/simdgroup_product.h.
constexpr uint32_t kThreads = 128;
constexpr int64_t kRun = 8;
constexpr int64_t kMostSize = int64_t{1} << 30;

constexpr gpu::PackedFamilies kFamilies{.small_blocks = "simdgroup_experts_small_blocks",
                                        .k_blocks = "simdgroup_experts_k_blocks",
                                        .e4m3 = "simdgroup_experts_e4m3",
                                        .few_bits = "simdgroup_experts_few_bits"};

bool reads(DType type) {
  return type == DType::f32 || type == DType::f16 || type == DType::bf16;
}

const char* refuse(const ExpertLinearArgs& args) {
  if (!reads(args.x.dtype)) return "x is not f32, f16 or bf16";
  if (!gpu::aligned(args.x.data)) return "reads x 16 bytes at a time";
  for (const ExpertPart& part : args.parts) {
    const View& weight = part.weight;
    if (is_quantized(weight.dtype) && weight.packing != gpu::kPlanesPacking) {
      return "reads block types packed";
    }
    if (!is_quantized(weight.dtype) && !reads(weight.dtype)) {
      return "reads f32, f16, bf16 and block types";
    }
    if (weight.size(2) % kRun != 0) return "rows are not multiples of 16 bytes";
    if (!gpu::aligned(weight.data)) return "reads weights 16 bytes at a time";
    if (std::max(weight.size(1), weight.size(2)) > kMostSize) {
      return "more than 2^30 rows or columns";
    }
  }
  return nullptr;
}

void run(const ExpertLinearArgs& args, Stream& stream) {
  if (args.ids.numel() == 0) return;
  const gpu::ExpertGroups groups(args, stream);
  for (const ExpertPart& part : args.parts) {
    const DType weight = part.weight.dtype;
    gpu::launch(
        stream,
        {.op = "expert_linear",
         .family = is_quantized(weight) ? kFamilies.of(weight) : "simdgroup_experts_plain",
         .kernel = gpu::KernelName("expert_simdgroup", args.x.dtype, name(weight)),
         .grid = {.x = gpu::grid_for_tiles(gpu::most_expert_tiles(groups, part.weight.size(1)))},
         .threads = kThreads},
        gpu::expert_tiles_params(args, part, groups));
  }
}

}  // namespace

const Impl<ExpertLinearArgs> experts_simdgroup{"simdgroup", refuse, run};

}  // namespace rbee::metal
