#include "rbee/engine/api/text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>

namespace rbee::engine {
namespace {

constexpr size_t kMaxStops = 64;
constexpr size_t kMaxStopBytes = 512;
constexpr int32_t kMaxPriority = 1000;
constexpr size_t kMaxConstraintBytes = 1 << 18;
constexpr size_t kMaxChoices = 1000;
constexpr size_t kMaxTools = 128;
constexpr size_t kMaxToolName = 128;

// NaN is in no range.
void check_range(const char* field, double value, double low, double high) {
  check(value >= low && value <= high, field, value, " is outside of ", low, " to ", high);
}

void check_constraint(const Constraint& constraint) {
  check(constraint.text.size() <= kMaxConstraintBytes, "constraint", "its ", constraint.text.size(),
        " bytes are more than ", kMaxConstraintBytes);
  if (constraint.kind != Constraint::Kind::choice) return;
  check(!constraint.choices.empty() && constraint.choices.size() <= kMaxChoices, "choice",
        constraint.choices.size(), " texts are outside of 1 to ", kMaxChoices);
  for (const std::string& choice : constraint.choices) {
    check(!choice.empty() && choice.size() <= kMaxConstraintBytes, "choice", "a text of ",
          choice.size(), " bytes is outside of 1 to ", kMaxConstraintBytes);
  }
}

void check_chat(const ChatOptions& chat) {
  check(chat.tools.size() <= kMaxTools, "tools", chat.tools.size(), " are more than ", kMaxTools);
  bool known = chat.tool.empty();
  for (const Tool& tool : chat.tools) {
    const bool fits = !tool.name.empty() && tool.name.size() <= kMaxToolName &&
                      std::ranges::all_of(tool.name, [](char c) {
                        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                               (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.';
                      });
    check(fits, "tools", "the name of a function is not 1 to ", kMaxToolName,
          " letters, digits, _, - and .");
    check(tool.parameters.size() <= kMaxConstraintBytes, "tools", "parameters of ",
          tool.parameters.size(), " bytes are more than ", kMaxConstraintBytes);
    check(tool.input.text.size() <= kMaxConstraintBytes, "tools", "the form of a text of ",
          tool.input.text.size(), " bytes is more than ", kMaxConstraintBytes);
    known |= tool.name == chat.tool;
  }
  check(known, "tool_choice", "there is no function ", chat.tool);
  check(chat.reasoning_budget.value_or(0) >= 0, "reasoning_budget",
        chat.reasoning_budget.value_or(0), " is below 0");
  check(chat.tool_choice != ToolChoice::required || !chat.tools.empty(), "tool_choice",
        "a call is required, but there are no tools");
}

}  // namespace

PromptTooLong::PromptTooLong(int64_t tokens, int64_t context)
    : Error(Code::invalid_argument, "prompt",
            cat("its ", tokens, " tokens leave no room in the context of ", context)),
      tokens_(tokens),
      context_(context) {}

std::string_view wire_name(StopReason reason) {
  switch (reason) {
    case StopReason::eos:
      return "EOS";
    case StopReason::max_tokens:
      return "MAX_TOKENS";
    case StopReason::stop_sequence:
      return "STOP_SEQUENCE";
    case StopReason::context_full:
      return "CONTEXT_FULL";
    case StopReason::cancelled:
      return "CANCELLED";
  }
  return "ERROR";
}

LoraInfo parse_lora(std::string_view text) {
  const std::string whole(text);
  LoraInfo out;
  const size_t equals = text.find('=');
  if (equals != std::string_view::npos && equals < text.find('/')) {
    out.name = text.substr(0, equals);
    check(!out.name.empty(), "lora", "\"", whole, "\" has no name before =");
    text.remove_prefix(equals + 1);
  }
  const size_t colon = text.rfind(':');
  if (colon != std::string_view::npos) {
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data() + colon + 1, end, out.scale);
    if (error == std::errc() && stop == end) text = text.substr(0, colon);
  }
  check_range("lora", out.scale, -kMaxLoraScale, kMaxLoraScale);
  check(!text.empty(), "lora", "\"", whole, "\" has no path");
  out.path = text;
  if (out.name.empty()) {
    const std::filesystem::path path(out.path);
    out.name = (path.has_filename() ? path : path.parent_path()).stem().string();
  }
  return out;
}

void validate(const TextRequest& request) {
  check(!request.prompt.empty() || !request.prompt_ids.empty() || !request.messages.empty(),
        "prompt", "it is empty");
  check(request.max_tokens >= 0, "max_tokens", request.max_tokens, " is below 0");
  check_range("priority", request.priority, -kMaxPriority, kMaxPriority);
  validate(request.sampling);
  if (request.logprobs) check_range("logprobs", *request.logprobs, 0, kMaxLogprobs);
  check(request.logprob_ids.size() <= kMaxLogprobIds, "logprob_token_ids",
        request.logprob_ids.size(), " tokens are more than ", kMaxLogprobIds);
  if (request.prompt_logprobs) {
    check_range("prompt_logprobs", *request.prompt_logprobs, 0, kMaxLogprobs);
  }
  check(request.lora.size() <= kMaxLoras, "lora", request.lora.size(), " adapters are more than ",
        kMaxLoras);
  for (const LoraChoice& choice : request.lora) {
    check_range("lora.scale", choice.scale.value_or(1), -kMaxLoraScale, kMaxLoraScale);
  }
  if (request.drawn_logprobs) {
    check_range("drawn_logprobs", *request.drawn_logprobs, 0, kMaxLogprobs);
  }
  check_constraint(request.constraint);
  check(request.allowed_ids.empty() || request.constraint.kind == Constraint::Kind::none,
        "allowed_token_ids", "cannot be given together with a form of the answer");
  const int32_t kept = request.kept_tokens.value_or(-1);
  check(kept == -1 || kept > 0, "truncate_prompt_tokens", kept, " is neither -1 nor above 0");
  check_chat(request.chat);
  check(request.stop.size() <= kMaxStops, "stop", request.stop.size(), " texts are more than ",
        kMaxStops);
  for (const std::string& stop : request.stop) {
    check(!stop.empty() && stop.size() <= kMaxStopBytes, "stop", "a text of ", stop.size(),
          " bytes is outside of 1 to ", kMaxStopBytes);
  }
  check(request.stop_ids.size() <= kMaxStopIds, "stop_token_ids", request.stop_ids.size(),
        " tokens are more than ", kMaxStopIds);
}

}  // namespace rbee::engine
