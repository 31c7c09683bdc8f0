#include "rbee/engine/text/draft/ngram_draft.h"

#include <algorithm>

namespace rbee::engine {
namespace {

// Tokens of the end that are looked for: the longest of these that came before counts.
constexpr size_t kShortest = 2;
constexpr size_t kLongest = 4;
constexpr int64_t kLongestPause = 32;

}  // namespace

std::vector<int32_t> ngram_draft(std::span<const int32_t> history, int64_t most) {
  size_t best = kShortest - 1, next = 0;
  // From the end: of equal matches the latest counts.
  for (size_t end = history.size(); end-- > kShortest && best < kLongest;) {
    size_t same = 0;
    while (same < std::min(end, kLongest) &&
           history[end - 1 - same] == history[history.size() - 1 - same]) {
      ++same;
    }
    if (same > best) {
      best = same;
      next = end;
    }
  }
  if (best < kShortest || most <= 0) return {};
  const std::span<const int32_t> rest = history.subspan(next);
  const auto count = std::min(rest.size(), static_cast<size_t>(most));
  return {rest.begin(), rest.begin() + static_cast<ptrdiff_t>(count)};
}

int64_t DraftLength::next() {
  if (pause_ == 0) return length_;
  --pause_;
  return 0;
}

void DraftLength::learn(int64_t drafted, int64_t accepted) {
  if (accepted == drafted) {
    length_ = std::min(2 * length_, most_);
  } else {
    length_ = std::clamp<int64_t>(accepted + 1, 1, most_);
  }
  if (accepted > 0) {
    next_pause_ = 1;
    return;
  }
  pause_ = next_pause_;
  next_pause_ = std::min(2 * next_pause_, kLongestPause);
}

}  // namespace rbee::engine
