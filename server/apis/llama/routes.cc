#include "server/apis/llama/routes.h"

#include "server/apis/llama/infill.h"
#include "server/apis/llama/reply.h"
#include "server/apis/openai/error.h"
#include "server/apis/openai/response.h"
#include "server/apis/text_answers.h"

namespace rbee::server {
namespace {

using Ids = std::vector<int32_t>;

void append(Ids& to, const Ids& more) {
  to.insert(to.end(), more.begin(), more.end());
}

// Texts and tokens in a row.
Ids joined_prompt(const engine::TextEngine& engine, const LlamaPrompt& parts) {
  Ids out;
  for (size_t i = 0; i < parts.size(); ++i) {
    const SentPrompt& part = parts[i];
    append(out, part.ids.empty() ? engine.tokenize(part.text, {.add_special = i == 0}) : part.ids);
  }
  return out;
}

// The prompts to answer.
AnswerPlan plan_of(const engine::TextEngine& engine, const LlamaRequest& request) {
  AnswerPlan out;
  if (request.infill) out.prompts.push_back({.text = {}, .ids = infill_prompt(engine, request)});
  for (const LlamaPrompt& prompt : request.prompts) {
    out.prompts.push_back(prompt.size() > 1
                              ? SentPrompt{.text = {}, .ids = joined_prompt(engine, prompt)}
                              : prompt.front());
  }
  return out;
}

// OneReply: answers one prompt of the request.
template <typename OneReply, typename To>
std::shared_ptr<To> start(LlmService& service, const LlamaRequest& request) {
  const AnswerPlan plan = plan_of(service.engine(), request);
  auto answers = std::make_shared<LlamaAnswers>();
  answers->left = plan.prompts.size();
  answers->whole.resize(plan.prompts.size());
  LlamaAnswer answer{.model = service.answering_model(request.generate),
                     .request = request,
                     .sampling = request.generate.sampling,
                     .context = service.engine().model().context_length};
  answer.request.prompts.clear();  // every answer has a copy
  const LlmService::MakePart<To> make = [&](size_t index, const std::function<void()>& cancel,
                                            std::shared_ptr<To> to) {
    LlamaAnswer one = answer;
    one.index = static_cast<int32_t>(index);
    const SentPrompt& asked = plan.prompts[index];
    one.prompt = asked.ids.empty() ? asked.text : service.engine().detokenize(asked.ids);
    if (index == 0) answers->cancel = cancel;  // before any job runs
    return std::make_unique<OneReply>(std::move(to), std::move(one), answers);
  };
  return service.start_all(service.new_job_id(), request.generate, plan, make);
}

Response answer(LlmService& service, const LlamaRequest& request) {
  if (*request.generate.stream) {
    return event_stream(start<LlamaStream, EventQueue>(service, request));
  }
  return answer_of(start<LlamaText, DelayedResponse>(service, request));
}

template <LlamaRequest (*kParse)(std::string_view)>
Response complete(LlmService& service, const Request& request) {
  return guarded(openai_error, [&] {
    LlamaRequest body = kParse(request.body);
    fill_in(service, request, Defaults::own, body.generate);
    auto work = LlmService::preparation(body.generate);
    // Several texts are tokenized before the jobs are queued.
    const bool texts = body.infill || body.prompts.size() > 1 || body.prompts.front().size() > 1;
    if (texts && work == LlmService::Preparation::little) work = LlmService::Preparation::text;
    return prepared(service, request, work, openai_error,
                    [&service, body = std::move(body)] { return answer(service, body); });
  });
}

Response props(LlmService& service, const Request&) {
  const engine::ModelInfo& model = service.engine().model();
  const WorkerInfo worker = service.info();
  GenerateRequest defaults;
  service.set_defaults(defaults);
  set_llama_defaults(defaults);
  return json_response(200,
                       llama_props_json({.model = service.model_id(),
                                         .path = service.options().model_file,
                                         .build = cat(worker.implementation, " ", worker.version),
                                         .chat_template = model.chat_template,
                                         .bos = model.bos_text,
                                         .eos = model.eos_text,
                                         .context = model.context_length,
                                         .slots = model.max_running,
                                         .pictures = model.max_pictures > 0,
                                         .aliases = service.options().aliases,
                                         .sampling = defaults.sampling,
                                         .max_tokens = defaults.max_tokens.value_or(-1)}));
}

Response slots(LlmService& service, const Request& request) {
  const engine::ModelInfo& model = service.engine().model();
  const int32_t running = service.engine().stats().running;
  const bool all_used = running >= model.max_running;
  if (all_used && request.query.find("fail_on_no_slot=1") != request.query.npos) {
    return json_response(503, openai_error_json(503, "OVERLOADED", "no slot available"));
  }
  return json_response(200, llama_slots_json(model.max_running, running, model.context_length));
}

constexpr auto complete_text = complete<parse_llama_completion>;

constexpr ChatRoute kRoutes[] = {
    {"POST", "/completion", complete_text, Body::json, ErrorForm::openai},
    {"POST", "/completions", complete_text, Body::json, ErrorForm::openai},
    {"POST", "/infill", complete<parse_llama_infill>, Body::json, ErrorForm::openai},
    {"GET", "/props", props, Body::none, ErrorForm::openai},
    {"GET", "/slots", slots, Body::none, ErrorForm::openai},
};

}  // namespace

std::span<const ChatRoute> llama_routes() {
  return kRoutes;
}

}  // namespace rbee::server
