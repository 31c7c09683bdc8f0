// A draft model changes the number of steps, but no greedy text and no distribution.
#include "rbee/engine/text/draft/draft_model.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "tests/support/expect_error.h"
#include "tests/units/engine/far_device.h"
#include "tests/units/engine/speculating.h"

namespace rbee::engine {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kContext = 128;

// Two engines at a time compute little; more threads would only wait for each other.
const bool kOneThread = (cpu::set_thread_count(1), true);

// A model with a wave of this height added to its logits, so it is right now and then.
class WrongModel final : public models::LanguageModel {
 public:
  WrongModel(std::unique_ptr<models::LanguageModel> model, float by)
      : model_(std::move(model)), by_(by) {}
  const models::ModelConfig& config() const override { return model_->config(); }
  Tensor forward(const models::ForwardBatch& batch, nn::KvCache& cache) const override {
    Tensor logits = model_->forward(batch, cache);
    const std::span<float> all(logits.data<float>(), static_cast<size_t>(logits.numel()));
    for (size_t i = 0; i < all.size(); ++i) {
      all[i] += by_ * std::sin(static_cast<float>(i % static_cast<size_t>(logits.dim(1))));
    }
    return logits;
  }
  Tensor states(const models::ForwardBatch& batch, nn::KvCache& cache) const override {
    return model_->states(batch, cache);
  }
  DType activations() const override { return model_->activations(); }
  int64_t weight_bytes() const override { return model_->weight_bytes(); }
  int64_t parameters() const override { return model_->parameters(); }
  std::string quantization() const override { return model_->quantization(); }
  std::span<const nn::LoraTarget> lora_targets() const override { return model_->lora_targets(); }

 private:
  std::unique_ptr<models::LanguageModel> model_;
  float by_;
};

TextModel wrong_model(float by, const std::string& family = "smollm") {
  TextModel out = tiny_model(kContext, cpu(), family);
  out.model = std::make_unique<WrongModel>(std::move(out.model), by);
  return out;
}

TextRequest random_request(size_t i, int32_t tokens) {
  TextRequest request = greedy(kPrompts[i % kPrompts.size()] + std::to_string(i), tokens);
  request.sampling.frequency_penalty = 0.2f;  // depends on earlier draft tokens
  return request;
}

constexpr size_t kTogether = 8;

std::vector<std::string> texts(TextEngine& engine, int32_t tokens) {
  const auto holder = hold(engine, greedy("hold", 1));
  std::vector<std::shared_ptr<Recorder>> sinks;
  for (size_t i = 0; i < kTogether; ++i) {
    sinks.push_back(submit(engine, random_request(i, tokens), cat("job-", i)));
  }
  holder->let_go();
  std::vector<std::string> out;
  for (const auto& sink : sinks) {
    sink->wait();
    EXPECT_TRUE(sink->finished);
    out.push_back(sink->text);
  }
  return out;
}

class DraftOfEveryFamily : public ::testing::TestWithParam<const char*> {};

TEST_P(DraftOfEveryFamily, GreedyTextsAreTheSame) {
  const auto target = [] { return tiny_model(kContext, cpu(), GetParam()); };
  const auto without = make_llm_engine(target(), plain());
  const std::vector<std::string> wanted = texts(*without, 16);
  struct Case {
    const char* name;
    float off;
    int32_t together;
  };
  for (const Case& c :
       {Case{"right", 0, 1}, Case{"right in part", 0.05f, 8}, Case{"wrong", 30, 8}}) {
    LlmOptions options = speculating();
    options.max_running = c.together;
    const auto with = make_llm_engine(target(), options, wrong_model(c.off, GetParam()));
    EXPECT_EQ(texts(*with, 16), wanted) << c.name;
    const EngineStats stats = with->stats();
    EXPECT_GT(stats.drafts, 0u);
    if (c.off == 0) {
      EXPECT_EQ(stats.accepted_tokens, stats.draft_tokens);
    }
    if (c.off == 30) {
      EXPECT_LT(stats.accepted_tokens, stats.draft_tokens / 2);
    }
    EXPECT_EQ(stats.kv_blocks_used, 0);
    EXPECT_EQ(stats.generated_tokens, without->stats().generated_tokens);
  }
}

INSTANTIATE_TEST_SUITE_P(Draft, DraftOfEveryFamily,
                         ::testing::Values("llama", "qwen3", "gemma3", "stablelm"),
                         [](const auto& family) { return std::string(family.param); });

TEST(Draft, OfAnotherFamilyHelpsToo) {
  const auto without = make_llm_engine(tiny_model(kContext), plain());
  const auto with =
      make_llm_engine(tiny_model(kContext), speculating(), tiny_model(kContext, cpu(), "llama"));
  EXPECT_EQ(texts(*with, 30), texts(*without, 30));
  EXPECT_GT(with->stats().drafts, 0u);
}

TEST(Draft, DrawsFollowTheModelsDistribution) {
  const auto engine = make_llm_engine(tiny_model(kContext), speculating(), wrong_model(2));
  EXPECT_LT(chi_square_of_draws(*engine), 24.3);  // exceeded once in a thousand
  const EngineStats stats = engine->stats();
  EXPECT_GT(stats.accepted_tokens, 100u);
  EXPECT_GT(stats.draft_tokens - stats.accepted_tokens, 100u);
}

TextRequest sampled(uint64_t seed) {
  TextRequest request = greedy(kPrompts[seed % kPrompts.size()], 40);
  request.sampling = {.temperature = 1, .top_k = 8, .top_p = 0.95f, .seed = seed};
  return request;
}

TEST(Draft, WhatIsDrawnByTheSameModelIsTaken) {
  const auto engine = make_llm_engine(tiny_model(kContext), speculating(), tiny_model(kContext));
  for (uint64_t seed = 0; seed < 6; ++seed) {
    const auto first = answer(*engine, sampled(seed));
    EXPECT_EQ(first->finished->tokens_out, 40);
    EXPECT_EQ(answer(*engine, sampled(seed))->text, first->text) << "seed " << seed;
  }
  // Rounding lets single steps differ from shared ones in less than one draft token in a thousand.
  const EngineStats stats = engine->stats();
  EXPECT_GT(stats.draft_tokens, 300u);
  EXPECT_LE(stats.draft_tokens - stats.accepted_tokens, 1u);
}

TEST(Draft, FollowsThoseThatLoseTheirBlocks) {
  const auto without = make_llm_engine(tiny_model(kContext), plain());
  LlmOptions tight = speculating();
  tight.cache_tokens = 160;
  const auto with = make_llm_engine(tiny_model(kContext), tight, tiny_model(kContext));
  EXPECT_EQ(texts(*with, 50), texts(*without, 50));
  const EngineStats stats = with->stats();
  EXPECT_GT(stats.preemptions, 0u);
  EXPECT_GT(stats.draft_tokens, 0u);
  EXPECT_EQ(stats.accepted_tokens, stats.draft_tokens);
}

// Its drafts are right only if its cache holds the prefix, too.
TEST(Draft, KnowsBeginningsThatWereEvaluatedWithoutIt) {
  const auto engine = make_llm_engine(tiny_model(kContext), speculating(), tiny_model(kContext));
  TextRequest request = greedy("some beginning of a chat that is long enough for blocks", 20);
  request.speculative = false;
  const auto first = answer(*engine, request);
  EXPECT_EQ(engine->stats().drafts, 0u);
  request.speculative = true;
  for (int i = 0; i < 2; ++i) EXPECT_EQ(answer(*engine, request)->text, first->text);
  const EngineStats stats = engine->stats();
  EXPECT_GT(stats.prefix_hits, 0u);
  EXPECT_GT(stats.draft_tokens, 30u);
  EXPECT_EQ(stats.accepted_tokens, stats.draft_tokens);
}

TEST(Draft, LongPromptsComeInChunks) {
  LlmOptions options = speculating();
  options.step_tokens = 16;
  const auto with = make_llm_engine(tiny_model(kContext), options, tiny_model(kContext));
  const auto without = make_llm_engine(tiny_model(kContext), plain());
  TextRequest request =
      greedy("a prompt that is longer than what one step evaluates of it, by far", 20);
  EXPECT_EQ(answer(*with, request)->text, answer(*without, request)->text);
  EXPECT_GT(with->stats().draft_tokens, 0u);
  EXPECT_EQ(with->stats().accepted_tokens, with->stats().draft_tokens);
}

TEST(Draft, CancelledRequestsGiveTheirBlocksBack) {
  const auto engine = make_llm_engine(tiny_model(kContext), speculating(), tiny_model(kContext));
  const auto holder = hold(*engine, greedy("x", 100), "job", 2);
  EXPECT_TRUE(engine->cancel("job"));
  holder->let_go();
  holder->events.wait();
  EXPECT_EQ(holder->events.finished->reason, StopReason::cancelled);
  EXPECT_LT(holder->events.finished->tokens_out, 100);
  EXPECT_EQ(engine->stats().kv_blocks_used, 0);
  EXPECT_EQ(answer(*engine, greedy("x", 10))->finished->tokens_out, 10);
}

TEST(Draft, OneThatFailsCostsNoRequest) {
  const auto without = make_llm_engine(tiny_model(kContext), plain());
  const auto with = make_llm_engine(tiny_model(kContext), speculating(),
                                    wrong_model(std::numeric_limits<float>::quiet_NaN()));
  EXPECT_EQ(texts(*with, 20), texts(*without, 20));
  EXPECT_EQ(with->stats().drafts, 0u);
  EXPECT_EQ(with->stats().requests_failed, 0u);
}

TEST(Draft, StopsWhereItIsUnsure) {
  const auto drafted = [](float min_p) {
    LlmOptions options = speculating();
    options.draft_min_p = min_p;
    const auto engine = make_llm_engine(tiny_model(kContext), options, tiny_model(kContext));
    answer(*engine, greedy("hello", 60));
    return engine->stats().draft_tokens;
  };
  const uint64_t all = drafted(0), none = drafted(1);
  EXPECT_GT(all, 40u);
  EXPECT_EQ(none, 0u);
}

TEST(Draft, IsCountedInTheFigures) {
  const auto without = make_llm_engine(tiny_model(kContext), plain());
  const auto with = make_llm_engine(tiny_model(kContext), speculating(), tiny_model(kContext));
  // They have equal block counts and, being the same model, equal sizes.
  EXPECT_EQ(with->model().kv_cache_bytes, 2 * without->model().kv_cache_bytes);
  EXPECT_EQ(with->model().weight_bytes,
            without->model().weight_bytes + tiny_model(kContext).info.weight_bytes);
}

std::string refusal(TextModel draft, TextModel model = tiny_model(kContext),
                    Code code = Code::invalid_argument) {
  try {
    make_llm_engine(std::move(model), speculating(), std::move(draft));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code);
    return error.what();
  }
  return "taken";
}

TEST(Draft, OfAnotherVocabularyIsRefused) {
  TextModel larger = tiny_model(kContext);
  larger.info.vocab_size = 170;
  EXPECT_THAT(refusal(std::move(larger)), HasSubstr("170"));
  TextModel other = tiny_model(kContext);
  other.tokenizer = text::tokenizer_from_json(test::tiny_tokenizer_json("<other>"), "{}");
  EXPECT_THAT(refusal(std::move(other)),
              HasSubstr("differs from the model's at token 1: '<other>'"));
  EXPECT_THAT(refusal(tiny_model(64)), HasSubstr("context of 64 tokens is shorter"));
  FarDevice far;
  EXPECT_THAT(refusal(tiny_model(kContext, far)), HasSubstr("it is on"));
}

// Neither side may have layers with states.
TEST(Draft, WithStatesIsRefused) {
  const auto states = [] { return tiny_model(kContext, cpu(), "qwen3_5"); };
  EXPECT_THAT(refusal(tiny_model(kContext), states(), Code::unsupported),
              HasSubstr("the model has such layers"));
  EXPECT_THAT(refusal(states(), tiny_model(kContext), Code::unsupported),
              HasSubstr("it has such layers"));
}

constexpr const char* kForm = "(ca[fb]e ){2,12}";
bool has_form(std::string_view text) {
  const size_t words = text.size() / 5;
  for (size_t i = 0; i < words; ++i) {
    const std::string_view word = text.substr(5 * i, 5);
    if (word != "cafe " && word != "cabe ") return false;
  }
  return text.size() % 5 == 0 && words >= 2 && words <= 12;
}

// Each draft token is checked against the grammar after the draft tokens before it.
TEST(Draft, AnswersHaveTheirForm) {
  const auto without = make_llm_engine(tiny_model(kContext), plain());
  const auto ngram = make_llm_engine(tiny_model(kContext), speculating());
  const auto with = make_llm_engine(tiny_model(kContext), speculating(), wrong_model(0.05f));
  TextRequest request = greedy("cafe cabe cafe cafe cafe ", 40);
  request.constraint = {Constraint::Kind::regex, kForm, {}};
  for (const int32_t tokens : {3, 17, 60}) {
    request.max_tokens = tokens;
    for (uint64_t seed = 0; seed < 3; ++seed) {
      request.sampling.temperature = seed == 0 ? 0.0f : 1.5f;
      request.sampling.seed = seed;
      const auto wanted = answer(*without, request), looked_up = answer(*ngram, request),
                 drafted = answer(*with, request);
      EXPECT_EQ(looked_up->text, wanted->text) << seed;
      EXPECT_EQ(looked_up->finished->complete, wanted->finished->complete);
      if (seed == 0) {
        EXPECT_EQ(drafted->text, wanted->text);
      }
      const bool whole = has_form(drafted->text);
      EXPECT_EQ(drafted->finished->complete, whole) << drafted->text;
      EXPECT_TRUE(whole || drafted->finished->reason == StopReason::max_tokens);
    }
  }
  EXPECT_GT(ngram->stats().accepted_tokens, 20u);
  EXPECT_GT(with->stats().accepted_tokens, 20u);
}

}  // namespace
}  // namespace rbee::engine
