#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

#include "backends/cpu/caching_allocator.h"
#include "rbee/core/error.h"

namespace rbee::cpu {
namespace {

constexpr size_t kLimit = size_t{8} << 20;

TEST(CachingAllocator, EverySizeIsAlignedAndLargeEnough) {
  CachingAllocator allocator(kLimit);
  for (size_t bytes = 1; bytes <= (size_t{5} << 20); bytes = bytes * 5 / 4 + 1) {
    void* data = allocator.allocate(bytes);
    ASSERT_EQ(reinterpret_cast<uintptr_t>(data) % 64, 0u) << bytes;
    std::memset(data, 0x5a, bytes);  // the sanitizers check it
    EXPECT_GE(allocator.stats().in_use, bytes);
    allocator.free(data, bytes);
    EXPECT_EQ(allocator.stats().in_use, 0u) << bytes;
  }
}

TEST(CachingAllocator, WasteIsLimited) {
  CachingAllocator allocator(0);
  for (size_t bytes = 4096; bytes <= (size_t{64} << 20); bytes = bytes * 9 / 8) {
    void* data = allocator.allocate(bytes);
    EXPECT_LE(allocator.stats().in_use, bytes + bytes / 4 + 4096) << bytes;
    allocator.free(data, bytes);
  }
}

TEST(CachingAllocator, FreedMemoryServesTheNextRequestOfItsSize) {
  CachingAllocator allocator(kLimit);
  for (const size_t bytes : {size_t{100}, size_t{70000}, size_t{3} << 20}) {
    void* first = allocator.allocate(bytes);
    allocator.free(first, bytes);
    EXPECT_GT(allocator.stats().cached, 0u);
    EXPECT_EQ(allocator.allocate(bytes), first);
    EXPECT_EQ(allocator.stats().cached, 0u);
    allocator.free(first, bytes);
    allocator.trim();
  }
}

TEST(CachingAllocator, KeepsNoMoreThanWasInUseOrItsLimit) {
  CachingAllocator allocator(kLimit);
  std::vector<void*> blocks;
  blocks.reserve(6);
  constexpr size_t kBytes = size_t{3} << 20;
  for (int i = 0; i < 6; ++i) blocks.push_back(allocator.allocate(kBytes));
  const size_t peak = allocator.stats().peak;
  EXPECT_EQ(peak, allocator.stats().in_use);
  EXPECT_GT(peak, kLimit);
  for (void* block : blocks) allocator.free(block, kBytes);
  EXPECT_EQ(allocator.stats().in_use, 0u);
  EXPECT_EQ(allocator.stats().cached, peak);
  // No cached block is as large as this, so some are freed.
  constexpr size_t kOther = size_t{7} << 20;
  void* other = allocator.allocate(kOther);
  EXPECT_LE(allocator.stats().in_use + allocator.stats().cached, peak);
  EXPECT_GT(allocator.stats().cached, 0u);
  EXPECT_EQ(allocator.stats().peak, peak);
  // Above the peak only the limit applies.
  constexpr size_t kMore = size_t{20} << 20;
  void* more = allocator.allocate(kMore);
  EXPECT_LE(allocator.stats().cached, kLimit);
  allocator.free(other, kOther);
  allocator.free(more, kMore);
  allocator.trim();
  EXPECT_EQ(allocator.stats().cached, 0u);
}

TEST(CachingAllocator, KeptMemoryIsWritableAgain) {
  CachingAllocator allocator(0);
  constexpr size_t kBytes = size_t{5} << 20;
  void* data = allocator.allocate(kBytes);
  std::memset(data, 0x5a, kBytes);
  allocator.free(data, kBytes);  // the system may reuse it from now on
  ASSERT_EQ(allocator.allocate(kBytes), data);
  std::memset(data, 0xa5, kBytes);
  EXPECT_EQ(static_cast<const uint8_t*>(data)[kBytes - 1], 0xa5);
  allocator.free(data, kBytes);
}

TEST(CachingAllocator, SizesOfThePastMakeRoomForNewOnes) {
  CachingAllocator allocator(kLimit);
  constexpr size_t kOld = size_t{7} << 20;
  constexpr size_t kNew = size_t{2} << 20;
  allocator.free(allocator.allocate(kOld), kOld);
  EXPECT_GE(allocator.stats().cached, kOld);
  allocator.free(allocator.allocate(kNew), kNew);
  EXPECT_GE(allocator.stats().cached, kNew);
  EXPECT_LT(allocator.stats().cached, kOld);
}

TEST(CachingAllocator, WhatWasFreedFirstGoesFirst) {
  CachingAllocator allocator(kLimit);
  constexpr size_t kFirst = size_t{2} << 20, kSecond = size_t{4} << 20, kThird = size_t{3} << 20;
  void* first = allocator.allocate(kFirst);
  allocator.free(first, kFirst);
  void* second = allocator.allocate(kSecond);
  allocator.free(second, kSecond);
  EXPECT_EQ(allocator.stats().cached, kFirst + kSecond);
  void* third = allocator.allocate(kThird);
  allocator.free(third, kThird);
  EXPECT_EQ(allocator.stats().cached, kSecond + kThird);
  EXPECT_EQ(allocator.allocate(kSecond), second);
  EXPECT_EQ(allocator.allocate(kThird), third);
  allocator.free(second, kSecond);
  allocator.free(third, kThird);
}

TEST(CachingAllocator, ImpossibleSizesAreErrors) {
  CachingAllocator allocator(kLimit);
  EXPECT_THROW(allocator.allocate(SIZE_MAX), Error);
  try {
    allocator.allocate(SIZE_MAX / 8);
    FAIL() << "2^61 bytes were given";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::out_of_memory);
    EXPECT_NE(std::string(error.what()).find(std::to_string(SIZE_MAX / 8)), std::string::npos);
  }
  allocator.free(nullptr, 12);
  EXPECT_EQ(allocator.stats().in_use, 0u);
}

TEST(CachingAllocator, ThreadsMayShareIt) {
  CachingAllocator allocator(kLimit);
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&allocator, t] {
      for (size_t i = 0; i < 2000; ++i) {
        const size_t bytes = (i * 7919 + static_cast<size_t>(t) * 104729) % 100000 + 1;
        auto* data = static_cast<unsigned char*>(allocator.allocate(bytes));
        data[0] = data[bytes - 1] = static_cast<unsigned char>(t);
        ASSERT_EQ(data[0], t);
        allocator.free(data, bytes);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(allocator.stats().in_use, 0u);
}

}  // namespace
}  // namespace rbee::cpu
