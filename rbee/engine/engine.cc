#include "rbee/engine/engine.h"

#include <cmath>

namespace rbee::engine {
namespace {

constexpr size_t kMaxStops = 16;
constexpr size_t kMaxStopBytes = 100;
constexpr int32_t kMaxPriority = 1000;
constexpr size_t kMaxConstraintBytes = 1 << 18;
constexpr size_t kMaxChoices = 1000;

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

}  // namespace

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

void validate(const Request& request) {
  check(!request.prompt.empty() || !request.messages.empty(), "prompt", "it is empty");
  check(request.max_tokens >= 1, "max_tokens", request.max_tokens, " is below 1");
  check_range("priority", request.priority, -kMaxPriority, kMaxPriority);
  validate(request.sampling);
  if (request.logprobs) check_range("logprobs", *request.logprobs, 0, kMaxLogprobs);
  check_constraint(request.constraint);
  check(request.stop.size() <= kMaxStops, "stop", request.stop.size(), " texts are more than ",
        kMaxStops);
  for (const std::string& stop : request.stop) {
    check(!stop.empty() && stop.size() <= kMaxStopBytes, "stop", "a text of ", stop.size(),
          " bytes is outside of 1 to ", kMaxStopBytes);
  }
}

}  // namespace rbee::engine
