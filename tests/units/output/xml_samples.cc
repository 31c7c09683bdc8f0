// Qwen3-Coder's calls, and those of models that write theirs alike.

#include "tests/units/output/samples.h"

namespace rbee::text {

std::vector<Sample> xml_samples() {
  const auto t = ToolFormat::qwen3_coder;
  return {
      {"typed",
       t,
       kNoReasoning,
       "I see.\n<tool_call>\n<function=get_weather>\n<parameter=city>\nParis\n</parameter>\n"
       "<parameter=days>\n2\n</parameter>\n</function>\n</tool_call>\n",
       {"", "I see.", {{"get_weather", R"({"city": "Paris", "days": 2})"}}}},
      {"number as text",
       t,
       kNoReasoning,
       "<function=get_weather><parameter=city>12</parameter></function>",
       {"", "", {{"get_weather", R"({"city": "12"})"}}}},
      {"lines and quotes",
       t,
       kNoReasoning,
       "<tool_call><function=f><parameter=code>\nif a < \"b\":\n  x\n</parameter></function>"
       "</tool_call><tool_call><function=f></function></tool_call>",
       {"", "", {{"f", R"({"code": "if a < \"b\":\n  x"})"}, {"f", "{}"}}}},
      {"marks in a text",
       t,
       kNoReasoning,
       "<tool_call>\n<function=f>\n<parameter=code>\nsays </parameter>, </parameter>\nand "
       "</function>, <parameter=x>\n</parameter>\n</function>\n</tool_call>",
       {"",
        "",
        {{"f", R"({"code": "says </parameter>, </parameter>\nand </function>, <parameter=x>"})"}}}},
      {"names in a text",
       t,
       kNoReasoning,
       "<function=get_weather>\n<parameter=city>\n<parameter=city>\n<parameter=town>\n"
       "at <parameter=days>\n</parameter>\n</function>",
       {"",
        "",
        {{"get_weather",
          R"({"city": "<parameter=city>\n<parameter=town>\nat <parameter=days>"})"}}}},
      {"end marks left out",
       t,
       kNoReasoning,
       "<tool_call>\n<function=get_weather>\n<parameter=city>\nParis\n<parameter=days>\n2\n"
       "</function>\n</tool_call>",
       {"", "", {{"get_weather", R"({"city": "Paris", "days": 2})"}}}},
      {"an end mark left out before words",
       t,
       kNoReasoning,
       "<function=f><parameter=a>x</function> Done.",
       {"", "Done.", {{"f", R"({"a": "x"})"}}}},
      {"cut behind a value",
       t,
       kNoReasoning,
       "<function=f><parameter=a>1</parameter>\n</func",
       {"", "", {{"f", R"({"a": 1)"}}}},
      {"no end", t, kNoReasoning, "<function=f\n", {"", "f\n", {}}},
  };
}

std::vector<Sample> other_samples() {
  const auto seed = ToolFormat::seed_oss, minimax = ToolFormat::minimax_m2, glm = ToolFormat::glm45,
             kimi = ToolFormat::kimi_k2;
  const std::vector<Call> weather = {{"get_weather", R"({"city": "Paris", "days": 2})"}};
  return {
      {"seed",
       seed,
       ReasoningFormat::seed,
       "<seed:think>Hm.</seed:think>\nI look.\n<seed:tool_call>\n<function=get_weather>\n"
       "<parameter=city>Paris</parameter>\n<parameter=days>2</parameter>\n</function>\n"
       "</seed:tool_call>",
       {"Hm.", "I look.", weather}},
      {"seed keeps lines",
       seed,
       kNoReasoning,
       "<seed:tool_call><function=f><parameter=a>\nx\n</parameter></function></seed:tool_call>",
       {"", "", {{"f", R"({"a": "\nx\n"})"}}}},
      {"minimax",
       minimax,
       kThink,
       "Hm.\n</think>\n\nI look.\n<minimax:tool_call>\n<invoke name=\"get_weather\">\n"
       "<parameter name=\"city\">Paris</parameter>\n<parameter name=\"days\">2</parameter>\n"
       "</invoke>\n<invoke name=\"f\">\n</invoke>\n</minimax:tool_call>",
       {"Hm.", "I look.", {weather[0], {"f", "{}"}}},
       true},
      {"minimax with marks in a text",
       minimax,
       kNoReasoning,
       "<minimax:tool_call><invoke name=\"f\"><parameter name=\"a\">x</parameter> and </invoke>"
       "</parameter></invoke></minimax:tool_call>",
       {"", "", {{"f", R"({"a": "x</parameter> and </invoke>"})"}}}},
      {"glm 4.5",
       glm,
       kThink,
       "\n<think>Hm.</think>\nI look.\n<tool_call>get_weather\n<arg_key>city</arg_key>\n"
       "<arg_value>Paris</arg_value>\n<arg_key>days</arg_key>\n<arg_value>2</arg_value>\n"
       "</tool_call>\n<tool_call>f\n</tool_call>",
       {"Hm.", "I look.", {weather[0], {"f", "{}"}}}},
      {"glm 4.7",
       glm,
       kNoReasoning,
       "<tool_call>get_weather<arg_key>city</arg_key><arg_value>Paris</arg_value>"
       "<arg_key>days</arg_key><arg_value>2</arg_value></tool_call><tool_call>f</tool_call>",
       {"", "", {weather[0], {"f", "{}"}}}},
      {"glm with an end mark left out",
       glm,
       kNoReasoning,
       "<tool_call>f\n<arg_key>a</arg_key>\n<arg_value>x</tool_call>",
       {"", "", {{"f", R"({"a": "x"})"}}}},
      {"glm of no call", glm, kNoReasoning, "<tool_call> a b\n", {"", "a b\n", {}}},
      {"kimi",
       kimi,
       kNoReasoning,
       "I look.<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0"
       "<|tool_call_argument_begin|>{\"city\": \"Paris\", \"days\": 2}<|tool_call_end|>"
       "<|tool_call_begin|>functions.f:1<|tool_call_argument_begin|>{}<|tool_call_end|>"
       "<|tool_calls_section_end|>",
       {"", "I look.", {weather[0], {"f", "{}"}}}},
  };
}

}  // namespace rbee::text
