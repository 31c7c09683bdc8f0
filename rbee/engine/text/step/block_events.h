#pragma once
// What a KV cache tells about its blocks (rbee/engine/api/kv_events.h), and the names under which
// it does.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rbee/engine/api/kv_events.h"

namespace rbee::engine {

// What the keys of a text depend on besides its tokens.
struct TextScope {
  std::string lora;  // the adapters' names; empty: none
  std::string salt;  // empty: none
};

// A text that ends with a block.
struct BlockName {
  BlockHash hash{};
  std::optional<BlockHash> parent;
  std::string lora;
};
using BlockNamePtr = std::shared_ptr<const BlockName>;

class BlockEvents {
 public:
  // seed: as Python's PYTHONHASHSEED for vLLM; workers with the same one give a text the same hash.
  explicit BlockEvents(std::string_view seed);

  // vLLM's sha256_cbor: SHA-256 of the CBOR of [hash before, tokens, extra], where extra is null or
  // the adapters and, for the first block, the salt; before the first block is the seed's hash.
  // before: null for the first block.
  BlockNamePtr name(const BlockName* before, std::span<const int32_t> tokens,
                    const TextScope& scope) const;
  void stored(const BlockName& name, KvMedium medium, std::span<const int32_t> tokens);
  void removed(const BlockName& name, KvMedium medium);
  // All since the last call, neighbours of one text in one event.
  std::vector<KvEvent> take();

 private:
  BlockHash root_;
  std::vector<KvEvent> events_;
};

}  // namespace rbee::engine
