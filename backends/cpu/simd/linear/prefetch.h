#pragma once
// One row of x reads each weight once, from memory: the loads of a panel are too short a stream for
// the processor's own prefetching. Panels lie one after the other, so what is fetched past the end
// of one is the beginning of the next; past the last one nothing is read.

#include <cstddef>

namespace {

constexpr ptrdiff_t kAheadBytes = 4096;

// Fetches what lies kAheadBytes behind group g of a record.
template <typename F>
[[gnu::always_inline]] inline void fetch_group_ahead(const typename F::Record& record, int g) {
  constexpr int kShare = sizeof(record) / F::kGroups;
  const char* line = reinterpret_cast<const char*>(&record) + g * kShare + kAheadBytes;
#pragma GCC unroll 8
  for (int i = 0; i < kShare; i += 64) __builtin_prefetch(line + i);
}

}  // namespace
