#include "rbee/engine/generation_config.h"

#include <gmock/gmock.h>

#include "rbee/core/error.h"

namespace rbee::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(EndTokenIds, ReadsANumberAListAndNothing) {
  EXPECT_THAT(end_token_ids(R"({"eos_token_id": 2})", "f"), ElementsAre(2));
  EXPECT_THAT(end_token_ids(R"({"eos_token_id": [128001, 128009]})", "f"),
              ElementsAre(128001, 128009));
  EXPECT_THAT(end_token_ids(R"({"eos_token_id": null})", "f"), IsEmpty());
  EXPECT_THAT(end_token_ids("{}", "f"), IsEmpty());
}

TEST(EndTokenIds, RefusesWhatIsNoId) {
  for (const char* json :
       {R"({"eos_token_id": -1})", R"({"eos_token_id": "x"})", R"({"eos_token_id": [1.5]})",
        R"({"eos_token_id": 99999999999})", "[]", "{"}) {
    EXPECT_THROW(end_token_ids(json, "f"), Error) << json;
  }
}

TEST(ChatTemplateOf, ReadsAStringAndTheDefaultOfAList) {
  EXPECT_EQ(chat_template_of(R"({"chat_template": "T"})"), "T");
  EXPECT_EQ(chat_template_of(R"({"chat_template": [{"name": "tool_use", "template": "A"},
                                                   {"name": "default", "template": "B"}]})"),
            "B");
  EXPECT_EQ(chat_template_of("{}"), std::nullopt);
  EXPECT_EQ(chat_template_of(R"({"chat_template": [{"name": 3}, "x"]})"), std::nullopt);
}

}  // namespace
}  // namespace rbee::engine
