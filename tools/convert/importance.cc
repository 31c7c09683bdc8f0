#include "tools/convert/importance.h"

#include <algorithm>
#include <string_view>

#include "rbee/core/error.h"

namespace rbee::tools {
namespace {

bool has_one_of(std::string_view name, const std::vector<std::string>& parts) {
  return std::ranges::any_of(parts,
                             [&](const std::string& part) { return name.find(part) != name.npos; });
}

bool takes_importance(const TensorPlan& plan) {
  return is_quantized(plan.to) && plan.to != plan.tensor->stored.dtype;
}

}  // namespace

Importance::Importance(const ImportanceOptions& options)
    : file_(options.file.string()), matrix_(io::read_importance(options.file)) {
  std::erase_if(matrix_.entries, [&](const auto& entry) {
    const bool wanted = options.included.empty() || has_one_of(entry.first, options.included);
    return !wanted || has_one_of(entry.first, options.excluded);
  });
  if (matrix_.entries.empty()) {
    fail(Code::not_found, file_, "no entry of the importance matrix is left");
  }
}

std::vector<float> Importance::of(const TensorPlan& plan) const {
  const Shape& shape = plan.tensor->stored.shape;
  if (!takes_importance(plan) || shape.rank() < 2) return {};
  const int64_t matrices = shape.rank() > 2 ? shape[0] : 1;
  return matrix_.importance(plan.tensor->stored.name, matrices, shape[shape.rank() - 1]);
}

std::vector<std::string> Importance::missing(std::span<const TensorPlan> plans) const {
  std::vector<std::string> names;
  for (const TensorPlan& plan : plans) {
    const std::string& name = plan.tensor->stored.name;
    const bool in_layer = name.starts_with("blk.");
    if (of(plan).empty() && in_layer && takes_importance(plan)) names.push_back(name);
  }
  return names;
}

void Importance::set_keys(io::GgufWriter& writer) const {
  writer.set_string("quantize.imatrix.file", file_);
  if (!matrix_.datasets.empty()) {
    writer.set_string("quantize.imatrix.dataset", matrix_.datasets.front());
  }
  writer.set_u32("quantize.imatrix.entries_count", static_cast<uint32_t>(matrix_.entries.size()));
  if (matrix_.chunks > 0) {
    writer.set_u32("quantize.imatrix.chunks_count", static_cast<uint32_t>(matrix_.chunks));
  }
}

}  // namespace rbee::tools
