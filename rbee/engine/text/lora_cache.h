#pragma once
// The adapters of a model that requests can take by name.

#include <cstdint>
#include <future>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rbee/engine/api/text.h"
#include "rbee/engine/text/step/sequence.h"
#include "rbee/models/lora_adapter.h"

namespace rbee::engine {

// An adapter in a slot of the model's layers, which is its own while somebody holds this.
struct ShelvedLora {
  LoraInfo info;
  int32_t slot;
  int32_t number;  // one that never comes again
};

// What a request takes.
struct TakenLora {
  std::shared_ptr<const ShelvedLora> adapter;
  float scale;
};

class LoraCache {
 public:
  // The model outlives the shelf. Loads the adapters, in their order; throws as add() and what the
  // files make it throw.
  LoraCache(const models::LanguageModel& model, std::span<const LoraInfo> adapters);

  // What follows may be called from any thread.

  std::vector<LoraInfo> list() const;  // in the order in which they came
  // Throws not_found naming an adapter that is not there.
  std::vector<TakenLora> take(std::span<const LoraChoice> choices) const;
  // Reads and checks an adapter, which is there when the future is ready. Throws as LoraAdapter
  // does, and invalid_argument for a name that is taken or empty, or a scale out of range.
  std::future<void> add(LoraInfo info);
  // Requests that took it keep it. False: there is none of this name.
  bool remove(std::string_view name);
  bool waits() const;  // for settle()

  // Between steps: adapters that were added since get their slots. True when there were some, which
  // makes captured steps void.
  bool settle();

 private:
  struct Coming {
    LoraInfo info;
    models::LoraAdapter adapter;
    std::promise<void> there;
  };
  void check_new(const LoraInfo& info) const;
  int32_t free_slot();
  void put(Coming& coming);

  const models::LanguageModel& model_;
  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<const ShelvedLora>> there_;
  std::vector<Coming> coming_;
  std::vector<std::weak_ptr<const ShelvedLora>> slots_;  // from slot 1 on
  int32_t last_number_ = 0;
};

// The part of a text's name in the cache that tells what its keys were made with: nothing, or
// numbers that no token has, then each adapter's number and scale, or the bytes of a request's
// salt.
std::vector<int32_t> cache_mark(std::span<const TakenLora> adapters, std::string_view salt);

}  // namespace rbee::engine
