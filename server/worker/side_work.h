#pragma once
// Runs work that needs no engine but takes too long for the thread that serves connections.

#include <functional>
#include <memory>
#include <string>

#include "server/http/side_threads.h"
#include "server/worker/routes.h"

namespace rbee::server {

// Runs pieces of work on its own threads, as SideThreads, and turns their exceptions into answers.
class SideWork {
 public:
  using Work = std::function<Response()>;
  struct Options {
    size_t most_waiting = 64;  // pieces of work, besides one running on each thread
    size_t threads = 1;
    size_t most_each = threads;          // running pieces of one client
    std::function<void()> on_refused{};  // called for each refused piece; may be empty
  };
  struct Task {
    std::string client;  // clients take turns (Request::sender)
    Work work;
    ErrorBody error_body{};            // for answers to its exceptions, as in error_answer()
    std::function<void()> on_leave{};  // as in SideThreads::submit; may be empty
  };

  explicit SideWork(Options options);

  // As SideThreads::submit, but also answers exceptions. Throws Refused if the task is not
  // accepted, and calls on_refused for each refused piece.
  std::shared_ptr<DelayedResponse> submit(Task task);
  // Something waits or runs.
  bool busy() const { return threads_.busy(); }

 private:
  void count_refused() const;

  const Options options_;
  SideThreads threads_;
};

}  // namespace rbee::server
