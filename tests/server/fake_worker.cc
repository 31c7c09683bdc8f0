// The worker's program with an engine that follows a script; --model chooses which.

#include <fstream>
#include <thread>

#include "tests/server/fake_engine.h"
#include "tests/server/rests.h"
#include "workers/llm/worker.h"

namespace {

using rbee::testing::FakeEngine;
using rbee::testing::Script;

// Acts as an engine in the middle of a step that never ends.
class StuckEngine final : public rbee::engine::TextEngine {
 public:
  explicit StuckEngine(Script script) : inner_(std::move(script)) {}
  const rbee::engine::ModelInfo& model() const override { return inner_.model(); }
  void submit(rbee::engine::TextRequest request,
              std::shared_ptr<rbee::engine::EventSink> sink) override {
    inner_.submit(std::move(request), std::move(sink));
  }
  bool cancel(const std::string&) override { return true; }
  rbee::engine::EngineStats stats() const override { return inner_.stats(); }
  std::vector<int32_t> tokenize(std::string_view text,
                                const rbee::engine::TokenizeOptions& options) const override {
    return inner_.tokenize(text, options);
  }
  std::string detokenize(const std::vector<int32_t>& ids) const override {
    return inner_.detokenize(ids);
  }
  std::string token_bytes(int32_t id) const override { return inner_.token_bytes(id); }
  std::string render(const std::vector<rbee::engine::ChatMessage>& messages,
                     const rbee::engine::ChatOptions& options) const override {
    return inner_.render(messages, options);
  }
  std::vector<rbee::engine::LoraInfo> loras() const override { return inner_.loras(); }
  void load_lora(rbee::engine::LoraInfo info) override { inner_.load_lora(std::move(info)); }
  bool unload_lora(std::string_view name) override { return inner_.unload_lora(name); }
  void stop() override { std::this_thread::sleep_for(std::chrono::hours(1)); }

 private:
  FakeEngine inner_;
};

// Opening a pipe waits for whoever opens its other end.
void pass(const std::string& pipe) {
  const std::ifstream gate(pipe);
}

rbee::workers::LoadedEngine load(const rbee::workers::Flags& flags,
                                 rbee::server::LoadingState& loading) {
  if (flags.model == "missing") {
    rbee::fail(rbee::Code::not_found, "open", flags.model, ": no such file");
  }
  if (flags.model.starts_with("gate:")) pass(flags.model.substr(5));
  // fetch:A,B stops in each phase until a pipe is opened.
  if (flags.model.starts_with("fetch:")) {
    using rbee::server::LoadPhase;
    const size_t comma = flags.model.find(',');
    loading.set({.phase = LoadPhase::fetching,
                 .done = 30,
                 .total = 100,
                 .bytes_per_second = 10.0,
                 .seconds_left = 7.0});
    pass(flags.model.substr(6, comma - 6));
    loading.set({.phase = LoadPhase::loading, .done = 50, .total = 100});
    pass(flags.model.substr(comma + 1));
  }
  if (flags.model == "slow") std::this_thread::sleep_for(std::chrono::hours(1));
  if (flags.model == "stuck") return std::make_unique<StuckEngine>(Script{.hold_after = true});
  const Script lost{.failure = rbee::engine::Failed{rbee::Code::device, "the device fell off"}};
  if (flags.model == "lost") return std::make_unique<FakeEngine>(lost);
  if (flags.model == "lost and stuck") return std::make_unique<StuckEngine>(lost);
  if (flags.model.starts_with("release:")) {  // waits until a reader opens the pipe
    auto engine = std::make_unique<FakeEngine>(Script{.hold_after = true});
    std::thread([engine = engine.get(), pipe = flags.model.substr(8)] {
      const std::ifstream gate(pipe);
      engine->release();
    }).detach();
    return engine;
  }
  if (flags.model == "echo") {
    return std::make_unique<FakeEngine>(
        Script{.echo = true,
               .format = {rbee::text::ToolFormat::hermes, rbee::text::ReasoningFormat::think},
               .pause = std::chrono::milliseconds(5),
               .max_pictures = 2});
  }
  // Some 20 MB: more than a system buffers for a connection.
  if (flags.model == "large") {
    std::vector<std::string> pieces;
    for (int i = 0; i < 100; ++i) {
      pieces.push_back(std::string(200'000, 'x') + "<" + std::to_string(i) + ">");
    }
    return std::make_unique<FakeEngine>(Script{.pieces = std::move(pieces)});
  }
  return std::make_unique<FakeEngine>(Script{.hold_after = flags.model == "hold"});
}

}  // namespace

int main(int argc, char** argv) {
  rbee::workers::Program program{.name = "llm-worker-rbee-test", .kind = rbee::DeviceKind::cpu};
  rbee::testing::log_returned_memory(program, argc, argv);
  return rbee::workers::run_llm_worker(program, load, argc, argv);
}
