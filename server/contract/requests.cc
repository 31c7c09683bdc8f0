#include "server/contract/requests.h"

#include <algorithm>
#include <utility>

#include "rbee/core/cat.h"
#include "server/contract/constraint_fields.h"
#include "server/contract/generate_fields.h"
#include "server/contract/lora_fields.h"

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

void read_operation(ObjectReader& reader) {
  const std::optional<std::string> operation = reader.text("operation");
  if (operation && *operation != "infer") {
    reader.note("operation", "one_of(infer)", "is not one that this worker does; it does: infer",
                reader.find("operation"));
  }
}

std::vector<Message> read_messages(ObjectReader& reader, std::vector<FieldError>& errors) {
  std::vector<Message> messages;
  const json* list = reader.find("messages");
  if (list == nullptr) return messages;
  if (!list->is_array() || list->empty()) {
    reader.note("messages", "type(array), non_empty", "must be an array of at least one message",
                list);
    return messages;
  }
  for (size_t i = 0; i < list->size(); ++i) {
    const json& entry = (*list)[i];
    if (!entry.is_object()) {
      reader.note(cat("messages[", i, "]"), "type(object)", "must be an object", &entry);
      continue;
    }
    ObjectReader fields(entry, cat("messages[", i, "]."), errors);
    for (const char* name : {"role", "content"}) {
      if (fields.find(name) == nullptr) fields.note(name, "required", "is missing", nullptr);
    }
    std::optional<std::string> role = fields.text("role");
    std::optional<std::string> content = fields.text("content");
    if (role && role->empty()) fields.note("role", "non_empty", "is empty", fields.find("role"));
    messages.push_back({std::move(role).value_or(""), std::move(content).value_or("")});
  }
  return messages;
}

// What the model goes on from: exactly one of prompt and messages.
void read_input(ObjectReader& reader, std::vector<FieldError>& errors, GenerateRequest& request) {
  const bool has_prompt = reader.find("prompt") != nullptr;
  const bool has_messages = reader.find("messages") != nullptr;
  if (has_prompt && has_messages) {
    reader.note("messages", "exclusive(prompt)", "cannot be given together with prompt", nullptr);
  } else if (!has_prompt && !has_messages) {
    reader.note("prompt", "required", "is missing (or give messages)", nullptr);
  }
  if (std::optional<std::string> prompt = reader.text("prompt")) {
    if (prompt->empty()) reader.note("prompt", "non_empty", "is empty", reader.find("prompt"));
    request.prompt = std::move(*prompt);
  }
  request.messages = read_messages(reader, errors);
}

}  // namespace

namespace {

std::vector<std::string> stop_texts(ObjectReader& reader) {
  std::vector<std::string> stops;
  const json* value = reader.find("stop");
  if (value == nullptr) return stops;
  const bool list = value->is_array();
  if (list && value->size() > kMaxStops) {
    reader.note("stop", cat("max_count(", kMaxStops, ")"),
                cat("holds more than ", kMaxStops, " texts"), value);
    return stops;
  }
  const size_t count = list ? value->size() : 1;
  for (size_t i = 0; i < count; ++i) {
    const json& entry = list ? (*value)[i] : *value;
    const std::string name = list ? cat("stop[", i, "]") : "stop";
    if (!entry.is_string()) {
      reader.note(name, "type(string)",
                  list ? "must be a string" : "must be a string or an array of strings", &entry);
      continue;
    }
    const std::string& text = entry.get_ref<const std::string&>();
    if (text.empty()) continue;  // llama-server's clients send such
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
  // 2^64 - 1 compares equal.
  const bool all = value != nullptr && !value->is_number_unsigned() && *value == -1;
  if (all) return INT32_MAX;
  return reader.integer(name, {least, INT32_MAX});
}

void read_stop(ObjectReader& reader, GenerateRequest& request) {
  request.stop = stop_texts(reader);
  request.stop_ids = stop_ids(reader);
}

void refuse_unless(ObjectReader& reader, const char* field, const json& neutral) {
  const json* value = reader.find(field);
  if (value == nullptr || *value == neutral) return;
  reader.note(field, "unsupported", "asks for what this worker does not do", value);
}

void refuse_vllm_fields(ObjectReader& reader) {
  // Each with the value that changes nothing; null: there is none.
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

GenerateRequest parse_generate(std::string_view text) {
  const JsonBody body(text);
  std::vector<FieldError> errors;
  ObjectReader reader(body, errors);
  GenerateRequest request;
  read_operation(reader);
  read_input(reader, errors, request);
  request.max_tokens = read_limit(reader, "max_tokens", 1);
  read_sampling(reader, request);
  read_turn(reader, request);
  read_adapters(reader, errors, request);
  read_stop(reader, request);
  request.constraint = read_constraint(reader, body, errors);
  request.stream = reader.boolean("stream");
  if (!errors.empty()) throw InvalidBody(std::move(errors));
  return request;
}

std::string parse_cancel(std::string_view text) {
  const JsonBody body(text);
  std::vector<FieldError> errors;
  ObjectReader reader(body, errors);
  const std::optional<std::string> id = reader.text("job_id");
  if (!id && errors.empty()) reader.note("job_id", "required", "is missing", nullptr);
  if (id && id->empty()) reader.note("job_id", "non_empty", "is empty", reader.find("job_id"));
  if (!errors.empty()) throw InvalidBody(std::move(errors));
  return *id;
}

}  // namespace rbee::server
