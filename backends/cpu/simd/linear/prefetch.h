#pragma once
// With one row of x, each weight is read once, from memory, and a panel is too short a stream for
// the processor's own prefetching. Panels are adjacent, so a prefetch past the end of one fetches
// the beginning of the next; past the last panel, nothing is read.

#include <cstddef>

namespace {

constexpr ptrdiff_t kAheadBytes = 8192;

// Into the second-level cache, where more lines can be under way than in the first.
[[gnu::always_inline]] inline void fetch_line_ahead(const void* data) {
  __builtin_prefetch(static_cast<const char*>(data) + kAheadBytes, 0, 1);
}

// Prefetches the line kAheadBytes after group g of a record.
template <typename F>
[[gnu::always_inline]] inline void fetch_group_ahead(const typename F::Record& record, int g) {
  constexpr int kShare = sizeof(record) / F::kGroups;
  const char* line = reinterpret_cast<const char*>(&record) + g * kShare;
#pragma GCC unroll 8
  for (int i = 0; i < kShare; i += 64) fetch_line_ahead(line + i);
}

}  // namespace
