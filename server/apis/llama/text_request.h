#pragma once
// Bodies of the routes that show what a model makes of text: /tokenize, /detokenize and
// /apply-template, in llama-server's forms and in vLLM's.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "server/wire/generate_request.h"

namespace rbee::server {

enum class TextForm : uint8_t { llama_server, vllm };

struct TokenizeRequest {
  TextForm form = TextForm::llama_server;
  std::string text;                   // used when there are no messages
  std::vector<SentMessage> messages;  // vLLM's form
  ChatFields chat;                    // of the messages
  bool add_special = false;           // tokens at the ends, as the model wants them
  bool parse_special = true;          // text such as "<|im_end|>" is its token
  bool pieces = false;                // say the text of each token
};

// {"content", "add_special", "parse_special", "with_pieces"} is llama-server's form; {"prompt" or
// "messages", "add_special_tokens", "return_token_strs"} is vLLM's. Throws InvalidBody.
TokenizeRequest parse_tokenize(std::string_view body);
// The ids of {"tokens": [...]}, each from 0. Throws InvalidBody.
std::vector<int32_t> parse_detokenize(std::string_view body);
// {"messages", "tools", ...} as /v1/chat/completions takes them. Throws InvalidBody.
GenerateRequest parse_apply_template(std::string_view body);

// A token and its bytes, which may be half a character.
struct TokenPiece {
  int32_t id;
  std::string bytes;
};

// {"tokens": [...]}: ids, or with `pieces` {"id","piece"}, where bytes that are no UTF-8 are an
// array of numbers.
std::string tokens_json(const std::vector<TokenPiece>& tokens, bool pieces);
// {"count","max_model_len","tokens","token_strs"}
std::string vllm_tokens_json(const std::vector<TokenPiece>& tokens, int32_t context, bool pieces);
// {"content","prompt"}: llama-server's name and vLLM's.
std::string detokenized_json(std::string_view text);
// {"prompt"}
std::string prompt_json(std::string_view prompt);
// vLLM's answer of GET /tokenizer_info.
struct TokenizerFacts {
  std::string kind;  // e.g. "gguf-bpe"
  std::string bos, eos, chat_template;
  int64_t vocab_size = 0;
  int32_t context = 0;
};
std::string tokenizer_info_json(const TokenizerFacts& facts);
// Of a prompt, as OpenAI counts them.
std::string input_tokens_json(size_t tokens);

}  // namespace rbee::server
