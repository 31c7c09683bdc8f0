#pragma once
// The few facts the engine reads from Hugging Face side files.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rbee/engine/api/sampling.h"

namespace rbee::engine {

// eos_token_id (a number or a list) of generation_config.json or config.json; `file` is for errors
// and warnings. What is no id below `tokens` is left out with a warning. Throws invalid_argument
// when the file is not JSON.
std::vector<int32_t> end_token_ids(std::string_view json, std::string_view file, int64_t tokens);

// temperature, top_p, top_k, min_p and repetition_penalty of generation_config.json; what a request
// could not ask for is left out with a warning. Throws invalid_argument when the text is not JSON.
SamplingDefaults sampling_defaults(std::string_view generation_config_json);

// chat_template of tokenizer_config.json: a string, which is the "default" one, or the entry of
// that name of a list.
std::optional<std::string> chat_template_of(std::string_view tokenizer_config_json,
                                            std::string_view name);

}  // namespace rbee::engine
