#include "rbee/models/lora_adapter.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "rbee/models/lora_file.h"
#include "rbee/quant/quant.h"

namespace rbee::models {
namespace {

using nn::LoraTarget;
// By the name that a file calls a layer by; several where one matrix holds several layers.
using TargetsByName = std::multimap<std::string_view, const LoraTarget*>;

TargetsByName index(std::span<const LoraTarget> targets, bool gguf) {
  TargetsByName out;
  for (const LoraTarget& target : targets) {
    const std::string& name = gguf ? target.gguf : target.hf;
    if (!name.empty()) out.emplace(name, &target);
  }
  return out;
}

void check_architecture(const LoraFile& file, const LanguageModel& model,
                        const TargetsByName& targets) {
  if (!file.is_gguf()) return;
  if (targets.empty()) {
    fail(Code::unsupported, file.source(), "an adapter in a GGUF file goes with a model in one, ",
         "where rows lie in the same order; take the adapter in PEFT's form");
  }
  const std::string& own = model.config().architecture;
  check(file.architecture() == own, file.source(), "it is for the architecture \"",
        file.architecture(), "\", the model is \"", own, "\"");
}

void check_known(const LoraFile& file, const TargetsByName& targets) {
  constexpr size_t kNamed = 4;
  size_t unknown = 0;
  std::string names;
  for (const LoraFileLayer& layer : file.layers()) {
    if (targets.contains(layer.module)) continue;
    if (unknown++ < kNamed) names += cat(names.empty() ? "" : ", ", layer.module);
  }
  if (unknown == 0) return;
  fail(Code::unsupported, file.source(), unknown, " of its ", file.layers().size(), " layers are ",
       "not among those of the model that adapters may change: ", names,
       unknown > kNamed ? ", ..." : "");
}

void check_fit(const LoraFile& file, const LoraFileLayer& layer, const LoraTarget& target) {
  const int64_t rank = layer.down->shape[0];
  const Shape down{rank, target.total_inputs}, up{target.total_rows, rank};
  for (const auto& [entry, wanted] : {std::pair{layer.down, &down}, {layer.up, &up}}) {
    check(entry->shape == *wanted, file.source(), "tensor ", entry->name, " is (", entry->shape,
          "), wanted (", *wanted, "): the adapter is for another model");
  }
}

std::vector<float> read_finite(const LoraFile& file, const io::TensorEntry& entry) {
  std::vector<float> values;
  if (info(entry.dtype).block_size > 1) {
    values.resize(static_cast<size_t>(numel(entry.shape)));
    quant::dequantize_row(entry.dtype, entry.data.data(), values.data(), std::ssize(values));
  } else {
    values = io::read_floats(entry);
  }
  check(std::ranges::all_of(values, [](float x) { return std::isfinite(x); }), file.source(),
        "tensor ", entry.name, " has values that are not finite");
  return values;
}

// The place of GGUF's row in Hugging Face's matrix: of a head's two halves in turn.
int64_t unpaired_row(int64_t row, int64_t rows, int64_t heads) {
  const int64_t head_dim = rows / heads;
  const int64_t within = row % head_dim;
  return row - within + within % 2 * (head_dim / 2) + within / 2;
}

// The columns of `down` (rank, total_inputs) that the target's inputs meet.
std::vector<float> columns_of(const std::vector<float>& down, int64_t rank,
                              const LoraTarget& target) {
  const int64_t in = target.layer->in();
  if (in == target.total_inputs) return down;
  std::vector<float> columns;
  columns.reserve(static_cast<size_t>(rank * in));
  for (int64_t row = 0; row < rank; ++row) {
    const auto first = down.begin() + row * target.total_inputs + target.first_input;
    columns.insert(columns.end(), first, first + in);
  }
  return columns;
}

// The rows of `up` (total_rows, rank) that change the target.
std::vector<float> rows_of(const std::vector<float>& up, int64_t rank, const LoraTarget& target,
                           bool gguf, float factor) {
  const int64_t out = target.layer->out();
  std::vector<float> rows;
  rows.reserve(static_cast<size_t>(out * rank));
  for (int64_t row = 0; row < out; ++row) {
    const bool paired = target.pair_heads > 0 && !gguf;
    const int64_t from =
        target.first_row + (paired ? unpaired_row(row, out, target.pair_heads) : row);
    for (int64_t i = 0; i < rank; ++i) {
      rows.push_back(up[static_cast<size_t>(from * rank + i)] * factor);
    }
  }
  return rows;
}

}  // namespace

LoraAdapter::LoraAdapter(const std::filesystem::path& path, const LanguageModel& model)
    : targets_(model.lora_targets()) {
  const LoraFile file(path);
  const TargetsByName targets = index(targets_, file.is_gguf());
  check_architecture(file, model, targets);
  check_known(file, targets);
  for (const LoraFileLayer& layer : file.layers()) {
    const auto [first, end] = targets.equal_range(layer.module);
    check_fit(file, layer, *first->second);
    const std::vector<float> down = read_finite(file, *layer.down);
    const std::vector<float> up = read_finite(file, *layer.up);
    const int64_t rank = layer.down->shape[0];
    for (auto at = first; at != end; ++at) {
      const LoraTarget& target = *at->second;
      // A rank of a group may hold nothing of a layer.
      if (target.layer->in() == 0 || target.layer->out() == 0) continue;
      changes_.push_back({target.layer.get(),
                          {.rank = rank,
                           .down = columns_of(down, rank, target),
                           .up = rows_of(up, rank, target, file.is_gguf(), layer.factor)}});
    }
  }
}

void LoraAdapter::put(int64_t slot) const {
  for (const LoraTarget& target : targets_) target.layer->clear(slot);
  for (const Change& change : changes_) change.layer->put(slot, change.factors);
  // Layers that share an input are computed together: all that have slots have as many.
  int64_t slots = 0;
  for (const LoraTarget& target : targets_) slots = std::max(slots, target.layer->slots());
  for (const LoraTarget& target : targets_) {
    if (!target.layer->empty()) target.layer->reserve(slots);
  }
}

}  // namespace rbee::models
