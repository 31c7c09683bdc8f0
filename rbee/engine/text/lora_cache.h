#pragma once
// The adapters of a model, which requests name.

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
#include "rbee/engine/text/step/step_listener.h"
#include "rbee/models/lora_adapter.h"

namespace rbee::engine {

// An adapter in a slot of the model's layers. The slot is not reused while a pointer to this
// exists.
struct CachedLora {
  LoraInfo info;
  int32_t slot;
  int32_t number;  // never used again for another adapter
};

// One adapter of a request.
struct TakenLora {
  std::shared_ptr<const CachedLora> adapter;
  float scale;
};

class LoraCache {
 public:
  // Loads the adapters in their order; the model and the listener must outlive this. listener:
  // hears of adapters that get a slot; may be null. Throws as add(), and what reading the files
  // throws.
  LoraCache(const models::LanguageModel& model, std::span<const LoraInfo> adapters,
            StepListener* listener = nullptr);

  // The next functions are thread-safe.

  std::vector<LoraInfo> list() const;  // in the order of loading
  // Throws not_found, naming the missing adapter.
  std::vector<TakenLora> take(std::span<const LoraChoice> choices) const;
  // Reads and checks an adapter; requests can take it when the future is ready. Throws as
  // LoraAdapter does, and invalid_argument if the name is taken or empty, or the scale is out of
  // range.
  std::future<void> add(LoraInfo info);
  // Requests that took it keep it. False if no adapter has this name.
  bool remove(std::string_view name);
  bool waits() const;  // whether settle() has work

  // Call it between steps: gives new adapters their slots. True if there were any; captured steps
  // are then invalid.
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
  StepListener* const listener_;
  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<const CachedLora>> there_;
  std::vector<Coming> coming_;
  std::vector<std::weak_ptr<const CachedLora>> slots_;  // from slot 1 on
  int32_t last_number_ = 0;
};

// A prefix for cache keys, so that texts share blocks only if the same adapters and salt made them.
// Empty without both; else numbers that are no token, then each adapter's number and scale, or the
// salt's bytes.
std::vector<int32_t> cache_mark(std::span<const TakenLora> adapters, std::string_view salt);
// For people and other programs: "one", or "one:0.5+two:1" for several or other scales than theirs.
std::string names_of(std::span<const TakenLora> adapters);

}  // namespace rbee::engine
