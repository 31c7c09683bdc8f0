#include "backends/cpu/select_columns.h"

#include <algorithm>

#include "backends/cpu/thread_pool.h"
#include "rbee/core/dtype.h"

namespace rbee::cpu {
namespace {

constexpr int64_t kPiece = 4096;  // elements that one thread takes at a time

const char* refuse(const IndexSelectArgs& args) {
  const int64_t width = info(args.x.dtype).block_bytes;
  if (args.x.rank != 2 || args.axis != 1) return "takes columns of a matrix";
  if (is_quantized(args.x.dtype) || (width != 2 && width != 4)) return "takes 16 or 32 bits";
  if (args.ids.dtype != DType::i32 || !args.ids.contiguous()) return "takes contiguous i32 ids";
  const bool adjoin = args.x.strides[1] == 1 && args.y.strides[1] == 1;
  return adjoin ? nullptr : "takes neighbours that adjoin";
}

template <typename T>
void select(const IndexSelectArgs& args) {
  const int64_t columns = args.y.sizes[1], rows = args.y.sizes[0];
  if (columns == 0) return;
  const auto* ids = args.ids.as<const int32_t>();
  const int64_t pieces = (columns + kPiece - 1) / kPiece;
  const int64_t grain = std::max<int64_t>(kPiece / columns, 1);
  ThreadPool::shared().parallel_for(rows * pieces, grain, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t row = i / pieces, first = i % pieces * kPiece;
      const int64_t last = std::min(first + kPiece, columns);
      const T* x = args.x.as<const T>() + row * args.x.strides[0];
      T* y = args.y.as<T>() + row * args.y.strides[0];
      for (int64_t column = first; column < last; ++column) {
        const int32_t id = ids[column];
        y[column] = names_nothing(id) ? T{0} : x[id];
      }
    }
  });
}

void run(const IndexSelectArgs& args, Stream&) {
  if (info(args.x.dtype).block_bytes == 2) return select<uint16_t>(args);
  select<uint32_t>(args);
}

}  // namespace

const Impl<IndexSelectArgs> columns_index_select{"columns", refuse, run};

}  // namespace rbee::cpu
