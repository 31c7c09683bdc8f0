#include "workers/common/memory.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <memory>
#include <thread>
#include <vector>

namespace rbee::workers {
namespace {

#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__)
#define RBEE_ALLOCATOR_OF_GLIBC 1
#endif
#ifdef __has_feature
#if __has_feature(address_sanitizer)
#undef RBEE_ALLOCATOR_OF_GLIBC
#endif
#endif

[[maybe_unused]] int64_t resident_mib() {
  std::ifstream file("/proc/self/statm");
  int64_t size = 0, resident = 0;
  file >> size >> resident;
  return resident * sysconf(_SC_PAGESIZE) >> 20;
}

[[maybe_unused]] void take_and_free(size_t blocks, size_t bytes) {
  std::vector<std::unique_ptr<char[]>> held;
  for (size_t i = 0; i < blocks; ++i) {
    held.emplace_back(new char[bytes]);
    std::memset(held.back().get(), 1, bytes);
  }
}

// A server's threads live long and must not keep freed memory.
TEST(MemoryTrimmer, ThreadsGiveBackWhatTheyFreed) {
#ifndef RBEE_ALLOCATOR_OF_GLIBC
  GTEST_SKIP() << "another allocator";
#else
  std::thread([] {
    take_and_free(1, size_t{30} << 20);  // after which the allocator would keep that much
    MemoryTrimmer trimmer;
    const int64_t before = resident_mib();
    take_and_free(600, size_t{100} << 10);
    take_and_free(20, size_t{3} << 20);
    trimmer.tick();
    EXPECT_LT(resident_mib() - before, 8);
  }).join();
#endif
}

}  // namespace
}  // namespace rbee::workers
