#include "tests/support/rank_threads.h"

#include <unistd.h>

#include <chrono>
#include <exception>
#include <mutex>
#include <thread>

namespace rbee::harness {

RankThreads::RankThreads(int ranks) : ranks_(ranks) {
  if (ranks == 1) return;
  const int fd = cpu::GroupMemory::create(ranks);
  for (int rank = 0; rank < ranks; ++rank) {
    memories_.push_back(cpu::GroupMemory::attach(fd, rank));
    // A loaded machine may hold a thread up for long.
    memories_.back()->set_time_limit(std::chrono::seconds(60));
  }
  close(fd);
}

GroupView RankThreads::view(int rank) const {
  return memories_.empty() ? GroupView{} : memory(rank).view();
}

void RankThreads::run(const std::function<void(int rank)>& body) const {
  if (memories_.empty()) return body(0);
  std::mutex mutex;
  std::exception_ptr first;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks_; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        body(rank);
      } catch (const std::exception& error) {
        {
          const std::scoped_lock lock(mutex);
          if (!first) first = std::current_exception();
        }
        memory(rank).end(error.what());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (first) std::rethrow_exception(first);
}

}  // namespace rbee::harness
