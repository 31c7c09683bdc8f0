#include "server/apis/ollama/request.h"

#include <optional>

#include "rbee/core/cat.h"
#include "server/wire/generate_fields.h"
#include "server/wire/json_object.h"
#include "server/wire/message_parts.h"
#include "server/wire/other_names.h"
#include "server/wire/reasoning_fields.h"
#include "server/wire/sampling_fields.h"
#include "server/wire/tool_fields.h"

namespace rbee::server {
namespace {

using nlohmann::json;
using Json = nlohmann::ordered_json;
using P = engine::SamplingParams;

constexpr int32_t kMaxLogprobs = 20;
constexpr float kTopP = 0.9f;

void refuse(std::vector<FieldError>& errors) {
  if (!errors.empty()) throw InvalidBody(std::move(errors));
}

// All stand before the text, as Ollama puts them.
void read_images(ObjectReader& fields, const std::string& prefix, SentMessage& message) {
  const json* list = fields.find("images");
  if (list == nullptr || (list->is_array() && list->empty())) return;
  if (!list->is_array()) {
    return fields.note("images", "type(array)", "must be an array of pictures in base64", list);
  }
  if (!takes_pictures(message, "images", fields)) return;
  for (size_t i = 0; i < list->size(); ++i) {
    const json& entry = (*list)[i];
    const std::string name = cat("images[", i, "]");
    if (entry.is_string() && !entry.get_ref<const std::string&>().empty()) {
      message.pictures.push_back(
          {.at = 0, .base64 = entry.get<std::string>(), .field = cat(prefix, name)});
    } else {
      fields.note(name, "type(string), non_empty", "must be a picture in base64", &entry);
    }
  }
}

// The messages with names in the client's order, parsed when the first call needs them.
class InOrder {
 public:
  explicit InOrder(const JsonBody& body) : body_(body) {}

  std::string arguments(size_t message, size_t call) {
    if (!messages_) messages_ = body_.in_order("messages");
    const Json& function = messages_->at(message).at("tool_calls").at(call).at("function");
    return dump_in_order(function.at("arguments"));
  }

 private:
  const JsonBody& body_;
  std::optional<Json> messages_;
};

class Messages {
 public:
  Messages(ObjectReader& reader, const JsonBody& body, std::vector<FieldError>& errors)
      : reader_(reader), errors_(errors), in_order_(body) {}

  std::vector<SentMessage> read() {
    std::vector<SentMessage> out;
    const json* list = reader_.find("messages");
    if (list == nullptr) return out;
    if (!list->is_array()) {
      reader_.note("messages", "type(array)", "must be an array of messages", list);
      return out;
    }
    for (size_t i = 0; i < list->size(); ++i) {
      const json& entry = (*list)[i];
      if (entry.is_object()) {
        out.push_back(read_message(entry, i));
      } else {
        reader_.note(cat("messages[", i, "]"), "type(object)", "must be an object", &entry);
      }
    }
    return out;
  }

 private:
  SentMessage read_message(const json& entry, size_t index) {
    const std::string prefix = cat("messages[", index, "].");
    ObjectReader fields(entry, prefix, errors_);
    SentMessage out;
    out.role = fields.text("role").value_or("");
    if (out.role.empty()) fields.note("role", "required", "is missing", fields.find("role"));
    out.content = fields.text("content").value_or("");
    out.reasoning = fields.text("thinking").value_or("");
    out.name = fields.text("tool_name").value_or("");
    out.tool_call_id = fields.text("tool_call_id").value_or("");
    read_images(fields, prefix, out);
    read_calls(fields, prefix, index, out);
    return out;
  }

  // Ollama's calls have an object as arguments, OpenAI's a text.
  void read_calls(ObjectReader& fields, const std::string& prefix, size_t index,
                  SentMessage& message) {
    const json* list = fields.find("tool_calls");
    if (list == nullptr) return;
    if (!list->is_array()) {
      return fields.note("tool_calls", "type(array)", "must be an array of calls", list);
    }
    for (size_t i = 0; i < list->size(); ++i) {
      const json& entry = (*list)[i];
      const std::string at = cat("tool_calls[", i, "]");
      if (!entry.is_object() || !entry.value("function", json()).is_object()) {
        fields.note(at, "type(object)", "must be an object with a function", &entry);
        continue;
      }
      ObjectReader call(entry, cat(prefix, at, "."), errors_);
      ObjectReader function(entry.at("function"), cat(prefix, at, ".function."), errors_);
      SentCall out{.id = call.text("id").value_or(""),
                   .name = function.text("name").value_or(""),
                   .arguments = "{}"};
      if (out.name.empty()) function.note("name", "required", "is missing", nullptr);
      const json* arguments = function.find("arguments");
      if (arguments != nullptr && arguments->is_object()) {
        out.arguments = in_order_.arguments(index, i);
      } else if (arguments != nullptr) {
        function.note("arguments", "type(object)", "must be an object", arguments);
      }
      message.tool_calls.push_back(std::move(out));
    }
  }

  ObjectReader& reader_;
  std::vector<FieldError>& errors_;
  InOrder in_order_;
};

// "format": "" or absent, "json", or a schema.
void read_format(ObjectReader& reader, const JsonBody& body, ConstraintFields& out) {
  const json* format = reader.find("format");
  if (format == nullptr || *format == "") return;
  if (*format == "json") {
    out.kind = "json_object";
  } else if (format->is_object()) {
    out.kind = "json_schema";
    out.text = dump_in_order(body.in_order("format"));
  } else {
    reader.note("format", "one_of(json), type(object)", "must be json or a JSON schema", format);
  }
}

// How far back the penalties look: Ollama's -1 is the whole context, its 0 is nothing.
void set_window(GenerateRequest& request) {
  if (!request.given.has(&P::repeat_last_n)) return;
  int32_t& window = request.sampling.repeat_last_n;
  if (window == 0) {
    request.set(&P::repetition_penalty, 1.0f);
    request.set(&P::frequency_penalty, 0.0f);
    request.set(&P::presence_penalty, 0.0f);
  }
  if (window == -1) window = 0;
}

// "options". Those that say how Ollama loads a model change nothing here.
void read_options(ObjectReader& reader, std::vector<FieldError>& errors, GenerateRequest& out) {
  out.max_tokens = INT32_MAX;
  const json* sent = reader.find("options");
  if (sent == nullptr) return;
  if (!sent->is_object()) {
    return reader.note("options", "type(object)", "must be an object", sent);
  }
  ObjectReader options(*sent, "options.", errors);
  read_sampling(options, out, engine::SamplingApi::ollama);
  set_window(out);
  const int32_t most = options.integer("num_predict", {-2, INT32_MAX}).value_or(-1);
  if (most > 0) out.max_tokens = most;
  read_stop(options, out);
}

// What both routes for text take.
void read_shared(ObjectReader& reader, const JsonBody& body, std::vector<FieldError>& errors,
                 OllamaRequest& out) {
  GenerateRequest& request = out.generate;
  out.model = reader.text("model").value_or("");
  request.chat.split = true;
  request.stream = reader.boolean("stream").value_or(true);
  out.thinks = read_think(reader, request.chat);
  read_format(reader, body, request.constraint);
  read_options(reader, errors, request);
  out.truncate = reader.boolean("truncate").value_or(true);
  out.shift = reader.boolean("shift").value_or(true);
  const bool logprobs = reader.boolean("logprobs").value_or(false);
  const int32_t top = reader.integer("top_logprobs", {0, kMaxLogprobs}).value_or(0);
  if (logprobs) request.logprobs = top;
  refuse_unless(reader, "_debug_render_only", false);
}

// Notes fields that a prompt without a template cannot have.
void check_raw(ObjectReader& reader) {
  for (const char* name : {"system", "suffix", "images"}) {
    const json* value = reader.find(name);
    if (value == nullptr || value->empty() || *value == "") continue;
    reader.note(name, "exclusive(raw)", "cannot be given together with raw", value);
  }
}

EmbeddingBody read_how(ObjectReader& reader, bool normalize) {
  EmbeddingBody out;
  out.normalize = normalize;
  if (reader.boolean("truncate").value_or(true)) out.truncate = -1;
  out.dimensions = reader.integer("dimensions", {0, INT32_MAX}).value_or(0);
  return out;
}

}  // namespace

OllamaRequest parse_ollama_generate(std::string_view text) {
  const JsonBody body(text);
  std::vector<FieldError> errors;
  ObjectReader reader(body, errors);
  OllamaRequest out;
  read_shared(reader, body, errors, out);
  out.raw = reader.boolean("raw").value_or(false);
  out.prompt = reader.text("prompt").value_or("");
  out.suffix = reader.text("suffix").value_or("");
  if (out.raw) check_raw(reader);
  const std::string system = reader.text("system").value_or("");
  SentMessage asked{.role = "user", .content = out.prompt};
  read_images(reader, "", asked);
  refuse_unless(reader, "template", "");
  refuse_unless(reader, "context", json::array());
  for (const char* of_pictures : {"width", "height", "steps"}) {
    refuse_unless(reader, of_pictures, 0);
  }
  if (out.raw || !out.suffix.empty()) {
    out.generate.prompt = out.prompt;
  } else if (!out.prompt.empty()) {
    if (!system.empty()) out.generate.messages.push_back({.role = "system", .content = system});
    out.generate.messages.push_back(std::move(asked));
  }
  refuse(errors);
  return out;
}

OllamaRequest parse_ollama_chat(std::string_view text) {
  const JsonBody body(text);
  std::vector<FieldError> errors;
  ObjectReader reader(body, errors);
  OllamaRequest out{.generate = {}, .model = {}, .chat = true};
  read_shared(reader, body, errors, out);
  GenerateRequest& request = out.generate;
  request.messages = Messages(reader, body, errors).read();
  // An assistant's message at the end is the beginning of the answer.
  request.chat.continue_last = !request.messages.empty() && goes_on(request.messages.back());
  read_tools(reader, body, ToolSpelling::openai_chat, request.chat);
  refuse(errors);
  return out;
}

void set_ollama_defaults(GenerateRequest& request, const engine::SamplingDefaults& model) {
  const P own;
  request.set_default(&P::temperature, model.temperature.value_or(own.temperature));
  request.set_default(&P::top_k, model.top_k.value_or(own.top_k));
  request.set_default(&P::top_p, model.top_p.value_or(kTopP));
  request.set_default(&P::min_p, model.min_p.value_or(own.min_p));
  request.set_default(&P::repetition_penalty,
                      model.repetition_penalty.value_or(own.repetition_penalty));
}

std::string parse_ollama_show(std::string_view text) {
  const JsonBody body(text);
  std::vector<FieldError> errors;
  ObjectReader reader(body, errors);
  std::string model = reader.text("model").value_or("");
  const std::string older = reader.text("name").value_or("");
  (void)given_name(reader, {"model", "name"});
  refuse(errors);
  return model.empty() ? older : model;
}

OllamaEmbedBody parse_ollama_embed(std::string_view text) {
  const JsonBody body(text);
  std::vector<FieldError> errors;
  ObjectReader reader(body, errors);
  OllamaEmbedBody out{.model = reader.text("model").value_or(""),
                      .generic = read_how(reader, true)};
  const json* input = reader.find("input");
  const json list = input == nullptr    ? json::array()
                    : input->is_array() ? *input
                    : *input == ""      ? json::array()
                                        : json::array({*input});
  if (list.size() > kMaxEmbeddingInputs) {
    reader.note("input", cat("max_count(", kMaxEmbeddingInputs, ")"),
                cat("holds more than ", kMaxEmbeddingInputs, " texts"), input);
  }
  for (size_t i = 0; i < list.size() && errors.empty(); ++i) {
    if (list[i].is_string()) {
      out.generic.inputs.emplace_back(list[i].get<std::string>());
    } else {
      reader.note("input", "type(string | array)", "must be a text or a list of texts", input);
    }
  }
  refuse(errors);
  return out;
}

OllamaEmbedBody parse_ollama_embeddings(std::string_view text) {
  const JsonBody body(text);
  std::vector<FieldError> errors;
  ObjectReader reader(body, errors);
  OllamaEmbedBody out{.model = reader.text("model").value_or(""), .generic = {}};
  out.generic.normalize = false;
  out.generic.truncate = -1;
  const std::string prompt = reader.text("prompt").value_or("");
  if (!prompt.empty()) out.generic.inputs.emplace_back(prompt);
  refuse(errors);
  return out;
}

}  // namespace rbee::server
