#pragma once
// The loop of byte pair encoding (Sennrich et al. 2016, algorithm 1): while two neighbours have a
// merge, apply the one of lowest rank, the leftmost of equals. Short words scan an array; long ones
// use a queue, so a megabyte without a break takes n log n.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "rbee/text/tokenizer.h"

namespace rbee::text {

struct Merge {
  static constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();
  uint32_t rank = kNone;  // lower first
  TokenId id = -1;        // what the pair becomes
};

struct Symbol {
  TokenId id;
  uint32_t begin, length;  // bytes of the word
};

// A merge in the queue.
struct MergeEntry {
  uint32_t rank, at;  // at: index of the left symbol
  uint32_t length;    // of the merged symbol; another length now: the entry is stale
  TokenId id;
  // std::push_heap keeps the greatest on top.
  bool operator<(const MergeEntry& other) const {
    return rank != other.rank ? rank > other.rank : at > other.at;
  }
};

// Buffers that one encode() reuses for all of its words.
class MergeBuffers {
 public:
  std::vector<Symbol> symbols;  // in: the smallest parts; out: the tokens

  // lookup(const Symbol& left, const Symbol& right) -> Merge. Every symbol has length > 0.
  template <typename Lookup>
  void run(const Lookup& lookup) {
    if (symbols.size() < 2) return;
    if (symbols.size() <= kScanLimit) {
      scan(lookup);
    } else {
      queue(lookup);
    }
  }

 private:
  static constexpr size_t kScanLimit = 32;

  struct Link {
    int32_t previous, next;  // -1: none
  };
  template <typename Lookup>
  void scan(const Lookup& lookup) {
    Merge merges[kScanLimit];
    size_t count = symbols.size();
    for (size_t i = 0; i + 1 < count; ++i) merges[i] = lookup(symbols[i], symbols[i + 1]);
    while (count > 1) {
      size_t best = 0;
      for (size_t i = 1; i + 1 < count; ++i) {
        if (merges[i].rank < merges[best].rank) best = i;
      }
      if (merges[best].rank == Merge::kNone) break;
      symbols[best].id = merges[best].id;
      symbols[best].length += symbols[best + 1].length;
      --count;
      for (size_t i = best + 1; i < count; ++i) symbols[i] = symbols[i + 1];
      for (size_t i = best + 1; i + 1 < count; ++i) merges[i] = merges[i + 1];
      if (best + 1 < count) merges[best] = lookup(symbols[best], symbols[best + 1]);
      if (best > 0) merges[best - 1] = lookup(symbols[best - 1], symbols[best]);
    }
    symbols.resize(count);
  }

  template <typename Lookup>
  void queue(const Lookup& lookup) {
    const auto count = static_cast<int32_t>(symbols.size());
    links_.resize(symbols.size());
    entries_.clear();
    const auto offer = [&](int32_t left, int32_t right) {
      if (left < 0 || right < 0) return false;
      const Symbol& a = symbols[static_cast<size_t>(left)];
      const Symbol& b = symbols[static_cast<size_t>(right)];
      const Merge merge = lookup(a, b);
      if (merge.rank == Merge::kNone) return false;
      entries_.push_back({merge.rank, static_cast<uint32_t>(left), a.length + b.length, merge.id});
      return true;
    };
    for (int32_t i = 0; i < count; ++i) {
      links_[static_cast<size_t>(i)] = {i - 1, i + 1 < count ? i + 1 : -1};
      offer(i, i + 1 < count ? i + 1 : -1);
    }
    std::make_heap(entries_.begin(), entries_.end());
    while (!entries_.empty()) {
      std::pop_heap(entries_.begin(), entries_.end());
      const MergeEntry entry = entries_.back();
      entries_.pop_back();
      Symbol& left = symbols[entry.at];
      Link& link = links_[entry.at];
      if (left.length == 0 || link.next < 0) continue;
      Symbol& right = symbols[static_cast<size_t>(link.next)];
      if (left.length + right.length != entry.length) continue;
      left.id = entry.id;
      left.length = entry.length;
      right.length = 0;
      link.next = links_[static_cast<size_t>(link.next)].next;
      const auto at = static_cast<int32_t>(entry.at);
      if (link.next >= 0) links_[static_cast<size_t>(link.next)].previous = at;
      if (offer(link.previous, at)) std::push_heap(entries_.begin(), entries_.end());
      if (offer(at, link.next)) std::push_heap(entries_.begin(), entries_.end());
    }
    std::erase_if(symbols, [](const Symbol& symbol) { return symbol.length == 0; });
  }

  std::vector<Link> links_;
  std::vector<MergeEntry> entries_;
};

}  // namespace rbee::text
