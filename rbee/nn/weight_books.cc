#include "rbee/nn/weight_books.h"

#include <algorithm>
#include <string>

#include "rbee/core/cat.h"
#include "rbee/core/log.h"
#include "rbee/io/integer_matrix.h"
#include "rbee/nn/weight_stash.h"

namespace rbee::nn {

DType WeightFigures::most_common() const {
  const auto largest = std::ranges::max_element(bytes_by_type);
  return static_cast<DType>(largest - bytes_by_type.begin());
}

WeightBooks::WeightBooks(const io::Checkpoint& checkpoint, const WeightOptions& options)
    : checkpoint_(checkpoint), options_(options) {
  for (const io::TensorEntry& entry : checkpoint.tensors()) {
    total_ += static_cast<int64_t>(entry.data.size());
  }
}

void WeightBooks::take(const io::TensorEntry& entry) {
  if (!taken_.insert(&entry).second) return;
  const auto bytes = static_cast<int64_t>(entry.data.size());
  figures_.parameters += numel(entry.shape);
  const bool ordered = entry.integers && !entry.integers->inputs_by_group.empty();
  const DType type = ordered ? entry.integers->grouped_type : entry.dtype;
  figures_.bytes_by_type[static_cast<size_t>(type)] += bytes;
  done_ += bytes;
  if (options_.progress) options_.progress(done_, total_);
}

bool WeightBooks::may_stay_unused(std::string_view name) const {
  // For inputs in 4 bits, which no kernel has.
  const bool gguf = checkpoint_.format() == io::Checkpoint::Format::gguf;
  if (gguf && name.ends_with(".input_scale")) return true;
  const auto has = [&](auto part) { return name.find(part) != std::string_view::npos; };
  return std::ranges::any_of(options_.ignored, has);
}

void WeightBooks::finish() const {
  if (options_.progress) options_.progress(total_, total_);
  if (options_.stash != nullptr && options_.stash->filled()) return;
  if (options_.first_layers != INT64_MAX) return;  // the rest is left on purpose
  int64_t unused = 0;
  std::string names;
  for (const io::TensorEntry& entry : checkpoint_.tensors()) {
    if (taken_.contains(&entry) || may_stay_unused(entry.name)) continue;
    constexpr int64_t kNamed = 8;
    if (++unused <= kNamed) names += cat(names.empty() ? "" : ", ", entry.name);
  }
  if (unused == 0) return;
  log(LogLevel::warn, "the model does not use some tensors of the checkpoint",
      {{"count", cat(unused)}, {"first", names}});
}

}  // namespace rbee::nn
