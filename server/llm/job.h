#pragma once
// One request for text: turns the engine's events into the client's.

#include <memory>
#include <string>

#include "rbee/engine/api/text.h"
#include "server/llm/metrics.h"
#include "server/llm/reply.h"
#include "server/worker/job.h"

namespace rbee::server {

class TextJob final : public Job, public engine::EventSink {
 public:
  // events: see Job. metrics must outlive the job.
  TextJob(std::string id, std::unique_ptr<Reply> reply, std::shared_ptr<EventQueue> events,
          int64_t memory_bytes, std::shared_ptr<Metrics> metrics);

  // Sets what its trace says. Call it before the engine has the job.
  void describe(const engine::TextRequest& request, const std::string& model);
  void on_started(const engine::Started& event) noexcept override;
  void on_progress(const engine::Progress& event) noexcept override;
  void on_prompt(const std::vector<engine::PromptToken>& tokens) noexcept override;
  void on_token(const engine::TokenText& event) noexcept override;
  void on_finished(const engine::Finished& event) noexcept override;
  void on_failed(const engine::Failed& event) noexcept override;

 private:
  using Job::fail;
  void fail(JobState state, const WireError& error, std::string_view message) override;
  void finish(JobState state, const engine::Finished* finished, std::string_view error);
  void trace_end(const engine::Finished* finished, std::string_view error);
  void report(const engine::TokenText& event);

  const int64_t memory_bytes_;
  const std::shared_ptr<Metrics> metrics_;
  std::unique_ptr<Reply> reply_;  // until the end; jobs are kept longer
  double begun_ = -1;             // seconds after arrival
  double first_token_ = -1;       // the same
  double last_token_ = -1;        // the same
  uint64_t seed_ = 0;
  ProgressEvent so_far_;
  bool called_ = false;    // the model called a function
  std::string operation_;  // for the trace
};

}  // namespace rbee::server
