// Layers with a state: causal_conv and delta_rule.
#include <cmath>

#include "tests/support/op_table.h"

namespace rbee::harness {
namespace {

// New tokens of a sequence, behind `before` tokens that its state holds.
struct StateRun {
  int64_t tokens = 0;
  int32_t before = 0;
  int32_t slot = 0;  // -1: padding
};

constexpr int64_t kSlots = 7;

// Prompts from their beginning and further parts, single tokens, a sequence without tokens, and
// padding.
std::vector<StateRun> ragged() {
  return {{.tokens = 1, .before = 9, .slot = 4},   {.tokens = 1, .before = 0, .slot = 2},
          {.tokens = 37, .before = 0, .slot = 6},  {.tokens = 0, .before = 0, .slot = 5},
          {.tokens = 5, .before = 11, .slot = -1}, {.tokens = 2, .before = 3, .slot = 0},
          {.tokens = 19, .before = 64, .slot = 3}};
}

int64_t tokens_of(const std::vector<StateRun>& runs) {
  int64_t sum = 0;
  for (const StateRun& run : runs) sum += run.tokens;
  return sum;
}

StateBatch build_batch(const std::vector<StateRun>& runs, Scene& scene) {
  std::vector<int32_t> starts{0}, positions, slots;
  for (const StateRun& run : runs) {
    for (int32_t i = 0; i < run.tokens; ++i) positions.push_back(run.before + i);
    starts.push_back(static_cast<int32_t>(positions.size()));
    slots.push_back(run.slot);
  }
  const auto list = [&](const std::vector<int32_t>& values) {
    return scene.input_of<int32_t>({std::ssize(values)}, values);
  };
  return {.seq_starts = list(starts), .positions = list(positions), .slots = list(slots)};
}

struct ConvCase {
  std::vector<StateRun> runs = ragged();
  int64_t channels = 1, taps = 3;
  DType dtype = DType::f32;
  Form form = Form::contiguous;
  bool big = false;
};

std::vector<ConvCase> conv_cases() {
  std::vector<ConvCase> out;
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::f64}) {
    out.push_back({.channels = 48, .dtype = dtype});
    out.push_back({.channels = 301, .dtype = dtype, .form = Form::gaps});
  }
  out.push_back({.channels = 5});
  out.push_back({.channels = 19, .taps = 1});
  out.push_back({.channels = 33, .taps = 6});
  out.push_back({.runs = {}, .channels = 8});
  out.push_back({.runs = {{.tokens = 64, .slot = 1}}, .channels = 2048, .big = true});
  return out;
}

// in: x, weight, seq_starts, positions, slots, state
std::vector<HostArray> conv_formula(const ConvCase& c, const std::vector<HostArray>& in) {
  const HostArray &x = in[0], &weight = in[1];
  HostArray y = host_zeros(x.shape), state = in[5];
  int64_t first = 0;
  for (const StateRun& run : c.runs) {
    for (int64_t channel = 0; run.slot >= 0 && channel < c.channels; ++channel) {
      // From -taps on.
      std::vector<double> u(static_cast<size_t>(c.taps), 0);
      const auto kept = [&](int64_t tap) {
        return (run.slot * c.taps + tap) * c.channels + channel;
      };
      for (int64_t tap = 0; run.before > 0 && tap < c.taps; ++tap) {
        u[static_cast<size_t>(tap)] = in[5][kept(tap)];
      }
      for (int64_t t = 0; t < run.tokens; ++t) u.push_back(x[(first + t) * c.channels + channel]);
      for (int64_t t = 0; t < run.tokens; ++t) {
        double sum = 0;
        for (int64_t j = 0; j <= c.taps; ++j) {
          sum += weight[j * c.channels + channel] * u[static_cast<size_t>(t + j)];
        }
        y[(first + t) * c.channels + channel] = sum / (1 + std::exp(-sum));
      }
      for (int64_t tap = 0; run.tokens > 0 && tap < c.taps; ++tap) {
        state[kept(tap)] = u[static_cast<size_t>(run.tokens + tap)];
      }
    }
    first += run.tokens;
  }
  return {y, state};
}

OpTable conv_table() {
  OpTable out("causal_conv");
  for (const ConvCase& c : conv_cases()) {
    out.add<CausalConvArgs>(
        &KernelTable::causal_conv,
        {.name = cat(c.dtype, ' ', tokens_of(c.runs), " tokens of ", c.runs.size(), " channels ",
                     c.channels, " taps ", c.taps, c.form == Form::gaps ? " gaps" : ""),
         .family = Family::product,
         .build =
             [c](Scene& scene) {
               const int64_t tokens = tokens_of(c.runs);
               CausalConvArgs args{};
               args.x = scene.input({{tokens, c.channels}, c.form}, c.dtype);
               args.weight = scene.input({{c.taps + 1, c.channels}}, DType::f32, {-1, 1});
               args.batch = build_batch(c.runs, scene);
               args.y = scene.output({{tokens, c.channels}}, c.dtype);
               args.state = scene.in_out({{kSlots, c.taps, c.channels}}, DType::f32);
               scene.flops = static_cast<double>(2 * tokens * c.channels * (c.taps + 1));
               return args;
             },
         .formula = [c](const std::vector<HostArray>& in) { return conv_formula(c, in); },
         .big = c.big});
  }
  return out;
}

struct DeltaCase {
  std::vector<StateRun> runs = ragged();
  int64_t key_heads = 1, value_heads = 1, key_dim = 16, value_dim = 16;
  DType dtype = DType::f32;
  Form form = Form::contiguous;
  bool tiled = false;
  bool big = false;
};

std::vector<DeltaCase> delta_cases() {
  std::vector<DeltaCase> out;
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::f64}) {
    for (const bool tiled : {false, true}) {
      out.push_back({.key_heads = 2, .value_heads = 6, .dtype = dtype, .tiled = tiled});
    }
  }
  for (const Form form : {Form::contiguous, Form::gaps}) {
    out.push_back({.key_heads = 2, .value_heads = 2, .key_dim = 24, .value_dim = 48, .form = form});
    out.push_back({.key_heads = 3, .value_heads = 3, .key_dim = 7, .value_dim = 5, .form = form});
  }
  out.push_back({.value_heads = 2, .key_dim = 1, .value_dim = 8});
  out.push_back({.key_dim = 128, .value_dim = 128});
  out.push_back({.runs = {}});
  out.push_back({.runs = {{.tokens = 32, .slot = 1}},
                 .key_heads = 2,
                 .value_heads = 4,
                 .key_dim = 128,
                 .value_dim = 128,
                 .big = true});
  return out;
}

// in: q, k, v, a, b, decay, a_bias, seq_starts, positions, slots, state
std::vector<HostArray> delta_formula(const DeltaCase& c, const std::vector<HostArray>& in) {
  HostArray y = host_zeros(in[2].shape), state = in[10];
  const int64_t keys = c.key_dim, values = c.value_dim;
  const auto each = [&](const StateRun& run, int64_t first, int64_t head) {
    const int64_t own = c.tiled ? head % c.key_heads : head * c.key_heads / c.value_heads;
    const int64_t at = (run.slot * c.value_heads + head) * keys * values;
    std::vector<double> s(static_cast<size_t>(keys * values), 0);
    for (size_t i = 0; run.before > 0 && i < s.size(); ++i) {
      s[i] = in[10][at + static_cast<int64_t>(i)];
    }
    for (int64_t t = first; t < first + run.tokens; ++t) {
      const auto q = [&](int64_t i) { return in[0][(t * c.key_heads + own) * keys + i]; };
      const auto k = [&](int64_t i) { return in[1][(t * c.key_heads + own) * keys + i]; };
      const int64_t place = t * c.value_heads + head;
      const double decay = std::exp(in[5][head] * std::log1p(std::exp(in[3][place] + in[6][head])));
      const double beta = 1 / (1 + std::exp(-in[4][place]));
      for (int64_t j = 0; j < values; ++j) {
        const auto column = [&](int64_t i) -> double& {
          return s[static_cast<size_t>(i * values + j)];
        };
        double known = 0, sum = 0;
        for (int64_t i = 0; i < keys; ++i) known += decay * column(i) * k(i);
        const double change = beta * (in[2][place * values + j] - known);
        for (int64_t i = 0; i < keys; ++i) {
          column(i) = decay * column(i) + k(i) * change;
          sum += column(i) * q(i);
        }
        y[place * values + j] = sum;
      }
    }
    for (size_t i = 0; run.tokens > 0 && i < s.size(); ++i) {
      state[at + static_cast<int64_t>(i)] = s[i];
    }
  };
  int64_t first = 0;
  for (const StateRun& run : c.runs) {
    for (int64_t head = 0; run.slot >= 0 && head < c.value_heads; ++head) each(run, first, head);
    first += run.tokens;
  }
  return {y, state};
}

DeltaRuleArgs build_delta(const DeltaCase& c, Scene& scene) {
  const int64_t tokens = tokens_of(c.runs);
  // As long as unit vectors, or the state grows without bound.
  const double most = std::sqrt(3.0 / static_cast<double>(c.key_dim));
  const Layout keys{{tokens, c.key_heads, c.key_dim}, c.form};
  const Layout values{{tokens, c.value_heads, c.value_dim}, c.form};
  const Layout gates{{tokens, c.value_heads}, c.form};
  DeltaRuleArgs args{};
  args.q = scene.input(keys, c.dtype, {-most, most});
  args.k = scene.input(keys, c.dtype, {-most, most});
  args.v = scene.input(values, c.dtype);
  args.a = scene.input(gates, c.dtype, {-4, 2});
  args.b = scene.input(gates, c.dtype);
  args.decay = scene.input({{c.value_heads}}, DType::f32, {-1, -0.01});
  args.a_bias = scene.input({{c.value_heads}}, DType::f32, {-1, 1});
  args.batch = build_batch(c.runs, scene);
  args.tiled = c.tiled;
  args.y = scene.output({{tokens, c.value_heads, c.value_dim}}, c.dtype);
  args.state = scene.in_out({{kSlots, c.value_heads, c.key_dim, c.value_dim}}, DType::f32);
  scene.flops = static_cast<double>(7 * tokens * c.value_heads * c.key_dim * c.value_dim);
  return args;
}

OpTable delta_table() {
  OpTable out("delta_rule");
  for (const DeltaCase& c : delta_cases()) {
    out.add<DeltaRuleArgs>(
        &KernelTable::delta_rule,
        {.name = cat(c.dtype, ' ', tokens_of(c.runs), " tokens of ", c.runs.size(), " heads ",
                     c.key_heads, '/', c.value_heads, " dim ", c.key_dim, '/', c.value_dim,
                     c.tiled ? " tiled" : "", c.form == Form::gaps ? " gaps" : ""),
         .family = Family::product,
         .build = [c](Scene& scene) { return build_delta(c, scene); },
         .formula = [c](const std::vector<HostArray>& in) { return delta_formula(c, in); },
         .big = c.big});
  }
  return out;
}

const RegisterOp kConv(conv_table);
const RegisterOp kDelta(delta_table);

}  // namespace
}  // namespace rbee::harness
