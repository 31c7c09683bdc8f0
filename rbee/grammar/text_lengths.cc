#include "rbee/grammar/text_lengths.h"

#include <algorithm>
#include <utility>

#include "rbee/core/error.h"
#include "rbee/grammar/budget.h"
#include "rbee/grammar/text_set.h"

namespace rbee::grammar {
namespace {

constexpr size_t kMaxKept = 10'000'000;  // states times counts
constexpr size_t kMaxLevels = 0xFFFE;

using Level = std::vector<bool>;  // states from which some text has this many characters

// States of `set` that are between characters: where `all` may end.
std::vector<bool> between_characters(const TextSet& set, const TextSet& all) {
  std::vector<bool> out(set.states().size()), seen(set.states().size());
  std::vector<std::pair<int32_t, int32_t>> work{{0, 0}};
  seen[0] = true;
  while (!work.empty()) {
    const auto [at, beside] = work.back();
    work.pop_back();
    out[static_cast<size_t>(at)] = all.states()[static_cast<size_t>(beside)].accepting;
    for (const Automaton::ByteEdge& edge : set.states()[static_cast<size_t>(at)].bytes) {
      if (seen[static_cast<size_t>(edge.to)]) continue;
      seen[static_cast<size_t>(edge.to)] = true;
      work.emplace_back(edge.to, all.next(beside, edge.low));
    }
  }
  return out;
}

// The successors of each state, once.
std::vector<std::vector<int32_t>> successors(const TextSet& set) {
  std::vector<std::vector<int32_t>> out;
  for (const DfaState& state : set.states()) {
    std::vector<int32_t>& to = out.emplace_back();
    for (const Automaton::ByteEdge& edge : state.bytes) to.push_back(edge.to);
    std::ranges::sort(to);
    to.erase(std::ranges::unique(to).begin(), to.end());
  }
  return out;
}

// States inside of characters, those first that others lead to. No way among them is a circle.
std::vector<int32_t> inner_states(const std::vector<std::vector<int32_t>>& behind,
                                  const std::vector<bool>& begins) {
  std::vector<int32_t> out;
  std::vector<bool> seen = begins;
  struct Place {
    size_t state;
    size_t next = 0;
  };
  for (size_t i = 0; i < behind.size(); ++i) {
    if (seen[i]) continue;
    seen[i] = true;
    std::vector<Place> path{{i}};
    while (!path.empty()) {
      Place& place = path.back();
      if (place.next == behind[place.state].size()) {
        out.push_back(static_cast<int32_t>(place.state));
        path.pop_back();
        continue;
      }
      const auto to = static_cast<size_t>(behind[place.state][place.next++]);
      if (seen[to]) continue;
      seen[to] = true;
      path.push_back({to});
    }
  }
  return out;
}

}  // namespace

std::shared_ptr<const TextLengths> TextLengths::of(const TextSet& set, const TextSet& all,
                                                   int64_t max) {
  RB_ASSERT(!set.empty());
  const size_t states = set.states().size();
  const std::shared_ptr<TextLengths> out(new TextLengths);
  out->begins_ = between_characters(set, all);
  const auto behind = successors(set);
  const std::vector<int32_t> inner = inner_states(behind, out->begins_);
  const auto leads = [&](size_t state, const Level& level) {
    return std::ranges::any_of(behind[state],
                               [&](int32_t to) { return level[static_cast<size_t>(to)]; });
  };
  int64_t edges = 0;
  for (const auto& to : behind) edges += std::ssize(to);
  std::vector<Level> levels;
  while (true) {
    bill({.work = edges, .bytes = static_cast<int64_t>(states * sizeof(uint16_t))});
    Level level(states);
    for (size_t i = 0; i < states; ++i) {
      if (!out->begins_[i]) continue;
      level[i] = levels.empty() ? set.states()[i].accepting : leads(i, levels.back());
    }
    for (const int32_t i : inner) {
      level[static_cast<size_t>(i)] = leads(static_cast<size_t>(i), level);
    }
    out->settles_ = !levels.empty() && level == levels.back();
    if (out->settles_) break;
    if ((levels.size() + 1) * states > kMaxKept || levels.size() > kMaxLevels) return nullptr;
    levels.push_back(std::move(level));
    if (max != kUnlimited && std::ssize(levels) > max + 1) break;
  }
  out->levels_ = static_cast<int32_t>(levels.size());
  out->nearest_.assign(states * levels.size(), kNone);
  for (size_t i = 0; i < states; ++i) {
    uint16_t nearest = kNone;
    for (size_t k = levels.size(); k-- > 0;) {
      if (levels[k][i]) nearest = static_cast<uint16_t>(k);
      out->nearest_[i * levels.size() + k] = nearest;
    }
    if (nearest != kNone) out->nearest_end_ = std::max<int32_t>(out->nearest_end_, nearest);
  }
  return out;
}

bool TextLengths::all_within(int64_t min, int64_t max) const {
  const auto at = [&](int64_t count) {
    return nearest_[static_cast<size_t>(std::min<int64_t>(count, settled()))];
  };
  return settles_ && at(0) != kNone && at(0) >= min && (max == kUnlimited || at(max + 1) == kNone);
}

bool TextLengths::fits(int32_t state, int32_t need, int32_t room) const {
  const auto at = static_cast<size_t>(state) * static_cast<size_t>(levels_) +
                  static_cast<size_t>(std::min(need, settled()));
  return nearest_[at] != kNone && nearest_[at] <= room;
}

}  // namespace rbee::grammar
