#pragma once
// The formats in which models write their reasoning and their function calls.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace rbee::text {

enum class ToolFormat : uint8_t {
  none,
  hermes,         // <tool_call>{"name", "arguments"}</tool_call>: Hermes 2 Pro, Qwen 2.5 and 3
  llama3,         // {"name", "parameters"}, alone or after <|python_tag|>: Llama 3.1 to 3.3
  mistral,        // [TOOL_CALLS][{"name", "arguments"}, ...]
  mistral_named,  // [TOOL_CALLS]name[ARGS]{...}: Mistral from the eleventh tokenizer on
  deepseek_v3,    // name and a block of JSON between tokens: DeepSeek V3, R1
  deepseek_v31,   // name and JSON between tokens
  qwen3_coder,    // <function=name><parameter=key>value</parameter></function>
  seed_oss,       // the same in marks of its own: Seed-OSS
  minimax_m2,     // <invoke name="name"><parameter name="key">value</parameter></invoke>
  glm45,          // <tool_call>name, <arg_key>key</arg_key><arg_value>value</arg_value>: GLM-4.5
  kimi_k2,        // functions.name:number and JSON between tokens: Kimi K2
  harmony,        // a channel to functions.name: GPT-OSS
  generic,        // {"name", "arguments"} at the beginning of a line: models without a form
};

enum class ReasoningFormat : uint8_t {
  none,
  think,    // <think>...</think>
  mistral,  // [THINK]...[/THINK]: Magistral
  seed,     // <seed:think>...</seed:think>: Seed-OSS
  harmony,  // the channel `analysis`
};

struct OutputFormat {
  ToolFormat tools = ToolFormat::none;
  ReasoningFormat reasoning = ReasoningFormat::none;
  friend bool operator==(const OutputFormat&, const OutputFormat&) = default;
};

// Detects the format from the chat template: the model writes what the template writes for earlier
// turns.
OutputFormat detect_output_format(std::string_view chat_template);

std::optional<ToolFormat> parse_tool_format(std::string_view name);
std::optional<ReasoningFormat> parse_reasoning_format(std::string_view name);
// Their names, for messages.
inline constexpr std::string_view kToolFormatNames =
    "none, hermes, llama3, mistral, mistral_named, deepseek_v3, deepseek_v31, qwen3_coder, "
    "seed_oss, minimax_m2, glm45, kimi_k2, harmony, generic";
inline constexpr std::string_view kReasoningFormatNames = "none, think, mistral, seed, harmony";
std::string_view name_of(ToolFormat format);
std::string_view name_of(ReasoningFormat format);

// The marks around reasoning, for formats that have two.
struct ReasoningMarks {
  std::string_view open, close;
};
std::optional<ReasoningMarks> marks_of(ReasoningFormat format);

// The marks of calls with their name in front of the JSON.
struct FramedMarks {
  std::string_view calls_begin, calls_end;  // around all
  std::string_view call_begin, call_end;    // around one
  std::string_view separator;               // between its name and the JSON
};
// Of deepseek_v3, deepseek_v31 and kimi_k2.
const FramedMarks& framed_marks(ToolFormat format);

// Marks of DeepSeek's calls. U+FF5C and U+2581 stand for | and _ in them.
namespace deepseek {
#define RB_MARK(words) "<\xEF\xBD\x9C" words "\xEF\xBD\x9C>"
#define RB_GAP "\xE2\x96\x81"
inline constexpr std::string_view kCallsBegin = RB_MARK("tool" RB_GAP "calls" RB_GAP "begin");
inline constexpr std::string_view kCallsEnd = RB_MARK("tool" RB_GAP "calls" RB_GAP "end");
inline constexpr std::string_view kCallBegin = RB_MARK("tool" RB_GAP "call" RB_GAP "begin");
inline constexpr std::string_view kCallEnd = RB_MARK("tool" RB_GAP "call" RB_GAP "end");
inline constexpr std::string_view kSeparator = RB_MARK("tool" RB_GAP "sep");
#undef RB_MARK
#undef RB_GAP
}  // namespace deepseek

}  // namespace rbee::text
