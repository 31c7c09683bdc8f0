#pragma once
// An engine's KV events as JSON, with vLLM's names (vllm/distributed/kv_events.py).

#include <nlohmann/json.hpp>

#include "rbee/engine/api/kv_events.h"

namespace rbee::server {

// {"type", "block_hashes", ...}: as newer versions of vLLM send them.
nlohmann::ordered_json named_fields(const engine::KvEvent& event);
// [type, block_hashes, ...]: the fields in their order, as older ones do. Routers read both.
nlohmann::json field_list(const engine::KvEvent& event);
// [ts, [events], data_parallel_rank], the payload of vLLM's messages before msgpack.
nlohmann::json batch_list(const engine::KvEventBatch& batch);

}  // namespace rbee::server
