#include "server/wire/reasoning_fields.h"

#include <algorithm>
#include <array>

#include "rbee/core/cat.h"
#include "server/wire/json_text.h"

namespace rbee::server {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr std::array kEfforts{"none", "minimal", "low", "medium", "high", "xhigh", "max"};
constexpr std::array kBudgets{"thinking_token_budget", "reasoning_budget",
                              "reasoning_budget_tokens", "thinking_budget_tokens"};

// Keeps a value that the request sets itself.
void add_variable(ChatFields& chat, const char* name, const json& value) {
  ordered_json all = chat.template_variables.empty() ? ordered_json::object()
                                                     : parse_in_order(chat.template_variables);
  if (!all.contains(name)) all[name] = value;
  chat.template_variables = dump_in_order(all);
}

// Qwen, GLM, SmolLM3 and others use the first name, DeepSeek V3.1 and Granite the second.
void set_thinking(ChatFields& chat, bool on) {
  add_variable(chat, "enable_thinking", on);
  add_variable(chat, "thinking", on);
}

// With a budget of 0, templates that can skip reasoning do so. Seed-OSS's template reads any other
// budget. In all cases the engine ends reasoning that exceeds it.
void set_budget(ChatFields& chat, int32_t budget) {
  chat.reasoning_budget = budget;
  if (budget < 0) return;
  if (budget == 0) set_thinking(chat, false);
  add_variable(chat, "thinking_budget", budget);
}

void read_budget(ObjectReader& reader, ChatFields& chat) {
  std::optional<int32_t> budget;
  for (const char* name : kBudgets) {
    const std::optional<int32_t> value = reader.integer(name, {-1, INT32_MAX});
    if (!value) continue;
    const bool limits = *value >= 0 && budget.value_or(-1) >= 0;
    budget = limits ? std::min(*value, *budget) : std::max(*value, budget.value_or(-1));
  }
  if (budget) set_budget(chat, *budget);
}

}  // namespace

void read_reasoning(ObjectReader& reader, const JsonBody& body, ChatFields& chat) {
  if (const json* more = reader.find("chat_template_kwargs")) {
    if (!more->is_object()) {
      reader.note("chat_template_kwargs", "type(object)", "must be an object", more);
    } else if (!more->empty()) {
      chat.template_variables = dump_in_order(body.in_order("chat_template_kwargs"));
    }
  }
  read_budget(reader, chat);
  read_reasoning_effort(reader, "reasoning_effort", chat);
}

void read_reasoning_effort(ObjectReader& reader, const char* name, ChatFields& chat) {
  const std::optional<std::string> effort = reader.text(name);
  if (!effort) return;
  if (std::ranges::count(kEfforts, *effort) == 0) {
    return reader.note(name, "one_of(none, minimal, low, medium, high, xhigh, max)",
                       "must be none, minimal, low, medium, high, xhigh or max", reader.find(name));
  }
  add_variable(chat, "reasoning_effort", *effort);
  if (*effort == "none" && chat.reasoning_budget.value_or(-1) < 0) set_budget(chat, 0);
}

void read_thinking(ObjectReader& reader, std::vector<FieldError>& errors, ChatFields& chat) {
  const json* thinking = reader.find("thinking");
  if (thinking == nullptr) return;
  if (!thinking->is_object()) {
    return reader.note("thinking", "type(object)", "must be an object", thinking);
  }
  ObjectReader fields(*thinking, "thinking.", errors);
  const std::string type = fields.text("type").value_or("");
  if (type != "enabled" && type != "disabled" && type != "adaptive") {
    return fields.note("type", "one_of(enabled, disabled, adaptive)",
                       "must be enabled, disabled or adaptive", fields.find("type"));
  }
  const std::optional<int32_t> budget = fields.integer("budget_tokens", {1, INT32_MAX});
  if (type == "disabled") set_budget(chat, 0);
  if (type != "enabled") return;
  set_thinking(chat, true);
  set_budget(chat, budget.value_or(-1));
}

bool read_think(ObjectReader& reader, ChatFields& chat) {
  const json* think = reader.find("think");
  if (think == nullptr) return false;
  const bool effort = *think == "low" || *think == "medium" || *think == "high" || *think == "max";
  if (!effort && !think->is_boolean()) {
    reader.note("think", "one_of(true, false, low, medium, high, max)",
                "must be true, false, low, medium, high or max", think);
    return false;
  }
  if (*think == false) {
    set_budget(chat, 0);
    return false;
  }
  set_thinking(chat, true);
  set_budget(chat, -1);
  if (effort) read_reasoning_effort(reader, "think", chat);
  return true;
}

void set_default_budget(ChatFields& chat, int32_t budget) {
  if (!chat.reasoning_budget) set_budget(chat, budget);
}

}  // namespace rbee::server
