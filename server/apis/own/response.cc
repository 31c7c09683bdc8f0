#include "server/apis/own/response.h"

#include <nlohmann/json.hpp>

#include "server/wire/json_text.h"

namespace rbee::server {
namespace {

using Json = nlohmann::ordered_json;

Json end_fields(const EndEvent& event) {
  Json json = {{"decode_time_ms", rounded(event.decode_ms)},
               {"prompt_tokens", event.prompt_tokens},
               {"prompt_time_ms", rounded(event.prompt_ms)},
               {"stop_reason", event.stop_reason}};
  if (!event.stop_sequence.empty()) json["stop_sequence_matched"] = event.stop_sequence;
  json["seed"] = event.seed;
  if (event.complete) json["complete"] = *event.complete;
  return json;
}

}  // namespace

std::string to_json(const StartedEvent& event) {
  return dump({{"type", "started"},
               {"job_id", event.job_id},
               {"model", event.model},
               {"started_at", event.started_at},
               {"seed", event.seed},
               {"prompt_tokens", event.prompt_tokens}});
}

std::string token_json(std::string_view text, int32_t index) {
  return dump({{"type", "token"}, {"t", text}, {"i", index}});
}

std::string to_json(const MetricsEvent& event) {
  return dump({{"type", "metrics"},
               {"job_id", event.job_id},
               {"tokens_out", event.tokens_out},
               {"decode_time_ms", rounded(event.decode_ms)},
               {"tokens_per_sec", rounded(event.tokens_per_second)},
               {"vram_bytes", event.memory_bytes}});
}

std::string to_json(const EndEvent& event) {
  Json json = {{"type", "end"}, {"tokens_out", event.tokens_out}};
  json.update(end_fields(event));
  return dump(json);
}

std::string infer_json(std::string_view text, const EndEvent& end, double duration_ms) {
  Json json = {{"text", text},
               {"tokens_generated", end.tokens_out},
               {"duration_ms", static_cast<int64_t>(std::llround(duration_ms))}};
  json.update(end_fields(end));
  return dump(json);
}

std::string infer_token_json(std::string_view text) {
  return dump({{"token", text}});
}

}  // namespace rbee::server
