#include "rbee/text/output/output_format.h"

#include <algorithm>
#include <array>
#include <utility>

#include "rbee/text/output/xml_form.h"

namespace rbee::text {
namespace {

constexpr std::array<std::pair<std::string_view, ToolFormat>, 14> kTools{
    {{"none", ToolFormat::none},
     {"hermes", ToolFormat::hermes},
     {"llama3", ToolFormat::llama3},
     {"mistral", ToolFormat::mistral},
     {"mistral_named", ToolFormat::mistral_named},
     {"deepseek_v3", ToolFormat::deepseek_v3},
     {"deepseek_v31", ToolFormat::deepseek_v31},
     {"qwen3_coder", ToolFormat::qwen3_coder},
     {"seed_oss", ToolFormat::seed_oss},
     {"minimax_m2", ToolFormat::minimax_m2},
     {"glm45", ToolFormat::glm45},
     {"kimi_k2", ToolFormat::kimi_k2},
     {"harmony", ToolFormat::harmony},
     {"generic", ToolFormat::generic}}};

constexpr std::array<std::pair<std::string_view, ReasoningFormat>, 5> kReasoning{
    {{"none", ReasoningFormat::none},
     {"think", ReasoningFormat::think},
     {"mistral", ReasoningFormat::mistral},
     {"seed", ReasoningFormat::seed},
     {"harmony", ReasoningFormat::harmony}}};

template <typename Table>
auto find_format(const Table& table, std::string_view name) {
  using Format = decltype(table.front().second);
  const auto at = std::ranges::find(table, name, [](const auto& entry) { return entry.first; });
  return at == table.end() ? std::nullopt : std::optional<std::remove_const_t<Format>>(at->second);
}

template <typename Table, typename Format>
std::string_view find_name(const Table& table, Format format) {
  return std::ranges::find(table, format, [](const auto& entry) { return entry.second; })->first;
}

ToolFormat detect_tools(std::string_view text) {
  const auto has = [&](std::string_view part) { return text.find(part) != text.npos; };
  if (has("<|channel|>")) return ToolFormat::harmony;
  if (has("[TOOL_CALLS]")) {
    return has("[ARGS]") ? ToolFormat::mistral_named : ToolFormat::mistral;
  }
  if (has(deepseek::kCallBegin)) {
    return has("```json") ? ToolFormat::deepseek_v3 : ToolFormat::deepseek_v31;
  }
  if (has(framed_marks(ToolFormat::kimi_k2).separator)) return ToolFormat::kimi_k2;
  for (const ToolFormat format : {ToolFormat::seed_oss, ToolFormat::minimax_m2}) {
    if (has(xml_form(format)->open)) return format;
  }
  if (has(xml_form(ToolFormat::glm45)->parameter)) return ToolFormat::glm45;
  if (has("<function=") && has("<parameter=")) return ToolFormat::qwen3_coder;
  if (has("<tool_call>")) return ToolFormat::hermes;
  const bool llama = has("<|start_header_id|>") && has("tools") && has("\"parameters\"");
  return llama || has("<|python_tag|>") ? ToolFormat::llama3 : ToolFormat::none;
}

ReasoningFormat detect_reasoning(std::string_view text) {
  const auto has = [&](std::string_view part) { return text.find(part) != text.npos; };
  if (has("<|channel|>")) return ReasoningFormat::harmony;
  if (has("[THINK]")) return ReasoningFormat::mistral;
  if (has("<seed:think>")) return ReasoningFormat::seed;
  return has("<think>") || has("</think>") ? ReasoningFormat::think : ReasoningFormat::none;
}

}  // namespace

OutputFormat detect_output_format(std::string_view chat_template) {
  return {.tools = detect_tools(chat_template), .reasoning = detect_reasoning(chat_template)};
}

std::optional<ToolFormat> parse_tool_format(std::string_view name) {
  return find_format(kTools, name);
}

std::optional<ReasoningFormat> parse_reasoning_format(std::string_view name) {
  return find_format(kReasoning, name);
}

std::string_view name_of(ToolFormat format) {
  return find_name(kTools, format);
}

std::string_view name_of(ReasoningFormat format) {
  return find_name(kReasoning, format);
}

std::optional<ReasoningMarks> marks_of(ReasoningFormat format) {
  if (format == ReasoningFormat::think) return ReasoningMarks{"<think>", "</think>"};
  if (format == ReasoningFormat::mistral) return ReasoningMarks{"[THINK]", "[/THINK]"};
  if (format == ReasoningFormat::seed) return ReasoningMarks{"<seed:think>", "</seed:think>"};
  return std::nullopt;
}

const FramedMarks& framed_marks(ToolFormat format) {
  static constexpr FramedMarks kDeepseek{.calls_begin = deepseek::kCallsBegin,
                                         .calls_end = deepseek::kCallsEnd,
                                         .call_begin = deepseek::kCallBegin,
                                         .call_end = deepseek::kCallEnd,
                                         .separator = deepseek::kSeparator};
  static constexpr FramedMarks kKimi{.calls_begin = "<|tool_calls_section_begin|>",
                                     .calls_end = "<|tool_calls_section_end|>",
                                     .call_begin = "<|tool_call_begin|>",
                                     .call_end = "<|tool_call_end|>",
                                     .separator = "<|tool_call_argument_begin|>"};
  return format == ToolFormat::kimi_k2 ? kKimi : kDeepseek;
}

const XmlForm* xml_form(ToolFormat format) {
  static constexpr XmlForm kQwen{.open = "<tool_call>",
                                 .close = "</tool_call>",
                                 .function = "<function=",
                                 .name_end = ">",
                                 .parameter = "<parameter=",
                                 .key_end = ">",
                                 .value = "",
                                 .value_end = "</parameter>",
                                 .function_end = "</function>",
                                 .gap = "\n"};
  static constexpr XmlForm kSeed{.open = "<seed:tool_call>",
                                 .close = "</seed:tool_call>",
                                 .function = "<function=",
                                 .name_end = ">",
                                 .parameter = "<parameter=",
                                 .key_end = ">",
                                 .value = "",
                                 .value_end = "</parameter>",
                                 .function_end = "</function>",
                                 .gap = ""};
  static constexpr XmlForm kMinimax{.open = "<minimax:tool_call>",
                                    .close = "</minimax:tool_call>",
                                    .function = "<invoke name=\"",
                                    .name_end = "\">",
                                    .parameter = "<parameter name=\"",
                                    .key_end = "\">",
                                    .value = "",
                                    .value_end = "</parameter>",
                                    .function_end = "</invoke>",
                                    .gap = ""};
  static constexpr XmlForm kGlm{.open = "",
                                .close = "",
                                .function = "<tool_call>",
                                .name_end = "",
                                .parameter = "<arg_key>",
                                .key_end = "</arg_key>",
                                .value = "<arg_value>",
                                .value_end = "</arg_value>",
                                .function_end = "</tool_call>",
                                .gap = ""};
  switch (format) {
    case ToolFormat::qwen3_coder:
      return &kQwen;
    case ToolFormat::seed_oss:
      return &kSeed;
    case ToolFormat::minimax_m2:
      return &kMinimax;
    case ToolFormat::glm45:
      return &kGlm;
    default:
      return nullptr;
  }
}

}  // namespace rbee::text
