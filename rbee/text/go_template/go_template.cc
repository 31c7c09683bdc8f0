#include "rbee/text/go_template/go_template.h"

#include <algorithm>
#include <utility>

#include "rbee/core/cat.h"
#include "rbee/core/error.h"
#include "rbee/text/go_template/data.h"
#include "rbee/text/go_template/functions.h"
#include "rbee/text/go_template/interpreter.h"
#include "rbee/text/go_template/parser.h"

namespace rbee::text {
namespace {

using go::ChatTurn;
using go::Command;
using go::Node;
using go::Nodes;
using go::Operand;
using go::Pipe;
using go::Value;

constexpr std::string_view kBlanks = " \t\r\n";
constexpr std::string_view kAlone[] = {"end", "else", "break", "continue"};
constexpr std::string_view kKnown[] = {"System", "Prompt", "Response",   "Messages",  "Tools",
                                       "Suffix", "Think",  "ThinkLevel", "IsThinkSet"};

std::string_view without_blanks(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
  return text;
}

enum class Beginning : uint8_t { gos, others, parenthesis };

// What an action begins with. rest: what its first parenthesis holds.
Beginning beginning_of(std::string_view action, std::string_view& rest) {
  if (action.starts_with('.') || action.starts_with('$') || action.starts_with("/*")) {
    return Beginning::gos;
  }
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  const auto word_end = std::ranges::find_if_not(action, is_letter);
  const std::string_view word = action.substr(0, static_cast<size_t>(word_end - action.begin()));
  const std::string_view after = action.substr(word.size()), next = without_blanks(after);
  const auto gos_if = [](bool gos) { return gos ? Beginning::gos : Beginning::others; };
  if (next.starts_with("}}") || next.starts_with("-}}")) {
    return gos_if(std::ranges::find(kAlone, word) != std::end(kAlone));
  }
  if (next.size() == after.size()) return Beginning::others;
  if (word == "if" || word == "range" || word == "with") return Beginning::gos;
  if (word == "define" || word == "block" || word == "template") {
    return gos_if(next.starts_with('"'));
  }
  if (go::find_function(word) == nullptr) return Beginning::others;
  rest = next;
  if (next.starts_with('(')) return Beginning::parenthesis;
  return gos_if(next.starts_with('.') || next.starts_with('$') || next.starts_with('"'));
}

bool begins_as_gos(std::string_view action) {
  if (action.starts_with('-')) action.remove_prefix(1);
  for (;;) {
    action = without_blanks(action);
    while (action.starts_with('(')) action = without_blanks(action.substr(1));
    const Beginning beginning = beginning_of(action, action);
    if (beginning != Beginning::parenthesis) return beginning == Beginning::gos;
  }
}

// Calls `visit` for the operands of the template, in its order.
template <typename Visit>
void each_operand(const Pipe& pipe, const Visit& visit) {
  for (const Command& command : pipe.commands) {
    for (const Operand& operand : command.args) {
      visit(operand);
      if (operand.pipe) each_operand(*operand.pipe, visit);
    }
  }
}

template <typename Visit>
void each_operand(const Nodes& nodes, const Visit& visit) {
  for (const Node& node : nodes) {
    if (node.pipe) each_operand(*node.pipe, visit);
    if (node.body) each_operand(*node.body, visit);
    if (node.otherwise) each_operand(*node.otherwise, visit);
  }
}

template <typename Visit>
void each_operand(const go::Template& code, const Visit& visit) {
  each_operand(*code.root, visit);
  for (const auto& [name, nodes] : code.named) each_operand(*nodes, visit);
}

bool names_field(const Operand& operand, std::string_view name) {
  return std::ranges::count(operand.fields, name) > 0;
}

bool names_field(const go::Template& code, std::string_view name) {
  bool out = false;
  each_operand(code, [&](const Operand& operand) { out = out || names_field(operand, name); });
  return out;
}

// Fields of the data itself: those of "$", and of the dot outside of blocks that change it.
void check_fields(const Nodes& nodes, bool is_data) {
  const auto check_operand = [&](const Operand& operand) {
    const bool of_data = (operand.base == Operand::Base::variable && operand.variable == "$") ||
                         (operand.base == Operand::Base::dot && is_data);
    if (!of_data || operand.fields.empty()) return;
    const std::string& name = operand.fields.front();
    check(std::ranges::count(kKnown, name) > 0, "template", "the field .", name,
          " is not known here");
  };
  for (const Node& node : nodes) {
    if (node.pipe) each_operand(*node.pipe, check_operand);
    const bool keeps = node.type == Node::Type::branch;
    if (node.body) check_fields(*node.body, is_data && keeps);
    if (node.otherwise) check_fields(*node.otherwise, is_data);
  }
}

// The nodes up to the first .Response, which stays. What follows it is the model's to write.
std::shared_ptr<const Nodes> up_to_response(const Nodes& nodes, bool& found) {
  Nodes out;
  for (const Node& node : nodes) {
    if (found) break;
    Node kept = node;
    if (node.type == Node::Type::action) {
      each_operand(*node.pipe,
                   [&](const Operand& one) { found = found || names_field(one, "Response"); });
    }
    if (node.body) kept.body = up_to_response(*node.body, found);
    if (node.otherwise) {
      kept.otherwise =
          found ? std::make_shared<const Nodes>() : up_to_response(*node.otherwise, found);
    }
    out.push_back(std::move(kept));
  }
  return std::make_shared<const Nodes>(std::move(out));
}

Node response_node() {
  Operand response;
  response.fields = {"Response"};
  Pipe pipe;
  pipe.commands.push_back({.args = {response}});
  Node out;
  out.type = Node::Type::action;
  out.pipe = std::move(pipe);
  return out;
}

// Turns of one role that follow each other become one. A tool's results stay apart, and so do
// calls.
std::vector<ChatTurn> joined(std::span<const Message> messages) {
  std::vector<ChatTurn> out;
  for (const Message& message : messages) {
    ChatTurn turn = go::turn_of(message);
    const bool same = !out.empty() && out.back().role == turn.role && turn.role != "tool" &&
                      turn.calls.empty() && out.back().calls.empty();
    if (same) {
      out.back().content += cat("\n\n", turn.content);
    } else {
      out.push_back(std::move(turn));
    }
  }
  return out;
}

struct Turn {
  std::string system, prompt, response;
};

go::Fields thinking_fields(const go::ChatVariables& variables) {
  return {{"Think", go::of_bool(variables.thinks)},
          {"ThinkLevel", go::of_text(variables.think_level)},
          {"IsThinkSet", go::of_bool(variables.think_is_set)}};
}

Value data_of(const Turn& turn, const go::ChatVariables& variables) {
  go::Fields out = thinking_fields(variables);
  out.emplace_back("System", go::of_text(turn.system));
  out.emplace_back("Prompt", go::of_text(turn.prompt));
  out.emplace_back("Response", go::of_text(turn.response));
  return go::of_map(std::move(out));
}

Value data_of_chat(const std::vector<ChatTurn>& turns, const go::ChatVariables& variables) {
  go::Fields fields = thinking_fields(variables);
  go::Items items;
  std::string system;
  for (const ChatTurn& turn : turns) {
    items.push_back(go::message_value(turn));
    if (turn.role == "system") system += cat(system.empty() ? "" : "\n\n", turn.content);
  }
  fields.emplace_back("System", go::of_text(std::move(system)));
  fields.emplace_back("Messages", go::of_items(std::move(items)));
  fields.emplace_back("Tools", variables.tools);
  fields.emplace_back("Response", go::of_text(""));
  return go::of_map(std::move(fields));
}

Value data_of_gap(const ChatTurn& before, const go::ChatVariables& variables) {
  go::Fields fields = thinking_fields(variables);
  fields.emplace_back("Prompt", go::of_text(before.content));
  fields.emplace_back("Suffix", go::of_text(variables.suffix));
  fields.emplace_back("Response", go::of_text(""));
  return go::of_map(std::move(fields));
}

// Each question with its answer, and what comes before it.
std::vector<Turn> turns_of(const std::vector<ChatTurn>& messages) {
  std::vector<Turn> out;
  Turn turn;
  const auto end = [&] { out.push_back(std::exchange(turn, {})); };
  for (const ChatTurn& message : messages) {
    if (message.role == "system") {
      if (!turn.prompt.empty() || !turn.response.empty()) end();
      turn.system = message.content;
    } else if (message.role == "user") {
      if (!turn.response.empty()) end();
      turn.prompt = message.content;
    } else if (message.role == "assistant") {
      turn.response = message.content;
    }
  }
  out.push_back(std::move(turn));
  return out;
}

}  // namespace

bool GoTemplate::is_one(std::string_view source) {
  if (source.find("{%") != std::string_view::npos) return false;  // Jinja's statements
  for (size_t at = source.find("{{"); at != std::string_view::npos;
       at = source.find("{{", at + 2)) {
    if (begins_as_gos(source.substr(at + 2))) return true;
  }
  return false;
}

GoTemplate::GoTemplate(std::string_view source, TemplateLimits limits) : limits_(limits) {
  go::Template code = go::parse(source, limits);
  check_fields(*code.root, true);
  takes_messages_ = names_field(code, "Messages");
  if (!takes_messages_ && !names_field(code, "Response")) {
    Nodes nodes = *code.root;
    nodes.push_back(response_node());
    code.root = std::make_shared<const Nodes>(std::move(nodes));
  }
  template_ = std::make_unique<const go::Template>(std::move(code));
}

GoTemplate::~GoTemplate() = default;
GoTemplate::GoTemplate(GoTemplate&&) noexcept = default;
GoTemplate& GoTemplate::operator=(GoTemplate&&) noexcept = default;

std::string GoTemplate::render(std::string_view variables_json) const {
  return go::render(*template_, *template_->root, go::data_of(variables_json), limits_);
}

std::string GoTemplate::render(std::span<const Message> messages, std::string_view bos,
                               std::string_view variables_json) const {
  const go::ChatVariables variables = go::chat_variables(variables_json);
  const std::vector<ChatTurn> turns = joined(messages);
  std::string out;
  const auto add = [&](const Nodes& nodes, const Value& data) {
    out += go::render(*template_, nodes, data, limits_);
    check(static_cast<int64_t>(out.size()) <= limits_.max_output_bytes, "template",
          "its text has more than ", limits_.max_output_bytes, " bytes");
  };
  const bool fills_in =
      !variables.suffix.empty() && !turns.empty() && !turns.back().content.empty();
  if (fills_in) {
    add(*template_->root, data_of_gap(turns.back(), variables));
  } else if (takes_messages_) {
    add(*template_->root, data_of_chat(turns, variables));
  } else {
    const std::vector<Turn> all = turns_of(turns);
    for (size_t i = 0; i + 1 < all.size(); ++i) add(*template_->root, data_of(all[i], variables));
    bool found = false;
    add(*up_to_response(*template_->root, found), data_of(all.back(), variables));
  }
  return out.starts_with(bos) ? out : cat(bos, out);
}

}  // namespace rbee::text
