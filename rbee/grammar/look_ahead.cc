#include "rbee/grammar/look_ahead.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace rbee::grammar {
namespace {

constexpr int64_t kStateWork = 10;
constexpr int64_t kPlaceWork = 4;

// A state of a lookahead's automaton, which must accept at the end.
using Owed = std::pair<const LookAhead*, int32_t>;

// A state of the automaton, and all that is read beside it.
struct Place {
  int32_t at;
  bool word;               // the last character read is a word character
  std::vector<Owed> owed;  // sorted
  auto operator<=>(const Place&) const = default;
};
using Places = std::vector<Place>;  // sorted

const DfaState& state_of(const Owed& owed) {
  return owed.first->rest.states()[static_cast<size_t>(owed.second)];
}

// Which of what is owed says the same as others, or less.
class Implications {
 public:
  // Whether all that may follow `one` may follow `other`, which is at the same place.
  bool takes_all(const Place& other, const Place& one) {
    return std::ranges::all_of(other.owed,
                               [&](const Owed& owed) { return implies(one.owed, owed); });
  }

  void add(std::vector<Owed>& all, const Owed& one) {
    if (one.first->free[static_cast<size_t>(one.second)] || implies(all, one)) return;
    std::erase_if(all, [&](const Owed& less) { return implies(one, less); });
    all.insert(std::lower_bound(all.begin(), all.end(), one), one);
  }

 private:
  bool implies(const std::vector<Owed>& all, const Owed& one) {
    return std::ranges::any_of(all, [&](const Owed& more) { return implies(more, one); });
  }

  // Whether what fulfils `more` fulfils `one`.
  bool implies(const Owed& more, const Owed& one) {
    if (more.first != one.first || more == one) return more == one;
    const TextSet& rest = one.first->rest;
    const auto [at, fresh] = known_.try_emplace(one.first);
    if (fresh) at->second = rest.inclusions();
    const auto state = [](const Owed& owed) { return static_cast<size_t>(owed.second); };
    return !at->second.empty() && at->second[state(more) * rest.states().size() + state(one)];
  }

  std::map<const LookAhead*, std::vector<bool>> known_;  // made where one is owed twice
};

class Determiniser {
 public:
  Determiniser(const Nfa& nfa, const Rule& rule, int64_t& budget)
      : nfa_(nfa), rule_(rule), budget_(budget) {
    for (const Nfa::AheadEdge& edge : nfa.aheads()) aheads_.emplace(edge.from, &edge);
  }

  std::vector<DfaState> run() {
    find({{Nfa::kStart, false, {}}});
    for (size_t i = 0; i < places_.size(); ++i) {
      DfaState state;
      state.accepting = std::ranges::any_of(*places_[i], [&](const Place& place) {
        return place.at == nfa_.end() && std::ranges::all_of(place.owed, [](const Owed& owed) {
                 return state_of(owed).accepting;
               });
      });
      add_bytes(*places_[i], state);
      states_.push_back(std::move(state));
    }
    return std::move(states_);
  }

 private:
  // Whether something is read in this state, or ends.
  bool counts(int32_t at) const { return at == nfa_.end() || !nfa_.state(at).bytes.empty(); }

  // All that is reached without reading.
  Places close(Places places) {
    std::set<Place> seen;
    while (!places.empty()) {
      const auto [at, fresh] = seen.insert(std::move(places.back()));
      places.pop_back();
      if (!fresh) continue;
      const Place& place = *at;
      spend(budget_, rule_, kPlaceWork + std::ssize(place.owed));
      for (const int32_t to : nfa_.state(place.at).empty) {
        places.push_back({to, place.word, place.owed});
      }
      const auto [first, last] = aheads_.equal_range(place.at);
      for (auto edge = first; edge != last; ++edge) pass(*edge->second, place, places);
    }
    return least({seen.begin(), seen.end()});
  }

  void pass(const Nfa::AheadEdge& edge, const Place& place, Places& out) {
    switch (edge.kind) {
      case Expr::Kind::mark:
        out.push_back({edge.to, edge.word, place.owed});
        return;
      case Expr::Kind::behind:
        if (edge.word == place.word) out.push_back({edge.to, place.word, place.owed});
        return;
      default:
        if (edge.ahead->rest.empty()) return;
        out.push_back({edge.to, place.word, place.owed});
        implications_.add(out.back().owed, {edge.ahead, 0});
    }
  }

  // Without the places whose texts another one takes as well, since it owes less; of places with
  // the same texts the first is left.
  Places least(const Places& places) {
    Places out;
    for (auto group = places.begin(); group != places.end();) {
      const auto end = std::find_if(group, places.end(), [&](const Place& place) {
        return place.at != group->at || place.word != group->word;
      });
      for (auto one = group; one != end && counts(group->at); ++one) {
        spend(budget_, rule_, (end - group) * (1 + std::ssize(one->owed)));
        const bool more = std::any_of(group, end, [&](const Place& other) {
          return other != *one && implications_.takes_all(other, *one) &&
                 (other < *one || !implications_.takes_all(*one, other));
        });
        if (!more) out.push_back(*one);
      }
      group = end;
    }
    return out;
  }

  int32_t find(Places places) {
    const auto [at, fresh] =
        index_.try_emplace(close(std::move(places)), static_cast<int32_t>(places_.size()));
    if (fresh) {
      spend(budget_, rule_, kStateWork + std::ssize(at->first));
      places_.push_back(&at->first);
    }
    return at->second;
  }

  static void add_borders(const std::vector<Automaton::ByteEdge>& edges, std::vector<int>& out) {
    for (const Automaton::ByteEdge& edge : edges) {
      out.push_back(edge.low);
      out.push_back(edge.high + 1);
    }
  }

  // What is owed after the byte; false where the text is lost.
  bool step(const std::vector<Owed>& owed, int byte, std::vector<Owed>& out) {
    for (const Owed& one : owed) {
      const auto& edges = state_of(one).bytes;
      const auto edge = std::ranges::find_if(edges, [&](const Automaton::ByteEdge& candidate) {
        return candidate.low <= byte && byte <= candidate.high;
      });
      if (edge == edges.end()) return false;
      implications_.add(out, {one.first, edge->to});
    }
    return true;
  }

  Places after(const Places& places, int byte) {
    Places out;
    for (const Place& place : places) {
      std::vector<Owed> owed;
      spend(budget_, rule_, 1 + std::ssize(place.owed));
      if (!step(place.owed, byte, owed)) continue;
      for (const Automaton::ByteEdge& edge : nfa_.state(place.at).bytes) {
        if (edge.low <= byte && byte <= edge.high) out.push_back({edge.to, place.word, owed});
      }
    }
    return out;
  }

  void add_bytes(const Places& places, DfaState& state) {
    std::vector<int> borders;
    for (const Place& place : places) {
      add_borders(nfa_.state(place.at).bytes, borders);
      for (const Owed& owed : place.owed) add_borders(state_of(owed).bytes, borders);
    }
    std::sort(borders.begin(), borders.end());
    borders.erase(std::unique(borders.begin(), borders.end()), borders.end());
    for (size_t i = 0; i + 1 < borders.size(); ++i) {
      Places to = after(places, borders[i]);
      if (to.empty()) continue;
      spend(budget_, rule_, kPlaceWork);
      state.bytes.push_back({static_cast<uint8_t>(borders[i]),
                             static_cast<uint8_t>(borders[i + 1] - 1), find(std::move(to))});
    }
  }

  const Nfa& nfa_;
  const Rule& rule_;
  int64_t& budget_;
  Implications implications_;
  std::multimap<int32_t, const Nfa::AheadEdge*> aheads_;  // by where they begin
  std::map<Places, int32_t> index_;
  std::vector<const Places*> places_;
  std::vector<DfaState> states_;
};

}  // namespace

ExprPtr mark(bool word) {
  Expr out;
  out.kind = Expr::Kind::mark;
  out.word = word;
  return std::make_shared<const Expr>(std::move(out));
}

ExprPtr behind(bool word) {
  Expr out;
  out.kind = Expr::Kind::behind;
  out.word = word;
  return std::make_shared<const Expr>(std::move(out));
}

ExprPtr look_ahead(TextSet rest, const TextSet& all) {
  auto ahead = std::make_shared<LookAhead>(LookAhead{std::move(rest), {}});
  ahead->free = ahead->rest.free_states(all);
  auto out = std::make_shared<Expr>();
  out->kind = Expr::Kind::ahead;
  out->ahead = std::move(ahead);
  return out;
}

std::vector<DfaState> determinise_ahead(const Nfa& nfa, const Rule& rule, int64_t& budget) {
  return Determiniser(nfa, rule, budget).run();
}

}  // namespace rbee::grammar
