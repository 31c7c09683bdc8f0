#pragma once
// The few values that the engine reads from Hugging Face's side files.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rbee/engine/api/sampling.h"

namespace rbee::engine {

// eos_token_id (a number or a list) of generation_config.json or config.json; `file` is named in
// errors and warnings. It drops values that are no id below `tokens`, with a warning. Throws
// invalid_argument if the file is not JSON.
std::vector<int32_t> end_token_ids(std::string_view json, std::string_view file, int64_t tokens);

// temperature, top_p, top_k, min_p and repetition_penalty of generation_config.json. It drops
// values out of a request's range, with a warning. Throws invalid_argument if the text is not JSON.
SamplingDefaults sampling_defaults(std::string_view generation_config_json);

// chat_template of tokenizer_config.json: either a string, which is the "default" one, or a list,
// of which it takes the entry called `name`.
std::optional<std::string> chat_template_of(std::string_view tokenizer_config_json,
                                            std::string_view name);

}  // namespace rbee::engine
