#pragma once
// The command line of a chat worker: the union of what hives and people pass.

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "rbee/engine/api/text.h"
#include "workers/common/speculative_flags.h"
#include "workers/common/worker.h"

namespace rbee::workers {

struct Flags : CommonFlags {              // worker_id: "llm-worker-<port>" when not given
  std::string model;                      // file or folder
  std::string mmproj;                     // file of the tower of a GGUF model that sees
  std::string pan_and_scan = "auto";      // on or off: pictures are shown in parts too
  int32_t max_pictures = 16;              // of a request
  int64_t grammar_cache_mib = 256;        // of grammars that answers followed, and their masks
  int64_t picture_cache_mib = 256;        // of pictures that nobody asks about any more
  int64_t context = 0;                    // tokens; 0 = the model's own, at most 4096
  std::string dtype = "auto";             // what layers compute in: f32, f16 or bf16
  std::string cache_type = "auto";        // of keys and values: see --cache-type
  std::string pooling = "auto";           // mean, cls, last or rank: for embeddings, see --pooling
  int64_t cache_tokens = 0;               // that the cache holds; 0 = see engine::LlmOptions
  int32_t max_running = 32;               // requests that share a step
  int32_t max_waiting = 256;              // requests queued beyond those
  std::string scheduling = "fair";        // or priority: requests may have one below 0
  SpeculativeFlags speculative;           // how tokens are drafted ahead
  std::string tool_parser = "auto";       // how the model writes calls
  std::string reasoning_parser = "auto";  // and reasoning
  std::string chat_template;              // file in the place of the checkpoint's; empty = that
  std::string generation = "auto";        // or off, vllm: the checkpoint has no sampling of its own
  int32_t reasoning_budget = -1;          // tokens, of chats that name none; -1 = no limit
  std::optional<float> temperature;       // of requests that name none
  std::optional<uint64_t> seed;           // the same
  int32_t max_answer = -1;                // tokens, of requests without a limit; -1 = none
  std::vector<std::string> aliases;       // more names of the model, in lists of models
  std::vector<std::string> tags;          // what is said of it there
  std::vector<engine::LoraInfo> loras;    // adapters that requests can take
  bool lora_loading = false;              // and clients may load more
  int64_t step_tokens = 0;                // of a step at most; 0 = see engine::LlmOptions
};

// Reads the command line; prints help, version or what is wrong. An int is the exit status to end
// with: 0 after help and version, 2 for wrong usage.
std::variant<Flags, int> parse_flags(int argc, const char* const* argv, const Program& program);

}  // namespace rbee::workers
