#pragma once
// Work that takes too long for the thread that serves connections and needs no engine.

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "server/http/mailbox.h"

namespace rbee::server {

// Does one piece of work after another on threads of its own. The destructor waits for those in
// work and drops those that wait.
class SideWork {
 public:
  using Work = std::function<Response()>;

  // most_waiting: pieces of work that wait at most, besides one in work on each thread.
  explicit SideWork(size_t most_waiting, size_t threads = 1);
  ~SideWork();
  SideWork(const SideWork&) = delete;
  SideWork& operator=(const SideWork&) = delete;

  // Answered with what the work gives, or with what a client is told of its exception. Work whose
  // client leaves while it waits is not done; work that has begun finds itself cancelled
  // (core/cancel.h). on_leave: called when the client leaves before the
  // answer, on its connection's thread; may be empty. Throws Refused where too much waits already.
  std::shared_ptr<DelayedResponse> submit(Work work, std::function<void()> on_leave = {});
  // Something waits or is in work.
  bool busy() const;

 private:
  struct Task {
    Work work;
    std::shared_ptr<DelayedResponse> response;
    std::shared_ptr<const std::atomic<bool>> abandoned;
  };
  void run();

  const size_t most_waiting_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Task> waiting_;
  size_t in_work_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace rbee::server
