#include "rbee/engine/text/generation_config.h"

#include <cmath>
#include <type_traits>

#include "rbee/core/error.h"
#include "rbee/core/log.h"
#include "rbee/io/json_config.h"
#include "rbee/io/json_parse.h"

namespace rbee::engine {
namespace {

using nlohmann::json;

json parse(std::string_view text, std::string_view file) {
  json value = io::parse_json(text, file);
  check(value.is_object(), file, "not a JSON object");
  return value;
}

// What read() returns, unless no request could ask for it.
template <typename T>
std::optional<T> taken(std::string_view source, T SamplingParams::* field, const auto& read) {
  try {
    SamplingParams params;
    params.*field = read();
    validate(params);
    return params.*field;
  } catch (const Error& error) {
    log(LogLevel::warn, "a default of the model is left out",
        {{"file", std::string(source)}, {"error", error.what()}});
    return std::nullopt;
  }
}

float checked_number(const char* name, double number) {
  check(std::abs(number) <= INT32_MAX, name, number, " is not taken");
  return static_cast<float>(number);
}

}  // namespace

std::vector<int32_t> end_token_ids(std::string_view text, std::string_view file, int64_t tokens) {
  const json config = parse(text, file);
  const auto found = config.find("eos_token_id");
  if (found == config.end() || found->is_null()) return {};
  const json list = found->is_array() ? *found : json::array({*found});
  std::vector<int32_t> ids;
  for (const json& id : list) {
    if (id.is_number_integer() && id >= 0 && id < tokens) {
      ids.push_back(id.get<int32_t>());
      continue;
    }
    log(LogLevel::warn, "an id of the file cannot be used and is left out",
        {{"file", std::string(file)}, {"eos_token_id", id.dump()}, {"tokens", cat(tokens)}});
  }
  return ids;
}

SamplingDefaults sampling_defaults(std::string_view text) {
  constexpr const char* kFile = "generation_config.json";
  const io::JsonConfig config(text, kFile);
  const auto read = [&]<typename T>(const char* name, T SamplingParams::* field) {
    if (!config.has(name)) return std::optional<T>();
    return taken(kFile, field, [&] {
      if constexpr (std::is_integral_v<T>) {
        return static_cast<T>(config.integer(name, {INT32_MIN, INT32_MAX}));
      } else {
        return checked_number(name, config.number_or(name, 0));
      }
    });
  };
  return {.temperature = read("temperature", &SamplingParams::temperature),
          .top_p = read("top_p", &SamplingParams::top_p),
          .min_p = read("min_p", &SamplingParams::min_p),
          .repetition_penalty = read("repetition_penalty", &SamplingParams::repetition_penalty),
          .top_k = read("top_k", &SamplingParams::top_k)};
}

SamplingDefaults sampling_defaults(const io::Metadata& metadata) {
  constexpr std::string_view kFile = "GGUF";
  const auto number = [&](const char* key, float SamplingParams::* field) {
    if (!metadata.contains(key)) return std::optional<float>();
    return taken(kFile, field, [&] { return checked_number(key, metadata.require_f64(key)); });
  };
  SamplingDefaults out{
      .temperature = number(gguf_sampling::kTemperature, &SamplingParams::temperature),
      .top_p = number(gguf_sampling::kTopP, &SamplingParams::top_p),
      .min_p = number(gguf_sampling::kMinP, &SamplingParams::min_p),
      .repetition_penalty =
          number(gguf_sampling::kRepetitionPenalty, &SamplingParams::repetition_penalty),
      .top_k = {}};
  if (metadata.contains(gguf_sampling::kTopK)) {
    out.top_k = taken(kFile, &SamplingParams::top_k, [&] {
      const int64_t top_k = metadata.require_i64(gguf_sampling::kTopK);
      const bool fits = top_k >= -INT32_MAX && top_k <= INT32_MAX;
      check(fits, gguf_sampling::kTopK, top_k, " is not taken");
      return static_cast<int32_t>(top_k);
    });
  }
  return out;
}

std::optional<std::string> chat_template_of(std::string_view text, std::string_view name) {
  const json config = parse(text, "tokenizer_config.json");
  const auto found = config.find("chat_template");
  if (found == config.end()) return std::nullopt;
  if (found->is_string() && name == "default") return found->get<std::string>();
  if (!found->is_array()) return std::nullopt;
  for (const json& entry : *found) {
    if (entry.is_object() && entry.value("name", json()) == name &&
        entry.value("template", json()).is_string()) {
      return entry["template"].get<std::string>();
    }
  }
  return std::nullopt;
}

}  // namespace rbee::engine
