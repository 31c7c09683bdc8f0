// Requests with adapters: each answer depends only on its own adapter.

#include <future>
#include <limits>

#include "tests/support/data_folder.h"
#include "tests/units/engine/tiny_engine.h"

namespace rbee::engine {
namespace {

constexpr int64_t kContext = 64;
constexpr int32_t kTokens = 10;

std::string adapter_path(const std::string& name) {
  return (std::filesystem::path(test::data_folder()) / "models/language/data/lora" / name).string();
}

std::vector<LoraInfo> two_adapters() {
  return {{.name = "first", .path = adapter_path("llama_all")},
          {.name = "second", .path = adapter_path("llama_patterns"), .scale = 0.5f}};
}

std::unique_ptr<TextEngine> llama(std::vector<LoraInfo> adapters, LlmOptions options = {}) {
  options.loras = std::move(adapters);
  options.block_size = 4;
  return make_llm_engine(tiny_model(kContext, cpu(), "llama"), options);
}

TextRequest asks(const std::string& prompt, std::vector<LoraChoice> lora) {
  TextRequest request = greedy(prompt, kTokens);
  request.lora = std::move(lora);
  return request;
}

const std::vector<std::vector<LoraChoice>>& choices() {
  static const std::vector<std::vector<LoraChoice>> all = {
      {}, {{"first", {}}}, {{"second", {}}}, {{"second", 1.0f}}, {{"first", 0.5f}, {"second", {}}}};
  return all;
}

std::string prompt_of(size_t i) {
  return "the same beginning for all of them, " + std::string(1 + i % 7, 'a') +
         static_cast<char>('A' + i % 26);
}

TEST(Lora, ManyTogetherSayWhatEachSaysAlone) {
  constexpr size_t kTogether = 20;
  std::vector<std::string> alone;
  const auto one = llama(two_adapters(), {.max_running = 1, .cache_tokens = kContext});
  for (size_t i = 0; i < kTogether; ++i) {
    alone.push_back(answer(*one, asks(prompt_of(i), choices()[i % choices().size()]))->text);
  }
  for (const int64_t cache : {int64_t{0}, int64_t{4 * kContext}}) {
    const auto engine = llama(two_adapters(), {.cache_tokens = cache});
    const auto holder = hold(*engine, greedy("hold", 1));
    std::vector<std::shared_ptr<Recorder>> sinks;
    for (size_t i = 0; i < kTogether; ++i) {
      sinks.push_back(submit(*engine, asks(prompt_of(i), choices()[i % choices().size()]),
                             "job" + std::to_string(i)));
    }
    holder->let_go();
    for (size_t i = 0; i < kTogether; ++i) {
      sinks[i]->wait();
      EXPECT_EQ(sinks[i]->text, alone[i]) << i << ", cache of " << cache;
    }
  }
}

TEST(Lora, AdaptersChangeTheText) {
  const auto engine = llama(two_adapters());
  std::vector<std::string> texts;
  for (const auto& lora : choices())
    texts.push_back(answer(*engine, asks(prompt_of(0), lora))->text);
  for (size_t i = 0; i < texts.size(); ++i) {
    for (size_t j = 0; j < i; ++j) EXPECT_NE(texts[i], texts[j]) << i << ", " << j;
  }
}

TEST(Lora, BeginningsAreSharedUnderTheSameAdaptersAlone) {
  const auto engine = llama(two_adapters());
  const auto hits = [&](std::vector<LoraChoice> lora) {
    const uint64_t before = engine->stats().prefix_hits;
    answer(*engine, asks(prompt_of(0), std::move(lora)));
    return engine->stats().prefix_hits - before;
  };
  for (const auto& lora : choices()) EXPECT_EQ(hits(lora), 0u);
  for (const auto& lora : choices()) EXPECT_GE(hits(lora), 32u);
  EXPECT_EQ(hits({{"first", 0.25f}}), 0u);
  // An adapter at scale 0 counts as none.
  EXPECT_GE(hits({{"first", 0.0f}}), 32u);
}

TEST(Lora, AnAdapterUnderAnOldNameFindsNothingOfTheOldOne) {
  const auto engine = llama({{.name = "one", .path = adapter_path("llama_all")}});
  const auto wanted = llama(two_adapters());
  const std::string prompt = prompt_of(3);
  const std::string first = answer(*engine, asks(prompt, {{"one", {}}}))->text;
  EXPECT_TRUE(engine->unload_lora("one"));
  EXPECT_FALSE(engine->unload_lora("one"));
  EXPECT_TRUE(engine->loras().empty());
  engine->load_lora({.name = "one", .path = adapter_path("llama_patterns"), .scale = 0.5f});
  const std::string second = answer(*engine, asks(prompt, {{"one", {}}}))->text;
  EXPECT_EQ(first, answer(*wanted, asks(prompt, {{"first", {}}}))->text);
  EXPECT_EQ(second, answer(*wanted, asks(prompt, {{"second", {}}}))->text);
  EXPECT_EQ(engine->stats().prefix_hits, 0u);
}

TEST(Lora, WhoRunsKeepsAnAdapterThatWasUnloaded) {
  const auto wanted = llama(two_adapters());
  const auto engine = llama(two_adapters());
  const auto holder = hold(*engine, asks(prompt_of(1), {{"first", {}}}), "holder", 2);
  EXPECT_TRUE(engine->unload_lora("first"));
  auto loading = std::async(std::launch::async, [&] {
    engine->load_lora({.name = "first", .path = adapter_path("llama_patterns")});
  });
  holder->let_go();
  loading.get();
  holder->events.wait();
  EXPECT_EQ(holder->events.text, answer(*wanted, asks(prompt_of(1), {{"first", {}}}))->text);
  EXPECT_EQ(answer(*engine, asks(prompt_of(1), {{"first", {}}}))->text,
            answer(*wanted, asks(prompt_of(1), {{"second", 1.0f}}))->text);
}

TEST(Lora, WhatIsNotThereIsRefused) {
  const auto engine = llama(two_adapters());
  const auto code_of = [](const std::function<void()>& action) {
    try {
      action();
    } catch (const Error& error) {
      return error.code();
    }
    return Code::internal;
  };
  const auto refused = [&](std::vector<LoraChoice> lora) {
    return code_of([&] { submit(*engine, asks("a", std::move(lora))); });
  };
  EXPECT_EQ(refused({{"third", {}}}), Code::not_found);
  EXPECT_EQ(refused({{"first", 101.0f}}), Code::invalid_argument);
  EXPECT_EQ(refused({{"first", std::numeric_limits<float>::quiet_NaN()}}), Code::invalid_argument);
  EXPECT_EQ(refused(std::vector<LoraChoice>(9, {"first", {}})), Code::invalid_argument);
  const auto load = [&](LoraInfo info) {
    return code_of([&] { engine->load_lora(std::move(info)); });
  };
  EXPECT_EQ(load({.name = "first", .path = adapter_path("llama_all")}), Code::invalid_argument);
  EXPECT_EQ(load({.name = "", .path = adapter_path("llama_all")}), Code::invalid_argument);
  EXPECT_EQ(load({.name = "x", .path = adapter_path("nowhere")}), Code::not_found);
  EXPECT_EQ(load({.name = "x", .path = adapter_path("phi3")}), Code::unsupported);
  EXPECT_EQ(engine->loras().size(), 2u);
  EXPECT_EQ(code_of([&] { llama({{.name = "x", .path = adapter_path("nowhere")}}); }),
            Code::not_found);
  engine->stop();
  EXPECT_EQ(load({.name = "x", .path = adapter_path("llama_all")}), Code::unsupported);
}

}  // namespace
}  // namespace rbee::engine
