#include "rbee/diffusion/prompt_schedule.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <optional>
#include <set>

#include "rbee/core/error.h"

namespace rbee::diffusion {
namespace {

constexpr size_t kNone = std::string_view::npos;
constexpr int kDeepest = 64;
constexpr double kMostWeight = 1000;  // as of brackets
constexpr std::string_view kAnd = "AND";

bool is_space(char c) {
  return std::isspace(static_cast<unsigned char>(c)) != 0;
}

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

// A signed decimal number with blanks around it and nothing else.
std::optional<double> number(std::string_view text) {
  text = trimmed(text);
  if (text.empty() || text.find_first_not_of("+-.0123456789") != kNone) return std::nullopt;
  if (text.front() == '+') text.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// A piece of a prompt: text, or one of several inner prompts.
struct Node {
  enum class Kind : uint8_t { text, scheduled, alternating };

  Kind kind = Kind::text;
  std::string_view text;
  std::vector<std::vector<Node>> inner;
  int32_t when = 0;  // of a scheduled one
};
using Nodes = std::vector<Node>;

class ScheduleParser {
 public:
  ScheduleParser(std::string_view text, const PromptCalls& calls)
      : text_(text), calls_(calls), closing_(text.size(), kNone) {
    match_brackets();
  }

  Nodes parse() { return parse(0, text_.size(), 0); }
  // Ends of the prompt's successive forms, except the last one.
  const std::set<int32_t>& ends() const { return ends_; }

 private:
  // A closing bracket of another kind than the last open one's is in none of the open ones.
  void match_brackets() {
    std::vector<size_t> open;
    for (size_t i = 0; i < text_.size(); ++i) {
      const char c = text_[i];
      if (c == '\\') {
        ++i;
      } else if (c == '[' || c == '(') {
        open.push_back(i);
      } else if (c == ']' || c == ')') {
        const bool fits = !open.empty() && text_[open.back()] == (c == ']' ? '[' : '(');
        if (!fits) {
          open.clear();
          continue;
        }
        closing_[open.back()] = i;
        open.pop_back();
      }
    }
  }

  Nodes parse(size_t begin, size_t end, int depth) {
    Nodes out;
    size_t literal = begin;  // of what is not in `out` yet
    for (size_t i = begin; i < end; ++i) {
      if (text_[i] == '\\') {
        ++i;
        continue;
      }
      const bool bracket = text_[i] == '[' && closing_[i] != kNone && depth < kDeepest;
      std::optional<Node> node = bracket ? read_bracket(i, depth) : std::nullopt;
      if (!node) continue;
      out.push_back({.text = text_.substr(literal, i - literal), .inner = {}});
      out.push_back(std::move(*node));
      i = closing_[i];
      literal = i + 1;
    }
    out.push_back({.text = text_.substr(literal, end - literal), .inner = {}});
    return out;
  }

  // The place of a character between brackets that are not within others.
  std::vector<size_t> places(char wanted, size_t begin, size_t end) const {
    std::vector<size_t> out;
    for (size_t i = begin; i < end; ++i) {
      if (text_[i] == '\\') {
        ++i;
      } else if (closing_[i] != kNone) {
        i = closing_[i];
      } else if (text_[i] == wanted) {
        out.push_back(i);
      }
    }
    return out;
  }

  // Nothing if the bracket is part of the text.
  std::optional<Node> read_bracket(size_t open, int depth) {
    const size_t begin = open + 1, end = closing_[open];
    const std::vector<size_t> colons = places(':', begin, end);
    if (colons.size() == 1 || colons.size() == 2) {
      const std::string_view last = text_.substr(colons.back() + 1, end - colons.back() - 1);
      if (const auto when = number(last)) {
        return scheduled({begin, colons, call_of(*when, last.find('.') != kNone)}, depth);
      }
    }
    const std::vector<size_t> bars = places('|', begin, end);
    if (!colons.empty() || bars.empty()) return std::nullopt;
    return alternating(begin, end, bars, depth);
  }

  struct Change {
    size_t begin;
    const std::vector<size_t>& colons;
    int32_t when;
  };
  Node scheduled(const Change& change, int depth) {
    Node out{.kind = Node::Kind::scheduled, .inner = {}, .when = change.when};
    const size_t middle = change.colons.front(), last = change.colons.back();
    const bool both = middle != last;
    out.inner.push_back(both ? parse(change.begin, middle, depth + 1) : Nodes{});
    out.inner.push_back(parse(both ? middle + 1 : change.begin, last, depth + 1));
    if (out.when >= 1) ends_.insert(out.when);
    return out;
  }

  Node alternating(size_t begin, size_t end, const std::vector<size_t>& bars, int depth) {
    Node out{.kind = Node::Kind::alternating, .inner = {}};
    size_t from = begin;
    for (const size_t bar : bars) {
      out.inner.push_back(parse(from, bar, depth + 1));
      from = bar + 1;
    }
    out.inner.push_back(parse(from, end, depth + 1));
    for (int32_t call = 1; call < calls_.calls; ++call) ends_.insert(call);
    return out;
  }

  int32_t call_of(double when, bool share) const {
    const double passed = calls_.before > 0 ? 1 : 0;
    const double call = share ? (when - passed) * calls_.calls : when - calls_.before;
    return static_cast<int32_t>(std::clamp<double>(std::trunc(call), -1, calls_.calls));
  }

  std::string_view text_;
  PromptCalls calls_;
  std::vector<size_t> closing_;  // by opening bracket
  std::set<int32_t> ends_;
};

void append(const Nodes& nodes, int32_t call, std::string& out) {
  for (const Node& node : nodes) {
    switch (node.kind) {
      case Node::Kind::text:
        out += node.text;
        break;
      case Node::Kind::scheduled:
        append(node.inner[call <= node.when ? 0 : 1], call, out);
        break;
      case Node::Kind::alternating:
        append(node.inner[static_cast<size_t>(call - 1) % node.inner.size()], call, out);
        break;
    }
  }
}

// "a dog : 1.5" -> "a dog", 1.5
PromptShare share_of(std::string_view part) {
  while (!part.empty() && is_space(part.back())) part.remove_suffix(1);
  const size_t colon = part.rfind(':');
  const auto weight = colon == kNone ? std::nullopt : number(part.substr(colon + 1));
  if (!weight) return {.text = std::string(part)};
  part = part.substr(0, colon);
  while (!part.empty() && is_space(part.back())) part.remove_suffix(1);
  return {.text = std::string(part),
          .weight = static_cast<float>(std::clamp(*weight, -kMostWeight, kMostWeight))};
}

}  // namespace

std::vector<PromptAt> schedule_prompt(std::string_view prompt, const PromptCalls& calls) {
  check(calls.calls >= 1 && calls.before >= 0, "prompt", "it is for ", calls.calls, " calls after ",
        calls.before);
  ScheduleParser parser(prompt, calls);
  const Nodes nodes = parser.parse();
  std::set<int32_t> ends = parser.ends();
  ends.insert(calls.calls);
  std::vector<PromptAt> out;
  for (const int32_t end : ends) {
    std::string text;
    append(nodes, end, text);
    const bool same = !out.empty() && out.back().text == text;
    if (same) {
      out.back().last = end;
    } else {
      out.push_back({end, std::move(text)});
    }
  }
  return out;
}

const PromptAt& prompt_at(const std::vector<PromptAt>& schedule, int32_t call) {
  const auto found =
      std::ranges::find_if(schedule, [&](const auto& at) { return call <= at.last; });
  return found == schedule.end() ? schedule.back() : *found;
}

std::vector<PromptShare> split_prompt(std::string_view prompt) {
  std::vector<PromptShare> out;
  size_t begin = 0;
  for (size_t at = prompt.find(kAnd); at != kNone; at = prompt.find(kAnd, at + kAnd.size())) {
    const size_t end = at + kAnd.size();
    const bool joined =
        (at > 0 && is_word(prompt[at - 1])) || (end < prompt.size() && is_word(prompt[end]));
    if (joined) continue;
    out.push_back(share_of(prompt.substr(begin, at - begin)));
    begin = end;
  }
  if (out.empty()) return {{.text = std::string(prompt)}};
  out.push_back(share_of(prompt.substr(begin)));
  return out;
}

}  // namespace rbee::diffusion
