#include "tests/support/kv_pages.h"

#include <cstring>
#include <vector>

#include "backends/shared/quant_blocks.h"

namespace rbee::harness {
namespace {

using shared::BlockQ8_0;

// The places of a group's codes and scale.
struct Place {
  int64_t codes, scale;
};

Place place_of(int64_t group, int64_t rows, int64_t dim) {
  const int64_t page = rows * dim / BlockQ8_0::kElements;  // groups
  const int64_t first = group / page * page;
  const auto start = first * static_cast<int64_t>(sizeof(BlockQ8_0));
  const int64_t within = group - first;
  return {start + within * BlockQ8_0::kElements, start + rows * dim + within * 2};
}

}  // namespace

void to_pages(std::span<std::byte> bytes, const Shape& cache) {
  const std::vector<std::byte> blocks(bytes.begin(), bytes.end());
  for (size_t group = 0; group * sizeof(BlockQ8_0) < bytes.size(); ++group) {
    BlockQ8_0 block;
    std::memcpy(&block, &blocks[group * sizeof block], sizeof block);
    block.d = to_f16(to_float(f16{block.d}) / 8).bits;
    const Place to = place_of(static_cast<int64_t>(group), cache[2], cache[3]);
    std::memcpy(&bytes[static_cast<size_t>(to.codes)], block.qs, sizeof block.qs);
    std::memcpy(&bytes[static_cast<size_t>(to.scale)], &block.d, sizeof block.d);
  }
}

double page_element(const std::byte* pages, const View& cache, int64_t i) {
  const int64_t within = i % BlockQ8_0::kElements;
  const Place at = place_of(i / BlockQ8_0::kElements, cache.size(2), cache.size(3));
  f16 scale;
  std::memcpy(&scale, pages + at.scale, sizeof scale);
  const auto code = static_cast<int8_t>(pages[at.codes + within]);
  return static_cast<double>(to_float(scale)) * code;
}

}  // namespace rbee::harness
