#include "rbee/engine/api/kv_events.h"

#include <algorithm>
#include <utility>

#include "rbee/core/error.h"

namespace rbee::engine {

KvEventLog::KvEventLog(size_t batches) : most_(batches) {
  check(batches >= 1, "KvEventLog", batches, " batches are fewer than 1");
}

void KvEventLog::add(std::vector<KvEvent> events) {
  if (events.empty()) return;
  const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
  const std::scoped_lock lock(mutex_);
  batches_.push_back(std::make_shared<KvEventBatch>(
      KvEventBatch{.sequence = next_++, .time = now.count(), .events = std::move(events)}));
  if (batches_.size() > most_) batches_.pop_front();
  changed_.notify_all();
}

std::vector<KvEventBatchPtr> KvEventLog::from(uint64_t sequence, size_t most) const {
  const std::scoped_lock lock(mutex_);
  const uint64_t first = next_ - batches_.size();
  const size_t skipped = std::min<uint64_t>(std::max(sequence, first) - first, batches_.size());
  const size_t count = std::min(batches_.size() - skipped, most);
  const auto begin = batches_.begin() + static_cast<std::ptrdiff_t>(skipped);
  return {begin, begin + static_cast<std::ptrdiff_t>(count)};
}

uint64_t KvEventLog::end() const {
  const std::scoped_lock lock(mutex_);
  return next_;
}

void KvEventLog::wait(uint64_t sequence, std::chrono::milliseconds time) const {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, time, [&] { return closed_ || next_ > sequence; });
}

void KvEventLog::close() {
  const std::scoped_lock lock(mutex_);
  closed_ = true;
  changed_.notify_all();
}

bool KvEventLog::closed() const {
  const std::scoped_lock lock(mutex_);
  return closed_;
}

}  // namespace rbee::engine
