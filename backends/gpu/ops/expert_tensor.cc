#include "backends/gpu/ops/expert_tensor.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "backends/gpu/ops/experts.h"
#include "backends/gpu/ops/float_number.h"
#include "backends/gpu/ops/linear_slabs.h"
#include "backends/gpu/ops/pack_weight.h"
#include "backends/gpu/ops/product_input.h"
#include "backends/gpu/rows.h"

namespace rbee::gpu {
namespace {

// Bytes of converted weights, or one expert's if that is more. Twice the bytes of a single matrix:
// an expert has few rows, and the tiles of all experts of a slab together fill the device.
constexpr int64_t kExpertSlabBytes = 2 * kSlabBytes;
// Bytes of products of terms at a time; with more, the weights of many experts are read again.
constexpr int64_t kProductBytes = int64_t{256} << 20;

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

// Whether the weight takes a slab: blocks and f8, whose values fit 16 bits.
bool converted(const ExpertTile& tile, const View& weight) {
  return tile.few == nullptr && !half_width(weight.dtype);
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

ProductKind kind_of(const ExpertLinearArgs& args, const ExpertPart& part) {
  return product_kind(args.x.dtype, part.weight.dtype, DType::f32);
}

// Of the products of x's terms.
size_t term_bytes(const ExpertLinearArgs& args, const ExpertPart& part) {
  return static_cast<size_t>(SplitInput::count(kind_of(args, part).type) * part.y.numel()) *
         sizeof(float);
}

// An upper bound of these choices' tiles: each expert may have one that is not full.
int64_t most_tiles(const ExpertTile& tile, int64_t choices, int64_t experts, int64_t outs) {
  return (choices / shared::kExpertRows + experts) * ((outs + tile.outs - 1) / tile.outs);
}

const char* refuse_part(const View& x, const ExpertPart& part) {
  const View& weight = part.weight;
  if (weight.dtype == DType::f32 || weight.dtype == DType::f64) return "would round the weight";
  if (half_width(weight.dtype) && x.dtype != weight.dtype && x.dtype != DType::f32) {
    return "takes operands of one type";
  }
  if (weight.packing != 0 && weight.packing != kPlanesPacking) return "packed in another way";
  if (weight.size(2) % 8 != 0) return "rows are not multiples of 16 bytes";
  if (!aligned(part.y.data)) return "y is not 16-byte aligned";
  if (half_width(weight.dtype) && !aligned(weight.data)) return "weight is not 16-byte aligned";
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max() / 2;
  if (std::max(weight.size(1), weight.size(2)) > kMost) return "more than 2^30 rows or columns";
  return nullptr;
}

struct Kernel {
  const char* family;
  KernelName name;
};
// For x of `type` and the part's weight.
Kernel kernel_of(const ExpertTile& tile, DType type, DType weight) {
  if (tile.few == nullptr) return {"expert_gemm", KernelName("expert_gemm", type)};
  const ExpertFewKernels& few = *tile.few;
  return {is_quantized(weight) ? few.families.of(weight) : few.plain,
          KernelName(few.prefix, type, name(weight))};
}

// A slab's products with x, or with each of x's terms, whose results lie one after another.
void launch_slab(const ExpertTile& tile, const Kernel& kernel, shared::ExpertGemmParams params,
                 int64_t x_elements, int terms, Stream& stream) {
  const int64_t tiles = most_tiles(tile, params.choices, params.count, params.outs);
  for (int term = 0; term < terms; ++term) {
    launch(stream,
           {.op = "expert_linear",
            .family = kernel.family,
            .kernel = kernel.name,
            .grid = {.x = static_cast<uint32_t>(tiles)},
            .threads = tile.threads,
            .shared_bytes = tile.shared_bytes},
           params);
    params.x = static_cast<const std::byte*>(params.x) + x_elements * 2;
    params.y = static_cast<float*>(params.y) + int64_t{params.choices} * params.outs;
  }
}

void run_part(const ExpertTile& tile, const ExpertLinearArgs& args, const ExpertPart& part,
              const ExpertGroups& groups, ProductInput& input, void* memory, Stream& stream) {
  const View weight = as_matrix(part.weight);
  const ProductKind kind = kind_of(args, part);
  const int64_t experts = part.weight.size(0), outs = part.weight.size(1);
  const bool slabs = converted(tile, part.weight);
  const int64_t each = slabs ? slab_experts(part.weight) : experts;
  const int terms = kind.split ? SplitInput::count(kind.type) : 1;
  const Scratch products(stream, kind.split ? term_bytes(args, part) : 0);
  const View x = kind.split ? input.split(kind.type).terms() : input.rounded(kind.type);
  shared::ExpertGemmParams params{.x = x.data,
                                  .weight = weight.data,
                                  .bias = kind.split ? nullptr : part.bias.data,
                                  .y = kind.split ? products.as<void>() : part.y.data,
                                  .order = groups.params().order,
                                  .starts = groups.params().starts,
                                  .tiles = groups.params().tiles,
                                  .choices = groups.params().choices,
                                  .outs = static_cast<int32_t>(outs),
                                  .depth = static_cast<int32_t>(weight.size(1)),
                                  .first = 0,
                                  .count = 0,
                                  .each = choices_of_row(args),
                                  .y_type = float_number(args.x.dtype)};
  for (int64_t first = 0; first < experts; first += each) {
    const int64_t count = std::min(each, experts - first);
    params.first = static_cast<int32_t>(first);
    params.count = static_cast<int32_t>(count);
    if (slabs) {
      params.weight = slab_of(weight, first * outs, count * outs, kind.type, memory, stream).data;
    }
    launch_slab(tile, kernel_of(tile, kind.type, weight.dtype), params, args.x.numel(), terms,
                stream);
  }
  if (kind.split) {
    input.split(kind.type).join({.products = products.as<const float>(),
                                 .bias = part.bias,
                                 .experts = args.ids,
                                 .y = part.y,
                                 .each = choices_of_row(args)});
  }
}

void run_tokens(const ExpertTile& tile, const ExpertLinearArgs& args, void* memory,
                Stream& stream) {
  const ExpertGroups groups(args, stream);
  ProductInput input("expert_linear", args.x, stream);
  for (const ExpertPart& part : args.parts) {
    run_part(tile, args, part, groups, input, memory, stream);
  }
}

// Tokens whose terms' products fit kProductBytes; at least one.
int64_t most_tokens(const ExpertLinearArgs& args) {
  const int64_t tokens = args.ids.size(0);
  int64_t most = tokens;
  for (const ExpertPart& part : args.parts) {
    if (!kind_of(args, part).split) continue;
    const int64_t each =
        std::max<int64_t>(static_cast<int64_t>(term_bytes(args, part)) / tokens, 1);
    most = std::min(most, std::max<int64_t>(kProductBytes / each, 1));
  }
  return most;
}

// Rows of a contiguous view along its first axis.
View rows_of(View view, int64_t first, int64_t count) {
  view.data = view.as<std::byte>() + first * view.stride(0) * info(view.dtype).block_bytes;
  view.sizes[0] = count;
  return view;
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

const char* refuse_expert_few(const ExpertLinearArgs& args) {
  for (const ExpertPart& part : args.parts) {
    const View& weight = part.weight;
    if (!half_width(weight.dtype) && !is_quantized(weight.dtype)) return "reads 16 bits and blocks";
    if (is_quantized(weight.dtype) && weight.packing != kPlanesPacking) {
      return "reads block types packed";
    }
    if (args.ids.numel() > shared::kExpertRows * weight.size(0)) return "many choices of an expert";
  }
  return refuse_expert_tensor(args);
}

void run_expert_tensor(const ExpertTile& tile, const ExpertLinearArgs& args, Stream& stream) {
  if (args.ids.numel() == 0) return;
  int64_t slab = 0;
  for (const ExpertPart& part : args.parts) {
    const View& weight = part.weight;
    if (converted(tile, weight)) {
      slab = std::max(slab, slab_experts(weight) * matrix_bytes(weight));
    }
  }
  const Scratch memory(stream, static_cast<size_t>(slab));
  const int64_t tokens = args.ids.size(0), most = most_tokens(args);
  const int64_t x_rows = args.x.size(0) / tokens, chosen = args.ids.size(1);
  for (int64_t first = 0; first < tokens; first += most) {
    const int64_t count = std::min(most, tokens - first);
    ExpertLinearArgs some = args;
    some.x = rows_of(args.x, first * x_rows, count * x_rows);
    some.ids = rows_of(args.ids, first, count);
    std::vector<ExpertPart> parts(args.parts.begin(), args.parts.end());
    for (ExpertPart& part : parts) part.y = rows_of(part.y, first * chosen, count * chosen);
    some.parts = parts;
    run_tokens(tile, some, memory.as<void>(), stream);
  }
}

}  // namespace rbee::gpu
