#include "rbee/models/image/open_clip_file.h"

#include <cstring>

#include "rbee/core/error.h"
#include "rbee/models/image/entry_parts.h"
#include "rbee/models/image/original_names.h"

namespace rbee::models {
namespace {

using io::TensorEntry;

// Columns as rows, in a copy.
TensorEntry transposed(const TensorEntry& entry, std::string name) {
  if (entry.shape.rank() != 2 || is_quantized(entry.dtype)) {
    fail(Code::unsupported, entry.name, "a projection of ", entry.dtype, " (", entry.shape,
         ") cannot be transposed");
  }
  const auto rows = static_cast<size_t>(entry.shape[0]), cols = static_cast<size_t>(entry.shape[1]);
  const auto size = static_cast<size_t>(info(entry.dtype).block_bytes);
  auto bytes = std::make_shared<std::vector<std::byte>>(entry.data.size());
  for (size_t row = 0; row < rows; ++row) {
    for (size_t col = 0; col < cols; ++col) {
      std::memcpy(&(*bytes)[(col * rows + row) * size], &entry.data[(row * cols + col) * size],
                  size);
    }
  }
  return with_bytes(entry, std::move(name), Shape{entry.shape[1], entry.shape[0]},
                    std::move(bytes));
}

void add_tensor(const TensorEntry& entry, const std::string& name, std::vector<TensorEntry>& out) {
  for (const std::string_view leaf : {"weight", "bias"}) {
    const std::string fused = cat("in_proj_", leaf);
    if (!name.ends_with(fused)) continue;
    const std::string head = name.substr(0, name.size() - fused.size());
    RowShare third{.first = 0, .count = 1, .shares = 3};
    for (const char* projection : {"q_proj.", "k_proj.", "v_proj."}) {
      out.push_back(rows_of(entry, third, cat(head, projection, leaf)));
      ++third.first;
    }
    return;
  }
  if (name == "text_projection") {
    out.push_back(transposed(entry, "text_projection.weight"));
    return;
  }
  out.push_back(entry);
  out.back().name = name;
}

// Files of the whole model have its vision tower, too.
bool is_text(std::string_view name) {
  return !name.starts_with("visual.");
}

}  // namespace

std::vector<TensorEntry> open_clip_tensors(const io::Checkpoint& file, std::string_view prefix) {
  std::vector<TensorEntry> out;
  for (const TensorEntry& entry : file.tensors()) {
    const std::string_view full = entry.name;
    if (!full.starts_with(prefix) || !is_text(full.substr(prefix.size()))) continue;
    const std::string name = open_clip_name(full.substr(prefix.size()));
    if (!name.empty()) add_tensor(entry, name, out);
  }
  return out;
}

}  // namespace rbee::models
