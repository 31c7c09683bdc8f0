#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "rbee/core/error.h"
#include "workers/llm/kv_publisher.h"

namespace rbee::workers {
namespace {

using Json = nlohmann::json;

constexpr const char* kFlag = "--kv-events-config";
constexpr int64_t kMostSteps = 10'000'000;

const Json* field(const Json& config, const char* name) {
  const auto found = config.find(name);
  return found == config.end() || found->is_null() ? nullptr : &*found;
}

void read(const Json& config, const char* name, std::string& out) {
  const Json* const value = field(config, name);
  if (value == nullptr) return;
  check(value->is_string(), kFlag, name, " is no text");
  out = value->get<std::string>();
}

void read(const Json& config, const char* name, int32_t& out) {
  const Json* const value = field(config, name);
  if (value == nullptr) return;
  const bool fits = value->is_number_integer() && *value >= 1 && *value <= kMostSteps;
  check(fits, kFlag, name, " is no number from 1 to ", kMostSteps);
  out = value->get<int32_t>();
}

}  // namespace

KvEventsConfig parse_kv_events_config(std::string_view json) {
  KvEventsConfig out;
  if (json.empty()) return out;
  const Json config = Json::parse(json, nullptr, false);
  check(config.is_object(), kFlag, "'", json, "' is no JSON object");
  const std::set<std::string> known = {
      "enable_kv_cache_events", "publisher", "endpoint",      "replay_endpoint", "topic",
      "buffer_steps",           "hwm",       "max_queue_size"};
  for (const auto& [name, value] : config.items()) {
    check(known.contains(name), kFlag, "unknown field '", name, "'");
  }
  if (const Json* const enabled = field(config, "enable_kv_cache_events")) {
    check(enabled->is_boolean(), kFlag, "enable_kv_cache_events is neither true nor false");
    out.enabled = enabled->get<bool>();
  }
  out.publisher = out.enabled ? "zmq" : "null";
  read(config, "publisher", out.publisher);
  check(out.publisher == "zmq" || out.publisher == "null", kFlag, "publisher '", out.publisher,
        "' is neither zmq nor null");
  read(config, "endpoint", out.endpoint);
  read(config, "replay_endpoint", out.replay_endpoint);
  read(config, "topic", out.topic);
  read(config, "buffer_steps", out.buffer_steps);
  read(config, "hwm", out.hwm);
  int32_t queue = 0;
  read(config, "max_queue_size", queue);
  return out;
}

}  // namespace rbee::workers
