#include "rbee/io/old_quantization.h"

#include <array>
#include <cctype>
#include <filesystem>
#include <utility>

#include "rbee/core/error.h"
#include "rbee/io/json_parse.h"

namespace rbee::io {
namespace {

using nlohmann::json;

json parse_object(std::string_view text, const std::string& source) {
  json value = parse_json(text, source);
  check(value.is_object(), source, "it does not hold an object");
  return value;
}

// AutoAWQ's names as transformers has them, and its "GEMM" in lower case.
void rename_awq_fields(json& settings) {
  constexpr std::array<std::pair<const char*, const char*>, 2> kNames{
      {{"w_bit", "bits"}, {"q_group_size", "group_size"}}};
  for (const auto& [old, name] : kNames) {
    if (settings.contains(old) && !settings.contains(name)) settings[name] = settings[old];
  }
  const auto version = settings.find("version");
  if (version == settings.end() || !version->is_string()) return;
  auto text = version->get<std::string>();
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  *version = text;
}

}  // namespace

std::string with_old_quantization(std::string_view config_json, std::string_view old_json,
                                  std::string_view name, const std::string& source) {
  json config = parse_object(config_json, source);
  const auto given = config.find("quantization_config");
  if (given != config.end() && !given->is_null()) return std::string(config_json);
  json settings = parse_object(
      old_json, (std::filesystem::path(source).parent_path() / std::string(name)).string());
  const bool awq = name == kOldAwqFile;
  if (awq) rename_awq_fields(settings);
  if (!settings.contains("quant_method")) settings["quant_method"] = awq ? "awq" : "gptq";
  config["quantization_config"] = std::move(settings);
  return config.dump();
}

}  // namespace rbee::io
