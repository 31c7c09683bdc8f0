#pragma once
// A worker for embeddings or reranking, behind its routes.

#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "rbee/engine/api/embedding.h"
#include "server/embedding/job.h"
#include "server/http/router.h"
#include "server/worker/service.h"
#include "server/worker/side_work.h"

namespace rbee::server {

class EmbeddingService;
using EmbeddingRoute = ServiceRoute<EmbeddingService>;

class EmbeddingService final : public WorkerService {
 public:
  // The engine must outlive the service, and the service the server that calls it.
  EmbeddingService(engine::EmbeddingEngine& engine, ServiceOptions options);

  // Makes the answer from its job's id and the engine's result.
  using Answer = std::function<Response(const std::string& id, engine::EmbeddingResult result)>;
  // Throws Refused, or Error for values that the engine does not accept. failure: makes the body of
  // an error.
  std::shared_ptr<DelayedResponse> start(engine::EmbeddingRequest request, Answer answer,
                                         FailureBody failure);
  // Runs work that needs only the tokenizer on a thread of its own.
  std::shared_ptr<DelayedResponse> beside(SideWork::Task task) {
    return side_work_.submit(std::move(task));
  }
  const engine::EmbeddingEngine& engine() const { return engine_; }

  const engine::EmbeddingInfo& model() const { return engine_.info(); }
  void cancel(const std::string& id) override { engine_.cancel(id); }
  std::string health_json() const override;
  std::string metrics() const override;
  Page page() const override;

 private:
  struct Counts;

  State state() const override;
  void count_rejected() override;

  engine::EmbeddingEngine& engine_;
  const std::shared_ptr<Counts> counts_;
  SideWork side_work_{{}};
};

}  // namespace rbee::server
