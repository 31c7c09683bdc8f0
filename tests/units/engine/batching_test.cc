// Requests that share steps: the answer of each does not depend on the others.

#include <algorithm>
#include <atomic>

#include "rbee/core/log.h"
#include "rbee/engine/text/llm_scheduling.h"
#include "rbee/engine/text/step/stepper.h"
#include "tests/units/engine/far_device.h"
#include "tests/units/engine/recalling_device.h"
#include "tests/units/engine/tiny_engine.h"

namespace rbee::engine {
namespace {

constexpr int kTogether = 32;
constexpr int32_t kTokens = 10;

// Different lengths, some with a common beginning of several blocks.
std::string prompt_of(int i) {
  const std::string letters = "abcdefghijklmnopqrstuvwxyz";
  std::string out = i % 3 == 0 ? "a common start, " : "";
  for (int j = 0; j < i % 13; ++j) out += letters[static_cast<size_t>(i * 7 + j * 5) % 26];
  return out + static_cast<char>('A' + i % 26);
}

std::vector<std::string> texts_alone(TextModel model, const LlmOptions& options) {
  const auto engine = make_llm_engine(std::move(model), options);
  std::vector<std::string> out;
  for (int i = 0; i < kTogether; ++i)
    out.push_back(answer(*engine, greedy(prompt_of(i), kTokens))->text);
  return out;
}

// All wait in the queue before the first of them joins.
std::vector<std::shared_ptr<Recorder>> all_together(TextEngine& engine) {
  const auto holder = hold(engine, greedy("hold", 1));
  std::vector<std::shared_ptr<Recorder>> sinks;
  for (int i = 0; i < kTogether; ++i) {
    TextRequest request = greedy(prompt_of(i), kTokens);
    request.client = std::to_string(i % 5);
    sinks.push_back(submit(engine, std::move(request), "job" + std::to_string(i)));
  }
  holder->let_go();
  for (const auto& sink : sinks) sink->wait();
  return sinks;
}

class EveryFamily : public ::testing::TestWithParam<const char*> {};

TEST_P(EveryFamily, ThirtyTwoTogetherSayWhatEachSaysAlone) {
  constexpr int64_t kContext = 64;
  const auto model = [] { return tiny_model(kContext, cpu(), GetParam()); };
  const std::vector<std::string> alone =
      texts_alone(model(), {.max_running = 1, .cache_tokens = kContext, .block_size = 4});
  struct Case {
    const char* name;
    LlmOptions options;
    bool preempts;
  };
  // Other rows beside it may change a product's rounding, and a tiny model has near ties. So no
  // step depends on time here: all runs compute the same.
  const Case cases[] = {
      {"all at once", {.max_running = kTogether, .step_seconds = 0, .block_size = 4}, false},
      {"prompts in small chunks",
       {.max_running = kTogether, .step_tokens = kTogether, .step_seconds = 0, .block_size = 4},
       false},
      {"too few blocks",
       {.max_running = kTogether,
        .step_tokens = 64,
        .step_seconds = 0,
        .cache_tokens = 128,
        .block_size = 4},
       true},
  };
  for (const Case& c : cases) {
    const auto engine = make_llm_engine(model(), c.options);
    const auto sinks = all_together(*engine);
    for (int i = 0; i < kTogether; ++i) {
      const auto at = static_cast<size_t>(i);
      EXPECT_EQ(sinks[at]->text, alone[at]) << c.name << ", " << prompt_of(i);
      EXPECT_TRUE(sinks[at]->indices_follow);
      EXPECT_EQ(sinks[at]->starts, 1);
    }
    const EngineStats stats = engine->stats();
    EXPECT_EQ(stats.kv_blocks_used, 0) << c.name;
    EXPECT_EQ(stats.running + stats.waiting, 0) << c.name;
    EXPECT_EQ(stats.requests_finished, static_cast<uint64_t>(kTogether) + 1) << c.name;
    EXPECT_EQ(stats.preemptions > 0, c.preempts) << c.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Batching, EveryFamily,
                         ::testing::Values("llama", "smollm", "mistral", "qwen2", "qwen3", "gemma2",
                                           "gemma3", "phi3", "phi4", "granite", "smollm3", "olmo2",
                                           "stablelm", "ministral3", "hunyuan_dense", "cohere2",
                                           "qwen3_next", "qwen3_5"),
                         [](const auto& family) { return std::string(family.param); });

// There, greedy steps are queued ahead while other requests join and leave.
TEST(Batching, ADeviceThatCapturesStepsSaysTheSame) {
  const std::vector<std::string> alone =
      texts_alone(tiny_model(), {.max_running = 1, .cache_tokens = 64, .block_size = 4});
  RecallingDevice device;
  const auto engine =
      make_llm_engine(recalling_model(64, device), {.max_running = 6, .block_size = 4});
  const auto sinks = all_together(*engine);
  for (size_t i = 0; i < sinks.size(); ++i) {
    EXPECT_EQ(sinks[i]->text, alone[i]) << prompt_of(static_cast<int>(i));
  }
  EXPECT_EQ(engine->stats().kv_blocks_used, 0);
  // A request that runs alone needs the host only once per block.
  answer(*engine, greedy("a lone one", 32));
  const int uploads = device.uploads, replays = device.replays;
  answer(*engine, greedy("a lone one", 32));
  EXPECT_GE(device.replays - replays, 31);
  EXPECT_LE(device.uploads - uploads, 12);
}

TEST(Batching, SeedsDecideTheTextBesideOthersToo) {
  const auto random = [](int i) {
    TextRequest request = greedy(prompt_of(i), 12);
    request.sampling = {.temperature = 1.2f, .top_k = i % 2 == 0 ? 0 : 7, .top_p = 0.9f};
    request.sampling.seed = static_cast<uint64_t>(i);
    return request;
  };
  const auto engine = make_llm_engine(tiny_model(), {.block_size = 4});
  std::vector<std::shared_ptr<Recorder>> sinks;
  for (int i = 0; i < 8; ++i) sinks.push_back(submit(*engine, random(i)));
  for (const auto& sink : sinks) sink->wait();
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(answer(*engine, random(i))->text, sinks[static_cast<size_t>(i)]->text) << i;
  }
}

TEST(Batching, ABeginningThatWasEvaluatedIsNotEvaluatedAgain) {
  const auto engine = make_llm_engine(tiny_model(), {.max_running = 1, .block_size = 4});
  const std::string prompt = "some beginning of a chat";
  const auto first = answer(*engine, greedy(prompt, 10));
  const uint64_t evaluated = engine->stats().prompt_tokens;
  EXPECT_EQ(evaluated, static_cast<uint64_t>(first->started.prompt_tokens));
  EXPECT_GT(engine->stats().kv_blocks_kept, 0);
  EXPECT_EQ(answer(*engine, greedy(prompt, 10))->text, first->text);
  const EngineStats stats = engine->stats();
  const auto length = static_cast<uint64_t>(first->started.prompt_tokens);
  EXPECT_EQ(stats.prefix_queries, 2 * length);
  EXPECT_EQ(stats.prefix_hits, (length - 1) / 4 * 4);
  EXPECT_EQ(stats.prompt_tokens, 2 * length - stats.prefix_hits);
}

// What needs the states of a past token is off for models with states, whoever asks for it.
TEST(Batching, LayersWithStatesShareNoBeginningsAndTakeNoDrafts) {
  LlmOptions options{.max_running = 1, .block_size = 4, .speculative = true};
  options.host_cache_bytes = int64_t{1} << 20;
  const auto engine = make_llm_engine(tiny_model(64, cpu(), "qwen3_5"), options);
  const std::string prompt = "abcabcabcabcabc";  // which drafts from the text would go on
  const auto first = answer(*engine, greedy(prompt, 24));
  TextRequest again = greedy(prompt, 24);
  again.speculative = true;
  EXPECT_EQ(answer(*engine, std::move(again))->text, first->text);
  const EngineStats stats = engine->stats();
  EXPECT_EQ(stats.prompt_tokens, static_cast<uint64_t>(2 * first->started.prompt_tokens));
  EXPECT_EQ(stats.prefix_hits, 0u);
  EXPECT_EQ(stats.kv_blocks_kept, 0);
  EXPECT_EQ(stats.host_blocks_total, 0);
  EXPECT_EQ(stats.draft_tokens, 0u);
}

TEST(Batching, BeginningsAreSharedUnderTheSameSaltAlone) {
  const auto engine =
      make_llm_engine(tiny_model(), {.max_running = 1, .cache_tokens = 512, .block_size = 4});
  const auto hits = [&](const std::string& salt) {
    const uint64_t before = engine->stats().prefix_hits;
    TextRequest request = greedy("some beginning of a chat", 10);
    request.cache_salt = salt;
    answer(*engine, std::move(request));
    return engine->stats().prefix_hits - before;
  };
  const std::vector<std::string> salts = {"", "a", "ab", "b", std::string(40, '\xff')};
  for (const std::string& salt : salts) EXPECT_EQ(hits(salt), 0u) << salt.size();
  for (const std::string& salt : salts) EXPECT_GE(hits(salt), 4u) << salt.size();
}

TEST(Batching, WhoFollowsSharesThePrompt) {
  const auto engine = make_llm_engine(tiny_model(), {.max_running = 8, .block_size = 4});
  TextRequest request = greedy("some words here and there, bad cafe", 8);
  const auto held = hold(*engine, greedy("x", 4));  // so that all of them join together
  const auto first = submit(*engine, request, "first");
  request.follows = "first";
  std::vector<std::shared_ptr<Recorder>> others;
  for (int i = 0; i < 3; ++i) others.push_back(submit(*engine, request, cat("first-", i)));
  request.follows = "nobody";
  const auto stranger = submit(*engine, greedy("y", 2), "stranger");
  held->let_go();
  first->wait();
  stranger->wait();
  const int64_t length = first->started.prompt_tokens;
  for (const auto& other : others) {
    other->wait();
    EXPECT_EQ(other->text, first->text);
  }
  // All full blocks except the one with the last token.
  EXPECT_EQ(engine->stats().prefix_hits, static_cast<uint64_t>(3 * ((length - 1) / 4 * 4)));
}

TEST(Batching, WhoFollowsACancelledRequestGoesOn) {
  const auto engine = make_llm_engine(tiny_model(), {.max_running = 1, .block_size = 4});
  const auto held = hold(*engine, greedy("x", 4));
  const auto first = submit(*engine, greedy("some words", 8), "first");
  TextRequest request = greedy("some words", 8);
  request.follows = "first";
  const auto second = submit(*engine, request, "second");
  engine->cancel("first");
  held->let_go();
  second->wait();
  EXPECT_EQ(second->finished->tokens_out, 8);
}

TEST(Batching, AChatThatGoesOnFindsItsAnswerInTheCache) {
  const auto engine = make_llm_engine(tiny_model(), {.max_running = 1, .block_size = 4});
  const std::string prompt = "hello there";
  const auto first = answer(*engine, greedy(prompt, 12));
  const uint64_t before = engine->stats().prefix_hits;
  const auto second = answer(*engine, greedy(prompt + first->text + " and on", 3));
  // More than the prompt: the answer too, as far as its text gives the same tokens again.
  EXPECT_GT(engine->stats().prefix_hits - before,
            static_cast<uint64_t>(first->started.prompt_tokens));
  EXPECT_TRUE(second->finished);
}

// Keeps the order in which requests begin.
class Order final : public EventSink {
 public:
  explicit Order(std::vector<std::string>& order, std::string name, std::shared_ptr<Recorder> to)
      : order_(order), name_(std::move(name)), to_(std::move(to)) {}
  void on_started(const Started& event) noexcept override {
    order_.push_back(name_);  // only on the engine's thread
    to_->on_started(event);
  }
  void on_token(const TokenText& event) noexcept override { to_->on_token(event); }
  void on_finished(const Finished& event) noexcept override { to_->on_finished(event); }
  void on_failed(const Failed& event) noexcept override { to_->on_failed(event); }

 private:
  std::vector<std::string>& order_;
  const std::string name_;
  const std::shared_ptr<Recorder> to_;
};

TEST(Batching, ClientsTakeTurnsAndPrioritiesGoFirst) {
  const auto engine = make_llm_engine(tiny_model(4096), {.max_running = 1, .priorities = true});
  const auto holder = hold(*engine, greedy("on and on", 10));
  std::vector<std::string> order;
  std::vector<std::shared_ptr<Recorder>> sinks;
  const auto queue = [&](const std::string& name, const std::string& client, int32_t priority) {
    TextRequest request = greedy("abc", 1);
    request.job_id = name;
    request.client = client;
    request.priority = priority;
    sinks.push_back(std::make_shared<Recorder>());
    engine->submit(std::move(request), std::make_shared<Order>(order, name, sinks.back()));
  };
  for (const char* name : {"a1", "a2", "a3"}) queue(name, "a", 0);
  queue("b1", "b", 0);
  queue("late", "b", 9);
  queue("first", "c", -9);
  holder->let_go();
  for (const auto& sink : sinks) sink->wait();
  engine->stop();
  EXPECT_EQ(order, (std::vector<std::string>{"first", "a1", "b1", "a2", "a3", "late"}));
}

TEST(Batching, CancelledRequestsGiveTheirBlocksBackAndTheOthersGoOn) {
  const auto engine = make_llm_engine(tiny_model(4096), {.max_running = 4, .cache_tokens = 8192});
  const std::string wanted = answer(*engine, greedy("abc", 40))->text;
  std::vector<std::shared_ptr<Recorder>> endless;
  for (int i = 0; i < 3; ++i) {
    endless.push_back(submit(*engine, greedy("on and on", 100000), "endless" + std::to_string(i)));
  }
  for (const auto& sink : endless) sink->wait_for_text();
  const auto last = hold(*engine, greedy("abc", 40), "last", 1);
  EXPECT_EQ(engine->stats().running, 4);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(engine->cancel("endless" + std::to_string(i)));
  last->let_go();
  last->events.wait();
  EXPECT_EQ(last->events.text, wanted);
  for (const auto& sink : endless) {
    sink->wait();
    ASSERT_TRUE(sink->finished);
    EXPECT_EQ(sink->finished->reason, StopReason::cancelled);
  }
  EXPECT_EQ(engine->stats().kv_blocks_used, 0);
  EXPECT_EQ(engine->stats().requests_cancelled, 3u);
}

TEST(Batching, ASharedStepThatFindsNoMemoryIsDoneApart) {
  FarDevice far;
  const LlmOptions options{.max_running = 8, .cache_tokens = 4096};
  const auto engine = make_llm_engine(tiny_model(512, far), options);
  const std::string wanted = answer(*engine, greedy("abc", 30))->text;
  std::vector<std::shared_ptr<Recorder>> sinks;
  for (int i = 0; i < 4; ++i) {
    sinks.push_back(submit(*engine, greedy("abc", 30), "job" + std::to_string(i)));
  }
  for (const auto& sink : sinks) sink->wait_for_text();
  far.fail_allocation(5);
  for (const auto& sink : sinks) {
    sink->wait();
    EXPECT_FALSE(sink->failed);
    EXPECT_EQ(sink->text, wanted);
  }
}

TEST(Batching, TheCacheHoldsWhatTheOptionsSay) {
  const auto engine = make_llm_engine(tiny_model(64), {.cache_tokens = 200, .block_size = 8});
  EXPECT_EQ(engine->stats().kv_blocks_total, 25);
  // Without the flag: as many contexts as the machine's memory allows.
  EXPECT_EQ(
      make_llm_engine(tiny_model(64), {.max_running = 3, .block_size = 8})->stats().kv_blocks_total,
      24);
  EXPECT_THROW(make_llm_engine(tiny_model(64), {.cache_tokens = 63}), Error);
  EXPECT_THROW(make_llm_engine(tiny_model(64), {.max_running = 8, .step_tokens = 7}), Error);
}

TEST(Batching, ACacheThatTheMachineHasNoMemoryForIsWarnedOf) {
  const TextModel model = tiny_model(64);
  const int64_t all = model.device->memory().total / cache_token_bytes(*model.model, {}).all();
  if (all > INT32_MAX / 2) GTEST_SKIP() << "the machine has more memory than a cache may have";
  std::vector<std::string> warnings;
  set_log_sink([&](LogLevel, std::string_view text, auto) { warnings.emplace_back(text); },
               LogLevel::warn);
  LlmOptions options{.cache_tokens = 640};
  resolve(model, nullptr, options);
  EXPECT_TRUE(warnings.empty());
  options.cache_tokens = all;
  resolve(model, nullptr, options);
  set_log_sink(nullptr, LogLevel::error);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_EQ(warnings[0].find("the KV cache is larger"), 0u) << warnings[0];
}

}  // namespace
}  // namespace rbee::engine
