#include "server/apis/llama/request.h"

#include <algorithm>
#include <climits>

#include "rbee/core/cat.h"
#include "server/wire/constraint_fields.h"
#include "server/wire/generate_fields.h"
#include "server/wire/json_object.h"
#include "server/wire/lora_fields.h"
#include "server/wire/other_names.h"
#include "server/wire/sampling_fields.h"

namespace rbee::server {
namespace {

using nlohmann::json;

constexpr int32_t kMaxProbabilities = 100;
constexpr size_t kMaxFiles = 256;
constexpr size_t kMaxPrompts = 128;
constexpr float kMinP = 0.05f;  // llama-server's default

// llama.cpp's sampler "infill" chooses where a completion ends; it is not supported.
void drop_infill_sampler(json& samplers) {
  if (!samplers.is_array()) return;
  samplers.erase(std::remove(samplers.begin(), samplers.end(), "infill"), samplers.end());
}

// The text of {"prompt_string", "multimodal_data"}; the latter must be empty.
const json* prompt_string(const json& value) {
  if (!value.is_object() || !value.contains("prompt_string")) return nullptr;
  const json data = value.value("multimodal_data", json());
  return data.is_null() || data == json::array() ? &value.at("prompt_string") : nullptr;
}

// A text, tokens, or a list of both.
LlamaPrompt read_prompt(const json& sent, const std::string& name, ObjectReader& reader) {
  LlamaPrompt out;
  const json* text = prompt_string(sent);
  const json& value = text == nullptr || text->is_array() ? sent : *text;
  if (value == "") {
    reader.note(name, "non_empty", "is empty", &value);
  } else if (value.is_string()) {
    out.push_back({value.get<std::string>(), {}});
  } else if (!value.is_array() || value.empty()) {
    reader.note(name, "type(string)",
                "must be a string, an object with a prompt_string and no multimodal_data, or an "
                "array of tokens, with strings between them or not, or an array of these",
                &value);
  }
  for (size_t i = 0; value.is_array() && i < value.size(); ++i) {
    const json& part = value[i];
    if (part.is_string()) {
      out.push_back({part.get<std::string>(), {}});
      continue;
    }
    const std::vector<int32_t> id = read_ids(json::array({part}), cat(name, "[", i, "]"), reader);
    if (out.empty() || out.back().ids.empty()) out.emplace_back();
    out.back().ids.insert(out.back().ids.end(), id.begin(), id.end());
  }
  return out;
}

// An array that has no tokens itself is a list of prompts.
void read_prompts(ObjectReader& reader, LlamaRequest& request) {
  const json* value = reader.find("prompt");
  if (value == nullptr) return reader.note("prompt", "required", "is missing", nullptr);
  const auto is_number = [](const json& part) { return part.is_number(); };
  const bool several =
      value->is_array() && !value->empty() && std::ranges::none_of(*value, is_number);
  if (!several) return request.prompts.push_back(read_prompt(*value, "prompt", reader));
  if (value->size() > kMaxPrompts) {
    return reader.note("prompt", cat("max_count(", kMaxPrompts, ")"),
                       cat("holds more than ", kMaxPrompts, " prompts"), value);
  }
  for (size_t i = 0; i < value->size(); ++i) {
    request.prompts.push_back(read_prompt((*value)[i], cat("prompt[", i, "]"), reader));
  }
}

void read_files(ObjectReader& reader, std::vector<FieldError>& errors, LlamaRequest& request) {
  const json* list = reader.find("input_extra");
  if (list == nullptr) return;
  if (!list->is_array() || list->size() > kMaxFiles) {
    return reader.note("input_extra", cat("type(array), max_count(", kMaxFiles, ")"),
                       cat("must be an array of at most ", kMaxFiles, " files"), list);
  }
  for (size_t i = 0; i < list->size(); ++i) {
    const json& entry = (*list)[i];
    if (!entry.is_object()) {
      reader.note(cat("input_extra[", i, "]"), "type(object)", "must be an object", &entry);
      continue;
    }
    ObjectReader fields(entry, cat("input_extra[", i, "]."), errors);
    request.files.push_back({.name = fields.text("filename").value_or("tmp"),
                             .text = fields.text("text").value_or("")});
    if (fields.find("text") == nullptr) fields.note("text", "required", "is missing", nullptr);
  }
}

void read_infill(ObjectReader& reader, std::vector<FieldError>& errors, LlamaRequest& request) {
  for (const char* name : {"input_prefix", "input_suffix"}) {
    if (reader.find(name) == nullptr) reader.note(name, "required", "is missing", nullptr);
  }
  // The text before the cursor, and the text typed there.
  request.before = reader.text("input_prefix").value_or("") + reader.text("prompt").value_or("");
  request.after = reader.text("input_suffix").value_or("");
  read_files(reader, errors, request);
}

void read_fields(ObjectReader& reader, LlamaRequest& request) {
  const json* list = reader.find("response_fields");
  if (list == nullptr) return;
  const bool texts = list->is_array() &&
                     std::ranges::all_of(*list, [](const json& name) { return name.is_string(); });
  if (!texts) {
    return reader.note("response_fields", "type(array)", "must be an array of names", list);
  }
  request.fields = list->get<std::vector<std::string>>();
}

int32_t read_max_tokens(ObjectReader& reader) {
  std::optional<int32_t> most = reader.integer("n_predict", {-1, INT32_MAX});
  const auto other = reader.integer("max_tokens", {-1, INT32_MAX});
  if (!most) most = other;
  (void)given_name(reader, {"n_predict", "max_tokens"});
  return most.value_or(-1) < 0 ? INT32_MAX : *most;
}

LlamaRequest parse(std::string_view text, bool infill) {
  JsonBody body(text);
  drop_infill_sampler(body["samplers"]);
  std::vector<FieldError> errors;
  ObjectReader reader(body, errors);
  LlamaRequest out{.infill = infill};
  GenerateRequest& request = out.generate;
  if (infill) {
    read_infill(reader, errors, out);
  } else {
    read_prompts(reader, out);
  }
  request.max_tokens = read_max_tokens(reader);
  read_adapters(reader, errors, request);
  read_sampling(reader, request);
  set_llama_defaults(request);
  read_turn(reader, request);
  read_stop(reader, request);
  request.constraint = read_constraint(reader, body, errors);
  request.stream = reader.boolean("stream").value_or(false);
  out.probabilities = reader.integer("n_probs", {0, kMaxProbabilities}).value_or(0);
  request.token_ids = reader.boolean("return_tokens").value_or(false) || *request.stream;
  out.drawn = reader.boolean("post_sampling_probs").value_or(false);
  if (out.probabilities > 0) {
    (out.drawn ? request.drawn_logprobs : request.logprobs) = out.probabilities;
  }
  out.timings_per_token = reader.boolean("timings_per_token").value_or(false);
  request.progress = reader.boolean("return_progress").value_or(false) && *request.stream;
  refuse_unless(reader, "n", 1);
  refuse_unless(reader, "n_cmpl", 1);
  refuse_unless(reader, "grammar_lazy", false);
  refuse_unless(reader, "image_data", json::array());
  read_fields(reader, out);
  if (!errors.empty()) throw InvalidBody(std::move(errors));
  return out;
}

}  // namespace

void set_llama_defaults(GenerateRequest& request) {
  request.set_default(&engine::SamplingParams::min_p, kMinP);
}

LlamaRequest parse_llama_completion(std::string_view body) {
  return parse(body, false);
}

LlamaRequest parse_llama_infill(std::string_view body) {
  return parse(body, true);
}

}  // namespace rbee::server
