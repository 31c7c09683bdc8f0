#pragma once
// The command line of a chat worker: the flags of hives and of people.

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "rbee/engine/api/text.h"
#include "workers/common/gpu_layers_flag.h"
#include "workers/common/group_flags.h"
#include "workers/common/speculative_flags.h"
#include "workers/common/worker.h"
#include "workers/llm/kv_publisher.h"

namespace rbee::workers {

struct Flags : CommonFlags {              // worker_id: default "llm-worker-<port>"
  std::string model;                      // file or folder
  std::string mmproj;                     // the vision tower of a GGUF model
  std::string pan_and_scan = "auto";      // on or off: show pictures in parts too
  int32_t max_pictures = 16;              // of one request
  int64_t grammar_cache_mib = 256;        // cache for compiled grammars and their masks
  int64_t picture_cache_mib = 256;        // cache for pictures of past requests
  int64_t response_store_mib = 64;        // stored responses; 0 = none are stored
  int64_t response_store_count = 10'000;  // at most so many of them
  int64_t response_store_hours = 720;     // after which one is forgotten
  int64_t context = 0;                    // tokens; 0 = the model's own, at most 4096
  std::string dtype = "auto";             // what layers compute in: f32, f16 or bf16
  std::string cache_type = "auto";        // of keys and values: see --cache-type
  GpuLayerFlags gpu_layers;               // what of the model a GPU gets
  GroupFlags group;                       // ranks that hold the model together
  std::string pooling = "auto";           // mean, cls, last or rank: for embeddings, see --pooling
  int64_t cache_tokens = 0;               // capacity of the cache; 0 = see engine::LlmOptions
  double host_cache_gib = 0;              // host memory for blocks that the cache gives up
  KvEventsConfig kv_events;               // who hears of the cache's texts
  int32_t max_running = 32;               // requests that share a step
  int32_t max_waiting = 256;              // requests queued beyond those
  std::string scheduling = "fair";        // or priority: allows priorities below 0
  SpeculativeFlags speculative;           // draft tokens
  std::string tool_parser = "auto";       // how the model writes calls
  std::string reasoning_parser = "auto";  // and reasoning
  std::string chat_template;              // replaces the checkpoint's; empty = keep that
  std::string generation = "auto";        // or off, vllm: ignore the checkpoint's sampling
  int32_t reasoning_budget = -1;          // tokens, for chats that give none; -1 = no limit
  std::optional<float> temperature;       // for requests that give none
  std::optional<uint64_t> seed;           // the same
  int32_t max_answer = -1;                // tokens, for requests without a limit; -1 = none
  std::vector<std::string> aliases;       // more names of the model, in lists of models
  std::vector<std::string> tags;          // of the model, in such lists
  std::vector<engine::LoraInfo> loras;    // adapters that requests can name
  bool apply_loras = false;               // requests that name none use all of them
  bool lora_loading = false;              // clients may load more
  int64_t step_tokens = 0;                // most tokens of a step; 0 = see engine::LlmOptions
};

// Reads the command line; prints help, version or errors. An int is the exit status: 0 after help
// and version, 2 for wrong usage.
std::variant<Flags, int> parse_flags(int argc, const char* const* argv, const Program& program);

}  // namespace rbee::workers
