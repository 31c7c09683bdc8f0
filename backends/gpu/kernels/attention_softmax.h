#pragma once
// The online softmax of a tile of scores for the matrix-unit kernels, in base 2.

#include "backends/gpu/instructions.h"
#include "backends/gpu/kernels/attention.h"

namespace rbee {
namespace gpu {

// How a kernel computes scores. Without `shaped`, a product times `factor` is a score in base 2.
struct ScoreRule {
  bool shaped;  // softcap, ALiBi, a mask or a scale that reverses the order
  float factor;
};

RB_DEVICE ScoreRule score_rule(const AttentionParams& p) {
  const bool shaped = p.softcap > 0 || p.slopes != nullptr || p.mask != nullptr || !(p.scale > 0);
  return {shaped, shaped ? 1.0f : p.scale * kLog2E};
}

// tanh to about 1e-7 (absolute): an error of the score is a relative error of the weight.
RB_DEVICE float fast_tanh(float x) {
  return 1.0f - 2.0f / (fast_exp2(x * (2.0f * kLog2E)) + 1.0f);
}

// A product as a score in base 2.
RB_DEVICE float shaped_score(const AttentionParams& p, const TileWork& work, i64 query, i64 key,
                             float product) {
  float score = product * p.scale;
  if (p.softcap > 0) score = p.softcap * fast_tanh(score / p.softcap);
  if (p.slopes != nullptr) {
    const i64 behind = work.span.place(query) - key;
    score -= p.slopes[work.head * p.slope_step] * static_cast<float>(behind < 0 ? -behind : behind);
  }
  if (p.mask != nullptr) {
    score += p.mask[work.span.index * p.mask_at.batch + work.head * p.mask_at.head +
                    query * p.mask_at.time + key * p.mask_at.step];
  }
  return score * kLog2E;
}

// The sum of a query's weights, plus its head's sink if there is one. `level`: the number
// subtracted from scores in base 2 before they became weights. Without keys there is no sink
// either.
RB_DEVICE float with_sink(const AttentionParams& p, i32 head, float sum, float level) {
  if (p.sinks == nullptr || !(sum > 0)) return sum;
  return sum + fast_exp2(p.sinks[head] * kLog2E - level);
}

// The keys that a tile's queries see, and a part of them that every query sees: all of it without
// key_ends. Both ends of what a query sees grow with the query then.
struct TileKeys {
  i64 first, end;
  i64 all_first, all_end;
};

RB_DEVICE TileKeys tile_keys(const AttentionParams& p, const TileWork& work) {
  const KeyRange lowest = visible_keys(p, work.span, work.first);
  const KeyRange highest = visible_keys(p, work.span, work.first + work.count - 1);
  return {lowest.first, last_end(p, work), highest.first, lowest.end};
}

}  // namespace gpu
}  // namespace rbee
