#include "rbee/core/system/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>

// What libc++'s std::atomic::wait calls too, for threads of one process (bsd/sys/ulock.h of xnu).
// The public os_sync_wait_on_address() came with macOS 14.4.
extern "C" int __ulock_wait(uint32_t operation, void* address, uint64_t value,
                            uint32_t microseconds);
extern "C" int __ulock_wake(uint32_t operation, void* address, uint64_t value);

namespace rbee {
namespace {

constexpr uint32_t kCompareAndWaitShared = 3, kWakeAll = 0x100;

}  // namespace

int new_shared_memory() {
  for (int attempt = 0; attempt < 100; ++attempt) {
    std::array<char, 31> name{};  // PSHMNAMLEN
    std::snprintf(name.data(), name.size(), "/rbee-%08x%08x", arc4random(), arc4random());
    const int out = shm_open(name.data(), O_RDWR | O_CREAT | O_EXCL, 0600);
    if (out < 0 && errno == EEXIST) continue;
    if (out < 0) return -1;
    shm_unlink(name.data());
    fcntl(out, F_SETFD, FD_CLOEXEC);
    return out;
  }
  return -1;
}

void sleep_on(std::atomic<uint32_t>& word, uint32_t value, std::chrono::nanoseconds patience) {
  static_assert(sizeof(word) == sizeof(uint32_t));
  // Of no microseconds it would sleep without an end.
  const auto microseconds =
      std::clamp<int64_t>(patience / std::chrono::microseconds(1), 1, 1'000'000'000);
  __ulock_wait(kCompareAndWaitShared, &word, value, static_cast<uint32_t>(microseconds));
}

void wake_all(std::atomic<uint32_t>& word) {
  __ulock_wake(kCompareAndWaitShared | kWakeAll, &word, 0);
}

}  // namespace rbee
