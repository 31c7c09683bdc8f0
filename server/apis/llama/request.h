#pragma once
// Bodies of llama-server's own routes: POST /completion and POST /infill.

#include <string>
#include <string_view>
#include <vector>

#include "server/apis/openai/request.h"

namespace rbee::server {

// A file beside the one that is edited.
struct LlamaFile {
  std::string name;
  std::string text;
};

// One text, or texts and tokens in a row.
using LlamaPrompt = std::vector<SentPrompt>;

struct LlamaRequest {
  // llama-server's defaults are filled in; `stream` says whether to stream. Without prompt.
  GenerateRequest generate;
  std::vector<LlamaPrompt> prompts;  // of a completion, 1 to 128: each is answered
  bool infill = false;
  std::string before, after;        // of an infill: the text around the place
  std::vector<LlamaFile> files;     // of an infill, the farthest first
  int32_t probabilities = 0;        // `n_probs`: likeliest tokens shown beside each
  bool drawn = false;               // `post_sampling_probs`: as they were drawn, else the model's
  bool timings_per_token = false;   // "timings" in all pieces of a stream
  std::vector<std::string> fields;  // of the answer, "a/b" within "a"; empty: all
};

// Fields that a single stream of a shared engine has no use for (cache_prompt, id_slot, n_keep,
// limits of time, ...) are ignored, and the sampler "infill" is left out. Throws InvalidBody.
LlamaRequest parse_llama_completion(std::string_view body);
LlamaRequest parse_llama_infill(std::string_view body);

}  // namespace rbee::server
