#pragma once
// Threads beside the connections' one, for work that takes longer than other clients may wait.

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <limits>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "server/http/mailbox.h"

namespace rbee::server {

// Clients take turns, each with its oldest piece of work; a thread that is free takes one of a
// client that has the fewest in work. The destructor waits for pieces in work and drops those that
// wait.
class SideThreads {
 public:
  static constexpr size_t kNoLimit = std::numeric_limits<size_t>::max();
  struct Options {
    size_t most_waiting = kNoLimit;  // pieces of work, besides one in work on each thread
    size_t threads = 1;
    size_t most_each = threads;  // of one client in work at once
  };
  struct Task {
    std::string client;                   // whose turn it takes (Request::sender)
    std::function<Response()> work;       // does not throw
    std::function<void()> on_leave{};     // see submit(); may be empty
    std::function<Response()> refusal{};  // its answer when it gives way; needed with a limit
  };

  explicit SideThreads(Options options);
  ~SideThreads();
  SideThreads(const SideThreads&) = delete;
  SideThreads& operator=(const SideThreads&) = delete;

  // Answered with what the work gives. Work whose client leaves while it waits is not done; work
  // that has begun finds itself cancelled (core/cancel.h). on_leave is called when the client
  // leaves before the answer, on its connection's thread. Where too much waits already, the newest
  // piece of the client that has the most is answered with its refusal, if the new one's client
  // still has fewer with it; else null: the new one is not taken.
  std::shared_ptr<DelayedResponse> submit(Task task);
  // Something waits or is in work.
  bool busy() const;

 private:
  struct Waiting {
    Task task;
    std::shared_ptr<DelayedResponse> response;
    std::shared_ptr<const std::atomic<bool>> abandoned;
  };
  // Has something that waits or is in work.
  struct Client {
    std::string name;
    std::deque<Waiting> waiting;  // the oldest first
    size_t in_work = 0;
  };
  using Clients = std::list<Client>;

  void run();
  // Those below: mutex_ is held.
  size_t count_waiting() const;
  void drop_abandoned();
  Clients::iterator find(std::string_view name);
  Clients::iterator with_more_than(size_t count);  // the one with the most; end(): none has more
  Clients::iterator next();                        // whose turn it is; end(): nobody's
  void end_turn(Clients::iterator client);

  const Options options_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Clients clients_;  // who had a turn the longest ago first
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace rbee::server
