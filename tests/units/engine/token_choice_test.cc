// A failing device's output must not become an index on the host.
#include "rbee/engine/text/sampling/token_choice.h"

#include <gmock/gmock.h>

#include "tests/units/engine/tiny_engine.h"

namespace rbee::engine {
namespace {

TEST(TokenChoice, RefusesTokensThatThereAreNot) {
  constexpr int64_t kVocab = test::kTinyVocab;
  const TextModel model = tiny_model();
  Stepper stepper(*model.model, *model.device, {.cache_tokens = 64, .block_size = 8});
  const float values[] = {3, 2, 1, 0};
  const TopLogitsWanted wanted{.count = 4, .vocab = kVocab, .scales = {}};
  // A mask of the known tokens; it has no bits for others.
  const std::vector<uint64_t> bits(static_cast<size_t>(kVocab) / 64 + 1, ~uint64_t{0});
  for (const int32_t strange : {-1, static_cast<int32_t>(kVocab), 1 << 30}) {
    const int32_t ids[] = {5, 6, strange, 7};
    const TopLogitRows found{.values = values, .ids = ids, .sums = {}};
    TokenSampler sampler({}, 1);
    sampler.allow({.bits = bits, .count = kVocab});
    try {
      choose_token(sampler, std::nullopt, {stepper, found, wanted}, {.index = 0, .history = {}});
      FAIL() << strange;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::internal);
      EXPECT_THAT(error.what(), ::testing::HasSubstr(cat("token ", strange, " is outside")));
    }
  }
}

}  // namespace
}  // namespace rbee::engine
