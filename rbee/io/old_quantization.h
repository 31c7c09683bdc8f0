#pragma once
// Settings of quantisation in a file of their own, as AutoGPTQ and AutoAWQ wrote them before
// config.json had a place for them.

#include <string>
#include <string_view>

namespace rbee::io {

inline constexpr std::string_view kOldGptqFile = "quantize_config.json";
inline constexpr std::string_view kOldAwqFile = "quant_config.json";

// config.json with such a file's text as its "quantization_config", under today's names of fields;
// `name` is one of the two above. As it is where it has one already. Throws invalid_argument naming
// `source`, the folder's config.json, or the file beside it, where one is no object.
std::string with_old_quantization(std::string_view config_json, std::string_view old_json,
                                  std::string_view name, const std::string& source);

}  // namespace rbee::io
