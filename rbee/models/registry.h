#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "rbee/models/language_model.h"

namespace rbee::models {

struct Family {
  std::string_view architecture;  // general.architecture, or model_type of config.json
  std::unique_ptr<LanguageModel> (*load)(const io::Checkpoint&, const LoadOptions&);
};

std::span<const Family> families();

}  // namespace rbee::models
