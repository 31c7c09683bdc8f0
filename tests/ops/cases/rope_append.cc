// Rotation of q and k, with the keys and values written into a paged cache.
#include "tests/support/op_table.h"

namespace rbee::harness {
namespace {

struct RopeAppendCase {
  std::vector<int32_t> slots;
  int64_t heads = 1, kv_heads = 1, head_dim = 2, pairs = 1;
  RopeLayout layout = RopeLayout::half;
  DType dtype = DType::f32, cache = DType::f16;
  Form form = Form::contiguous;
};

constexpr int64_t kBlocks = 4;
constexpr int64_t kBlockSize = 8;
constexpr int64_t kPositions = 20;

std::vector<RopeAppendCase> cases() {
  const std::vector<int32_t> slots{9, 0, -1, 31, 8};
  std::vector<RopeAppendCase> out;
  for (const RopeLayout layout : {RopeLayout::half, RopeLayout::interleaved}) {
    for (const DType cache : {DType::f32, DType::f16, DType::bf16, DType::f8e4m3, DType::q8_0}) {
      for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::f64}) {
        // Rotated keys are first rounded to their own type, which a finer cache would reveal.
        const bool finer = (dtype == DType::f16 && cache == DType::f32) ||
                           (dtype == DType::bf16 && cache != DType::bf16 && cache != DType::q8_0);
        if (finer) continue;
        out.push_back({.slots = slots,
                       .heads = 6,
                       .kv_heads = 2,
                       .head_dim = 64,
                       .pairs = 32,
                       .layout = layout,
                       .dtype = dtype,
                       .cache = cache});
      }
    }
    for (const Form form : {Form::contiguous, Form::gaps}) {
      RopeAppendCase partial{
          .slots = slots, .heads = 3, .kv_heads = 3, .layout = layout, .form = form};
      partial.head_dim = 96;  // with elements that are only copied
      partial.pairs = 32;
      out.push_back(partial);
      partial.head_dim = 13;  // no whole runs
      partial.pairs = 5;
      out.push_back(partial);
    }
    // Pairs whose halves end within groups, and elements that are only copied.
    for (const int64_t pairs : {24, 48}) {
      out.push_back({.slots = slots,
                     .heads = 3,
                     .kv_heads = 3,
                     .head_dim = 96,
                     .pairs = pairs,
                     .layout = layout,
                     .cache = DType::q8_0,
                     .form = pairs == 24 ? Form::gaps : Form::contiguous});
    }
    out.push_back({.slots = {3},
                   .head_dim = 256,
                   .pairs = 128,
                   .layout = layout,
                   .dtype = DType::f16,
                   .cache = DType::q8_0});
    out.push_back({.slots = {3}, .heads = 1, .layout = layout});
    out.push_back({.slots = {}, .heads = 2, .head_dim = 8, .pairs = 4, .layout = layout});
  }
  return out;
}

int64_t position_of(size_t token) {
  return static_cast<int64_t>(7 * token + 3) % kPositions;
}

// rows: (tokens, heads, head_dim)
HostArray rotated(const RopeAppendCase& c, const HostArray& rows, const HostArray& cos,
                  const HostArray& sin) {
  HostArray y = rows;
  const int64_t heads = rows.size(1);
  for (int64_t row = 0; row < rows.size(0) * heads; ++row) {
    const int64_t at = position_of(static_cast<size_t>(row / heads)) * c.pairs;
    for (int64_t i = 0; i < c.pairs; ++i) {
      const bool half = c.layout == RopeLayout::half;
      const int64_t a = row * c.head_dim + (half ? i : 2 * i);
      const int64_t b = row * c.head_dim + (half ? i + c.pairs : 2 * i + 1);
      y[a] = rows[a] * cos[at + i] - rows[b] * sin[at + i];
      y[b] = rows[a] * sin[at + i] + rows[b] * cos[at + i];
    }
  }
  return y;
}

HostArray appended(const RopeAppendCase& c, const HostArray& rows, HostArray cache) {
  const int64_t token_size = c.kv_heads * c.head_dim;
  for (size_t t = 0; t < c.slots.size(); ++t) {
    const int64_t slot = c.slots[t];
    if (slot < 0) continue;
    for (int64_t i = 0; i < token_size; ++i) {
      const int64_t head = slot / kBlockSize * c.kv_heads + i / c.head_dim;
      const int64_t row = head * kBlockSize + slot % kBlockSize;
      cache[row * c.head_dim + i % c.head_dim] = rows[static_cast<int64_t>(t) * token_size + i];
    }
  }
  return cache;
}

// in: q, k, v, cos, sin, positions, slots, k_cache, v_cache
std::vector<HostArray> formula(const RopeAppendCase& c, const std::vector<HostArray>& in) {
  return {rotated(c, in[0], in[3], in[4]), appended(c, rotated(c, in[1], in[3], in[4]), in[7]),
          appended(c, in[2], in[8])};
}

RopeAppendArgs build(const RopeAppendCase& c, Scene& scene) {
  const auto tokens = static_cast<int64_t>(c.slots.size());
  const Layout kv{{tokens, c.kv_heads, c.head_dim}, c.form};
  const Layout cache{{kBlocks, c.kv_heads, kBlockSize, c.head_dim},
                     c.cache == DType::q8_0 ? Form::pages : Form::contiguous};
  std::vector<int32_t> positions;
  positions.reserve(c.slots.size());
  for (size_t t = 0; t < c.slots.size(); ++t) {
    positions.push_back(static_cast<int32_t>(position_of(t)));
  }
  RopeAppendArgs args{};
  args.q = scene.input({{tokens, c.heads, c.head_dim}, c.form}, c.dtype);
  args.k = scene.input(kv, c.dtype);
  args.v = scene.input(kv, c.dtype);
  args.cos = scene.input({{kPositions, c.pairs}}, DType::f32, {-1, 1});
  args.sin = scene.input({{kPositions, c.pairs}}, DType::f32, {-1, 1});
  args.positions = scene.input_of<int32_t>({tokens}, positions);
  args.slots = scene.input_of<int32_t>({tokens}, c.slots);
  args.layout = c.layout;
  args.q_out = scene.output({{tokens, c.heads, c.head_dim}}, c.dtype);
  args.k_cache = scene.in_out(cache, c.cache);
  args.v_cache = scene.in_out(cache, c.cache);
  return args;
}

OpTable table() {
  OpTable out("rope_append");
  for (const RopeAppendCase& c : cases()) {
    out.add<RopeAppendArgs>(
        &KernelTable::rope_append,
        {.name = cat(c.layout == RopeLayout::half ? "half " : "interleaved ", c.dtype, " to ",
                     c.cache, " heads ", c.heads, '/', c.kv_heads, " dim ", c.head_dim, " pairs ",
                     c.pairs, c.form == Form::gaps ? " gaps " : " ", c.slots.size(), " tokens"),
         // A difference of two products: the error scales with the operands.
         .family = Family::product,
         .build = [c](Scene& scene) { return build(c, scene); },
         .formula = [c](const std::vector<HostArray>& in) { return formula(c, in); }});
  }
  return out;
}

const RegisterOp kRegistered(table);

}  // namespace
}  // namespace rbee::harness
