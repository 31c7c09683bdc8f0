#pragma once
// OpenAI's answers, as JSON on one line.

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "server/apis/openai/logprobs.h"
#include "server/wire/text_events.h"
#include "server/wire/worker_contract.h"

namespace rbee::server {

// What all parts of one answer have in common.
struct OpenAiAnswer {
  bool chat = false;  // of chat completions, else of completions
  std::string id;
  std::string model;
  int64_t created = 0;                          // seconds since 1970
  bool echo = false;                            // the prompt is in front of a completion
  std::optional<int32_t> logprobs = {};         // shown, with so many likeliest
  std::optional<int32_t> prompt_logprobs = {};  // the same of the prompt's tokens
  std::string fingerprint = {};                 // of what answers: program, model and device
  bool include_usage = false;      // a stream's pieces have `usage`, null but in the last
  bool continuous_usage = false;   // and in none of them
  bool include_reasoning = true;   // else it is left out, though its tokens count
  bool return_token_ids = false;   // of prompts and answers, vLLM's
  bool tokens_as_ids = false;      // log probabilities name "token_id:<id>"
  bool timings_per_token = false;  // a stream's pieces have `timings`
  std::string echoed = {};         // of a chat: the last message, which the answer goes on from
  bool older_calls = false;        // a call is `function_call` in place of `tool_calls`
  std::vector<std::string> custom_tools = {};  // names of functions that are told as custom tools

  bool is_custom(std::string_view name) const {
    return std::ranges::find(custom_tools, name) != custom_tools.end();
  }
};

// What an answer shows of its prompt.
struct OpenAiPrompt {
  std::string text;                        // where it is echoed
  std::vector<TokenLogprobs> scored = {};  // its tokens, where they are asked for
  std::vector<int32_t> ids = {};           // the same
};

struct OpenAiUsage {
  int64_t prompt_tokens = 0;
  int64_t cached_tokens = 0;      // of these, found in the cache
  int64_t completion_tokens = 0;  // of all choices
  int64_t reasoning_tokens = 0;   // of these
};

struct OpenAiChoice {
  int32_t index = 0;
  std::string text;
  std::string reasoning;
  std::vector<SentCall> calls;
  EndEvent end;
  OpenAiLogprobs logprobs;
  const OpenAiPrompt* prompt = nullptr;  // of an answer in one response; not owned
};

// Tokens of a piece of a stream: those since the last one, where they are asked for.
struct OpenAiPieceTokens : OpenAiLogprobs {
  ProgressEvent so_far = {};             // the answer's, this piece included
  std::vector<int32_t> prompt_ids = {};  // of the first piece
};

// The whole answer.
std::string openai_text_json(const OpenAiAnswer& answer, const std::vector<OpenAiChoice>& choices,
                             const OpenAiUsage& usage);
// Pieces of a stream, each of the choice `index`: the first of a chat, which says who speaks; the
// prompt, where it is echoed; text; the last one's reason; and the count of tokens.
std::string openai_role_json(const OpenAiAnswer& answer, int32_t index,
                             const OpenAiPieceTokens& tokens);
// How far the prompt's evaluation is, llama-server's.
std::string openai_progress_json(const OpenAiAnswer& answer, int32_t index,
                                 const ProgressEvent& progress);
std::string openai_echo_json(const OpenAiAnswer& answer, int32_t index, const OpenAiPrompt& prompt,
                             const OpenAiPieceTokens& tokens);
std::string openai_piece_json(const OpenAiAnswer& answer, int32_t index, std::string_view text,
                              const OpenAiPieceTokens& tokens);
// Of a chat: reasoning; the begin of a call, with id and name; a piece of its arguments.
std::string openai_reasoning_json(const OpenAiAnswer& answer, int32_t index, std::string_view text,
                                  const OpenAiPieceTokens& tokens);
struct OpenAiCallPiece {
  int32_t call = 0;           // which of the answer's
  std::string_view id, name;  // of the first piece
  std::string_view arguments;
  bool custom = false;  // of a custom tool, whose arguments come in one piece
};
std::string openai_call_json(const OpenAiAnswer& answer, int32_t index,
                             const OpenAiCallPiece& piece, const OpenAiPieceTokens& tokens);
std::string openai_finish_json(const OpenAiAnswer& answer, int32_t index, const EndEvent& end);
// end: of the choice where there is one alone, for vLLM's "metrics".
std::string openai_usage_json(const OpenAiAnswer& answer, const OpenAiUsage& usage,
                              const EndEvent* end);

struct OpenAiModel {
  std::string id;
  std::string parent, root;    // of an adapter: its model's id, and its path
  int64_t context_length = 0;  // tokens; 0: has none
  std::vector<std::string> aliases = {}, tags = {};
};
// created: seconds since 1970.
std::string openai_models_json(const std::vector<OpenAiModel>& models, int64_t created);
std::string openai_model_json(const OpenAiModel& model, int64_t created);
// status: decides the error's type. param: the field that is wrong; empty: none.
std::string openai_error_json(int status, std::string_view code, std::string_view message,
                              std::string_view param = {});
// Of a prompt that leaves no room in the context, with llama-server's figures.
std::string openai_too_long_json(int status, int64_t tokens, int64_t context);

}  // namespace rbee::server
