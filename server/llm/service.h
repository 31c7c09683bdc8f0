#pragma once
// The chat worker behind its routes: turns requests into jobs of the engine.

#include <memory>
#include <mutex>
#include <string>

#include "rbee/engine/engine.h"
#include "server/contract/lora_fields.h"
#include "server/contract/openai_requests.h"
#include "server/llm/job.h"
#include "server/llm/metrics.h"
#include "server/llm/openai_reply.h"
#include "server/worker/service.h"
#include "server/worker/side_work.h"

namespace rbee::server {

std::vector<engine::ChatMessage> to_engine(const std::vector<Message>& messages);

// What holds for requests that do not say it.
struct LlmDefaults {
  std::optional<int32_t> reasoning_budget;  // tokens, of chats
  std::optional<float> temperature;
  std::optional<uint64_t> seed;
  std::optional<int32_t> max_tokens;  // of an answer
};

class LlmService final : public WorkerService {
 public:
  // The engine outlives the service; the service outlives the server that calls it.
  LlmService(engine::Engine& engine, ServiceOptions options, LlmDefaults defaults = {})
      : WorkerService(std::move(options)), engine_(engine), defaults_(defaults) {}

  // Each throws Refused, or Error for values that the engine does not take.
  std::shared_ptr<Job> create_job(const GenerateRequest& request);  // read through take_events()
  std::shared_ptr<EventQueue> infer_stream(const GenerateRequest& request);
  std::shared_ptr<DelayedResponse> infer_text(const GenerateRequest& request);
  std::shared_ptr<EventQueue> openai_stream(const OpenAiRequest& request);
  std::shared_ptr<DelayedResponse> openai_text(const OpenAiRequest& request);

  // Answers in a form of their own: `make` gets the job's id and where the answer goes.
  template <typename To>
  using MakeReply =
      std::function<std::unique_ptr<Reply>(const std::string& id, std::shared_ptr<To> to)>;
  std::shared_ptr<EventQueue> stream(const GenerateRequest& request,
                                     const MakeReply<EventQueue>& make) {
    return start(request, make);
  }
  std::shared_ptr<DelayedResponse> whole(const GenerateRequest& request,
                                         const MakeReply<DelayedResponse>& make) {
    return start(request, make);
  }
  // Several requests whose answers go to one place: all of them are taken, or none. `make` gets
  // each one's number, and what ends them all.
  template <typename To>
  using MakePart = std::function<std::unique_ptr<Reply>(
      size_t index, const std::function<void()>& cancel, std::shared_ptr<To> to)>;
  template <typename To>
  std::shared_ptr<To> start_all(const std::vector<GenerateRequest>& requests,
                                const MakePart<To>& make) {
    const std::string id = new_job_id();
    const auto cancel = choices_canceller(id, static_cast<int32_t>(requests.size()));
    auto to = std::make_shared<To>(cancel);
    submit_all(requests, id, [&](size_t index) { return make(index, cancel, to); });
    return to;
  }
  // What the engine makes of a request before it can be queued: tokens of a short text, a short
  // prompt by the chat template, tokens of a long text; a grammar, functions, or pictures.
  enum class Preparation : uint8_t { little, chat, text, much };
  static Preparation preparation(const GenerateRequest& request);
  static Preparation preparation(const OpenAiRequest& request);
  // What the task answers; where it is no little work, from a thread beside the connections', so
  // that others' streams go on. Throws as SideWork::submit.
  Response prepare(Preparation work, SideWork::Task task);
  // The name that an answer to the request goes under: an adapter's, else the model's.
  std::string answering_model(const GenerateRequest& request) const;
  // The engine's adapters, with the scales that requests take which name none.
  std::vector<engine::LoraInfo> loras() const;
  // Those scales; 0 for adapters that are not in the list. Throws not_found and invalid_argument.
  void set_default_loras(const std::vector<LoraField>& scales);
  // Answered when requests can take the adapter; what the engine throws becomes the answer.
  std::shared_ptr<DelayedResponse> load_lora(const std::string& client, const LoraOrder& order,
                                             std::function<Response(const LoraOrder&)> loaded);
  void unload_lora(const std::string& name);  // throws not_found
  const engine::Engine& engine() const { return engine_; }
  // How every route renders a chat: with what holds for requests that do not say it.
  engine::ChatOptions chat_options(ChatFields chat) const;
  // Tokens of the prompt that answers such a chat.
  size_t count_tokens(const GenerateRequest& request) const;
  // Fills in the defaults of what the request does not say.
  void set_defaults(GenerateRequest& request) const;
  // What needs the model's tokenizer or template alone, on a thread of its own.
  std::shared_ptr<DelayedResponse> beside(SideWork::Task task) {
    return side_work_.submit(std::move(task));
  }

  void cancel(const std::string& id) override;
  std::string health_json() const override;
  std::string metrics() const override;
  Page page() const override;

 private:
  State state() const override;
  std::string fingerprint() const;
  OpenAiAnswer openai_answer(const OpenAiRequest& request, const std::string& id) const;
  engine::Request engine_request(const GenerateRequest& wire, const std::string& job_id) const;
  std::vector<engine::LoraChoice> loras_of(const GenerateRequest& request) const;
  std::vector<engine::LoraChoice> named(const std::vector<LoraField>& fields) const;
  void count_rejected() override { metrics_->count(Outcome::rejected); }
  template <typename To>
  std::shared_ptr<To> start(const GenerateRequest& request, const MakeReply<To>& make) {
    std::string id = new_job_id();
    auto to = std::make_shared<To>(canceller(id));
    auto reply = make(id, to);
    submit(request, make_job(std::move(id), std::move(reply), nullptr));
    return to;
  }
  std::shared_ptr<Job> submit(const GenerateRequest& request, std::shared_ptr<LlmJob> job);
  void hand_over(engine::Request request, const std::shared_ptr<LlmJob>& job);
  void check_places(size_t answers) const;
  void submit_all(const std::vector<GenerateRequest>& requests, const std::string& id,
                  const std::function<std::unique_ptr<Reply>(size_t index)>& make_reply);
  std::shared_ptr<OpenAiChoices> make_choices(const OpenAiRequest& request, const std::string& id);
  std::function<void()> choices_canceller(const std::string& id, int32_t count);
  void submit_choices(const OpenAiRequest& request, const std::string& id,
                      const std::function<std::unique_ptr<Reply>(int32_t index)>& make_reply);
  std::shared_ptr<LlmJob> make_job(std::string id, std::unique_ptr<Reply> reply,
                                   std::shared_ptr<EventQueue> events) const;

  engine::Engine& engine_;
  const LlmDefaults defaults_;
  const std::shared_ptr<Metrics> metrics_ = std::make_shared<Metrics>();
  mutable std::mutex loras_mutex_;
  std::vector<engine::LoraChoice> default_loras_;  // of requests that name none
  SideWork side_work_{{}};
  SideWork rendering_{{.most_waiting = 4096, .on_refused = [this] { count_rejected(); }}};
  SideWork encoding_{{.most_waiting = 4096, .on_refused = [this] { count_rejected(); }}};
  SideWork preparing_{{.threads = 2, .on_refused = [this] { count_rejected(); }}};
};

}  // namespace rbee::server
