#include "server/wire/kv_event_fields.h"

#include <optional>
#include <string_view>
#include <utility>

namespace rbee::server {
namespace {

using engine::KvEvent;

// vLLM sends the last 64 bits, unless VLLM_KV_EVENTS_USE_INT_BLOCK_HASHES is 0.
uint64_t number_of(const engine::BlockHash& hash) {
  uint64_t out = 0;
  for (size_t i = hash.size() - 8; i < hash.size(); ++i) out = out << 8 | hash[i];
  return out;
}

template <typename Json>
Json hashes_of(const KvEvent& event) {
  Json out = Json::array();
  for (const engine::BlockHash& hash : event.hashes) out.push_back(number_of(hash));
  return out;
}

template <typename Json>
Json parent_of(const KvEvent& event) {
  return event.parent ? Json(number_of(*event.parent)) : Json();
}

template <typename Json>
Json lora_of(const KvEvent& event) {
  return event.lora.empty() ? Json() : Json(event.lora);
}

std::string_view type_of(const KvEvent& event) {
  return event.kind == KvEvent::Kind::stored ? "BlockStored" : "BlockRemoved";
}

std::string_view medium_of(const KvEvent& event) {
  return event.medium == engine::KvMedium::device ? "GPU" : "CPU";
}

}  // namespace

nlohmann::ordered_json named_fields(const KvEvent& event) {
  using Json = nlohmann::ordered_json;
  Json out = {{"type", type_of(event)}, {"block_hashes", hashes_of<Json>(event)}};
  if (event.kind == KvEvent::Kind::stored) {
    out["parent_block_hash"] = parent_of<Json>(event);
    out["token_ids"] = event.tokens;
    out["block_size"] = event.block_size;
    out["lora_name"] = lora_of<Json>(event);
  }
  out["medium"] = medium_of(event);
  return out;
}

nlohmann::json field_list(const KvEvent& event) {
  using Json = nlohmann::json;
  Json out = {type_of(event), hashes_of<Json>(event)};
  if (event.kind == KvEvent::Kind::stored) {
    out.push_back(parent_of<Json>(event));
    out.push_back(event.tokens);
    out.push_back(event.block_size);
    out.push_back(Json());  // lora_id: a number that newer routers do not read
  }
  out.push_back(medium_of(event));
  if (event.kind == KvEvent::Kind::stored) out.push_back(lora_of<Json>(event));
  return out;
}

nlohmann::json batch_list(const engine::KvEventBatch& batch) {
  nlohmann::json events = nlohmann::json::array();
  for (const KvEvent& event : batch.events) events.push_back(field_list(event));
  nlohmann::json out = nlohmann::json::array();
  out.push_back(batch.time);
  out.push_back(std::move(events));
  out.push_back(0);
  return out;
}

}  // namespace rbee::server
