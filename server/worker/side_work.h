#pragma once
// Work that takes too long for the thread that serves connections and needs no engine.

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "server/http/mailbox.h"
#include "server/worker/routes.h"

namespace rbee::server {

// Does pieces of work on threads of its own. Clients take turns, each with its oldest piece; a
// thread that is free takes one of a client that has the fewest in work. The destructor waits for
// those in work and drops those that wait.
class SideWork {
 public:
  using Work = std::function<Response()>;
  struct Options {
    size_t most_waiting = 64;  // pieces of work, besides one in work on each thread
    size_t threads = 1;
    size_t most_each = threads;          // of one client in work at once
    std::function<void()> on_refused{};  // for each piece that is refused; may be empty
  };
  struct Task {
    std::string client;  // whose turn it takes (Request::sender)
    Work work;
    ErrorBody error_body{};            // of the answers to its exceptions, as error_answer()
    std::function<void()> on_leave{};  // see submit(); may be empty
  };

  explicit SideWork(Options options);
  ~SideWork();
  SideWork(const SideWork&) = delete;
  SideWork& operator=(const SideWork&) = delete;

  // Answered with what the work gives, or with what a client is told of its exception. Work whose
  // client leaves while it waits is not done; work that has begun finds itself cancelled
  // (core/cancel.h). on_leave is called when the client leaves before the answer, on its
  // connection's thread. Where too much waits already, the newest piece of the client that has the
  // most is answered as refused, if the new one's client still has fewer with it; else Refused is
  // thrown.
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
  Waiting take_newest_of_most(size_t fewer);  // throws Refused
  Clients::iterator next();                   // whose turn it is; end(): nobody's
  void end_turn(Clients::iterator client);

  const Options options_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Clients clients_;  // who had a turn the longest ago first
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace rbee::server
