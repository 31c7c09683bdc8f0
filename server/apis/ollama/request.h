#pragma once
// Bodies of Ollama's API: POST /api/generate, /api/chat, /api/show, /api/embed and /api/embeddings.

#include <cstdint>
#include <string>
#include <string_view>

#include "server/apis/embeddings/request.h"
#include "server/wire/generate_request.h"

namespace rbee::server {

struct OllamaRequest {
  // `stream` is set. The chat, or the prompt if `raw`; neither if the request only loads the model.
  GenerateRequest generate;
  std::string model;     // as sent
  bool chat = false;     // /api/chat, else /api/generate
  bool thinks = false;   // asks for reasoning
  bool raw = false;      // of /api/generate: the prompt is the whole text
  std::string prompt;    // of /api/generate; empty: only load the model
  std::string suffix;    // of /api/generate: fill the gap between prompt and suffix
  bool truncate = true;  // drop what makes the prompt too long: the oldest messages
  bool shift = true;     // with truncate: if that is not enough, its first tokens

  bool only_loads() const { return chat ? generate.messages.empty() : prompt.empty(); }
};

// Throw InvalidBody.
OllamaRequest parse_ollama_generate(std::string_view body);
OllamaRequest parse_ollama_chat(std::string_view body);
// What Ollama takes for fields that neither the request nor the model's own settings give.
void set_ollama_defaults(GenerateRequest& request, const engine::SamplingDefaults& model);

// "model", or "name" in older bodies; empty: absent.
std::string parse_ollama_show(std::string_view body);

struct OllamaEmbedBody {
  std::string model;  // as sent
  EmbeddingBody generic;
};
// "input": a text, or a list of texts; none: an empty answer.
OllamaEmbedBody parse_ollama_embed(std::string_view body);
// The older /api/embeddings with one "prompt", whose vector keeps its length.
OllamaEmbedBody parse_ollama_embeddings(std::string_view body);

}  // namespace rbee::server
