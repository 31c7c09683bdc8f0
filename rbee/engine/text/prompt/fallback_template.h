#pragma once

#include <string_view>

namespace rbee::engine {

// The chat template for a checkpoint that has none: the format that models of this architecture
// were trained on where it has only one (Gemma, Phi-3), else ChatML.
std::string_view fallback_chat_template(std::string_view architecture);

}  // namespace rbee::engine
