#pragma once
// Places of a text in a grammar: a state of the automaton, and a stack of states to return to.
// Equal stacks are shared, so a set of places stays small.

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "rbee/grammar/automaton.h"

namespace rbee::grammar {

inline constexpr int32_t kBottom = -1;

struct Frame {
  int32_t state;   // to return to
  int32_t parent;  // or kBottom
  // For a counted rule: it must follow at least `need` and at most `room` times after this one. For
  // a rule with lengths: the characters before the return. Else -1 and 0.
  int32_t rule = -1;
  int32_t need = 0, room = 0;
  friend bool operator==(const Frame&, const Frame&) = default;
};

struct FrameHash {
  size_t operator()(const Frame& frame) const {
    uint64_t out = 0;
    for (const int32_t part : {frame.state, frame.parent, frame.rule, frame.need, frame.room}) {
      out = (out ^ static_cast<uint32_t>(part)) * 0x9E3779B97F4A7C15u;
      out ^= out >> 29;
    }
    return static_cast<size_t>(out);
  }
};

struct Place {
  int32_t state;
  int32_t stack;  // a frame, or kBottom
  friend auto operator<=>(const Place&, const Place&) = default;
};

struct PlaceHash {
  size_t operator()(const Place& place) const {
    const uint64_t both =
        (uint64_t{static_cast<uint32_t>(place.state)} << 32) | static_cast<uint32_t>(place.stack);
    return static_cast<size_t>((both * 0x9E3779B97F4A7C15u) >> 32);
  }
};

// A set of places whose clear() costs nothing.
class PlaceSet {
 public:
  // False if the place is in the set already.
  bool insert(const Place& place);
  size_t size() const { return size_; }
  void clear();

 private:
  struct Slot {
    Place place;
    uint32_t round;  // the round of clear() that filled it
  };
  Slot& slot_of(const Place& place);
  void grow();

  std::vector<Slot> slots_;  // a power of two of them, half of them filled at most
  size_t size_ = 0;
  uint32_t round_ = 1;
};

class Stacks {
 public:
  static constexpr size_t kFewFrames = 4096;

  // horizon: at most this many bytes are read from a place, so larger counts are equivalent.
  explicit Stacks(const Automaton& automaton, int32_t horizon = kManyTimes - 1)
      : automaton_(&automaton), horizon_(horizon) {}

  // Adds to `out` all places that can read the next byte: here, in called rules, and after the ends
  // of rules. True if the end of the bottom is reached. Throws unsupported if there are too many
  // ways to parse the text.
  bool close(Place place, std::vector<Place>& out);
  // The places after a byte from those of `from`, sorted. ended: whether the bottom's end is among
  // them.
  void step(const std::vector<Place>& from, uint8_t byte, std::vector<Place>& out, bool& ended);

  // Adds the places after a return to the frame, whose parent counts as the bottom. True as above.
  bool close_returned(const Frame& frame, std::vector<Place>& out);
  // The frame with the bottom as its parent and counts up to the horizon.
  Frame shortened(const Frame& frame) const;
  int32_t push(Frame frame);

  const Frame& frame(int32_t index) const { return frames_[static_cast<size_t>(index)]; }
  size_t size() const { return frames_.size(); }
  int64_t visited() const { return visited_; }  // places of all calls, a measure of cost
  // If there are many frames, drops those that no place uses and renumbers the places.
  void forget_others(std::vector<Place>& places);
  void clear();

 private:
  bool spread(std::vector<Place>& out);
  void leave(const Frame& frame);
  void read(const Place& place, uint8_t byte);
  Frame up_to_horizon(Frame frame) const;

  const Automaton* automaton_;
  int32_t horizon_;
  size_t many_frames_ = kFewFrames;
  int64_t visited_ = 0;
  std::vector<Frame> frames_;
  std::unordered_map<Frame, int32_t, FrameHash> index_;
  std::vector<Place> work_;
  PlaceSet seen_;
};

}  // namespace rbee::grammar
