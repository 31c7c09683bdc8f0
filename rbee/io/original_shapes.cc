#include "rbee/io/original_shapes.h"

#include <algorithm>

#include "rbee/core/error.h"

namespace rbee::io {
namespace {

constexpr std::string_view kKey = "comfy.gguf.orig_shape.";

Shape listed_shape(std::span<const int64_t> sizes, const TensorEntry& entry, const std::string& key,
                   const std::string& source) {
  check(sizes.size() <= kMaxRank, source, key, " lists ", sizes.size(), " sizes, wanted at most ",
        kMaxRank);
  Shape shape;
  int64_t elements = 1;
  for (const int64_t size : sizes) {
    check(size >= 1 && !__builtin_mul_overflow(elements, size, &elements), source, key,
          " lists the size ", size);
    shape.push_back(size);
  }
  check(elements == numel(entry.shape), source, key, " is (", shape, "), but the tensor is (",
        entry.shape, ")");
  return shape;
}

}  // namespace

void restore_shapes(const Metadata& metadata, std::span<TensorEntry> tensors,
                    const std::string& source) {
  const auto listed = [](const MetaEntry& entry) { return entry.key.starts_with(kKey); };
  if (std::ranges::none_of(metadata.entries(), listed)) return;
  for (TensorEntry& entry : tensors) {
    const std::string key = cat(kKey, entry.name);
    const auto sizes = metadata.get_ints(key);
    if (sizes) entry.shape = listed_shape(*sizes, entry, key, source);
  }
}

}  // namespace rbee::io
