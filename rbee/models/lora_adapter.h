#pragma once
// Low-rank adapters of a language model, read and checked against its layers.

#include <filesystem>
#include <vector>

#include "rbee/models/language_model.h"

namespace rbee::models {

class LoraAdapter {
 public:
  // Throws what LoraFile throws; invalid_argument naming the tensor, what it is and what the model
  // wants, where one does not fit or is not finite; and unsupported naming the first layers that
  // the model does not have or that adapters may not change, such as experts'.
  LoraAdapter(const std::filesystem::path& path, const LanguageModel& model);

  // Makes `slot` of the model's layers this adapter, 1 or above. No step may be under way, and what
  // was recorded of earlier ones is void. Throws out_of_memory; the slot is of no use then.
  void put(int64_t slot) const;

 private:
  struct Change {
    nn::LoraLayer* layer;
    nn::LoraFactors factors;
  };
  std::span<const nn::LoraTarget> targets_;
  std::vector<Change> changes_;
};

}  // namespace rbee::models
