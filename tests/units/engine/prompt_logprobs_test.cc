// Log probabilities of prompts' tokens against those of transformers' logits
// (tools/goldens/make_model_goldens.py), however the engine evaluates the prompts.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "tests/checkpoints/undefined_tensor.h"
#include "tests/support/data_folder.h"
#include "tests/support/expect_error.h"
#include "tests/support/npy.h"
#include "tests/units/engine/far_device.h"
#include "tests/units/engine/tiny_engine.h"

namespace rbee::engine {
namespace {

struct GoldenPrompt {
  std::vector<int32_t> ids;
  std::vector<std::vector<double>> logprobs;  // after each token, for every token
};

std::vector<double> log_softmax(std::span<const float> logits) {
  double sum = 0;
  for (const float x : logits) sum += std::exp(double{x});
  std::vector<double> out;
  for (const float x : logits) out.push_back(double{x} - std::log(sum));
  return out;
}

std::vector<GoldenPrompt> golden_prompts() {
  const auto folder = std::filesystem::path(test::data_folder()) / "models/language/data/smollm";
  const std::vector<int32_t> ids = test::read_npy<int32_t>(folder / "ids.npy").values;
  const auto logits = test::read_npy<float>(folder / "logits.npy");
  const auto vocab = static_cast<size_t>(logits.shape[1]);
  std::vector<GoldenPrompt> out;
  size_t at = 0;
  for (const int32_t length : test::read_npy<int32_t>(folder / "lengths.npy").values) {
    GoldenPrompt& prompt = out.emplace_back();
    for (int32_t i = 0; i < length; ++i, ++at) {
      prompt.ids.push_back(ids[at]);
      prompt.logprobs.push_back(log_softmax(std::span(logits.values).subspan(at * vocab, vocab)));
    }
  }
  return out;
}

TextRequest scored(const GoldenPrompt& prompt, int32_t top, int32_t max_tokens = 1) {
  TextRequest request = greedy("", max_tokens);
  request.prompt_ids = prompt.ids;
  request.prompt_logprobs = top;
  return request;
}

void expect_golden(const Recorder& sink, const GoldenPrompt& golden, size_t top) {
  constexpr double kBound = 1e-3;
  ASSERT_TRUE(sink.finished) << (sink.failed ? sink.failed->message : "");
  EXPECT_EQ(sink.prompts, 1);
  ASSERT_EQ(sink.prompt.size(), golden.ids.size());
  EXPECT_EQ(sink.prompt[0].rank, 0);
  EXPECT_TRUE(sink.prompt[0].scored.top.empty());
  for (size_t i = 0; i < golden.ids.size(); ++i) {
    EXPECT_EQ(sink.prompt[i].scored.chosen.id, golden.ids[i]);
    if (i == 0) continue;
    const std::vector<double>& wanted = golden.logprobs[i - 1];
    const PromptToken& found = sink.prompt[i];
    const double own = wanted[static_cast<size_t>(golden.ids[i])];
    EXPECT_NEAR(found.scored.chosen.logprob, own, kBound) << i;
    const auto likelier = [&](double margin) {
      return std::ranges::count_if(wanted, [&](double x) { return x > own + margin; });
    };
    EXPECT_GE(found.rank, 1 + likelier(kBound)) << i;
    EXPECT_LE(found.rank, 1 + likelier(-kBound)) << i;
    ASSERT_EQ(found.scored.top.size(), top);
    std::vector<double> sorted = wanted;
    std::ranges::sort(sorted, std::greater<>());
    for (size_t j = 0; j < top; ++j) {
      EXPECT_NEAR(found.scored.top[j].logprob, sorted[j], kBound) << i;
      EXPECT_NEAR(wanted[static_cast<size_t>(found.scored.top[j].id)], sorted[j], kBound) << i;
    }
  }
}

LlmOptions exact(LlmOptions options) {
  options.block_size = 4;
  options.kv_dtype = DType::f32;
  return options;
}

TEST(PromptLogprobs, AreTransformersWholeInChunksAndInABatch) {
  const std::vector<GoldenPrompt> golden = golden_prompts();
  for (const int64_t step_tokens : {512, 5}) {
    const auto engine =
        make_llm_engine(tiny_model(), exact({.max_running = 4, .step_tokens = step_tokens}));
    for (const GoldenPrompt& prompt : golden) {
      expect_golden(*answer(*engine, scored(prompt, 3)), prompt, 3);
    }
    const auto holder = hold(*engine, greedy("hold", 1));
    const auto beside = submit(*engine, greedy("beside", 30), "beside");
    std::vector<std::shared_ptr<Recorder>> sinks;
    for (const GoldenPrompt& prompt : golden) sinks.push_back(submit(*engine, scored(prompt, 0)));
    holder->let_go();
    for (size_t i = 0; i < golden.size(); ++i) {
      sinks[i]->wait();
      expect_golden(*sinks[i], golden[i], 0);
    }
    beside->wait();
    EXPECT_TRUE(beside->prompt.empty());
    EXPECT_EQ(beside->text, answer(*engine, greedy("beside", 30))->text);
  }
}

TEST(PromptLogprobs, AreTransformersWhereTheHostCannotReadTheDevice) {
  FarDevice device;
  const auto engine = make_llm_engine(tiny_model(64, device), exact({.max_running = 2}));
  for (const GoldenPrompt& prompt : golden_prompts()) {
    expect_golden(*answer(*engine, scored(prompt, 20)), prompt, 20);
  }
}

TEST(PromptLogprobs, ComeFromNoCacheButFillIt) {
  const GoldenPrompt prompt = golden_prompts()[0];
  const auto engine = make_llm_engine(tiny_model(), exact({.max_running = 1}));
  for (int i = 0; i < 2; ++i) expect_golden(*answer(*engine, scored(prompt, 1)), prompt, 1);
  EXPECT_EQ(engine->stats().prefix_hits, 0u);
  EXPECT_EQ(engine->stats().prompt_tokens, 2 * prompt.ids.size());
  TextRequest plain = scored(prompt, 1);
  plain.prompt_logprobs = std::nullopt;
  EXPECT_TRUE(answer(*engine, plain)->prompt.empty());
  EXPECT_EQ(engine->stats().prefix_hits, 20u);  // whole blocks before the last token
}

TEST(PromptLogprobs, OfAModelThatComputesNaNFailTheirRequest) {
  std::string copy = (std::filesystem::temp_directory_path() / "rbee-scores-XXXXXX").string();
  ASSERT_NE(::mkdtemp(copy.data()), nullptr);
  const auto file = std::filesystem::path(copy) / "model.gguf";
  std::filesystem::copy_file(
      std::filesystem::path(test::data_folder()) / "models/language/data/smollm/model.gguf", file);
  test::make_undefined(file, "blk.0.attn_norm.weight");
  TextModel model = tiny_model();
  model.model = models::load_language_model(io::Checkpoint::open(file), {.device = model.device});
  const auto engine = make_llm_engine(std::move(model), exact({.max_running = 2}));
  for (const int32_t max_tokens : {0, 1}) {
    const auto sink = answer(*engine, scored(golden_prompts()[0], 1, max_tokens));
    ASSERT_TRUE(sink->failed);
    EXPECT_EQ(sink->failed->code, Code::internal);
    EXPECT_NE(sink->failed->message.find("the model gave no finite logit"), std::string::npos);
    EXPECT_EQ(sink->prompts, 0);
  }
  EXPECT_EQ(engine->stats().requests_failed, 2u);
  EXPECT_EQ(engine->stats().kv_blocks_used, 0);
  std::filesystem::remove_all(copy);
}

// Two generating requests take the blocks of a prompt that is being evaluated.
TEST(PromptLogprobs, StayWhenTheirPromptLosesItsPlace) {
  const GoldenPrompt prompt = golden_prompts()[0];
  const auto engine = make_llm_engine(
      tiny_model(), exact({.max_running = 3, .step_tokens = 4, .cache_tokens = 64}));
  const auto holder = hold(*engine, greedy("h", 1));
  const auto first = submit(*engine, greedy("abcd", 24), "first");
  const auto second = submit(*engine, greedy("efgh", 24), "second");
  TextRequest late = scored(prompt, 2, 4);
  late.priority = 1;
  const auto sink = submit(*engine, late, "late");
  holder->let_go();
  for (const auto& one : {first, second, sink}) one->wait();
  EXPECT_GT(engine->stats().preemptions, 0u);
  expect_golden(*sink, prompt, 2);
  EXPECT_EQ(sink->starts, 1);
  late.prompt_logprobs = std::nullopt;
  EXPECT_EQ(sink->text, answer(*engine, late)->text);
}

TEST(PromptLogprobs, WithoutAnAnswer) {
  const std::vector<GoldenPrompt> golden = golden_prompts();
  const auto engine = make_llm_engine(tiny_model(), exact({.max_running = 4}));
  const auto sink = answer(*engine, scored(golden[1], 2, 0));
  expect_golden(*sink, golden[1], 2);
  EXPECT_EQ(sink->finished->reason, StopReason::max_tokens);
  EXPECT_EQ(sink->finished->tokens_out, 0);
  EXPECT_EQ(sink->pieces, 0);
  EXPECT_EQ(engine->stats().generated_tokens, 0u);
  EXPECT_EQ(engine->stats().kv_blocks_used, 0);
  TextRequest silent = scored(golden[1], 0, 0);
  silent.prompt_logprobs = std::nullopt;
  EXPECT_EQ(answer(*engine, silent)->finished->reason, StopReason::max_tokens);
  // A prompt of one token has no log probability.
  const auto single = answer(*engine, scored({{96}, {{}}}, 2, 0));
  ASSERT_EQ(single->prompt.size(), 1u);
  EXPECT_EQ(single->prompt[0].rank, 0);
}

TEST(PromptLogprobs, UnknownTokensAreRefused) {
  const auto engine = make_llm_engine(tiny_model(), {});
  for (const int32_t id : {-1, 160}) {
    TextRequest request = greedy("", 1);
    request.prompt_ids = {1, id};
    harness::expect_error("prompt", "token", "160 known", [&] { submit(*engine, request); });
  }
}

}  // namespace
}  // namespace rbee::engine
