#include "server/llm/job.h"

#include "rbee/core/log.h"
#include "server/http/clock.h"

namespace rbee::server {
namespace {

Outcome outcome_of(JobState state) {
  if (state == JobState::completed) return Outcome::completed;
  return state == JobState::cancelled ? Outcome::cancelled : Outcome::failed;
}

// Runs one step of a reply. An engine's callback must not throw; out of memory is all that can
// happen here, and it costs the client an event.
template <typename Step>
void quietly(const std::string& job_id, Step step) noexcept {
  try {
    step();
  } catch (const std::exception& error) {
    log(LogLevel::error, "an event was lost", {{"job_id", job_id}, {"error", error.what()}});
  }
}

}  // namespace

Job::Job(std::string id, std::unique_ptr<Reply> reply, std::shared_ptr<EventQueue> events,
         int64_t memory_bytes, std::shared_ptr<Metrics> metrics)
    : id_(std::move(id)),
      memory_bytes_(memory_bytes),
      metrics_(std::move(metrics)),
      reply_(std::move(reply)),
      events_(std::move(events)) {}

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

double Job::seconds_since_arrival() const {
  return std::chrono::duration<double>(Clock::now() - created_).count();
}

void Job::end_with(Code code, std::string_view message) {
  const std::lock_guard lock(mutex_);
  if (!over()) error_locked(code, message);
}

void Job::on_started(const engine::Started& event) noexcept {
  const std::lock_guard lock(mutex_);
  if (over()) return;
  state_ = JobState::running;
  seed_ = event.seed;
  quietly(id_, [&] {
    reply_->started({.job_id = id_,
                     .model = event.model,
                     .started_at = iso8601(std::chrono::system_clock::now()),
                     .seed = event.seed,
                     .prompt_tokens = event.prompt_tokens});
  });
}

void Job::on_token(const engine::TokenText& event) noexcept {
  const std::lock_guard lock(mutex_);
  if (over()) return;
  if (first_token_ < 0) first_token_ = seconds_since_arrival();
  quietly(id_, [&] { reply_->token(event.text, event.index); });
}

void Job::on_finished(const engine::Finished& event) noexcept {
  const std::lock_guard lock(mutex_);
  if (over()) return;
  quietly(id_, [&] {
    if (event.reason == engine::StopReason::cancelled) {
      return error_locked(Code::cancelled, "the job was cancelled");
    }
    const double speed = event.tokens_out > 1 && event.decode_ms > 0
                             ? (event.tokens_out - 1) * 1000 / event.decode_ms
                             : 0;
    reply_->end({.tokens_out = event.tokens_out,
                 .decode_ms = event.decode_ms,
                 .prompt_tokens = event.prompt_tokens,
                 .prompt_ms = event.prompt_ms,
                 .stop_reason = std::string(engine::wire_name(event.reason)),
                 .stop_sequence = event.stop_sequence,
                 .seed = seed_},
                {.job_id = id_,
                 .tokens_out = event.tokens_out,
                 .decode_ms = event.decode_ms,
                 .tokens_per_second = speed,
                 .memory_bytes = memory_bytes_},
                seconds_since_arrival() * 1000);
    end_locked(JobState::completed, &event);
  });
}

void Job::on_failed(const engine::Failed& event) noexcept {
  const std::lock_guard lock(mutex_);
  if (over()) return;
  quietly(id_, [&] { error_locked(event.code, event.message); });
}

void Job::error_locked(Code code, std::string_view message) {
  reply_->error(wire_error(code), message);
  end_locked(code == Code::cancelled ? JobState::cancelled : JobState::failed, nullptr);
}

void Job::end_locked(JobState state, const engine::Finished* finished) {
  state_ = state;
  ended_ = Clock::now();
  RequestTimes times{.first_token = first_token_, .total = seconds_since_arrival()};
  if (finished != nullptr) {
    times.generation = (finished->prompt_ms + finished->decode_ms) / 1000;
    if (finished->tokens_out > 1) {
      times.per_token = finished->decode_ms / 1000 / (finished->tokens_out - 1);
    }
  }
  metrics_->count(outcome_of(state), times);
}

}  // namespace rbee::server
