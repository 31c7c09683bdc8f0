#pragma once
// The chat worker behind its routes: turns requests into jobs of the engine.

#include <memory>
#include <string>

#include "rbee/engine/engine.h"
#include "server/contract/openai_requests.h"
#include "server/llm/job.h"
#include "server/llm/metrics.h"
#include "server/llm/openai_reply.h"
#include "server/worker/service.h"

namespace rbee::server {

class LlmService final : public WorkerService {
 public:
  // The engine outlives the service; the service outlives the server that calls it.
  LlmService(engine::Engine& engine, ServiceOptions options)
      : WorkerService(std::move(options)), engine_(engine) {}

  // Each throws Refused, or Error for values that the engine does not take.
  std::shared_ptr<Job> create_job(const GenerateRequest& request);  // read through take_events()
  std::shared_ptr<EventQueue> infer_stream(const GenerateRequest& request);
  std::shared_ptr<DelayedResponse> infer_text(const GenerateRequest& request);
  std::shared_ptr<EventQueue> openai_stream(const OpenAiRequest& request);
  std::shared_ptr<DelayedResponse> openai_text(const OpenAiRequest& request);

  void cancel(const std::string& id) override;
  std::string health_json() const override;
  std::string metrics() const override;
  Page page() const override;

 private:
  State state() const override;
  OpenAiAnswer openai_answer(const OpenAiRequest& request, const std::string& id) const;
  void count_rejected() override { metrics_->count(Outcome::rejected); }
  std::shared_ptr<Job> submit(const GenerateRequest& request, std::shared_ptr<LlmJob> job);
  std::shared_ptr<OpenAiChoices> make_choices(const OpenAiRequest& request, const std::string& id);
  std::function<void()> choices_canceller(const std::string& id, int32_t count);
  void submit_choices(const OpenAiRequest& request, const std::string& id,
                      const std::function<std::unique_ptr<Reply>(int32_t index)>& make_reply);
  std::shared_ptr<LlmJob> make_job(std::string id, std::unique_ptr<Reply> reply,
                                   std::shared_ptr<EventQueue> events) const;

  engine::Engine& engine_;
  const std::shared_ptr<Metrics> metrics_ = std::make_shared<Metrics>();
};

}  // namespace rbee::server
