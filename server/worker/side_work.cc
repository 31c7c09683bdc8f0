#include "server/worker/side_work.h"

#include <sys/resource.h>

#include "rbee/core/cancel.h"
#include "rbee/core/cat.h"
#include "server/contract/error_map.h"
#include "server/worker/routes.h"
#include "server/worker/service.h"

namespace rbee::server {
namespace {

constexpr int kNiceness = 10;

Response answer_of(const SideWork::Work& work) {
  try {
    try {
      return work();
    } catch (const std::exception&) {
      return error_answer(std::current_exception());
    }
  } catch (const std::exception& error) {
    const WireError wire = wire_error(Code::internal);
    return json_response(wire.status, error_json(wire.code, error.what()));
  }
}

}  // namespace

SideWork::SideWork(size_t most_waiting, size_t threads) : most_waiting_(most_waiting) {
  for (size_t i = 0; i < threads; ++i) threads_.emplace_back([this] { run(); });
}

SideWork::~SideWork() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

std::shared_ptr<DelayedResponse> SideWork::submit(Work work, std::function<void()> on_leave) {
  auto abandoned = std::make_shared<std::atomic<bool>>(false);
  auto response = std::make_shared<DelayedResponse>([abandoned, on_leave = std::move(on_leave)] {
    *abandoned = true;
    if (on_leave) on_leave();
  });
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(waiting_, [](const Task& task) { return task.abandoned->load(); });
    if (waiting_.size() >= most_waiting_) {
      throw Refused(Refused::Why::overloaded, cat(most_waiting_, " such requests wait already"));
    }
    waiting_.push_back({std::move(work), response, std::move(abandoned)});
  }
  changed_.notify_all();
  return response;
}

bool SideWork::busy() const {
  const std::lock_guard lock(mutex_);
  return in_work_ > 0 || !waiting_.empty();
}

void SideWork::run() {
  // Where processors are few, answers that run come before those that are made ready. On Linux it
  // is the thread that this is about.
  setpriority(PRIO_PROCESS, 0, kNiceness);
  while (true) {
    Task task;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return stopping_ || !waiting_.empty(); });
      if (stopping_) return;
      task = std::move(waiting_.front());
      waiting_.pop_front();
      ++in_work_;
    }
    if (!task.abandoned->load()) {
      const CancelScope scope(*task.abandoned);
      task.response->set(answer_of(task.work));
    }
    const std::lock_guard lock(mutex_);
    --in_work_;
  }
}

}  // namespace rbee::server
