#pragma once
// Where a text stands in a grammar: states of the automaton with the states to return to. Equal
// stacks are one, so that a set of places stays small however a grammar is read.

#include <cstdint>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "rbee/grammar/automaton.h"

namespace rbee::grammar {

inline constexpr int32_t kBottom = -1;

struct Frame {
  int32_t state;   // to return to
  int32_t parent;  // or kBottom
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
    return static_cast<size_t>((both * 0x9E3779B97F4A7C15u) >> 16);
  }
};

class Stacks {
 public:
  explicit Stacks(const Automaton& automaton) : automaton_(&automaton) {}

  // Adds to `out` the places that can read a byte from here on without one read before: here, in
  // called rules, and behind the ends of rules. True when the bottom's end is reached. Throws
  // unsupported when there are too many ways to read the text.
  bool close(Place place, std::vector<Place>& out);
  // The places after a byte, sorted, of `from`'s; ended: whether the bottom's end is among them.
  void step(const std::vector<Place>& from, uint8_t byte, std::vector<Place>& out, bool& ended);

  const Frame& frame(int32_t index) const { return frames_[static_cast<size_t>(index)]; }
  size_t size() const { return frames_.size(); }
  void clear();

 private:
  int32_t push(int32_t state, int32_t parent);
  bool spread(std::vector<Place>& out);

  const Automaton* automaton_;
  std::vector<Frame> frames_;
  std::unordered_map<uint64_t, int32_t> index_;
  std::vector<Place> work_;
  std::unordered_set<Place, PlaceHash> seen_;
};

}  // namespace rbee::grammar
