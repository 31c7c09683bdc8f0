#include "rbee/nn/split_vocabulary.h"

#include <algorithm>

#include "rbee/ops/collective.h"
#include "rbee/ops/concat.h"
#include "rbee/ops/elementwise.h"
#include "rbee/ops/indexing.h"

namespace rbee::nn {
namespace {

Tensor with_type(const Tensor& words, DType dtype) {
  View view = words.view();
  view.dtype = dtype;
  return Tensor::from_buffer(words.buffer(), view);
}

// The largest logits of each row on one rank, and their sums, in a list that travels as one: f32
// values (rows, count), i32 ids (rows, count), f32 sums (rows).
struct Largest {
  Largest(const Tensor& words, int64_t rows, int64_t count)
      : values(words.slice(Axis{0}, 0, rows * count).reshape({rows, count})),
        ids(with_type(words.slice(Axis{0}, rows * count, rows * count), DType::i32)
                .reshape({rows, count})),
        sums(words.slice(Axis{0}, 2 * rows * count, rows)) {}

  Tensor values, ids, sums;
};

// Of the first `count` of each row.
Tensor columns(const Tensor& x, int64_t count) {
  return x.slice(Axis{1}, 0, count);
}

}  // namespace

SplitVocabulary::SplitVocabulary(int64_t tokens, const group::Membership& group)
    : group_(group.view) {
  const int64_t unit = group.share.unit_for_all(tokens, {64, 16, 1});
  for (int rank = 0; rank < group.share.ranks; ++rank) {
    ranges_.push_back(group.share.range(tokens, unit, rank));
  }
}

SplitVocabulary SplitVocabulary::first(int64_t tokens) const {
  SplitVocabulary out = *this;
  for (group::Range& range : out.ranges_) {
    range.first = std::min(range.first, tokens);
    range.count = std::min(range.count, tokens - range.first);
  }
  return out;
}

void SplitVocabulary::top_k_(const TopK& out, const Tensor& x, const Tensor& scale) const {
  if (whole()) return rbee::top_k_(out, columns(x, own().count), scale);
  const int64_t rows = out.values.dim(0), k = out.values.dim(1);
  const Tensor words = zeros({rows * (2 * k + 1)}, DType::f32, x.device());
  const Largest mine(words, rows, k);
  if (const int64_t count = std::min(k, own().count); count > 0) {
    const TopK to{.values = columns(mine.values, count),
                  .ids = columns(mine.ids, count),
                  .sum = out.sum.defined() ? mine.sums : Tensor{}};
    rbee::top_k_(to, columns(x, own().count), scale);
  }
  const Tensor all = all_gather(words, group_);
  std::vector<Tensor> values, ids, sums;
  for (int rank = 0; rank < group_.ranks; ++rank) {
    const int64_t count = std::min(k, range(rank).count);
    if (count == 0) continue;
    const Largest theirs(all.slice(Axis{0}, rank, 1).squeeze(Axis{0}), rows, k);
    values.push_back(columns(theirs.values, count));
    const auto first = static_cast<double>(range(rank).first);
    ids.push_back(affine(columns(theirs.ids, count), 1, first));
    sums.push_back(theirs.sums);
  }
  // Of equal values the lower place comes first: that of the lower rank, whose ids are lower.
  const TopK places{.values = out.values, .ids = empty_like(out.ids), .sum = {}};
  rbee::top_k_(places, concat(values, Axis{1}));
  Tensor found = out.ids;
  copy_(found, rbee::gather(concat(ids, Axis{1}), Axis{1}, places.ids));
  if (!out.sum.defined()) return;
  // Each rank's sum is relative to its own largest.
  const Tensor largest = columns(out.values, 1).squeeze(Axis{1});
  Tensor sum = out.sum;
  fill_(sum, 0);
  for (size_t i = 0; i < sums.size(); ++i) {
    Tensor below = columns(values[i], 1).squeeze(Axis{1}) - largest;
    if (scale.defined()) below = below * scale;
    add_(sum, sums[i] * unary(UnaryOp::exp, below));
  }
}

Tensor SplitVocabulary::gather(const Tensor& x) const {
  if (whole()) return columns(x, own().count);
  const int64_t widest = std::ranges::max(ranges_, {}, &group::Range::count).count;
  Tensor mine = zeros({x.dim(0), widest}, x.dtype(), x.device());
  Tensor to = columns(mine, own().count);
  copy_(to, columns(x, own().count));
  const Tensor all = all_gather(mine, group_);
  std::vector<Tensor> parts;
  for (int rank = 0; rank < group_.ranks; ++rank) {
    const Tensor rows = all.slice(Axis{0}, rank, 1).squeeze(Axis{0});
    parts.push_back(columns(rows, range(rank).count));
  }
  return concat(parts, Axis{1});
}

}  // namespace rbee::nn
