#pragma once
// Work that takes too long for the thread that serves connections and needs no engine.

#include <functional>
#include <memory>
#include <string>

#include "server/http/side_threads.h"
#include "server/worker/routes.h"

namespace rbee::server {

// Does pieces of work on threads of its own, as SideThreads, and answers for what they throw.
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
    std::function<void()> on_leave{};  // as SideThreads::submit; may be empty
  };

  explicit SideWork(Options options);

  // As SideThreads::submit, answered also with what a client is told of an exception. Throws
  // Refused where it is not taken; on_refused is called for each that is refused.
  std::shared_ptr<DelayedResponse> submit(Task task);
  // Something waits or is in work.
  bool busy() const { return threads_.busy(); }

 private:
  void count_refused() const;

  const Options options_;
  SideThreads threads_;
};

}  // namespace rbee::server
