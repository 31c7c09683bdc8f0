#include "rbee/grammar/stacks.h"

#include <algorithm>

#include "rbee/core/error.h"

namespace rbee::grammar {
namespace {

constexpr size_t kMaxPlaces = 2048;
constexpr size_t kMaxFrames = 1 << 17;  // of one text: some 7 MB

uint64_t key_of(int32_t state, int32_t parent) {
  return (uint64_t{static_cast<uint32_t>(state)} << 32) | static_cast<uint32_t>(parent);
}

}  // namespace

void Stacks::clear() {
  frames_.clear();
  index_.clear();
}

int32_t Stacks::push(int32_t state, int32_t parent) {
  if (automaton_->state(state).last()) return parent;
  const auto [at, fresh] =
      index_.try_emplace(key_of(state, parent), static_cast<int32_t>(frames_.size()));
  if (fresh) {
    if (frames_.size() >= kMaxFrames) {
      fail(Code::unsupported, "grammar", "the text nests more than ", kMaxFrames, " rules");
    }
    frames_.push_back({state, parent});
  }
  return at->second;
}

// Works off work_. Expects seen_ to hold what was reached already.
bool Stacks::spread(std::vector<Place>& out) {
  bool ended = false;
  while (!work_.empty()) {
    const Place place = work_.back();
    work_.pop_back();
    if (!seen_.insert(place).second) continue;
    if (seen_.size() > kMaxPlaces) {
      fail(Code::unsupported, "grammar", "it is too ambiguous: there are more than ", kMaxPlaces,
           " ways to read the text so far");
    }
    const Automaton::State state = automaton_->state(place.state);
    if (!state.bytes.empty()) out.push_back(place);
    for (const Automaton::CallEdge& call : state.calls) {
      work_.push_back({automaton_->start(call.rule), push(call.to, place.stack)});
    }
    if (!state.accepting) continue;
    if (place.stack == kBottom) {
      ended = true;
    } else {
      work_.push_back({frame(place.stack).state, frame(place.stack).parent});
    }
  }
  return ended;
}

bool Stacks::close(Place place, std::vector<Place>& out) {
  seen_.clear();
  work_.assign(1, place);
  return spread(out);
}

void Stacks::step(const std::vector<Place>& from, uint8_t byte, std::vector<Place>& out,
                  bool& ended) {
  seen_.clear();
  work_.clear();
  out.clear();
  for (const Place& place : from) {
    const int32_t to = automaton_->next(place.state, byte);
    if (to >= 0) work_.push_back({to, place.stack});
  }
  ended = spread(out);
  std::sort(out.begin(), out.end());
}

}  // namespace rbee::grammar
