#include "backends/gpu/arrival_counters.h"

#include "rbee/core/error.h"

namespace rbee::gpu {

ArrivalCounters::~ArrivalCounters() {
  for (const auto& [stream, counters] : counters_) driver_.free(counters);
}

void ArrivalCounters::add(void* stream) {
  constexpr size_t kBytes = kArrivalCounters * sizeof(uint32_t);
  const std::lock_guard lock(mutex_);
  void*& counters = counters_[stream];  // null while there is none: freeing it does nothing
  counters = driver_.allocate(kBytes);
  driver_.fill(counters, 0, kBytes, stream);
}

void ArrivalCounters::remove(void* stream) noexcept {
  const std::lock_guard lock(mutex_);
  const auto found = counters_.find(stream);
  if (found == counters_.end()) return;
  driver_.free(found->second);
  counters_.erase(found);
}

uint32_t* ArrivalCounters::of(void* stream) const {
  const std::lock_guard lock(mutex_);
  const auto found = counters_.find(stream);
  if (found == counters_.end()) fail(Code::internal, "arrival_counters", "the stream is unknown");
  return static_cast<uint32_t*>(found->second);
}

}  // namespace rbee::gpu
