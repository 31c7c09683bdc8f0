#include "rbee/grammar/text_set.h"

#include <algorithm>
#include <map>
#include <utility>

#include "rbee/core/error.h"
#include "rbee/grammar/budget.h"
#include "rbee/grammar/look_ahead.h"

namespace rbee::grammar {
namespace {

constexpr int64_t kMaxExpanded = 200'000;
constexpr int64_t kStateWork = 10;
constexpr int64_t kMaxProduct = 80'000;                // states
constexpr int64_t kPairBytes = sizeof(DfaState) + 64;  // with its entry in the index
constexpr int64_t kEdgeBytes = sizeof(Automaton::ByteEdge);
constexpr size_t kMaxCompared = 256;  // states
constexpr int32_t kOut = -1;          // no state: the text has left the set

bool accepts(const TextSet& set, int32_t state) {
  return state != kOut && set.states()[static_cast<size_t>(state)].accepting;
}

void add_borders(const TextSet& set, int32_t state, std::vector<int>& borders) {
  if (state == kOut) return;
  for (const Automaton::ByteEdge& edge : set.states()[static_cast<size_t>(state)].bytes) {
    borders.push_back(edge.low);
    borders.push_back(edge.high + 1);
  }
}

}  // namespace

TextSet::TextSet(const ExprPtr& expr, std::string_view name, int64_t& work) {
  if (expr->kind == Expr::Kind::texts && !expr->lengths) {
    states_ = expr->set->states_;
    return;
  }
  int64_t expanded = kMaxExpanded;
  const Rule rule{std::string(name), expr};
  const Nfa nfa(rule, expanded);
  work -= nfa.size();
  if (nfa.aheads().empty()) {
    DfaBudget budget{.work = work};
    states_ = determinise(nfa, rule, budget);
    work = budget.work;
  } else {
    states_ = determinise_ahead(nfa, rule, work);
  }
  remove_dead_ends();
}

TextSet TextSet::both(const TextSet& a, const TextSet& b, int64_t& work) {
  return product(a, b, Keep::both, work);
}

TextSet TextSet::without(const TextSet& a, const TextSet& b, int64_t& work) {
  return product(a, b, Keep::without, work);
}

TextSet TextSet::product(const TextSet& a, const TextSet& b, Keep keep, int64_t& work) {
  TextSet out;
  if (a.empty()) return out;
  using Pair = std::pair<int32_t, int32_t>;
  std::map<Pair, int32_t> index;
  std::vector<Pair> pairs;
  const auto find = [&](Pair pair) {
    const auto [at, fresh] = index.try_emplace(pair, static_cast<int32_t>(pairs.size()));
    if (fresh) pairs.push_back(pair);
    return at->second;
  };
  int64_t edges = AutomatonLimits{}.max_edges;
  find({0, b.empty() ? kOut : 0});
  for (size_t i = 0; i < pairs.size(); ++i) {
    work -= kStateWork;
    bill({.work = kStateWork, .bytes = kPairBytes});
    if (std::ssize(pairs) > kMaxProduct || work < 0 || edges < 0) {
      fail(Code::unsupported, "grammar", "texts that several rules hold for become too large");
    }
    const auto [left, right] = pairs[i];
    DfaState state;
    state.accepting = accepts(a, left) && accepts(b, right) == (keep == Keep::both);
    std::vector<int> borders;
    add_borders(a, left, borders);
    add_borders(b, right, borders);
    std::sort(borders.begin(), borders.end());
    borders.erase(std::unique(borders.begin(), borders.end()), borders.end());
    work -= std::ssize(borders);
    bill({.work = std::ssize(borders)});
    for (size_t k = 0; k + 1 < borders.size(); ++k) {
      const Pair to{a.next(left, borders[k]), b.next(right, borders[k])};
      if (to.first == kOut || (to.second == kOut && keep == Keep::both)) continue;
      state.bytes.push_back(
          {static_cast<uint8_t>(borders[k]), static_cast<uint8_t>(borders[k + 1] - 1), find(to)});
    }
    edges -= std::ssize(state.bytes);
    bill({.bytes = std::ssize(state.bytes) * kEdgeBytes});
    out.states_.push_back(std::move(state));
  }
  out.remove_dead_ends();
  return out;
}

// And the states that only lead to them. None is left of the empty set.
void TextSet::remove_dead_ends() {
  std::vector<std::vector<int32_t>> before(states_.size());
  std::vector<int32_t> work;
  std::vector<bool> ends(states_.size());
  for (size_t i = 0; i < states_.size(); ++i) {
    for (const Automaton::ByteEdge& edge : states_[i].bytes) {
      before[static_cast<size_t>(edge.to)].push_back(static_cast<int32_t>(i));
    }
    ends[i] = states_[i].accepting;
    if (ends[i]) work.push_back(static_cast<int32_t>(i));
  }
  while (!work.empty()) {
    const auto at = static_cast<size_t>(work.back());
    work.pop_back();
    for (const int32_t from : before[at]) {
      if (ends[static_cast<size_t>(from)]) continue;
      ends[static_cast<size_t>(from)] = true;
      work.push_back(from);
    }
  }
  if (states_.empty() || !ends.front()) {
    states_.clear();
    return;
  }
  std::vector<int32_t> moved(states_.size(), kOut);
  int32_t count = 0;
  for (size_t i = 0; i < states_.size(); ++i) {
    if (ends[i]) moved[i] = count++;
  }
  std::vector<DfaState> kept;
  for (size_t i = 0; i < states_.size(); ++i) {
    if (!ends[i]) continue;
    DfaState& state = states_[i];
    std::erase_if(state.bytes, [&](const Automaton::ByteEdge& edge) {
      return !ends[static_cast<size_t>(edge.to)];
    });
    for (Automaton::ByteEdge& edge : state.bytes) edge.to = moved[static_cast<size_t>(edge.to)];
    kept.push_back(std::move(state));
  }
  states_ = std::move(kept);
}

std::vector<bool> TextSet::free_states(const TextSet& all) const {
  using Pair = std::pair<int32_t, int32_t>;
  std::map<Pair, size_t> index;
  std::vector<Pair> pairs;
  std::vector<std::vector<size_t>> before;
  const auto find = [&](Pair pair) {
    const auto [at, fresh] = index.try_emplace(pair, pairs.size());
    if (fresh) {
      pairs.push_back(pair);
      before.emplace_back();
    }
    return at->second;
  };
  std::vector<size_t> bound;  // pairs with a way out, not yet propagated to the pairs before
  std::vector<bool> known;
  if (!empty() && !all.empty()) find({0, 0});
  for (size_t i = 0; i < pairs.size(); ++i) {
    const auto [mine, its] = pairs[i];
    bill({.work = kStateWork, .bytes = kPairBytes});
    bool leaves = accepts(all, its) && !accepts(*this, mine);
    std::vector<int> borders;
    add_borders(*this, mine, borders);
    add_borders(all, its, borders);
    std::sort(borders.begin(), borders.end());
    bill({.work = std::ssize(borders)});
    for (size_t k = 0; k + 1 < borders.size(); ++k) {
      const Pair to{next(mine, borders[k]), all.next(its, borders[k])};
      if (borders[k] == borders[k + 1] || to.second == kOut) continue;
      leaves |= to.first == kOut;
      if (to.first != kOut) before[find(to)].push_back(i);
    }
    known.push_back(leaves);
    if (leaves) bound.push_back(i);
  }
  while (!bound.empty()) {
    const size_t at = bound.back();
    bound.pop_back();
    for (const size_t from : before[at]) {
      if (known[from]) continue;
      known[from] = true;
      bound.push_back(from);
    }
  }
  std::vector<bool> out(states_.size(), true);
  for (size_t i = 0; i < pairs.size(); ++i) {
    if (known[i]) out[static_cast<size_t>(pairs[i].first)] = false;
  }
  return out;
}

std::vector<bool> TextSet::inclusions() const {
  const size_t count = states_.size();
  if (count > kMaxCompared) return {};
  HeldBytes held;
  std::vector<bool> out(count * count, true);
  std::vector<std::vector<size_t>> before(count * count);
  std::vector<size_t> left_out;  // dead pairs, not yet propagated to the pairs before
  held.add(count * count * sizeof(before.front()));
  for (size_t pair = 0; pair < out.size(); ++pair) {
    const auto some = static_cast<int32_t>(pair / count), all = static_cast<int32_t>(pair % count);
    out[pair] = !accepts(*this, some) || accepts(*this, all);
    std::vector<int> borders;
    add_borders(*this, some, borders);
    add_borders(*this, all, borders);
    std::sort(borders.begin(), borders.end());
    bill({.work = kStateWork + std::ssize(borders)});
    for (const int byte : borders) {
      const int32_t to = next(some, byte), beside = next(all, byte);
      if (to == kOut) continue;
      if (beside == kOut) out[pair] = false;
      if (beside == kOut || to == beside) continue;
      before[static_cast<size_t>(to) * count + static_cast<size_t>(beside)].push_back(pair);
      held.add(sizeof(pair));
    }
    if (!out[pair]) left_out.push_back(pair);
  }
  while (!left_out.empty()) {
    const size_t at = left_out.back();
    left_out.pop_back();
    for (const size_t from : before[at]) {
      if (!out[from]) continue;
      out[from] = false;
      left_out.push_back(from);
    }
  }
  return out;
}

int32_t TextSet::next(int32_t state, int byte) const {
  if (state == kOut) return kOut;
  for (const Automaton::ByteEdge& edge : states_[static_cast<size_t>(state)].bytes) {
    if (byte <= edge.high) return byte >= edge.low ? edge.to : kOut;
  }
  return kOut;
}

bool TextSet::holds(std::string_view text) const {
  int32_t state = empty() ? kOut : 0;
  for (const char c : text) state = next(state, static_cast<uint8_t>(c));
  return accepts(*this, state);
}

ExprPtr TextSet::expr() const {
  auto out = std::make_shared<Expr>();
  out->kind = Expr::Kind::texts;
  out->set = std::make_shared<const TextSet>(*this);
  return out;
}

ExprPtr TextSet::expr(std::shared_ptr<const TextLengths> lengths, int64_t min, int64_t max) const {
  Expr out = *expr();
  out.lengths = std::move(lengths);
  out.min = min;
  out.max = max;
  return std::make_shared<const Expr>(std::move(out));
}

}  // namespace rbee::grammar
