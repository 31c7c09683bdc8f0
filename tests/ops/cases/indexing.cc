// gather, scatter (and add), index_select, index_add.
#include <limits>

#include "tests/support/op_table.h"
#include "tests/support/random_values.h"

namespace rbee::harness {
namespace {

constexpr DType kNumbers[] = {DType::f32, DType::f16,    DType::bf16, DType::f64, DType::i64,
                              DType::u8,  DType::f8e4m3, DType::u32,  DType::i16, DType::i32};
constexpr DType kIdTypes[] = {DType::u8, DType::u32, DType::i16, DType::i32, DType::i64};

struct IndexCase {
  Shape x;    // the large operand: read by gather, written by scatter
  Shape ids;  // one axis for index_select and index_add
  int axis = 0;
  Form form = Form::contiguous;  // of the float operands
  DType dtype = DType::f32;
  DType id_dtype = DType::i64;
  bool big = false;
  bool no_element = false;  // every fifth id is invalid: below 0, or the type's largest
};

// Shape of the other operand: that of ids, or that of x with one slice per id.
Shape slices(const IndexCase& c) {
  if (c.ids.rank() == c.x.rank() && c.x.rank() > 1) return c.ids;
  Shape shape = c.x;
  shape[c.axis] = c.ids[0];
  return shape;
}

std::string name_of(const IndexCase& c) {
  return cat(c.dtype, " (", c.x, ") by ", c.id_dtype, " (", c.ids, ") axis ", c.axis,
             c.form == Form::contiguous ? "" : " strided", c.no_element ? " with none" : "");
}

template <typename Id>
View add_ids(Scene& scene, const IndexCase& c) {
  std::vector<Id> ids(static_cast<size_t>(numel(c.ids)));
  uint64_t state = 11;
  size_t count = 0;
  for (Id& id : ids) {
    id = static_cast<Id>(next_random(state) % static_cast<uint64_t>(c.x[c.axis]));
    if (!c.no_element || ++count % 5 != 0) continue;
    id = count % 10 == 0 ? std::numeric_limits<Id>::max() : static_cast<Id>(-1);
  }
  return scene.input_of<Id>(c.ids, ids);
}

View ids_of(Scene& scene, const IndexCase& c) {
  switch (c.id_dtype) {
    case DType::u8:
      return add_ids<uint8_t>(scene, c);
    case DType::u32:
      return add_ids<uint32_t>(scene, c);
    case DType::i16:
      return add_ids<int16_t>(scene, c);
    case DType::i32:
      return add_ids<int32_t>(scene, c);
    default:
      return add_ids<int64_t>(scene, c);
  }
}

// For each element of `few` (shape slices(c)), in order: its element of x; -1 if its id is
// invalid.
std::vector<int64_t> partners(const IndexCase& c, const HostArray& ids) {
  const Shape few = slices(c);
  const Strides few_strides = contiguous_strides(few);
  const Strides x_strides = contiguous_strides(c.x);
  std::vector<int64_t> out;
  for (int64_t i = 0; i < numel(few); ++i) {
    const int64_t along = i / few_strides[c.axis] % few[c.axis];
    const double id = ids[ids.numel() == numel(few) ? i : along];
    if (id < 0 || id >= static_cast<double>(c.x[c.axis])) {
      out.push_back(-1);
      continue;
    }
    int64_t at = static_cast<int64_t>(id) * x_strides[c.axis];
    for (int axis = 0; axis < few.rank(); ++axis) {
      if (axis != c.axis) at += i / few_strides[axis] % few[axis] * x_strides[axis];
    }
    out.push_back(at);
  }
  return out;
}

std::vector<HostArray> read_formula(const IndexCase& c, const std::vector<HostArray>& inputs) {
  HostArray y = host_zeros(slices(c));
  const std::vector<int64_t> from = partners(c, inputs[1]);
  for (size_t i = 0; i < from.size(); ++i) {
    if (from[i] >= 0) y.values[i] = inputs[0][from[i]];
  }
  return {y};
}

// As in storage: sums of equal ids are rounded after each element.
double rounded(DType dtype, double x) {
  const auto single = static_cast<float>(x);
  switch (dtype) {
    case DType::f16:
      return to_float(to_f16(single));
    case DType::bf16:
      return to_float(to_bf16(single));
    case DType::f8e4m3:
      return to_float(to_f8e4m3(single));
    default:
      return dtype == DType::f32 ? single : x;
  }
}

// inputs: ids, src, the old y
std::vector<HostArray> write_formula(const IndexCase& c, bool add,
                                     const std::vector<HostArray>& inputs) {
  HostArray y = inputs[2];
  const std::vector<int64_t> to = partners(c, inputs[0]);
  for (size_t i = 0; i < to.size(); ++i) {
    if (to[i] < 0) continue;
    y[to[i]] = add ? rounded(c.dtype, y[to[i]] + inputs[1].values[i]) : inputs[1].values[i];
  }
  return {y};
}

template <typename Args>
void add_read(OpTable& table, Slot<Args> KernelTable::* slot, const IndexCase& c) {
  table.add<Args>(slot, {.name = name_of(c),
                         .family = Family::exact,
                         .build =
                             [c](Scene& scene) {
                               const View x = scene.input({c.x, c.form}, c.dtype);
                               const View ids = ids_of(scene, c);
                               const View y = scene.output({slices(c), c.form}, c.dtype);
                               scene.bytes =
                                   2.0 * static_cast<double>(row_bytes(c.dtype, y.numel()));
                               return Args{x, ids, y, c.axis};
                             },
                         .formula = [c](const auto& inputs) { return read_formula(c, inputs); },
                         .big = c.big});
}

struct WriteOperands {
  View ids, src, y;
};

WriteOperands write_operands(Scene& scene, const IndexCase& c) {
  const Values values = {.low = 0, .high = 4};  // sums of integers stay in range
  WriteOperands o;
  o.ids = ids_of(scene, c);
  o.src = scene.input({slices(c), c.form}, c.dtype, values);
  o.y = scene.in_out({c.x, c.form}, c.dtype, values);
  scene.bytes = 3.0 * static_cast<double>(row_bytes(c.dtype, o.src.numel()));
  return o;
}

void add_scatter(OpTable& table, const IndexCase& c, bool add) {
  table.add<ScatterArgs>(
      &KernelTable::scatter,
      {.name = cat(add ? "add " : "set ", name_of(c)),
       .family = add && is_float(c.dtype) ? Family::reduction : Family::exact,
       .build =
           [=](Scene& scene) {
             const WriteOperands o = write_operands(scene, c);
             return ScatterArgs{o.ids, o.src, o.y, c.axis, add};
           },
       .formula = [=](const auto& inputs) { return write_formula(c, add, inputs); },
       .big = c.big});
}

void add_index_add(OpTable& table, const IndexCase& c) {
  table.add<IndexAddArgs>(
      &KernelTable::index_add,
      {.name = name_of(c),
       .family = is_float(c.dtype) ? Family::reduction : Family::exact,
       .build =
           [c](Scene& scene) {
             const WriteOperands o = write_operands(scene, c);
             return IndexAddArgs{o.ids, o.src, o.y, c.axis};
           },
       .formula = [c](const auto& inputs) { return write_formula(c, true, inputs); },
       .big = c.big});
}

// Calls add(case) for every dtype of data and of ids.
template <typename Add>
void for_each_type(IndexCase c, Add&& add) {
  for (const DType dtype : kNumbers) {
    c.dtype = dtype;
    add(c);
  }
  c.dtype = DType::f32;
  c.no_element = true;
  for (const DType id_dtype : kIdTypes) {
    c.id_dtype = id_dtype;
    add(c);
  }
}

// Calls add(case) for every pair of a data dtype and an id dtype.
template <typename Add>
void for_each_pair(IndexCase c, Add&& add) {
  c.no_element = true;
  for (const DType dtype : kNumbers) {
    for (const DType id_dtype : kIdTypes) {
      c.dtype = dtype;
      c.id_dtype = id_dtype;
      add(c);
    }
  }
}

std::vector<IndexCase> dense_cases() {
  return {
      {.x = {1}, .ids = {1}},
      {.x = {5, 4}, .ids = {7, 3}},
      {.x = {3, 4, 6}, .ids = {3, 4, 9}, .axis = 2, .form = Form::gaps},
      {.x = {4, 7, 3}, .ids = {2, 5, 3}, .axis = 1, .form = Form::transposed},
      {.x = {4, 5}, .ids = {0, 5}},
      {.x = {3, 40}, .ids = {3, 300}, .axis = 1},  // few long lines
  };
}

std::vector<IndexCase> slice_cases() {
  return {
      {.x = {1}, .ids = {1}},
      {.x = {33, 7}, .ids = {65}},
      {.x = {9, 32}, .ids = {5}},  // whole packs a slice
      {.x = {3, 11, 6}, .ids = {5}, .axis = 1, .form = Form::gaps},
      {.x = {4, 7, 3}, .ids = {9}, .axis = 2, .form = Form::transposed},
      {.x = {4, 5}, .ids = {0}, .axis = 1},
      {.x = {3, 40}, .ids = {4500}, .axis = 1},  // few long lines
      {.x = {5, 40}, .ids = {33}, .axis = 1, .form = Form::gaps},
  };
}

constexpr int64_t kMany = 4096;

OpTable gather_table() {
  OpTable out("gather");
  const auto add = [&](const IndexCase& c) { add_read(out, &KernelTable::gather, c); };
  for (const IndexCase& c : dense_cases()) for_each_type(c, add);
  for_each_pair({.x = {5, 13}, .ids = {5, 11}, .axis = 1, .form = Form::gaps}, add);
  add({.x = {256, 1024}, .ids = {256, 1024}, .axis = 1, .big = true});
  return out;
}

OpTable index_select_table() {
  OpTable out("index_select");
  const auto add = [&](const IndexCase& c) { add_read(out, &KernelTable::index_select, c); };
  for (const IndexCase& c : slice_cases()) for_each_type(c, add);
  for_each_pair({.x = {13, 5}, .ids = {11}, .form = Form::gaps}, add);
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    add({.x = {9, 96}, .ids = {70}, .axis = 1, .dtype = dtype, .id_dtype = DType::i32});
  }
  add({.x = {kMany, 128}, .ids = {kMany}, .big = true});
  add({.x = {512, kMany}, .ids = {kMany}, .axis = 1, .id_dtype = DType::i32, .big = true});
  return out;
}

OpTable scatter_table() {
  OpTable out("scatter");
  const auto add = [&](const IndexCase& c) {
    add_scatter(out, c, true);
    add_scatter(out, c, false);
  };
  for (const IndexCase& c : dense_cases()) for_each_type(c, add);
  for_each_pair({.x = {5, 13}, .ids = {5, 11}, .axis = 1, .form = Form::gaps}, add);
  add_scatter(out, {.x = {256, 1024}, .ids = {256, 1024}, .axis = 1, .big = true}, true);
  return out;
}

OpTable index_add_table() {
  OpTable out("index_add");
  const auto add = [&](const IndexCase& c) { add_index_add(out, c); };
  for (const IndexCase& c : slice_cases()) for_each_type(c, add);
  for_each_pair({.x = {13, 5}, .ids = {11}, .form = Form::gaps}, add);
  add({.x = {kMany, 128}, .ids = {kMany}, .big = true});
  return out;
}

const RegisterOp kGather(gather_table);
const RegisterOp kScatter(scatter_table);
const RegisterOp kIndexSelect(index_select_table);
const RegisterOp kIndexAdd(index_add_table);

}  // namespace
}  // namespace rbee::harness
