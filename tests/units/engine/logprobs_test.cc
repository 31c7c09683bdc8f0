// Log probabilities against their definition, on rows of numbers and of a tiny model.

#include "rbee/engine/text/sampling/logprobs.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <set>

#include "rbee/engine/text/step/stepper.h"
#include "tests/checkpoints/checkpoint_files.h"
#include "tests/support/expect_error.h"
#include "tests/units/engine/tiny_engine.h"

namespace rbee::engine {
namespace {

TEST(Logprobs, AreTheLogSoftmax) {
  const std::vector<float> row = {std::log(0.5f) + 3, std::log(0.2f) + 3, std::nanf(""),
                                  std::log(0.3f) + 3};
  const RowLogprobs found = logprobs_of(row, 1, 2);
  EXPECT_NEAR(found.chosen.logprob, std::log(0.2), 1e-6);
  ASSERT_EQ(found.top.size(), 2u);
  EXPECT_EQ(found.top[0].id, 0);
  EXPECT_NEAR(found.top[0].logprob, std::log(0.5), 1e-6);
  EXPECT_EQ(found.top[1].id, 3);
  EXPECT_NEAR(found.top[1].logprob, std::log(0.3), 1e-6);
  EXPECT_TRUE(logprobs_of(row, 1, 0).top.empty());
}

TEST(Logprobs, OfRowsWithoutAFiniteLogitAreErrors) {
  const float nan = std::nanf(""), infinite = std::numeric_limits<float>::infinity();
  const auto expect_refused = [](auto&& find) {
    test::expect_error(Code::internal, {"the model gave no finite logit"}, find);
  };
  for (const float x : {nan, infinite, -infinite}) {
    const std::vector<float> row(4, x);
    const std::vector<int32_t> ids = {1, 2};
    expect_refused([&] { static_cast<void>(logprobs_of(row, 1, 2)); });
    expect_refused([&] { static_cast<void>(logprobs_of(row, 1, 0)); });
    expect_refused([&] { static_cast<void>(logprobs_of(row, 1, std::span(ids))); });
    const std::vector<float> values(2, x);
    const TopLogits top_logits{.values = values, .ids = ids, .sum = nan, .vocab = 4};
    expect_refused([&] { static_cast<void>(logprobs_of(top_logits, 1, 2)); });
    expect_refused([&] { static_cast<void>(logprobs_of(top_logits, TokenLogit{0, x}, 0)); });
  }
  const std::vector<float> row = {1, nan, 2, -infinite};
  expect_refused([&] { static_cast<void>(logprobs_of(row, 1, 1)); });
  EXPECT_EQ(logprobs_of(row, 3, 1).chosen.logprob, -infinite);
}

TEST(Logprobs, FromTopLogitsAreTheRows) {
  const std::vector<float> row = {0.5f, 2.0f, -1.0f, 1.5f, 0.0f};
  const std::vector<float> values = {2.0f, 1.5f, 0.5f};
  const std::vector<int32_t> ids = {1, 3, 0};
  float sum = 0;
  for (const float x : row) sum += std::exp(x - 2);
  const TopLogits top_logits{.values = values, .ids = ids, .sum = sum, .vocab = 5};
  const RowLogprobs few = logprobs_of(top_logits, 0, 2), whole = logprobs_of(row, 0, 2);
  EXPECT_NEAR(few.chosen.logprob, whole.chosen.logprob, 1e-6);
  ASSERT_EQ(few.top.size(), whole.top.size());
  for (size_t i = 0; i < few.top.size(); ++i) {
    EXPECT_EQ(few.top[i].id, whole.top[i].id);
    EXPECT_NEAR(few.top[i].logprob, whole.top[i].logprob, 1e-6);
  }
}

// The log-softmax of the row after `tokens`, in double.
std::vector<double> log_softmax_after(const TextModel& model, const std::vector<int32_t>& tokens) {
  Stepper stepper(*model.model, *model.device,
                  {.cache_tokens = 128, .block_size = 16, .kv_dtype = DType::f32});
  Sequence sequence(stepper.pool());
  sequence.tokens = tokens;
  const Stepper::Work work[] = {{&sequence, sequence.length()}};
  const int32_t rows[] = {static_cast<int32_t>(sequence.length() - 1)};
  const std::span<float> logits =
      stepper.step(work, rows).first(static_cast<size_t>(model.tokenizer->vocab_size()));
  double sum = 0;
  for (const float x : logits) sum += std::exp(double{x});
  std::vector<double> out;
  for (const float x : logits) out.push_back(double{x} - std::log(sum));
  return out;
}

// However the token is chosen, the figures are the unchanged model's.
TEST(Logprobs, OfARequestAreTheModelsWhateverTheSamplersDo) {
  const TextModel model = tiny_model();
  std::vector<TextRequest> requests(4, greedy("hello", 6));
  requests[1].sampling = {.temperature = 1.5f, .top_k = 10};  // from top logits, without a sum
  requests[2].sampling = {.temperature = 0.7f, .top_k = 0, .top_p = 1};  // from the row
  requests[2].sampling.logit_bias = {{7, "", 5}};
  requests[3].sampling = {.temperature = 0.7f, .top_k = 0, .top_p = 0.9f};
  requests[3].sampling.samplers = {SamplerKind::temperature, SamplerKind::top_p};
  for (TextRequest& request : requests) {
    request.sampling.seed = 5;
    const auto engine = make_llm_engine(tiny_model(), {.kv_dtype = DType::f32});
    const std::string plain = answer(*engine, request)->text;
    request.logprobs = 3;
    const auto sink = answer(*engine, request);
    EXPECT_EQ(sink->text, plain);
    ASSERT_EQ(sink->tokens.size(), 6u);
    std::vector<int32_t> tokens = model.tokenizer->encode("hello");
    std::string text;
    for (const ScoredChoice& choice : sink->tokens) {
      const std::vector<double> wanted = log_softmax_after(model, tokens);
      EXPECT_NEAR(choice.chosen.logprob, wanted[static_cast<size_t>(choice.chosen.id)], 1e-4);
      ASSERT_EQ(choice.top.size(), 3u);
      EXPECT_NEAR(choice.top[0].logprob, *std::ranges::max_element(wanted), 1e-4);
      for (const ScoredToken& token : choice.top) {
        EXPECT_NEAR(token.logprob, wanted[static_cast<size_t>(token.id)], 1e-4);
        EXPECT_EQ(token.text, model.tokenizer->piece(token.id, true));
      }
      tokens.push_back(choice.chosen.id);
      text += choice.chosen.text;
    }
    EXPECT_EQ(text, sink->text);
    request.logprob_ids = {9, 3, 9};
    const auto named = answer(*engine, request);
    EXPECT_EQ(named->text, plain);
    const ScoredChoice& first = named->tokens.at(0);
    const std::vector<double> wanted = log_softmax_after(model, model.tokenizer->encode("hello"));
    std::set<int32_t> shown;
    for (const ScoredToken& token : first.top) {
      shown.insert(token.id);
      EXPECT_NEAR(token.logprob, wanted[static_cast<size_t>(token.id)], 1e-4);
    }
    EXPECT_EQ(shown, (std::set<int32_t>{3, 9, first.chosen.id}));
    EXPECT_EQ(shown.size(), first.top.size());
    EXPECT_NEAR(first.chosen.logprob, wanted[static_cast<size_t>(first.chosen.id)], 1e-4);
    request.logprob_ids = {test::kTinyVocab};
    harness::expect_error("logprob_token_ids", "token", "known", [&] { submit(*engine, request); });
  }
}

// Reports the tokens of the kept text and none after it, wherever a stop text begins.
TEST(Logprobs, EndWhereAStopTextCutsTheAnswer) {
  const auto engine = make_llm_engine(tiny_model(), {.kv_dtype = DType::f32});
  TextRequest request = greedy("hello", 12);
  request.logprobs = 0;
  const auto whole = answer(*engine, request);
  ASSERT_EQ(whole->tokens.size(), 12u);
  int cut = 0;
  for (size_t from = 0; from < whole->text.size(); ++from) {
    for (const size_t bytes : {1, 3}) {
      const std::string stop = whole->text.substr(from, bytes);
      if (stop.size() < bytes || static_cast<unsigned char>(stop[0] & 0x80) != 0) continue;
      request.stop = {stop};
      const auto sink = answer(*engine, request);
      const std::string kept = whole->text.substr(0, whole->text.find(stop));
      EXPECT_EQ(sink->text, kept);
      // The number of tokens that the kept text needs.
      size_t wanted = 0;
      for (std::string text; text.size() < kept.size(); ++wanted) {
        text += whole->tokens[wanted].chosen.text;
      }
      EXPECT_EQ(sink->tokens.size(), wanted) << stop;
      cut += static_cast<int>(wanted) < sink->finished->tokens_out ? 1 : 0;
    }
  }
  EXPECT_GT(cut, 5);
}

}  // namespace
}  // namespace rbee::engine
