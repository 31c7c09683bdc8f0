#include "server/wire/generate_request.h"

#include <algorithm>
#include <utility>

#include "rbee/core/cat.h"
#include "server/wire/generate_fields.h"

namespace rbee::server {
namespace {

using nlohmann::json;

constexpr size_t kMaxStops = 64;
constexpr size_t kMaxStopBytes = 512;
constexpr size_t kMaxStopIds = 128;
constexpr size_t kMaxUserBytes = 256;
constexpr int32_t kMaxPriority = 1000;

std::string summary(const std::vector<FieldError>& errors) {
  std::string text;
  for (const FieldError& error : errors) text += cat(text.empty() ? "" : "; ", error.message);
  return text;
}

std::vector<std::string> stop_texts(ObjectReader& reader, const char* field) {
  std::vector<std::string> stops;
  const json* value = reader.find(field);
  if (value == nullptr) return stops;
  const bool list = value->is_array();
  if (list && value->size() > kMaxStops) {
    reader.note(field, cat("max_count(", kMaxStops, ")"),
                cat("holds more than ", kMaxStops, " texts"), value);
    return stops;
  }
  const size_t count = list ? value->size() : 1;
  for (size_t i = 0; i < count; ++i) {
    const json& entry = list ? (*value)[i] : *value;
    const std::string name = list ? cat(field, "[", i, "]") : field;
    if (!entry.is_string()) {
      reader.note(name, "type(string)",
                  list ? "must be a string" : "must be a string or an array of strings", &entry);
      continue;
    }
    const std::string& text = entry.get_ref<const std::string&>();
    if (text.empty()) continue;  // llama-server's clients send these
    if (text.size() > kMaxStopBytes) {
      reader.note(name, cat("max_length(", kMaxStopBytes, ")"),
                  cat("is longer than ", kMaxStopBytes, " bytes"), &entry);
    }
    stops.push_back(text);
  }
  return stops;
}

std::vector<int32_t> stop_ids(ObjectReader& reader) {
  const json* value = reader.find("stop_token_ids");
  if (value == nullptr) return {};
  if (!value->is_array() || value->size() > kMaxStopIds) {
    reader.note("stop_token_ids", cat("type(array), max_count(", kMaxStopIds, ")"),
                cat("must be an array of at most ", kMaxStopIds, " tokens"), value);
    return {};
  }
  return read_ids(*value, "stop_token_ids", reader);
}

// Of 1 to kMaxUserBytes.
std::optional<std::string> short_text(ObjectReader& reader, const char* name) {
  std::optional<std::string> out = reader.text(name);
  if (!out) return out;
  if (out->empty()) reader.note(name, "non_empty", "is empty", reader.find(name));
  if (out->size() > kMaxUserBytes) {
    reader.note(name, cat("max_length(", kMaxUserBytes, ")"),
                cat("is longer than ", kMaxUserBytes, " bytes"), reader.find(name));
  }
  return out;
}

}  // namespace

std::vector<int32_t> read_ids(const json& list, const std::string& name, ObjectReader& reader) {
  std::vector<int32_t> out;
  for (const json& id : list) {
    const bool fits = id.is_number_unsigned() && id.get<uint64_t>() <= INT32_MAX;
    if (!fits) {
      reader.note(cat(name, "[", out.size(), "]"), cat("range(0..=", INT32_MAX, ")"),
                  cat("must be a token: an integer from 0 to ", INT32_MAX), &id);
      return {};
    }
    out.push_back(id.get<int32_t>());
  }
  return out;
}

std::optional<int32_t> read_limit(ObjectReader& reader, const char* name, int32_t least) {
  const json* value = reader.find(name);
  // The unsigned 2^64 - 1 would compare equal to -1.
  const bool all = value != nullptr && !value->is_number_unsigned() && *value == -1;
  if (all) return INT32_MAX;
  return reader.integer(name, {least, INT32_MAX});
}

void read_stop(ObjectReader& reader, GenerateRequest& request, const char* name) {
  request.stop = stop_texts(reader, name);
  request.stop_ids = stop_ids(reader);
}

void refuse_unless(ObjectReader& reader, const char* field, const json& neutral) {
  const json* value = reader.find(field);
  if (value == nullptr || *value == neutral) return;
  reader.note(field, "unsupported", "asks for what this worker does not do", value);
}

void refuse_vllm_fields(ObjectReader& reader) {
  // Each with its neutral value; null: it has none.
  static const std::pair<const char*, json> fields[] = {{"chat_template", nullptr},
                                                        {"documents", json::array()},
                                                        {"include_stop_str_in_output", false},
                                                        {"prompt_embeds", nullptr},
                                                        {"skip_special_tokens", true},
                                                        {"use_beam_search", false}};
  for (const auto& [field, neutral] : fields) refuse_unless(reader, field, neutral);
}

void read_vllm_fields(ObjectReader& reader, GenerateRequest& request) {
  if (const json* list = reader.find("allowed_token_ids")) {
    if (!list->is_array() || list->empty()) {
      reader.note("allowed_token_ids", "type(array), non_empty",
                  "must be an array of at least one token id", list);
    } else {
      request.allowed_ids = read_ids(*list, "allowed_token_ids", reader);
    }
  }
  request.kept_tokens = reader.integer("truncate_prompt_tokens", {-1, INT32_MAX});
  if (request.kept_tokens == 0) {
    reader.note("truncate_prompt_tokens", "range(-1, 1..=2147483647)", "must be -1 or above 0",
                reader.find("truncate_prompt_tokens"));
  }
  const std::string side = reader.text("truncation_side").value_or("left");
  if (side != "left" && side != "right") {
    reader.note("truncation_side", "one_of(left, right)", "must be left or right",
                reader.find("truncation_side"));
  }
  request.keeps_first = side == "right";
}

void read_turn(ObjectReader& reader, GenerateRequest& request) {
  request.priority = reader.integer("priority", {-kMaxPriority, kMaxPriority});
  request.speculative = reader.boolean("speculative");
  request.user = short_text(reader, "user");
  request.cache_salt = short_text(reader, "cache_salt");
}

InvalidBody::InvalidBody(std::vector<FieldError> errors)
    : std::runtime_error(summary(errors)), errors_(std::move(errors)) {}

}  // namespace rbee::server
