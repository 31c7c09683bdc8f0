#pragma once

#include <string_view>

namespace rbee::engine {

// The chat template for a checkpoint without one: the only format its architecture was trained on
// (Gemma, Phi-3), else ChatML.
std::string_view fallback_chat_template(std::string_view architecture);

}  // namespace rbee::engine
