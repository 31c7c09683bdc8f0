#include "server/http/body_writers.h"

#include <utility>

namespace rbee::server {

BodyWriters::~BodyWriters() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void BodyWriters::submit(std::function<void()> work) {
  {
    const std::lock_guard lock(mutex_);
    while (threads_.size() < most_threads_) threads_.emplace_back([this] { run(); });
    waiting_.push_back(std::move(work));
  }
  changed_.notify_one();
}

void BodyWriters::run() {
  while (true) {
    std::function<void()> work;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return stopping_ || !waiting_.empty(); });
      if (waiting_.empty()) return;
      work = std::move(waiting_.front());
      waiting_.pop_front();
    }
    work();
  }
}

}  // namespace rbee::server
