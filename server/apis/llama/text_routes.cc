#include "server/apis/llama/text_routes.h"

#include "server/apis/llama/text_request.h"
#include "server/apis/openai/error.h"
#include "server/apis/text_answers.h"

namespace rbee::server {
namespace {

std::vector<int32_t> tokens_of(const LlmService& service, const TokenizeRequest& request) {
  const engine::TextEngine& engine = service.engine();
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
  const engine::TextEngine& engine = service.engine();
  std::vector<TokenPiece> tokens;
  for (const int32_t id : tokens_of(service, request)) {
    tokens.push_back({id, request.pieces ? engine.token_bytes(id) : ""});
  }
  if (request.form == TextForm::llama_server) return tokens_json(tokens, request.pieces);
  return vllm_tokens_json(tokens, engine.model().context_length, request.pieces);
}

std::string text_of(const engine::TextEngine& engine, const std::vector<int32_t>& ids) {
  const int32_t known = engine.model().vocab_size;
  for (const int32_t id : ids) {
    check(id < known, "tokens", "token ", id, " is outside of the ", known, " known ones");
  }
  return detokenized_json(engine.detokenize(ids));
}

Response tokenizer_info(LlmService& service, const Request&) {
  const engine::ModelInfo& model = service.engine().model();
  return json_response(200, tokenizer_info_json({.kind = model.tokenizer_kind,
                                                 .bos = model.bos_text,
                                                 .eos = model.eos_text,
                                                 .chat_template = model.chat_template,
                                                 .vocab_size = model.vocab_size,
                                                 .context = model.context_length}));
}

using Answer = std::string (*)(const LlmService&, std::string_view body);

template <Answer kAnswer>
Response later(LlmService& service, const Request& request) {
  return guarded(openai_error, [&] {
    return beside(service, request, openai_error, [&service, body = request.body] {
      return json_response(200, kAnswer(service, body));
    });
  });
}

std::string tokenize(const LlmService& service, std::string_view body) {
  return tokenized(service, parse_tokenize(body));
}

std::string detokenize(const LlmService& service, std::string_view body) {
  return text_of(service.engine(), parse_detokenize(body));
}

std::string apply_template(const LlmService& service, std::string_view body) {
  const GenerateRequest request = parse_apply_template(body);
  return prompt_json(
      service.engine().render(to_engine(request.messages), service.chat_options(request.chat)));
}

std::string count(const LlmService& service, std::string_view body) {
  return input_tokens_json(service.count_tokens(parse_apply_template(body)));
}

constexpr auto count_chat = later<count>;

constexpr ChatRoute kRoutes[] = {
    {"GET", "/tokenizer_info", tokenizer_info, Body::none, ErrorForm::openai},
    {"POST", "/tokenize", later<tokenize>, Body::json, ErrorForm::openai},
    {"POST", "/detokenize", later<detokenize>, Body::json, ErrorForm::openai},
    {"POST", "/apply-template", later<apply_template>, Body::json, ErrorForm::openai},
    {"POST", "/v1/chat/completions/input_tokens", count_chat, Body::json, ErrorForm::openai},
    {"POST", "/chat/completions/input_tokens", count_chat, Body::json, ErrorForm::openai},
};

}  // namespace

std::span<const ChatRoute> text_routes() {
  return kRoutes;
}

}  // namespace rbee::server
