#pragma once
// Bodies of llama-server's own routes: POST /completion and POST /infill.

#include <string>
#include <string_view>
#include <vector>

#include "server/apis/openai/request.h"

namespace rbee::server {

// Another file beside the edited one.
struct LlamaFile {
  std::string name;
  std::string text;
};

// One text, or texts and tokens in sequence.
using LlamaPrompt = std::vector<SentPrompt>;

struct LlamaRequest {
  // With llama-server's defaults; `stream` says whether to stream. Has no prompt.
  GenerateRequest generate;
  std::vector<LlamaPrompt> prompts;  // of a completion, 1 to 128: each gets an answer
  bool infill = false;
  std::string before, after;        // of an infill: the text before and after the gap
  std::vector<LlamaFile> files;     // of an infill, the farthest first
  int32_t probabilities = 0;        // `n_probs`: likeliest tokens to show for each
  bool drawn = false;               // `post_sampling_probs`: after sampling, else the model's
  bool timings_per_token = false;   // "timings" in all pieces of a stream
  std::vector<std::string> fields;  // fields of the answer, "a/b" within "a"; empty: all
};

// The values of /completion and /infill that differ from the engine's defaults.
void set_llama_defaults(GenerateRequest& request);

// Ignores fields that a shared engine has no use for (cache_prompt, id_slot, n_keep, time limits,
// ...), and drops the sampler "infill". Throws InvalidBody.
LlamaRequest parse_llama_completion(std::string_view body);
LlamaRequest parse_llama_infill(std::string_view body);

}  // namespace rbee::server
