#include "rbee/engine/text/step/block_events.h"

#include <openssl/sha.h>

#include <nlohmann/json.hpp>
#include <utility>

namespace rbee::engine {
namespace {

using Json = nlohmann::json;

BlockHash hash_of(const Json& value) {
  const std::vector<uint8_t> bytes = Json::to_cbor(value);
  BlockHash out;
  SHA256(bytes.data(), bytes.size(), out.data());
  return out;
}

Json extra_of(const TextScope& scope, bool begins) {
  Json out = Json::array();
  if (!scope.lora.empty()) out.push_back(scope.lora);
  if (begins && !scope.salt.empty()) out.push_back(scope.salt);
  return out.empty() ? Json() : out;
}

}  // namespace

BlockEvents::BlockEvents(std::string_view seed) : root_(hash_of(Json(seed))) {}

BlockNamePtr BlockEvents::name(const BlockName* before, std::span<const int32_t> tokens,
                               const TextScope& scope) const {
  const BlockHash& parent = before == nullptr ? root_ : before->hash;
  Json value = Json::array();
  value.push_back(Json::binary({parent.begin(), parent.end()}));
  value.push_back(std::vector<int32_t>(tokens.begin(), tokens.end()));
  value.push_back(extra_of(scope, before == nullptr));
  return std::make_shared<BlockName>(
      BlockName{.hash = hash_of(value),
                .parent = before == nullptr ? std::nullopt : std::optional(before->hash),
                .lora = scope.lora});
}

void BlockEvents::stored(const BlockName& name, KvMedium medium, std::span<const int32_t> tokens) {
  KvEvent* last = events_.empty() ? nullptr : &events_.back();
  const bool follows = last != nullptr && last->kind == KvEvent::Kind::stored &&
                       last->medium == medium && name.parent == last->hashes.back() &&
                       last->lora == name.lora;
  if (!follows) {
    last = &events_.emplace_back(KvEvent{.kind = KvEvent::Kind::stored,
                                         .medium = medium,
                                         .hashes = {},
                                         .parent = name.parent,
                                         .tokens = {},
                                         .block_size = std::ssize(tokens),
                                         .lora = name.lora});
  }
  last->hashes.push_back(name.hash);
  last->tokens.insert(last->tokens.end(), tokens.begin(), tokens.end());
}

void BlockEvents::removed(const BlockName& name, KvMedium medium) {
  KvEvent* last = events_.empty() ? nullptr : &events_.back();
  if (last == nullptr || last->kind != KvEvent::Kind::removed || last->medium != medium) {
    last = &events_.emplace_back(KvEvent{.kind = KvEvent::Kind::removed, .medium = medium});
  }
  last->hashes.push_back(name.hash);
}

std::vector<KvEvent> BlockEvents::take() {
  return std::exchange(events_, {});
}

}  // namespace rbee::engine
