// Writing keys and values into a paged cache.
#include <cmath>

#include "tests/support/op_table.h"

namespace rbee::harness {
namespace {

struct AppendCase {
  std::vector<int32_t> slots;
  int64_t heads = 1, head_dim = 1;
  DType dtype = DType::f32, cache = DType::f16;
  Form form = Form::contiguous;
  Values values = {};
};

constexpr int64_t kAppendBlocks = 4;
constexpr int64_t kAppendBlockSize = 8;

std::vector<AppendCase> append_cases() {
  const std::vector<int32_t> slots{9, 0, -1, 31, 8};
  std::vector<AppendCase> out;
  for (const DType cache : {DType::f32, DType::f16, DType::bf16, DType::f8e4m3}) {
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::f64}) {
      out.push_back({.slots = slots, .heads = 3, .head_dim = 24, .dtype = dtype, .cache = cache});
    }
    out.push_back({.slots = slots, .heads = 2, .head_dim = 13, .cache = cache});
    out.push_back({.slots = slots, .heads = 2, .head_dim = 17, .cache = cache, .form = Form::gaps});
  }
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::f64}) {
    out.push_back(
        {.slots = slots, .heads = 3, .head_dim = 64, .dtype = dtype, .cache = DType::q8_0});
  }
  for (const int64_t dim : {32, 96, 256}) {
    out.push_back({.slots = slots,
                   .heads = 2,
                   .head_dim = dim,
                   .cache = DType::q8_0,
                   .form = dim == 96 ? Form::gaps : Form::contiguous});
  }
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::f64}) {
    AppendCase c{.slots = slots, .heads = 3, .head_dim = 64, .dtype = dtype, .cache = DType::q8_0};
    c.values.undefined = {40, 5 * 64 + 31};  // a group that only lane 8 reads, and a last lane's
    out.push_back(c);
    c.values.undefined.clear();
    c.values.specials = true;
    out.push_back(c);
  }
  out.push_back({.slots = {}, .heads = 2, .head_dim = 8});
  return out;
}

// An element as a q8_0 cache stores it: NaN if its group has a NaN or an infinity.
double kept(const AppendCase& c, const HostArray& x, int64_t at) {
  const int64_t first = at / kPageGroup * kPageGroup;
  for (int64_t i = first; c.cache == DType::q8_0 && i < first + kPageGroup; ++i) {
    if (!std::isfinite(x[i])) return NAN;
  }
  return x[at];
}

std::vector<HostArray> append_formula(const AppendCase& c, const std::vector<HostArray>& in) {
  std::vector<HostArray> caches{in[3], in[4]};
  for (size_t t = 0; t < c.slots.size(); ++t) {
    const int64_t slot = c.slots[t];
    if (slot < 0) continue;
    for (int64_t i = 0; i < c.heads * c.head_dim; ++i) {
      const int64_t row = (slot / kAppendBlockSize * c.heads + i / c.head_dim) * kAppendBlockSize +
                          slot % kAppendBlockSize;
      const int64_t from = static_cast<int64_t>(t) * c.heads * c.head_dim + i;
      for (size_t kv = 0; kv < 2; ++kv) {
        caches[kv][row * c.head_dim + i % c.head_dim] = kept(c, in[kv], from);
      }
    }
  }
  return caches;
}

OpTable append_table() {
  OpTable out("kv_append");
  for (const AppendCase& c : append_cases()) {
    out.add<KvAppendArgs>(
        &KernelTable::kv_append,
        {.name = cat(c.dtype, " to ", c.cache, " heads ", c.heads, " dim ", c.head_dim,
                     c.form == Form::gaps ? " gaps " : " ", c.slots.size(), " tokens",
                     c.values.specials            ? " specials"
                     : c.values.undefined.empty() ? ""
                                                  : " NaN"),
         .family = Family::elementwise,
         .build =
             [c](Scene& scene) {
               const auto tokens = static_cast<int64_t>(c.slots.size());
               const Layout rows{{tokens, c.heads, c.head_dim}, c.form};
               const Layout cache{{kAppendBlocks, c.heads, kAppendBlockSize, c.head_dim},
                                  c.cache == DType::q8_0 ? Form::pages : Form::contiguous};
               const View k = scene.input(rows, c.dtype, c.values);
               const View v = scene.input(rows, c.dtype, c.values);
               const View slots = scene.input_of<int32_t>({tokens}, c.slots);
               return KvAppendArgs{k, v, slots, scene.in_out(cache, c.cache),
                                   scene.in_out(cache, c.cache)};
             },
         .formula = [c](const std::vector<HostArray>& in) { return append_formula(c, in); }});
  }
  return out;
}

const RegisterOp kAppend(append_table);

}  // namespace
}  // namespace rbee::harness
