#pragma once
// The command line of a chat worker: the union of what hives and people pass.

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace rbee::workers {

struct Flags {
  std::string worker_id;             // "llm-worker-<port>" when not given
  std::string model;                 // file or folder
  std::string model_ref;             // reported name; empty = the model's own
  uint16_t port = 8080;              // 0 = any free one
  std::string host;                  // empty = by default_host()
  std::string hive_url;              // where heartbeats go; empty = nowhere
  int device = 0;                    // ordinal among the devices of the worker's kind
  int64_t context = 0;               // tokens; 0 = the model's own, at most 4096
  std::string dtype = "auto";        // what layers compute in: f32, f16 or bf16
  std::string cache_type = "auto";   // of keys and values: see --cache-type
  int threads = 0;                   // 0 = one for each core
  std::vector<std::string> ignored;  // what was not understood
};

// Reads the command line; prints help, version or what is wrong. An int is the exit status to end
// with: 0 after help and version, 2 for wrong usage.
std::variant<Flags, int> parse_flags(int argc, const char* const* argv, const char* program);

// Everybody's address when a token guards the worker, else only this machine's.
std::string default_host(bool has_token);

}  // namespace rbee::workers
