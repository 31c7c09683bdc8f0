#include "server/llm/service.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "rbee/io/image/base64.h"
#include "server/http/ids.h"
#include "server/llm/page.h"
#include "server/llm/sampling.h"

namespace rbee::server {
namespace {

// Bytes of text of which the tokens are made beside the connections' thread.
constexpr size_t kLongText = 8192;
// About what a chat template makes around a message.
constexpr size_t kMarkBytes = 64;

// Of which each answer's tokens are made.
size_t text_bytes(const GenerateRequest& request) {
  size_t bytes = request.prompt.size() + request.chat.template_variables.size();
  for (const Message& message : request.messages) {
    bytes += kMarkBytes + message.content.size() + message.reasoning.size();
    for (const SentCall& call : message.tool_calls) bytes += call.arguments.size();
  }
  for (const SamplingFields::Bias& bias : request.logit_bias) bytes += bias.text.size();
  for (const std::string& word : request.bad_words) bytes += 2 * word.size();  // also after a space
  return bytes;
}

engine::Constraint to_engine(const ConstraintFields& wire) {
  using Kind = engine::Constraint::Kind;
  constexpr std::array<std::pair<std::string_view, Kind>, 5> kKinds{
      {{"json_object", Kind::json_object},
       {"json_schema", Kind::json_schema},
       {"regex", Kind::regex},
       {"choice", Kind::choice},
       {"grammar", Kind::grammar}}};
  const auto at = std::ranges::find(kKinds, wire.kind, &std::pair<std::string_view, Kind>::first);
  return {.kind = at == kKinds.end() ? Kind::none : at->second,
          .text = wire.text,
          .choices = wire.choices};
}

// Of an answer's job; the first one's is the answer's own.
std::string choice_id(const std::string& id, int32_t index) {
  return index == 0 ? id : cat(id, "-", index);
}

// Jobs of all prompts.
int32_t answers_of(const OpenAiRequest& request) {
  const auto prompts = static_cast<int32_t>(std::max<size_t>(request.prompts.size(), 1));
  return prompts * request.best_of;
}

}  // namespace

std::vector<engine::ChatMessage> to_engine(const std::vector<Message>& messages) {
  std::vector<engine::ChatMessage> out;
  out.reserve(messages.size());
  for (const Message& message : messages) {
    out.push_back({.role = message.role,
                   .content = message.content,
                   .reasoning = message.reasoning,
                   .tool_call_id = message.tool_call_id,
                   .name = message.name});
    for (const SentPicture& picture : message.pictures) {
      out.back().pictures.push_back({.at = picture.at,
                                     .file = std::make_shared<const engine::PictureFile>(
                                         io::decode_base64(picture.base64, picture.field)),
                                     .field = picture.field});
    }
    for (const SentCall& call : message.tool_calls) {
      out.back().tool_calls.push_back({call.id, call.name, call.arguments});
    }
  }
  return out;
}

namespace {

engine::ChatOptions to_engine(const ChatFields& fields) {
  engine::ChatOptions out{.split = fields.split,
                          .tools = {},
                          .tool = fields.tool,
                          .parallel_tool_calls = fields.parallel_tool_calls,
                          .template_variables = fields.template_variables,
                          .continue_last = fields.continue_last,
                          .add_generation_prompt = fields.add_generation_prompt};
  if (fields.reasoning_budget.value_or(-1) >= 0) out.reasoning_budget = fields.reasoning_budget;
  if (fields.tool_choice == "none") out.tool_choice = engine::ToolChoice::none;
  if (fields.tool_choice == "required") out.tool_choice = engine::ToolChoice::required;
  for (const SentTool& tool : fields.tools) {
    out.tools.push_back({tool.name, tool.json, tool.parameters, tool.strict});
    if (tool.syntax.empty()) continue;
    out.tools.back().input = {.kind = tool.syntax == "lark" ? engine::Constraint::Kind::lark
                                                            : engine::Constraint::Kind::regex,
                              .text = tool.definition,
                              .choices = {}};
  }
  return out;
}

}  // namespace

engine::ChatOptions LlmService::chat_options(ChatFields chat) const {
  if (chat.split && defaults_.reasoning_budget) {
    set_default_budget(chat, *defaults_.reasoning_budget);
  }
  return to_engine(chat);
}

void LlmService::set_defaults(GenerateRequest& request) const {
  if (!request.temperature) request.temperature = defaults_.temperature;
  if (!request.seed) request.seed = defaults_.seed;
  const bool no_limit = request.max_tokens.value_or(INT32_MAX) == INT32_MAX;
  if (no_limit && defaults_.max_tokens) request.max_tokens = defaults_.max_tokens;
}

size_t LlmService::count_tokens(const GenerateRequest& request) const {
  return engine_.chat_tokens(to_engine(request.messages), chat_options(request.chat)).size();
}

engine::Request LlmService::engine_request(const GenerateRequest& wire,
                                           const std::string& job_id) const {
  engine::Request request;
  request.job_id = job_id;
  request.prompt = wire.prompt;
  request.prompt_ids = wire.prompt_ids;
  request.messages = to_engine(wire.messages);
  request.chat = chat_options(wire.chat);
  const auto set = [](auto& field, const auto& value) {
    if (value) field = *value;
  };
  set(request.max_tokens, wire.max_tokens);
  request.lora = loras_of(wire);
  request.sampling = to_engine(wire);
  request.stop = wire.stop;
  request.stop_ids = wire.stop_ids;
  request.constraint = to_engine(wire.constraint);
  request.logprobs = wire.logprobs;
  request.logprob_ids = wire.logprob_ids;
  request.token_ids = wire.token_ids;
  request.drawn_logprobs = wire.drawn_logprobs;
  request.prompt_ids_told = wire.prompt_ids_told;
  request.progress = wire.progress;
  request.allowed_ids = wire.allowed_ids;
  request.kept_tokens = wire.kept_tokens;
  request.keeps_first = wire.keeps_first;
  request.prompt_logprobs = wire.prompt_logprobs;
  request.speculative = wire.speculative;
  request.client = wire.client;
  set(request.user, wire.user);
  set(request.priority, wire.priority);
  set(request.cache_salt, wire.cache_salt);
  return request;
}

std::shared_ptr<LlmJob> LlmService::make_job(std::string id, std::unique_ptr<Reply> reply,
                                             std::shared_ptr<EventQueue> events) const {
  const engine::ModelInfo& model = engine_.model();
  return std::make_shared<LlmJob>(std::move(id), std::move(reply), std::move(events),
                                  model.weight_bytes + model.kv_cache_bytes, metrics_);
}

void LlmService::hand_over(engine::Request request, const std::shared_ptr<LlmJob>& job) {
  job->describe(request, model_id());
  admit(job, [&] { engine_.submit(std::move(request), job); });
}

std::shared_ptr<Job> LlmService::submit(const GenerateRequest& request,
                                        std::shared_ptr<LlmJob> job) {
  hand_over(engine_request(request, job->id()), job);
  return job;
}

std::shared_ptr<Job> LlmService::create_job(const GenerateRequest& request) {
  std::string id = new_job_id();
  auto events = std::make_shared<EventQueue>(canceller(id));
  auto reply = std::make_unique<JobStream>(events);
  return submit(request, make_job(std::move(id), std::move(reply), std::move(events)));
}

std::shared_ptr<EventQueue> LlmService::infer_stream(const GenerateRequest& request) {
  return start<EventQueue>(request, [](const std::string&, std::shared_ptr<EventQueue> events) {
    return std::make_unique<InferStream>(std::move(events));
  });
}

std::shared_ptr<DelayedResponse> LlmService::infer_text(const GenerateRequest& request) {
  return start<DelayedResponse>(request,
                                [](const std::string&, std::shared_ptr<DelayedResponse> response) {
                                  return std::make_unique<InferText>(std::move(response));
                                });
}

LlmService::Preparation LlmService::preparation(const GenerateRequest& request) {
  const bool much = !request.constraint.kind.empty() || !request.chat.tools.empty() ||
                    std::ranges::any_of(request.messages, [](const Message& message) {
                      return !message.pictures.empty();
                    });
  if (much) return Preparation::much;
  if (text_bytes(request) > kLongText) return Preparation::text;
  return request.messages.empty() ? Preparation::little : Preparation::chat;
}

LlmService::Preparation LlmService::preparation(const OpenAiRequest& request) {
  size_t bytes = text_bytes(request.generate) * static_cast<size_t>(answers_of(request));
  for (const SentPrompt& prompt : request.prompts) {
    bytes += prompt.text.size() * static_cast<size_t>(request.best_of);
  }
  const Preparation work = preparation(request.generate);
  return work < Preparation::text && bytes > kLongText ? Preparation::text : work;
}

Response LlmService::prepare(Preparation work, SideWork::Task task) {
  if (work == Preparation::little) return task.work();
  SideWork& beside = work == Preparation::chat   ? rendering_
                     : work == Preparation::text ? encoding_
                                                 : preparing_;
  task.work = [work = std::move(task.work), span = current_span()] {
    const TraceScope scope(span);
    return work();
  };
  Response response;
  response.later = beside.submit(std::move(task));
  return response;
}

// Changes when an answer to the same seed may.
std::string LlmService::fingerprint() const {
  const engine::ModelInfo& model = engine_.model();
  const WorkerInfo worker = info();
  return cat("fp_", short_digest(cat(worker.implementation, "\n", worker.version, "\n", model.id,
                                     "\n", model.quantization, "\n", model.device)));
}

OpenAiAnswer LlmService::openai_answer(const OpenAiRequest& request, const std::string& id) const {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  std::vector<std::string> custom;
  for (const SentTool& tool : request.generate.chat.tools) {
    if (tool.custom) custom.push_back(tool.name);
  }
  const std::vector<Message>& messages = request.generate.messages;
  const bool goes_on = request.chat && request.echo && messages.back().role == "assistant";
  const std::string echoed = goes_on ? messages.back().content : "";
  return {.chat = request.chat,
          .id = (request.chat ? "chatcmpl-" : "cmpl-") + id,
          .model = answering_model(request.generate),
          .created = std::chrono::duration_cast<std::chrono::seconds>(now).count(),
          .echo = request.echo,
          .logprobs = request.generate.logprobs,
          .prompt_logprobs = request.prompt_logprobs,
          .fingerprint = fingerprint(),
          .include_usage = request.include_usage,
          .continuous_usage = request.continuous_usage,
          .include_reasoning = request.include_reasoning,
          .return_token_ids = request.return_token_ids,
          .tokens_as_ids = request.tokens_as_ids,
          .timings_per_token = request.timings_per_token,
          .echoed = echoed,
          .older_calls = request.generate.chat.older_calls,
          .custom_tools = std::move(custom)};
}

std::shared_ptr<OpenAiChoices> LlmService::make_choices(const OpenAiRequest& request,
                                                        const std::string& id) {
  auto out = std::make_shared<OpenAiChoices>();
  out->answer = openai_answer(request, id);
  out->each = request.best_of;
  out->wanted = request.choices;
  out->left = static_cast<size_t>(answers_of(request));
  out->cancel = choices_canceller(id, answers_of(request));
  if (request.chat) out->prompts.emplace_back();
  for (const SentPrompt& prompt : request.prompts) {
    OpenAiPrompt shown;
    if (request.echo)
      shown.text = prompt.ids.empty() ? prompt.text : engine_.detokenize(prompt.ids);
    out->prompts.push_back(std::move(shown));
  }
  return out;
}

std::function<void()> LlmService::choices_canceller(const std::string& id, int32_t count) {
  return [this, id, count] {
    for (int32_t i = 0; i < count; ++i) cancel(choice_id(id, i));
  };
}

// Throws invalid_argument for more answers than can ever wait at once: to try again would be no
// use.
void LlmService::check_places(size_t answers) const {
  const engine::ModelInfo& model = engine_.model();
  const int64_t most = int64_t{model.max_running} + model.max_waiting;
  check(std::cmp_less_equal(answers, most), "prompt", "a request of ", answers,
        " answers is more than the ", most,
        " that run and wait here (--max-running, --max-waiting)");
}

// All or none of the choices: the others wait for the first one of their prompt, to share it.
void LlmService::submit_choices(
    const OpenAiRequest& request, const std::string& id,
    const std::function<std::unique_ptr<Reply>(int32_t index)>& make_reply) {
  check_places(static_cast<size_t>(answers_of(request)));
  GenerateRequest generate = request.generate;
  if (request.best_of > request.choices && !generate.logprobs) generate.logprobs = 0;
  const engine::Request shared = engine_request(generate, id);  // its pictures are read once
  try {
    for (int32_t index = 0; index < answers_of(request); ++index) {
      auto job = make_job(choice_id(id, index), make_reply(index), nullptr);
      const int32_t among = index % request.best_of;
      engine::Request one = shared;
      one.job_id = job->id();
      if (!request.prompts.empty()) {
        const SentPrompt& prompt = request.prompts[static_cast<size_t>(index / request.best_of)];
        one.prompt = prompt.text;
        one.prompt_ids = prompt.ids;
        if (!request.add_special_tokens && prompt.ids.empty()) {
          one.prompt_ids = engine_.tokenize(prompt.text, {.add_special = false});
        }
      }
      if (one.sampling.seed) *one.sampling.seed += static_cast<uint64_t>(among);
      if (among > 0) {
        one.follows = choice_id(id, index - among);
        one.prompt_logprobs = std::nullopt;  // they are the first one's
      }
      hand_over(std::move(one), job);
    }
  } catch (...) {
    choices_canceller(id, answers_of(request))();
    throw;
  }
}

void LlmService::submit_all(const std::vector<GenerateRequest>& requests, const std::string& id,
                            const std::function<std::unique_ptr<Reply>(size_t index)>& make_reply) {
  check_places(requests.size());
  try {
    for (size_t i = 0; i < requests.size(); ++i) {
      submit(requests[i], make_job(choice_id(id, static_cast<int32_t>(i)), make_reply(i), nullptr));
    }
  } catch (...) {
    choices_canceller(id, static_cast<int32_t>(requests.size()))();
    throw;
  }
}

std::shared_ptr<EventQueue> LlmService::openai_stream(const OpenAiRequest& request) {
  const std::string id = new_job_id();
  auto events = std::make_shared<EventQueue>(choices_canceller(id, answers_of(request)));
  const auto choices = make_choices(request, id);
  submit_choices(request, id, [&](int32_t index) {
    return std::make_unique<OpenAiStream>(events, choices, index);
  });
  return events;
}

std::shared_ptr<DelayedResponse> LlmService::openai_text(const OpenAiRequest& request) {
  const std::string id = new_job_id();
  auto response = std::make_shared<DelayedResponse>(choices_canceller(id, answers_of(request)));
  const auto choices = make_choices(request, id);
  submit_choices(request, id, [&](int32_t index) {
    return std::make_unique<OpenAiText>(response, choices, index);
  });
  return response;
}

void LlmService::cancel(const std::string& id) {
  engine_.cancel(id);
}

WorkerService::State LlmService::state() const {
  const engine::ModelInfo& model = engine_.model();
  const engine::EngineStats stats = engine_.stats();
  return {.model = model.id,
          .device = model.device,
          .busy = stats.running + stats.waiting > 0 || rendering_.busy() || encoding_.busy() ||
                  preparing_.busy(),
          .load = stats.running + stats.waiting,
          .healthy = stats.healthy,
          .memory = {.used = model.weight_bytes + model.kv_cache_bytes,
                     .device = stats.device_memory_bytes,
                     .device_free = stats.device_memory_free_bytes}};
}

std::string LlmService::health_json() const {
  const engine::ModelInfo& model = engine_.model();
  return to_json(Health{.healthy = healthy(),
                        .model = model_id(),
                        .architecture = model.architecture,
                        .quantization = model.quantization,
                        .tokenizer_kind = model.tokenizer_kind,
                        .vocab_size = model.vocab_size,
                        .context_length = model.context_length,
                        .parameters = model.parameters,
                        .max_pictures = model.max_pictures,
                        .memory_bytes = model.weight_bytes + model.kv_cache_bytes,
                        .uptime_seconds = uptime_seconds(),
                        .capture_refusal = model.capture_refusal});
}

std::string LlmService::metrics() const {
  return metrics_->render(engine_.model(), engine_.stats(), uptime_seconds());
}

Page LlmService::page() const {
  return {.html = std::string(kChatPage), .policy = std::string(kChatPagePolicy)};
}

}  // namespace rbee::server
