// The projections of queries, keys and values, with rotation and a write to a paged cache.
#include <cmath>

#include "tests/support/block_types.h"
#include "tests/support/dot.h"
#include "tests/support/op_table.h"
#include "tests/support/packed.h"

namespace rbee::harness {
namespace {

struct QkvCase {
  int64_t in = 512;
  int64_t heads = 6, kv_heads = 2, head_dim = 64, pairs = 32;
  DType weight = DType::f32, value_weight = DType::f32;
  DType dtype = DType::f32, cache = DType::f32;
  RopeLayout layout = RopeLayout::half;
  bool norm = true, bias = false;
  std::vector<int32_t> slots = {9};
  bool big = false;
};

constexpr int64_t kBlocks = 4;
constexpr int64_t kBlockSize = 8;
constexpr int64_t kPositions = 20;

std::vector<QkvCase> cases() {
  std::vector<QkvCase> out;
  const auto add = [&](QkvCase c, DType weight) {
    c.weight = c.value_weight = weight;
    out.push_back(std::move(c));
  };
  for (const RopeLayout layout : {RopeLayout::half, RopeLayout::interleaved}) {
    add({.in = 1024, .layout = layout, .bias = true}, DType::f32);
    add({.in = 1024, .dtype = DType::f16, .cache = DType::f16, .layout = layout}, DType::f16);
    add({.in = 1024, .dtype = DType::bf16, .cache = DType::bf16, .layout = layout}, DType::bf16);
    add({.in = 2048, .cache = DType::f16, .layout = layout, .norm = false}, DType::q8_0);
    add({.in = 2048, .cache = DType::bf16, .layout = layout}, DType::q4_0);
    add({.in = 2048, .cache = DType::f8e4m3, .layout = layout, .bias = true}, DType::q4_k);
    // Elements after the pairs, which are only copied.
    add({.in = 2048, .heads = 3, .kv_heads = 3, .head_dim = 96, .pairs = 32, .layout = layout},
        DType::q8_0);
    add({.in = 1024, .heads = 3, .kv_heads = 3, .head_dim = 26, .pairs = 5, .layout = layout},
        DType::f32);
  }
  // The other block types, with as few heads as possible.
  for (const DType weight : test::block_types_but({DType::q4_0, DType::q8_0, DType::q4_k})) {
    add({.in = 2048, .heads = 2, .kv_heads = 1, .head_dim = 32, .pairs = 16}, weight);
  }
  // Adjacent elements rotated as pairs, with a bias and a cache in f16, from block types of each
  // kind.
  for (const DType weight :
       {DType::q4_0, DType::q4_1, DType::q5_0, DType::q8_0, DType::q2_k, DType::q3_k, DType::q4_k,
        DType::q5_k, DType::q6_k, DType::iq4_nl, DType::iq4_xs, DType::mxfp4}) {
    add({.in = 2048,
         .heads = 2,
         .kv_heads = 1,
         .head_dim = 32,
         .pairs = 16,
         .cache = DType::f16,
         .layout = RopeLayout::interleaved,
         .bias = true},
        weight);
  }
  // Values in another type than queries and keys.
  for (const auto& [weight, value] : {std::pair{DType::q4_k, DType::q6_k},
                                      {DType::q5_k, DType::q6_k},
                                      {DType::q4_k, DType::q5_k},
                                      {DType::q8_0, DType::f32}}) {
    out.push_back({.in = 2048, .weight = weight, .value_weight = value});
    out.push_back(
        {.in = 2048, .weight = weight, .value_weight = value, .cache = DType::f16, .bias = true});
  }
  // Every type of activations with every type of cache, from each kind of weights.
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    for (const DType cache : {dtype, DType::f8e4m3, DType::q8_0}) {
      for (const DType weight : {dtype, DType::q8_0, DType::q4_k, DType::q6_k}) {
        // A q8_0 cache adds half a step of error, which exceeds plain weights' bound.
        if (cache == DType::q8_0 && weight == dtype) continue;
        QkvCase c{.in = 2048, .heads = 2, .kv_heads = 1, .head_dim = 32, .pairs = 16};
        c.dtype = dtype;
        c.cache = cache;
        c.bias = weight == DType::q8_0;
        c.norm = weight != DType::q6_k;
        add(c, weight);
      }
    }
  }
  // So small that an emulator of a GPU takes them all: each kind of weights with each type of
  // cache.
  for (const RopeLayout layout : {RopeLayout::half, RopeLayout::interleaved}) {
    for (const DType weight :
         {DType::f32, DType::q4_0, DType::q4_1, DType::q5_0, DType::q5_1, DType::q8_0, DType::q2_k,
          DType::q3_k, DType::q4_k, DType::q5_k, DType::q6_k, DType::mxfp4}) {
      for (const DType cache : {DType::f32, DType::f16, DType::f8e4m3}) {
        add({.in = 512,
             .heads = 2,
             .kv_heads = 1,
             .head_dim = 32,
             .pairs = 16,
             .cache = cache,
             .layout = layout,
             .norm = cache != DType::f32,
             .bias = cache == DType::f16},
            weight);
      }
    }
  }
  // Heads as in models, rotated whole or in part, one group or as many keys as queries.
  for (const int64_t dim : {64, 80, 96, 128, 256}) {
    for (const int64_t share : {1, 2}) {
      for (const int64_t groups : {1, 3}) {
        add({.in = 1024,
             .heads = 3,
             .kv_heads = 3 / groups,
             .head_dim = dim,
             .pairs = dim / 2 / share,
             .dtype = DType::f16,
             .cache = DType::f16,
             .slots = {17}},
            DType::f16);
      }
    }
  }
  add({.in = 2048, .slots = {-1}}, DType::q8_0);
  add({.in = 2048, .cache = DType::q8_0}, DType::q4_0);
  add({.in = 24, .slots = {9, 0, -1, 31, 8}}, DType::f32);
  add({.in = 2048, .cache = DType::f16, .slots = {30, 3}}, DType::q8_0);
  add({.in = 2048, .slots = {}}, DType::q8_0);
  out.push_back({.in = 4096,
                 .heads = 32,
                 .kv_heads = 8,
                 .head_dim = 128,
                 .pairs = 64,
                 .weight = DType::q4_k,
                 .value_weight = DType::q6_k,
                 .big = true});
  return out;
}

int64_t position_of(size_t token) {
  return static_cast<int64_t>(7 * token + 3) % kPositions;
}

int64_t tokens_of(const QkvCase& c) {
  return static_cast<int64_t>(c.slots.size());
}

// Inputs in this order: x, norm weight, weight and bias of q, k and v, cos, sin, positions, slots,
// k_cache, v_cache.
QkvAppendArgs build(const QkvCase& c, Scene& scene) {
  QkvAppendArgs args{};
  const int64_t tokens = tokens_of(c);
  // Random blocks are large numbers, and caches of e4m3 end at 448.
  const bool small = c.cache == DType::f8e4m3 && is_quantized(c.weight);
  const Values activations = small ? Values{-0.02, 0.02} : Values{};
  args.x = scene.input({{tokens, c.in}}, c.dtype, c.norm ? Values{} : activations);
  if (c.norm) args.norm_weight = scene.input({{c.in}}, c.dtype, activations);
  args.eps = 1e-5f;
  const bool pack_weights = scene.device().id().kind != DeviceKind::cpu;
  std::vector<LinearPart> parts;
  for (int i = 0; i < 3; ++i) {
    const int64_t outs = (i == 0 ? c.heads : c.kv_heads) * c.head_dim;
    LinearPart part{
        .weight = scene.input({{outs, c.in}}, i == 2 ? c.value_weight : c.weight, {-0.1, 0.1})};
    if (pack_weights) part.weight = pack(part.weight, scene);
    if (c.bias) part.bias = scene.input({{outs}}, c.dtype);
    scene.flops += 2.0 * static_cast<double>(tokens * outs * c.in);
    parts.push_back(part);
  }
  args.parts = scene.hold(std::move(parts));
  args.cos = scene.input({{kPositions, c.pairs}}, DType::f32, {-1, 1});
  args.sin = scene.input({{kPositions, c.pairs}}, DType::f32, {-1, 1});
  std::vector<int32_t> positions;
  for (size_t t = 0; t < c.slots.size(); ++t) {
    positions.push_back(static_cast<int32_t>(position_of(t)));
  }
  args.positions = scene.input_of<int32_t>({tokens}, positions);
  args.slots = scene.input_of<int32_t>({tokens}, c.slots);
  args.layout = c.layout;
  args.q_out = scene.output({{tokens, c.heads, c.head_dim}}, c.dtype);
  const Layout cache{{kBlocks, c.kv_heads, kBlockSize, c.head_dim},
                     c.cache == DType::q8_0 ? Form::pages : Form::contiguous};
  args.k_cache = scene.in_out(cache, c.cache);
  args.v_cache = scene.in_out(cache, c.cache);
  return args;
}

HostArray normed(const QkvCase& c, const HostArray& x, const HostArray& weight) {
  HostArray y = x;
  for (int64_t row = 0; row < tokens_of(c); ++row) {
    double squares = 0;
    for (int64_t i = 0; i < c.in; ++i) squares += x[row * c.in + i] * x[row * c.in + i];
    const double scale = 1 / std::sqrt(squares / static_cast<double>(c.in) + 1e-5f);
    for (int64_t i = 0; i < c.in; ++i) y[row * c.in + i] = x[row * c.in + i] * scale * weight[i];
  }
  return y;
}

// (tokens, heads, head_dim), rotated if there are tables.
HostArray heads(const QkvCase& c, const HostArray& x, const HostArray& weight,
                const HostArray* bias, const HostArray* cos, const HostArray* sin) {
  const int64_t outs = weight.size(0), count = outs / c.head_dim;
  HostArray y = host_zeros({tokens_of(c), count, c.head_dim});
  for (int64_t i = 0; i < y.numel(); ++i) {
    const int64_t row = i / outs, column = i % outs;
    double sum = bias != nullptr ? (*bias)[column] : 0.0;
    sum += dot(x, row * c.in, weight, column * c.in, c.in);
    y[i] = sum;
  }
  if (cos == nullptr) return y;
  HostArray out = y;
  for (int64_t head = 0; head < tokens_of(c) * count; ++head) {
    const int64_t at = position_of(static_cast<size_t>(head / count)) * c.pairs;
    for (int64_t i = 0; i < c.pairs; ++i) {
      const bool half = c.layout == RopeLayout::half;
      const int64_t a = head * c.head_dim + (half ? i : 2 * i);
      const int64_t b = head * c.head_dim + (half ? i + c.pairs : 2 * i + 1);
      out[a] = y[a] * (*cos)[at + i] - y[b] * (*sin)[at + i];
      out[b] = y[a] * (*sin)[at + i] + y[b] * (*cos)[at + i];
    }
  }
  return out;
}

HostArray appended(const QkvCase& c, const HostArray& rows, HostArray cache) {
  for (int64_t i = 0; i < rows.numel(); ++i) {
    const int64_t token = i / (c.kv_heads * c.head_dim);
    const int64_t head = i / c.head_dim % c.kv_heads;
    const int64_t slot = c.slots[static_cast<size_t>(token)];
    if (slot < 0) continue;
    const int64_t row = (slot / kBlockSize * c.kv_heads + head) * kBlockSize + slot % kBlockSize;
    cache[row * c.head_dim + i % c.head_dim] = rows[i];
  }
  return cache;
}

std::vector<HostArray> formula(const QkvCase& c, const std::vector<HostArray>& in) {
  size_t next = c.norm ? 2 : 1;
  const HostArray x = c.norm ? normed(c, in[0], in[1]) : in[0];
  const size_t tables = next + (c.bias ? 6 : 3);
  const HostArray &cos = in[tables], &sin = in[tables + 1];
  std::vector<HostArray> made;
  for (int i = 0; i < 3; ++i) {
    const HostArray& weight = in[next++];
    const HostArray* bias = c.bias ? &in[next++] : nullptr;
    made.push_back(heads(c, x, weight, bias, i < 2 ? &cos : nullptr, i < 2 ? &sin : nullptr));
  }
  return {made[0], appended(c, made[1], in[tables + 4]), appended(c, made[2], in[tables + 5])};
}

std::string name_of(const QkvCase& c) {
  return cat(c.dtype, " (", c.slots.size(), ", ", c.in, ") x ", c.weight,
             c.value_weight == c.weight ? "" : cat('+', c.value_weight), " heads ", c.heads, '/',
             c.kv_heads, " dim ", c.head_dim, " pairs ", c.pairs, " to ", c.cache,
             c.layout == RopeLayout::half ? " half" : " interleaved", c.norm ? " norm" : "",
             c.bias ? " bias" : "");
}

Family family_of(const QkvCase& c) {
  if (is_quantized(c.weight)) return Family::quant_product;
  return c.dtype == DType::f32 ? Family::product : Family::rounded_product;
}

OpTable table() {
  OpTable out("qkv_append");
  for (const QkvCase& c : cases()) {
    out.add<QkvAppendArgs>(
        &KernelTable::qkv_append,
        {.name = name_of(c),
         .family = family_of(c),
         .build = [c](Scene& scene) { return build(c, scene); },
         .formula = [c](const std::vector<HostArray>& in) { return formula(c, in); },
         .big = c.big});
  }
  return out;
}

const RegisterOp kRegistered(table);

}  // namespace
}  // namespace rbee::harness
