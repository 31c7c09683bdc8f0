#include "backends/gpu/ops/expert_tensor.h"

#include <algorithm>
#include <limits>

#include "backends/gpu/ops/experts.h"
#include "backends/gpu/ops/linear_slabs.h"
#include "backends/gpu/ops/pack_weight.h"
#include "backends/gpu/ops/rounded_input.h"
#include "backends/gpu/rows.h"

namespace rbee::gpu {
namespace {

// Of converted weights, or one expert's where that is more. Twice what one matrix gets: an expert
// has few rows, and the tiles of all experts of a slab together fill the device.
constexpr int64_t kExpertSlabBytes = 2 * kSlabBytes;

int64_t matrix_bytes(const View& weight) {
  return weight.size(1) * weight.size(2) * 2;
}

// Experts of a slab.
int64_t slab_experts(const View& weight) {
  const int64_t fit = kExpertSlabBytes / std::max<int64_t>(matrix_bytes(weight), 1);
  return std::clamp<int64_t>(fit, 1, weight.size(0));
}

bool half_width(DType type) {
  return type == DType::f16 || type == DType::bf16;
}

// Whether the weight takes a slab: blocks and f8, whose values 16 bits hold.
bool converted(const View& weight) {
  return !half_width(weight.dtype);
}

// All experts' rows one after another.
View as_matrix(const View& weight) {
  View matrix = weight;
  matrix.rank = 2;
  matrix.sizes[0] = weight.size(0) * weight.size(1);
  matrix.sizes[1] = weight.size(2);
  matrix.strides[0] = weight.size(2);
  matrix.strides[1] = 1;
  return matrix;
}

// More tiles than these choices can have: each expert may have one that is not full.
int64_t most_tiles(const ExpertTile& tile, int64_t choices, int64_t experts, int64_t outs) {
  return (choices / shared::kExpertRows + experts) * ((outs + tile.outs - 1) / tile.outs);
}

const char* refuse_part(const View& x, const ExpertPart& part) {
  const View& weight = part.weight;
  if (weight.dtype == DType::f32 || weight.dtype == DType::f64) return "would round the weight";
  if (half_width(weight.dtype) && product_type(x.dtype, weight.dtype) != weight.dtype) {
    return "takes operands of one type";
  }
  if (weight.packing != 0 && weight.packing != kPlanesPacking) return "packed in another way";
  if (weight.size(2) % 8 != 0) return "rows are not multiples of 16 bytes";
  if (!aligned(part.y.data)) return "y is not 16-byte aligned";
  if (!converted(weight) && !aligned(weight.data)) return "weight is not 16-byte aligned";
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max() / 2;
  if (std::max(weight.size(1), weight.size(2)) > kMost) return "more than 2^30 rows or columns";
  return nullptr;
}

void run_part(const ExpertTile& tile, const ExpertLinearArgs& args, const ExpertPart& part,
              const ExpertGroups& groups, RoundedInput& inputs, void* memory, Stream& stream) {
  const View weight = as_matrix(part.weight);
  const DType type = product_type(args.x.dtype, weight.dtype);
  const int64_t experts = part.weight.size(0), outs = part.weight.size(1);
  const bool slabs = converted(part.weight);
  const int64_t each = slabs ? slab_experts(part.weight) : experts;
  shared::ExpertGemmParams params{.x = inputs.as(type),
                                  .weight = weight.data,
                                  .bias = part.bias.data,
                                  .y = part.y.data,
                                  .order = groups.params().order,
                                  .starts = groups.params().starts,
                                  .tiles = groups.params().tiles,
                                  .choices = groups.params().choices,
                                  .outs = static_cast<int32_t>(outs),
                                  .depth = static_cast<int32_t>(weight.size(1)),
                                  .first = 0,
                                  .count = 0,
                                  .each = choices_of_row(args),
                                  .y_type = args.x.dtype == DType::f32   ? 0
                                            : args.x.dtype == DType::f16 ? 1
                                                                         : 2};
  for (int64_t first = 0; first < experts; first += each) {
    const int64_t count = std::min(each, experts - first);
    params.first = static_cast<int32_t>(first);
    params.count = static_cast<int32_t>(count);
    if (slabs) {
      params.weight = slab_of(weight, first * outs, count * outs, type, memory, stream).data;
    }
    const int64_t tiles = most_tiles(tile, params.choices, count, outs);
    launch(stream,
           {.op = "expert_linear",
            .family = "expert_gemm",
            .kernel = KernelName("expert_gemm", type),
            .grid = {.x = static_cast<uint32_t>(tiles)},
            .threads = tile.threads,
            .shared_bytes = tile.shared_bytes},
           params);
  }
}

}  // namespace

const char* refuse_expert_tensor(const ExpertLinearArgs& args) {
  if (!aligned(args.x.data)) return "x is not 16-byte aligned";
  for (const ExpertPart& part : args.parts) {
    if (const char* reason = refuse_part(args.x, part)) return reason;
    constexpr ExpertTile kNarrowest{.outs = 64, .threads = 0, .shared_bytes = 0};
    const View& weight = part.weight;
    if (most_tiles(kNarrowest, args.ids.numel(), weight.size(0), weight.size(1)) >
        std::numeric_limits<int32_t>::max()) {
      return "more than 2^31 tiles";
    }
  }
  return nullptr;
}

void run_expert_tensor(const ExpertTile& tile, const ExpertLinearArgs& args, Stream& stream) {
  if (args.ids.numel() == 0) return;
  int64_t slab = 0;
  for (const ExpertPart& part : args.parts) {
    const View& weight = part.weight;
    if (converted(weight)) {
      slab = std::max(slab, slab_experts(weight) * matrix_bytes(weight));
    }
  }
  const Scratch memory(stream, static_cast<size_t>(slab));
  const ExpertGroups groups(args, stream);
  RoundedInput inputs(args.x, stream);
  for (const ExpertPart& part : args.parts) {
    run_part(tile, args, part, groups, inputs, memory.as<void>(), stream);
  }
}

}  // namespace rbee::gpu
