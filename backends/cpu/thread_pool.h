#pragma once
// The CPU backend's persistent threads. One region of work runs at a time; callers on different
// threads take turns. Workers spin briefly after a region and then sleep, so the next operation of
// a decode step starts in about a microsecond and idle workers cost nothing.
//
// Headers of simd/ files include this one: it instantiates nothing but casts of the caller's type.

#include <cstdint>
#include <memory>
#include <type_traits>

namespace rbee::cpu {

class ThreadPool {
 public:
  // `threads` counts the caller: 1 runs everything inline. Throws invalid_argument outside 1..1024.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  // The pool that kernels use, made at first use with set_thread_count()'s or the default size.
  static ThreadPool& shared();

  int threads() const { return threads_; }

  using Range = void (*)(void* context, int64_t begin, int64_t end, int thread);

  // Runs body(begin, end, thread) over ranges that cover [0, n) once. No range is shorter than
  // `grain` save the last, and n <= grain runs inline. Threads fetch ranges as they finish, so a
  // slow core, or one that another process uses, does not delay the others. Inside a region it runs
  // inline. Rethrows the first exception of a body after all threads have stopped.
  template <typename Body>
  void parallel_for(int64_t n, int64_t grain, Body&& body) {
    run_ranges(n, grain, &call_range<Body>, address(body));
  }

  // The same for work whose neighbours are adjacent in memory: each thread has a share [t * n /
  // threads, (t + 1) * n / threads), goes through it in order, and then helps the threads after it.
  template <typename Body>
  void parallel_shares(int64_t n, int64_t grain, Body&& body) {
    run_shares(n, grain, &call_range<Body>, address(body));
  }

 private:
  struct State;
  using Task = void (*)(void* context, int thread);

  template <typename Body>
  static void* address(Body& body) {
    return const_cast<void*>(static_cast<const void*>(&body));
  }
  template <typename Body>
  static void call_range(void* context, int64_t begin, int64_t end, int thread) {
    (*static_cast<std::remove_reference_t<Body>*>(context))(begin, end, thread);
  }

  bool inlined(int64_t n, int64_t grain, Range range, void* context) const;
  void run_ranges(int64_t n, int64_t grain, Range range, void* context);
  void run_shares(int64_t n, int64_t grain, Range range, void* context);
  void run_tasks(Task task, void* context);
  void work(int thread);

  int threads_;
  std::unique_ptr<State> state_;
};

// Physical cores that this process may use: its affinity mask without SMT siblings, limited by its
// control group's quota.
int default_thread_count();

}  // namespace rbee::cpu
