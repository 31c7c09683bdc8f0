#include "rbee/grammar/token_masks.h"

#include <algorithm>
#include <bit>

#include "rbee/core/error.h"

namespace rbee::grammar {
namespace {

constexpr int32_t kUnknown = -2;
constexpr int32_t kDead = -1;
// Beyond the first number, sets of places that no walk needs are dropped; a walk that makes more
// than the second is too ambiguous.
constexpr size_t kManySetBytes = size_t{16} << 20;
constexpr size_t kMaxSetBytes = size_t{64} << 20;
// At least this many grammars share the memory of masks.
constexpr int64_t kShares = 32;
constexpr int64_t kSetWork = 200;        // a set's table
constexpr int64_t kPlaceWork = 16;       // a place that is read on
constexpr int64_t kPartWork = 24;        // a part that is known
constexpr int64_t kListWork = 1;         // a token or an open node of a part that becomes known
constexpr size_t kMaxReturns = 1 << 18;  // of a mask
// A list takes 32 bits for a token, bits take one for each token of the vocabulary.
constexpr size_t kListShare = 32;
constexpr Frame kNoFrame{.state = -1, .parent = kBottom};

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

// Values from 0 to below `end`.
void sort_unique(std::vector<int32_t>& values, int32_t end) {
  constexpr size_t kFew = 256;  // with fewer, sorting is cheaper than looking at all possible ones
  if (std::ranges::is_sorted(values) || values.size() < kFew) {
    std::ranges::sort(values);
    values.erase(std::ranges::unique(values).begin(), values.end());
    return;
  }
  std::vector<uint64_t> there(static_cast<size_t>(end + 63) / 64);
  for (const int32_t value : values) set_bit(there, value);
  values.clear();
  for (size_t i = 0; i < there.size(); ++i) {
    for (uint64_t left = there[i]; left != 0; left &= left - 1) {
      values.push_back(static_cast<int32_t>(64 * i) + std::countr_zero(left));
    }
  }
}

}  // namespace

TokenMasks::TokenMasks(const Automaton& automaton, const Vocabulary& vocabulary,
                       std::shared_ptr<GrammarMemory> memory, size_t max_bytes)
    : automaton_(automaton),
      vocabulary_(vocabulary),
      memory_(memory ? std::move(memory) : std::make_shared<GrammarMemory>()),
      max_bytes_(max_bytes),
      stacks_(automaton, vocabulary.longest()) {}

TokenMasks::~TokenMasks() {
  memory_->used -= static_cast<int64_t>(bytes_.load());
}

void TokenMasks::count(int64_t bytes) {
  bytes_ += static_cast<size_t>(bytes);
  memory_->used += bytes;
}

bool TokenMasks::add(std::span<const Place> places, const Stacks& stacks, std::span<uint64_t> bits,
                     UnfinishedMask& mask, int64_t& work) {
  const std::scoped_lock lock(mutex_);
  forget_when_large();
  if (mask.number == 0 || mask.forgotten != forgotten_) {
    mask = UnfinishedMask();
    mask.number = ++masks_;
    mask.forgotten = forgotten_;
  }
  for (; mask.place < places.size(); ++mask.place) {
    if (!add_place(places[mask.place], stacks, bits, mask, work)) return false;
    mask.returns = false;
  }
  return true;
}

bool TokenMasks::add_place(const Place& place, const Stacks& stacks, std::span<uint64_t> bits,
                           UnfinishedMask& mask, int64_t& work) {
  while (work > 0) {
    int32_t below = kBottom;
    Part* part = nullptr;
    if (mask.returns) {
      const Frame& frame = stacks.frame(mask.next.stack);
      part = part_of_return(mask.next.state, frame, work);
      below = frame.parent;
    } else {
      part = part_of_place(place, stacks, work);
      // A part of a rule with lengths has read the return already.
      const bool metered = automaton_.metered(place.state) >= 0;
      below = metered ? stacks.frame(place.stack).parent : place.stack;
    }
    if (part == nullptr) return false;
    work -= kPartWork;
    if (part->joined != mask.number) {
      part->joined = mask.number;
      join(*part, bits);
      work -= std::ssize(part->ids) + std::ssize(part->bits) / 8;
    }
    if (part->open < 0 || below == kBottom) return true;
    // The continuation depends only on the open nodes and the stack.
    mask.next = {part->open, below};
    mask.returns = true;
    if (!mask.seen.insert(mask.next)) return true;
    if (mask.seen.size() > kMaxReturns) {
      fail(Code::unsupported, "grammar", "it is too ambiguous: there are more than ", kMaxReturns,
           " ways to leave its rules within a token");
    }
  }
  return false;
}

void TokenMasks::join(const Part& part, std::span<uint64_t> bits) const {
  for (const int32_t id : part.ids) set_bit(bits, id);
  for (size_t i = 0; i < part.bits.size(); ++i) bits[i] |= part.bits[i];
}

void TokenMasks::prepare(int64_t work) {
  for (int32_t i = 0; i < automaton_.size(); ++i) {
    const std::scoped_lock lock(mutex_);
    if (work <= 0 || bytes_ > max_bytes_ / 2) return;
    if (walks_.empty() && set_bytes_ > kManySetBytes) forget_sets();
    const Automaton::State state = automaton_.state(i);
    if (!state.bytes.empty() && automaton_.metered(i) < 0) {
      part_of({.open = -1, .state = i, .frame = kNoFrame}, work);
    }
    for (const Automaton::CallEdge& call : state.calls) {
      if (call.max != 1 || automaton_.lengths(call.rule) != nullptr) prepare_call(call, work);
    }
  }
}

// As its parts are far from the ends of the counts.
void TokenMasks::prepare_call(const Automaton::CallEdge& call, int64_t& work) {
  const Frame middle = stacks_.shortened(
      {.state = call.to, .parent = kBottom, .rule = call.rule, .need = 0, .room = call.max});
  const int32_t start = automaton_.start(call.rule);
  const bool metered = automaton_.lengths(call.rule) != nullptr;
  const Part* part =
      part_of({.open = -1, .state = start, .frame = metered ? middle : kNoFrame}, work);
  if (part != nullptr && part->open >= 0 && !metered) part_of_return(part->open, middle, work);
}

TokenMasks::Part* TokenMasks::part_of_place(const Place& place, const Stacks& stacks,
                                            int64_t& work) {
  if (automaton_.metered(place.state) < 0) {
    return part_of({.open = -1, .state = place.state, .frame = kNoFrame}, work);
  }
  const Frame frame = stacks_.shortened(stacks.frame(place.stack));
  return part_of({.open = -1, .state = place.state, .frame = frame}, work);
}

TokenMasks::Part* TokenMasks::part_of_return(int32_t open, const Frame& frame, int64_t& work) {
  return part_of({.open = open, .state = -1, .frame = stacks_.shortened(frame)}, work);
}

TokenMasks::Part* TokenMasks::part_of(const Key& key, int64_t& work) {
  const auto known = parts_.find(key);
  if (known != parts_.end()) return &known->second;
  auto at = walks_.find(key);
  if (at == walks_.end()) at = walks_.emplace(key, begin_walk(key, work)).first;
  if (!go_on(at->second, work)) return nullptr;
  work -= kListWork * std::ssize(at->second.ids) + kListWork * std::ssize(at->second.open);
  Part& part = parts_[key] = finish(at->second);
  walks_.erase(at);
  return &part;
}

TokenMasks::Walk TokenMasks::begin_walk(const Key& key, int64_t& work) {
  Walk out;
  std::vector<Place> places;
  if (key.state >= 0) {
    // Only the state's own bytes: the rules that it calls, and what follows its end, are places of
    // their own.
    out.roots = {Vocabulary::kRoot};
    const bool metered = automaton_.metered(key.state) >= 0;
    places = {{key.state, metered ? stacks_.push(key.frame) : kBottom}};
  } else {
    out.roots = *open_sets_[static_cast<size_t>(key.open)];
    out.ended = stacks_.close_returned(key.frame, places);
    std::sort(places.begin(), places.end());
  }
  work -= kSetWork + kPlaceWork * std::ssize(places);
  out.first_set = find_set(std::move(places), out.ended);
  return out;
}

// Reads the descendants of the roots from the first set of places on.
bool TokenMasks::go_on(Walk& walk, int64_t& work) {
  while (true) {
    while (!walk.levels.empty() && walk.at == walk.levels.back().after) walk.levels.pop_back();
    if (work <= 0) return false;
    if (!walk.levels.empty()) {
      visit(walk, work);
      continue;
    }
    if (walk.root == walk.roots.size()) return true;
    const int32_t root = walk.roots[walk.root++];
    walk.levels.push_back({vocabulary_.node(root).after, walk.first_set});
    walk.at = root + 1;
  }
}

void TokenMasks::visit(Walk& walk, int64_t& work) {
  --work;
  const Vocabulary::Node& node = vocabulary_.node(walk.at);
  const int32_t set = next_set(walk.levels.back().set, node.byte, work);
  if (set == kDead) {
    walk.at = node.after;
    return;
  }
  for (const int32_t id : vocabulary_.tokens(node)) walk.ids.push_back(id);
  const bool inner = node.after > walk.at + 1;
  if (inner && sets_[static_cast<size_t>(set)].ended) walk.open.push_back(walk.at);
  if (inner && !sets_[static_cast<size_t>(set)].places.empty()) {
    walk.levels.push_back({node.after, set});
    ++walk.at;
  } else {
    walk.at = node.after;
  }
}

TokenMasks::Part TokenMasks::finish(Walk& walk) {
  Part part;
  // The rule that the walk returns to may end at once.
  if (walk.ended) walk.open.insert(walk.open.end(), walk.roots.begin(), walk.roots.end());
  sort_unique(walk.open, vocabulary_.node_count());
  if (!walk.open.empty()) part.open = find_open(std::move(walk.open));
  if (walk.ids.size() * kListShare < static_cast<size_t>(vocabulary_.size())) {
    sort_unique(walk.ids, static_cast<int32_t>(vocabulary_.size()));
    part.ids = std::move(walk.ids);
    part.ids.shrink_to_fit();
  } else {
    part.bits.resize(static_cast<size_t>(vocabulary_.size() + 63) / 64);
    for (const int32_t id : walk.ids) set_bit(part.bits, id);
  }
  count(static_cast<int64_t>(sizeof(Key) + sizeof(Part) + 4 * part.ids.size() +
                             8 * part.bits.size()));
  return part;
}

int32_t TokenMasks::find_open(std::vector<int32_t> nodes) {
  const auto [at, fresh] =
      open_index_.try_emplace(std::move(nodes), static_cast<int32_t>(open_sets_.size()));
  if (fresh) {
    open_sets_.push_back(&at->first);
    count(static_cast<int64_t>(sizeof(*at) + 4 * at->first.size()));
  }
  return at->second;
}

int32_t TokenMasks::find_set(std::vector<Place> places, bool ended) {
  if (places.empty() && !ended) return kDead;
  const uint64_t hash = hash_of(places, ended);
  const auto [first, last] = set_index_.equal_range(hash);
  for (auto at = first; at != last; ++at) {
    const Set& set = sets_[static_cast<size_t>(at->second)];
    if (set.ended == ended && set.places == places) return at->second;
  }
  const size_t bytes = sizeof(Set) + sizeof(Place) * places.size() + 256 * sizeof(int32_t);
  if (set_bytes_ + bytes > kMaxSetBytes) {
    forget_sets();
    fail(Code::unsupported, "grammar",
         "it is too ambiguous: the ways to read a token take more than ", kMaxSetBytes >> 20,
         " MiB");
  }
  const auto index = static_cast<int32_t>(sets_.size());
  sets_.push_back({std::move(places), ended, std::vector<int32_t>(256, kUnknown)});
  set_index_.emplace(hash, index);
  set_bytes_ += bytes;
  count(static_cast<int64_t>(bytes));
  return index;
}

int32_t TokenMasks::next_set(int32_t set, uint8_t byte, int64_t& work) {
  if (set == kDead) return kDead;
  const int32_t known = sets_[static_cast<size_t>(set)].next[byte];
  if (known != kUnknown) return known;
  std::vector<Place> places;
  bool ended = false;
  const int64_t before = stacks_.visited();
  stacks_.step(sets_[static_cast<size_t>(set)].places, byte, places, ended);
  work -= kSetWork + kPlaceWork * (stacks_.visited() - before + std::ssize(places));
  const int32_t next = find_set(std::move(places), ended);
  sets_[static_cast<size_t>(set)].next[byte] = next;
  return next;
}

// With the walks that hold some of them.
void TokenMasks::forget_sets() {
  walks_.clear();
  sets_.clear();
  set_index_.clear();
  stacks_.clear();
  count(-static_cast<int64_t>(set_bytes_));
  set_bytes_ = 0;
}

// Between two masks only the walks hold parts or sets.
void TokenMasks::forget_when_large() {
  if (walks_.empty() && set_bytes_ > kManySetBytes) forget_sets();
  const bool above_share =
      memory_->used > memory_->limit && static_cast<int64_t>(bytes_) > memory_->limit / kShares;
  if (bytes_ <= max_bytes_ && !above_share) return;
  // Else a mask that takes several calls would never be complete.
  if (!walks_.empty() && bytes_ <= 2 * max_bytes_) return;
  forget_sets();
  parts_.clear();
  open_index_.clear();
  open_sets_.clear();
  ++forgotten_;
  count(-static_cast<int64_t>(bytes_.load()));
}

}  // namespace rbee::grammar
