#include "backends/cpu/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "backends/cpu/control_groups.h"
#include "backends/cpu/cpu_backend.h"
#include "backends/cpu/system/system.h"
#include "backends/cpu/topology.h"
#include "rbee/core/error.h"

namespace rbee::cpu {
namespace {

constexpr int kMaxThreads = 1024;
constexpr auto kSpinTime = std::chrono::microseconds(150);
// More ranges than threads, so that early finishers take over from a slow thread.
constexpr int64_t kRangesPerThread = 4;
constexpr int64_t kRangesPerShare = 8;

std::atomic<int> requested_threads{0};
// State::gate: the count of entered threads is below the flag, the region's number above.
constexpr uint64_t kClosed = uint64_t{1} << 31;
constexpr uint64_t kCount = kClosed - 1;
constexpr int kNumberShift = 32;
// The caller's place in the region that it runs in; -1 outside of regions.
thread_local int current_thread = -1;

void relax() {
#ifdef __x86_64__
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  // Waits for some ten cycles, where `yield` is nothing on most processors.
  asm volatile("isb" : : : "memory");
#else
  std::this_thread::yield();
#endif
}

// Spins until done() holds or the spin time is over; true when done() held.
template <typename Done>
bool spin_until(Done done) {
  for (int i = 0; i < 64; ++i) {
    if (done()) return true;
    relax();
  }
  const auto end = std::chrono::steady_clock::now() + kSpinTime;
  while (std::chrono::steady_clock::now() < end) {
    for (int i = 0; i < 32; ++i) {
      if (done()) return true;
      relax();
    }
  }
  return done();
}

class RegionScope {
 public:
  RegionScope() { current_thread = 0; }
  ~RegionScope() { current_thread = -1; }
};

}  // namespace

struct ThreadPool::State {
  std::mutex region;  // held for the length of a region
  Task task = nullptr;
  void* context = nullptr;
  alignas(64) std::atomic<uint32_t> epoch{0};  // a new value starts a region
  alignas(64) std::atomic<int> sleeping{0};
  // Workers enter a region until it is closed: it does not wait for one that has not begun.
  alignas(64) std::atomic<uint64_t> gate{kClosed};
  alignas(64) std::atomic<uint64_t> finished{0};  // of the threads that entered
  std::atomic<bool> stopping{false};
  std::mutex error_mutex;
  std::exception_ptr error;
  std::vector<std::thread> workers;

  // Into the region of this number; false when it is closed, or another one is open.
  bool enter(uint32_t number) {
    uint64_t seen = gate.load(std::memory_order_acquire);
    while (seen >> kNumberShift == number && (seen & kClosed) == 0) {
      if (gate.compare_exchange_weak(seen, seen + 1, std::memory_order_acq_rel)) return true;
    }
    return false;
  }

  void run_one(int thread) {
    try {
      task(context, thread);
    } catch (...) {
      const std::lock_guard lock(error_mutex);
      if (!error) error = std::current_exception();
    }
  }
};

ThreadPool::ThreadPool(int threads) : threads_(threads), state_(std::make_unique<State>()) {
  check(threads >= 1 && threads <= kMaxThreads, "threads", threads, " is outside of 1 to ",
        kMaxThreads);
  const std::vector<std::vector<int>> cores = physical_cores();
  // Fewer threads than cores are left to the scheduler: pools of several processes would otherwise
  // meet on the same few cores.
  const bool pinned = static_cast<size_t>(threads) == cores.size();
  for (int thread = 1; thread < threads; ++thread) {
    const std::vector<int> home = pinned ? cores[static_cast<size_t>(thread)] : std::vector<int>{};
    state_->workers.emplace_back([this, thread, home] {
      if (!home.empty()) pin_to(home);
      work(thread);
    });
  }
}

ThreadPool::~ThreadPool() {
  state_->stopping = true;
  state_->epoch.fetch_add(1);
  state_->epoch.notify_all();
  for (std::thread& worker : state_->workers) worker.join();
}

ThreadPool& ThreadPool::shared() {
  static ThreadPool pool([] {
    const int requested = requested_threads.load();
    return requested > 0 ? requested : default_thread_count();
  }());
  return pool;
}

void ThreadPool::work(int thread) {
  current_thread = thread;
  State& state = *state_;
  uint32_t seen = 0;
  for (;;) {
    const auto started = [&] { return state.epoch.load(std::memory_order_acquire) != seen; };
    if (!spin_until(started)) {
      state.sleeping.fetch_add(1);
      while (!started()) state.epoch.wait(seen);
      state.sleeping.fetch_sub(1);
    }
    seen = state.epoch.load(std::memory_order_acquire);
    if (state.stopping) return;
    if (!state.enter(seen)) continue;
    state.run_one(thread);
    state.finished.fetch_add(1, std::memory_order_release);
  }
}

void ThreadPool::run_tasks(Task task, void* context) {
  State& state = *state_;
  const std::lock_guard lock(state.region);
  const RegionScope scope;
  state.task = task;
  state.context = context;
  state.finished.store(0, std::memory_order_relaxed);
  const uint32_t number = state.epoch.load(std::memory_order_relaxed) + 1;
  state.gate.store(uint64_t{number} << kNumberShift, std::memory_order_release);
  state.epoch.store(number);
  if (state.sleeping.load() > 0) state.epoch.notify_all();
  state.run_one(0);
  const uint64_t entered = state.gate.fetch_or(kClosed, std::memory_order_acq_rel) & kCount;
  const auto finished = [&] { return state.finished.load(std::memory_order_acquire) == entered; };
  while (!spin_until(finished)) std::this_thread::yield();
  if (state.error) std::rethrow_exception(std::exchange(state.error, nullptr));
}

// Runs all of it on the calling thread where others would not help; true when it did.
bool ThreadPool::inlined(int64_t n, int64_t grain, Range range, void* context) const {
  if (n > grain && threads_ > 1 && current_thread < 0) return false;
  if (n > 0) range(context, 0, n, std::max(current_thread, 0));
  return true;
}

void ThreadPool::run_ranges(int64_t n, int64_t grain, Range range, void* context) {
  grain = std::max<int64_t>(grain, 1);
  if (inlined(n, grain, range, context)) return;
  struct Region {
    std::atomic<int64_t> next{0};
    int64_t n, step;
    Range range;
    void* context;
  } region{.n = n,
           .step = std::max(grain, (n - 1) / (threads_ * kRangesPerThread) + 1),
           .range = range,
           .context = context};
  run_tasks(
      [](void* shared, int thread) {
        auto& r = *static_cast<Region*>(shared);
        for (;;) {
          const int64_t begin = r.next.fetch_add(r.step, std::memory_order_relaxed);
          if (begin >= r.n) return;
          r.range(r.context, begin, std::min(begin + r.step, r.n), thread);
        }
      },
      &region);
}

void ThreadPool::run_shares(int64_t n, int64_t grain, Range range, void* context) {
  grain = std::max<int64_t>(grain, 1);
  if (inlined(n, grain, range, context)) return;
  struct alignas(64) Share {
    std::atomic<int64_t> next;
    int64_t end;
  };
  struct Region {
    std::vector<Share> shares;
    int64_t step;
    Range range;
    void* context;
  };
  static thread_local Region region;
  if (std::ssize(region.shares) != threads_) {
    region.shares = std::vector<Share>(static_cast<size_t>(threads_));
  }
  for (int64_t t = 0; t < threads_; ++t) {
    Share& share = region.shares[static_cast<size_t>(t)];
    share.next.store(t * n / threads_, std::memory_order_relaxed);
    share.end = (t + 1) * n / threads_;
  }
  region.step = std::max(grain, (n - 1) / (threads_ * kRangesPerShare) + 1);
  region.range = range;
  region.context = context;
  run_tasks(
      [](void* shared, int thread) {
        auto& r = *static_cast<Region*>(shared);
        const size_t threads = r.shares.size();
        for (size_t i = 0; i < threads; ++i) {
          Share& share = r.shares[(static_cast<size_t>(thread) + i) % threads];
          for (;;) {
            const int64_t begin = share.next.fetch_add(r.step, std::memory_order_relaxed);
            if (begin >= share.end) break;
            r.range(r.context, begin, std::min(begin + r.step, share.end), thread);
          }
        }
      },
      &region);
}

int default_thread_count() {
  const int cores = static_cast<int>(physical_cores().size());
  const int quota = ControlGroups().processors();
  return std::clamp(quota > 0 ? std::min(cores, quota) : cores, 1, kMaxThreads);
}

void set_thread_count(int threads) {
  check(threads >= 0 && threads <= kMaxThreads, "threads", threads, " is outside of 0 to ",
        kMaxThreads);
  requested_threads = threads;
}

}  // namespace rbee::cpu
