#include "server/llm/text_routes.h"

#include "server/contract/text_requests.h"
#include "server/llm/openai_error.h"
#include "server/worker/routes.h"

namespace rbee::server {
namespace {

std::vector<int32_t> tokens_of(const engine::Engine& engine, const TokenizeRequest& request) {
  if (request.messages.empty()) {
    return engine.tokenize(
        request.text, {.add_special = request.add_special, .parse_special = request.parse_special});
  }
  const std::vector<int32_t> chat =
      engine.chat_tokens(to_engine(request.messages), to_engine(request.chat));
  std::vector<int32_t> out;
  if (request.add_special) out = engine.tokenize("", {.add_special = true});
  out.insert(out.end(), chat.begin(), chat.end());
  return out;
}

std::string tokenized(const engine::Engine& engine, const TokenizeRequest& request) {
  std::vector<TokenPiece> tokens;
  for (const int32_t id : tokens_of(engine, request)) {
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

using Answer = std::string (*)(const engine::Engine&, std::string_view);

Response failed() {
  return error_answer(std::current_exception(), openai_error);
}

Response answered(const engine::Engine& engine, std::string_view body, Answer answer) {
  try {
    return json_response(200, answer(engine, body));
  } catch (const std::exception&) {
    return failed();
  }
}

Response later(LlmService& service, const Request& request, Answer answer) {
  try {
    Response response;
    response.later = service.beside([answer, body = request.body](const engine::Engine& engine) {
      return answered(engine, body, answer);
    });
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
  post("/tokenize", [](const engine::Engine& engine, std::string_view body) {
    return tokenized(engine, parse_tokenize(body));
  });
  post("/detokenize", [](const engine::Engine& engine, std::string_view body) {
    return text_of(engine, parse_detokenize(body));
  });
  post("/apply-template", [](const engine::Engine& engine, std::string_view body) {
    const GenerateRequest request = parse_apply_template(body);
    return prompt_json(engine.render(to_engine(request.messages), to_engine(request.chat)));
  });
}

}  // namespace rbee::server
