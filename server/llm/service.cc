#include "server/llm/service.h"

#include <algorithm>
#include <array>
#include <utility>

#include "rbee/core/experimental.h"
#include "rbee/io/image/base64.h"
#include "server/llm/page.h"

namespace rbee::server {
namespace {

// From this many bytes of text, a side thread tokenizes.
constexpr size_t kLongText = 8192;
// About the bytes that a chat template adds around a message.
constexpr size_t kMarkBytes = 64;

// The bytes of text that become tokens.
size_t text_bytes(const GenerateRequest& request) {
  size_t bytes = request.prompt.size() + request.chat.template_variables.size();
  for (const SentMessage& message : request.messages) {
    bytes += kMarkBytes + message.content.size() + message.reasoning.size();
    for (const SentCall& call : message.tool_calls) bytes += call.arguments.size();
  }
  for (const engine::LogitBias& bias : request.sampling.logit_bias) bytes += bias.text.size();
  for (const std::string& word : request.sampling.bad_words)
    bytes += 2 * word.size();  // also after a space
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

// The id of one of an answer's jobs; the first has the answer's id.
std::string part_id(const std::string& id, size_t index) {
  return index == 0 ? id : cat(id, "-", index);
}

}  // namespace

std::vector<engine::ChatMessage> to_engine(const std::vector<SentMessage>& messages) {
  std::vector<engine::ChatMessage> out;
  out.reserve(messages.size());
  for (const SentMessage& message : messages) {
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
  using P = engine::SamplingParams;
  if (defaults_.temperature) request.set_default(&P::temperature, *defaults_.temperature);
  if (defaults_.seed) request.set_default(&P::seed, defaults_.seed);
  const bool no_limit = request.max_tokens.value_or(INT32_MAX) == INT32_MAX;
  if (no_limit && defaults_.max_tokens) request.max_tokens = defaults_.max_tokens;
}

size_t LlmService::count_tokens(const GenerateRequest& request) const {
  return engine_.chat_tokens(to_engine(request.messages), chat_options(request.chat)).size();
}

engine::TextRequest LlmService::engine_request(const GenerateRequest& wire,
                                               const std::string& job_id) const {
  engine::TextRequest request;
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
  request.sampling = wire.sampling;
  request.stop = wire.stop;
  request.stop_ids = wire.stop_ids;
  request.constraint = to_engine(wire.constraint);
  request.logprobs = wire.logprobs;
  request.logprob_ids = wire.logprob_ids;
  request.token_ids = wire.token_ids;
  request.drawn_logprobs = wire.drawn_logprobs;
  request.return_prompt_ids = wire.return_prompt_ids;
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

std::shared_ptr<TextJob> LlmService::make_job(std::string id, std::unique_ptr<Reply> reply,
                                              std::shared_ptr<EventQueue> events) const {
  const engine::ModelInfo& model = engine_.model();
  return std::make_shared<TextJob>(std::move(id), std::move(reply), std::move(events),
                                   model.weight_bytes + model.kv_cache_bytes, metrics_);
}

void LlmService::hand_over(engine::TextRequest request, const std::shared_ptr<TextJob>& job) {
  job->describe(request, model_id());
  admit(job, [&] { engine_.submit(std::move(request), job); });
}

std::shared_ptr<Job> LlmService::submit(const GenerateRequest& request,
                                        std::shared_ptr<TextJob> job) {
  hand_over(engine_request(request, job->id()), job);
  return job;
}

std::shared_ptr<Job> LlmService::create_job(const GenerateRequest& request,
                                            const MakeReply<EventQueue>& make) {
  std::string id = new_job_id();
  auto events = std::make_shared<EventQueue>(canceller(id));
  auto reply = make(id, events);
  return submit(request, make_job(std::move(id), std::move(reply), std::move(events)));
}

LlmService::Preparation LlmService::preparation(const GenerateRequest& request,
                                                const AnswerPlan& plan) {
  const bool much = !request.constraint.kind.empty() || !request.chat.tools.empty() ||
                    std::ranges::any_of(request.messages, [](const SentMessage& message) {
                      return !message.pictures.empty();
                    });
  if (much) return Preparation::much;
  size_t bytes = text_bytes(request) * plan.answers();
  for (const SentPrompt& prompt : plan.prompts) {
    bytes += prompt.text.size() * static_cast<size_t>(plan.each);
  }
  if (bytes > kLongText) return Preparation::text;
  return request.messages.empty() ? Preparation::little : Preparation::chat;
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

std::function<void()> LlmService::canceller_of_all(const std::string& id, size_t answers) {
  return [this, id, answers] {
    for (size_t i = 0; i < answers; ++i) cancel(part_id(id, i));
  };
}

// Throws invalid_argument for more answers than can ever wait at once, because a retry would not
// help.
void LlmService::check_places(size_t answers) const {
  const engine::ModelInfo& model = engine_.model();
  const int64_t most = int64_t{model.max_running} + model.max_waiting;
  check(std::cmp_less_equal(answers, most), "prompt", "a request of ", answers,
        " answers is more than the ", most,
        " that run and wait here (--max-running, --max-waiting)");
}

// All or none: the later answers to a prompt wait for the first one, to share its evaluated prompt.
void LlmService::submit_all(const GenerateRequest& request, const AnswerPlan& plan,
                            const std::string& id,
                            const std::function<std::unique_ptr<Reply>(size_t index)>& make_reply) {
  const size_t each = static_cast<size_t>(plan.each);
  check_places(plan.answers());
  const engine::TextRequest shared = engine_request(request, id);  // reads its pictures once
  try {
    for (size_t index = 0; index < plan.answers(); ++index) {
      auto job = make_job(part_id(id, index), make_reply(index), nullptr);
      const size_t among = index % each;
      engine::TextRequest one = shared;
      one.job_id = job->id();
      if (!plan.prompts.empty()) {
        const SentPrompt& prompt = plan.prompts[index / each];
        one.prompt = prompt.text;
        one.prompt_ids = prompt.ids;
        if (!plan.add_special_tokens && prompt.ids.empty()) {
          one.prompt_ids = engine_.tokenize(prompt.text, {.add_special = false});
        }
      }
      if (one.sampling.seed) *one.sampling.seed += among;
      if (among > 0) {
        one.follows = part_id(id, index - among);
        one.prompt_logprobs = std::nullopt;  // the first answer has them
      }
      hand_over(std::move(one), job);
    }
  } catch (...) {
    canceller_of_all(id, plan.answers())();
    throw;
  }
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
                     .device_free = stats.device_memory_free_bytes},
          .group_ranks = model.ranks,
          .rank_bytes = model.rank_bytes,
          .host_cache_bytes = model.host_cache_bytes};
}

std::string LlmService::health_json() const {
  const engine::ModelInfo& model = engine_.model();
  std::string out = to_json(Health{.healthy = healthy(),
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
                                   .capture_refusal = model.capture_refusal,
                                   .experimental = std::string(experimental(model.device)),
                                   .group_ranks = model.ranks,
                                   .response_prefix = responses_.prefix()});
  const size_t background = responses_.running();
  if (background == 0) return out;
  out.pop_back();  // the object's end
  return cat(out, ",\"background\":", background, "}");
}

std::string LlmService::metrics() const {
  return metrics_->render(engine_.model(), engine_.stats(), uptime_seconds());
}

Page LlmService::page() const {
  return {.html = std::string(kChatPage), .policy = std::string(kChatPagePolicy)};
}

}  // namespace rbee::server
