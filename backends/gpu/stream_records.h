#pragma once
// The runtime's record of each stream.

#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "backends/gpu/driver.h"

namespace rbee::gpu {

inline constexpr int64_t kArrivalCounters = 4096;  // of a stream

struct StreamRecord {
  // Counters that tell the blocks of a kernel which of them ends last: kArrivalCounters words of
  // device memory. Each stream has its own, because kernels of one stream run in order. They are 0
  // when a kernel starts, and every kernel, also a captured one, leaves them 0.
  uint32_t* arrivals = nullptr;
  // What kernels may have written since a kernel last waited for all earlier ones (Launch::writes).
  bool floats_under_way = false;
  bool tables_under_way = false;
  bool packed_weights_under_way = false;
  // The operation whose kernel was queued last, for errors; null: none yet.
  const char* last_op = nullptr;
  int64_t last_blocks = 0;  // of that kernel; 0: none yet
  uint64_t queued = 0;      // kernels, copies and fills so far
};

class StreamRecords {
 public:
  explicit StreamRecords(Driver& driver) : driver_(driver) {}
  ~StreamRecords();
  StreamRecords(const StreamRecords&) = delete;
  StreamRecords& operator=(const StreamRecords&) = delete;

  // Makes a new stream's record; throws what the driver throws. The stream's device is current,
  // here and below.
  void add(void* stream);
  void remove(void* stream) noexcept;
  // The record, valid until remove(), for the thread that uses the stream. Throws internal for an
  // unknown stream.
  StreamRecord& of(void* stream);
  // ", after <op>" for errors of a stream whose last operation is known; else empty.
  std::string after(void* stream);

 private:
  Driver& driver_;
  std::mutex mutex_;  // guards records_, not what is in them
  std::map<void*, StreamRecord> records_;
};

}  // namespace rbee::gpu
