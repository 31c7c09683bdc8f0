#pragma once
// One request for vectors or scores: turns the engine's result into the client's answer.

#include <functional>
#include <memory>
#include <string>

#include "rbee/engine/api/embedding.h"
#include "server/http/mailbox.h"
#include "server/wire/error_map.h"
#include "server/worker/job.h"
#include "server/worker/prometheus.h"

namespace rbee::server {

// The body of an error's answer.
using FailureBody = std::string (*)(const WireError& error, std::string_view message);

class EmbeddingJob final : public Job, public engine::EmbeddingSink {
 public:
  using Answer = std::function<Response(engine::EmbeddingResult)>;
  using Count = std::function<void(Outcome, double seconds)>;

  EmbeddingJob(std::string id, std::shared_ptr<DelayedResponse> response, Answer answer,
               FailureBody failure, Count count);

  // Sets what its trace says: "embeddings" or the like, and the model. Call it before the engine
  // has the job.
  void describe(std::string_view operation, const std::string& model);
  void on_embedded(engine::EmbeddingResult result) noexcept override;
  void on_failed(const engine::Failed& failed) noexcept override;

 private:
  using Job::fail;
  void fail(JobState state, const WireError& error, std::string_view message) override;

  const std::shared_ptr<DelayedResponse> response_;
  Answer answer_;  // dropped once given: it may hold the request's texts
  const FailureBody failure_;
  const Count count_;
  std::string operation_;  // for the trace
};

}  // namespace rbee::server
