#pragma once
// Logits of a vocabulary whose ranges are on the ranks of a group.

#include <vector>

#include "rbee/group/share.h"
#include "rbee/ops/top_k.h"

namespace rbee::nn {

class SplitVocabulary {
 public:
  // All on one rank.
  explicit SplitVocabulary(int64_t tokens) : ranges_{{0, tokens}} {}
  // Parts of whole 64 tokens, which kernels of products take at once, if every rank gets some; else
  // of fewer.
  SplitVocabulary(int64_t tokens, const group::Membership& group);

  bool whole() const { return group_.alone(); }
  // This rank's tokens, and another's.
  const group::Range& own() const { return range(group_.rank); }
  const group::Range& range(int rank) const { return ranges_[static_cast<size_t>(rank)]; }
  // The same without the tokens from `tokens` on.
  SplitVocabulary first(int64_t tokens) const;

  // The calls below are for all ranks at once; every rank gets the same result. x: (rows, n) f32,
  // this rank's logits first, where further ones do not count. Both throw device if the group has
  // ended.

  // As rbee::top_k_() of whole rows.
  void top_k_(const TopK& out, const Tensor& x, const Tensor& scale = {}) const;
  // Whole rows (rows, tokens).
  Tensor gather(const Tensor& x) const;

 private:
  GroupView group_ = {};
  std::vector<group::Range> ranges_;  // by rank
};

}  // namespace rbee::nn
