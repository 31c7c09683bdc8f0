#pragma once
// Reads LoRA adapters of a language model and checks them against its layers.

#include <filesystem>
#include <vector>

#include "rbee/models/language_model.h"

namespace rbee::models {

class LoraAdapter {
 public:
  // Throws what LoraFile throws; invalid_argument naming a tensor that does not fit or is not
  // finite, with what it is and what the model wants; and unsupported naming the first layers that
  // the model does not have or that adapters may not change, such as experts'.
  LoraAdapter(const std::filesystem::path& path, const LanguageModel& model);

  // Puts this adapter into `slot` (1 or above) of the model's layers. No step may be running, and
  // captured steps become invalid. Throws out_of_memory; then the slot must not be used.
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
