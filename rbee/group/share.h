#pragma once
// Which part of a model one rank of a group holds. Every rank computes the parts of all, alike.

#include <cstdint>
#include <vector>

#include "backends/api/group_view.h"

namespace rbee::group {

// [first, first + count) of something that is counted
struct Range {
  int64_t first = 0;
  int64_t count = 0;

  int64_t end() const { return first + count; }
  bool operator==(const Range&) const = default;
};

struct Share {
  int rank = 0;
  int ranks = 1;
  std::vector<double> parts = {};  // sizes of the ranks' shares, relative; empty: equal ones

  bool alone() const { return ranks == 1; }
  // This rank's part of `total`, or another rank's. Cuts are at multiples of `unit`, nearest to
  // where the shares end; a part may be empty.
  Range range(int64_t total, int64_t unit) const { return range(total, unit, rank); }
  Range range(int64_t total, int64_t unit, int of_rank) const;
  // The largest of `units` that leaves every rank with a part of `total`; the last if none does.
  int64_t unit_for_all(int64_t total, const std::vector<int64_t>& units) const;
};

// Throws invalid_argument naming the value: ranks below 1, a rank outside of them, another number
// of parts than ranks, a part that is negative or not finite, and parts that are all 0.
void check_share(const Share& share);

// A rank's heads: key heads and the queries that read them.
struct HeadShare {
  Range queries;
  Range keys;
};

// Key heads go to ranks with all their queries. If there are more ranks than key heads, a run of
// neighbours has the same key head and shares its queries. heads: a multiple of kv_heads. Throws
// unsupported, naming both numbers, if a run has more ranks than queries.
HeadShare share_heads(const Share& share, int64_t heads, int64_t kv_heads);

// What one rank needs to load and run its part of a model.
struct Membership {
  Share share = {};
  GroupView view = {};

  bool alone() const { return share.alone(); }
};

}  // namespace rbee::group
