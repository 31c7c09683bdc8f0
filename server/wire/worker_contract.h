#pragma once
// What workers of every kind report about themselves and their jobs, as JSON on one line. U+FFFD
// replaces bytes that are not UTF-8.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/wire/error_map.h"
#include "server/wire/generate_request.h"

namespace rbee::server {

// worker-contract's WorkerInfo.
struct WorkerInfo {
  std::string id;
  std::string model_id;
  std::string device;  // e.g. "cpu:0"
  uint16_t port = 0;
  std::string status = "ready";  // starting, ready, busy, stopping or stopped
  std::string implementation;    // e.g. "llm-worker-rbee-cpu"
  std::string version;
  int32_t group_ranks = 1;               // processes that hold the model together; told above 1
  std::vector<int64_t> rank_bytes = {};  // of each, weights and cache
  int64_t host_cache_bytes = 0;          // of host memory behind the KV cache; told above 0
};

// Bytes: `used` by the model (weights and, for chats, the KV cache); and for a device with its own
// memory the total and the free part, whatever program uses it; 0 for a CPU, or if unknown.
struct MemoryFigures {
  int64_t used = 0;
  int64_t device = 0;
  int64_t device_free = 0;
};

// How far a worker is that does not serve yet.
enum class LoadPhase : uint8_t {
  fetching,  // files of a model come from the hub
  loading,   // weights are read
};
struct LoadProgress {
  LoadPhase phase = LoadPhase::loading;
  int64_t done = 0;                                                // bytes
  int64_t total = 0;                                               // bytes
  std::optional<double> bytes_per_second = {}, seconds_left = {};  // nothing: unknown
};

struct Health {
  bool healthy = true;
  std::string model;
  std::string architecture;
  std::string quantization;
  std::string tokenizer_kind;
  int64_t vocab_size = 0;
  int32_t context_length = 0;
  int64_t parameters = 0;
  int32_t max_pictures = 0;  // of a request; 0 = the model reads only text
  int64_t memory_bytes = 0;  // weights and KV cache
  double uptime_seconds = 0;
  std::string capture_refusal = {};  // why steps are not captured and replayed; empty: they are
  std::string experimental = {};     // what users are told of the kind of device; empty: nothing
  int32_t group_ranks = 1;           // as WorkerInfo's
  std::optional<bool> ranks = {};    // of an embedding model (false) or reranker
  std::string response_prefix = {};  // of the ids of stored responses; empty: none are stored
};

std::string to_json(const WorkerInfo& info);
std::string to_json(const Health& health);
// The health of a worker whose model is not loaded yet.
std::string starting_json(const WorkerInfo& info, const std::optional<LoadProgress>& progress,
                          double uptime_seconds);
// worker-contract's WorkerHeartbeat, with the memory, and the progress of a worker that starts.
std::string heartbeat_json(const WorkerInfo& info, const MemoryFigures& memory,
                           std::string_view timestamp,
                           const std::optional<LoadProgress>& progress = std::nullopt);
std::string ready_json(bool ready, std::string_view state);
// ready_json() before the model is loaded.
std::string not_loaded_json();
// vLLM's {"server_load"}: requests that run or wait.
std::string load_json(int32_t requests);
// vLLM's {"version"}
std::string version_json(std::string_view version);
std::string welcome_json(const WorkerInfo& info);
std::string job_json(std::string_view job_id, std::string_view sse_url);
std::string cancel_json(std::string_view job_id);
// The job_id of {"job_id": "..."}. Throws InvalidBody.
std::string parse_cancel(std::string_view body);
std::string error_json(std::string_view code, std::string_view message);
// The payload of an error among a job's events.
std::string error_event_json(const WireError& error, std::string_view message);
// {"error":{"code":"INVALID_REQUEST","message":...,"fields":[...]}}
std::string invalid_body_json(const InvalidBody& error);

}  // namespace rbee::server
