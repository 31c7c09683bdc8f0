#pragma once
// Answers of llama-server's own routes, as JSON on one line.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "server/apis/llama/request.h"
#include "server/apis/openai/logprobs.h"
#include "server/wire/text_events.h"
#include "server/wire/worker_contract.h"

namespace rbee::server {

// Shared by the pieces of one answer.
struct LlamaAnswer {
  std::string model;
  LlamaRequest request;
  engine::SamplingParams sampling;  // of the request, with defaults
  int32_t context = 0;              // tokens
  std::string prompt;               // its text
  uint64_t seed = 0;
  int32_t prompt_tokens = 0;
  bool new_line = false;  // the stream so far has one
  int32_t index = 0;      // among the request's prompts
};

// Progress of the prompt's evaluation.
std::string llama_progress_json(const LlamaAnswer& answer, const ProgressEvent& progress);
// A piece of a stream. tokens: of the piece, if requested; so_far: including this piece.
std::string llama_piece_json(const LlamaAnswer& answer, std::string_view text,
                             const std::vector<TokenLogprobs>& tokens, const ProgressEvent& so_far);
// The whole answer, or the last piece of a stream, which has no text.
std::string llama_end_json(const LlamaAnswer& answer, std::string_view text,
                           const std::vector<TokenLogprobs>& tokens, const EndEvent& end);

// Answers to the prompts of one request: a single one, or an array.
std::string llama_answers_json(const std::vector<std::string>& answers);

struct LlamaProps {
  std::string model, path, build;
  std::string chat_template, bos, eos;
  int32_t context = 0;  // tokens of a request
  int32_t slots = 0;    // most requests that share a step
  bool pictures = false;
  std::vector<std::string> aliases;
  engine::SamplingParams sampling;  // defaults
  int32_t max_tokens = -1;          // of an answer by default; -1: no limit
};
std::string llama_props_json(const LlamaProps& props);
// running: slots in use.
std::string llama_slots_json(int32_t slots, int32_t running, int32_t context);

}  // namespace rbee::server
