#pragma once
// Threads for work that would delay other clients too long on the connections' thread.

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

// Clients take turns, each with its oldest piece of work. A free thread takes a piece of a client
// with the fewest running. The destructor waits for running pieces and drops waiting ones.
class SideThreads {
 public:
  static constexpr size_t kNoLimit = std::numeric_limits<size_t>::max();
  struct Options {
    size_t most_waiting = kNoLimit;  // pieces of work, besides one running on each thread
    size_t threads = 1;
    size_t most_each = threads;  // running pieces of one client
  };
  struct Task {
    std::string client;                   // clients take turns (Request::sender)
    std::function<Response()> work;       // must not throw
    std::function<void()> on_leave{};     // see submit(); may be empty
    std::function<Response()> refusal{};  // its answer if it gives way; needed with a limit
  };

  explicit SideThreads(Options options);
  ~SideThreads();
  SideThreads(const SideThreads&) = delete;
  SideThreads& operator=(const SideThreads&) = delete;

  // Answers with the work's result. If the client leaves, waiting work is dropped and running work
  // is cancelled (core/cancel.h). If the client leaves before the answer, its connection's thread
  // calls on_leave. If too much waits, the client with the most waiting pieces gives way with its
  // newest, which gets its refusal, as long as the new piece's client has fewer even with the new
  // one. Else submit() returns null and does not accept the task.
  std::shared_ptr<DelayedResponse> submit(Task task);
  // Something waits or runs.
  bool busy() const;

 private:
  struct Waiting {
    Task task;
    std::shared_ptr<DelayedResponse> response;
    std::shared_ptr<const std::atomic<bool>> abandoned;
  };
  // A client with waiting or running work.
  struct Client {
    std::string name;
    std::deque<Waiting> waiting;  // oldest first
    size_t in_work = 0;
  };
  using Clients = std::list<Client>;

  void run();
  // Call the next functions with mutex_ held.
  size_t count_waiting() const;
  void drop_abandoned();
  Clients::iterator find(std::string_view name);
  Clients::iterator with_more_than(size_t count);  // the one with the most; end(): none has more
  Clients::iterator next();                        // the next turn; end(): none
  void end_turn(Clients::iterator client);

  const Options options_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Clients clients_;  // least recent turn first
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace rbee::server
