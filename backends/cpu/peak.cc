#include "backends/cpu/peak.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

namespace rbee::cpu {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Runs `work(thread)` on all threads at once and returns the wall time of the slowest.
template <typename Work>
double timed_on_all(int threads, Work work) {
  std::atomic<int> ready{0};
  std::atomic<bool> go{false};
  std::vector<std::thread> pool;
  pool.reserve(static_cast<size_t>(threads));
  for (int t = 0; t < threads; ++t) {
    pool.emplace_back([&, t] {
      ready.fetch_add(1);
      while (!go.load(std::memory_order_acquire)) {
      }
      work(t);
    });
  }
  while (ready.load() < threads) std::this_thread::yield();
  const auto start = Clock::now();
  go.store(true, std::memory_order_release);
  for (std::thread& thread : pool) thread.join();
  return seconds_since(start);
}

double operations_per_second(PeakLoop loop, int threads, double seconds) {
  int64_t rounds = 1000;
  for (double once = 0; once < seconds / 4 && rounds < (int64_t{1} << 40);) {
    const auto start = Clock::now();
    loop(rounds);
    once = seconds_since(start);
    if (once < seconds / 4) rounds *= 2;
  }
  double best = 0;
  for (int i = 0; i < 3; ++i) {
    std::vector<double> done(static_cast<size_t>(threads));
    const double time =
        timed_on_all(threads, [&](int t) { done[static_cast<size_t>(t)] = loop(rounds * 4); });
    double total = 0;
    for (double count : done) total += count;
    best = std::max(best, total / time);
  }
  return best;
}

// Sums 64-bit words over independent chains, so that the memory and not the adder is the limit.
uint64_t sum_words(const uint64_t* words, size_t count) {
  uint64_t sums[8] = {};
  for (size_t i = 0; i + 8 <= count; i += 8) {
    for (size_t j = 0; j < 8; ++j) sums[j] += words[i + j];
  }
  uint64_t sum = 0;
  for (uint64_t part : sums) sum += part;
  return sum;
}

double read_bandwidth(int threads) {
  constexpr size_t kWords = size_t{16} << 20;  // 128 MiB a thread: past any cache
  std::vector<std::unique_ptr<uint64_t[]>> data(static_cast<size_t>(threads));
  timed_on_all(threads, [&](int t) {
    auto& words = data[static_cast<size_t>(t)];
    words = std::make_unique_for_overwrite<uint64_t[]>(kWords);
    std::fill_n(words.get(), kWords, uint64_t{1});
  });
  std::atomic<uint64_t> sink{0};
  double best = 0;
  for (int i = 0; i < 3; ++i) {
    const double time = timed_on_all(
        threads, [&](int t) { sink += sum_words(data[static_cast<size_t>(t)].get(), kWords); });
    best = std::max(best, static_cast<double>(threads) * kWords * sizeof(uint64_t) / time);
  }
  return best;
}

}  // namespace

double peak_f32_portable(int64_t rounds) {
  float sums[16] = {};
  for (int64_t i = 0; i < rounds; ++i) {
    for (float& sum : sums) sum = sum * 0.999f + 0.5f;
    asm volatile("" : : "g"(&sums) : "memory");
  }
  return static_cast<double>(rounds) * 32;
}

Peak measure_peak(int threads, double seconds) {
  Peak peak;
  peak.read_bytes_per_second = read_bandwidth(threads);
  PeakLoop f32 = peak_f32_portable;
  PeakLoop int8 = nullptr;
  PeakLoop bf16 = nullptr;
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    f32 = peak_f32_avx2;
    int8 = peak_int8_avx2;
  }
  if (__builtin_cpu_supports("avx512f")) f32 = peak_f32_avx512;
  if (__builtin_cpu_supports("avx512vnni")) int8 = peak_int8_avx512;
  if (__builtin_cpu_supports("avx512bf16")) bf16 = peak_bf16_avx512bf16;
#endif
  peak.f32_flops = operations_per_second(f32, threads, seconds);
  if (int8 != nullptr) peak.int8_ops = operations_per_second(int8, threads, seconds);
  if (bf16 != nullptr) peak.bf16_flops = operations_per_second(bf16, threads, seconds);
  return peak;
}

}  // namespace rbee::cpu
