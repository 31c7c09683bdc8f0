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

// Shared by all parts of one answer.
struct OpenAiAnswer {
  bool chat = false;  // a chat completion, else a completion
  std::string id;
  std::string model;
  int64_t created = 0;                          // seconds since 1970
  bool echo = false;                            // a completion begins with the prompt
  std::optional<int32_t> logprobs = {};         // show them, with this many likeliest
  std::optional<int32_t> prompt_logprobs = {};  // the same for the prompt's tokens
  std::string fingerprint = {};                 // of program, model and device
  bool include_usage = false;      // pieces have `usage`; it is null except in the last
  bool continuous_usage = false;   // it is null in no piece
  bool include_reasoning = true;   // else reasoning is dropped, though its tokens count
  bool return_token_ids = false;   // of prompts and answers, vLLM's
  bool tokens_as_ids = false;      // log probabilities name "token_id:<id>"
  bool timings_per_token = false;  // a stream's pieces have `timings`
  std::string echoed = {};         // of a chat: the last message, which the answer continues
  bool older_calls = false;        // send calls as `function_call` in place of `tool_calls`
  std::vector<std::string> custom_tools = {};  // functions that clients see as custom tools

  bool is_custom(std::string_view name) const {
    return std::ranges::find(custom_tools, name) != custom_tools.end();
  }
};

// The parts of a prompt that an answer shows.
struct OpenAiPrompt {
  std::string text;                        // if it is echoed
  std::vector<TokenLogprobs> scored = {};  // its tokens, if requested
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
  const OpenAiPrompt* prompt = nullptr;  // for an answer in one response; not owned
};

// Tokens since the last piece of a stream, if requested.
struct OpenAiPieceTokens : OpenAiLogprobs {
  ProgressEvent so_far = {};             // of the answer, including this piece
  std::vector<int32_t> prompt_ids = {};  // in the first piece
};

// The whole answer.
std::string openai_text_json(const OpenAiAnswer& answer, const std::vector<OpenAiChoice>& choices,
                             const OpenAiUsage& usage);
// Pieces of a stream, each for the choice `index`: a chat's first piece, with the role; the prompt,
// if it is echoed; text; the last piece, with the reason; and the token counts.
std::string openai_role_json(const OpenAiAnswer& answer, int32_t index,
                             const OpenAiPieceTokens& tokens);
// Progress of the prompt's evaluation, llama-server's.
std::string openai_progress_json(const OpenAiAnswer& answer, int32_t index,
                                 const ProgressEvent& progress);
std::string openai_echo_json(const OpenAiAnswer& answer, int32_t index, const OpenAiPrompt& prompt,
                             const OpenAiPieceTokens& tokens);
std::string openai_piece_json(const OpenAiAnswer& answer, int32_t index, std::string_view text,
                              const OpenAiPieceTokens& tokens);
// In a chat: reasoning; the start of a call, with id and name; a piece of its arguments.
std::string openai_reasoning_json(const OpenAiAnswer& answer, int32_t index, std::string_view text,
                                  const OpenAiPieceTokens& tokens);
struct OpenAiCallPiece {
  int32_t call = 0;           // its number in the answer
  std::string_view id, name;  // in the first piece
  std::string_view arguments;
  bool custom = false;  // of a custom tool, whose arguments come in one piece
};
std::string openai_call_json(const OpenAiAnswer& answer, int32_t index,
                             const OpenAiCallPiece& piece, const OpenAiPieceTokens& tokens);
std::string openai_finish_json(const OpenAiAnswer& answer, int32_t index, const EndEvent& end);
// end: of the choice if there is only one, for vLLM's "metrics".
std::string openai_usage_json(const OpenAiAnswer& answer, const OpenAiUsage& usage,
                              const EndEvent* end);

struct OpenAiModel {
  std::string id;
  std::string parent, root;    // of an adapter: its model's id, and its path
  int64_t context_length = 0;  // tokens; 0: not shown
  std::vector<std::string> aliases = {}, tags = {};
};
// created: seconds since 1970.
std::string openai_models_json(const std::vector<OpenAiModel>& models, int64_t created);
std::string openai_model_json(const OpenAiModel& model, int64_t created);
// status decides the error's type. param: the invalid field; empty: none.
std::string openai_error_json(int status, std::string_view code, std::string_view message,
                              std::string_view param = {});
// For a prompt that leaves no room in the context, with llama-server's figures.
std::string openai_too_long_json(int status, int64_t tokens, int64_t context);

}  // namespace rbee::server
