#include "rbee/engine/text/generation_config.h"

#include <gmock/gmock.h>

#include <limits>
#include <span>

#include "rbee/core/cat.h"
#include "rbee/core/error.h"

namespace rbee::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(EndTokenIds, ReadsANumberAListAndNothing) {
  const auto ids = [](std::string_view json) { return end_token_ids(json, "f", 128256); };
  EXPECT_THAT(ids(R"({"eos_token_id": 2})"), ElementsAre(2));
  EXPECT_THAT(ids(R"({"eos_token_id": [128001, 128009]})"), ElementsAre(128001, 128009));
  EXPECT_THAT(ids(R"({"eos_token_id": null})"), IsEmpty());
  EXPECT_THAT(ids("{}"), IsEmpty());
  for (const char* json : {"[]", "{"}) EXPECT_THROW(ids(json), Error) << json;
}

TEST(EndTokenIds, LeavesOutWhatNoTokenHas) {
  for (const char* json : {R"({"eos_token_id": [-1, 7]})", R"({"eos_token_id": ["x", 7]})",
                           R"({"eos_token_id": [7, 1.5]})", R"({"eos_token_id": [7, 99999999999]})",
                           R"({"eos_token_id": [18446744073709551615, 7]})",
                           R"({"eos_token_id": [7, 8]})", R"({"eos_token_id": [7, [1]]})"}) {
    EXPECT_THAT(end_token_ids(json, "f", 8), ElementsAre(7)) << json;
  }
  EXPECT_THAT(end_token_ids(R"({"eos_token_id": -1})", "f", 8), IsEmpty());
}

TEST(SamplingDefaults, ReadsWhatRequestsCouldAskFor) {
  // From Qwen3 0.6B.
  EXPECT_EQ(sampling_defaults(R"({"bos_token_id": 151643, "do_sample": true,
      "eos_token_id": [151645, 151643], "temperature": 0.6, "top_k": 20, "top_p": 0.95})"),
            (SamplingDefaults{.temperature = 0.6f, .top_p = 0.95f, .top_k = 20}));
  EXPECT_EQ(sampling_defaults(R"({"min_p": 0.25, "repetition_penalty": 1.5, "top_k": null})"),
            (SamplingDefaults{.min_p = 0.25f, .repetition_penalty = 1.5f}));
  EXPECT_EQ(
      sampling_defaults(R"({"temperature": 101, "top_p": "x", "top_k": 1e300, "min_p": 0.5})"),
      SamplingDefaults{.min_p = 0.5f});
  EXPECT_THROW(sampling_defaults("["), Error);
}

// Keys and types as gguf-py 0.19 writes them.
TEST(SamplingDefaults, ReadsThoseOfAGgufFile) {
  const float temperature = 0.6f, repeat = -1, min_p = 0.25f;
  const int32_t top_k = 20;
  const bool no_number = true;
  const auto entry = [](const char* key, io::MetaType type, const auto& value) {
    return io::MetaEntry{.key = key, .type = type, .value = std::as_bytes(std::span(&value, 1))};
  };
  const io::Metadata metadata(
      "f", nullptr,
      {entry("general.sampling.temp", io::MetaType::f32, temperature),
       entry("general.sampling.penalty_repeat", io::MetaType::f32, repeat),  // out of range
       entry("general.sampling.min_p", io::MetaType::f32, min_p),
       entry("general.sampling.top_k", io::MetaType::i32, top_k),
       entry("general.sampling.top_p", io::MetaType::boolean, no_number)});
  EXPECT_EQ(sampling_defaults(metadata),
            (SamplingDefaults{.temperature = 0.6f, .min_p = 0.25f, .top_k = 20}));
  EXPECT_EQ(sampling_defaults(io::Metadata()), SamplingDefaults{});
  for (const int64_t far : {std::numeric_limits<int64_t>::min(), int64_t{INT32_MAX} + 1}) {
    const io::Metadata beyond("f", nullptr,
                              {entry("general.sampling.top_k", io::MetaType::i64, far)});
    EXPECT_EQ(sampling_defaults(beyond), SamplingDefaults{}) << far;
  }
}

TEST(SamplingDefaults, LeavesOutIntegersThatAreNotWhole) {
  EXPECT_EQ(sampling_defaults(R"({"top_k": 20.0})"), SamplingDefaults{.top_k = 20});
  for (const char* top_k : {"2.5", "0.5", "4294967316", "18446744073709551615", "true"}) {
    EXPECT_EQ(sampling_defaults(cat(R"({"top_k": )", top_k, "}")), SamplingDefaults{}) << top_k;
  }
}

TEST(ChatTemplateOf, ReadsAStringAndTheNamedOnesOfAList) {
  EXPECT_EQ(chat_template_of(R"({"chat_template": "T"})", "default"), "T");
  EXPECT_EQ(chat_template_of(R"({"chat_template": "T"})", "tool_use"), std::nullopt);
  const char* list = R"({"chat_template": [{"name": "tool_use", "template": "A"},
                                           {"name": "default", "template": "B"}]})";
  EXPECT_EQ(chat_template_of(list, "default"), "B");
  EXPECT_EQ(chat_template_of(list, "tool_use"), "A");
  EXPECT_EQ(chat_template_of("{}", "default"), std::nullopt);
  EXPECT_EQ(chat_template_of(R"({"chat_template": [{"name": 3}, "x"]})", "default"), std::nullopt);
}

}  // namespace
}  // namespace rbee::engine
