#pragma once
// The few values that the engine reads from Hugging Face's side files.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rbee/engine/api/sampling.h"
#include "rbee/io/metadata.h"

namespace rbee::engine {

// eos_token_id (a number or a list) of generation_config.json or config.json; `file` is named in
// errors and warnings. It drops values that are no id below `tokens`, with a warning. Throws
// invalid_argument if the file is not JSON.
std::vector<int32_t> end_token_ids(std::string_view json, std::string_view file, int64_t tokens);

// temperature, top_p, top_k, min_p and repetition_penalty of generation_config.json. It drops
// values out of a request's range, with a warning. Throws invalid_argument if the text is not JSON.
SamplingDefaults sampling_defaults(std::string_view generation_config_json);

// The same of a GGUF file, in whose keys llama.cpp's converter puts them.
namespace gguf_sampling {
inline constexpr const char *kTemperature = "general.sampling.temp",
                            *kTopP = "general.sampling.top_p", *kMinP = "general.sampling.min_p",
                            *kRepetitionPenalty = "general.sampling.penalty_repeat",
                            *kTopK = "general.sampling.top_k";
}
SamplingDefaults sampling_defaults(const io::Metadata& metadata);

// chat_template of tokenizer_config.json: either a string, which is the "default" one, or a list,
// of which it takes the entry called `name`.
std::optional<std::string> chat_template_of(std::string_view tokenizer_config_json,
                                            std::string_view name);

}  // namespace rbee::engine
