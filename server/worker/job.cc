#include "server/worker/job.h"

#include "rbee/core/log.h"

namespace rbee::server {

JobState Job::state() const {
  const std::lock_guard lock(mutex_);
  return state_;
}

bool Job::unread() const {
  const std::lock_guard lock(mutex_);
  return events_ != nullptr;
}

std::optional<Clock::time_point> Job::ended() const {
  const std::lock_guard lock(mutex_);
  return ended_;
}

std::shared_ptr<EventQueue> Job::take_events() {
  const std::lock_guard lock(mutex_);
  return std::exchange(events_, nullptr);
}

void Job::stop() {
  const std::lock_guard lock(mutex_);
  if (over()) return;
  fail(JobState::cancelled, has_stream_ ? wire_error(Code::cancelled) : stopping_error(),
       "the worker is stopping");
}

void Job::fail(Code code, std::string_view message) {
  fail(code == Code::cancelled ? JobState::cancelled : JobState::failed, wire_error(code), message);
}

double Job::seconds_since_arrival() const {
  return std::chrono::duration<double>(Clock::now() - created_).count();
}

void Job::end(JobState state) {
  state_ = state;
  ended_ = Clock::now();
}

void Job::note_lost_event(const std::exception& error) const noexcept {
  try {
    log(LogLevel::error, "an event was lost", {{"job_id", id_}, {"error", error.what()}});
  } catch (const std::exception&) {  // the failure cannot be reported either
  }
}

}  // namespace rbee::server
