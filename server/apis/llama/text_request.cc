#include "server/apis/llama/text_request.h"

#include "rbee/core/cat.h"
#include "server/apis/openai/request.h"
#include "server/wire/generate_fields.h"
#include "server/wire/json_object.h"
#include "server/wire/json_text.h"

namespace rbee::server {
namespace {

using nlohmann::json;
using Json = nlohmann::ordered_json;

Json piece_json(const std::string& bytes) {
  if (is_utf8(bytes)) return bytes;
  Json out = Json::array();
  for (const char byte : bytes) out.push_back(static_cast<unsigned char>(byte));
  return out;
}

Json ids_json(const std::vector<TokenPiece>& tokens) {
  Json ids = Json::array();
  for (const TokenPiece& token : tokens) ids.push_back(token.id);
  return ids;
}

}  // namespace

TokenizeRequest parse_tokenize(std::string_view text) {
  const JsonBody body(text);
  std::vector<FieldError> errors;
  ObjectReader reader(body, errors);
  TokenizeRequest out;
  const bool content = reader.find("content") != nullptr;
  const bool chat = !content && reader.find("messages") != nullptr;
  const char* form = content ? "content" : chat ? "messages" : "prompt";
  for (const char* other : {"messages", "prompt"}) {
    if (other == std::string_view(form) || reader.find(other) == nullptr) continue;
    reader.note(other, cat("exclusive(", form, ")"), cat("cannot be given together with ", form),
                reader.find(other));
  }
  if (!content) out.form = TextForm::vllm;
  if (chat) {
    GenerateRequest request = parse_apply_template(text);
    out.messages = std::move(request.messages);
    out.chat = std::move(request.chat);
  } else if (reader.find(form) == nullptr) {
    reader.note("content", "required", "is missing (or give prompt or messages)", nullptr);
  } else {
    out.text = reader.text(form).value_or("");
  }
  // Each form has its names for these; those of the other have no effect.
  const auto add_special = reader.boolean("add_special");
  const auto add_tokens = reader.boolean("add_special_tokens");
  const auto pieces = reader.boolean("with_pieces");
  const auto strings = reader.boolean("return_token_strs");
  out.parse_special = reader.boolean("parse_special").value_or(true) || !content;
  out.add_special = content ? add_special.value_or(false) : add_tokens.value_or(!chat);
  out.pieces = (content ? pieces : strings).value_or(false);
  if (!errors.empty()) throw InvalidBody(std::move(errors));
  return out;
}

std::vector<int32_t> parse_detokenize(std::string_view text) {
  const JsonBody body(text);
  std::vector<FieldError> errors;
  ObjectReader reader(body, errors);
  std::vector<int32_t> ids;
  const json* list = reader.find("tokens");
  if (list == nullptr || !list->is_array()) {
    reader.note("tokens", list == nullptr ? "required" : "type(array)",
                "must be an array of token ids", list);
  }
  if (errors.empty()) ids = read_ids(*list, "tokens", reader);
  if (!errors.empty()) throw InvalidBody(std::move(errors));
  return ids;
}

GenerateRequest parse_apply_template(std::string_view body) {
  return parse_openai_chat(body).generate;
}

std::string tokens_json(const std::vector<TokenPiece>& tokens, bool pieces) {
  Json out;
  out["tokens"] = pieces ? Json::array() : ids_json(tokens);
  if (pieces) {
    for (const TokenPiece& token : tokens) {
      out["tokens"].push_back({{"id", token.id}, {"piece", piece_json(token.bytes)}});
    }
  }
  return dump(out);
}

std::string vllm_tokens_json(const std::vector<TokenPiece>& tokens, int32_t context, bool pieces) {
  Json out = {{"count", tokens.size()}, {"max_model_len", context}, {"tokens", ids_json(tokens)}};
  out["token_strs"] = pieces ? Json::array() : Json(nullptr);
  for (size_t i = 0; pieces && i < tokens.size(); ++i) {
    out["token_strs"].push_back(tokens[i].bytes);
  }
  return dump(out);
}

std::string detokenized_json(std::string_view text) {
  return dump({{"content", text}, {"prompt", text}});
}

std::string tokenizer_info_json(const TokenizerFacts& facts) {
  const auto text = [](const std::string& value) {
    return value.empty() ? Json(nullptr) : Json(value);
  };
  return dump({{"tokenizer_class", facts.kind},
               {"vocab_size", facts.vocab_size},
               {"model_max_length", facts.context},
               {"bos_token", text(facts.bos)},
               {"eos_token", text(facts.eos)},
               {"chat_template", text(facts.chat_template)}});
}

std::string input_tokens_json(size_t tokens) {
  return dump({{"object", "response.input_tokens"}, {"input_tokens", tokens}});
}

std::string prompt_json(std::string_view prompt) {
  Json out;
  out["prompt"] = prompt;
  return dump(out);
}

}  // namespace rbee::server
