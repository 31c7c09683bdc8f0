#pragma once
// Quantisation settings in a file of their own, as AutoGPTQ and AutoAWQ wrote them before
// config.json had "quantization_config".

#include <string>
#include <string_view>

namespace rbee::io {

inline constexpr std::string_view kOldGptqFile = "quantize_config.json";
inline constexpr std::string_view kOldAwqFile = "quant_config.json";

// config.json with such a file's text as its "quantization_config", with today's field names.
// `name` is one of the two above. If config.json has a "quantization_config" already, it stays as
// it is. Throws invalid_argument if config.json (`source`) or the file beside it is not an object.
std::string with_old_quantization(std::string_view config_json, std::string_view old_json,
                                  std::string_view name, const std::string& source);

}  // namespace rbee::io
