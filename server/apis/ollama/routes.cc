#include "server/apis/ollama/routes.h"

#include <algorithm>
#include <array>
#include <utility>

#include "rbee/core/cat.h"
#include "rbee/core/error.h"
#include "server/apis/llama/infill.h"
#include "server/apis/ollama/models.h"
#include "server/apis/ollama/refusals.h"
#include "server/apis/ollama/reply.h"
#include "server/apis/ollama/request.h"
#include "server/apis/ollama/truncate.h"
#include "server/apis/text_answers.h"
#include "server/llm/answer.h"
#include "server/wire/json_text.h"

namespace rbee::server {
namespace {

using nlohmann::json;

// The names that a request's model is looked up in, without what only a list shows.
OllamaModel names_of(const LlmService& service) {
  OllamaModel out = ollama_model(service, service.engine().model());
  for (const engine::LoraInfo& adapter : service.engine().loras()) {
    out.adapters.push_back(adapter.name);
  }
  return out;
}

// Whether the model's chat template puts the text after a gap somewhere, as some of Ollama's do.
bool template_fills_gaps(const engine::TextEngine& engine) {
  if (engine.model().chat_template.empty()) return false;
  constexpr std::string_view kAfter = "after-the-gap";
  engine::ChatOptions options;
  options.template_variables = dump({{"suffix", kAfter}});
  try {
    const std::string text = engine.render({{.role = "user", .content = "before"}}, options);
    return text.find(kAfter) != std::string::npos;
  } catch (const Error&) {
    return false;  // it needs more than one message
  }
}

OllamaModel model_of(const LlmService& service) {
  OllamaModel out = names_of(service);
  out.capabilities = {"completion"};
  if (out.info.max_pictures > 0) out.capabilities.push_back("vision");
  if (out.info.calls_tools) out.capabilities.push_back("tools");
  if (template_fills_gaps(service.engine()) || can_fill_in(service.engine()))
    out.capabilities.push_back("insert");
  if (out.info.reasons) out.capabilities.push_back("thinking");
  return out;
}

Response refuse(std::string_view message) {
  Response out = json_response(400, ollama_error_json(message));
  out.reason.code = "INVALID_REQUEST";
  return out;
}

// Where there is no template, a prompt is the whole text.
void use_plain_prompt(const LlmService& service, OllamaRequest& body) {
  GenerateRequest& request = body.generate;
  const bool plain = !body.chat && request.messages.size() == 1 &&
                     request.messages.front().pictures.empty() &&
                     service.engine().model().chat_template.empty();
  if (!plain) return;
  request.messages.clear();
  request.prompt = body.prompt;
}

// A template that has a place for the text after the gap makes the prompt, else the model's tokens.
void use_template_of_gaps(const LlmService& service, OllamaRequest& body) {
  if (body.suffix.empty() || body.prompt.empty()) return;
  if (!template_fills_gaps(service.engine())) return;
  GenerateRequest& request = body.generate;
  request.messages = {{.role = "user", .content = body.prompt}};
  request.prompt.clear();
  json variables = request.chat.template_variables.empty()
                       ? json::object()
                       : json::parse(request.chat.template_variables);
  variables["suffix"] = body.suffix;
  request.chat.template_variables = dump(variables);
  request.chat.split = false;  // the answer is a part of a text
}

Response answer(LlmService& service, const OllamaRequest& body) {
  const OllamaAnswer about{
      .model = body.model, .chat = body.chat, .logprobs = body.generate.logprobs.has_value()};
  const auto answered = [&](const GenerateRequest& request) {
    return one_answer<OllamaStream, OllamaText>(service, request,
                                                [&](const std::string&) { return about; });
  };
  if (body.suffix.empty() || !body.generate.messages.empty()) return answered(body.generate);
  if (!can_fill_in(service.engine())) {
    return refuse(cat("\"", body.model, "\" does not support insert"));
  }
  GenerateRequest filled = body.generate;
  filled.prompt.clear();
  filled.prompt_ids = infill_prompt(service.engine(), {.generate = body.generate,
                                                       .prompts = {},
                                                       .infill = true,
                                                       .before = body.prompt,
                                                       .after = body.suffix});
  return answered(filled);
}

template <OllamaRequest (*kParse)(std::string_view)>
Response complete(LlmService& service, const Request& request) {
  return guarded(ollama_error, [&] {
    OllamaRequest body = kParse(request.body);
    const std::optional<std::string> found = names_of(service).find_for(request, body.model);
    if (!found) return no_ollama_model(body.model);
    if (body.only_loads()) {
      return json_response(200, ollama_loaded_json({.model = body.model, .chat = body.chat}));
    }
    if (body.thinks && !service.engine().model().reasons) {
      return refuse(cat("\"", body.model, "\" does not support thinking"));
    }
    body.generate.model = *found;
    use_plain_prompt(service, body);
    use_template_of_gaps(service, body);
    fill_in(service, request, Defaults::own, body.generate);
    set_ollama_defaults(body.generate, service.engine().model().sampling);
    auto work = LlmService::preparation(body.generate);
    if (!body.suffix.empty() && work == LlmService::Preparation::little) {
      work = LlmService::Preparation::text;
    }
    return prepared(service, request, work, ollama_error,
                    [&service, body = std::move(body)]() mutable {
                      make_fit(service, body);
                      return answer(service, body);
                    });
  });
}

Response refuse_embedding(LlmService& service, const Request&) {
  return refuse(cat("\"", service.model_id(), "\" does not support embeddings: they need a model ",
                    "for them, or --pooling"));
}

constexpr ChatRoute kTextRoutes[] = {
    {"POST", "/api/generate", complete<parse_ollama_generate>, Body::any, ErrorForm::ollama,
     Operation::ollama_generate},
    {"POST", "/api/chat", complete<parse_ollama_chat>, Body::any, ErrorForm::ollama,
     Operation::ollama_chat},
};

constexpr auto kModelRoutes = ollama_model_routes<LlmService, model_of>();
constexpr auto kRefusals = ollama_refusal_routes<LlmService>();
constexpr auto kRoutes = [] {
  std::array<ChatRoute, std::size(kTextRoutes) + kModelRoutes.size() + kRefusals.size()> out{};
  auto end = std::ranges::copy(kTextRoutes, out.begin()).out;
  end = std::ranges::copy(kModelRoutes, end).out;
  std::ranges::copy(kRefusals, end);
  return out;
}();

constexpr ChatRoute kEmbeddingRefusals[] = {
    {"POST", "/api/embed", refuse_embedding, Body::any, ErrorForm::ollama},
    {"POST", "/api/embeddings", refuse_embedding, Body::any, ErrorForm::ollama},
};

}  // namespace

std::span<const ChatRoute> ollama_routes() {
  return kRoutes;
}

std::span<const ChatRoute> ollama_embedding_refusals() {
  return kEmbeddingRefusals;
}

}  // namespace rbee::server
