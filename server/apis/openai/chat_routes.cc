#include "server/apis/openai/chat_routes.h"

#include <chrono>

#include "rbee/core/cat.h"
#include "server/apis/openai/error.h"
#include "server/apis/openai/model_routes.h"
#include "server/apis/openai/reply.h"
#include "server/apis/openai/request.h"
#include "server/apis/text_answers.h"
#include "server/http/ids.h"

namespace rbee::server {
namespace {

// Changes whenever the answer to one seed may change.
std::string fingerprint(const LlmService& service) {
  const engine::ModelInfo& model = service.engine().model();
  const WorkerInfo worker = service.info();
  return cat("fp_", short_digest(cat(worker.implementation, "\n", worker.version, "\n", model.id,
                                     "\n", model.quantization, "\n", model.device)));
}

OpenAiAnswer answer_form(const LlmService& service, const OpenAiRequest& request,
                         const std::string& id) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  std::vector<std::string> custom;
  for (const SentTool& tool : request.generate.chat.tools) {
    if (tool.custom) custom.push_back(tool.name);
  }
  const std::vector<SentMessage>& messages = request.generate.messages;
  const bool goes_on = request.chat && request.echo && messages.back().role == "assistant";
  const std::string echoed = goes_on ? messages.back().content : "";
  return {.chat = request.chat,
          .id = (request.chat ? "chatcmpl-" : "cmpl-") + id,
          .model = service.answering_model(request.generate),
          .created = std::chrono::duration_cast<std::chrono::seconds>(now).count(),
          .echo = request.echo,
          .logprobs = request.generate.logprobs,
          .prompt_logprobs = request.prompt_logprobs,
          .fingerprint = fingerprint(service),
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

std::shared_ptr<OpenAiChoices> make_choices(const LlmService& service, const OpenAiRequest& request,
                                            const AnswerPlan& plan, const std::string& id) {
  auto out = std::make_shared<OpenAiChoices>();
  out->answer = answer_form(service, request, id);
  out->each = request.best_of;
  out->wanted = request.choices;
  out->left = plan.answers();
  if (request.chat) out->prompts.emplace_back();
  for (const SentPrompt& prompt : request.prompts) {
    OpenAiPrompt shown;
    if (request.echo) {
      shown.text = prompt.ids.empty() ? prompt.text : service.engine().detokenize(prompt.ids);
    }
    out->prompts.push_back(std::move(shown));
  }
  return out;
}

// OneReply: the reply class of each choice.
template <typename OneReply, typename To>
std::shared_ptr<To> start(LlmService& service, const OpenAiRequest& request) {
  const AnswerPlan plan = plan_of(request);
  const std::string id = service.new_job_id();
  const auto choices = make_choices(service, request, plan, id);
  GenerateRequest generate = request.generate;
  // best_of ranks answers by their log probabilities.
  if (request.best_of > request.choices && !generate.logprobs) generate.logprobs = 0;
  const LlmService::MakePart<To> make = [&](size_t index, const std::function<void()>& cancel,
                                            std::shared_ptr<To> to) {
    if (index == 0) choices->cancel = cancel;  // before any job runs
    return std::make_unique<OneReply>(std::move(to), choices, static_cast<int32_t>(index));
  };
  return service.start_all(id, generate, plan, make);
}

Response answer(LlmService& service, const OpenAiRequest& body) {
  if (*body.generate.stream) return event_stream(start<OpenAiStream, EventQueue>(service, body));
  return answer_of(start<OpenAiText, DelayedResponse>(service, body));
}

template <OpenAiRequest (*kParse)(std::string_view)>
Response complete(LlmService& service, const Request& request) {
  return guarded(openai_error, [&] {
    OpenAiRequest body = kParse(request.body);
    fill_in(service, request, Defaults::open, body.generate);
    const auto work = LlmService::preparation(body.generate, plan_of(body));
    return prepared(service, request, work, openai_error,
                    [&service, body = std::move(body)] { return answer(service, body); });
  });
}

constexpr auto complete_chat = complete<parse_openai_chat>;
constexpr auto complete_text = complete<parse_openai_completion>;
constexpr auto invoke = complete<parse_invocation_of_text>;

constexpr ChatRoute kRoutes[] = {
    {"POST", "/v1/chat/completions", complete_chat, Body::json, ErrorForm::openai,
     Operation::openai_chat},
    {"POST", "/chat/completions", complete_chat, Body::json, ErrorForm::openai,
     Operation::openai_chat},
    {"POST", "/v1/completions", complete_text, Body::json, ErrorForm::openai},
    {"POST", "/invocations", invoke, Body::json, ErrorForm::openai},
};

std::vector<OpenAiModel> models_of(const LlmService& service) {
  const int64_t context = service.engine().model().context_length;
  std::vector<OpenAiModel> models = {{.id = service.model_id(),
                                      .parent = {},
                                      .root = {},
                                      .context_length = context,
                                      .aliases = service.options().aliases,
                                      .tags = service.options().tags}};
  for (const engine::LoraInfo& info : service.loras()) {
    models.push_back({.id = info.name,
                      .parent = service.model_id(),
                      .root = info.path,
                      .context_length = context});
  }
  return models;
}

constexpr auto kModelRoutes = model_routes<LlmService, models_of>();

}  // namespace

AnswerPlan plan_of(const OpenAiRequest& request) {
  return {.prompts = request.prompts,
          .add_special_tokens = request.add_special_tokens,
          .each = request.best_of};
}

std::span<const ChatRoute> openai_chat_routes() {
  return kRoutes;
}

std::span<const ChatRoute> chat_model_routes() {
  return kModelRoutes;
}

}  // namespace rbee::server
