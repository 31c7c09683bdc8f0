#pragma once
// Bodies and event payloads that the worker sends, as JSON on one line. Text that is not UTF-8
// comes out with U+FFFD.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/contract/error_map.h"
#include "server/contract/openai_logprobs.h"
#include "server/contract/requests.h"

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
};

// Bytes of the model on its device (weights, and of chats the KV cache), and of a device with
// memory of its own all and what is free, whoever uses it; 0 for a CPU, and when not known.
struct MemoryFigures {
  int64_t used = 0;
  int64_t device = 0;
  int64_t device_free = 0;
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
  int32_t max_pictures = 0;  // of a request; 0 = the model reads text alone
  int64_t memory_bytes = 0;  // weights and KV cache
  double uptime_seconds = 0;
  std::string capture_refusal = {};  // why steps are not captured and replayed; empty: they are
  std::optional<bool> ranks = {};    // of a model for embeddings (false) or ranking
};

struct StartedEvent {
  std::string job_id;
  std::string model;
  std::string started_at;  // ISO 8601
  uint64_t seed = 0;
  int32_t prompt_tokens = 0;
  int32_t cached_tokens = 0;             // of these, found in the cache
  std::vector<int32_t> prompt_ids = {};  // where the request asks for them
};

// How far an answer is: of its prompt, and of its tokens.
struct ProgressEvent {
  int32_t prompt_tokens = 0;
  int32_t cached_tokens = 0;  // of these, found in the cache
  int32_t evaluated = 0;      // of the prompt, cached ones included
  double prompt_ms = 0;
  int32_t tokens_out = 0;
  double decode_ms = 0;
};

struct EndEvent {
  int32_t tokens_out = 0;
  int32_t reasoning_tokens = 0;  // of these
  double decode_ms = 0;
  int32_t prompt_tokens = 0;
  int32_t cached_tokens = 0;  // of these, found in the cache
  double prompt_ms = 0;
  std::string stop_reason;
  std::string stop_sequence;  // empty: none matched
  uint64_t seed = 0;
  std::optional<bool> complete;  // of an answer that has to have a form: whether it is a whole one
  bool called = false;           // the answer holds calls of functions
  std::optional<int32_t> end_id = {};  // the token that ended it
  // Of its tokens: from arrival to the begin, from there to the first one, from it to the last one.
  double queue_ms = 0, first_token_ms = 0, generation_ms = 0;
};

// A part of an answer that is told apart, in the order of the text.
struct AnswerItem {
  enum class Kind : uint8_t { text, reasoning, call };
  Kind kind = Kind::text;
  std::string text;                       // of a call its arguments, JSON
  std::string call_id, name;              // of a call
  std::vector<OpenAiScored> scored = {};  // tokens of a text, where the request asks for them
};
// What an item grows by.
struct ItemPiece {
  std::string_view text;
  const std::vector<OpenAiScored>& scored;  // of a text
};

struct MetricsEvent {
  std::string job_id;
  int32_t tokens_out = 0;
  double decode_ms = 0;
  double tokens_per_second = 0;
  int64_t memory_bytes = 0;
};

std::string to_json(const WorkerInfo& info);
std::string to_json(const Health& health);
// worker-contract's WorkerHeartbeat, and the memory beside it.
std::string heartbeat_json(const WorkerInfo& info, const MemoryFigures& memory,
                           std::string_view timestamp);
std::string ready_json(bool ready, std::string_view state);
// vLLM's {"server_load"}: requests that run or wait.
std::string load_json(int32_t requests);
// vLLM's {"version"}
std::string version_json(std::string_view version);
std::string welcome_json(const WorkerInfo& info);
std::string job_json(std::string_view job_id, std::string_view sse_url);
std::string cancel_json(std::string_view job_id);
std::string error_json(std::string_view code, std::string_view message);
// {"error":{"code":"INVALID_REQUEST","message":...,"fields":[...]}}
std::string invalid_body_json(const InvalidBody& error);

// Payloads of a job's stream.
std::string to_json(const StartedEvent& event);
std::string token_json(std::string_view text, int32_t index);
std::string to_json(const MetricsEvent& event);
std::string to_json(const EndEvent& event);
std::string error_event_json(const WireError& error, std::string_view message);

// Answers of /v1/infer: the whole text, or one piece of it.
std::string infer_json(std::string_view text, const EndEvent& end, double duration_ms);
std::string infer_token_json(std::string_view text);

}  // namespace rbee::server
