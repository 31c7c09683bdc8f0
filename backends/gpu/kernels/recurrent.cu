// Layers with a state. causal_conv: a thread a channel of a sequence. delta_rule: a block a head of
// a sequence, a thread a column of its state; tokens come one after another.
#include "backends/gpu/portable.h"
#include "backends/shared/recurrent_params.h"
#include "backends/shared/scalar.h"

namespace rbee {
namespace gpu {

constexpr int kConvThreads = 256;
constexpr int kRuleThreads = 128;
constexpr int kMostKeys = 256;  // as in ops/recurrent.cc

// The tokens of a sequence, and where its state is.
struct Run {
  i64 first, end;
  i64 slot;  // -1: padding
  bool fresh;

  RB_DEVICE Run(const StateLists& batch, i64 seq)
      : first(batch.seq_starts[seq]), end(batch.seq_starts[seq + 1]), slot(batch.slots[seq]) {
    fresh = first < end && batch.positions[first] == 0;
  }
};

// Row t of the sequence, or for t < 0 one before it.
template <class T>
RB_DEVICE Compute<T> conv_input(const CausalConvParams& p, const Run& run, const float* kept, i64 t,
                                i64 channel) {
  if (t >= 0) {
    return load_value(static_cast<const T*>(p.x)[(run.first + t) * p.x_row + channel * p.x_step]);
  }
  return run.fresh ? Compute<T>(0) : static_cast<Compute<T>>(kept[(p.taps + t) * p.channels]);
}

template <class T>
RB_DEVICE void causal_conv(const CausalConvParams& p) {
  using C = Compute<T>;
  const i64 channel = grid_thread();
  if (channel >= p.channels) return;
  const Run run(p.batch, block_y());
  T* y = static_cast<T*>(p.y) + channel * p.y_step;
  if (run.slot < 0) {
    for (i64 t = run.first; t < run.end; ++t) y[t * p.y_row] = store_value<T>(C(0));
    return;
  }
  float* kept = p.state + run.slot * p.taps * p.channels + channel;
  const i64 tokens = run.end - run.first;
  for (i64 t = 0; t < tokens; ++t) {
    C sum = 0;
    for (i32 j = 0; j <= p.taps; ++j) {
      sum += static_cast<C>(p.weight[j * p.channels + channel]) *
             conv_input<T>(p, run, kept, t - p.taps + j, channel);
    }
    y[(run.first + t) * p.y_row] = store_value<T>(silu(sum));
  }
  if (tokens == 0) return;
  // Oldest first: each row that it reads from the state is one that it has not written.
  for (i32 j = 0; j < p.taps; ++j) {
    kept[j * p.channels] =
        static_cast<float>(conv_input<T>(p, run, kept, tokens - p.taps + j, channel));
  }
}

template <class T>
RB_DEVICE Compute<T> element_of(const TokenHeads& rows, i64 token, i64 head, i64 i) {
  return load_value(
      static_cast<const T*>(rows.data)[token * rows.row + head * rows.head + i * rows.step]);
}

// log(1 + e^x), which neither overflows nor loses small results.
template <class C>
RB_DEVICE C softplus(C x) {
  const C most = x > C(0) ? x : C(0);
  const C e = exp(x > C(0) ? -x : x);
  // log1p(e) by Kahan's quotient.
  const C sum = C(1) + e;
  return most + (sum == C(1) ? e : log(sum) * e / (sum - C(1)));
}

template <class T>
RB_DEVICE void delta_rule(const DeltaRuleParams& p) {
  using C = Compute<T>;
  RB_SHARED C q[kMostKeys];
  RB_SHARED C k[kMostKeys];
  const i64 head = block_x();
  const Run run(p.batch, block_y());
  T* y = static_cast<T*>(p.y) + head * p.values;
  const i64 y_row = static_cast<i64>(p.heads) * p.values;
  if (run.slot < 0) {
    for (i64 t = run.first; t < run.end; ++t) {
      for (i32 j = thread_x(); j < p.values; j += kRuleThreads) {
        y[t * y_row + j] = store_value<T>(C(0));
      }
    }
    return;
  }
  const i64 key_head = p.tiled != 0 ? head % p.key_heads : head / (p.heads / p.key_heads);
  float* state = p.state + (run.slot * p.heads + head) * p.keys * p.values;
  for (i64 t = run.first; t < run.end; ++t) {
    barrier();  // all have read the keys before
    for (i32 i = thread_x(); i < p.keys; i += kRuleThreads) {
      q[i] = element_of<T>(p.q, t, key_head, i);
      k[i] = element_of<T>(p.k, t, key_head, i);
    }
    barrier();
    const C step = softplus(element_of<T>(p.a, t, head, 0) + static_cast<C>(p.a_bias[head]));
    const C decay = exp(static_cast<C>(p.decay[head]) * step);
    const C beta = sigmoid(element_of<T>(p.b, t, head, 0));
    const bool zero = run.fresh && t == run.first;
    for (i32 j = thread_x(); j < p.values; j += kRuleThreads) {
      float* column = state + j;
      C known = 0;
      for (i32 i = 0; !zero && i < p.keys; ++i) {
        known += static_cast<C>(column[static_cast<i64>(i) * p.values]) * k[i];
      }
      const C change = beta * (element_of<T>(p.v, t, head, j) - decay * known);
      C sum = 0;
      for (i32 i = 0; i < p.keys; ++i) {
        float* at = column + static_cast<i64>(i) * p.values;
        const C next = (zero ? C(0) : decay * static_cast<C>(*at)) + k[i] * change;
        *at = static_cast<float>(next);
        sum += next * q[i];
      }
      y[t * y_row + j] = store_value<T>(sum);
    }
  }
}

#define RB_CONV(dtype, T) \
  RB_KERNEL(causal_conv_##dtype, kConvThreads, CausalConvParams, (causal_conv<T>(p)))
RB_EACH_FLOAT_AND_F64(RB_CONV)
#define RB_RULE(dtype, T) \
  RB_KERNEL(delta_rule_##dtype, kRuleThreads, DeltaRuleParams, (delta_rule<T>(p)))
RB_EACH_FLOAT_AND_F64(RB_RULE)

}  // namespace gpu
}  // namespace rbee
