// A cache in host memory behind the KV cache: the same answers, and fewer tokens evaluated.

#include "tests/support/expect_error.h"
#include "tests/units/engine/far_device.h"
#include "tests/units/engine/recalling_device.h"
#include "tests/units/engine/tiny_engine.h"

namespace rbee::engine {
namespace {

constexpr int64_t kContext = 64;
constexpr int kPrompts = 5;

std::string prompt_of(int i) {
  return std::string(static_cast<size_t>(30 + i), static_cast<char>('a' + i)) + " and some more";
}

LlmOptions options_of(std::optional<DType> kv_dtype, int64_t host_cache_bytes) {
  return {.max_running = 1,
          .step_seconds = 0,
          .cache_tokens = kContext,  // of one prompt at a time
          .block_size = 4,
          .kv_dtype = kv_dtype,
          .host_cache_bytes = host_cache_bytes};
}

// Each prompt twice, in turns.
std::vector<std::string> texts_of(TextEngine& engine, const std::vector<TextRequest>& requests) {
  std::vector<std::string> out;
  for (int round = 0; round < 2; ++round) {
    for (const TextRequest& request : requests) out.push_back(answer(engine, request)->text);
  }
  return out;
}

std::vector<TextRequest> greedy_prompts() {
  std::vector<TextRequest> out;
  for (int i = 0; i < kPrompts; ++i) out.push_back(greedy(prompt_of(i), 8));
  return out;
}

void expect_same(TextModel model, TextModel again, std::optional<DType> kv_dtype) {
  const auto plain = make_llm_engine(std::move(model), options_of(kv_dtype, 0));
  const auto cached = make_llm_engine(std::move(again), options_of(kv_dtype, 1 << 22));
  EXPECT_EQ(texts_of(*cached, greedy_prompts()), texts_of(*plain, greedy_prompts()));
  EXPECT_EQ(plain->stats().host_blocks_total, 0);
  const EngineStats stats = cached->stats();
  EXPECT_GE(stats.host_hits, static_cast<uint64_t>(kPrompts * 20));
  EXPECT_EQ(stats.prompt_tokens + stats.prefix_hits, plain->stats().prompt_tokens);
  EXPECT_EQ(stats.host_blocks_dropped, 0u);
}

struct CacheKind {
  const char* family;
  std::optional<DType> kv_dtype;
};

// One tensor of latents, windows, and types of the cache.
TEST(HostCacheOfAnEngine, AnswersAreThoseWithoutIt) {
  for (const CacheKind& kind :
       {CacheKind{"smollm", {}}, CacheKind{"gemma3", {}}, CacheKind{"mistral", DType::f32},
        CacheKind{"deepseek_v2", {}}, CacheKind{"llama", DType::f8e4m3}}) {
    SCOPED_TRACE(kind.family);
    expect_same(tiny_model(kContext, cpu(), kind.family), tiny_model(kContext, cpu(), kind.family),
                kind.kv_dtype);
  }
}

TEST(HostCacheOfAnEngine, SoAreThoseOfADeviceWithItsOwnMemory) {
  FarDevice far, other;
  expect_same(tiny_model(kContext, far), tiny_model(kContext, other), {});
  FarDevice mixed, plain;  // some layers on the host
  expect_same(tiny_model(kContext, mixed, "smollm", 1), tiny_model(kContext, plain, "smollm", 1),
              {});
}

TEST(HostCacheOfAnEngine, SoAreThoseOfCapturedSteps) {
  RecallingDevice device, other;
  expect_same(recalling_model(kContext, device), recalling_model(kContext, other), {});
}

TEST(HostCacheOfAnEngine, ManyThatLoseTheirPlacesSayTheSame) {
  const auto alone = make_llm_engine(tiny_model(kContext), options_of({}, 0));
  LlmOptions options = options_of({}, 1 << 22);
  options.max_running = 16;
  options.step_tokens = 64;
  options.cache_tokens = 192;
  const auto engine = make_llm_engine(tiny_model(kContext), options);
  for (int round = 0; round < 2; ++round) {
    const auto holder = hold(*engine, greedy("hold", 1));
    std::vector<std::shared_ptr<Recorder>> sinks;
    for (int i = 0; i < 16; ++i) {
      sinks.push_back(submit(*engine, greedy(prompt_of(i), 8), cat("job", round, "-", i)));
    }
    holder->let_go();
    for (int i = 0; i < 16; ++i) {
      sinks[static_cast<size_t>(i)]->wait();
      EXPECT_EQ(sinks[static_cast<size_t>(i)]->text, answer(*alone, greedy(prompt_of(i), 8))->text)
          << i;
    }
  }
  EXPECT_GT(engine->stats().host_hits, 0u);
  EXPECT_EQ(engine->stats().kv_blocks_used, 0);
}

TEST(HostCacheOfAnEngine, SaltsKeepTextsApart) {
  const auto engine = make_llm_engine(tiny_model(kContext), options_of({}, 1 << 22));
  const auto hits = [&](const std::string& salt) {
    const uint64_t before = engine->stats().host_hits;
    TextRequest request = greedy(prompt_of(0), 2);
    request.cache_salt = salt;
    answer(*engine, request);
    const uint64_t found = engine->stats().host_hits - before;
    answer(*engine, greedy(prompt_of(1), 20));  // takes the blocks
    return found;
  };
  EXPECT_EQ(hits("a"), 0u);
  EXPECT_GT(hits("a"), 0u);
  EXPECT_EQ(hits("b"), 0u);
  EXPECT_GT(hits("b"), 0u);
}

TEST(HostCacheOfAnEngine, ItsBytesAreBounded) {
  const auto probe = make_llm_engine(tiny_model(kContext), options_of({}, 1 << 22));
  const int64_t block = probe->model().host_cache_bytes / probe->stats().host_blocks_total;
  const auto engine = make_llm_engine(tiny_model(kContext), options_of({}, 3 * block + block / 2));
  texts_of(*engine, greedy_prompts());
  const EngineStats stats = engine->stats();
  EXPECT_EQ(engine->model().host_cache_bytes, 3 * block);
  EXPECT_EQ(stats.host_blocks_total, 3);
  EXPECT_EQ(stats.host_blocks_kept, 3);
  EXPECT_GT(stats.host_blocks_dropped, 0u);
  harness::expect_error("host_cache_bytes", "less than a block of 4 tokens", "",
                        [&] { make_llm_engine(tiny_model(kContext), options_of({}, block - 1)); });
  FarDevice far;
  LlmOptions in_host = options_of({}, 1 << 22);
  in_host.kv_offload = false;
  harness::expect_error("host_cache_bytes", "--no-kv-offload", "--cache-tokens",
                        [&] { make_llm_engine(tiny_model(kContext, far), in_host); });
}

}  // namespace
}  // namespace rbee::engine
