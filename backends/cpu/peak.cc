#include "backends/cpu/peak.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "backends/cpu/cpu_features.h"
#include "backends/cpu/system/system.h"
#include "rbee/core/error.h"

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

// Memory in huge pages where the system gives them, as the weights of a model are.
class Pages {
 public:
  explicit Pages(size_t bytes) : bytes_(bytes) {
    void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED) fail(Code::out_of_memory, "measure_read", bytes, " bytes");
    prefer_huge_pages(data, bytes);
    words_ = static_cast<uint64_t*>(data);
    std::fill_n(words_, bytes / sizeof(uint64_t), uint64_t{1});
  }
  ~Pages() { munmap(words_, bytes_); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  const uint64_t* words() const { return words_; }

 private:
  size_t bytes_;
  uint64_t* words_;
};

constexpr size_t kStreams = 4;         // places read side by side: more loads are under way
constexpr size_t kLine = 8;            // words of a cache line
constexpr size_t kAhead = 32 * kLine;  // words; beyond the hardware's own prefetches

// The sum of `count` words, a multiple of kStreams * kLine.
uint64_t sum_words(const uint64_t* words, size_t count) {
  uint64_t sums[kLine] = {};
  const size_t part = count / kStreams;
  for (size_t i = 0; i < part; i += kLine) {
    for (size_t s = 0; s < kStreams; ++s) {
      const uint64_t* line = words + s * part + i;
      __builtin_prefetch(line + kAhead);
      for (size_t j = 0; j < kLine; ++j) sums[j] += line[j];
    }
  }
  uint64_t sum = 0;
  for (uint64_t one : sums) sum += one;
  return sum;
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

double measure_read(int threads, int64_t bytes) {
  constexpr size_t kStep = kStreams * kLine;
  const size_t share = static_cast<size_t>(bytes) / sizeof(uint64_t) / static_cast<size_t>(threads);
  const size_t words = std::max(share / kStep, size_t{1}) * kStep;
  std::vector<std::unique_ptr<Pages>> data(static_cast<size_t>(threads));
  timed_on_all(threads, [&](int t) {
    data[static_cast<size_t>(t)] = std::make_unique<Pages>(words * sizeof(uint64_t));
  });
  // Enough passes that starting and ending the threads does not count.
  const int passes = static_cast<int>(std::clamp<int64_t>((int64_t{256} << 20) / bytes, 1, 1000));
  std::atomic<uint64_t> sink{0};
  double best = 0;
  for (int i = 0; i < 5; ++i) {
    const double time = timed_on_all(threads, [&](int t) {
      for (int pass = 0; pass < passes; ++pass) {
        sink += sum_words(data[static_cast<size_t>(t)]->words(), words);
      }
    });
    const double read = static_cast<double>(words * sizeof(uint64_t)) * threads * passes;
    best = std::max(best, read / time);
  }
  return best;
}

Peak measure_peak(int threads, double seconds) {
  Peak peak;
  peak.read_bytes_per_second = measure_read(threads, threads * (int64_t{128} << 20));
  PeakLoop f32 = peak_f32_portable;
  PeakLoop int8 = nullptr;
  PeakLoop bf16 = nullptr;
  [[maybe_unused]] const auto usable = [](Isa isa) { return missing_isa(isa) == nullptr; };
#if defined(__x86_64__)
  if (usable(Isa::avx2)) {
    f32 = peak_f32_avx2;
    int8 = peak_int8_avx2;
  }
  if (usable(Isa::avxvnni)) int8 = peak_int8_avxvnni;
  if (usable(Isa::avx512)) {
    f32 = peak_f32_avx512;
    int8 = peak_int8_avx512;
  }
  if (usable(Isa::avx512bf16)) bf16 = peak_bf16_avx512bf16;
  if (usable(Isa::amx)) {
    int8 = peak_int8_amx;
    bf16 = peak_bf16_amx;
  }
#elif defined(__aarch64__)
  if (usable(Isa::neon)) {
    f32 = peak_f32_neon;
    int8 = peak_int8_neon;
  }
  if (usable(Isa::dotprod)) int8 = peak_int8_dotprod;
  if (usable(Isa::i8mm)) {
    int8 = peak_int8_i8mm;
    bf16 = peak_bf16_i8mm;
  }
#endif
  peak.f32_flops = operations_per_second(f32, threads, seconds);
  if (int8 != nullptr) peak.int8_ops = operations_per_second(int8, threads, seconds);
  if (bf16 != nullptr) peak.bf16_flops = operations_per_second(bf16, threads, seconds);
  return peak;
}

}  // namespace rbee::cpu
