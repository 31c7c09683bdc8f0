#pragma once
// Model outputs and what a parser has to make of them.

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <vector>

#include "rbee/text/output/output_parser.h"

namespace rbee::text {

struct Call {
  std::string name;
  std::string arguments;
  friend bool operator==(const Call&, const Call&) = default;
};

struct Parts {
  std::string reasoning;
  std::string content;
  std::vector<Call> calls;
  friend bool operator==(const Parts&, const Parts&) = default;

  void add(const std::vector<OutputDelta>& deltas) {
    using Kind = OutputDelta::Kind;
    for (const OutputDelta& delta : deltas) {
      if (delta.kind == Kind::content) content += delta.text;
      if (delta.kind == Kind::reasoning) reasoning += delta.text;
      if (delta.kind == Kind::call_begin) {
        EXPECT_EQ(delta.call, std::ssize(calls));
        calls.push_back({delta.text, ""});
      }
      if (delta.kind == Kind::call_arguments) {
        ASSERT_EQ(delta.call, std::ssize(calls) - 1);
        calls.back().arguments += delta.text;
      }
    }
  }
};

inline std::ostream& operator<<(std::ostream& out, const Parts& parts) {
  out << "reasoning " << nlohmann::json(parts.reasoning) << " content "
      << nlohmann::json(parts.content);
  for (const Call& call : parts.calls) out << " call " << call.name << " " << call.arguments;
  return out;
}

struct Sample {
  const char* name;
  ToolFormat tools;
  ReasoningFormat reasoning;
  std::string text;
  Parts wanted;
  bool open = false;
};

inline constexpr auto kNoReasoning = ReasoningFormat::none;
inline constexpr auto kThink = ReasoningFormat::think;

// Calls with a mark around each parameter.
std::vector<Sample> xml_samples();
// The same with other marks than Qwen3-Coder's, and Kimi's calls.
std::vector<Sample> other_samples();

}  // namespace rbee::text
