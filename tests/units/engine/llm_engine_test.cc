// The engine's thread over a tiny random model, and over a failing device.
#include "rbee/engine/text/llm_engine.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <future>
#include <utility>

#include "rbee/engine/text/step/stepper.h"
#include "tests/support/expect_error.h"
#include "tests/units/engine/far_device.h"
#include "tests/units/engine/tiny_engine.h"

namespace rbee::engine {
namespace {

using ::testing::HasSubstr;

// The greedy continuation; every token comes from a fresh evaluation of the whole text.
std::vector<int32_t> continuation(const TextModel& model, std::vector<int32_t> tokens, int count) {
  std::vector<int32_t> out;
  for (int i = 0; i < count; ++i) {
    Stepper stepper(*model.model, *model.device,
                    {.cache_tokens = 128, .block_size = 16, .kv_dtype = DType::f32});
    Sequence sequence(stepper.pool());
    sequence.tokens = tokens;
    const auto length = static_cast<int64_t>(tokens.size());
    const Stepper::Work work[] = {{&sequence, length}};
    const int32_t rows[] = {static_cast<int32_t>(length - 1)};
    const std::span<float> logits = stepper.step(work, rows);
    out.push_back(static_cast<int32_t>(std::ranges::max_element(logits) - logits.begin()));
    tokens.push_back(out.back());
  }
  return out;
}

TEST(LlmEngine, GreedyTextIsTheLikeliestContinuation) {
  const TextModel model = tiny_model();
  const std::string prompt = "hello bad cafe";
  const std::vector<int32_t> ids = model.tokenizer->encode(prompt);
  const std::string wanted = model.tokenizer->decode(continuation(model, ids, 20));
  for (const int32_t chunk : {1, 3, 512}) {
    const auto engine = make_llm_engine(
        tiny_model(),
        {.max_running = 1, .step_tokens = chunk, .block_size = 4, .kv_dtype = DType::f32});
    const auto sink = answer(*engine, greedy(prompt));
    EXPECT_EQ(sink->text, wanted) << "chunks of " << chunk;
    ASSERT_TRUE(sink->finished);
    EXPECT_EQ(sink->finished->reason, StopReason::max_tokens);
    EXPECT_EQ(sink->finished->tokens_out, 20);
    EXPECT_EQ(sink->started.prompt_tokens, std::ssize(ids));
    EXPECT_EQ(sink->started.model, "tiny");
    EXPECT_EQ(sink->starts, 1);
    EXPECT_TRUE(sink->indices_follow);
  }
}

TEST(LlmEngine, ACacheTypeThatHeadsDoNotFitIsRefusedAtLoad) {
  harness::expect_error("kv_cache", "heads of 16 elements do not fit q8_0", "another type",
                        [] { make_llm_engine(tiny_model(), {.kv_dtype = DType::q8_0}); });
}

TEST(LlmEngine, SequencesThatShareStepsDoNotDisturbEachOther) {
  const std::vector<std::string> prompts{"a", "some words here", "bad cafe face deed", "x y z"};
  std::vector<std::string> alone;
  alone.reserve(prompts.size());
  const auto one = make_llm_engine(tiny_model(), {});
  for (const std::string& prompt : prompts) alone.push_back(answer(*one, greedy(prompt))->text);
  const auto shared = make_llm_engine(tiny_model(), {.max_running = 3, .step_tokens = 4});
  std::vector<std::shared_ptr<Recorder>> sinks;
  sinks.reserve(prompts.size());
  for (const std::string& prompt : prompts) sinks.push_back(submit(*shared, greedy(prompt)));
  for (size_t i = 0; i < prompts.size(); ++i) {
    sinks[i]->wait();
    EXPECT_EQ(sinks[i]->text, alone[i]) << prompts[i];
  }
  EXPECT_EQ(shared->stats().kv_blocks_used, 0);
}

TEST(LlmEngine, TheSeedDecidesTheText) {
  const auto engine = make_llm_engine(tiny_model(), {});
  TextRequest request = greedy("abc", 30);
  request.sampling.temperature = 1.5f;
  request.sampling.top_k = 0;
  request.sampling.top_p = 1;
  const auto fresh = answer(*engine, request);
  request.sampling.seed = fresh->started.seed;
  EXPECT_EQ(answer(*engine, request)->text, fresh->text);
  request.sampling.seed = fresh->started.seed + 1;
  EXPECT_NE(answer(*engine, request)->text, fresh->text);
  request.sampling.seed.reset();
  EXPECT_NE(answer(*engine, request)->started.seed, fresh->started.seed);
}

TEST(LlmEngine, StopTextsEndTheAnswerAndAreNotPartOfIt) {
  const auto engine = make_llm_engine(tiny_model(), {});
  const std::string whole = answer(*engine, greedy("stop here"))->text;
  ASSERT_GE(whole.size(), 8u);
  TextRequest request = greedy("stop here");
  request.stop = {whole.substr(3, 4), "never seen"};
  const auto sink = answer(*engine, request);
  EXPECT_EQ(sink->text, whole.substr(0, whole.find(request.stop[0])));
  ASSERT_TRUE(sink->finished);
  EXPECT_EQ(sink->finished->reason, StopReason::stop_sequence);
  EXPECT_EQ(sink->finished->stop_sequence, request.stop[0]);

  request.sampling.min_tokens = request.max_tokens;
  const auto longest = answer(*engine, request);
  EXPECT_EQ(longest->text, whole);
  EXPECT_EQ(longest->finished->reason, StopReason::max_tokens);
}

TEST(LlmEngine, AnEndTokenEndsTheAnswer) {
  TextModel model = tiny_model();
  const std::vector<int32_t> ids = continuation(model, model.tokenizer->encode("the end"), 6);
  const auto first_new = std::ranges::find_if(
      ids, [&](int32_t id) { return id != ids[0] && std::ranges::count(ids, id) > 0; });
  ASSERT_NE(first_new, ids.end());
  model.end_tokens = {*first_new};
  const std::string wanted = model.tokenizer->decode(std::span(ids.begin(), first_new));
  const auto engine = make_llm_engine(std::move(model), {.kv_dtype = DType::f32});
  const auto sink = answer(*engine, greedy("the end"));
  ASSERT_TRUE(sink->finished);
  EXPECT_EQ(sink->finished->reason, StopReason::eos);
  EXPECT_EQ(sink->finished->end_id, *first_new);
  EXPECT_EQ(sink->text, wanted);
}

TEST(LlmEngine, TheRequestsRulesHoldInTheModelsTokens) {
  TextModel model = tiny_model();
  const std::vector<int32_t> ids = model.tokenizer->encode("hello");
  const std::vector<int32_t> usual = continuation(model, ids, 4);
  model.end_tokens = {usual[0]};
  const auto engine = make_llm_engine(std::move(model), {.kv_dtype = DType::f32});
  EXPECT_EQ(answer(*engine, greedy("hello"))->finished->tokens_out, 0);
  TextRequest longer = greedy("hello", 12);
  longer.sampling.min_tokens = 5;
  EXPECT_GE(answer(*engine, longer)->finished->tokens_out, 5);
  TextRequest endless = greedy("hello", 12);
  endless.sampling.ignore_eos = true;
  EXPECT_EQ(answer(*engine, endless)->finished->reason, StopReason::max_tokens);
  TextRequest ended = greedy("hello", 12);
  ended.sampling.logit_bias = {{usual[0], "", -INFINITY}, {-1, "cafe", 100}};
  EXPECT_EQ(answer(*engine, ended)->text.find_first_not_of("cafe"), std::string::npos);
  TextRequest unknown = greedy("hello");
  unknown.sampling.logit_bias = {{test::kTinyVocab, "", 1}};
  harness::expect_error("logit_bias", "token", "known", [&] { submit(*engine, unknown); });
}

TEST(LlmEngine, StopTokensEndTheAnswer) {
  const TextModel model = tiny_model();
  const std::vector<int32_t> ids = model.tokenizer->encode("hello");
  const std::vector<int32_t> usual = continuation(model, ids, 8);
  const auto engine = make_llm_engine(tiny_model(), {.kv_dtype = DType::f32});
  TextRequest request = greedy("hello", 8);
  request.stop_ids = {usual[5]};
  const auto first = std::ranges::find(usual, usual[5]);
  const std::vector<int32_t> before(usual.begin(), first);
  const auto sink = answer(*engine, request);
  EXPECT_EQ(sink->text, model.tokenizer->decode(before));
  EXPECT_EQ(sink->finished->tokens_out, std::ssize(before));
  EXPECT_EQ(sink->finished->reason, StopReason::eos);
  request.sampling.min_tokens = 8;
  EXPECT_EQ(answer(*engine, request)->finished->tokens_out, 8);
  request.stop_ids = {test::kTinyVocab};
  harness::expect_error("stop_token_ids", "token", "known", [&] { submit(*engine, request); });
}

TEST(LlmEngine, AnAnswerMayHaveSomeTokensAlone) {
  const auto engine = make_llm_engine(tiny_model(), {.kv_dtype = DType::f32});
  const std::vector<int32_t> allowed = tiny_model().tokenizer->encode("cafe", {});
  TextRequest request = greedy("hello", 8);
  request.allowed_ids = allowed;
  request.token_ids = true;
  const auto sink = answer(*engine, request);
  EXPECT_FALSE(sink->tokens.empty());
  for (const ScoredChoice& token : sink->tokens) {
    EXPECT_THAT(allowed, ::testing::Contains(token.chosen.id));
  }
  request.allowed_ids = {test::kTinyVocab};
  harness::expect_error("allowed_token_ids", "token", "known", [&] { submit(*engine, request); });
  request.allowed_ids = allowed;
  request.constraint = {.kind = Constraint::Kind::json_object, .text = {}, .choices = {}};
  harness::expect_error("allowed_token_ids", "form", "answer", [&] { submit(*engine, request); });
}

TEST(LlmEngine, APromptMayBeCutToItsLastOrFirstTokens) {
  const auto engine = make_llm_engine(tiny_model(), {.kv_dtype = DType::f32});
  TextRequest request = greedy("", 2);
  request.prompt_ids = {5, 6, 7, 8, 9};
  request.return_prompt_ids = true;
  request.kept_tokens = 3;
  EXPECT_THAT(answer(*engine, request)->started.prompt_ids, ::testing::ElementsAre(7, 8, 9));
  request.keeps_first = true;
  EXPECT_THAT(answer(*engine, request)->started.prompt_ids, ::testing::ElementsAre(5, 6, 7));
  request.keeps_first = false;
  request.kept_tokens = -1;
  request.prompt_ids.assign(200, 7);  // the context has 64
  EXPECT_EQ(answer(*engine, request)->started.prompt_tokens, 62);
  request.kept_tokens = 0;
  harness::expect_error("truncate_prompt_tokens", "0", "above", [&] { submit(*engine, request); });
}

TEST(LlmEngine, TheWayThroughAPromptIsTold) {
  const auto engine =
      make_llm_engine(tiny_model(), {.max_running = 2, .step_tokens = 4, .kv_dtype = DType::f32});
  TextRequest request = greedy("hello bad cafe", 2);
  EXPECT_TRUE(answer(*engine, request)->progress.empty());
  request.progress = true;
  request.cache_salt = "fresh";
  const auto sink = answer(*engine, request);
  ASSERT_GT(sink->progress.size(), 2u);
  EXPECT_EQ(sink->progress.front().evaluated, 0);
  EXPECT_EQ(sink->progress.front().ms, 0);
  EXPECT_EQ(sink->progress.back().evaluated, sink->started.prompt_tokens);
  for (size_t i = 1; i < sink->progress.size(); ++i) {
    EXPECT_GT(sink->progress[i].evaluated, sink->progress[i - 1].evaluated);
    EXPECT_GE(sink->progress[i].ms, sink->progress[i - 1].ms);
  }
}

TEST(LlmEngine, WhatTokensWereDrawnWithIsTold) {
  const auto engine = make_llm_engine(tiny_model(), {.kv_dtype = DType::f32});
  TextRequest request = greedy("hello", 6);
  request.sampling = {.temperature = 1.0f, .top_k = 3, .top_p = 1.0f, .seed = 5};
  request.drawn_logprobs = 10;
  const auto sink = answer(*engine, request);
  ASSERT_FALSE(sink->tokens.empty());
  for (const ScoredChoice& token : sink->tokens) {
    double sum = 0;
    for (const ScoredToken& other : token.top) sum += std::exp(other.logprob);
    EXPECT_EQ(token.top.size(), 3u);
    EXPECT_NEAR(sum, 1, 1e-5);
    EXPECT_THAT(token.top,
                ::testing::Contains(::testing::Field(&ScoredToken::logprob, token.chosen.logprob)));
  }
  request.sampling.temperature = 0;
  EXPECT_EQ(answer(*engine, request)->tokens.at(0).chosen.logprob, 0);
}

TEST(LlmEngine, TokensThatTheCacheHadAreCounted) {
  const auto engine = make_llm_engine(tiny_model(), {.block_size = 4});
  const auto first = answer(*engine, greedy("hello bad cafe", 2));
  EXPECT_EQ(first->started.cached_tokens, 0);
  EXPECT_EQ(first->finished->cached_tokens, 0);
  const auto second = answer(*engine, greedy("hello bad cafe", 2));
  // Whole blocks, with at least one token left to evaluate.
  const int32_t wanted = (second->started.prompt_tokens - 1) / 4 * 4;
  EXPECT_GT(wanted, 0);
  EXPECT_EQ(second->started.cached_tokens, wanted);
  EXPECT_EQ(second->finished->cached_tokens, wanted);
}

TEST(LlmEngine, AFullContextEndsTheAnswer) {
  const auto engine = make_llm_engine(tiny_model(32), {});
  const auto sink = answer(*engine, greedy("abc", 1000));
  ASSERT_TRUE(sink->finished);
  EXPECT_EQ(sink->finished->reason, StopReason::context_full);
  EXPECT_EQ(sink->finished->prompt_tokens + sink->finished->tokens_out, 32);
}

TEST(LlmEngine, ABadPromptIsRefusedAtTheDoor) {
  TextModel model = tiny_model(32);
  model.chat_template =
      std::make_unique<text::ChatTemplate>("{{ raise_exception('roles must alternate') }}");
  const auto engine = make_llm_engine(std::move(model), {});
  try {
    submit(*engine, greedy(std::string(200, 'z')));
    ADD_FAILURE() << "a prompt beyond the context was taken";
  } catch (const PromptTooLong& error) {
    EXPECT_EQ(error.tokens(), 201);
    EXPECT_EQ(error.context(), 32);
    EXPECT_EQ(error.code(), Code::invalid_argument);
    EXPECT_THAT(error.what(), HasSubstr("201 tokens"));
  }
  TextRequest chat;
  chat.messages = {{"user", "hi"}};
  harness::expect_error("chat template", "roles", "must alternate", [&] { submit(*engine, chat); });
  EXPECT_TRUE(answer(*engine, greedy("abc", 3))->finished);
  const EngineStats stats = engine->stats();
  EXPECT_EQ(stats.requests_failed, 0u);
  EXPECT_EQ(stats.requests_finished, 1u);
  EXPECT_EQ(stats.generated_tokens, 3u);
  EXPECT_EQ(stats.kv_blocks_used, 0);
  EXPECT_TRUE(stats.healthy);
  EXPECT_THROW(submit(*engine, TextRequest{}), Error);  // no prompt: refused at once
}

TEST(LlmEngine, MessagesWithoutATemplateTakeTheArchitecturesForm) {
  TextModel model = tiny_model(128);
  const std::vector<ChatMessage> messages{
      {"system", "be brief"}, {"user", "hi"}, {"assistant", "yes"}, {"user", "bye "}};
  EXPECT_EQ(model.render(messages, {}),
            "<|im_start|>system\nbe brief<|im_end|>\n<|im_start|>user\nhi<|im_end|>\n"
            "<|im_start|>assistant\nyes<|im_end|>\n<|im_start|>user\nbye <|im_end|>\n"
            "<|im_start|>assistant\n");
  model.info.architecture = "gemma3";
  EXPECT_EQ(model.render(messages, {}),
            "<s><start_of_turn>user\nbe brief\n\nhi<end_of_turn>\n"
            "<start_of_turn>model\nyes<end_of_turn>\n"
            "<start_of_turn>user\nbye<end_of_turn>\n<start_of_turn>model\n");
  model.info.architecture = "phi3";
  EXPECT_EQ(model.render({{"user", "hi"}}, {}), "<|user|>\nhi<|end|>\n<|assistant|>\n");
}

// A request that practically runs until it is cancelled.
TextRequest endless() {
  return greedy("on and on", 100000);
}

TEST(LlmEngine, CancelEndsRunningAndWaitingRequests) {
  const auto engine = make_llm_engine(tiny_model(4096), {.max_running = 1});
  const auto running = submit(*engine, endless(), "running");
  const auto waiting = submit(*engine, endless(), "waiting");
  const auto last = submit(*engine, greedy("abc", 2), "last");
  running->wait_for_text();
  EXPECT_EQ(engine->stats().waiting, 2);
  EXPECT_FALSE(engine->cancel("unknown"));
  EXPECT_TRUE(engine->cancel("waiting"));
  EXPECT_TRUE(engine->cancel("running"));
  for (const auto& sink : {running, waiting}) {
    sink->wait();
    ASSERT_TRUE(sink->finished);
    EXPECT_EQ(sink->finished->reason, StopReason::cancelled);
    EXPECT_EQ(sink->ends, 1);
  }
  EXPECT_EQ(waiting->starts, 0);
  last->wait();
  EXPECT_TRUE(last->finished);
  EXPECT_EQ(engine->stats().requests_cancelled, 2u);
}

TEST(LlmEngine, AFullQueueRefusesMore) {
  const auto engine = make_llm_engine(tiny_model(4096), {.max_running = 1, .max_waiting = 2});
  const auto running = submit(*engine, endless(), "running");
  running->wait_for_text();
  submit(*engine, endless());
  submit(*engine, endless());
  try {
    submit(*engine, endless());
    FAIL() << "a third request waits";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::out_of_memory);
    EXPECT_THAT(error.what(), HasSubstr("queue of 2"));
  }
}

// Whether the engine queues another request of this client.
bool takes(TextEngine& engine, const std::string& client) {
  TextRequest request = endless();
  request.client = client;
  try {
    submit(engine, std::move(request));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::out_of_memory);
    return false;
  }
  return true;
}

// Holds the engine's thread at its first text until the test releases it.
class Holding final : public EventSink {
 public:
  void on_started(const Started&) noexcept override {}
  void on_token(const TokenText&) noexcept override {
    if (!std::exchange(spoke_, true)) reached.set_value();
    gone_.wait();
  }
  void on_finished(const Finished&) noexcept override {}
  void on_failed(const Failed&) noexcept override {}

  std::promise<void> reached, go;

 private:
  bool spoke_ = false;
  std::shared_future<void> gone_ = go.get_future().share();
};

TEST(LlmEngine, WhoIsCancelledKeepsNobodyOutOfTheQueue) {
  const auto engine = make_llm_engine(tiny_model(4096), {.max_running = 1, .max_waiting = 2});
  const auto holding = std::make_shared<Holding>();
  engine->submit(endless(), holding);
  holding->reached.get_future().wait();
  submit(*engine, endless(), "first");
  submit(*engine, endless(), "second");
  EXPECT_FALSE(takes(*engine, ""));
  EXPECT_TRUE(engine->cancel("first"));  // leaves at the end of the engine's step
  EXPECT_TRUE(takes(*engine, ""));
  EXPECT_FALSE(takes(*engine, ""));
  holding->go.set_value();
}

TEST(LlmEngine, AClientThatFillsTheQueueDoesNotKeepTheOthersOut) {
  const auto engine = make_llm_engine(tiny_model(4096), {.max_running = 1, .max_waiting = 4});
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(takes(*engine, "a")) << i;
  EXPECT_FALSE(takes(*engine, "a"));
  // Two clients share four places: two each. With three, each has one.
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(takes(*engine, "b")) << i;
  EXPECT_FALSE(takes(*engine, "b"));
  EXPECT_TRUE(takes(*engine, "c"));
  EXPECT_FALSE(takes(*engine, "c"));
  EXPECT_TRUE(takes(*engine, "d"));
  // Now there are four more than the queue's places, which is the limit.
  EXPECT_FALSE(takes(*engine, "e"));
}

TEST(LlmEngine, GoingBeforeAllOthersHasToBeAllowed) {
  TextRequest urgent = greedy("abc", 1);
  urgent.priority = -1;
  const auto fair = make_llm_engine(tiny_model(), {});
  try {
    submit(*fair, urgent);
    FAIL() << "a priority below 0 is taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::invalid_argument);
    EXPECT_THAT(error.what(), HasSubstr("priority"));
  }
  urgent.priority = 1000;  // after all others
  EXPECT_TRUE(answer(*fair, urgent)->finished);
  urgent.priority = -1;
  const auto by_priority = make_llm_engine(tiny_model(), {.priorities = true});
  EXPECT_TRUE(answer(*by_priority, urgent)->finished);
}

TEST(LlmEngine, StopEndsEverythingAndTakesNoNewWork) {
  const auto engine = make_llm_engine(tiny_model(4096), {.max_running = 1});
  const auto running = submit(*engine, endless());
  const auto waiting = submit(*engine, endless());
  running->wait_for_text();
  engine->stop();
  engine->stop();
  for (const auto& sink : {running, waiting}) {
    EXPECT_EQ(sink->ends, 1);
    ASSERT_TRUE(sink->finished);
    EXPECT_EQ(sink->finished->reason, StopReason::cancelled);
  }
  EXPECT_THROW(submit(*engine, greedy("abc")), Error);
}

TEST(LlmEngine, ADeviceThatTheHostCannotReadGivesTheSameTexts) {
  FarDevice far;
  const auto here = make_llm_engine(tiny_model(), {.max_running = 2, .kv_dtype = DType::f32});
  const auto there =
      make_llm_engine(tiny_model(64, far), {.max_running = 2, .kv_dtype = DType::f32});
  // Decided by top logits, by top logits and their sum, and by whole rows only.
  const SamplingParams kinds[] = {{.temperature = 0},
                                  {.top_k = 5, .repetition_penalty = 1.2f},
                                  {.temperature = 0.7f, .top_k = 0, .top_p = 0.5f},
                                  {.top_k = 0, .top_p = 1, .min_p = 0},
                                  {.presence_penalty = -1}};
  for (const SamplingParams& kind : kinds) {
    TextRequest request = greedy("some words", 30);
    request.sampling = kind;
    request.sampling.seed = 12;
    const std::string wanted = answer(*here, request)->text;
    EXPECT_EQ(answer(*there, request)->text, wanted);
    // Together with a request that needs something else.
    const auto beside = submit(*there, greedy("x y z", 40), "beside");
    EXPECT_EQ(answer(*there, request)->text, wanted);
    beside->wait();
  }
}

TEST(Stepper, TopLogitsAreTheLargestOfTheRows) {
  FarDevice far;
  const TextModel model = tiny_model(64, far);
  Stepper stepper(*model.model, far, {.cache_tokens = 64, .block_size = 4});
  const auto evaluate = [&](const auto& step) {
    Sequence first(stepper.pool()), second(stepper.pool());
    first.tokens = {0, 9, 30, 31};
    second.tokens = {0, 77};
    const Stepper::Work work[] = {{&first, 4}, {&second, 2}};
    const int32_t rows[] = {3, 5};
    step(work, rows);
  };
  constexpr int64_t kKnown = 150;  // the rest is padding
  std::vector<float> logits;
  evaluate([&](const auto& work, const auto& rows) {
    const std::span<float> all = stepper.step(work, rows);
    logits.assign(all.begin(), all.end());
  });
  const float scales[] = {1, 0.5f};
  evaluate([&](const auto& work, const auto& rows) {
    const TopLogitRows found =
        stepper.step(work, rows, {.count = 7, .vocab = kKnown, .scales = scales});
    ASSERT_EQ(found.values.size(), 14u);
    for (size_t row = 0; row < 2; ++row) {
      const std::span<const float> whole =
          std::span(logits).subspan(row * test::kTinyVocab, kKnown);
      std::vector<float> sorted(whole.begin(), whole.end());
      std::ranges::sort(sorted, std::greater<>());
      double sum = 0;
      for (const float x : whole) sum += std::exp(scales[row] * double{x - sorted[0]});
      for (size_t i = 0; i < 7; ++i) {
        EXPECT_EQ(found.values[row * 7 + i], sorted[i]);
        EXPECT_EQ(whole[static_cast<size_t>(found.ids[row * 7 + i])], sorted[i]);
      }
      EXPECT_NEAR(found.sums[row], sum, sum * 1e-5);
      const std::span<float> again = stepper.logit_row(static_cast<int64_t>(row));
      EXPECT_EQ(again.size(), static_cast<size_t>(test::kTinyVocab));
      EXPECT_TRUE(std::ranges::equal(again.first(kKnown), whole));
    }
  });
}

TEST(LlmEngine, ALostDeviceEndsRunningAndWaitingRequestsAndTakesNoMore) {
  FarDevice far;
  const auto engine = make_llm_engine(tiny_model(4096, far), {.max_running = 1});
  const auto running = submit(*engine, endless(), "running");
  const auto waiting = submit(*engine, endless(), "waiting");
  running->wait_for_text();
  EXPECT_GT(engine->stats().device_memory_bytes, 0);
  far.lose();
  for (const auto& sink : {running, waiting}) {
    sink->wait();
    ASSERT_TRUE(sink->failed);
    EXPECT_EQ(sink->failed->code, Code::device);
    EXPECT_THAT(sink->failed->message, HasSubstr("lost as the test wants"));
    EXPECT_EQ(sink->ends, 1);
  }
  EXPECT_FALSE(engine->stats().healthy);
  EXPECT_EQ(engine->stats().device_memory_bytes, 0);  // a lost device is not queried
  EXPECT_EQ(engine->stats().requests_failed, 2u);
  try {
    submit(*engine, greedy("abc"));
    FAIL() << "a request is taken without a device";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::device);
  }
  engine->stop();
}

TEST(LlmEngine, AStepThatFindsNoMemoryFailsItsRequestAlone) {
  FarDevice far;
  const auto engine = make_llm_engine(tiny_model(64, far), {});
  const std::string wanted = answer(*engine, greedy("abc"))->text;
  far.fail_allocation(40);
  const auto failed = answer(*engine, greedy("abc"));
  ASSERT_TRUE(failed->failed);
  EXPECT_EQ(failed->failed->code, Code::out_of_memory);
  EXPECT_THAT(failed->failed->message, HasSubstr("bytes"));
  EXPECT_TRUE(engine->stats().healthy);
  EXPECT_EQ(engine->stats().kv_blocks_used, 0);
  EXPECT_EQ(answer(*engine, greedy("abc"))->text, wanted);
}

TEST(LlmEngine, OptionsOutOfRangeAreErrors) {
  EXPECT_THROW(make_llm_engine(tiny_model(), {.max_running = 0}), Error);
  EXPECT_THROW(make_llm_engine(tiny_model(), {.step_tokens = -1}), Error);
}

}  // namespace
}  // namespace rbee::engine
