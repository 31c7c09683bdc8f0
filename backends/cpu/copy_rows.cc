#include "backends/cpu/copy_rows.h"

#include <algorithm>
#include <cstring>

#include "backends/cpu/merged_axes.h"
#include "backends/cpu/thread_pool.h"
#include "rbee/core/dtype.h"

namespace rbee::cpu {
namespace {

constexpr int64_t kPieceBytes = 32 * 1024;  // that one thread copies at a time

const char* refuse(const CopyArgs& args) {
  if (is_quantized(args.x.dtype)) return "takes plain numbers";
  const View* const views[] = {&args.y, &args.x};
  const MergedAxes<2> axes = merged_axes(views);
  const bool adjoin = axes.column_step(0) == 1 && axes.column_step(1) == 1;
  return adjoin ? nullptr : "takes neighbours that adjoin";
}

void run(const CopyArgs& args, Stream&) {
  const View* const views[] = {&args.y, &args.x};
  const MergedAxes<2> axes = merged_axes(views);
  const int64_t width = info(args.x.dtype).block_bytes;
  const int64_t row_bytes = axes.columns() * width;
  if (row_bytes == 0) return;
  const int64_t pieces = (row_bytes + kPieceBytes - 1) / kPieceBytes;
  const int64_t grain = std::max<int64_t>(kPieceBytes / row_bytes, 1);
  ThreadPool::shared().parallel_for(
      axes.rows() * pieces, grain, [&](int64_t begin, int64_t end, int) {
        for (int64_t i = begin; i < end; ++i) {
          const int64_t row = i / pieces, first = i % pieces * kPieceBytes;
          std::memcpy(args.y.as<std::byte>() + axes.row_offset(0, row) * width + first,
                      args.x.as<std::byte>() + axes.row_offset(1, row) * width + first,
                      static_cast<size_t>(std::min(kPieceBytes, row_bytes - first)));
        }
      });
}

}  // namespace

const Impl<CopyArgs> rows_copy{"rows", refuse, run};

}  // namespace rbee::cpu
