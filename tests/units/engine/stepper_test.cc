// Steps that are captured for one number of sequences and replayed for fewer, on a device whose
// captures evaluate the model again.
#include "rbee/engine/text/step/stepper.h"

#include <algorithm>
#include <deque>

#include "rbee/engine/text/step/warm_up.h"
#include "rbee/models/lora_adapter.h"
#include "tests/support/data_folder.h"
#include "tests/units/engine/recalling_device.h"
#include "tests/units/engine/tiny_engine.h"

namespace rbee::engine {
namespace {

constexpr int64_t kVocab = test::kTinyVocab;

// Prompts of `count` sequences one by one, then `steps` shared steps of a token each. Returns the
// logits of the shared steps.
//
// loras: what the sequences take, in turn.
std::vector<float> shared_steps(Stepper& stepper, int count, int steps,
                                const std::vector<std::vector<LoraSlot>>& loras = {{}}) {
  std::deque<Sequence> sequences;
  for (int i = 0; i < count; ++i) {
    Sequence& sequence = sequences.emplace_back(stepper.pool());
    sequence.lora = loras[static_cast<size_t>(i) % loras.size()];
    for (int j = 0; j <= i; ++j) sequence.tokens.push_back(10 + 7 * i + 3 * j);
    const Stepper::Work work[] = {{&sequence, sequence.length()}};
    const int32_t rows[] = {static_cast<int32_t>(sequence.length() - 1)};
    stepper.step(work, rows);
  }
  std::vector<float> out;
  for (int step = 0; step < steps; ++step) {
    std::vector<Stepper::Work> work;
    std::vector<int32_t> rows;
    for (Sequence& sequence : sequences) {
      rows.push_back(static_cast<int32_t>(std::ssize(rows)));
      sequence.tokens.push_back(static_cast<int32_t>((20 + 11 * step + 5 * rows.back()) % kVocab));
      work.push_back({&sequence, 1});
    }
    stepper.run(work, rows);
    for (int row = 0; row < count; ++row) {
      const std::span<float> logits = stepper.logit_row(row);
      out.insert(out.end(), logits.begin(), logits.end());
    }
  }
  return out;
}

TEST(CapturedSteps, AreRoundedUpAndGiveWhatStepsOfTheirSizeGive) {
  const StepperOptions options{.cache_tokens = 256, .block_size = 4, .kv_dtype = DType::f32};
  const TextModel plain = tiny_model();
  RecallingDevice device;
  const TextModel far = recalling_model(64, device);
  const RecallingModel& recalling = *device.model;
  for (const int count : {1, 2, 3, 5, 9}) {
    Stepper wanted(*plain.model, *plain.device, options), captured(recalling, device, options);
    const int before = device.replays;
    const std::vector<float> one = shared_steps(wanted, count, 12);
    const std::vector<float> two = shared_steps(captured, count, 12);
    EXPECT_GE(device.replays - before, 12) << count;
    ASSERT_EQ(one.size(), two.size());
    for (size_t i = 0; i < one.size(); ++i) {
      ASSERT_NEAR(one[i], two[i], 1e-4f) << count << " sequences, at " << i;
    }
    EXPECT_EQ(recalling.last.batch.ids.dim(0), captured_sequences(count));
    EXPECT_EQ(captured.pool().used(), 0);
  }
}

// One capture serves all adapters: it reads which ones the rows use.
void serve_any_adapters(int64_t gpu_layers) {
  const StepperOptions options{.cache_tokens = 256, .block_size = 4, .kv_dtype = DType::f32};
  const TextModel plain = tiny_model(64, cpu(), "llama");
  RecallingDevice device;
  const TextModel far = recalling_model(64, device, "llama", gpu_layers);
  const RecallingModel& recalling = *device.model;
  Stepper wanted(*plain.model, *plain.device, options), captured(recalling, device, options);
  const auto put = [&](const char* name, int64_t slot) {
    const auto path =
        std::filesystem::path(test::data_folder()) / "models/language/data/lora" / name;
    for (const auto* model : {plain.model.get(), far.model.get()}) {
      models::LoraAdapter(path, *model).put(slot);
    }
  };
  put("llama_all", 1);
  const auto compare = [&](const std::vector<std::vector<LoraSlot>>& loras) {
    const std::vector<float> one = shared_steps(wanted, 3, 6, loras);
    const std::vector<float> two = shared_steps(captured, 3, 6, loras);
    ASSERT_EQ(one.size(), two.size());
    for (size_t i = 0; i < one.size(); ++i) ASSERT_NEAR(one[i], two[i], 1e-3f) << i;
  };
  compare({{{1, 1}}, {}, {{1, 0.5f}}});
  const int forwards = recalling.forwards;
  compare({{{1, -1}}, {{1, 1}}, {}});
  // The prompts of several tokens; one of two is run and then captured, with an adapter at last.
  EXPECT_EQ(recalling.forwards, forwards + 3);
  compare({{{1, 1}, {1, 0.5f}}, {}, {{1, 0.5f}}});
  put("llama_patterns", 2);
  captured.forget_captured();
  compare({{{1, 1}}, {{2, 1}}, {}});
}

TEST(CapturedSteps, ServeAnyAdapters) {
  serve_any_adapters(models::kAllLayers);
}

TEST(CapturedSteps, ServeAnyAdaptersOfTheHostsLayers) {
  for (const int64_t gpu_layers : {1, 2}) serve_any_adapters(gpu_layers);
}

// A capture holds no work of the host.
TEST(CapturedSteps, AreNoneWithExpertsOnTheHost) {
  const StepperOptions options{.cache_tokens = 256, .block_size = 4, .kv_dtype = DType::f32};
  const TextModel plain = tiny_model(64, cpu(), "qwen2_moe");
  for (const int64_t experts : {int64_t{0}, int64_t{1}, models::kAllLayers}) {
    RecallingDevice device;
    const TextModel far = recalling_model(64, device, "qwen2_moe", models::kAllLayers, experts);
    Stepper wanted(*plain.model, *plain.device, options), stepper(*device.model, device, options);
    warm_up(stepper, device, {.context = 64, .chunk = 32, .sequences = 4, .vocab = kVocab});
    EXPECT_EQ(device.replays > 0, experts == 0);
    device.replays = 0;
    const std::vector<float> one = shared_steps(wanted, 3, 6), two = shared_steps(stepper, 3, 6);
    EXPECT_EQ(device.replays > 0, experts == 0);
    ASSERT_EQ(one.size(), two.size());
    for (size_t i = 0; i < one.size(); ++i) ASSERT_NEAR(one[i], two[i], 1e-3f) << i;
  }
}

// Steps of `count` sequences with one to three tokens each; returns the rows of all tokens, or of
// each sequence's last.
std::vector<float> steps_with_drafts(Stepper& stepper, int count, bool all_rows) {
  std::deque<Sequence> sequences;
  for (int i = 0; i < count; ++i) {
    Sequence& sequence = sequences.emplace_back(stepper.pool());
    for (int j = 0; j <= i; ++j) sequence.tokens.push_back(10 + 7 * i + 3 * j);
    const Stepper::Work work[] = {{&sequence, sequence.length()}};
    const int32_t rows[] = {static_cast<int32_t>(sequence.length() - 1)};
    stepper.step(work, rows);
  }
  std::vector<float> out;
  for (int step = 0; step < 6; ++step) {
    std::vector<Stepper::Work> work;
    std::vector<int32_t> rows;
    int32_t token = 0;
    for (Sequence& sequence : sequences) {
      const int more = all_rows ? 1 + (step + static_cast<int>(std::ssize(work))) % 3 : 2;
      for (int j = 0; j < more; ++j, ++token) {
        sequence.tokens.push_back((20 + 11 * step + 5 * token) % static_cast<int32_t>(kVocab));
        if (all_rows || j + 1 == more) rows.push_back(token);
      }
      work.push_back({&sequence, more});
    }
    stepper.run(work, rows);
    for (int64_t row = 0; row < std::ssize(rows); ++row) {
      const std::span<float> logits = stepper.logit_row(row);
      out.insert(out.end(), logits.begin(), logits.end());
    }
  }
  return out;
}

TEST(CapturedSteps, WithDraftsGiveWhatStepsOfTheirSizeGive) {
  const StepperOptions options{.cache_tokens = 512, .block_size = 4, .kv_dtype = DType::f32};
  const TextModel plain = tiny_model();
  RecallingDevice device;
  const TextModel far = recalling_model(64, device);
  const RecallingModel& recalling = *device.model;
  for (const int count : {1, 2, 3, 4}) {
    for (const bool all_rows : {true, false}) {
      if (!all_rows && count == 3) continue;  // rounded up, more than twice the rows
      Stepper wanted(*plain.model, *plain.device, options), captured(recalling, device, options);
      const std::vector<float> one = steps_with_drafts(wanted, count, all_rows);
      const int before = device.replays;
      const std::vector<float> two = steps_with_drafts(captured, count, all_rows);
      // A lone token of the first prompt is captured as well.
      EXPECT_GT(device.replays - before, 5) << count;
      ASSERT_EQ(one.size(), two.size());
      for (size_t i = 0; i < one.size(); ++i) {
        ASSERT_NEAR(one[i], two[i], 1e-4f) << count << " sequences, at " << i;
      }
    }
  }
}

void expect_near(std::span<const float> wanted, std::span<const float> is, int64_t layers) {
  ASSERT_EQ(wanted.size(), is.size());
  for (size_t i = 0; i < wanted.size(); ++i) {
    ASSERT_NEAR(wanted[i], is[i], 1e-4f) << layers << " layers, at " << i;
  }
}

// Captured steps have padding rows; the host computes none of them.
TEST(CapturedSteps, TakeWhatTheHostsLayersGive) {
  const StepperOptions options{.cache_tokens = 512, .block_size = 4, .kv_dtype = DType::f32};
  const TextModel plain = tiny_model();
  const int64_t layers = plain.model->config().layers;
  ASSERT_GE(layers, 2);
  for (int64_t on_device = 1; on_device <= layers; ++on_device) {
    RecallingDevice device;
    const TextModel far = recalling_model(64, device, "smollm", on_device);
    const RecallingModel& recalling = *device.model;
    ASSERT_EQ(far.model->host_layers().count, layers + 1 - on_device);
    for (const int count : {1, 3, 5}) {
      Stepper wanted(*plain.model, *plain.device, options), captured(recalling, device, options);
      const std::vector<float> one = shared_steps(wanted, count, 6);
      const int before = device.replays;
      expect_near(one, shared_steps(captured, count, 6), on_device);
      EXPECT_GE(device.replays - before, 6) << count;
      Stepper wanted_drafts(*plain.model, *plain.device, options);
      Stepper drafts(recalling, device, options);
      expect_near(steps_with_drafts(wanted_drafts, count, true),
                  steps_with_drafts(drafts, count, true), on_device);
    }
    Stepper wanted(*plain.model, *plain.device, options), captured(recalling, device, options);
    expect_near(steps_with_drafts(wanted, 2, false), steps_with_drafts(captured, 2, false),
                on_device);
  }
}

// The next step's first layers need the token that the host has not read yet.
TEST(CapturedSteps, WithLayersOnTheHostQueueNoNextStep) {
  RecallingDevice device;
  const TextModel far = recalling_model(64, device, "smollm", 1);
  Stepper stepper(*device.model, device, {.cache_tokens = 64, .block_size = 4});
  Sequence sequence(stepper.pool());
  sequence.tokens = {5};
  const Stepper::Work work[] = {{&sequence, 1}};
  const int32_t rows[] = {0};
  stepper.begin(work, rows, {.count = 1, .vocab = kVocab, .scales = {}}, AsyncStep::next_step);
  EXPECT_FALSE(stepper.has_async_step());
  EXPECT_EQ(stepper.top_logits().ids.size(), 1u);
}

// A CPU takes seconds for a chunk of a large model's prompt.
TEST(HostLayers, WarmUpWithFewTokens) {
  RecallingDevice device;
  const TextModel far = recalling_model(64, device, "smollm", 2);
  Stepper stepper(*device.model, device, {.cache_tokens = 512, .block_size = 4});
  warm_up(stepper, device, {.context = 64, .chunk = 64, .sequences = 8, .vocab = kVocab});
  EXPECT_GE(device.model->host_tokens, 3);
  EXPECT_LE(device.model->host_tokens, 40 + 3);
  EXPECT_GT(device.replays, 0);
  EXPECT_EQ(stepper.pool().used(), 0);
}

// The cache follows its layers, or stays in the host's memory.
TEST(HostLayers, KeepTheirPartOfTheCache) {
  const TextModel plain = tiny_model();
  const int64_t layers = plain.model->config().layers;
  const CacheTokenBytes all = cache_token_bytes(*plain.model, DType::f16);
  EXPECT_EQ(all.host, 0);
  FarDevice device;
  for (int64_t on_device = 1; on_device <= layers; ++on_device) {
    const TextModel far = tiny_model(64, device, "smollm", on_device);
    const CacheTokenBytes bytes = cache_token_bytes(*far.model, DType::f16);
    EXPECT_EQ(bytes.all(), all.all());
    EXPECT_EQ(bytes.host, all.all() / layers * (layers + 1 - on_device));
    const size_t before = device.in_use();
    const Stepper stepper(*far.model, device, {.cache_tokens = 64, .kv_dtype = DType::f16});
    EXPECT_EQ(static_cast<int64_t>(device.in_use() - before), 64 * bytes.device);
    EXPECT_EQ(stepper.cache_bytes(), 64 * all.all());
    const CacheTokenBytes in_host = cache_token_bytes(*far.model, DType::f16, false);
    EXPECT_EQ(in_host.host, all.all());
    EXPECT_EQ(in_host.device, 0);
  }
}

TEST(KvOffload, LeavesTheCacheInHostMemory) {
  const TextModel plain = tiny_model();
  FarDevice device;
  const TextModel far = tiny_model(64, device);
  const size_t before = device.in_use();
  const StepperOptions options{
      .cache_tokens = 256, .block_size = 4, .kv_dtype = DType::f32, .kv_offload = false};
  Stepper wanted(*plain.model, *plain.device, options), without(*far.model, device, options);
  EXPECT_EQ(device.in_use(), before);
  expect_near(shared_steps(wanted, 3, 6), shared_steps(without, 3, 6), 0);
}

TEST(CapturedSteps, OfFewDraftsAreMade) {
  const std::vector<int64_t> sizes = {1, 2, 3, 5, 5, 9, 9, 9, 9, 17};
  for (size_t i = 0; i < sizes.size(); ++i) {
    EXPECT_EQ(captured_tokens(static_cast<int64_t>(i) + 1), sizes[i]);
  }
  EXPECT_EQ(captured_tokens(65), 65);
}

TEST(CapturedSteps, TheTopLogitsOfRowsThatRoundUpAreLeftOut) {
  RecallingDevice device;
  const TextModel far = recalling_model(64, device);
  const RecallingModel& recalling = *device.model;
  Stepper stepper(recalling, device, {.cache_tokens = 64, .block_size = 4});
  std::deque<Sequence> sequences;
  std::vector<Stepper::Work> work;
  for (const int32_t token : {5, 6, 7}) {
    sequences.emplace_back(stepper.pool()).tokens = {token};
    work.push_back({&sequences.back(), 1});
  }
  const int32_t rows[] = {0, 1, 2};
  const float scales[] = {1, 1, 0.5f};
  const TopLogitRows found =
      stepper.step(work, rows, {.count = 4, .vocab = kVocab, .scales = scales});
  EXPECT_EQ(found.values.size(), 12u);
  EXPECT_EQ(found.ids.size(), 12u);
  ASSERT_EQ(found.sums.size(), 3u);
  for (int row = 0; row < 3; ++row) {
    const std::vector<float> values(found.values.begin() + row * 4,
                                    found.values.begin() + row * 4 + 4);
    const std::vector<int32_t> ids(found.ids.begin() + row * 4, found.ids.begin() + row * 4 + 4);
    const std::span<float> logits = stepper.logit_row(row);
    EXPECT_EQ(values[0], *std::ranges::max_element(logits));
    for (size_t i = 0; i < 4; ++i) EXPECT_EQ(logits[static_cast<size_t>(ids[i])], values[i]);
  }
}

// One capture serves every use of its logits except the argmax alone, and every length up to four
// blocks.
TEST(CapturedSteps, ServeWhateverIsWanted) {
  RecallingDevice device;
  const TextModel far = recalling_model(64, device);
  const RecallingModel& recalling = *device.model;
  Stepper stepper(recalling, device, {.cache_tokens = 128, .block_size = 4});
  Sequence sequence(stepper.pool());
  const auto step = [&](const TopLogitsWanted& wanted) {
    sequence.tokens.push_back(7);
    const Stepper::Work work[] = {{&sequence, 1}};
    const int32_t rows[] = {0};
    const TopLogitRows found = stepper.step(work, rows, wanted);
    EXPECT_EQ(found.ids.size(), static_cast<size_t>(wanted.count));
    EXPECT_EQ(found.sums.size(), wanted.scales.size());
    const std::vector<float> values(found.values.begin(), found.values.end());
    EXPECT_EQ(values[0], std::ranges::max(stepper.logit_row(0)));
  };
  const float scales[] = {0.5f};
  step({.count = 4, .vocab = kVocab, .scales = {}});
  int forwards = recalling.forwards;
  for (const int64_t count : {2, 4, 8}) {
    step({.count = count, .vocab = kVocab, .scales = {}});
    step({.count = count, .vocab = kVocab, .scales = scales});
  }
  step({.count = 1, .vocab = kVocab, .scales = scales});
  EXPECT_EQ(recalling.forwards, forwards);
  step({.count = 1, .vocab = kVocab, .scales = {}});
  EXPECT_EQ(recalling.forwards, forwards + 2);  // run and captured
  forwards = recalling.forwards;
  while (sequence.length() < 16) step({.count = 4, .vocab = kVocab, .scales = {}});
  EXPECT_EQ(recalling.forwards, forwards);
  step({.count = 4, .vocab = kVocab, .scales = {}});
  EXPECT_EQ(recalling.forwards, forwards + 2);
}

TEST(CapturedSteps, OfFewSizesAreMade) {
  int64_t last = 0, sizes = 0;
  for (int64_t n = 1; n <= 1024; ++n) {
    const int64_t size = captured_sequences(n);
    EXPECT_GE(size, n);
    EXPECT_GE(size, last);
    EXPECT_LE(size, 2 * n - 1) << n;
    if (size != last) ++sizes;
    last = size;
  }
  EXPECT_EQ(captured_sequences(1), 1);
  EXPECT_EQ(last, 1024);
  EXPECT_LE(sizes, 32);
}

}  // namespace
}  // namespace rbee::engine
