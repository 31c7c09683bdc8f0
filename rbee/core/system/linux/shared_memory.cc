#include "rbee/core/system/shared_memory.h"

#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <ctime>

namespace rbee {

int new_shared_memory() {
  return memfd_create("rbee", MFD_CLOEXEC);
}

void sleep_on(std::atomic<uint32_t>& word, uint32_t value, std::chrono::nanoseconds patience) {
  static_assert(sizeof(word) == sizeof(uint32_t));
  const auto nanoseconds = std::max<int64_t>(patience.count(), 0);
  const timespec limit{.tv_sec = nanoseconds / 1'000'000'000,
                       .tv_nsec = nanoseconds % 1'000'000'000};
  syscall(SYS_futex, &word, FUTEX_WAIT, value, &limit, nullptr, 0);
}

void wake_all(std::atomic<uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace rbee
