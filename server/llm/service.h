#pragma once
// The chat worker behind its routes: turns requests into jobs of the engine.

#include <algorithm>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "rbee/engine/api/text.h"
#include "server/http/router.h"
#include "server/llm/job.h"
#include "server/llm/metrics.h"
#include "server/llm/response_store.h"
#include "server/wire/generate_request.h"
#include "server/wire/lora_fields.h"
#include "server/worker/service.h"
#include "server/worker/side_work.h"

namespace rbee::server {

std::vector<engine::ChatMessage> to_engine(const std::vector<SentMessage>& messages);

class LlmService;
using ChatRoute = ServiceRoute<LlmService>;

// Values for requests that leave them out.
struct LlmDefaults {
  std::optional<int32_t> reasoning_budget;  // tokens, for chats
  std::optional<float> temperature;
  std::optional<uint64_t> seed;
  std::optional<int32_t> max_tokens;  // of an answer
};

// Which answers a request gets.
struct AnswerPlan {
  std::vector<SentPrompt> prompts = {};  // each is answered; none: the request's own prompt
  bool add_special_tokens = true;        // around prompts that are text
  int32_t each = 1;                      // answers to a prompt; their seeds count up by one

  size_t answers() const { return std::max<size_t>(prompts.size(), 1) * static_cast<size_t>(each); }
};

class LlmService final : public WorkerService {
 public:
  // The engine must outlive the service, and the service the server that calls it.
  LlmService(engine::TextEngine& engine, ServiceOptions options, LlmDefaults defaults = {},
             ResponseStoreOptions stored = {})
      : WorkerService(std::move(options)),
        engine_(engine),
        defaults_(defaults),
        responses_(stored) {}

  // Functions that take a request throw Refused, or Error for values that the engine does not
  // accept. `make` creates the reply from the job's id and the answer's destination.
  template <typename To>
  using MakeReply =
      std::function<std::unique_ptr<Reply>(const std::string& id, std::shared_ptr<To> to)>;
  // A job whose answer is read through take_events().
  std::shared_ptr<Job> create_job(const GenerateRequest& request,
                                  const MakeReply<EventQueue>& make);
  std::shared_ptr<EventQueue> stream(const GenerateRequest& request,
                                     const MakeReply<EventQueue>& make) {
    return start(request, make);
  }
  std::shared_ptr<DelayedResponse> whole(const GenerateRequest& request,
                                         const MakeReply<DelayedResponse>& make) {
    return start(request, make);
  }
  // `make` creates one part of the answer from its number and a function that cancels all parts.
  // Numbers run through the answers to the first prompt, then those to the second, ...
  template <typename To>
  using MakePart = std::function<std::unique_ptr<Reply>(
      size_t index, const std::function<void()>& cancel, std::shared_ptr<To> to)>;
  // Several answers with one destination; all are accepted, or none. id: of the first one's job.
  template <typename To>
  std::shared_ptr<To> start_all(const std::string& id, const GenerateRequest& request,
                                const AnswerPlan& plan, const MakePart<To>& make) {
    const auto cancel = canceller_of_all(id, plan.answers());
    auto to = std::make_shared<To>(cancel);
    submit_all(request, plan, id, [&](size_t index) { return make(index, cancel, to); });
    return to;
  }
  using WorkerService::new_job_id;

  // The work before a request can be queued: tokenising a short text; rendering a short chat;
  // tokenising a long text; compiling a grammar or functions, or decoding pictures.
  enum class Preparation : uint8_t { little, chat, text, much };
  static Preparation preparation(const GenerateRequest& request, const AnswerPlan& plan = {});
  // The task's answer. Unless the work is `little`, the task runs on a thread of its own, so that
  // other clients' streams go on. Throws as SideWork::submit.
  Response prepare(Preparation work, SideWork::Task task);
  // The model name in the request's answer: an adapter's, else the model's.
  std::string answering_model(const GenerateRequest& request) const;
  // The engine's adapters, with the scales for requests that name none.
  std::vector<engine::LoraInfo> loras() const;
  // Sets those scales; 0 for adapters that are not listed. Throws not_found and invalid_argument.
  void set_default_loras(const std::vector<LoraField>& scales);
  // Answers when requests can use the adapter; the engine's exceptions become the answer.
  std::shared_ptr<DelayedResponse> load_lora(const std::string& client, const LoraOrder& order,
                                             std::function<Response(const LoraOrder&)> loaded);
  void unload_lora(const std::string& name);  // throws not_found
  const engine::TextEngine& engine() const { return engine_; }
  ResponseStore& responses() { return responses_; }
  // How every route renders a chat, with the defaults for what the request leaves out.
  engine::ChatOptions chat_options(ChatFields chat) const;
  // Prompt tokens for such a chat.
  size_t count_tokens(const GenerateRequest& request) const;
  // Fills in the defaults.
  void set_defaults(GenerateRequest& request) const;
  // Runs work that needs only the model's tokenizer or template on a thread of its own.
  std::shared_ptr<DelayedResponse> beside(SideWork::Task task) {
    return side_work_.submit(std::move(task));
  }

  void cancel(const std::string& id) override;
  std::string health_json() const override;
  std::string metrics() const override;
  Page page() const override;

 private:
  State state() const override;
  engine::TextRequest engine_request(const GenerateRequest& wire, const std::string& job_id) const;
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
  std::shared_ptr<Job> submit(const GenerateRequest& request, std::shared_ptr<TextJob> job);
  void hand_over(engine::TextRequest request, const std::shared_ptr<TextJob>& job);
  void check_places(size_t answers) const;
  std::function<void()> canceller_of_all(const std::string& id, size_t answers);
  void submit_all(const GenerateRequest& request, const AnswerPlan& plan, const std::string& id,
                  const std::function<std::unique_ptr<Reply>(size_t index)>& make_reply);
  std::shared_ptr<TextJob> make_job(std::string id, std::unique_ptr<Reply> reply,
                                    std::shared_ptr<EventQueue> events) const;

  engine::TextEngine& engine_;
  const LlmDefaults defaults_;
  ResponseStore responses_;
  const std::shared_ptr<Metrics> metrics_ = std::make_shared<Metrics>();
  mutable std::mutex loras_mutex_;
  std::vector<engine::LoraChoice> default_loras_;  // for requests that name none
  SideWork side_work_{{}};
  SideWork rendering_{{.most_waiting = 4096, .on_refused = [this] { count_rejected(); }}};
  SideWork encoding_{{.most_waiting = 4096, .on_refused = [this] { count_rejected(); }}};
  SideWork preparing_{{.threads = 2, .on_refused = [this] { count_rejected(); }}};
};

}  // namespace rbee::server
