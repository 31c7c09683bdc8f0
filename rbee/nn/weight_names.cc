#include "rbee/nn/weight_names.h"

#include <algorithm>

#include "rbee/core/cat.h"

namespace rbee::nn {

std::string numbered(std::string_view pattern, int64_t layer) {
  const size_t star = pattern.find('*');
  if (star == std::string_view::npos) return std::string(pattern);
  return cat(pattern.substr(0, star), layer, pattern.substr(star + 1));
}

bool is_one_of_each(std::string_view name) {
  return name.find('#') != std::string_view::npos;
}

std::string name_of_each(std::string_view name, int64_t index) {
  const size_t mark = name.find('#');
  return cat(name.substr(0, mark), index, name.substr(mark + 1));
}

WeightNames::WeightNames(const io::Checkpoint& checkpoint, std::span<const TensorName> table,
                         bool own_names)
    : table_(table),
      own_names_(own_names),
      gguf_(checkpoint.format() == io::Checkpoint::Format::gguf),
      nesting_(find_nesting(checkpoint)) {}

std::string WeightNames::in_checkpoint(std::string_view role, int64_t layer) const {
  if (gguf_ || own_names_) return numbered(role, layer);
  const std::string_view hf = hf_pattern(role);
  return hf.empty() ? std::string() : nest(nesting_, numbered(hf, layer));
}

std::string WeightNames::in_hf(std::string_view role, int64_t layer) const {
  return numbered(hf_pattern(role), layer);
}

std::string_view WeightNames::hf_pattern(std::string_view role) const {
  const auto row = std::ranges::find(table_, role, &TensorName::gguf);
  return row == table_.end() ? std::string_view() : row->hf;
}

std::string WeightNames::nest(Nesting nesting, std::string name) {
  constexpr std::string_view kModel = "model.";
  if (nesting == Nesting::outer) return cat("language_model.", name);
  if (nesting == Nesting::bert) return cat("bert.", name);
  if (nesting == Nesting::roberta) return cat("roberta.", name);
  if (nesting == Nesting::plain || !name.starts_with(kModel)) return name;
  const std::string_view inner = std::string_view(name).substr(kModel.size());
  return nesting == Nesting::inner ? cat("model.language_model.", inner) : std::string(inner);
}

WeightNames::Nesting WeightNames::find_nesting(const io::Checkpoint& checkpoint) const {
  if (gguf_ || table_.empty()) return Nesting::plain;
  const std::string probe = cat(table_.front().hf, ".weight");
  for (const Nesting candidate : {Nesting::plain, Nesting::outer, Nesting::inner, Nesting::bare,
                                  Nesting::bert, Nesting::roberta}) {
    if (checkpoint.find(nest(candidate, probe)) != nullptr) return candidate;
  }
  return Nesting::plain;
}

}  // namespace rbee::nn
