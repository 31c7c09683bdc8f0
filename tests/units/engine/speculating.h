#pragma once
// Requests and engines with speculative decoding.

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "rbee/engine/text/step/stepper.h"
#include "tests/units/engine/tiny_engine.h"

namespace rbee::engine {

inline LlmOptions plain() {
  return {.max_running = 8, .block_size = 4, .kv_dtype = DType::f32};
}

inline LlmOptions speculating() {
  LlmOptions options = plain();
  options.speculative = true;
  return options;
}

inline const std::vector<std::string> kPrompts = {"bad cafe bad cafe bad", "hello hello hello", "x",
                                                  "some words and some words and"};

// Only two different tokens occur, so every continuation has occurred before.
inline TextRequest repetitive(const std::string& prompt, int32_t tokens) {
  TextRequest request = greedy(prompt, tokens);
  request.sampling.top_k = 2;
  request.sampling.top_p = 1;
  request.sampling.logit_bias = {{-1, "cafe", 100}};
  return request;
}

// Probabilities of all texts of `length` tokens from two, at temperature 1.
inline std::map<std::vector<int32_t>, double> texts_of(const TextModel& model,
                                                       const std::vector<int32_t>& prompt,
                                                       const std::vector<int32_t>& two,
                                                       size_t length) {
  if (length == 0) return {{{}, 1.0}};
  Stepper stepper(*model.model, *model.device,
                  {.cache_tokens = 128, .block_size = 16, .kv_dtype = DType::f32});
  Sequence sequence(stepper.pool());
  sequence.tokens = prompt;
  const Stepper::Work work[] = {{&sequence, sequence.length()}};
  const int32_t rows[] = {static_cast<int32_t>(sequence.length() - 1)};
  const std::span<float> logits = stepper.step(work, rows);
  const auto logit = [&](int32_t id) { return double{logits[static_cast<size_t>(id)]}; };
  const double first = 1 / (1 + std::exp(logit(two[1]) - logit(two[0])));
  std::map<std::vector<int32_t>, double> out;
  for (const int32_t id : two) {
    std::vector<int32_t> longer = prompt;
    longer.push_back(id);
    for (const auto& [rest, p] : texts_of(model, longer, two, length - 1)) {
      std::vector<int32_t> text{id};
      text.insert(text.end(), rest.begin(), rest.end());
      out[text] = p * (id == two[0] ? first : 1 - first);
    }
  }
  return out;
}

// Draws 500 texts of three tokens from two, with seeds 0 to 499 at temperature 1. Returns the
// statistic of Pearson's test with 7 degrees of freedom.
inline double chi_square_of_draws(TextEngine& engine) {
  const TextModel model = tiny_model(128);
  const std::vector<int32_t> two = model.tokenizer->encode("cafe", {.add_special = false});
  // Every pair has occurred, so there is always a draft token, right or wrong.
  const std::string prompt = "cafefecacafeca";
  const auto expected = texts_of(model, model.tokenizer->encode(prompt), two, 3);
  EXPECT_EQ(expected.size(), 8u);
  constexpr uint64_t kDraws = 500;
  std::map<std::vector<int32_t>, int> drawn;
  for (uint64_t seed = 0; seed < kDraws; ++seed) {
    TextRequest request = repetitive(prompt, 5);
    request.sampling.temperature = 1;
    request.sampling.seed = seed;
    request.logprobs = 0;
    const auto sink = answer(engine, request);
    std::vector<int32_t> text;
    for (size_t i = 0; i < 3; ++i) text.push_back(sink->tokens.at(i).chosen.id);
    ++drawn[text];
  }
  double out = 0;
  for (const auto& [text, p] : expected) {
    const double wanted = p * kDraws;
    out += (drawn[text] - wanted) * (drawn[text] - wanted) / wanted;
  }
  return out;
}

}  // namespace rbee::engine
