#include "server/wire/worker_contract.h"
#include "server/wire/text_events.h"

#include <nlohmann/json.hpp>

#include "server/wire/json_object.h"
#include "server/wire/json_text.h"

namespace rbee::server {
namespace {

using Json = nlohmann::ordered_json;

Json worker(const WorkerInfo& info) {
  Json out = {{"id", info.id},          {"model_id", info.model_id},
              {"device", info.device},  {"port", info.port},
              {"status", info.status},  {"implementation", info.implementation},
              {"version", info.version}};
  if (info.group_ranks > 1) out["tensor_parallel_size"] = info.group_ranks;
  if (info.host_cache_bytes > 0) out["host_cache_bytes"] = info.host_cache_bytes;
  if (!info.rank_bytes.empty()) out["rank_memory_bytes"] = info.rank_bytes;
  return out;
}

Json to_object(const LoadProgress& progress) {
  Json out = {{"phase", progress.phase == LoadPhase::fetching ? "fetching" : "loading"},
              {"done", progress.done},
              {"total", progress.total}};
  if (progress.bytes_per_second) out["bytes_per_second"] = rounded(*progress.bytes_per_second);
  if (progress.seconds_left) out["seconds_left"] = rounded(*progress.seconds_left);
  return out;
}

}  // namespace

std::string to_json(const WorkerInfo& info) {
  return dump(worker(info));
}

std::string to_json(const Health& health) {
  Json out = {{"status", health.healthy ? "healthy" : "unhealthy"},
              {"model", health.model},
              {"resident", health.healthy},
              {"architecture", health.architecture},
              {"quant_kind", health.quantization},
              {"vram_bytes_used", health.memory_bytes},
              {"tokenizer_kind", health.tokenizer_kind},
              {"vocab_size", health.vocab_size},
              {"context_length", health.context_length},
              {"parameters", health.parameters},
              {"max_pictures", health.max_pictures},
              {"uptime_seconds", rounded(health.uptime_seconds)},
              {"graphs", graphs(health.capture_refusal)}};
  if (!health.experimental.empty()) out["experimental"] = health.experimental;
  if (health.group_ranks > 1) out["tensor_parallel_size"] = health.group_ranks;
  if (health.ranks) out["ranks"] = *health.ranks;
  if (!health.response_prefix.empty()) out["response_prefix"] = health.response_prefix;
  return dump(out);
}

std::string starting_json(const WorkerInfo& info, const std::optional<LoadProgress>& progress,
                          double uptime_seconds) {
  Json out = {{"status", info.status},
              {"worker_id", info.id},
              {"model", info.model_id},
              {"resident", false},
              {"uptime_seconds", rounded(uptime_seconds)}};
  if (progress) out["progress"] = to_object(*progress);
  return dump(out);
}

std::string heartbeat_json(const WorkerInfo& info, const MemoryFigures& memory,
                           std::string_view timestamp,
                           const std::optional<LoadProgress>& progress) {
  Json out = {{"worker", worker(info)},
              {"timestamp", timestamp},
              {"vram_bytes_used", memory.used},
              {"device_memory_bytes", memory.device},
              {"device_memory_free_bytes", memory.device_free}};
  if (progress) out["progress"] = to_object(*progress);
  return dump(out);
}

std::string ready_json(bool ready, std::string_view state) {
  return dump({{"ready", ready}, {"state", state}, {"model_loaded", true}});
}

std::string not_loaded_json() {
  return dump({{"ready", false}, {"state", "starting"}, {"model_loaded", false}});
}

std::string load_json(int32_t requests) {
  return dump({{"server_load", requests}});
}

std::string version_json(std::string_view version) {
  return dump({{"version", version}});
}

std::string welcome_json(const WorkerInfo& info) {
  return dump({{"name", info.implementation},
               {"version", info.version},
               {"model", info.model_id},
               {"status", info.status},
               {"links", {"/health", "/info", "/metrics", "/v1/jobs", "/v1/infer"}}});
}

std::string job_json(std::string_view job_id, std::string_view sse_url) {
  return dump({{"job_id", job_id}, {"sse_url", sse_url}});
}

std::string cancel_json(std::string_view job_id) {
  return dump({{"job_id", job_id}, {"status", "cancelling"}});
}

std::string parse_cancel(std::string_view text) {
  const JsonBody body(text);
  std::vector<FieldError> errors;
  ObjectReader reader(body, errors);
  const std::optional<std::string> id = reader.text("job_id");
  if (!id && errors.empty()) reader.note("job_id", "required", "is missing", nullptr);
  if (id && id->empty()) reader.note("job_id", "non_empty", "is empty", reader.find("job_id"));
  if (!errors.empty()) throw InvalidBody(std::move(errors));
  return *id;
}

std::string error_json(std::string_view code, std::string_view message) {
  return dump({{"error", {{"code", code}, {"message", message}}}});
}

std::string invalid_body_json(const InvalidBody& error) {
  Json fields = Json::array();
  for (const FieldError& one : error.errors()) {
    Json field = {{"field", one.field}, {"constraint", one.constraint}, {"message", one.message}};
    if (!one.value.empty()) field["value"] = one.value;
    fields.push_back(std::move(field));
  }
  Json body = {{"code", wire_error(Code::invalid_argument).code}, {"message", error.what()}};
  body["fields"] = std::move(fields);
  Json json;
  json["error"] = std::move(body);
  return dump(json);
}

std::string error_event_json(const WireError& error, std::string_view message) {
  return dump({{"type", "error"},
               {"code", error.code},
               {"message", message},
               {"retriable", error.retriable}});
}

}  // namespace rbee::server
