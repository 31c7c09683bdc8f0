#pragma once

#include <memory>

#include "rbee/models/language_model.h"

namespace rbee::models {

std::unique_ptr<LanguageModel> load_gemma3(const io::Checkpoint& checkpoint,
                                           const LoadOptions& options);

}  // namespace rbee::models
