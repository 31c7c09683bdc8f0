#pragma once
// An engine that follows a script instead of a model: one thread, requests in order.

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "rbee/engine/api/text.h"
#include "rbee/text/output/output_parser.h"

namespace rbee::testing {

struct Script {
  std::vector<std::string> pieces = {"Hello", ", ", "world"};
  // Answers with the system prompt, or without one the last message, instead of the pieces; then
  // holds if that begins with "hold".
  bool echo = false;
  text::OutputFormat format = {};          // format of calls and reasoning in the pieces
  std::chrono::milliseconds pause{0};      // after each piece
  int32_t max_pictures = 0;                // of the model
  engine::SamplingDefaults sampling = {};  // of the model
  std::string capture_refusal = {};        // of the model
  bool fills_in = false;                   // the model has infill tokens, for /infill
  std::vector<std::vector<engine::ScoredChoice>> tokens = {};  // of each piece
  std::vector<engine::PromptToken> prompt_tokens = {};
  // submit() waits for let_submit() if the answer must have a form, or if a variable of the chat
  // template is "hold".
  bool hold_submit = false;
  bool hold_before = false;  // wait for release() before the first event
  bool hold_after = false;   // wait for release() or a cancel after the pieces
  engine::StopReason reason = engine::StopReason::eos;
  std::string stop_sequence;
  std::optional<int32_t> end_id = {};  // the end token
  // Instead of Finished. Code::device: the device is lost, and all later requests are refused.
  std::optional<engine::Failed> failure;
};

class FakeEngine final : public engine::TextEngine {
 public:
  explicit FakeEngine(Script script = {});
  ~FakeEngine() override { stop(); }

  const engine::ModelInfo& model() const override { return model_; }
  void submit(engine::TextRequest request, std::shared_ptr<engine::EventSink> sink) override;
  bool cancel(const std::string& job_id) override;
  engine::EngineStats stats() const override;
  void stop() override;
  // A token is a byte, with id byte + 1000; with options.add_special, 1 comes first.
  std::vector<int32_t> tokenize(std::string_view text,
                                const engine::TokenizeOptions& options) const override;
  std::string detokenize(const std::vector<int32_t>& ids) const override;
  std::string token_bytes(int32_t id) const override;
  // "role: content", a line for each message, after a line with any tools' names.
  std::string render(const std::vector<engine::ChatMessage>& messages,
                     const engine::ChatOptions& options) const override;

  // Every path is accepted except "nowhere".
  std::vector<engine::LoraInfo> loras() const override;
  void load_lora(engine::LoraInfo info) override;
  bool unload_lora(std::string_view name) override;

  void let_submit();
  // Waits until this many calls of submit() are held or have been.
  bool wait_submitting(int count) const { return wait_count(submitting_, count); }
  // Lets everything that the script holds go on, now and later.
  void release();
  // submit() throws this from now on.
  void refuse_with(Code code) { refusal_ = code; }
  // From now on, prompts from render() and tokenize() have at most this many tokens.
  void set_context(int32_t tokens) { context_ = tokens; }
  void set_healthy(bool healthy) { healthy_ = healthy; }
  // Waits until this many requests have ended in any way; false after a minute.
  bool wait_ended(int count) const;
  // Waits until the engine has sent the pieces of this many requests.
  bool wait_texts_sent(int count) const;
  int cancelled() const { return cancelled_; }
  engine::TextRequest last_request() const;
  // The chat that render() saw last.
  engine::ChatOptions last_rendered() const;

 private:
  struct Item {
    engine::TextRequest request;
    std::shared_ptr<engine::EventSink> sink;
  };
  void loop();
  void play(const Item& item);
  bool is_cancelled(const std::string& id) const;  // needs the lock
  bool wait_count(const int& count, int wanted) const;

  const Script script_;
  engine::ModelInfo model_;
  std::atomic<std::optional<Code>> refusal_{std::nullopt};
  std::atomic<int32_t> context_ = INT32_MAX;
  std::atomic<bool> healthy_ = true;
  std::atomic<int> cancelled_ = 0;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::deque<Item> queue_;
  std::set<std::string> alive_;  // waiting or running
  std::set<std::string> cancel_ids_;
  engine::TextRequest last_;
  mutable engine::ChatOptions rendered_;
  std::vector<engine::LoraInfo> loras_;
  bool released_ = false;
  bool may_submit_ = false;
  int submitting_ = 0;
  bool stopping_ = false;
  int ended_ = 0;
  int texts_sent_ = 0;
  uint64_t tokens_ = 0;
  std::thread thread_;
};

}  // namespace rbee::testing
