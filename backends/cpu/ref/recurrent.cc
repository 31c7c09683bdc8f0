#include "backends/cpu/ref/recurrent.h"

#include <algorithm>
#include <vector>

#include "backends/cpu/ref/loop.h"
#include "backends/cpu/ref/number.h"
#include "backends/shared/scalar.h"

namespace rbee::cpu {
namespace {

// The tokens of a sequence, and where its state is.
struct Run {
  int64_t first, end;
  int64_t slot;  // -1: padding
  bool fresh;    // it begins with zeros
};

template <typename Body>
void for_each_run(const StateBatch& batch, Body body) {
  const auto* starts = batch.seq_starts.as<int32_t>();
  for (int64_t seq = 0; seq < batch.slots.size(0); ++seq) {
    const int64_t first = starts[seq], end = starts[seq + 1];
    if (first == end) continue;
    const int64_t slot = batch.slots.as<int32_t>()[seq];
    body(Run{first, end, slot, batch.positions.as<int32_t>()[first] == 0});
  }
}

// The state of a run in double: zeros, or what `kept` holds.
std::vector<double> begin_with(const Run& run, const float* kept, int64_t count) {
  if (run.fresh) return std::vector<double>(static_cast<size_t>(count));
  return {kept, kept + count};
}

// The results of padding. y: any axes behind the tokens.
template <typename T>
void clear(const Run& run, View y) {
  y.data = y.as<T>() + run.first * y.strides[0];
  y.sizes[0] = run.end - run.first;
  for_each([&](int64_t at) { y.as<T>()[at] = store<T>(0.0); }, y);
}

template <typename T>
void convolve(const CausalConvArgs& args, const Run& run) {
  const int64_t taps = args.weight.size(0) - 1, channels = args.x.size(1);
  float* const kept = args.state.as<float>() + run.slot * taps * channels;
  // The sequence's rows with those before them.
  std::vector<double> u = begin_with(run, kept, taps * channels);
  for (int64_t t = run.first; t < run.end; ++t) {
    for (int64_t c = 0; c < channels; ++c) {
      u.push_back(static_cast<double>(load(args.x.as<T>()[offset_of(args.x, t, c)])));
    }
  }
  for (int64_t t = 0; t < run.end - run.first; ++t) {
    for (int64_t c = 0; c < channels; ++c) {
      double sum = 0;
      for (int64_t j = 0; j <= taps; ++j) {
        sum += double{args.weight.as<float>()[j * channels + c]} *
               u[static_cast<size_t>((t + j) * channels + c)];
      }
      args.y.as<T>()[offset_of(args.y, run.first + t, c)] = store<T>(shared::silu(sum));
    }
  }
  std::copy(u.end() - taps * channels, u.end(), kept);
}

void run_causal_conv(const CausalConvArgs& args, Stream&) {
  dispatch<float, f16, bf16, double>("causal_conv", args.x.dtype, [&]<typename T>() {
    for_each_run(args.batch, [&](const Run& run) {
      run.slot < 0 ? clear<T>(run, args.y) : convolve<T>(args, run);
    });
  });
}

double softplus(double x) {
  return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x));
}

// A head's row of a token.
template <typename T>
std::vector<double> row_of(const View& view, int64_t token, int64_t head) {
  std::vector<double> out;
  for (int64_t i = 0; i < view.size(2); ++i) {
    out.push_back(static_cast<double>(load(view.as<T>()[offset_of(view, token, head, i)])));
  }
  return out;
}

template <typename T>
void recur(const DeltaRuleArgs& args, const Run& run, int64_t head) {
  const int64_t heads = args.v.size(1), key_heads = args.k.size(1);
  const int64_t key_head = args.tiled ? head % key_heads : head / (heads / key_heads);
  const int64_t keys = args.k.size(2), values = args.v.size(2);
  float* const kept = args.state.as<float>() + (run.slot * heads + head) * keys * values;
  std::vector<double> state = begin_with(run, kept, keys * values);
  const auto number = [&](const View& view, int64_t token) {
    return static_cast<double>(load(view.as<T>()[offset_of(view, token, head)]));
  };
  for (int64_t t = run.first; t < run.end; ++t) {
    const std::vector<double> q = row_of<T>(args.q, t, key_head);
    const std::vector<double> k = row_of<T>(args.k, t, key_head);
    const std::vector<double> v = row_of<T>(args.v, t, head);
    const double step = softplus(number(args.a, t) + double{args.a_bias.as<float>()[head]});
    const double decay = std::exp(double{args.decay.as<float>()[head]} * step);
    const double beta = shared::sigmoid(number(args.b, t));
    for (int64_t j = 0; j < values; ++j) {
      double known = 0;
      for (int64_t i = 0; i < keys; ++i) {
        double& s = state[static_cast<size_t>(i * values + j)];
        s *= decay;
        known += s * k[static_cast<size_t>(i)];
      }
      const double change = beta * (v[static_cast<size_t>(j)] - known);
      double sum = 0;
      for (int64_t i = 0; i < keys; ++i) {
        double& s = state[static_cast<size_t>(i * values + j)];
        s += k[static_cast<size_t>(i)] * change;
        sum += s * q[static_cast<size_t>(i)];
      }
      args.y.as<T>()[offset_of(args.y, t, head, j)] = store<T>(sum);
    }
  }
  std::ranges::copy(state, kept);
}

void run_delta_rule(const DeltaRuleArgs& args, Stream&) {
  dispatch<float, f16, bf16, double>("delta_rule", args.v.dtype, [&]<typename T>() {
    for_each_run(args.batch, [&](const Run& run) {
      if (run.slot < 0) return clear<T>(run, args.y);
      for (int64_t head = 0; head < args.v.size(1); ++head) recur<T>(args, run, head);
    });
  });
}

}  // namespace

const Impl<CausalConvArgs> ref_causal_conv{"ref", never_refuse, run_causal_conv};
const Impl<DeltaRuleArgs> ref_delta_rule{"ref", never_refuse, run_delta_rule};

}  // namespace rbee::cpu
