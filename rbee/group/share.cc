#include "rbee/group/share.h"

#include <algorithm>
#include <cmath>

#include "rbee/core/error.h"

namespace rbee::group {
namespace {

// The sum of the parts of ranks [first, end).
double sum_of(const Share& share, int first, int end) {
  if (share.parts.empty()) return end - first;
  double sum = 0;
  for (int rank = first; rank < end; ++rank) sum += share.parts[static_cast<size_t>(rank)];
  return sum;
}

// Where the part of `rank` begins, if ranks [first, end) share `total`.
int64_t cut(const Share& share, int first, int end, int rank, int64_t total, int64_t unit) {
  if (rank >= end) return total;
  const double whole = sum_of(share, first, end);
  const double portion = whole > 0 ? sum_of(share, first, rank) / whole : 0;
  const double units = portion * static_cast<double>(total) / static_cast<double>(unit);
  return std::min(static_cast<int64_t>(std::llround(units)) * unit, total);
}

}  // namespace

Range Share::range(int64_t total, int64_t unit, int of_rank) const {
  RB_ASSERT(total >= 0 && unit > 0 && of_rank >= 0 && of_rank < ranks);
  const int64_t first = cut(*this, 0, ranks, of_rank, total, unit);
  return {.first = first, .count = cut(*this, 0, ranks, of_rank + 1, total, unit) - first};
}

int64_t Share::unit_for_all(int64_t total, const std::vector<int64_t>& units) const {
  for (const int64_t unit : units) {
    bool all = true;
    for (int of_rank = 0; of_rank < ranks; ++of_rank) {
      all = all && range(total, unit, of_rank).count > 0;
    }
    if (all) return unit;
  }
  return units.back();
}

void check_share(const Share& share) {
  constexpr const char* kOp = "group";
  check(share.ranks >= 1, kOp, "ranks is ", share.ranks, ", wanted at least 1");
  check(share.rank >= 0 && share.rank < share.ranks, kOp, "rank is ", share.rank, ", wanted 0 to ",
        share.ranks - 1);
  if (share.parts.empty()) return;
  check(std::ssize(share.parts) == share.ranks, kOp, "there are ", share.parts.size(),
        " parts for ", share.ranks, " ranks");
  double sum = 0;
  for (const double part : share.parts) {
    check(std::isfinite(part) && part >= 0, kOp, "a part is ", part,
          ", wanted a finite number of 0 or above");
    sum += part;
  }
  check(std::isfinite(sum) && sum > 0, kOp, "the sum of the parts is ", sum,
        ", wanted a finite number above 0");
}

HeadShare share_heads(const Share& share, int64_t heads, int64_t kv_heads) {
  RB_ASSERT(kv_heads > 0 && heads % kv_heads == 0);
  const int64_t each = heads / kv_heads;
  if (share.ranks <= kv_heads) {
    const Range keys = share.range(kv_heads, 1);
    return {.queries = {keys.first * each, keys.count * each}, .keys = keys};
  }
  // Key head h is that of ranks [run_of(h), run_of(h + 1)).
  const auto run_of = [&](int64_t head) {
    return static_cast<int>((head * share.ranks + kv_heads - 1) / kv_heads);
  };
  int64_t head = 0;
  while (run_of(head + 1) <= share.rank) ++head;
  const int first = run_of(head), end = run_of(head + 1);
  if (end - first > each) {
    fail(Code::unsupported, "group", "a group of ", share.ranks, " ranks has more ranks than heads",
         ": ", end - first, " of them share a key head with ", each, " queries (", heads,
         " heads, ", kv_heads, " key heads)");
  }
  const int64_t begin = cut(share, first, end, share.rank, each, 1);
  const int64_t next = cut(share, first, end, share.rank + 1, each, 1);
  return {.queries = {head * each + begin, next - begin}, .keys = {head, 1}};
}

}  // namespace rbee::group
