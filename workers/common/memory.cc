#include "workers/common/memory.h"

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace rbee::workers {

MemoryTrimmer::MemoryTrimmer() {
#ifdef __GLIBC__
  constexpr int kLarge = 1 << 20;
  mallopt(M_MMAP_THRESHOLD, kLarge);
  mallopt(M_TRIM_THRESHOLD, kLarge);
#endif
}

void MemoryTrimmer::tick() {
  constexpr std::chrono::seconds kInterval{5};
  const auto now = std::chrono::steady_clock::now();
  if (now < next_) return;
  next_ = now + kInterval;
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

}  // namespace rbee::workers
