// Integers beyond 64 bits reach a template as clients wrote them.
#include "rbee/engine/text/prompt/chat_prompt.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "rbee/core/wide_integers.h"
#include "rbee/engine/text/prompt/tool_prompt.h"

namespace rbee::engine {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::ordered_json;

std::string through_a_tree(const std::string& json) {
  return release_integers(Json::parse(hold_integers(json)).dump());
}

TEST(WideIntegers, StayAsTheyAreInATree) {
  for (const char* json :
       {"18446744073709551616", "-9223372036854775809", "18446744073709551615",
        "-9223372036854775808", R"({"a":[340282366920938463463374607431768211456,1.5,-1]})",
        R"({"18446744073709551616":"18446744073709551616"})", R"(["\"18446744073709551616"])",
        R"(["\\",99999999999999999999,"a\\\"b"])", R"({"a":0,"b":[],"c":{},"d":null})",
        "[\"\uFDD1\",\"\uFDD118446744073709551616\",\"\uFDD1\uFDD15\",99999999999999999999]",
        "{\"\uFDD15\":1}", "[\"a\uFDD15\"]"}) {
    EXPECT_EQ(through_a_tree(json), json);
  }
  EXPECT_EQ(through_a_tree(R"(["\uFdD15", "\ufdd199999999999999999999"])"),
            "[\"\uFDD15\",\"\uFDD199999999999999999999\"]");
  EXPECT_EQ(through_a_tree("[1e3, 1.50, 123456789012345678901234567890.0]"),
            "[1000.0,1.5,1.2345678901234568e+29]");
  EXPECT_EQ(release_integers(Json(held_text("\uFDD15")).dump()), "\"\uFDD15\"");
}

TEST(ChatPrompt, IntegersOfAnySizeKeepTheirDigits) {
  const ToolCall call{
      .id = "1", .name = "f", .arguments = R"({"n": 340282366920938463463374607431768211456})"};
  const std::vector<ChatMessage> messages = {
      {.role = "user", .content = "Hi"},
      {.role = "assistant", .content = {}, .tool_calls = {call}}};
  ChatOptions options;
  options.tools = {
      {.name = "f",
       .json = R"({"type": "function", "function": {"name": "f", "max": 18446744073709551616}})",
       .parameters = {}}};
  options.template_variables = " { \"x\" : -9223372036854775809 } ";
  const text::ChatTemplate code(
      "{{ x }} {{ tools | tojson }} {{ messages[1].tool_calls | tojson }}");
  EXPECT_EQ(render_chat(code, {}, messages, options),
            "-9223372036854775809 "
            R"([{"type": "function", "function": {"name": "f", "max": 18446744073709551616}}] )"
            R"([{"id": "1", "type": "function", "function": {"name": "f", "arguments": )"
            R"({"n": 340282366920938463463374607431768211456}}}])");
  options.template_variables = {};
  EXPECT_EQ(render_chat(text::ChatTemplate("{{ x is defined }} {{ tools | length }}"), {}, messages,
                        options),
            "False 1");
  const auto told =
      with_tool_prompt(messages, options.tools, text::ToolFormat::hermes, ToolPromptPlace::system);
  EXPECT_THAT(told.front().content, HasSubstr(R"("max":18446744073709551616)"));
  EXPECT_THAT(told.back().content, HasSubstr(":340282366920938463463374607431768211456}"));
}

// Models write such arguments, and clients send them back.
TEST(ChatPrompt, ArgumentsThatAreNoObjectAreToldAsTheyAre) {
  ChatMessage message{.role = "assistant"};
  message.tool_calls = {{.id = "a", .name = "f", .arguments = "{'a': 1}"}};
  const auto told = [&](text::ToolFormat format) {
    return with_tool_prompt({message}, {}, format, ToolPromptPlace::system).back().content;
  };
  EXPECT_THAT(told(text::ToolFormat::hermes), HasSubstr(R"("arguments":"{'a': 1}")"));
  EXPECT_THAT(told(text::ToolFormat::mistral_named), HasSubstr("[ARGS]{'a': 1}"));
  EXPECT_THAT(told(text::ToolFormat::qwen3_coder),
              HasSubstr("<function=f>\n{'a': 1}\n</function>"));
  message.tool_calls[0].arguments.clear();
  EXPECT_THAT(told(text::ToolFormat::hermes), HasSubstr(R"("arguments":{})"));
}

TEST(ChatPrompt, HarmonyKnowsThreeEfforts) {
  EXPECT_EQ(harmony_variables(R"({"a":18446744073709551616,"reasoning_effort":"max"} )"),
            R"({"a":18446744073709551616,"reasoning_effort":"max","reasoning_effort":"high"})");
  EXPECT_EQ(harmony_variables(R"({"reasoning_effort":"low"})"), R"({"reasoning_effort":"low"})");
  EXPECT_EQ(harmony_variables(""), "");
}

}  // namespace
}  // namespace rbee::engine
