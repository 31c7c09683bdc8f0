#pragma once
// The addresses of one head's rows in dense attention, and the keys that they see. Include after a
// vec header.

#include "backends/api/args_attention.h"

namespace rbee::cpu {
namespace {

RB_INLINE int64_t within(int64_t x, int64_t low, int64_t high) {
  return x < low ? low : x > high ? high : x;
}

// Queries [first, first + rows) of one head.
struct HeadRows {
  const AttentionArgs& args;
  int64_t batch, head, first, rows;

  template <typename T>
  RB_INLINE T* row(const View& view, int64_t of_head, int64_t i) const {
    return static_cast<T*>(view.data) + batch * view.strides[0] + of_head * view.strides[1] +
           i * view.strides[2];
  }
  RB_INLINE int64_t kv_head() const { return head / (args.q.sizes[1] / args.k.sizes[1]); }
  // The keys [first_of, end_of) that query r sees.
  RB_INLINE int64_t place(int64_t r) const { return first + r + args.k.sizes[2] - args.q.sizes[2]; }
  RB_INLINE int64_t end_of(int64_t r) const {
    const int64_t keys = args.k.sizes[2];
    return args.causal ? within(place(r) + 1, 0, keys) : keys;
  }
  RB_INLINE int64_t first_of(int64_t r) const {
    return args.window > 0 ? within(place(r) + 1 - args.window, 0, args.k.sizes[2]) : 0;
  }
};

}  // namespace
}  // namespace rbee::cpu
