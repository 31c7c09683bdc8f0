#include "backends/cpu/ref/embedding.h"

#include <cstring>
#include <vector>

#include "backends/api/dispatch_blocks.h"
#include "backends/cpu/ref/loop.h"
#include "backends/cpu/ref/number.h"

namespace rbee::cpu {
namespace {

// Row `id` of the table, in float (f64: narrowed).
void read_row(const View& table, int64_t id, std::vector<float>& row) {
  const auto dim = static_cast<int64_t>(row.size());
  if (!is_quantized(table.dtype)) {
    dispatch_floats("embedding", table.dtype, [&]<typename T>() {
      const T* from = table.as<T>() + id * table.stride(0);
      for (int64_t i = 0; i < dim; ++i) {
        row[static_cast<size_t>(i)] = static_cast<float>(load(from[i * table.stride(1)]));
      }
    });
    return;
  }
  dispatch_blocks("embedding", table.dtype, [&]<typename Block>() {
    const auto* from = table.as<std::byte>() + id * row_bytes(table.dtype, dim);
    for (int64_t i = 0; i < dim; i += Block::kElements) {
      Block block;
      std::memcpy(&block, from + i / Block::kElements * int64_t{sizeof(Block)}, sizeof(Block));
      shared::dequantize_block(block, row.data() + i);
    }
  });
}

void run_embedding(const EmbeddingArgs& args, Stream&) {
  std::vector<float> row(static_cast<size_t>(args.table.size(1)));
  for (int64_t i = 0; i < args.ids.size(0); ++i) {
    read_row(args.table, args.ids.as<int32_t>()[i * args.ids.stride(0)], row);
    dispatch_floats("embedding", args.y.dtype, [&]<typename T>() {
      T* y = args.y.as<T>() + i * args.y.stride(0);
      for (size_t j = 0; j < row.size(); ++j) {
        y[static_cast<int64_t>(j) * args.y.stride(1)] = store<T>(row[j] * args.scale);
      }
    });
  }
}

}  // namespace

const Impl<EmbeddingArgs> ref_embedding{"ref", never_refuse, run_embedding};

}  // namespace rbee::cpu
