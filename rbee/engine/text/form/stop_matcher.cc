#include "rbee/engine/text/form/stop_matcher.h"

#include <algorithm>
#include <utility>

namespace rbee::engine {
namespace {

// Length of the longest tail of `text` that is a proper beginning of `stop`.
size_t partial_match(std::string_view text, std::string_view stop) {
  for (size_t length = std::min(text.size(), stop.size() - 1); length > 0; --length) {
    if (text.substr(text.size() - length) == stop.substr(0, length)) return length;
  }
  return 0;
}

}  // namespace

StopMatcher::StopMatcher(std::vector<std::string> stops) : stops_(std::move(stops)) {
  std::erase(stops_, std::string());
}

std::string StopMatcher::push(std::string_view text) {
  if (!matched_.empty()) return {};
  held_ += text;
  size_t at = std::string::npos;
  for (const std::string& stop : stops_) {
    const size_t from = passed_ < stop.size() ? 0 : passed_ - stop.size() + 1;
    const size_t found = held_.find(stop, from);
    if (found < at ||
        (found == at && found != std::string::npos && stop.size() > matched_.size())) {
      at = found;
      matched_ = stop;
    }
  }
  if (at != std::string::npos) {
    std::string out = held_.substr(0, at);
    held_.clear();
    return out;
  }
  return release();
}

std::string StopMatcher::pass(std::string_view text) {
  if (!matched_.empty()) return {};
  held_ += text;
  passed_ = held_.size();
  return release();
}

// All except a possible beginning of a stop text.
std::string StopMatcher::release() {
  size_t keep = 0;
  for (const std::string& stop : stops_) keep = std::max(keep, partial_match(held_, stop));
  const size_t free = held_.size() - keep;
  std::string out = held_.substr(0, free);
  held_.erase(0, free);
  passed_ -= std::min(passed_, free);
  return out;
}

std::string StopMatcher::flush() {
  return std::exchange(held_, {});
}

}  // namespace rbee::engine
