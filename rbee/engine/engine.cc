#include "rbee/engine/engine.h"

#include <cmath>

namespace rbee::engine {
namespace {

constexpr size_t kMaxStops = 16;
constexpr size_t kMaxStopBytes = 100;
constexpr int32_t kMaxRepeat = 1 << 20;
constexpr int32_t kMaxPriority = 1000;

// NaN is in no range.
void check_range(const char* field, double value, double low, double high) {
  check(value >= low && value <= high, field, value, " is outside of ", low, " to ", high);
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
  const SamplingParams& sampling = request.sampling;
  check_range("temperature", sampling.temperature, 0, 2);
  check_range("top_p", sampling.top_p, 0, 1);
  check_range("min_p", sampling.min_p, 0, 1);
  check(sampling.top_k >= 0, "top_k", sampling.top_k, " is negative");
  check(sampling.repetition_penalty > 0, "repetition_penalty", sampling.repetition_penalty,
        " is not above 0");
  check_range("repetition_penalty", sampling.repetition_penalty, 0, 2);
  check_range("frequency_penalty", sampling.frequency_penalty, -2, 2);
  check_range("presence_penalty", sampling.presence_penalty, -2, 2);
  check_range("repeat_last_n", sampling.repeat_last_n, 0, kMaxRepeat);
  check(request.stop.size() <= kMaxStops, "stop", request.stop.size(), " texts are more than ",
        kMaxStops);
  for (const std::string& stop : request.stop) {
    check(!stop.empty() && stop.size() <= kMaxStopBytes, "stop", "a text of ", stop.size(),
          " bytes is outside of 1 to ", kMaxStopBytes);
  }
}

}  // namespace rbee::engine
