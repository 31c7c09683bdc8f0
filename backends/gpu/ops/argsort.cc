#include <algorithm>
#include <bit>
#include <utility>

#include "backends/gpu/gpu_device.h"
#include "backends/gpu/ops/reduce.h"
#include "backends/gpu/rows.h"
#include "backends/shared/argsort_params.h"

namespace rbee::gpu {
namespace {

constexpr uint32_t kThreads = 256;  // as in kernels/argsort.cu
constexpr uint32_t kPiece = 2048;
constexpr int64_t kMaxRow = (int64_t{1} << 32) - 1;  // y's indices end here
constexpr int64_t kMostBlocks = 1 << 20;             // a merge's threads loop over more

void launch_argsort(Stream& stream, const KernelName& kernel, int64_t blocks, const auto& params) {
  launch(stream,
         {.op = "argsort",
          .family = "argsort",
          .kernel = kernel,
          .grid = {.x = static_cast<uint32_t>(blocks)},
          .threads = kThreads},
         params);
}

// Merges sorted pieces in `from` to sorted rows in y; `from` and `to` take turns.
void merge_pieces(const ArgsortArgs& args, uint64_t rows, uint32_t n, int64_t item_bytes,
                  void* from, void* to, Stream& stream) {
  const KernelName kernel(item_bytes == 8 ? "argsort_merge_key32" : "argsort_merge_key64");
  const auto count = static_cast<int64_t>(rows * n);
  const int64_t blocks = std::min<int64_t>((count + kThreads - 1) / kThreads, kMostBlocks);
  for (uint64_t run = kPiece; run < n; run *= 2) {
    const bool last = run * 2 >= n;
    launch_argsort(stream, kernel, blocks,
                   shared::ArgsortMergeParams{.from = from,
                                              .to = last ? nullptr : to,
                                              .y = args.y.as<uint32_t>(),
                                              .rows = rows,
                                              .n = n,
                                              .run = static_cast<uint32_t>(run),
                                              .y_rows = rows_of(args.y)});
    std::swap(from, to);
  }
}

int64_t pieces_of(const ArgsortArgs& args) {
  return (args.x.size(-1) + kPiece - 1) / kPiece;
}

void run_rows(const ArgsortArgs& args, Stream& stream) {
  const auto n = static_cast<uint32_t>(args.x.size(-1));
  const auto rows = static_cast<uint64_t>(row_count(args.x));
  if (n == 0 || rows == 0) return;
  const uint32_t size = std::bit_ceil(std::min(n, kPiece));
  const auto pieces = static_cast<uint32_t>(pieces_of(args));
  const int64_t item_bytes = info(args.x.dtype).block_bytes == 8 ? 16 : 8;
  const auto bytes = pieces == 1 ? 0 : static_cast<size_t>(rows * n) * item_bytes;
  const Scratch items(stream, bytes), others(stream, bytes);
  launch_argsort(stream, KernelName("argsort_tile", args.x.dtype),
                 blocks_for(static_cast<int64_t>(rows) * pieces, kPiece / size),
                 shared::ArgsortTileParams{.x = args.x.data,
                                           .y = args.y.as<uint32_t>(),
                                           .items = items.as<void>(),
                                           .rows = rows,
                                           .n = n,
                                           .pieces = pieces,
                                           .size = size,
                                           .descending = args.descending ? 1u : 0u,
                                           .x_rows = rows_of(args.x),
                                           .y_rows = rows_of(args.y)});
  if (pieces > 1) {
    merge_pieces(args, rows, n, item_bytes, items.as<void>(), others.as<void>(), stream);
  }
}

void run_argsort(const ArgsortArgs& args, Stream& stream) {
  const int64_t most = std::max<int64_t>(kMostRows / std::max<int64_t>(pieces_of(args), 1), 1);
  for_row_parts(args, {&ArgsortArgs::x, &ArgsortArgs::y}, most,
                [&](const ArgsortArgs& part) { run_rows(part, stream); });
}

const char* refuse_argsort(const ArgsortArgs& args) {
  return args.x.size(-1) > kMaxRow ? "u32 does not number so long a row" : nullptr;
}

}  // namespace

const Impl<ArgsortArgs> argsort{"gpu", refuse_argsort, run_argsort};

}  // namespace rbee::gpu
