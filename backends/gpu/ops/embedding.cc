#include "backends/gpu/ops/embedding.h"

#include <algorithm>
#include <array>

#include "backends/gpu/launch.h"
#include "backends/gpu/rows.h"
#include "backends/shared/embedding_params.h"

namespace rbee::gpu {
namespace {

// As in kernels/embedding.cu.
constexpr int64_t kThreads = 256;
constexpr int64_t kRun = 8;
constexpr int64_t kMostElements = int64_t{1} << 31;  // of a launch: AMD counts threads in 32 bits
constexpr std::array kFloats{DType::f32, DType::f16, DType::bf16, DType::f64, DType::f8e4m3};

// True if every row is whole runs of neighbours, aligned for one access or two.
bool in_runs(const View& rows) {
  const int64_t bytes = std::min<int64_t>(kRun * info(rows.dtype).block_bytes, 16);
  return rows.stride(1) == 1 && rows.size(1) % kRun == 0 &&
         (rows.size(0) <= 1 || rows.stride(0) % kRun == 0) &&
         reinterpret_cast<uintptr_t>(rows.data) % static_cast<uintptr_t>(bytes) == 0;
}

void run_rows(const EmbeddingArgs& args, Stream& stream) {
  const View &table = args.table, &y = args.y;
  if (y.numel() == 0) return;
  const bool blocks = is_quantized(table.dtype);
  const bool packed = in_runs(y) && (blocks || in_runs(table));
  const int64_t row_runs = table.size(1) / (blocks || packed ? kRun : 1);
  const auto to = std::find(kFloats.begin(), kFloats.end(), y.dtype) - kFloats.begin();
  const shared::EmbeddingParams params{
      .ids = args.ids.as<const int32_t>(),
      .table = table.data,
      .y = y.data,
      .ids_step = args.ids.stride(0),
      .table_row = blocks ? 0 : table.size(1),
      .y_row = y.stride(0),
      .y_step = y.stride(1),
      .count = y.size(0) * row_runs,
      .row_runs = shared::make_divider(static_cast<uint32_t>(row_runs)),
      .dim = static_cast<int32_t>(table.size(1)),
      .packed = packed,
      .to = static_cast<uint32_t>(to),
      .scale = args.scale};
  launch(stream,
         {.op = "embedding",
          .family = "embedding",
          .kernel = KernelName("embedding", table.dtype),
          .grid = {.x = blocks_for(params.count, kThreads)},
          .threads = kThreads},
         params);
}

void run_embedding(const EmbeddingArgs& args, Stream& stream) {
  const int64_t most = std::max<int64_t>(kMostElements / std::max<int64_t>(args.y.size(1), 1), 1);
  for_row_parts(args, {&EmbeddingArgs::y, &EmbeddingArgs::ids}, most,
                [&](const EmbeddingArgs& part) { run_rows(part, stream); });
}

}  // namespace

const Impl<EmbeddingArgs> embedding{"gpu", never_refuse, run_embedding};

}  // namespace rbee::gpu
