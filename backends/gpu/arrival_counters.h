#pragma once
// Counters by which the blocks of a kernel learn which of them ends last. Each stream has its own,
// since kernels of one stream run in order; they are 0 when a kernel starts, and kernels leave them
// so, recorded ones too.

#include <cstdint>
#include <map>
#include <mutex>

#include "backends/gpu/driver.h"

namespace rbee::gpu {

inline constexpr int64_t kArrivalCounters = 4096;  // of a stream

class ArrivalCounters {
 public:
  explicit ArrivalCounters(Driver& driver) : driver_(driver) {}
  ~ArrivalCounters();
  ArrivalCounters(const ArrivalCounters&) = delete;
  ArrivalCounters& operator=(const ArrivalCounters&) = delete;

  // Makes a new stream's counters; throws what the driver throws. The stream's device is current,
  // here and below.
  void add(void* stream);
  void remove(void* stream) noexcept;
  // kArrivalCounters words of device memory.
  uint32_t* of(void* stream) const;

 private:
  Driver& driver_;
  mutable std::mutex mutex_;
  std::map<void*, void*> counters_;
};

}  // namespace rbee::gpu
