#include "server/llm/text_routes.h"

#include "server/contract/openai_response_object.h"
#include "server/contract/text_requests.h"
#include "server/llm/openai_error.h"
#include "server/worker/routes.h"

namespace rbee::server {
namespace {

std::vector<int32_t> tokens_of(const LlmService& service, const TokenizeRequest& request) {
  const engine::Engine& engine = service.engine();
  if (request.messages.empty()) {
    return engine.tokenize(
        request.text, {.add_special = request.add_special, .parse_special = request.parse_special});
  }
  const std::vector<int32_t> chat =
      engine.chat_tokens(to_engine(request.messages), service.chat_options(request.chat));
  std::vector<int32_t> out;
  if (request.add_special) out = engine.tokenize("", {.add_special = true});
  out.insert(out.end(), chat.begin(), chat.end());
  return out;
}

std::string tokenized(const LlmService& service, const TokenizeRequest& request) {
  const engine::Engine& engine = service.engine();
  std::vector<TokenPiece> tokens;
  for (const int32_t id : tokens_of(service, request)) {
    tokens.push_back({id, request.pieces ? engine.token_bytes(id) : ""});
  }
  if (request.form == TextForm::llama_server) return tokens_json(tokens, request.pieces);
  return vllm_tokens_json(tokens, engine.model().context_length, request.pieces);
}

std::string text_of(const engine::Engine& engine, const std::vector<int32_t>& ids) {
  const int32_t known = engine.model().vocab_size;
  for (const int32_t id : ids) {
    check(id < known, "tokens", "token ", id, " is outside of the ", known, " known ones");
  }
  return detokenized_json(engine.detokenize(ids));
}

Response tokenizer_info(const LlmService& service) {
  const engine::ModelInfo& model = service.engine().model();
  return json_response(200, tokenizer_info_json({.kind = model.tokenizer_kind,
                                                 .bos = model.bos_text,
                                                 .eos = model.eos_text,
                                                 .chat_template = model.chat_template,
                                                 .vocab_size = model.vocab_size,
                                                 .context = model.context_length}));
}

using Answer = std::string (*)(const LlmService&, std::string_view);

Response failed() {
  return error_answer(std::current_exception(), openai_error);
}

Response answered(const LlmService& service, std::string_view body, Answer answer) {
  try {
    return json_response(200, answer(service, body));
  } catch (const std::exception&) {
    return failed();
  }
}

Response later(LlmService& service, const Request& request, Answer answer) {
  try {
    Response response;
    response.later =
        service.beside({.client = request.sender(),
                        .work = [&service, answer,
                                 body = request.body] { return answered(service, body, answer); },
                        .error_body = openai_error});
    return response;
  } catch (const std::exception&) {
    return failed();
  }
}

}  // namespace

void add_text_routes(Router& router, LlmService& service) {
  const auto post = [&](const char* path, Answer answer) {
    router.add({.method = "POST",
                .pattern = path,
                .handler = [&service, answer](
                               const Request& request) { return later(service, request, answer); },
                .body = Body::json});
  };
  router.add({.method = "GET", .pattern = "/tokenizer_info", .handler = [&](const Request&) {
                return tokenizer_info(service);
              }});
  post("/tokenize", [](const LlmService& service, std::string_view body) {
    return tokenized(service, parse_tokenize(body));
  });
  post("/detokenize", [](const LlmService& service, std::string_view body) {
    return text_of(service.engine(), parse_detokenize(body));
  });
  post("/apply-template", [](const LlmService& service, std::string_view body) {
    const GenerateRequest request = parse_apply_template(body);
    return prompt_json(
        service.engine().render(to_engine(request.messages), service.chat_options(request.chat)));
  });
  for (const char* path : {"/v1/chat/completions/input_tokens", "/chat/completions/input_tokens"}) {
    post(path, [](const LlmService& service, std::string_view body) {
      return input_tokens_json(service.count_tokens(parse_apply_template(body)));
    });
  }
  for (const char* path : {"/v1/responses/input_tokens", "/responses/input_tokens"}) {
    post(path, [](const LlmService& service, std::string_view body) {
      return input_tokens_json(service.count_tokens(parse_response_request(body).generate));
    });
  }
}

}  // namespace rbee::server
