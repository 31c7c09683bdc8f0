#include "rbee/grammar/token_masks.h"

#include <algorithm>

namespace rbee::grammar {
namespace {

constexpr int32_t kUnknown = -2;
constexpr int32_t kDead = -1;
constexpr size_t kMaxSets = 8192;
// A list takes 32 bits for a token, bits take one for each token of the vocabulary.
constexpr size_t kListShare = 32;

void set_bit(std::span<uint64_t> bits, int32_t id) {
  bits[static_cast<size_t>(id) / 64] |= uint64_t{1} << (static_cast<size_t>(id) % 64);
}

uint64_t hash_of(const std::vector<Place>& places, bool ended) {
  uint64_t out = ended ? 1 : 0;
  for (const Place& place : places) {
    const uint64_t both =
        (uint64_t{static_cast<uint32_t>(place.state)} << 32) | static_cast<uint32_t>(place.stack);
    out = (out ^ both) * 0x9E3779B97F4A7C15u;
    out ^= out >> 29;
  }
  return out;
}

}  // namespace

TokenMasks::TokenMasks(const Automaton& automaton, const Vocabulary& vocabulary, size_t max_bytes)
    : automaton_(automaton),
      vocabulary_(vocabulary),
      max_bytes_(max_bytes),
      states_(static_cast<size_t>(automaton.size())),
      stacks_(automaton) {}

void TokenMasks::add(const Place& place, const Stacks& stacks, std::span<uint64_t> bits) {
  const std::scoped_lock lock(mutex_);
  forget_when_large();
  Part* part = &part_of(place.state);
  int32_t stack = place.stack;
  while (true) {
    for (const int32_t id : part->ids) set_bit(bits, id);
    for (size_t i = 0; i < part->bits.size(); ++i) bits[i] |= part->bits[i];
    if (part->open.empty() || stack == kBottom) return;
    const Frame& frame = stacks.frame(stack);
    part = &returned_part(*part, frame.state);
    stack = frame.parent;
  }
}

void TokenMasks::prepare(int64_t steps) {
  for (int32_t i = 0; i < automaton_.size(); ++i) {
    const std::scoped_lock lock(mutex_);
    if (steps_ >= steps || bytes_ > max_bytes_ / 2) return;
    if (!automaton_.state(i).bytes.empty()) part_of(i);
  }
}

TokenMasks::Part& TokenMasks::part_of(int32_t state) {
  Part*& part = states_[static_cast<size_t>(state)];
  if (part == nullptr) {
    // Only the state's own bytes: what it calls, and what is behind its end, are places of their
    // own.
    part = make_part({Vocabulary::kRoot}, find_set({{state, kBottom}}, false));
  }
  return *part;
}

TokenMasks::Part& TokenMasks::returned_part(Part& part, int32_t state) {
  Part*& next = part.returned[state];
  if (next == nullptr) {
    std::vector<Place> places;
    const bool ended = stacks_.close({state, kBottom}, places);
    std::sort(places.begin(), places.end());
    const int32_t set = find_set(std::move(places), ended);
    next = make_part(part.open, set);
    // The rule that is returned to may end at once.
    if (ended) next->open.insert(next->open.end(), part.open.begin(), part.open.end());
  }
  return *next;
}

TokenMasks::Part* TokenMasks::make_part(const std::vector<int32_t>& roots, int32_t first_set) {
  auto part = std::make_unique<Part>();
  std::vector<int32_t> ids;
  for (const int32_t root : roots) walk(root, first_set, ids, part->open);
  if (ids.size() * kListShare < static_cast<size_t>(vocabulary_.size())) {
    part->ids = std::move(ids);
    part->ids.shrink_to_fit();
  } else {
    part->bits.resize(static_cast<size_t>(vocabulary_.size() + 63) / 64);
    for (const int32_t id : ids) set_bit(part->bits, id);
  }
  bytes_ += sizeof(Part) + 4 * (part->ids.size() + part->open.size()) + 8 * part->bits.size();
  parts_.push_back(std::move(part));
  return parts_.back().get();
}

// Reads the descendants of a node from a set of places on.
void TokenMasks::walk(int32_t root, int32_t first_set, std::vector<int32_t>& ids,
                      std::vector<int32_t>& open) {
  struct Level {
    int32_t after;  // the node behind the last of the level
    int32_t set;
  };
  std::vector<Level> levels{{vocabulary_.node(root).after, first_set}};
  int32_t at = root + 1;
  while (true) {
    while (!levels.empty() && at == levels.back().after) levels.pop_back();
    if (levels.empty()) return;
    ++steps_;
    const Vocabulary::Node& node = vocabulary_.node(at);
    const int32_t set = next_set(levels.back().set, node.byte);
    if (set == kDead) {
      at = node.after;
      continue;
    }
    for (const int32_t id : vocabulary_.tokens(node)) ids.push_back(id);
    const bool inner = node.after > at + 1;
    if (inner && sets_[static_cast<size_t>(set)].ended) open.push_back(at);
    if (inner && !sets_[static_cast<size_t>(set)].places.empty()) {
      levels.push_back({node.after, set});
      ++at;
    } else {
      at = node.after;
    }
  }
}

int32_t TokenMasks::find_set(std::vector<Place> places, bool ended) {
  if (places.empty() && !ended) return kDead;
  const uint64_t hash = hash_of(places, ended);
  const auto [first, last] = set_index_.equal_range(hash);
  for (auto at = first; at != last; ++at) {
    const Set& set = sets_[static_cast<size_t>(at->second)];
    if (set.ended == ended && set.places == places) return at->second;
  }
  const auto index = static_cast<int32_t>(sets_.size());
  sets_.push_back({std::move(places), ended, std::vector<int32_t>(256, kUnknown)});
  set_index_.emplace(hash, index);
  return index;
}

int32_t TokenMasks::next_set(int32_t set, uint8_t byte) {
  if (set == kDead) return kDead;
  const int32_t known = sets_[static_cast<size_t>(set)].next[byte];
  if (known != kUnknown) return known;
  std::vector<Place> places;
  bool ended = false;
  stacks_.step(sets_[static_cast<size_t>(set)].places, byte, places, ended);
  const int32_t next = find_set(std::move(places), ended);
  sets_[static_cast<size_t>(set)].next[byte] = next;
  return next;
}

// Between two answers nobody holds a part or a set.
void TokenMasks::forget_when_large() {
  if (sets_.size() > kMaxSets) {
    sets_.clear();
    set_index_.clear();
    stacks_.clear();
  }
  if (bytes_ > max_bytes_) {
    std::ranges::fill(states_, nullptr);
    parts_.clear();
    bytes_ = 0;
  }
}

}  // namespace rbee::grammar
