#pragma once
// One request from its arrival to its last event, in workers of every kind.

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "rbee/core/error.h"
#include "server/http/mailbox.h"
#include "server/wire/error_map.h"
#include "server/worker/job_trace.h"

namespace rbee::server {

using Clock = std::chrono::steady_clock;

enum class JobState : uint8_t { queued, running, completed, failed, cancelled };

class Job {
 public:
  // events: handed to the first reader; null if the client that sent the request gets the reply.
  Job(std::string id, std::shared_ptr<EventQueue> events)
      : id_(std::move(id)), has_stream_(events != nullptr), events_(std::move(events)) {}
  virtual ~Job() = default;
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  const std::string& id() const { return id_; }
  JobState state() const;
  bool unread() const;
  Clock::time_point created() const { return created_; }
  std::optional<Clock::time_point> ended() const;
  // The stream on the first call, then null.
  std::shared_ptr<EventQueue> take_events();
  // Ends the job for the client because the worker stops. It does not wait for the engine and
  // ignores later events. A job's own stream says CANCELLED, which hives know; a client that waits
  // for an answer may send its request again.
  void stop();

 protected:
  // Call the next functions with mutex_ held.
  bool over() const { return ended_.has_value(); }
  double seconds_since_arrival() const;
  void start() { state_ = JobState::running; }
  void end(JobState state);
  // Sends the client the error and calls end().
  virtual void fail(JobState state, const WireError& error, std::string_view message) = 0;
  void fail(Code code, std::string_view message);

  // Runs one step of a reply. An engine's callback must not throw; only a lack of memory can throw
  // here, and then the client misses an event.
  template <typename Step>
  void quietly(Step step) noexcept {
    try {
      step();
    } catch (const std::exception& error) {
      note_lost_event(error);
    }
  }

  mutable std::mutex mutex_;
  JobTrace trace_;

 private:
  void note_lost_event(const std::exception& error) const noexcept;

  const std::string id_;
  const bool has_stream_;  // has a stream of its own
  const Clock::time_point created_ = Clock::now();
  std::shared_ptr<EventQueue> events_;
  JobState state_ = JobState::queued;
  std::optional<Clock::time_point> ended_;
};

}  // namespace rbee::server
