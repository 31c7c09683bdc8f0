#include <algorithm>
#include <bit>
#include <utility>

#include "backends/gpu/gpu_device.h"
#include "backends/gpu/ops/reduce.h"
#include "backends/gpu/rows.h"
#include "backends/shared/top_k_params.h"

namespace rbee::gpu {
namespace {

constexpr uint32_t kThreads = 512;  // as in kernels/top_k.cu
constexpr uint32_t kPiece = 2048;
constexpr uint32_t kFirstPiece = 4096;
constexpr int64_t kMostBlocks = 1 << 22;  // of a launch: AMD counts threads in 32 bits
constexpr uint32_t kLeastKept = 4;        // of a list
constexpr uint32_t kMerged = 2 * kPiece;  // items of the lists that a block merges
static_assert(kMaxTopK <= kPiece, "a piece holds what is kept");

void launch_top_k(Stream& stream, KernelName kernel, uint64_t blocks, const auto& params) {
  launch(stream,
         {.op = "top_k",
          .family = "top_k",
          .kernel = kernel.lanes(device_of(stream).properties().lane_count),
          .grid = {.x = static_cast<uint32_t>(blocks)},
          .threads = kThreads},
         params);
}

shared::TopKResult result_of(const TopKArgs& args) {
  return {.values = args.values.as<float>(),
          .ids = args.ids.as<int32_t>(),
          .sum = args.sum.as<float>(),
          .scale = args.scale.as<const float>(),
          .values_row = args.values.stride(0),
          .values_step = args.values.stride(1),
          .ids_row = args.ids.stride(0),
          .ids_step = args.ids.stride(1),
          .sum_row = args.sum ? args.sum.stride(0) : 0,
          .scale_row = args.scale ? args.scale.stride(0) : 0,
          .k = static_cast<uint32_t>(args.values.size(1))};
}

// `from` and `to` take turns until one list a row is left.
void merge_lists(uint64_t rows, shared::TopKMergeParams params, uint64_t* from, uint64_t* to,
                 Stream& stream) {
  const uint32_t together = kMerged / params.kept;
  while (params.lists > 1) {
    params.groups = (params.lists + together - 1) / together;
    params.from = from;
    params.to = params.groups > 1 ? to : nullptr;
    launch_top_k(stream, KernelName("top_k_merge"), rows * params.groups, params);
    params.lists = params.groups;
    std::swap(from, to);
  }
}

// The largest of each row without its sum.
void run_first(const TopKArgs& args, Stream& stream) {
  const auto rows = static_cast<uint64_t>(args.x.size(0));
  const auto n = static_cast<uint32_t>(args.x.size(1));
  const uint32_t pieces = (n - 1) / kFirstPiece + 1;
  const shared::TopKResult result = result_of(args);
  const Scratch items(stream, pieces == 1 ? 0 : rows * pieces * sizeof(uint64_t));
  launch_top_k(stream, KernelName("top_k_first", args.x.dtype), rows * pieces,
               shared::TopKFindParams{.x = args.x.data,
                                      .x_row = args.x.stride(0),
                                      .x_step = args.x.stride(1),
                                      .items = items.as<shared::u64>(),
                                      .ledger = nullptr,
                                      .n = n,
                                      .pieces = pieces,
                                      .kept = 1,
                                      .result = result});
  if (pieces == 1) return;
  launch_top_k(stream, KernelName("top_k_merge_first"), rows,
               shared::TopKMergeParams{.from = items.as<const shared::u64>(),
                                       .to = nullptr,
                                       .ledger = nullptr,
                                       .lists = pieces,
                                       .groups = 1,
                                       .kept = 1,
                                       .pieces = pieces,
                                       .result = result});
}

void run_rows(const TopKArgs& args, Stream& stream) {
  const auto rows = static_cast<uint64_t>(args.x.size(0));
  const auto n = static_cast<uint32_t>(args.x.size(1));
  const shared::TopKResult result = result_of(args);
  if (rows == 0) return;
  if (result.k == 1 && !args.sum) return run_first(args, stream);
  const uint32_t kept = std::max(std::bit_ceil(result.k), kLeastKept);
  const uint32_t pieces = (n - 1) / kPiece + 1;
  const bool whole = pieces == 1;
  const uint32_t groups = (pieces * kept - 1) / kMerged + 1;
  const Scratch items(stream, whole ? 0 : rows * pieces * kept * sizeof(uint64_t));
  const Scratch others(stream, groups == 1 ? 0 : rows * groups * kept * sizeof(uint64_t));
  const Scratch ledger(stream, whole ? 0 : rows * pieces * sizeof(shared::TopKPiece));
  launch_top_k(stream, KernelName("top_k_find", args.x.dtype), rows * pieces,
               shared::TopKFindParams{.x = args.x.data,
                                      .x_row = args.x.stride(0),
                                      .x_step = args.x.stride(1),
                                      .items = items.as<shared::u64>(),
                                      .ledger = ledger.as<shared::TopKPiece>(),
                                      .n = n,
                                      .pieces = pieces,
                                      .kept = kept,
                                      .result = result});
  merge_lists(rows,
              {.from = nullptr,
               .to = nullptr,
               .ledger = ledger.as<const shared::TopKPiece>(),
               .lists = pieces,
               .groups = 1,
               .kept = kept,
               .pieces = pieces,
               .result = result},
              items.as<uint64_t>(), others.as<uint64_t>(), stream);
}

// Rows are no longer than an i32 can count.
void run_top_k(const TopKArgs& args, Stream& stream) {
  const int64_t pieces = (args.x.size(1) + kPiece - 1) / kPiece;
  const int64_t most = std::max<int64_t>(kMostBlocks / pieces, 1);
  using Args = TopKArgs;
  for_row_parts(args, {&Args::x, &Args::scale, &Args::values, &Args::ids, &Args::sum}, most,
                [&](const Args& part) { run_rows(part, stream); });
}

}  // namespace

const Impl<TopKArgs> top_k{"gpu", never_refuse, run_top_k};

}  // namespace rbee::gpu
