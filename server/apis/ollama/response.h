#pragma once
// Answers in Ollama's form, as JSON on one line.

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "server/wire/text_events.h"

namespace rbee::server {

// What all pieces of an answer share.
struct OllamaAnswer {
  std::string model;      // as the client names it
  bool chat = false;      // "message", else "response"
  bool logprobs = false;  // of each token
};

struct OllamaPiece {
  std::string text = {};
  std::string thinking = {};
  std::vector<AnswerItem> calls = {};  // whole ones
  size_t first_call = 0;               // number of the first of them in the answer
  std::vector<TokenLogprobs> tokens = {};
};

// A piece of a stream.
std::string ollama_piece_json(const OllamaAnswer& answer, const OllamaPiece& piece);
// The last piece, or a whole answer. duration_ms: since the request's arrival.
std::string ollama_end_json(const OllamaAnswer& answer, const OllamaPiece& piece,
                            const EndEvent& end, double duration_ms);
// For a request without a prompt, which loads a model there.
std::string ollama_loaded_json(const OllamaAnswer& answer);
// The same with "keep_alive": 0, which unloads it there.
std::string ollama_unloaded_json(const OllamaAnswer& answer);

std::string ollama_error_json(std::string_view message);
// An error within a stream, where the status cannot be the response's.
std::string ollama_error_line(int status, std::string_view message);

// A duration in Ollama's unit.
int64_t nanoseconds(double ms);

}  // namespace rbee::server
