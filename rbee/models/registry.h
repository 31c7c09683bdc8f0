#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "rbee/models/language_model.h"
#include "rbee/nn/weight_scope.h"

namespace rbee::models {

struct Family {
  std::string_view architecture;  // general.architecture, or model_type of config.json
  std::unique_ptr<LanguageModel> (*load)(const io::Checkpoint&, const LoadOptions&);
  std::span<const nn::TensorName> (*tensor_names)();
};

std::span<const Family> families();
// Throws unsupported, listing the known architectures.
const Family& find_family(std::string_view architecture);

}  // namespace rbee::models
