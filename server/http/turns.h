#pragma once
// Work of connections that lies there already, such as pipelined requests: one piece of it between
// two looks at what else happened, so that many such connections do not make others wait.

#include <boost/asio/post.hpp>
#include <deque>
#include <functional>
#include <utility>

namespace rbee::server {

// Used on the server's thread only.
class Turns {
 public:
  // The work runs when its turn comes, on the executor, which is the same for all of it.
  template <typename Executor>
  void add(const Executor& executor, std::function<void()> work) {
    waiting_.push_back(std::move(work));
    if (waiting_.size() == 1) call(executor);
  }

 private:
  template <typename Executor>
  void call(const Executor& executor) {
    boost::asio::post(executor, [this, executor] {
      // It stays in front meanwhile: what it adds does not call a second time.
      const std::function<void()> work = std::move(waiting_.front());
      work();
      waiting_.pop_front();
      if (!waiting_.empty()) call(executor);
    });
  }

  std::deque<std::function<void()>> waiting_;
};

}  // namespace rbee::server
