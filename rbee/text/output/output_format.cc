#include "rbee/text/output/output_format.h"

#include <algorithm>
#include <array>
#include <utility>

namespace rbee::text {
namespace {

constexpr std::array<std::pair<std::string_view, ToolFormat>, 10> kTools{
    {{"none", ToolFormat::none},
     {"hermes", ToolFormat::hermes},
     {"llama3", ToolFormat::llama3},
     {"mistral", ToolFormat::mistral},
     {"mistral_named", ToolFormat::mistral_named},
     {"deepseek_v3", ToolFormat::deepseek_v3},
     {"deepseek_v31", ToolFormat::deepseek_v31},
     {"qwen3_coder", ToolFormat::qwen3_coder},
     {"harmony", ToolFormat::harmony},
     {"generic", ToolFormat::generic}}};

constexpr std::array<std::pair<std::string_view, ReasoningFormat>, 4> kReasoning{
    {{"none", ReasoningFormat::none},
     {"think", ReasoningFormat::think},
     {"mistral", ReasoningFormat::mistral},
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
  if (has("<function=") && has("<parameter=")) return ToolFormat::qwen3_coder;
  if (has("<tool_call>")) return ToolFormat::hermes;
  const bool llama = has("<|start_header_id|>") && has("tools") && has("\"parameters\"");
  return llama || has("<|python_tag|>") ? ToolFormat::llama3 : ToolFormat::none;
}

ReasoningFormat detect_reasoning(std::string_view text) {
  const auto has = [&](std::string_view part) { return text.find(part) != text.npos; };
  if (has("<|channel|>")) return ReasoningFormat::harmony;
  if (has("[THINK]")) return ReasoningFormat::mistral;
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
  return std::nullopt;
}

}  // namespace rbee::text
