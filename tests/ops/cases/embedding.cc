// y[i] = table[ids[i]] * scale.
#include "tests/support/op_table.h"

namespace rbee::harness {
namespace {

struct EmbeddingCase {
  std::vector<int32_t> ids;
  Shape table;
  DType dtype = DType::f32;
  DType result = DType::f32;
  float scale = 1;
};

std::vector<EmbeddingCase> cases() {
  const std::vector<int32_t> ids{4, 0, 6, 6, 1};
  std::vector<EmbeddingCase> out;
  for (const DType dtype : kAllDTypes) {
    if (!is_float(dtype) && !is_quantized(dtype)) continue;
    out.push_back({.ids = ids, .table = {7, 512}, .dtype = dtype});
    out.push_back({.ids = ids, .table = {7, 256}, .dtype = dtype, .scale = 24.25f});
  }
  for (const DType result : {DType::f16, DType::bf16, DType::f64}) {
    out.push_back({.ids = ids, .table = {7, 33}, .result = result, .scale = 0.5f});
  }
  for (const DType result : {DType::f16, DType::bf16, DType::f64, DType::f8e4m3}) {
    out.push_back({.ids = ids, .table = {7, 256}, .dtype = DType::q4_k, .result = result});
    out.push_back({.ids = ids, .table = {7, 64}, .dtype = DType::f16, .result = result});
  }
  out.push_back({.ids = {}, .table = {7, 16}});
  out.push_back({.ids = {0}, .table = {1, 1}});
  return out;
}

OpTable table() {
  OpTable out("embedding");
  for (const EmbeddingCase& c : cases()) {
    out.add<EmbeddingArgs>(
        &KernelTable::embedding,
        {.name = cat(c.dtype, " (", c.table, ") to ", c.result, ' ', c.ids.size(), " ids scale ",
                     c.scale),
         .family = Family::elementwise,
         .build =
             [c](Scene& scene) {
               const auto count = static_cast<int64_t>(c.ids.size());
               const View ids = scene.input_of<int32_t>({count}, c.ids);
               const View rows = scene.input({c.table}, c.dtype);
               return EmbeddingArgs{ids, rows, scene.output({{count, c.table[1]}}, c.result),
                                    c.scale};
             },
         .formula =
             [c](const std::vector<HostArray>& in) {
               const int64_t dim = c.table[1];
               HostArray y = host_zeros({static_cast<int64_t>(c.ids.size()), dim});
               for (int64_t i = 0; i < y.numel(); ++i) {
                 const int32_t id = c.ids[static_cast<size_t>(i / dim)];
                 y[i] = in[1][id * dim + i % dim] * static_cast<double>(c.scale);
               }
               return std::vector{y};
             }});
  }
  return out;
}

const RegisterOp kRegistered(table);

}  // namespace
}  // namespace rbee::harness
