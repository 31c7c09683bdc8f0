#pragma once
// Work that takes too long for the thread that serves connections and needs no engine.

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "server/http/mailbox.h"

namespace rbee::server {

// Does one piece of work after another on a thread of its own. The destructor waits for the one in
// work and drops those that wait.
class SideWork {
 public:
  using Work = std::function<Response()>;

  // most_waiting: pieces of work that wait at most, besides the one in work.
  explicit SideWork(size_t most_waiting);
  ~SideWork();
  SideWork(const SideWork&) = delete;
  SideWork& operator=(const SideWork&) = delete;

  // Answered with what the work gives, or with what a client is told of its exception. Work whose
  // client leaves while it waits is not done. Throws Refused where too much waits already.
  std::shared_ptr<DelayedResponse> submit(Work work);

 private:
  struct Task {
    Work work;
    std::shared_ptr<DelayedResponse> response;
    std::shared_ptr<const std::atomic<bool>> abandoned;
  };
  void run();

  const size_t most_waiting_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Task> waiting_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace rbee::server
