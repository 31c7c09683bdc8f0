// Decode steps that are queued before the host knows their tokens.

#include <algorithm>
#include <deque>

#include "rbee/engine/text/step/stepper.h"
#include "tests/units/engine/recalling_device.h"

namespace rbee::engine {
namespace {

constexpr int64_t kVocab = test::kTinyVocab;
constexpr TopLogitsWanted kLikeliest{.count = 1, .vocab = kVocab, .scales = {}};

// Sequences after their prompts, which differ in length.
class Chats {
 public:
  Chats(Stepper& stepper, int count) : stepper_(stepper) {
    for (int i = 0; i < count; ++i) {
      Sequence& sequence = sequences_.emplace_back(stepper.pool());
      for (int j = 0; j <= i + 1; ++j) sequence.tokens.push_back(10 + 7 * i + 3 * j);
      const Stepper::Work work[] = {{&sequence, sequence.length() - 1}};
      stepper.run(work, {});
    }
  }

  Sequence& operator[](size_t i) { return sequences_[i]; }

  // Runs a step of one token for each of these; returns the most likely next tokens.
  std::vector<int32_t> step(AsyncStep ahead, std::vector<size_t> of = {}) {
    if (of.empty()) {
      for (size_t i = 0; i < sequences_.size(); ++i) of.push_back(i);
    }
    std::vector<Stepper::Work> work;
    std::vector<int32_t> rows;
    for (const size_t i : of) {
      rows.push_back(static_cast<int32_t>(std::ssize(rows)));
      work.push_back({&sequences_[i], 1});
    }
    stepper_.begin(work, rows, kLikeliest, ahead);
    const TopLogitRows found = stepper_.top_logits();
    std::vector<int32_t> ids(found.ids.begin(), found.ids.end());
    EXPECT_EQ(ids.size(), of.size());
    for (size_t i = 0; i < of.size(); ++i) sequences_[of[i]].tokens.push_back(ids[i]);
    return ids;
  }

 private:
  Stepper& stepper_;
  std::deque<Sequence> sequences_;
};

struct AsyncSteps : ::testing::Test {
  const StepperOptions options{.cache_tokens = 512, .block_size = 8, .kv_dtype = DType::f32};
  const TextModel plain = tiny_model();
  RecallingDevice device;
  const TextModel far = recalling_model(64, device);
  Stepper one_by_one{*plain.model, *plain.device, options};
  Stepper stepper{*far.model, device, options};
};

TEST_F(AsyncSteps, GiveWhatStepsOneByOneGive) {
  for (const int count : {1, 2, 3, 5}) {
    Chats wanted(one_by_one, count), chats(stepper, count);
    for (int i = 0; i < 20; ++i) {
      EXPECT_EQ(chats.step(AsyncStep::next_step), wanted.step(AsyncStep::nothing))
          << count << ", " << i;
    }
    for (int i = 0; i < count; ++i) {
      const auto at = static_cast<size_t>(i);
      EXPECT_EQ(chats[at].tokens, wanted[at].tokens);
    }
  }
}

// One copy to the device per block, and one step more than requested: the one ahead.
TEST_F(AsyncSteps, NeedNothingFromTheHostWithinABlock) {
  Chats chats(stepper, 1);
  chats.step(AsyncStep::nothing);  // captures
  ASSERT_EQ(chats[0].cached, 2);
  const int replays = device.replays, uploads = device.uploads;
  for (int i = 0; i < 13; ++i) chats.step(AsyncStep::next_step);  // tokens 2 to 14
  EXPECT_EQ(device.replays - replays, 14);
  EXPECT_EQ(device.uploads - uploads, 2);  // at 2 and at 8
  EXPECT_TRUE(stepper.has_async_step());
  chats.step(AsyncStep::nothing);
  EXPECT_FALSE(stepper.has_async_step());
  EXPECT_EQ(device.replays - replays, 14);
  chats.step(AsyncStep::next_step);  // at 16
  EXPECT_EQ(device.replays - replays, 16);
}

TEST_F(AsyncSteps, ServeThoseWhoAreLeft) {
  Chats wanted(one_by_one, 4), chats(stepper, 4);
  for (Chats* each : {&wanted, &chats}) each->step(AsyncStep::nothing);
  chats.step(AsyncStep::next_step);
  wanted.step(AsyncStep::nothing);
  ASSERT_TRUE(stepper.has_async_step());
  const int replays = device.replays;
  // Rows 1 and 3 of the step that is ahead.
  EXPECT_EQ(chats.step(AsyncStep::next_step, {1, 3}), wanted.step(AsyncStep::nothing, {1, 3}));
  EXPECT_EQ(device.replays, replays);
  EXPECT_FALSE(stepper.has_async_step());  // it would write for sequences that left
  for (const int64_t row : {0, 1}) {
    const std::span<float> logits = stepper.logit_row(row);
    EXPECT_EQ(std::ranges::max_element(logits) - logits.begin(),
              chats[row == 0 ? 1 : 3].tokens.back());
  }
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(chats.step(AsyncStep::next_step, {1, 3}), wanted.step(AsyncStep::nothing, {1, 3}))
        << i;
  }
}

TEST_F(AsyncSteps, AreInVainForOtherTokensAndOtherSequences) {
  Chats wanted(one_by_one, 3), chats(stepper, 3);
  const auto both = [&](std::vector<size_t> of, const char* what) {
    EXPECT_EQ(chats.step(AsyncStep::next_step, of), wanted.step(AsyncStep::nothing, of)) << what;
  };
  both({0, 1}, "two");
  for (Chats* each : {&wanted, &chats}) (*each)[1].tokens.back() = 99;
  both({0, 1}, "another token");
  both({1, 0}, "another order");
  both({0, 1, 2}, "a newcomer");
  both({0, 1, 2}, "the same again");
}

TEST_F(AsyncSteps, LeaveTheLogitsOfTheStepThatWasAskedFor) {
  Chats wanted(one_by_one, 2), chats(stepper, 2);
  for (int i = 0; i < 4; ++i) {
    chats.step(AsyncStep::next_step);
    wanted.step(AsyncStep::nothing);
    for (const int64_t row : {0, 1}) {
      const std::span<float> expected = one_by_one.logit_row(row);
      const std::span<float> logits = stepper.logit_row(row);
      ASSERT_EQ(logits.size(), expected.size());
      for (size_t j = 0; j < logits.size(); ++j) ASSERT_NEAR(logits[j], expected[j], 1e-4f);
    }
  }
}

// After a wasted step none is queued ahead for a while, after the next for longer, until some steps
// have been used again.
TEST_F(AsyncSteps, PauseWhereTheyAreInVain) {
  Chats chats(stepper, 1);
  chats.step(AsyncStep::nothing);
  const auto pause = [&] {
    EXPECT_TRUE(stepper.has_async_step());
    chats[0].tokens.back() ^= 1;  // not the token that the device went on with
    int steps = 0;
    for (; !stepper.has_async_step() || steps == 0; ++steps) chats.step(AsyncStep::next_step);
    return steps - 1;
  };
  chats.step(AsyncStep::next_step);
  EXPECT_EQ(pause(), 1);
  EXPECT_EQ(pause(), 2);
  EXPECT_EQ(pause(), 4);
  for (int i = 0; i < 2; ++i) chats.step(AsyncStep::next_step);
  EXPECT_EQ(pause(), 2);
}

// Sequences reach new blocks at different steps; blocks needed soon are prepared early.
TEST_F(AsyncSteps, GoOnIntoBlocksThatAreKnown) {
  Chats wanted(one_by_one, 4), chats(stepper, 4);
  chats.step(AsyncStep::nothing);
  wanted.step(AsyncStep::nothing);
  const int uploads = device.uploads;
  for (int i = 0; i < 24; ++i) {
    EXPECT_EQ(chats.step(AsyncStep::next_step), wanted.step(AsyncStep::nothing)) << i;
  }
  EXPECT_LE(device.uploads - uploads, 5);  // else one for each block of each
}

// The last free blocks are left for sequences that need them now.
TEST_F(AsyncSteps, TakeNoBlocksThatAreFew) {
  const StepperOptions narrow{.cache_tokens = 24, .block_size = 8, .kv_dtype = DType::f32};
  Stepper full(*far.model, device, narrow);
  Chats chats(full, 1);
  for (int i = 0; i < 6; ++i) chats.step(AsyncStep::next_step);
  EXPECT_EQ(full.pool().used(), 1);
  Sequence other(full.pool());
  ASSERT_TRUE(other.kv.reserve(8));
  for (int i = 0; i < 8; ++i) chats.step(AsyncStep::next_step);
  EXPECT_EQ(full.pool().available(), 0);
  EXPECT_EQ(chats[0].kv.blocks().size(), 2u);
}

TEST_F(AsyncSteps, AreOfTheLikeliestOrOfDeviceDraws) {
  Chats chats(stepper, 1);
  const Stepper::Work work[] = {{&chats[0], 1}};
  const int32_t rows[] = {0};
  const float scales[] = {1};
  stepper.begin(work, rows, {.count = 1, .vocab = kVocab, .scales = scales}, AsyncStep::next_step);
  EXPECT_FALSE(stepper.has_async_step());
  stepper.top_logits();
  chats[0].tokens.push_back(1);
  stepper.begin(work, rows, {.count = 64, .vocab = kVocab, .scales = {}}, AsyncStep::next_step);
  EXPECT_FALSE(stepper.has_async_step());
  stepper.top_logits();
  Chats not_captured(one_by_one, 1);
  not_captured.step(AsyncStep::next_step);
  EXPECT_FALSE(one_by_one.has_async_step());
}

// Requests that ban tokens: as long as no banned token is the most likely, and after one was.
TEST(EnginesAsyncSteps, AreTakenBesideBans) {
  const auto engine_of = [](TextModel model, std::vector<int32_t> ends) {
    model.end_tokens = std::move(ends);
    return make_llm_engine(std::move(model), {.max_running = 2, .block_size = 4});
  };
  TextRequest request = greedy("a lone one", 32);
  const std::shared_ptr<Recorder> free = answer(*engine_of(tiny_model(), {}), request);
  const std::vector<int32_t> said = tiny_tokenizer()->encode(free->text, {.add_special = false});
  const auto unsaid = [&](int32_t id) { return std::ranges::count(said, id) == 0; };
  int32_t rare = 5;
  while (!unsaid(rare)) ++rare;
  request.sampling.ignore_eos = true;
  for (const int32_t end : {rare, said.at(said.size() / 2)}) {
    const std::string text = answer(*engine_of(tiny_model(), {end}), request)->text;
    EXPECT_EQ(text == free->text, end == rare);
    RecallingDevice device;
    const auto engine = engine_of(recalling_model(64, device), {end});
    EXPECT_EQ(answer(*engine, request)->text, text) << end;
    const int uploads = device.uploads;
    EXPECT_EQ(answer(*engine, request)->text, text) << end;
    if (end == rare) {
      EXPECT_LE(device.uploads - uploads, 12);
    }
    // Together with another request, whose row the host reads with its own.
    TextRequest other = greedy("b", 32);
    other.sampling.ignore_eos = true;
    const std::string others = answer(*engine_of(tiny_model(), {end}), other)->text;
    const auto first = submit(*engine, request), second = submit(*engine, other, "second");
    first->wait();
    second->wait();
    EXPECT_EQ(first->text, text) << end;
    EXPECT_EQ(second->text, others) << end;
  }
}

// Draws on the device: the same texts as without, and few words from the host.
TEST(EnginesAsyncSteps, AreTakenForSampledRequests) {
  const LlmOptions options{.max_running = 4, .block_size = 4};
  const auto engine = make_llm_engine(tiny_model(), options);
  RecallingDevice device;
  const auto far = make_llm_engine(recalling_model(64, device), options);
  const auto request_of = [](float temperature, int32_t top_k, float top_p, uint64_t seed) {
    TextRequest request = greedy("a lone one", 40);
    request.sampling.temperature = temperature;
    request.sampling.top_k = top_k;
    request.sampling.top_p = top_p;
    request.sampling.seed = seed;
    request.sampling.ignore_eos = true;
    return request;
  };
  const std::vector<TextRequest> requests = {request_of(0.8f, 40, 0.95f, 1), request_of(1, 0, 1, 2),
                                             request_of(1.5f, 0, 0.7f, 3), request_of(0, 0, 1, 4)};
  std::vector<std::string> texts;
  for (const TextRequest& request : requests) {
    texts.push_back(answer(*engine, request)->text);
    EXPECT_EQ(answer(*far, request)->text, texts.back());
    const int uploads = device.uploads;
    EXPECT_EQ(answer(*far, request)->text, texts.back());
    EXPECT_LE(device.uploads - uploads, 15) << request.sampling.temperature;
  }
  std::vector<std::shared_ptr<Recorder>> together;
  for (size_t i = 0; i < requests.size(); ++i) {
    together.push_back(submit(*far, requests[i], "job " + std::to_string(i)));
  }
  for (size_t i = 0; i < requests.size(); ++i) {
    together[i]->wait();
    EXPECT_EQ(together[i]->text, texts[i]) << i;
  }
}

TEST_F(AsyncSteps, AreForgottenWithTheirCaptures) {
  Chats wanted(one_by_one, 2), chats(stepper, 2);
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(chats.step(AsyncStep::next_step), wanted.step(AsyncStep::nothing));
    EXPECT_TRUE(stepper.has_async_step()) << i;
    if (i % 2 == 1) stepper.forget_captured();
  }
  EXPECT_FALSE(stepper.has_async_step());
}

}  // namespace
}  // namespace rbee::engine
