#pragma once
// Bodies of /tokenize, /detokenize and /apply-template, in llama-server's and vLLM's forms. They
// show how a model sees text.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "server/wire/generate_request.h"

namespace rbee::server {

enum class TextForm : uint8_t { llama_server, vllm };

struct TokenizeRequest {
  TextForm form = TextForm::llama_server;
  std::string text;                   // used if there are no messages
  std::vector<SentMessage> messages;  // vLLM's form
  ChatFields chat;                    // for the messages
  bool add_special = false;           // add the model's special tokens at the ends
  bool parse_special = true;          // text such as "<|im_end|>" becomes its token
  bool pieces = false;                // return the text of each token
};

// llama-server's form is {"content", "add_special", "parse_special", "with_pieces"}; vLLM's is
// {"prompt" or "messages", "add_special_tokens", "return_token_strs"}. Throws InvalidBody.
TokenizeRequest parse_tokenize(std::string_view body);
// The ids of {"tokens": [...]}, each at least 0. Throws InvalidBody.
std::vector<int32_t> parse_detokenize(std::string_view body);
// {"messages", "tools", ...} as in /v1/chat/completions. Throws InvalidBody.
GenerateRequest parse_apply_template(std::string_view body);

// A token and its bytes, perhaps half a character.
struct TokenPiece {
  int32_t id;
  std::string bytes;
};

// {"tokens": [...]}: ids, or with `pieces` {"id","piece"}; bytes that are not UTF-8 become an array
// of numbers.
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
// Tokens of a prompt, in OpenAI's form.
std::string input_tokens_json(size_t tokens);

}  // namespace rbee::server
