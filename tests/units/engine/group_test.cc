// What a group's leader tells the other ranks, and that they do the same.
#include "rbee/engine/text/group/group_command.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <deque>
#include <filesystem>
#include <optional>

#include "rbee/engine/text/step/stepper.h"
#include "rbee/models/lora_adapter.h"
#include "tests/units/engine/tiny_engine.h"

namespace rbee::engine {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kVocab = test::kTinyVocab;

// Repeats what it hears in a Stepper of its own, from the commands' bytes.
class Repeating final : public StepListener {
 public:
  explicit Repeating(const std::string& family) : text_(tiny_model(64, cpu(), family)) {}

  void on_open(const OpenCommand& command) override {
    const auto same = std::get<OpenCommand>(decode_command(encode_command(command)));
    EXPECT_EQ(same, command);
    stepper_.emplace(*text_.model, *text_.device,
                     StepperOptions{.cache_tokens = same.cache_tokens,
                                    .block_size = same.block_size,
                                    .kv_dtype = same.kv_dtype,
                                    .host_blocks = same.host_blocks});
  }
  void on_copies(const CopyCommand& command) override {
    const auto same = std::get<CopyCommand>(decode_command(encode_command(command)));
    EXPECT_EQ(same, command);
    ++copies;
    stepper_->repeat(same);
  }
  void on_step(const StepCommand& command) override {
    const auto same = std::get<StepCommand>(decode_command(encode_command(command)));
    EXPECT_EQ(same, command);
    ++steps;
    stepper_->repeat(same);
  }
  void on_rows(const RowsCommand& command) override {
    const auto same = std::get<RowsCommand>(decode_command(encode_command(command)));
    EXPECT_EQ(same, command);
    stepper_->repeat(same);
  }
  void on_lora(const LoraCommand& command) override {
    const auto same = std::get<LoraCommand>(decode_command(encode_command(command)));
    EXPECT_EQ(same, command);
    models::LoraAdapter(same.path, *text_.model).put(same.slot);
  }
  void on_async_step(const AsyncStepCommand& command) override { repeat(command); }
  void on_again(const AgainCommand& command) override { repeat(command); }
  void on_forget(const ForgetCommand&) override { stepper_->forget_captured(); }
  void on_wait() override {}
  void on_results() override {}
  [[noreturn]] void on_failure(const std::exception& error) override {
    fail(Code::device, "repeating", error.what());
  }

  // The row of the last step.
  std::span<float> row(int64_t row) { return stepper_->logit_row(row); }

  int steps = 0, copies = 0;

 private:
  template <typename Command>
  void repeat(const Command& command) {
    const auto same = std::get<Command>(decode_command(encode_command(command)));
    EXPECT_EQ(same, command);
    stepper_->repeat(same);
  }

  TextModel text_;
  std::optional<Stepper> stepper_;
};

StepperOptions small_cache(StepListener* listener) {
  return {.cache_tokens = 512, .block_size = 4, .kv_dtype = DType::f32, .listener = listener};
}

// Runs prompts and shared steps, and compares all rows of logits.
void compare_rows(const std::string& family, const std::vector<LoraSlot>& lora = {}) {
  const TextModel text = tiny_model(64, cpu(), family);
  Repeating other(family);
  Stepper leader(*text.model, *text.device, small_cache(&other));
  if (!lora.empty()) {
    const auto path =
        std::filesystem::path(test::data_folder()) / "models/language/data/lora/llama_all";
    other.on_lora({.slot = lora.front().slot, .path = path.string()});
    models::LoraAdapter(path, *text.model).put(lora.front().slot);
  }
  const auto expect_equal = [&](int64_t rows) {
    for (int64_t row = 0; row < rows; ++row) {
      const std::span<float> theirs = other.row(row);
      const std::vector<float> copy(theirs.begin(), theirs.end());
      const std::span<float> own = leader.logit_row(row);
      ASSERT_TRUE(std::ranges::equal(own, copy)) << family << ", row " << row;
    }
  };
  std::deque<Sequence> sequences;
  for (int i = 0; i < 4; ++i) {
    Sequence& sequence = sequences.emplace_back(leader.pool());
    if (i % 2 == 0) sequence.lora = lora;
    for (int j = 0; j < 3 + 5 * i; ++j) sequence.tokens.push_back((10 + 7 * i + 3 * j) % kVocab);
    const Stepper::Work work[] = {{&sequence, sequence.length()}};
    const int32_t rows[] = {static_cast<int32_t>(sequence.length() - 1)};
    leader.run(work, rows);
    expect_equal(1);
  }
  const std::vector<float> scales{1, 0.5f, 1, 2};
  for (int step = 0; step < 6; ++step) {
    std::vector<Stepper::Work> work;
    std::vector<int32_t> rows;
    for (Sequence& sequence : sequences) {
      rows.push_back(static_cast<int32_t>(std::ssize(rows)));
      sequence.tokens.push_back(static_cast<int32_t>((20 + 11 * step + 5 * rows.back()) % kVocab));
      work.push_back({&sequence, 1});
    }
    leader.step(work, rows, {.count = 40, .vocab = kVocab, .scales = scales});
    expect_equal(std::ssize(rows));
  }
  EXPECT_EQ(other.steps, 4 + 6);
}

TEST(GroupSteps, AFollowersRowsAreTheLeaders) {
  for (const char* family : {"smollm", "llama", "gemma2", "mixtral", "deepseek_v2"}) {
    compare_rows(family);
  }
}

TEST(GroupSteps, AdaptersGoTheSameWay) {
  compare_rows("llama", {{1, 0.5f}});
}

// The leader alone knows which texts are where.
TEST(GroupSteps, EachRankKeepsItsPartInHostMemory) {
  const TextModel text = tiny_model(64, cpu(), "deepseek_v2");
  Repeating other("deepseek_v2");
  StepperOptions options = small_cache(&other);
  options.cache_tokens = 32;
  options.host_blocks = 32;
  Stepper leader(*text.model, *text.device, options);
  std::vector<float> first;
  for (const int begin : {10, 40, 70, 10}) {
    Sequence sequence(leader.pool());
    for (int i = 0; i < 22; ++i) sequence.tokens.push_back((begin + 3 * i) % kVocab);
    sequence.cached = sequence.kv.adopt(sequence.tokens);
    while (!sequence.kv.ready()) leader.copy_some();
    const Stepper::Work work[] = {{&sequence, sequence.length() - sequence.cached}};
    const int32_t rows[] = {static_cast<int32_t>(work[0].count - 1)};
    leader.run(work, rows);
    sequence.kv.publish(sequence.tokens);
    const std::span<float> theirs = other.row(0);
    const std::vector<float> row(theirs.begin(), theirs.end());
    ASSERT_TRUE(std::ranges::equal(leader.logit_row(0), row)) << begin;
    if (first.empty()) first = row;
    // But for rounding: the rest of a prompt is evaluated otherwise than all of it.
    for (size_t i = 0; work[0].count == 2 && i < row.size(); ++i) {
      ASSERT_NEAR(row[i], first[i], 1e-4f) << i;
    }
  }
  EXPECT_EQ(leader.pool().host_counts().loaded, 5u);
  EXPECT_GT(other.copies, 0);
}

TEST(GroupSteps, NoRankHearsOfAStepWithoutBlocks) {
  const TextModel text = tiny_model();
  Repeating other("smollm");
  Stepper leader(*text.model, *text.device,
                 {.cache_tokens = 8, .block_size = 4, .listener = &other});
  Sequence sequence(leader.pool());
  sequence.tokens.assign(9, 1);
  const Stepper::Work work[] = {{&sequence, 9}};
  const int32_t rows[] = {8};
  try {
    leader.step(work, rows);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::out_of_memory);
  }
  EXPECT_EQ(other.steps, 0);
}

StepCommand one_step() {
  return {.tokens = 2,
          .sequences = 1,
          .table_width = 1,
          .rows = 1,
          .values = {5, 6, 0, 1, 0, 1, 0, 2, 2, 0, 1},
          .top_logits = 1,
          .vocab = kVocab,
          .top_rows = 1};
}

std::string refusal(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::invalid_argument) << error.what();
    return error.what();
  }
  return "no error";
}

TEST(GroupCommands, ThatAreCutOrWrongAreRefused) {
  const std::vector<std::byte> whole = encode_command(one_step());
  EXPECT_EQ(std::get<StepCommand>(decode_command(whole)), one_step());
  for (size_t bytes = 0; bytes < whole.size(); ++bytes) {
    EXPECT_THAT(refusal([&] { decode_command(std::span(whole).first(bytes)); }),
                HasSubstr("group message: "));
  }
  const auto of = [](auto change) {
    StepCommand step = one_step();
    change(step);
    return refusal([&] { decode_command(encode_command(step)); });
  };
  EXPECT_EQ(of([](StepCommand& step) { step.values.pop_back(); }),
            "group message: step.values has 10 integers, not 11");
  EXPECT_EQ(of([](StepCommand& step) { step.tokens = 0; }),
            "group message: step.tokens 0 is outside of 1 to 16777216");
  EXPECT_EQ(of([](StepCommand& step) { step.captured = true; }),
            "group message: a captured step of 2 tokens has 1 sequences and 1 rows");
  EXPECT_EQ(of([](StepCommand& step) { step.next_token = 3; }),
            "group message: step.next_token 3 is outside of 0 to 2");
  EXPECT_EQ(of([](StepCommand& step) { step.top_rows = 0; }),
            "group message: step.top_rows is 0, not the 1 rows of a step that is not captured");
  EXPECT_EQ(of([](StepCommand& step) { step.rows = 3; }),
            "group message: step.rows 3 is outside of 0 to 2");
  EXPECT_EQ(of([](StepCommand& step) { step.scales = {1, 2}; }),
            "group message: step.scales has 2 numbers for 1 rows");
  EXPECT_EQ(refusal([&] { decode_command(encode_command(LoraCommand{.slot = 0, .path = "p"})); }),
            "group message: lora.slot 0 is below 1");
  EXPECT_EQ(refusal([&] { decode_command(encode_command(OpenCommand{0, 4, {}})); }),
            "group message: open.cache_tokens 0 is outside of 1 to 2147483647");
  EXPECT_EQ(refusal([] { decode_command(std::vector{std::byte{9}}); }),
            "group message: its kind 9 is outside of 0 to 7");
  EXPECT_EQ(refusal([&] { decode_command(encode_command(CopyCommand{false, {1, 2}})); }),
            "group message: copies.values has 2 integers, not three for each copy");
}

TEST(GroupCommands, NumbersOutsideOfTheModelAreRefused) {
  const TextModel text = tiny_model();
  Stepper stepper(*text.model, *text.device, {.cache_tokens = 8, .block_size = 4});
  stepper.repeat(one_step());
  const auto with = [&](size_t at, int32_t value) {
    StepCommand step = one_step();
    step.values[at] = value;
    return refusal([&] { stepper.repeat(step); });
  };
  EXPECT_THAT(with(0, -1), HasSubstr("group: a token -1 is outside of 0 to"));
  EXPECT_THAT(with(2, -5), HasSubstr("group: a position -5 is outside of 0 to"));
  EXPECT_EQ(with(4, 8), "group: a slot 8 is outside of -1 to 7");
  EXPECT_EQ(with(7, 3), "group: a sequence's start 3 is outside of 0 to 2");
  EXPECT_EQ(with(8, 5), "group: a sequence's length 5 is outside of 1 to 4");
  EXPECT_EQ(with(9, 2), "group: a block 2 is outside of 0 to 1");
  EXPECT_EQ(with(10, 2), "group: a row 2 is outside of 0 to 1");
  EXPECT_EQ(refusal([&] { stepper.repeat(AsyncStepCommand{}); }),
            "group: no step is there to go on from");
  EXPECT_EQ(refusal([&] { stepper.repeat(AgainCommand{}); }),
            "group: no step is there to be run again");
  EXPECT_EQ(refusal([&] { stepper.repeat(RowsCommand{.first = 0, .count = 2}); }),
            "group: rows 0 to 2 are outside of the last step's 1");
  EXPECT_EQ(refusal([&] { stepper.repeat(CopyCommand{false, {0, 0, 1}}); }),
            "group: copies came to a rank without a host cache");
  Stepper cached(*text.model, *text.device, {.cache_tokens = 8, .block_size = 4, .host_blocks = 3});
  cached.repeat(CopyCommand{false, {1, 2, 1}});
  EXPECT_EQ(refusal([&] { cached.repeat(CopyCommand{true, {2, 0, 1}}); }),
            "group: a block 2 is outside of 0 to 1");
  EXPECT_EQ(refusal([&] { cached.repeat(CopyCommand{true, {0, 3, 0}}); }),
            "group: a slot 3 is outside of 0 to 2");
}

}  // namespace
}  // namespace rbee::engine
