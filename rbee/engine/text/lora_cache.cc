#include "rbee/engine/text/lora_cache.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "rbee/core/error.h"
#include "rbee/core/log.h"

namespace rbee::engine {
namespace {

constexpr const char* kOp = "lora";
// Slots of a layer, less the one that changes nothing; what is in none takes memory too.
constexpr size_t kMostSlots = 255;

}  // namespace

LoraCache::LoraCache(const models::LanguageModel& model, std::span<const LoraInfo> adapters,
                     StepListener* listener)
    : model_(model), listener_(listener) {
  for (const LoraInfo& info : adapters) {
    std::future<void> there = add(info);
    settle();
    there.get();
  }
}

std::vector<LoraInfo> LoraCache::list() const {
  const std::scoped_lock lock(mutex_);
  std::vector<LoraInfo> out;
  for (const auto& adapter : there_) out.push_back(adapter->info);
  return out;
}

std::vector<TakenLora> LoraCache::take(std::span<const LoraChoice> choices) const {
  const std::scoped_lock lock(mutex_);
  std::vector<TakenLora> out;
  for (const LoraChoice& choice : choices) {
    const auto found = std::ranges::find(there_, choice.name,
                                         [](const auto& adapter) { return adapter->info.name; });
    if (found == there_.end()) {
      fail(Code::not_found, kOp, "there is no adapter \"", choice.name, "\"");
    }
    const float scale = choice.scale.value_or((*found)->info.scale);
    if (scale != 0) out.push_back({*found, scale});
  }
  return out;
}

void LoraCache::check_new(const LoraInfo& info) const {
  const auto is_name = [&](const auto& other) { return other == info.name; };
  check(std::ranges::none_of(there_, is_name, [](const auto& each) { return each->info.name; }) &&
            std::ranges::none_of(coming_, is_name, [](const auto& each) { return each.info.name; }),
        kOp, "there is an adapter \"", info.name, "\" already");
}

std::future<void> LoraCache::add(LoraInfo info) {
  check(!info.name.empty(), kOp, "the adapter ", info.path, " has no name");
  check(info.scale >= -kMaxLoraScale && info.scale <= kMaxLoraScale, kOp, "the scale ", info.scale,
        " is outside of ", -kMaxLoraScale, " to ", kMaxLoraScale);
  {
    const std::scoped_lock lock(mutex_);
    check_new(info);
  }
  models::LoraAdapter adapter(info.path, model_);
  const std::scoped_lock lock(mutex_);
  check_new(info);
  coming_.push_back({std::move(info), std::move(adapter), {}});
  return coming_.back().there.get_future();
}

bool LoraCache::remove(std::string_view name) {
  const std::scoped_lock lock(mutex_);
  return std::erase_if(there_, [&](const auto& adapter) { return adapter->info.name == name; }) > 0;
}

bool LoraCache::waits() const {
  const std::scoped_lock lock(mutex_);
  return !coming_.empty();
}

int32_t LoraCache::free_slot() {
  const auto free = std::ranges::find_if(slots_, [](const auto& held) { return held.expired(); });
  if (free != slots_.end()) return static_cast<int32_t>(free - slots_.begin()) + 1;
  check(slots_.size() < kMostSlots, kOp, "there are ", kMostSlots, " adapters already");
  slots_.emplace_back();
  return static_cast<int32_t>(slots_.size());
}

void LoraCache::put(Coming& coming) {
  const int32_t slot = free_slot();
  if (listener_ != nullptr) listener_->on_lora({.slot = slot, .path = coming.info.path});
  try {
    coming.adapter.put(slot);
  } catch (const std::exception& error) {
    if (listener_ != nullptr) listener_->on_failure(error);
    throw;
  }
  const auto cached = std::make_shared<const CachedLora>(
      CachedLora{.info = coming.info, .slot = slot, .number = ++last_number_});
  slots_[static_cast<size_t>(slot) - 1] = cached;
  there_.push_back(cached);
  log(LogLevel::info, "an adapter is loaded",
      {{"name", cached->info.name}, {"path", cached->info.path}});
}

bool LoraCache::settle() {
  const std::scoped_lock lock(mutex_);
  if (coming_.empty()) return false;
  for (Coming& coming : std::exchange(coming_, {})) {
    try {
      put(coming);
      coming.there.set_value();
    } catch (...) {
      coming.there.set_exception(std::current_exception());
    }
  }
  return true;
}

std::vector<int32_t> cache_mark(std::span<const TakenLora> adapters, std::string_view salt) {
  constexpr int32_t kNoToken = -1, kSalt = -2;
  std::vector<int32_t> out;
  for (const TakenLora& taken : adapters) {
    out.insert(out.end(), {kNoToken, taken.adapter->number, std::bit_cast<int32_t>(taken.scale)});
  }
  if (!salt.empty()) out.push_back(kSalt);
  for (const char byte : salt) out.push_back(static_cast<unsigned char>(byte));
  return out;
}

std::string names_of(std::span<const TakenLora> adapters) {
  if (adapters.size() == 1 && adapters[0].scale == adapters[0].adapter->info.scale) {
    return adapters[0].adapter->info.name;
  }
  std::string out;
  for (const TakenLora& taken : adapters) {
    out += cat(out.empty() ? "" : "+", taken.adapter->info.name, ":", taken.scale);
  }
  return out;
}

}  // namespace rbee::engine
