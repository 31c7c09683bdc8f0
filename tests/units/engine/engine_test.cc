#include "rbee/engine/api/text.h"

#include <gmock/gmock.h>

#include <functional>
#include <limits>

namespace rbee::engine {
namespace {

using ::testing::HasSubstr;

TextRequest good() {
  TextRequest request;
  request.prompt = "Hello";
  return request;
}

TEST(Validate, TakesTheDefaultsAndTheEdges) {
  EXPECT_NO_THROW(validate(good()));
  TextRequest edges = good();
  edges.max_tokens = 1;
  edges.sampling = {.temperature = 2,
                    .top_k = 0,
                    .top_p = 0,
                    .min_p = 1,
                    .repetition_penalty = 2,
                    .frequency_penalty = -2,
                    .presence_penalty = 2,
                    .repeat_last_n = 0};
  edges.stop = {std::string(100, 'x')};
  EXPECT_NO_THROW(validate(edges));
}

TEST(Validate, NamesTheFieldThatIsWrong) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<std::pair<std::string, std::function<void(TextRequest&)>>> cases = {
      {"prompt", [](TextRequest& r) { r.prompt.clear(); }},
      {"max_tokens", [](TextRequest& r) { r.max_tokens = -1; }},
      {"temperature", [](TextRequest& r) { r.sampling.temperature = 100.1f; }},
      {"temperature", [&](TextRequest& r) { r.sampling.temperature = nan; }},
      {"top_p", [](TextRequest& r) { r.sampling.top_p = -0.1f; }},
      {"top_k", [](TextRequest& r) { r.sampling.top_k = -2; }},
      {"min_p", [](TextRequest& r) { r.sampling.min_p = 1.5f; }},
      {"repetition_penalty", [](TextRequest& r) { r.sampling.repetition_penalty = 0; }},
      {"repetition_penalty", [](TextRequest& r) { r.sampling.repetition_penalty = 2.5f; }},
      {"frequency_penalty", [](TextRequest& r) { r.sampling.frequency_penalty = 3; }},
      {"presence_penalty", [](TextRequest& r) { r.sampling.presence_penalty = -3; }},
      {"repeat_last_n", [](TextRequest& r) { r.sampling.repeat_last_n = -1; }},
      {"typical_p", [](TextRequest& r) { r.sampling.typical_p = 1.5f; }},
      {"top_n_sigma", [&](TextRequest& r) { r.sampling.top_n_sigma = nan; }},
      {"xtc_probability", [](TextRequest& r) { r.sampling.xtc_probability = 2; }},
      {"xtc_threshold", [](TextRequest& r) { r.sampling.xtc_threshold = -1; }},
      {"dry_multiplier", [](TextRequest& r) { r.sampling.dry_multiplier = -1; }},
      {"dry_base", [](TextRequest& r) { r.sampling.dry_base = 0.5f; }},
      {"dry_allowed_length", [](TextRequest& r) { r.sampling.dry_allowed_length = 0; }},
      {"dry_penalty_last_n", [](TextRequest& r) { r.sampling.dry_penalty_last_n = -2; }},
      {"dry_sequence_breakers", [](TextRequest& r) { r.sampling.dry_sequence_breakers = {""}; }},
      {"dynatemp_range", [](TextRequest& r) { r.sampling.dynatemp_range = -1; }},
      {"dynatemp_exponent", [](TextRequest& r) { r.sampling.dynatemp_exponent = 11; }},
      {"mirostat", [](TextRequest& r) { r.sampling.mirostat = 3; }},
      {"mirostat_tau", [](TextRequest& r) { r.sampling.mirostat_tau = -1; }},
      {"mirostat_eta", [](TextRequest& r) { r.sampling.mirostat_eta = 2; }},
      {"logit_bias", [](TextRequest& r) { r.sampling.logit_bias = {{1, "", 101}}; }},
      {"logit_bias", [](TextRequest& r) { r.sampling.logit_bias = {{-1, "", 1}}; }},
      {"min_tokens", [](TextRequest& r) { r.sampling.min_tokens = -1; }},
      {"bad_words", [](TextRequest& r) { r.sampling.bad_words = {std::string(513, 'x')}; }},
      {"samplers",
       [](TextRequest& r) { r.sampling.samplers = {SamplerKind::top_k, SamplerKind::dry}; }},
      {"samplers",
       [](TextRequest& r) { r.sampling.samplers = {SamplerKind::top_k, SamplerKind::top_k}; }},
      {"logprobs", [](TextRequest& r) { r.logprobs = 101; }},
      {"prompt_logprobs", [](TextRequest& r) { r.prompt_logprobs = 101; }},
      {"prompt_logprobs", [](TextRequest& r) { r.prompt_logprobs = -1; }},
      {"stop", [](TextRequest& r) { r.stop = {""}; }},
      {"stop", [](TextRequest& r) { r.stop = {std::string(513, 'x')}; }},
      {"stop", [](TextRequest& r) { r.stop.assign(65, "x"); }},
  };
  for (const auto& [field, spoil] : cases) {
    TextRequest request = good();
    spoil(request);
    try {
      validate(request);
      ADD_FAILURE() << field << " passed";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::invalid_argument);
      EXPECT_EQ(error.op(), field);
    }
  }
}

TEST(ParseLora, NamePathAndScale) {
  struct Case {
    const char *text, *name, *path;
    float scale;
  };
  const Case cases[] = {
      {"sql=/a/sql", "sql", "/a/sql", 1},
      {"sql=/a/sql:0.5", "sql", "/a/sql", 0.5f},
      {"sql=a.gguf:-2", "sql", "a.gguf", -2},
      {"/a/poet.gguf", "poet", "/a/poet.gguf", 1},
      {"/a/poet/:1e-1", "poet", "/a/poet/", 0.1f},
      {"/a/b=c/d", "d", "/a/b=c/d", 1},
      {"x=/a:b", "x", "/a:b", 1},
  };
  for (const Case& c : cases) {
    const LoraInfo info = parse_lora(c.text);
    EXPECT_EQ(info.name, c.name) << c.text;
    EXPECT_EQ(info.path, c.path) << c.text;
    EXPECT_FLOAT_EQ(info.scale, c.scale) << c.text;
  }
  for (const char* text : {"=/a", "x=", "", "x=:2", "x=/a:101", "x=/a:nan"}) {
    EXPECT_THROW(parse_lora(text), Error) << text;
  }
}

TEST(WireName, IsTheContractsWord) {
  EXPECT_EQ(wire_name(StopReason::eos), "EOS");
  EXPECT_EQ(wire_name(StopReason::max_tokens), "MAX_TOKENS");
  EXPECT_EQ(wire_name(StopReason::stop_sequence), "STOP_SEQUENCE");
  EXPECT_EQ(wire_name(StopReason::context_full), "CONTEXT_FULL");
  EXPECT_EQ(wire_name(StopReason::cancelled), "CANCELLED");
}

}  // namespace
}  // namespace rbee::engine
