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

// What the pieces of one answer have in common.
struct LlamaAnswer {
  std::string model;
  LlamaRequest request;
  engine::SamplingParams sampling;  // of the request, defaults filled in
  int32_t context = 0;              // tokens
  std::string prompt;               // its text
  uint64_t seed = 0;
  int32_t prompt_tokens = 0;
  bool new_line = false;  // in the pieces of a stream so far
  int32_t index = 0;      // of the request's prompts
};

// How far the prompt's evaluation is.
std::string llama_progress_json(const LlamaAnswer& answer, const ProgressEvent& progress);
// A piece of a stream. tokens: of the piece, where the request wants them; so_far: with it.
std::string llama_piece_json(const LlamaAnswer& answer, std::string_view text,
                             const std::vector<TokenLogprobs>& tokens, const ProgressEvent& so_far);
// The whole answer, or the last piece of a stream, which has no text.
std::string llama_end_json(const LlamaAnswer& answer, std::string_view text,
                           const std::vector<TokenLogprobs>& tokens, const EndEvent& end);

// Answers to the prompts of one request: the only one, or an array of them.
std::string llama_answers_json(const std::vector<std::string>& answers);

struct LlamaProps {
  std::string model, path, build;
  std::string chat_template, bos, eos;
  int32_t context = 0;  // tokens of a request
  int32_t slots = 0;    // requests that share a step at most
  bool pictures = false;
  std::vector<std::string> aliases;
  engine::SamplingParams sampling;  // of requests that say nothing
  int32_t max_tokens = -1;          // of their answers; -1: no limit
};
std::string llama_props_json(const LlamaProps& props);
// running: slots that are in use.
std::string llama_slots_json(int32_t slots, int32_t running, int32_t context);

}  // namespace rbee::server
