#include "backends/gpu/stream_records.h"

#include "rbee/core/error.h"

namespace rbee::gpu {

StreamRecords::~StreamRecords() {
  for (const auto& [stream, record] : records_) driver_.free(record.arrivals);
}

void StreamRecords::add(void* stream) {
  constexpr size_t kBytes = kArrivalCounters * sizeof(uint32_t);
  const std::scoped_lock lock(mutex_);
  StreamRecord& record = records_[stream];  // without counters yet: freeing null does nothing
  record.arrivals = static_cast<uint32_t*>(driver_.allocate(kBytes));
  driver_.fill(record.arrivals, 0, kBytes, stream);
}

void StreamRecords::remove(void* stream) noexcept {
  const std::scoped_lock lock(mutex_);
  const auto found = records_.find(stream);
  if (found == records_.end()) return;
  driver_.free(found->second.arrivals);
  records_.erase(found);
}

StreamRecord& StreamRecords::of(void* stream) {
  const std::scoped_lock lock(mutex_);
  const auto found = records_.find(stream);
  if (found == records_.end()) fail(Code::internal, "stream_records", "the stream is unknown");
  return found->second;
}

std::string StreamRecords::after(void* stream) {
  const std::scoped_lock lock(mutex_);
  const auto found = records_.find(stream);
  if (found == records_.end() || found->second.last_op == nullptr) return "";
  return cat(", after ", found->second.last_op);
}

}  // namespace rbee::gpu
