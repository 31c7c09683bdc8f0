#pragma once
// A worker for embeddings or ranking behind its routes.

#include <array>
#include <memory>
#include <mutex>
#include <string>

#include "rbee/engine/embedding_api.h"
#include "server/contract/embedding_requests.h"
#include "server/embedding/job.h"
#include "server/worker/service.h"
#include "server/worker/side_work.h"

namespace rbee::server {

class EmbeddingService final : public WorkerService {
 public:
  // The engine outlives the service; the service outlives the server that calls it.
  EmbeddingService(engine::EmbeddingEngine& engine, ServiceOptions options);

  // Each throws Refused, or Error for values that the engine does not take.
  std::shared_ptr<DelayedResponse> embed(const EmbeddingBody& body);
  // vLLM's /pooling, and its /classify.
  std::shared_ptr<DelayedResponse> pool(const EmbeddingBody& body);
  std::shared_ptr<DelayedResponse> classify(const EmbeddingBody& body);
  // The body with its chat's tokens in the place of the chat.
  EmbeddingBody with_chat_read(EmbeddingBody body) const;
  std::shared_ptr<DelayedResponse> embed_llama(const EmbeddingBody& body);
  std::shared_ptr<DelayedResponse> embed_tei(const EmbeddingBody& body);
  std::shared_ptr<DelayedResponse> embed_cohere(const CohereEmbedBody& body);
  std::shared_ptr<DelayedResponse> rerank(const RerankBody& body);
  std::shared_ptr<DelayedResponse> score(const ScoreBody& body);
  // What needs the tokenizer alone, on a thread of its own.
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
  std::vector<int32_t> joined(const EmbeddingParts& parts) const;
  engine::EmbeddingRequest request_of(const EmbeddingBody& body) const;
  engine::EmbeddingRequest embedding_request(const EmbeddingBody& body) const;
  engine::EmbeddingRequest classifying_request(const EmbeddingBody& body) const;
  std::shared_ptr<DelayedResponse> start_vectors(engine::EmbeddingRequest request,
                                                 const VectorEncoding& encoding,
                                                 std::string_view object);
  void count_rejected() override;
  std::shared_ptr<DelayedResponse> start(engine::EmbeddingRequest request, const std::string& id,
                                         EmbeddingJob::Answer answer);

  engine::EmbeddingEngine& engine_;
  const std::shared_ptr<Counts> counts_;
  SideWork side_work_{{}};
};

}  // namespace rbee::server
