#include "server/embedding/job.h"

#include "server/wire/error_map.h"

namespace rbee::server {

EmbeddingJob::EmbeddingJob(std::string id, std::shared_ptr<DelayedResponse> response, Answer answer,
                           FailureBody failure, Count count)
    : Job(std::move(id), nullptr),
      response_(std::move(response)),
      answer_(std::move(answer)),
      failure_(failure),
      count_(std::move(count)) {}

void EmbeddingJob::describe(std::string_view operation, const std::string& model) {
  operation_ = cat(operation, " ", model);
  trace_.set("gen_ai.operation.name", std::string(operation));
  trace_.set("gen_ai.request.model", model);
  trace_.set("gen_ai.response.id", id());
}

void EmbeddingJob::on_embedded(engine::EmbeddingResult result) noexcept {
  const std::lock_guard lock(mutex_);
  if (over()) return;
  quietly([&] {
    end(JobState::completed);
    trace_.set("gen_ai.usage.input_tokens", static_cast<int64_t>(result.tokens));
    trace_.finish(operation_, {});
    count_(Outcome::completed, seconds_since_arrival());
    const Answer answer = std::exchange(answer_, nullptr);
    response_->set(answer(std::move(result)));
  });
}

void EmbeddingJob::on_failed(const engine::Failed& failed) noexcept {
  const std::lock_guard lock(mutex_);
  if (over()) return;
  quietly([&] { fail(failed.code, failed.message); });
}

void EmbeddingJob::fail(JobState state, const WireError& error, std::string_view message) {
  end(state);
  count_(state == JobState::cancelled ? Outcome::cancelled : Outcome::failed,
         seconds_since_arrival());
  trace_.finish(operation_, error.code);
  answer_ = nullptr;
  response_->set(json_response(error.status, failure_(error, message)));
}

}  // namespace rbee::server
