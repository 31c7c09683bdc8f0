#pragma once
// Which lengths, in characters, the texts of a set have from each state of its automaton on. With
// them a string of a pattern and of 1 to 2083 characters is the pattern's automaton and a count of
// what may still come, in place of a copy of the automaton for each count. Internal to the folder.

#include <cstdint>
#include <memory>
#include <vector>

namespace rbee::grammar {

class TextSet;

class TextLengths {
 public:
  // set: made by TextSet::both() and without() of `all`, any text of characters, so that each of
  // its states is between characters or inside of one. max: characters that texts may have at most,
  // or kUnlimited. Null where the lengths do not repeat soon enough to be kept.
  static std::shared_ptr<const TextLengths> of(const TextSet& set, const TextSet& all, int64_t max);

  // Whether a byte that is read in the state begins a character.
  bool begins(int32_t state) const { return begins_[static_cast<size_t>(state)]; }
  // Whether all texts of the set have from `min` to `max` characters. False where it is not known.
  bool all_within(int64_t min, int64_t max) const;
  // Whether some text goes on from the state by `need` to `room` characters.
  bool fits(int32_t state, int32_t need, int32_t room) const;
  // From this count on lengths are alike: a state has all of them or none.
  int32_t settled() const { return levels_ - 1; }
  // Characters within which a text can come to its end from any state.
  int32_t nearest_end() const { return nearest_end_; }
  size_t bytes() const { return begins_.size() / 8 + nearest_.size() * sizeof(uint16_t); }

 private:
  TextLengths() = default;

  static constexpr uint16_t kNone = 0xFFFF;

  bool settles_ = false;  // else more characters than there are counts are not asked about
  std::vector<bool> begins_;
  std::vector<uint16_t> nearest_;  // by state and count: the least count from there on, or kNone
  int32_t levels_ = 0;
  int32_t nearest_end_ = 0;
};

}  // namespace rbee::grammar
