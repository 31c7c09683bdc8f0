#pragma once
// Runs work of connections that needs no waiting, such as pipelined requests, one piece at a time
// between other events, so that many such connections do not block others.

#include <boost/asio/post.hpp>
#include <deque>
#include <functional>
#include <utility>

namespace rbee::server {

// For the server's thread only.
class Turns {
 public:
  // Runs the work when its turn comes, on the executor, which must be the same for all calls.
  template <typename Executor>
  void add(const Executor& executor, std::function<void()> work) {
    waiting_.push_back(std::move(work));
    if (waiting_.size() == 1) call(executor);
  }

 private:
  template <typename Executor>
  void call(const Executor& executor) {
    boost::asio::post(executor, [this, executor] {
      // The entry stays in front meanwhile, so that add() inside it does not call a second time.
      const std::function<void()> work = std::move(waiting_.front());
      work();
      waiting_.pop_front();
      if (!waiting_.empty()) call(executor);
    });
  }

  std::deque<std::function<void()>> waiting_;
};

}  // namespace rbee::server
