// The texts of a request's prompts at each call of the denoiser.

#include "rbee/engine/image/prompts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rbee/engine/api/image_parameters.h"
#include "rbee/engine/image/settings.h"
#include "rbee/engine/image/text.h"
#include "tests/support/expect_error.h"
#include "tests/units/engine/fake_image_model.h"

namespace rbee::engine {
namespace {

using testing::ElementsAre;
using testing::FloatNear;
using testing::HasSubstr;
using testing::Not;
using testing::Pair;
using testing::Pointwise;

ImageRequest request_of(const std::string& prompt, int32_t steps, const char* sampler = "Euler") {
  ImageRequest out;
  out.prompt = prompt;
  out.steps = steps;
  out.sampler = sampler;
  return out;
}

RequestPrompts read(const ImageRequest& request, bool guided = true) {
  return read_prompts(request, resolve(fake_source(half_noise), request), guided);
}

// The last call of each turn and the first part of its prompt.
std::vector<std::pair<int32_t, std::string>> turns_of(const RequestPrompts& prompts,
                                                      const PassPrompts& pass) {
  std::vector<std::pair<int32_t, std::string>> out;
  for (const PassPrompts::Turn& turn : pass.turns) {
    const CallTexts& texts = pass.calls.at(turn.index);
    out.emplace_back(turn.last, prompts.texts.positive.at(texts.positive.front()));
  }
  return out;
}

TEST(RequestPrompts, TakeEachTextOnce) {
  ImageRequest request = request_of("a [red|blue] cat", 4);
  request.negative_prompt = "[fog:rain:2]";
  const RequestPrompts prompts = read(request);
  EXPECT_THAT(prompts.texts.positive, ElementsAre("a red cat", "a blue cat"));
  EXPECT_THAT(prompts.texts.negative, ElementsAre("fog", "rain"));
  // Calls 0 and 1, 2, 3, 4.
  EXPECT_EQ(prompts.first.calls.size(), 4u);
  EXPECT_THAT(turns_of(prompts, prompts.first),
              ElementsAre(Pair(1, "a red cat"), Pair(2, "a blue cat"), Pair(3, "a red cat"),
                          Pair(4, "a blue cat")));
  EXPECT_EQ(prompts.first.calls[prompts.first.at(2)].negative, 0u);
  EXPECT_EQ(prompts.first.calls[prompts.first.at(3)].negative, 1u);
  EXPECT_EQ(prompts.first.at(9), prompts.first.at(4));
  EXPECT_FALSE(prompts.first.composed());
  EXPECT_TRUE(prompts.second.turns.empty());
}

TEST(RequestPrompts, CountTwoCallsForAStepOfSecondOrder) {
  for (const char* sampler : {"Heun", "DPM2", "DPM2 a", "DPM++ 2S a", "DPM++ SDE"}) {
    const RequestPrompts prompts = read(request_of("[a:b:0.5]", 4, sampler));
    EXPECT_THAT(turns_of(prompts, prompts.first), ElementsAre(Pair(4, "a"), Pair(8, "b")))
        << sampler;
  }
  for (const char* sampler : {"Euler", "Euler a", "DPM++ 2M SDE", "UniPC", "PLMS"}) {
    const RequestPrompts prompts = read(request_of("[a:b:0.5]", 4, sampler));
    EXPECT_THAT(turns_of(prompts, prompts.first), ElementsAre(Pair(2, "a"), Pair(4, "b")))
        << sampler;
  }
}

TEST(RequestPrompts, OfASecondPassCountOn) {
  ImageRequest request = request_of("[a:b:.5] [c:d:1.5] [e:f:7]", 4, "Heun");
  request.hires = HiresFix{.scale = 1.5f, .steps = 3};
  const RequestPrompts prompts = read(request);
  EXPECT_THAT(turns_of(prompts, prompts.first),
              ElementsAre(Pair(4, "a c e"), Pair(7, "b c e"), Pair(8, "b c f")));
  EXPECT_THAT(turns_of(prompts, prompts.second), ElementsAre(Pair(3, "b c f"), Pair(6, "b d f")));
}

TEST(RequestPrompts, HavePartsWithWeights) {
  const ImageRequest request = request_of("<lora:ink:0.5>a cat :0.5 AND [b:c:1]", 2);
  const RequestPrompts prompts = read_prompts(request, {.steps = 2}, true);
  EXPECT_THAT(prompts.texts.positive, ElementsAre("a cat", " b", " c"));
  EXPECT_THAT(prompts.first.weights, ElementsAre(0.5f, 1));
  EXPECT_THAT(prompts.first.calls[0].positive, ElementsAre(0, 1));
  EXPECT_THAT(prompts.first.calls[1].positive, ElementsAre(0, 2));
  EXPECT_TRUE(prompts.first.composed());
}

TEST(RequestPrompts, OfOtherRulesAreText) {
  for (const PromptRule rule : {PromptRule::comfy, PromptRule::none}) {
    ImageRequest request = request_of("[a|b] AND [c:d:2]", 4);
    request.prompt_rule = rule;
    const RequestPrompts prompts = read(request);
    EXPECT_THAT(prompts.texts.positive, ElementsAre("[a|b] AND [c:d:2]"));
    EXPECT_FALSE(prompts.first.composed());
  }
}

TEST(RequestPrompts, OfModelsWithoutGuidanceHaveNoNegativeOnes) {
  ImageRequest request = request_of("[a:b:2]", 4);
  request.negative_prompt = "fog";
  const RequestPrompts prompts = read(request, false);
  EXPECT_TRUE(prompts.texts.negative.empty());
  EXPECT_EQ(prompts.first.calls.at(1).negative, 1u);
}

TEST(RequestPrompts, PartsShareCallsOfTheDenoiser) {
  std::vector<int64_t> rows;
  const auto engine = make_image_engine(fake_source([&](const Tensor& x) {
                                          rows.push_back(x.dim(0));
                                          return half_noise(x);
                                        }),
                                        {.warm_up = false});
  const auto made = [&](const std::string& prompt, float guidance) {
    auto sink = std::make_shared<ImageRecorder>();
    ImageRequest request = request_of(prompt, 1);
    request.guidance_scale = guidance;
    request.count = request.batch = 2;
    engine->submit(std::move(request), sink);
    EXPECT_TRUE(sink->wait());
    EXPECT_EQ(sink->images.size(), 2u);
  };
  made("a AND b", 7);
  made("a AND b", 1);
  made("a", 7);
  made("a", 1);
  EXPECT_THAT(rows, ElementsAre(6, 6, 4, 2));
}

// "[a|aa|...]", one for each call.
std::string changing(int count, const std::string& letter) {
  std::string out = "[", word;
  for (int i = 0; i < count; ++i) out += (i == 0 ? "" : "|") + (word += letter);
  return out + "]";
}

TEST(RequestPrompts, AreRefusedWithTooManyTexts) {
  ImageRequest request = request_of(changing(64, "a"), 64);
  request.negative_prompt = changing(64, "b");
  EXPECT_EQ(read(request).texts.positive.size(), 64u);
  request.negative_prompt = changing(65, "b");
  EXPECT_EQ(read(request).texts.negative.size(), 64u);  // the last call is of no step
  request.steps = 65;
  harness::expect_error("prompt", "negative_prompt", "128", [&] { read(request); });
}

// Long texts make many chunks.
TEST(RequestPrompts, AreRefusedWithTooManyChunks) {
  const ImageSource source = fake_source(half_noise);
  const ImageRequest request = request_of("", 1);
  std::string five = "a";
  for (int i = 0; i < 4; ++i) five += " BREAK a";
  std::vector<std::string> texts(101, "a");
  texts.push_back(five);
  EXPECT_EQ(encode_prompts(source, request, {texts, {}}).positive.size(), 102u);
  harness::expect_error("prompt", "103 texts of 5 chunks", "512",
                        [&] { encode_prompts(source, request, {texts, {""}}); });
}

TEST(RequestPrompts, AreEncodedUntilTheRequestIsCancelled) {
  ImageSource source = fake_source(half_noise);
  int encoded = 0;
  std::unique_ptr<ImageEngine> engine;
  source.model.text[0].encoder =
      std::make_unique<CallbackTextEncoder>([&](const models::TextInput&) {
        ++encoded;
        engine->cancel("long");
      });
  engine = make_image_engine(std::move(source), {.warm_up = false});
  ImageRequest request = request_of(changing(40, "a"), 40);
  request.job_id = "long";
  auto sink = std::make_shared<ImageRecorder>();
  engine->submit(request, sink);
  EXPECT_TRUE(sink->wait());
  EXPECT_TRUE(sink->finished.cancelled);
  EXPECT_EQ(encoded, 1);
}

TEST(RequestPrompts, AreReadFromTheModelsOwnLayerUnlessAskedOtherwise) {
  ImageSource source = fake_source(half_noise);
  std::vector<int64_t> layers;
  source.model.text[0].encoder = std::make_unique<CallbackTextEncoder>(
      [&](const models::TextInput& input) { layers.push_back(input.clip_skip); });
  ImageRequest request = request_of("a", 1);
  for (const int32_t skip : {0, 1, 2, 3}) {
    request.clip_skip = skip;
    encode_prompts(source, request, {{"a"}, {}});
  }
  EXPECT_THAT(layers, ElementsAre(0, 0, 2, 3));
}

TEST(RequestPrompts, OfManyTextsAFewAreKept) {
  const FakeDenoiser* denoiser = nullptr;
  std::vector<long> alive;
  ImageSource source = fake_source([&](const Tensor& x) {
    alive.push_back(denoiser->alive());
    return half_noise(x);
  });
  denoiser = static_cast<const FakeDenoiser*>(source.model.denoiser.get());
  const auto engine = make_image_engine(std::move(source), {.warm_up = false});
  auto sink = std::make_shared<ImageRecorder>();
  engine->submit(request_of("[a|b|c|d|e|f]", 20), sink);
  EXPECT_TRUE(sink->wait());
  ASSERT_EQ(alive.size(), 20u);
  EXPECT_EQ(std::ranges::max(alive), 4);
}

TEST(RequestPrompts, AreRefusedWithTooManyParts) {
  std::string prompt = "a";
  for (int i = 0; i < 15; ++i) prompt += " AND a";
  EXPECT_EQ(read(request_of(prompt, 4)).first.weights.size(), 16u);
  harness::expect_error("prompt", "17", "16", [&] { read(request_of(prompt + " AND a", 4)); });
}

TEST(Weights, ScaleStatesAndKeepTheMean) {
  std::vector<float> hidden = {1, 1, 2, 4};
  const std::vector<float> weights = {1, 3};
  weigh_states(hidden, weights);  // 1 1 6 12: the mean was 2 and is 5
  EXPECT_THAT(hidden, Pointwise(FloatNear(1e-5f), {0.4f, 0.4f, 2.4f, 4.8f}));
  std::vector<float> free = {1, 1, 2, 4};
  weigh_states(free, weights, Emphasis::no_norm);
  EXPECT_THAT(free, ElementsAre(1, 1, 6, 12));
  std::vector<float> against = {1, 1, 2, 4};
  const std::vector<float> empty = {0, 0, 1, 1};
  weigh_states(against, weights, empty);
  EXPECT_THAT(against, ElementsAre(1, 1, 4, 10));
}

// The prompt's states.
Tensor states_of(const ImageSource& source, const ImageRequest& request) {
  return encode_prompts(source, request, {{request.prompt}, {""}}).positive[0].context;
}

TEST(Weights, MakeStatesOfLongPromptsWithTheirChunks) {
  const ImageSource source = fake_source(half_noise);
  ImageRequest request;
  request.prompt = "a cat BREAK a dog";
  const PromptStates states = encode_prompts(source, request, {{request.prompt, "a"}, {""}});
  EXPECT_EQ(states.positive[0].context.shape(), (Shape{1, 154, 2}));
  EXPECT_EQ(states.positive[1].context.shape(), (Shape{1, 154, 2}));
  EXPECT_EQ(states.negative[0].context.shape(), (Shape{1, 154, 2}));
  request.prompt = "a (cat:1.5)";
  const auto weighted = states_of(source, request).to_host<float>();
  request.prompt_rule = PromptRule::none;
  EXPECT_NE(states_of(source, request).to_host<float>(), weighted);
}

// "Ignore" parses brackets, too; "None" keeps them in the text.
TEST(Weights, AreOfTheEmphasisThatIsAskedFor) {
  const ImageSource source = fake_source(half_noise);
  ImageRequest request;
  const auto states = [&](const char* prompt, Emphasis emphasis) {
    request.prompt = prompt;
    request.emphasis = emphasis;
    return states_of(source, request).to_host<float>();
  };
  const auto plain = states("a cat", Emphasis::original);
  EXPECT_EQ(states("a (cat:1.5)", Emphasis::ignore), plain);
  EXPECT_EQ(states("a cat", Emphasis::no_norm), plain);
  const auto free = states("a (cat:1.5)", Emphasis::no_norm);
  EXPECT_NE(free, plain);
  EXPECT_NE(free, states("a (cat:1.5)", Emphasis::original));
  // Everything else stays in its place.
  EXPECT_EQ(free.front(), plain.front());
}

TEST(Weights, NameTheirEmphasisInTheSettings) {
  const ImageSource source = fake_source(half_noise);
  ImageRequest request;
  request.job_id = "j";
  const auto text_of = [&](Emphasis emphasis) {
    request.emphasis = emphasis;
    return parameters_text(request, resolve(source, request), source.info, 0);
  };
  for (const auto& [emphasis, word] :
       {std::pair{Emphasis::no_norm, "No norm"}, std::pair{Emphasis::ignore, "Ignore"}}) {
    EXPECT_THAT(text_of(emphasis), HasSubstr(cat(", Emphasis: ", word, ",")));
    EXPECT_EQ(parse_parameters(text_of(emphasis)).emphasis, emphasis);
  }
  EXPECT_THAT(text_of(Emphasis::original), Not(HasSubstr("Emphasis")));
}

TEST(Words, AreNotCutBetweenChunks) {
  constexpr int32_t kPad = 7;
  ImageSource source = fake_source(half_noise);
  source.tokenizers[0].pad = kPad;
  source.embeddings.push_back({"zz", 3, {{1, 2, 3, 4, 5, 6}}});
  ImageRequest request;
  for (int i = 0; i < 74; ++i) request.prompt += "a ";
  request.prompt += "zz";
  const auto states = states_of(source, request).to_host<float>();
  ASSERT_EQ(states.size(), 2u * 154);
  // Start, 74 words, end; the vectors, which replace padding, are in the next chunk.
  EXPECT_EQ(states[2 * 75], static_cast<float>(source.tokenizers[0].end));
  EXPECT_EQ(states[2 * (77 + 1)], kPad);
  EXPECT_EQ(states[2 * (77 + 4)], static_cast<float>(source.tokenizers[0].end));
}

}  // namespace
}  // namespace rbee::engine
