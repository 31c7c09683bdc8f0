#include "rbee/models/image/entry_parts.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "rbee/core/error.h"

namespace rbee::models {

using io::TensorEntry;

TensorEntry rows_of(const TensorEntry& entry, const RowShare& share, std::string name) {
  check(entry.shape.rank() >= 1 && entry.shape[0] % share.shares == 0, entry.name, "its shape (",
        entry.shape, ") does not hold ", share.shares, " parts");
  TensorEntry part = entry;
  part.name = std::move(name);
  part.shape[0] = entry.shape[0] / share.shares * share.count;
  const size_t bytes = entry.data.size() / static_cast<size_t>(share.shares);
  part.data = entry.data.subspan(static_cast<size_t>(share.first) * bytes,
                                 static_cast<size_t>(share.count) * bytes);
  return part;
}

TensorEntry with_bytes(const TensorEntry& entry, std::string name, const Shape& shape,
                       std::shared_ptr<std::vector<std::byte>> bytes) {
  TensorEntry out = entry;
  out.name = std::move(name);
  out.shape = shape;
  out.data = *bytes;
  out.file = nullptr;
  out.owner = std::move(bytes);
  return out;
}

TensorEntry halves_swapped(const TensorEntry& entry, std::string name) {
  const TensorEntry first = rows_of(entry, {.first = 0, .count = 1, .shares = 2}, name);
  const TensorEntry second = rows_of(entry, {.first = 1, .count = 1, .shares = 2}, name);
  auto bytes = std::make_shared<std::vector<std::byte>>(second.data.begin(), second.data.end());
  bytes->insert(bytes->end(), first.data.begin(), first.data.end());
  return with_bytes(entry, std::move(name), entry.shape, std::move(bytes));
}

}  // namespace rbee::models
