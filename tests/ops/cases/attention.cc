// Dense scaled dot-product attention.
#include <algorithm>
#include <cmath>

#include "tests/support/op_table.h"

namespace rbee::harness {
namespace {

struct AttentionCase {
  int64_t batch = 1, heads = 1, kv_heads = 1, q_len = 1, kv_len = 1, head_dim = 8, v_dim = 8;
  float softcap = 0;
  int64_t window = 0;
  bool causal = false, mask = false, alibi = false;
  uint32_t mask_broadcast = 0;
  Values queries, keys, values;
  bool time_first = false;  // q, k, v, y: (batch, time, heads, dim) in memory
  DType dtype = DType::f32;
  bool big = false;
};

std::vector<AttentionCase> cases() {
  return {
      {},
      {.batch = 2, .heads = 3, .kv_heads = 3, .q_len = 5, .kv_len = 7, .v_dim = 6},
      {.heads = 4,
       .kv_heads = 2,
       .q_len = 17,
       .kv_len = 17,
       .head_dim = 5,
       .v_dim = 5,
       .causal = true},
      {.batch = 2,
       .heads = 6,
       .kv_heads = 1,
       .q_len = 1,
       .kv_len = 67,
       .head_dim = 64,
       .v_dim = 64,
       .causal = true},
      {.batch = 2,
       .heads = 4,
       .kv_heads = 2,
       .q_len = 9,
       .kv_len = 33,
       .head_dim = 16,
       .v_dim = 16,
       .causal = true,
       .time_first = true},
      {.heads = 2, .q_len = 19, .kv_len = 23, .window = 4, .causal = true},
      {.heads = 2, .q_len = 7, .kv_len = 7, .window = 3},
      {.heads = 2, .q_len = 6, .kv_len = 11, .softcap = 1.5f, .causal = true},
      {.heads = 3, .kv_heads = 3, .q_len = 8, .kv_len = 8, .causal = true, .alibi = true},
      {.heads = 2, .q_len = 4, .kv_len = 9, .alibi = true},
      {.batch = 2, .heads = 2, .q_len = 3, .kv_len = 5, .mask = true},
      {.batch = 2, .heads = 2, .q_len = 3, .kv_len = 5, .mask = true, .mask_broadcast = 0b0111},
      {.batch = 3,
       .heads = 4,
       .kv_heads = 2,
       .q_len = 6,
       .kv_len = 11,
       .head_dim = 40,
       .v_dim = 24,
       .softcap = 20,
       .window = 5,
       .causal = true,
       .mask = true,
       .alibi = true,
       .mask_broadcast = 0b0001,
       .time_first = true},
      {.heads = 2, .q_len = 7, .kv_len = 4, .causal = true},  // the first queries see no key
      {.q_len = 3, .kv_len = 0},
      {.q_len = 0, .kv_len = 3},
      {.batch = 0, .q_len = 2, .kv_len = 3},
  };
}

std::string name_of(const AttentionCase& c) {
  std::string name = cat(c.dtype, ' ', c.batch, 'x', c.heads, '/', c.kv_heads, 'x', c.q_len, ':',
                         c.kv_len, 'x', c.head_dim, '/', c.v_dim);
  if (c.causal) name += " causal";
  if (c.window > 0) name += cat(" window ", c.window);
  if (c.softcap > 0) name += cat(" softcap ", c.softcap);
  if (c.alibi) name += " alibi";
  if (c.mask) name += cat(" mask ", c.mask_broadcast);
  if (c.values.low > 0) name += " small weights";
  for (const int64_t at : c.queries.undefined) name += cat(" NaN query ", at / c.head_dim);
  for (const int64_t at : c.keys.undefined) name += cat(" NaN key ", at / c.head_dim);
  for (const int64_t at : c.values.undefined) name += cat(" NaN value ", at / c.v_dim);
  if (c.time_first) name += " time first";
  return name;
}

float scale_of(const AttentionCase& c) {
  return 1.0f / std::sqrt(static_cast<float>(c.head_dim));
}

// (batch, heads, time, dim) as the case has it in memory.
Shape stored(const AttentionCase& c, int64_t heads, int64_t time, int64_t dim) {
  return c.time_first ? Shape{c.batch, time, heads, dim} : Shape{c.batch, heads, time, dim};
}

View logical(const AttentionCase& c, View view) {
  if (c.time_first) {
    std::swap(view.sizes[1], view.sizes[2]);
    std::swap(view.strides[1], view.strides[2]);
  }
  return view;
}

AttentionArgs build(const AttentionCase& c, Scene& scene) {
  const auto operand = [&](int64_t heads, int64_t time, int64_t dim, const Values& values) {
    return logical(c, scene.input({stored(c, heads, time, dim)}, c.dtype, values));
  };
  AttentionArgs args{
      .scale = scale_of(c), .softcap = c.softcap, .window = c.window, .causal = c.causal};
  args.q = operand(c.heads, c.q_len, c.head_dim, c.queries);
  args.k = operand(c.kv_heads, c.kv_len, c.head_dim, c.keys);
  args.v = operand(c.kv_heads, c.kv_len, c.v_dim, c.values);
  if (c.mask) {
    const Layout layout = {.shape = {c.batch, c.heads, c.q_len, c.kv_len},
                           .broadcast = c.mask_broadcast};
    args.mask = scene.input(layout, DType::f32);
  }
  if (c.alibi) args.alibi_slopes = scene.input({{c.heads}}, DType::f32, {.low = 0, .high = 1});
  args.y = logical(c, scene.output({stored(c, c.heads, c.q_len, c.v_dim)}, c.dtype));
  const double pairs = static_cast<double>(c.batch * c.heads * c.q_len * c.kv_len);
  scene.flops = 2 * pairs * static_cast<double>(c.head_dim + c.v_dim) * (c.causal ? 0.5 : 1);
  return args;
}

// Reads the host arrays of one case by (batch, head, time, element).
class Formula {
 public:
  Formula(const AttentionCase& c, const std::vector<HostArray>& inputs) : c_(c), in_(inputs) {}

  HostArray result() const {
    HostArray y = host_zeros(stored(c_, c_.heads, c_.q_len, c_.v_dim));
    for (int64_t i = 0; i < c_.batch * c_.heads * c_.q_len; ++i) {
      attend(i / c_.q_len / c_.heads, i / c_.q_len % c_.heads, i % c_.q_len, y);
    }
    return y;
  }

 private:
  int64_t at(int64_t n, int64_t head, int64_t heads, int64_t t, int64_t time, int64_t dim) const {
    return (c_.time_first ? (n * time + t) * heads + head : (n * heads + head) * time + t) * dim;
  }

  double score(int64_t n, int64_t head, int64_t i, int64_t key) const {
    const int64_t q = at(n, head, c_.heads, i, c_.q_len, c_.head_dim);
    const int64_t k =
        at(n, head * c_.kv_heads / c_.heads, c_.kv_heads, key, c_.kv_len, c_.head_dim);
    double s = 0;
    for (int64_t d = 0; d < c_.head_dim; ++d) s += in_[0][q + d] * in_[1][k + d];
    s *= scale_of(c_);
    if (c_.softcap > 0) s = c_.softcap * std::tanh(s / c_.softcap);
    const int64_t behind = i + c_.kv_len - c_.q_len - key;
    if (c_.alibi) s -= in_.back()[head] * static_cast<double>(std::abs(behind));
    if (c_.mask) s += in_[3][((n * c_.heads + head) * c_.q_len + i) * c_.kv_len + key];
    const bool hidden = (c_.causal && behind < 0) || (c_.window > 0 && behind >= c_.window);
    return hidden ? -INFINITY : s;
  }

  // One pass over the keys: rescales what it has when a higher score comes.
  void attend(int64_t n, int64_t head, int64_t i, HostArray& y) const {
    const int64_t to = at(n, head, c_.heads, i, c_.q_len, c_.v_dim);
    double top = -INFINITY;
    double sum = 0;
    for (int64_t key = 0; key < c_.kv_len; ++key) {
      const double s = score(n, head, i, key);
      if (s == -INFINITY) continue;
      const double keep = std::exp(top - std::max(top, s));
      top = std::max(top, s);
      const double weight = std::exp(s - top);
      sum = sum * keep + weight;
      const int64_t v = at(n, head * c_.kv_heads / c_.heads, c_.kv_heads, key, c_.kv_len, c_.v_dim);
      for (int64_t d = 0; d < c_.v_dim; ++d) y[to + d] = y[to + d] * keep + weight * in_[2][v + d];
    }
    for (int64_t d = 0; d < c_.v_dim && sum > 0; ++d) y[to + d] /= sum;
  }

  const AttentionCase& c_;
  const std::vector<HostArray>& in_;
};

void add(OpTable& table, const AttentionCase& c) {
  table.add<AttentionArgs>(
      &KernelTable::attention,
      {.name = name_of(c),
       .family = Family::attention,
       .build = [c](Scene& scene) { return build(c, scene); },
       .formula =
           [c](const auto& inputs) { return std::vector<HostArray>{Formula(c, inputs).result()}; },
       .big = c.big});
}

// Head sizes and lengths that do or do not fill the tiles of matrix units.
std::vector<AttentionCase> tiled_cases() {
  std::vector<AttentionCase> out;
  for (const int64_t dim : {32, 40, 64, 80, 96, 128, 192, 256}) {
    out.push_back({.heads = 4,
                   .kv_heads = 1,
                   .q_len = 65,
                   .kv_len = 131,
                   .head_dim = dim,
                   .v_dim = dim,
                   .causal = true});
  }
  for (const int64_t length : {17, 128, 300}) {
    out.push_back({.batch = 2,
                   .heads = 2,
                   .kv_heads = 2,
                   .q_len = length,
                   .kv_len = length,
                   .head_dim = 64,
                   .v_dim = 64,
                   .time_first = true});
  }
  const AttentionCase base{
      .heads = 2, .q_len = 140, .kv_len = 270, .head_dim = 64, .v_dim = 64, .causal = true};
  const auto add = [&](auto change) {
    AttentionCase c = base;
    change(c);
    out.push_back(c);
  };
  add([](AttentionCase& c) { c.window = 50; });
  add([](AttentionCase& c) { c.window = 50, c.causal = false; });
  add([](AttentionCase& c) { c.softcap = 3; });
  add([](AttentionCase& c) { c.alibi = true; });
  add([](AttentionCase& c) { c.mask = true, c.mask_broadcast = 0b0011; });
  add([](AttentionCase& c) { c.head_dim = 128, c.v_dim = 64; });
  add([](AttentionCase& c) { c.head_dim = 72, c.v_dim = 136; });
  add([](AttentionCase& c) { c.q_len = 150, c.kv_len = 70; });  // some queries see no key
  return out;
}

// Every head size that fills packs of 16 bits, for prompts and for a step.
std::vector<AttentionCase> width_cases() {
  std::vector<AttentionCase> out;
  for (int64_t dim = 32; dim <= 256; dim += 8) {
    for (const DType dtype : {DType::f16, DType::bf16}) {
      AttentionCase c{
          .heads = 4, .kv_heads = 2, .q_len = 17, .kv_len = 37, .head_dim = dim, .v_dim = dim};
      c.dtype = dtype;
      out.push_back(c);
      c.causal = true;
      out.push_back(c);
      c.q_len = 1;
      out.push_back(c);
    }
  }
  return out;
}

// Shapes of image models: heads side by side in a pixel, pixels that attend to each other and to a
// prompt's tokens, a text encoder's causal rows, and a VAE's single wide head.
std::vector<AttentionCase> image_cases() {
  std::vector<AttentionCase> out;
  const auto add = [&](int64_t heads, int64_t q_len, int64_t kv_len, int64_t dim, bool causal) {
    out.push_back({.batch = 2,
                   .heads = heads,
                   .kv_heads = heads,
                   .q_len = q_len,
                   .kv_len = kv_len,
                   .head_dim = dim,
                   .v_dim = dim,
                   .causal = causal,
                   .time_first = true});
  };
  add(3, 64, 64, 32, false);
  add(2, 100, 77, 40, false);
  add(2, 50, 50, 80, false);
  add(1, 64, 77, 160, false);
  add(2, 77, 77, 64, true);
  add(1, 70, 70, 512, false);
  out.push_back({.heads = 2,
                 .kv_heads = 2,
                 .q_len = 49,
                 .kv_len = 33,
                 .head_dim = 64,
                 .v_dim = 64,
                 .mask = true,
                 .mask_broadcast = 0b0110,
                 .time_first = true});
  return out;
}

// Few queries over many keys.
std::vector<AttentionCase> decode_cases() {
  std::vector<AttentionCase> out;
  for (const int64_t dim : {32, 64, 72, 128, 256}) {
    for (const int64_t heads : {1, 3, 8, 16}) {
      out.push_back({.heads = heads,
                     .kv_heads = 1,
                     .kv_len = 300,
                     .head_dim = dim,
                     .v_dim = dim,
                     .causal = true});
    }
  }
  const AttentionCase base{.batch = 2,
                           .heads = 4,
                           .kv_heads = 2,
                           .q_len = 3,
                           .kv_len = 1025,
                           .head_dim = 64,
                           .v_dim = 64};
  out.push_back(base);
  AttentionCase shaped = base;
  shaped.alibi = shaped.mask = shaped.causal = true;
  shaped.softcap = 4;
  shaped.window = 700;
  out.push_back(shaped);
  return out;
}

// A NaN in one row of the first head's operands: only the queries that read it become NaN.
std::vector<AttentionCase> undefined_cases() {
  std::vector<AttentionCase> out;
  const auto add = [&](AttentionCase c) {
    const auto put = [&](Values AttentionCase::* operand, int64_t row) {
      AttentionCase one = c;
      (one.*operand).undefined = {row * c.head_dim + 3};
      out.push_back(std::move(one));
    };
    put(&AttentionCase::queries, c.q_len / 2);
    put(&AttentionCase::keys, c.kv_len / 2);
    put(&AttentionCase::keys, c.kv_len - 1);
    put(&AttentionCase::values, 0);  // all queries read it: unread ones may count as 0 * NaN
  };
  for (const int64_t dim : {40, 64, 128, 160, 256}) {
    AttentionCase c{.heads = 2, .kv_heads = 2, .head_dim = dim, .v_dim = dim};
    c.q_len = 20;
    c.kv_len = 77;
    add(c);
    c.kv_len = 270;
    c.causal = true;
    add(c);
  }
  AttentionCase step{.heads = 4, .kv_len = 1025, .head_dim = 64, .v_dim = 64};
  add(step);
  step.softcap = 4;
  step.mask = step.alibi = true;
  add(step);
  step.q_len = 30;
  step.kv_len = 130;
  step.window = 200;
  add(step);
  return out;
}

OpTable table() {
  OpTable out("attention");
  for (AttentionCase c : cases()) {
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::f64, DType::f8e4m3}) {
      c.dtype = dtype;
      add(out, c);
    }
  }
  for (const std::vector<AttentionCase>& list :
       {tiled_cases(), image_cases(), decode_cases(), undefined_cases()}) {
    for (AttentionCase c : list) {
      for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
        c.dtype = dtype;
        add(out, c);
      }
    }
  }
  for (const AttentionCase& c : width_cases()) add(out, c);
  // Weights that are subnormal in f16, below 2^-14 of the largest, make a hundredth of the sum.
  add(out, {.q_len = 65,
            .kv_len = 2048,
            .head_dim = 64,
            .v_dim = 64,
            .queries = {.low = -5, .high = 5},
            .values = {.low = 1, .high = 2},
            .dtype = DType::f16});
  for (const int64_t dim : {64, 128}) {
    add(out, {.heads = 4,
              .kv_heads = 4,
              .q_len = 1024,
              .kv_len = 1024,
              .head_dim = dim,
              .v_dim = dim,
              .causal = true,
              .dtype = DType::f16,
              .big = true});
  }
  add(out, {.heads = 8,
            .kv_heads = 8,
            .q_len = 1024,
            .kv_len = 1024,
            .head_dim = 40,
            .v_dim = 40,
            .time_first = true,
            .big = true});
  add(out, {.heads = 8,
            .kv_heads = 2,
            .q_len = 256,
            .kv_len = 256,
            .head_dim = 64,
            .v_dim = 64,
            .causal = true,
            .big = true});
  return out;
}

const RegisterOp kRegistered(table);

}  // namespace
}  // namespace rbee::harness
