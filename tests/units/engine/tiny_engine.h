#pragma once
// Tiny random models (tests/models/language/data) with a tokenizer of their size, and a sink that
// keeps an engine's events.

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "backends/api/registry.h"
#include "backends/cpu/cpu_backend.h"
#include "rbee/engine/text/llm_engine.h"
#include "rbee/io/checkpoint.h"
#include "tests/checkpoints/tiny_tokenizer.h"
#include "tests/support/data_folder.h"

namespace rbee::engine {

inline Device& cpu() {
  register_backend(cpu::cpu_backend());
  return get_device({DeviceKind::cpu, 0});
}

inline std::unique_ptr<text::Tokenizer> tiny_tokenizer() {
  return text::tokenizer_from_json(test::tiny_tokenizer_json(), test::kTinyTokenizerConfig);
}

inline TextModel tiny_model(int64_t context = 64, Device& device = cpu(),
                            const std::string& family = "smollm",
                            int64_t gpu_layers = models::kAllLayers, int64_t cpu_moe_layers = 0) {
  TextModel out;
  out.device = &device;
  const auto path =
      std::filesystem::path(test::data_folder()) / "models/language/data" / family / "model.gguf";
  out.model =
      models::load_language_model(io::Checkpoint::open(path), {.device = out.device,
                                                               .context = context,
                                                               .gpu_layers = gpu_layers,
                                                               .host = &cpu(),
                                                               .cpu_moe_layers = cpu_moe_layers});
  out.tokenizer = tiny_tokenizer();
  out.info.id = "tiny";
  out.info.vocab_size = test::kTinyVocab;
  out.info.context_length = static_cast<int32_t>(context);
  return out;
}

class Recorder final : public EventSink {
 public:
  void on_started(const Started& event) noexcept override {
    const std::lock_guard lock(mutex_);
    started = event;
    ++starts;
  }
  void on_progress(const Progress& event) noexcept override {
    const std::lock_guard lock(mutex_);
    progress.push_back(event);
  }
  void on_prompt(const std::vector<PromptToken>& event) noexcept override {
    const std::lock_guard lock(mutex_);
    prompt = event;
    ++prompts;
  }
  void on_token(const TokenText& event) noexcept override {
    const std::lock_guard lock(mutex_);
    indices_follow &= event.index == pieces++;
    text += event.text;
    tokens.insert(tokens.end(), event.tokens.begin(), event.tokens.end());
    changed_.notify_all();
  }
  void on_finished(const Finished& event) noexcept override {
    const std::lock_guard lock(mutex_);
    finished = event;
    ++ends;
    changed_.notify_all();
  }
  void on_failed(const Failed& event) noexcept override {
    const std::lock_guard lock(mutex_);
    failed = event;
    ++ends;
    changed_.notify_all();
  }
  void wait() {
    wait_for([&] { return ends > 0; });
  }
  void wait_for_text() {
    wait_for([&] { return !text.empty() || ends > 0; });
  }

  Started started{};
  std::optional<Finished> finished;
  std::optional<Failed> failed;
  std::string text;
  std::vector<ScoredChoice> tokens;
  std::vector<PromptToken> prompt;
  std::vector<Progress> progress;
  int prompts = 0;
  int starts = 0;
  int pieces = 0;
  int ends = 0;
  bool indices_follow = true;

 private:
  template <typename Condition>
  void wait_for(Condition condition) {
    std::unique_lock lock(mutex_);
    ASSERT_TRUE(changed_.wait_for(lock, std::chrono::seconds(60), condition));
  }

  std::mutex mutex_;
  std::condition_variable changed_;
};

// Holds the engine's thread while it delivers an event. What a test does meanwhile falls between
// two steps, even on a slow machine.
class Holder final : public EventSink {
 public:
  // Holds at this piece of text, or at the start.
  explicit Holder(std::optional<int> piece = std::nullopt) : piece_(piece) {}
  void on_started(const Started& event) noexcept override {
    events.on_started(event);
    if (!piece_) hold();
  }
  void on_token(const TokenText& event) noexcept override {
    events.on_token(event);
    if (event.index == piece_) hold();
  }
  void on_finished(const Finished& event) noexcept override { events.on_finished(event); }
  void on_failed(const Failed& event) noexcept override { events.on_failed(event); }

  void wait_until_it_holds() {
    std::unique_lock lock(mutex_);
    ASSERT_TRUE(changed_.wait_for(lock, std::chrono::seconds(60), [&] { return holds_; }));
  }
  void let_go() {
    const std::lock_guard lock(mutex_);
    free_ = true;
    changed_.notify_all();
  }

  Recorder events;

 private:
  void hold() {
    std::unique_lock lock(mutex_);
    holds_ = true;
    changed_.notify_all();
    changed_.wait_for(lock, std::chrono::seconds(60), [&] { return free_; });
  }

  const std::optional<int> piece_;
  bool holds_ = false, free_ = false;
  std::mutex mutex_;
  std::condition_variable changed_;
};

inline TextRequest greedy(std::string prompt, int32_t max_tokens = 20) {
  TextRequest request;
  request.prompt = std::move(prompt);
  request.max_tokens = max_tokens;
  request.sampling.temperature = 0;
  return request;
}

inline std::shared_ptr<Recorder> submit(TextEngine& engine, TextRequest request,
                                        std::string id = "job") {
  auto sink = std::make_shared<Recorder>();
  request.job_id = std::move(id);
  engine.submit(std::move(request), sink);
  return sink;
}

// When this returns, the request holds the engine's thread.
inline std::shared_ptr<Holder> hold(TextEngine& engine, TextRequest request,
                                    std::string id = "holder",
                                    std::optional<int> piece = std::nullopt) {
  auto sink = std::make_shared<Holder>(piece);
  request.job_id = std::move(id);
  engine.submit(std::move(request), sink);
  sink->wait_until_it_holds();
  return sink;
}

inline std::shared_ptr<Recorder> answer(TextEngine& engine, TextRequest request) {
  auto sink = submit(engine, std::move(request));
  sink->wait();
  return sink;
}

}  // namespace rbee::engine
