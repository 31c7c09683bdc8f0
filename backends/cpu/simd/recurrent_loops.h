#pragma once
// causal_conv and delta_rule. Include after a vec header.

#include "backends/api/args_recurrent.h"
#include "backends/api/impl.h"
#include "backends/cpu/simd/storage.h"
#include "backends/cpu/thread_pool.h"

namespace rbee::cpu {
namespace {

constexpr int64_t kConvColumns = 256;  // channels that one thread does at a time
constexpr int64_t kDeltaTokens = 16;   // tokens whose keys and queries are widened at a time
constexpr int64_t kDeltaKeys = 256;    // most elements of a key

// The tokens of a sequence, and where its state is.
struct Run {
  int64_t first, end;
  int64_t slot;  // -1: padding
  bool fresh;    // it begins with zeros
};

RB_INLINE Run run_of(const StateBatch& batch, int64_t seq) {
  const auto* starts = static_cast<const int32_t*>(batch.seq_starts.data);
  const auto* positions = static_cast<const int32_t*>(batch.positions.data);
  const int64_t slot = static_cast<const int32_t*>(batch.slots.data)[seq];
  const int64_t first = starts[seq], end = starts[seq + 1];
  return {first, end, slot, first < end && positions[first] == 0};
}

const char* refuse_causal_conv(const CausalConvArgs& args) {
  if (!is_storage(args.x.dtype)) return "takes f32, f16 and bf16";
  if (args.x.strides[1] != 1 || args.y.strides[1] != 1) return "takes rows without gaps";
  return nullptr;
}

// A sequence's rows of `count` channels from `channel` on.
template <typename T>
struct ConvColumns {
  const CausalConvArgs& args;
  Run run;
  int64_t channel, count;
  int64_t taps = args.weight.sizes[0] - 1;
  int64_t channels = args.x.sizes[1];
  float* kept = static_cast<float*>(args.state.data) + run.slot * taps * channels + channel;

  RB_INLINE const T* row(int64_t t) const {
    return static_cast<const T*>(args.x.data) + (run.first + t) * args.x.strides[0] + channel;
  }
  // Row t of the sequence, or for t < 0 one before it.
  RB_INLINE Vec input(int64_t t, int64_t c, int64_t n) const {
    if (t >= 0) return n == kLanes ? load(row(t) + c) : load_first(row(t) + c, n);
    if (run.fresh) return splat(0);
    const float* from = kept + (taps + t) * channels + c;
    return n == kLanes ? load(from) : load_first(from, n);
  }
  RB_INLINE void convolve(int64_t c, int64_t n) const {
    const float* weight = static_cast<const float*>(args.weight.data) + channel + c;
    for (int64_t t = 0; t < run.end - run.first; ++t) {
      Vec sum = splat(0);
      for (int64_t j = 0; j <= taps; ++j) {
        const float* from = weight + j * channels;
        sum = fma(n == kLanes ? load(from) : load_first(from, n), input(t - taps + j, c, n), sum);
      }
      const Vec out = sum / (splat(1.0f) + exp(-sum));
      T* to = static_cast<T*>(args.y.data) + (run.first + t) * args.y.strides[0] + channel + c;
      n == kLanes ? store(to, out) : store_first(to, out, n);
    }
  }
  // Oldest first: each row that it reads from the state is one that it has not written.
  RB_INLINE void keep(int64_t c, int64_t n) const {
    for (int64_t j = 0; j < taps; ++j) {
      const Vec last = input(run.end - run.first - taps + j, c, n);
      float* to = kept + j * channels + c;
      n == kLanes ? store(to, last) : store_first(to, last, n);
    }
  }
  RB_INLINE void all() const {
    for (int64_t c = 0; c < count; c += kLanes) {
      const int64_t n = count - c < kLanes ? count - c : kLanes;
      convolve(c, n);
      keep(c, n);
    }
  }
};

// The results of padding, `count` of each token.
template <typename T>
RB_INLINE void clear(const View& y, const Run& run, int64_t first, int64_t count) {
  for (int64_t t = run.first; t < run.end; ++t) {
    T* to = static_cast<T*>(y.data) + t * y.strides[0] + first;
    for (int64_t i = 0; i < count; ++i) to[i] = T{};
  }
}

void run_causal_conv(const CausalConvArgs& args, Stream&) {
  const int64_t channels = args.x.sizes[1], seqs = args.batch.slots.sizes[0];
  const int64_t pieces = (channels + kConvColumns - 1) / kConvColumns;
  ThreadPool::shared().parallel_for(seqs * pieces, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) {
      const Run run = run_of(args.batch, i / pieces);
      const int64_t channel = i % pieces * kConvColumns;
      const int64_t count = channels - channel < kConvColumns ? channels - channel : kConvColumns;
      if (run.first == run.end) continue;
      with_storage(args.x.dtype, [&]<typename T>() {
        if (run.slot < 0) return clear<T>(args.y, run, channel, count);
        ConvColumns<T>{.args = args, .run = run, .channel = channel, .count = count}.all();
      });
    }
  });
}

const char* refuse_delta_rule(const DeltaRuleArgs& args) {
  if (!is_storage(args.v.dtype)) return "takes f32, f16 and bf16";
  for (const View* view : {&args.q, &args.k, &args.v}) {
    if (view->strides[2] != 1) return "takes heads without gaps";
  }
  if (args.k.sizes[2] > kDeltaKeys) return "takes keys of up to 256 elements";
  if (args.v.sizes[2] % kLanes != 0) return "takes values of whole registers";
  return nullptr;
}

// A few tokens of one head, in f32.
struct DeltaTokens {
  int64_t count, keys;
  float q[kDeltaTokens * kDeltaKeys], k[kDeltaTokens * kDeltaKeys];
  float decay[kDeltaTokens], beta[kDeltaTokens];
};

template <typename T>
RB_INLINE void widen(const T* from, float* to, int64_t count) {
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) store(to + i, load(from + i));
  if (i < count) store_first(to + i, load_first(from + i, count - i), count - i);
}

template <typename T>
RB_INLINE float number(const View& view, int64_t token, int64_t head) {
  return load1(static_cast<const T*>(view.data) + token * view.strides[0] + head * view.strides[1]);
}

RB_INLINE float softplus(float x) {
  return x > 0 ? x + __builtin_log1pf(__builtin_expf(-x)) : __builtin_log1pf(__builtin_expf(x));
}

template <typename T>
RB_INLINE void read_tokens(const DeltaRuleArgs& args, int64_t first, int64_t head, int64_t key_head,
                           DeltaTokens& out) {
  const float rate = static_cast<const float*>(args.decay.data)[head];
  const float bias = static_cast<const float*>(args.a_bias.data)[head];
  for (int64_t t = 0; t < out.count; ++t) {
    const auto row = [&](const View& view) {
      return static_cast<const T*>(view.data) + (first + t) * view.strides[0] +
             key_head * view.strides[1];
    };
    widen(row(args.q), out.q + t * out.keys, out.keys);
    widen(row(args.k), out.k + t * out.keys, out.keys);
    const float step = softplus(number<T>(args.a, first + t, head) + bias);
    out.decay[t] = __builtin_expf(rate * step);
    out.beta[t] = 1.0f / (1.0f + __builtin_expf(-number<T>(args.b, first + t, head)));
  }
}

// kWide registers of columns of the state, which stay in the first cache for all the tokens. Each
// token reads them twice and writes them once; its decay is applied on the way.
template <int kWide, typename T>
RB_INLINE void advance_columns(const DeltaTokens& tokens, float* state, int64_t values, const T* v,
                               int64_t v_step, T* y, int64_t y_step) {
  constexpr int kChains = 4 / kWide;  // sums of their own, for the latency of fma
  for (int64_t t = 0; t < tokens.count; ++t) {
    const float* k = tokens.k + t * tokens.keys;
    const float* q = tokens.q + t * tokens.keys;
    const Vec decay = splat(tokens.decay[t]);
    Vec known[kWide][kChains], sums[kWide][kChains], change[kWide];
    for (int w = 0; w < kWide; ++w) {
      for (int c = 0; c < kChains; ++c) known[w][c] = sums[w][c] = splat(0);
    }
    int64_t i = 0;
    for (; i + kChains <= tokens.keys; i += kChains) {
      for (int c = 0; c < kChains; ++c) {
        for (int w = 0; w < kWide; ++w) {
          const float* s = state + (i + c) * values + w * kLanes;
          known[w][c] = fma(load(s), splat(k[i + c]), known[w][c]);
        }
      }
    }
    for (; i < tokens.keys; ++i) {
      for (int w = 0; w < kWide; ++w) {
        known[w][0] = fma(load(state + i * values + w * kLanes), splat(k[i]), known[w][0]);
      }
    }
    for (int w = 0; w < kWide; ++w) {
      for (int c = 1; c < kChains; ++c) known[w][0] = known[w][0] + known[w][c];
      const Vec wanted = load(v + t * v_step + w * kLanes);
      change[w] = splat(tokens.beta[t]) * (wanted - decay * known[w][0]);
    }
    for (i = 0; i < tokens.keys; ++i) {
      for (int w = 0; w < kWide; ++w) {
        float* s = state + i * values + w * kLanes;
        const Vec next = fma(splat(k[i]), change[w], decay * load(s));
        store(s, next);
        Vec& sum = sums[w][i % kChains];
        sum = fma(next, splat(q[i]), sum);
      }
    }
    for (int w = 0; w < kWide; ++w) {
      for (int c = 1; c < kChains; ++c) sums[w][0] = sums[w][0] + sums[w][c];
      store(y + t * y_step + w * kLanes, sums[w][0]);
    }
  }
}

template <typename T>
RB_INLINE void recur(const DeltaRuleArgs& args, const Run& run, int64_t head, float* state) {
  const int64_t heads = args.v.sizes[1], key_heads = args.k.sizes[1];
  const int64_t key_head = args.tiled ? head % key_heads : head / (heads / key_heads);
  const int64_t values = args.v.sizes[2];
  DeltaTokens tokens;
  tokens.keys = args.k.sizes[2];
  const auto row = [&](const View& view, int64_t token) {
    return static_cast<T*>(view.data) + token * view.strides[0] + head * view.strides[1];
  };
  for (int64_t t = run.first; t < run.end; t += kDeltaTokens) {
    tokens.count = run.end - t < kDeltaTokens ? run.end - t : kDeltaTokens;
    read_tokens<T>(args, t, head, key_head, tokens);
    int64_t j = 0;
    for (; j + 2 * kLanes <= values; j += 2 * kLanes) {
      advance_columns<2, T>(tokens, state + j, values, row(args.v, t) + j, args.v.strides[0],
                            row(args.y, t) + j, args.y.strides[0]);
    }
    if (j == values) continue;
    advance_columns<1, T>(tokens, state + j, values, row(args.v, t) + j, args.v.strides[0],
                          row(args.y, t) + j, args.y.strides[0]);
  }
}

void run_delta_rule(const DeltaRuleArgs& args, Stream&) {
  const int64_t heads = args.v.sizes[1], seqs = args.batch.slots.sizes[0];
  const int64_t size = args.k.sizes[2] * args.v.sizes[2];
  ThreadPool::shared().parallel_for(seqs * heads, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t head = i % heads;
      const Run run = run_of(args.batch, i / heads);
      if (run.first == run.end) continue;
      with_storage(args.v.dtype, [&]<typename T>() {
        if (run.slot < 0) {
          return clear<T>(args.y, run, head * args.y.strides[1], args.v.sizes[2]);
        }
        float* state = static_cast<float*>(args.state.data) + (run.slot * heads + head) * size;
        for (int64_t e = 0; run.fresh && e < size; ++e) state[e] = 0;
        recur<T>(args, run, head, state);
      });
    }
  });
}

}  // namespace
}  // namespace rbee::cpu
