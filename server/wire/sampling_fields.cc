#include "server/wire/sampling_fields.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "rbee/core/cat.h"
#include "server/wire/json_object.h"

namespace rbee::server {
namespace {

using nlohmann::json;

constexpr int32_t kMaxRepeat = 1 << 20;
constexpr size_t kMaxBiases = 1024;
constexpr double kMaxBias = 100;
constexpr size_t kMaxBreakers = 32;
constexpr size_t kMaxBadWords = 64;
constexpr size_t kMaxWordBytes = 100;

constexpr std::array kSamplers = {"penalties", "dry",   "top_n_sigma", "top_k", "typ_p",
                                  "typical_p", "top_p", "min_p",       "xtc",   "temperature"};

// A list of texts, each 1 to kMaxWordBytes long.
std::optional<std::vector<std::string>> read_texts(ObjectReader& reader, const char* field,
                                                   size_t most) {
  const json* value = reader.find(field);
  if (value == nullptr) return std::nullopt;
  if (!value->is_array()) {
    reader.note(field, "type(array)", "must be an array of strings", value);
    return std::nullopt;
  }
  if (value->size() > most) {
    reader.note(field, cat("max_count(", most, ")"), cat("holds more than ", most, " texts"),
                value);
    return std::nullopt;
  }
  std::vector<std::string> out;
  for (size_t i = 0; i < value->size(); ++i) {
    const json& entry = (*value)[i];
    const std::string name = cat(field, "[", i, "]");
    if (!entry.is_string()) {
      reader.note(name, "type(string)", "must be a string", &entry);
      continue;
    }
    out.push_back(entry.get<std::string>());
    if (out.back().empty()) reader.note(name, "non_empty", "is empty", &entry);
    if (out.back().size() > kMaxWordBytes) {
      reader.note(name, cat("max_length(", kMaxWordBytes, ")"),
                  cat("is longer than ", kMaxWordBytes, " bytes"), &entry);
    }
  }
  return out;
}

bool is_token(const json& value) {
  return value.is_number_integer() && value >= 0 && value <= INT32_MAX;
}

// A number, or false: never.
std::optional<float> read_bias(const json& value, const std::string& name, ObjectReader& reader) {
  if (value.is_boolean() && !value.get<bool>()) return -INFINITY;
  if (value.is_number() && std::abs(value.get<double>()) <= kMaxBias) {
    return static_cast<float>(value.get<double>());
  }
  reader.note(name, "range(-100..=100)", "must be a number from -100 to 100, or false", &value);
  return std::nullopt;
}

// OpenAI's form: {"id": bias, ...}.
void read_bias_map(const json& map, ObjectReader& reader, SamplingFields& fields) {
  for (const auto& [key, value] : map.items()) {
    const std::string name = cat("logit_bias.", key.substr(0, kMaxWordBytes));
    int32_t id = -1;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
    if (error != std::errc() || end != key.data() + key.size() || id < 0) {
      reader.note(name, "type(token)", "must be named by a token's id", &value);
      continue;
    }
    if (const auto bias = read_bias(value, name, reader)) {
      fields.logit_bias.push_back({.id = id, .text = {}, .bias = *bias});
    }
  }
}

// llama-server's: [[id or text, bias], ...].
void read_bias_list(const json& list, ObjectReader& reader, SamplingFields& fields) {
  for (size_t i = 0; i < list.size(); ++i) {
    const json& entry = list[i];
    const std::string name = cat("logit_bias[", i, "]");
    const bool pair = entry.is_array() && entry.size() == 2;
    const bool text =
        pair && entry[0].is_string() && !entry[0].get_ref<const std::string&>().empty();
    if (!pair || !(text || is_token(entry[0]))) {
      reader.note(name, "type(array)", "must be [token id or text, bias]", &entry);
      continue;
    }
    if (const auto bias = read_bias(entry[1], name, reader)) {
      fields.logit_bias.push_back({.id = text ? -1 : entry[0].get<int32_t>(),
                                   .text = text ? entry[0].get<std::string>() : "",
                                   .bias = *bias});
    }
  }
}

void read_logit_bias(ObjectReader& reader, SamplingFields& fields) {
  const json* value = reader.find("logit_bias");
  if (value == nullptr) return;
  if (!value->is_object() && !value->is_array()) {
    return reader.note("logit_bias", "type(object)",
                       "must be an object of biases by token id, or an array of pairs", value);
  }
  if (value->size() > kMaxBiases) {
    return reader.note("logit_bias", cat("max_count(", kMaxBiases, ")"),
                       cat("holds more than ", kMaxBiases, " tokens"), value);
  }
  value->is_object() ? read_bias_map(*value, reader, fields)
                     : read_bias_list(*value, reader, fields);
}

void read_samplers(ObjectReader& reader, SamplingFields& fields) {
  const json* value = reader.find("samplers");
  std::optional<std::vector<std::string>> names = read_texts(reader, "samplers", kSamplers.size());
  if (!names) return;
  bool cut = false;
  for (size_t i = 0; i < names->size(); ++i) {
    std::string& name = (*names)[i];
    if (name == "typical_p") name = "typ_p";
    const std::string field = cat("samplers[", i, "]");
    const bool changes = name == "penalties" || name == "dry";
    if (std::ranges::count(kSamplers, name) == 0) {
      reader.note(field,
                  "one_of(penalties, dry, top_n_sigma, top_k, typ_p, top_p, min_p, xtc, "
                  "temperature)",
                  "is not the name of a sampler", value);
    } else if (changes && cut) {
      reader.note(field, "order", "must come before the samplers that cut", value);
    } else if (std::count(names->begin(), names->begin() + static_cast<ptrdiff_t>(i), name) > 0) {
      reader.note(field, "unique", "is named twice", value);
    }
    cut |= !changes;
  }
  fields.samplers = std::move(names);
}

}  // namespace

void read_sampling(ObjectReader& reader, SamplingFields& fields) {
  fields.temperature = reader.number("temperature", {0, 100});
  fields.top_p = reader.number("top_p", {0, 1});
  fields.min_p = reader.number("min_p", {0, 1});
  fields.top_k = reader.integer("top_k", {-1, INT32_MAX});
  if (fields.top_k == -1) fields.top_k = 0;  // vLLM's way to say that it is off
  fields.repetition_penalty = reader.number("repetition_penalty", {0, 2, true});
  // llama-server's name.
  const std::optional<float> repeat = reader.number("repeat_penalty", {0, 2, true});
  if (!fields.repetition_penalty) fields.repetition_penalty = repeat;
  fields.frequency_penalty = reader.number("frequency_penalty", {-2, 2});
  fields.presence_penalty = reader.number("presence_penalty", {-2, 2});
  fields.repeat_last_n = reader.integer("repeat_last_n", {0, kMaxRepeat});
  fields.seed = reader.seed("seed");
  fields.typical_p = reader.number("typical_p", {0, 1});
  fields.top_n_sigma = reader.number("top_n_sigma", {-1, 100});
  fields.xtc_probability = reader.number("xtc_probability", {0, 1});
  fields.xtc_threshold = reader.number("xtc_threshold", {0, 1});
  fields.dry_multiplier = reader.number("dry_multiplier", {0, 100});
  fields.dry_base = reader.number("dry_base", {1, 100});
  fields.dry_allowed_length = reader.integer("dry_allowed_length", {1, kMaxRepeat});
  fields.dry_penalty_last_n = reader.integer("dry_penalty_last_n", {-1, kMaxRepeat});
  fields.dry_sequence_breakers = read_texts(reader, "dry_sequence_breakers", kMaxBreakers);
  fields.dynatemp_range = reader.number("dynatemp_range", {0, 100});
  fields.dynatemp_exponent = reader.number("dynatemp_exponent", {0, 10});
  fields.mirostat = reader.integer("mirostat", {0, 2});
  fields.mirostat_tau = reader.number("mirostat_tau", {0, 100});
  fields.mirostat_eta = reader.number("mirostat_eta", {0, 1});
  read_logit_bias(reader, fields);
  fields.min_tokens = reader.integer("min_tokens", {0, INT32_MAX});
  fields.ignore_eos = reader.boolean("ignore_eos");
  fields.bad_words = read_texts(reader, "bad_words", kMaxBadWords).value_or(fields.bad_words);
  read_samplers(reader, fields);
}

}  // namespace rbee::server
