#pragma once
// The lengths, in characters, that texts of a set can have from each state of its automaton. With
// them, a string with a pattern and 1 to 2083 characters needs the pattern's automaton and a count
// of remaining characters, instead of a copy of the automaton for each count. Internal to the
// folder.

#include <cstdint>
#include <memory>
#include <vector>

namespace rbee::grammar {

class TextSet;

class TextLengths {
 public:
  // set: made by TextSet::both() and without() from `all`, any text of characters, so each of its
  // states is between characters or inside one. max: the most characters of a text, or kUnlimited.
  // Null if the lengths do not become periodic soon enough.
  static std::shared_ptr<const TextLengths> of(const TextSet& set, const TextSet& all, int64_t max);

  // Whether the next byte in the state begins a character.
  bool begins(int32_t state) const { return begins_[static_cast<size_t>(state)]; }
  // Whether all texts of the set have `min` to `max` characters. False if this is not known.
  bool all_within(int64_t min, int64_t max) const;
  // Whether a text can end `need` to `room` characters after the state.
  bool fits(int32_t state, int32_t need, int32_t room) const;
  // From this count on, a state has all lengths or none.
  int32_t settled() const { return levels_ - 1; }
  // From any state, a text can end within this many characters.
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
