#include "server/apis/openai/request.h"

#include <algorithm>

#include "rbee/core/cat.h"
#include "server/wire/chat_fields.h"
#include "server/wire/constraint_fields.h"
#include "server/wire/generate_fields.h"
#include "server/wire/lora_fields.h"
#include "server/wire/message_parts.h"
#include "server/wire/other_names.h"
#include "server/wire/reasoning_fields.h"
#include "server/wire/sampling_fields.h"
#include "server/wire/tool_fields.h"

namespace rbee::server {
namespace {

using nlohmann::json;

constexpr int32_t kCompletionTokens = 16;  // OpenAI's default
constexpr int32_t kMaxLogprobs = 20;
constexpr size_t kMaxLogprobIds = 128;
constexpr int32_t kMaxChoices = 32;
constexpr size_t kMaxPrompts = 128;

// A field that is accepted with neutral values only.
struct Neutral {
  const char* field;
  std::vector<json> values;
};

const std::vector<Neutral>& neutral_fields() {
  static const std::vector<Neutral> fields = {
      {"suffix", {""}},   {"modalities", {json::array({"text"})}},
      {"audio", {}},      {"web_search_options", {}},
      {"moderation", {}},
  };
  return fields;
}

void refuse_what_is_not_done(ObjectReader& reader, bool chat) {
  for (const char* name : {"tools", "functions", "function_call"}) {
    const json* value = chat ? nullptr : reader.find(name);
    if (value != nullptr) reader.note(name, "unsupported", "is for chats", value);
  }
  chat ? refuse_unless(reader, "best_of", 1) : refuse_unless(reader, "include_reasoning", true);
  refuse_vllm_fields(reader);
  for (const Neutral& neutral : neutral_fields()) {
    const json* value = reader.find(neutral.field);
    if (value == nullptr || std::ranges::count(neutral.values, *value) > 0) continue;
    reader.note(neutral.field, "unsupported", "asks for what this worker does not do", value);
  }
}

// vLLM's "add_generation_prompt" and "continue_final_message".
void read_continuation(ObjectReader& reader, GenerateRequest& request) {
  const bool new_turn = reader.boolean("add_generation_prompt").value_or(true);
  request.chat.continue_last = reader.boolean("continue_final_message").value_or(false);
  request.chat.add_generation_prompt = new_turn;
  if (!request.chat.continue_last) return;
  if (new_turn && reader.find("add_generation_prompt") != nullptr) {
    reader.note("continue_final_message", "exclusive(add_generation_prompt)",
                "cannot be given together with add_generation_prompt", nullptr);
  }
  if (request.messages.empty() || goes_on(request.messages.back())) return;
  reader.note("continue_final_message", "requires(messages)",
              "needs a last message of the assistant, with a text and without calls",
              reader.find("continue_final_message"));
}

// llama-server's field: "none" leaves the reasoning in the text as the model wrote it.
void read_reasoning_format(ObjectReader& reader, ChatFields& chat) {
  const std::string format = reader.text("reasoning_format").value_or("auto");
  if (format == "none") {
    chat.split = false;
    if (chat.tools.empty()) return;
    reader.note("reasoning_format", "exclusive(tools)", "cannot be none together with tools",
                reader.find("reasoning_format"));
  } else if (format != "auto" && format != "deepseek" && format != "deepseek-legacy") {
    reader.note("reasoning_format", "one_of(none, auto, deepseek, deepseek-legacy)",
                "must be none, auto, deepseek or deepseek-legacy", reader.find("reasoning_format"));
  }
}

SentPrompt read_one_prompt(const json& value, const std::string& name, ObjectReader& reader) {
  SentPrompt out;
  if (!value.is_string() && !value.is_array()) {
    reader.note(name, "type(string)", "must be a string, an array of tokens, or an array of these",
                &value);
  } else if (value.empty() || value == "") {
    reader.note(name, "non_empty", "is empty", &value);
  } else if (value.is_string()) {
    out.text = value.get<std::string>();
  } else {
    out.ids = read_ids(value, name, reader);
  }
  return out;
}

// A text, its tokens, or a list of either.
void read_prompts(ObjectReader& reader, OpenAiRequest& request) {
  const json* value = reader.find("prompt");
  if (value == nullptr) return reader.note("prompt", "required", "is missing", nullptr);
  const bool list = value->is_array() && !value->empty() && !value->front().is_number();
  if (!list) return request.prompts.push_back(read_one_prompt(*value, "prompt", reader));
  if (value->size() > kMaxPrompts) {
    return reader.note("prompt", cat("max_count(", kMaxPrompts, ")"),
                       cat("holds more than ", kMaxPrompts, " prompts"), value);
  }
  for (size_t i = 0; i < value->size(); ++i) {
    request.prompts.push_back(read_one_prompt((*value)[i], cat("prompt[", i, "]"), reader));
  }
}

void read_stream(ObjectReader& reader, std::vector<FieldError>& errors, OpenAiRequest& request) {
  request.generate.stream = reader.boolean("stream").value_or(false);
  const json* options = reader.find("stream_options");
  if (options == nullptr) return;
  if (!options->is_object()) {
    return reader.note("stream_options", "type(object)", "must be an object", options);
  }
  ObjectReader fields(*options, "stream_options.", errors);
  request.include_usage = fields.boolean("include_usage").value_or(false);
  const bool continuous = fields.boolean("continuous_usage_stats").value_or(false);
  request.continuous_usage = request.include_usage && continuous;
  if (*request.generate.stream || !(request.include_usage || continuous)) return;
  reader.note("stream_options", "requires(stream)", "needs stream to be true", options);
}

// Fields of vLLM and llama-server that show an answer's tokens and progress.
void read_shown(ObjectReader& reader, OpenAiRequest& request) {
  GenerateRequest& generate = request.generate;
  if (request.chat) {
    request.include_reasoning = reader.boolean("include_reasoning").value_or(true);
  }
  request.return_token_ids = reader.boolean("return_token_ids").value_or(false);
  request.tokens_as_ids = reader.boolean("return_tokens_as_token_ids").value_or(false);
  request.timings_per_token = reader.boolean("timings_per_token").value_or(false);
  generate.progress = reader.boolean("return_progress").value_or(false) && *generate.stream;
  generate.return_prompt_ids = request.return_token_ids;
  generate.token_ids =
      request.return_token_ids || request.continuous_usage || request.timings_per_token;
}

// vLLM's "logprob_token_ids".
void read_logprob_ids(ObjectReader& reader, GenerateRequest& request) {
  const json* list = reader.find("logprob_token_ids");
  if (list == nullptr) return;
  if (!list->is_array() || list->empty() || list->size() > kMaxLogprobIds) {
    return reader.note("logprob_token_ids", cat("type(array), items(1..=", kMaxLogprobIds, ")"),
                       cat("must be an array of 1 to ", kMaxLogprobIds, " token ids"), list);
  }
  request.logprob_ids = read_ids(*list, "logprob_token_ids", reader);
  if (request.logprobs) return;
  reader.note("logprob_token_ids", "requires(logprobs)", "needs logprobs", list);
}

// A chat has a boolean and the number of top tokens, a completion only the number.
void read_logprobs(ObjectReader& reader, OpenAiRequest& request) {
  if (!request.chat) {
    request.generate.logprobs = reader.integer("logprobs", {0, kMaxLogprobs});
    return;
  }
  const bool wanted = reader.boolean("logprobs").value_or(false);
  const std::optional<int32_t> top = reader.integer("top_logprobs", {0, kMaxLogprobs});
  if (top.value_or(0) > 0 && !wanted) {
    reader.note("top_logprobs", "requires(logprobs)", "needs logprobs to be true",
                reader.find("top_logprobs"));
  }
  if (wanted) request.generate.logprobs = top.value_or(0);
}

// "prompt_logprobs", and the log probabilities of an echoed prompt.
void read_prompt_logprobs(ObjectReader& reader, OpenAiRequest& request) {
  GenerateRequest& generate = request.generate;
  request.prompt_logprobs = reader.integer("prompt_logprobs", {0, kMaxLogprobs});
  if (request.prompt_logprobs && *generate.stream) {
    reader.note("prompt_logprobs", "exclusive(stream)", "cannot be streamed",
                reader.find("prompt_logprobs"));
  }
  generate.prompt_logprobs = request.prompt_logprobs;
  if (!request.echo || !generate.logprobs) return;
  generate.prompt_logprobs = std::max(*generate.logprobs, generate.prompt_logprobs.value_or(0));
}

// 0 is allowed if the request is about the prompt's log probabilities.
void read_max_tokens(ObjectReader& reader, OpenAiRequest& request) {
  const bool about_prompt = request.echo || reader.find("prompt_logprobs") != nullptr;
  const int32_t least = !request.chat && about_prompt ? 0 : 1;
  std::optional<int32_t>& most = request.generate.max_tokens;
  // llama-server's name, then OpenAI's older and newer one.
  const std::initializer_list<const char*> names = {"n_predict", "max_tokens",
                                                    "max_completion_tokens"};
  for (const char* name : names) {
    const auto limit = read_limit(reader, name, least);
    if (!most) most = limit;
  }
  (void)given_name(reader, names);
  if (!most) most = request.chat ? INT32_MAX : kCompletionTokens;
}

void read_choices(ObjectReader& reader, OpenAiRequest& request) {
  request.choices = reader.integer("n", {1, kMaxChoices}).value_or(1);
  request.best_of = request.choices;
  if (request.chat) return;
  request.best_of = reader.integer("best_of", {1, kMaxChoices}).value_or(request.choices);
  const json* value = reader.find("best_of");
  if (request.best_of < request.choices) {
    reader.note("best_of", "min(n)", "must be at least n", value);
  } else if (request.best_of > request.choices && *request.generate.stream) {
    reader.note("best_of", "exclusive(stream)", "above n cannot be streamed", value);
  }
}

// All choices together may show as many such tokens as `top_logprobs` allows.
void bound_logprob_ids(ObjectReader& reader, const OpenAiRequest& request) {
  constexpr size_t kMost = static_cast<size_t>(kMaxLogprobs) * kMaxChoices;
  const size_t most = kMost / static_cast<size_t>(request.best_of);
  if (request.generate.logprob_ids.size() <= most) return;
  reader.note("logprob_token_ids", cat("items(1..=", most, ")"),
              cat("may hold ", most, " token ids at most beside so many choices"),
              reader.find("logprob_token_ids"));
}

OpenAiRequest parse(const JsonBody& body, bool chat) {
  std::vector<FieldError> errors;
  ObjectReader reader(body, errors);
  OpenAiRequest out{.generate = {}, .chat = chat, .include_usage = false};
  GenerateRequest& request = out.generate;
  if (chat) {
    request.messages = read_messages(reader, errors);
    request.chat.split = true;
    read_continuation(reader, request);
    read_tools(reader, body, ToolSpelling::openai_chat, request.chat);
    read_reasoning(reader, body, request.chat);
    read_reasoning_format(reader, request.chat);
  } else {
    read_prompts(reader, out);
    out.add_special_tokens = reader.boolean("add_special_tokens").value_or(true);
  }
  out.echo = reader.boolean("echo").value_or(false);
  read_vllm_fields(reader, request);
  if (!chat && out.echo && request.kept_tokens) {
    reader.note("echo", "exclusive(truncate_prompt_tokens)",
                "cannot be given together with truncate_prompt_tokens", reader.find("echo"));
  }
  refuse_what_is_not_done(reader, chat);
  read_adapters(reader, errors, request);
  read_max_tokens(reader, out);
  read_sampling(reader, request);
  read_turn(reader, request);
  read_stop(reader, request);
  request.constraint = read_constraint(reader, body, errors);
  read_stream(reader, errors, out);
  read_shown(reader, out);
  read_logprobs(reader, out);
  read_logprob_ids(reader, request);
  read_prompt_logprobs(reader, out);
  read_choices(reader, out);
  bound_logprob_ids(reader, out);
  if (!errors.empty()) throw InvalidBody(std::move(errors));
  return out;
}

}  // namespace

OpenAiRequest parse_openai_chat(std::string_view body) {
  return parse(JsonBody(body), true);
}

OpenAiRequest parse_openai_completion(std::string_view body) {
  return parse(JsonBody(body), false);
}

OpenAiRequest parse_invocation_of_text(std::string_view text) {
  const JsonBody body(text);
  return parse(body, body.has("messages"));
}

}  // namespace rbee::server
