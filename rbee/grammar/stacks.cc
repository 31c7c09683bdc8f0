#include "rbee/grammar/stacks.h"

#include <algorithm>

#include "rbee/core/error.h"

namespace rbee::grammar {
namespace {

constexpr size_t kMaxPlaces = 2048;
constexpr size_t kMaxFrames = 1 << 17;  // of one text: some 7 MB

// One less of what is counted.
int32_t less(int32_t value) {
  return value == kManyTimes || value == 0 ? value : value - 1;
}

}  // namespace

PlaceSet::Slot& PlaceSet::slot_of(const Place& place) {
  const size_t mask = slots_.size() - 1;
  size_t at = PlaceHash()(place) & mask;
  while (slots_[at].round == round_ && slots_[at].place != place) at = (at + 1) & mask;
  return slots_[at];
}

bool PlaceSet::insert(const Place& place) {
  if (2 * (size_ + 1) > slots_.size()) grow();
  Slot& slot = slot_of(place);
  if (slot.round == round_) return false;
  slot = {place, round_};
  ++size_;
  return true;
}

void PlaceSet::grow() {
  std::vector<Slot> old(std::max<size_t>(2 * slots_.size(), 16), Slot{{-1, kBottom}, 0});
  std::swap(old, slots_);
  for (const Slot& slot : old) {
    if (slot.round == round_) slot_of(slot.place) = slot;
  }
}

void PlaceSet::clear() {
  size_ = 0;
  if (++round_ != 0) return;
  for (Slot& slot : slots_) slot.round = 0;
  round_ = 1;
}

void Stacks::clear() {
  frames_.clear();
  index_.clear();
}

Frame Stacks::up_to_horizon(Frame frame) const {
  const TextLengths* lengths = automaton_->lengths(frame.rule);
  int64_t most = horizon_;
  // Behind the horizon lengths still have to be alike, or enough for an end.
  if (lengths != nullptr) most += frame.need > 0 ? lengths->settled() : lengths->nearest_end();
  if (frame.need > most) frame.need = kManyTimes;
  if (frame.room > most) frame.room = kManyTimes;
  return frame;
}

Frame Stacks::shortened(const Frame& frame) const {
  Frame out = frame.rule < 0 ? frame : up_to_horizon(frame);
  out.parent = kBottom;
  return out;
}

int32_t Stacks::push(Frame frame) {
  const bool counts =
      frame.rule >= 0 && (frame.room > 0 || automaton_->lengths(frame.rule) != nullptr);
  if (counts) {
    frame = up_to_horizon(frame);
  } else {
    frame = {.state = frame.state, .parent = frame.parent};
    if (automaton_->state(frame.state).last()) return frame.parent;
  }
  const auto [at, fresh] = index_.try_emplace(frame, static_cast<int32_t>(frames_.size()));
  if (fresh) {
    if (frames_.size() >= kMaxFrames) {
      fail(Code::unsupported, "grammar", "the text nests more than ", kMaxFrames, " rules");
    }
    frames_.push_back(frame);
  }
  return at->second;
}

// A frame follows its parent, so one pass finds all that are needed.
void Stacks::forget_others(std::vector<Place>& places) {
  if (frames_.size() <= many_frames_) return;
  std::vector<bool> needed(frames_.size());
  for (const Place& place : places) {
    if (place.stack != kBottom) needed[static_cast<size_t>(place.stack)] = true;
  }
  for (size_t i = frames_.size(); i-- > 0;) {
    if (needed[i] && frames_[i].parent != kBottom) {
      needed[static_cast<size_t>(frames_[i].parent)] = true;
    }
  }
  std::vector<int32_t> moved(frames_.size(), kBottom);
  std::vector<Frame> kept;
  index_.clear();
  for (size_t i = 0; i < frames_.size(); ++i) {
    if (!needed[i]) continue;
    Frame frame = frames_[i];
    if (frame.parent != kBottom) frame.parent = moved[static_cast<size_t>(frame.parent)];
    moved[i] = static_cast<int32_t>(kept.size());
    index_.emplace(frame, moved[i]);
    kept.push_back(frame);
  }
  frames_ = std::move(kept);
  many_frames_ = std::max(kFewFrames, 2 * frames_.size());
  for (Place& place : places) {
    if (place.stack != kBottom) place.stack = moved[static_cast<size_t>(place.stack)];
  }
}

// Behind the end of a called rule.
void Stacks::leave(const Frame& frame) {
  if (frame.need == 0) work_.push_back({frame.state, frame.parent});
  if (frame.room == 0 || automaton_->lengths(frame.rule) != nullptr) return;
  Frame again = frame;
  again.need = less(frame.need);
  again.room = less(frame.room);
  work_.push_back({automaton_->start(frame.rule), push(again)});
}

// Works off work_. Expects seen_ to hold what was reached already.
bool Stacks::spread(std::vector<Place>& out) {
  bool ended = false;
  while (!work_.empty()) {
    const Place place = work_.back();
    work_.pop_back();
    ++visited_;
    if (!seen_.insert(place)) continue;
    if (seen_.size() > kMaxPlaces) {
      fail(Code::unsupported, "grammar", "it is too ambiguous: there are more than ", kMaxPlaces,
           " ways to read the text so far");
    }
    const Automaton::State state = automaton_->state(place.state);
    if (!state.bytes.empty()) out.push_back(place);
    for (const Automaton::CallEdge& call : state.calls) {
      // Of calls that are counted, this one is the first.
      const bool metered = automaton_->lengths(call.rule) != nullptr;
      const int32_t stack = push({.state = call.to,
                                  .parent = place.stack,
                                  .rule = call.rule,
                                  .need = metered ? call.min : less(call.min),
                                  .room = metered ? call.max : less(call.max)});
      work_.push_back({automaton_->start(call.rule), stack});
    }
    if (!state.accepting) continue;
    if (place.stack == kBottom) {
      ended = true;
    } else {
      leave(Frame(frame(place.stack)));
    }
  }
  return ended;
}

bool Stacks::close(Place place, std::vector<Place>& out) {
  seen_.clear();
  work_.assign(1, place);
  return spread(out);
}

bool Stacks::close_returned(const Frame& frame, std::vector<Place>& out) {
  seen_.clear();
  work_.clear();
  Frame on_bottom = frame;
  on_bottom.parent = kBottom;
  leave(on_bottom);
  return spread(out);
}

// Adds the place after the byte to work_. In a rule with lengths a character may begin only where
// one is left, and the rest has to come to an end within them.
void Stacks::read(const Place& place, uint8_t byte) {
  const int32_t to = automaton_->next(place.state, byte);
  if (to < 0) return;
  if (automaton_->metered(place.state) < 0) {
    work_.push_back({to, place.stack});
    return;
  }
  Frame frame = this->frame(place.stack);
  if (automaton_->begins_character(place.state)) {
    if (frame.room == 0) return;
    frame.need = less(frame.need);
    frame.room = less(frame.room);
  }
  if (automaton_->fits(to, frame.need, frame.room)) work_.push_back({to, push(frame)});
}

void Stacks::step(const std::vector<Place>& from, uint8_t byte, std::vector<Place>& out,
                  bool& ended) {
  seen_.clear();
  work_.clear();
  out.clear();
  for (const Place& place : from) read(place, byte);
  ended = spread(out);
  std::sort(out.begin(), out.end());
}

}  // namespace rbee::grammar
