#pragma once
// The threads that write bodies to files, so that no connection waits for the disk of another.
// Internal to server/http.

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace rbee::server {

// First come, first served; a connection gives its next piece when the last one is written, so
// connections take turns. The threads start with the first piece.
class BodyWriters {
 public:
  explicit BodyWriters(size_t threads) : most_threads_(threads) {}
  // Does what waits.
  ~BodyWriters();
  BodyWriters(const BodyWriters&) = delete;
  BodyWriters& operator=(const BodyWriters&) = delete;

  // work: must not throw. Throws std::system_error if no thread can be started.
  void submit(std::function<void()> work);

 private:
  void run();

  const size_t most_threads_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::deque<std::function<void()>> waiting_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace rbee::server
