#include "server/apis/ollama/response.h"

#include <chrono>
#include <cmath>

#include "server/http/clock.h"
#include "server/wire/generate_request.h"
#include "server/wire/json_body.h"
#include "server/wire/json_text.h"

namespace rbee::server {
namespace {

using Json = nlohmann::ordered_json;

// {"token","logprob","bytes"}
Json token_json(const TokenLogprob& token) {
  Json bytes = Json::array();
  for (const char byte : token.bytes) bytes.push_back(static_cast<unsigned char>(byte));
  return {{"token", token.bytes}, {"logprob", token.logprob}, {"bytes", std::move(bytes)}};
}

Json logprobs_json(const std::vector<TokenLogprobs>& tokens) {
  Json out = Json::array();
  for (const TokenLogprobs& token : tokens) {
    Json one = token_json(token.chosen);
    if (!token.top.empty()) {
      Json& top = one["top_logprobs"] = Json::array();
      for (const TokenLogprob& other : token.top) top.push_back(token_json(other));
    }
    out.push_back(std::move(one));
  }
  return out;
}

// An object of arguments, as deep as a body may be; null for what a limit cut off.
Json arguments_of(const std::string& text) {
  if (text.empty()) return Json::object();
  try {
    const JsonBody checked(text);
  } catch (const InvalidBody&) {
    return {};
  }
  return Json::parse(text, nullptr, false);
}

// Without calls that the answer's limit cut off.
Json calls_json(const OllamaPiece& piece) {
  Json out = Json::array();
  for (size_t i = 0; i < piece.calls.size(); ++i) {
    const AnswerItem& call = piece.calls[i];
    Json arguments = arguments_of(call.text);
    if (!arguments.is_object()) continue;
    out.push_back({{"id", call.call_id},
                   {"function",
                    {{"index", piece.first_call + i},
                     {"name", call.name},
                     {"arguments", std::move(arguments)}}}});
  }
  return out;
}

Json answer_json(const OllamaAnswer& answer, const OllamaPiece& piece, bool done) {
  Json out = {{"model", answer.model}, {"created_at", iso8601(std::chrono::system_clock::now())}};
  Json text;
  Json& holder = answer.chat ? text : out;
  if (answer.chat) holder["role"] = "assistant";
  holder[answer.chat ? "content" : "response"] = piece.text;
  if (!piece.thinking.empty()) holder["thinking"] = piece.thinking;
  Json calls = calls_json(piece);
  if (!calls.empty()) holder["tool_calls"] = std::move(calls);
  if (answer.chat) out["message"] = std::move(text);
  out["done"] = done;
  if (answer.logprobs && !piece.tokens.empty()) out["logprobs"] = logprobs_json(piece.tokens);
  return out;
}

const char* done_reason(const EndEvent& end) {
  return end.stop_reason == "EOS" || end.stop_reason == "STOP_SEQUENCE" ? "stop" : "length";
}

}  // namespace

int64_t nanoseconds(double ms) {
  return std::llround(ms * 1e6);
}

std::string ollama_piece_json(const OllamaAnswer& answer, const OllamaPiece& piece) {
  return dump(answer_json(answer, piece, false));
}

std::string ollama_end_json(const OllamaAnswer& answer, const OllamaPiece& piece,
                            const EndEvent& end, double duration_ms) {
  Json out = answer_json(answer, piece, true);
  out["done_reason"] = done_reason(end);
  out["total_duration"] = nanoseconds(duration_ms);
  out["load_duration"] = nanoseconds(end.queue_ms);
  out["prompt_eval_count"] = end.prompt_tokens;
  out["prompt_eval_duration"] = nanoseconds(end.prompt_ms);
  out["eval_count"] = end.tokens_out;
  out["eval_duration"] = nanoseconds(end.decode_ms);
  return dump(out);
}

std::string ollama_loaded_json(const OllamaAnswer& answer) {
  Json out = answer_json(answer, {}, true);
  out["done_reason"] = "load";
  return dump(out);
}

std::string ollama_unloaded_json(const OllamaAnswer& answer) {
  Json out = answer_json(answer, {}, true);
  out["done_reason"] = "unload";
  return dump(out);
}

std::string ollama_error_json(std::string_view message) {
  return dump({{"error", message}});
}

std::string ollama_error_line(int status, std::string_view message) {
  return dump({{"error", message}, {"status", status}});
}

}  // namespace rbee::server
