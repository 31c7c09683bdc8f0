// y = a * b, batched, strided and broadcast.
#include "tests/support/op_table.h"

namespace rbee::harness {
namespace {

struct MatmulCase {
  Shape batch;
  int64_t rows = 1, depth = 1, columns = 1;
  Form a_form = Form::contiguous, b_form = Form::contiguous, y_form = Form::contiguous;
  uint32_t a_broadcast = 0, b_broadcast = 0;  // batch axes, see Layout
  DType dtype = DType::f32;
  bool big = false;

  Layout layout(int64_t m, int64_t n, Form form, uint32_t broadcast = 0) const {
    Shape shape = batch;
    shape.push_back(m);
    shape.push_back(n);
    return {shape, form, broadcast};
  }
  Layout a() const { return layout(rows, depth, a_form, a_broadcast); }
  Layout b() const { return layout(depth, columns, b_form, b_broadcast); }
  Layout y() const { return layout(rows, columns, y_form); }
};

std::vector<MatmulCase> small_cases() {
  return {
      {},
      {.rows = 7, .depth = 33, .columns = 5},
      {.batch = {3}, .rows = 17, .depth = 19, .columns = 23, .b_form = Form::transposed},
      {.rows = 9, .depth = 64, .columns = 33, .a_form = Form::transposed},
      {.batch = {2},
       .rows = 6,
       .depth = 16,
       .columns = 16,
       .a_form = Form::gaps,
       .b_form = Form::gaps,
       .y_form = Form::gaps},
      {.rows = 5,
       .depth = 7,
       .columns = 18,
       .a_form = Form::step2,
       .b_form = Form::step2,
       .y_form = Form::transposed},
      {.batch = {2, 3},
       .rows = 4,
       .depth = 5,
       .columns = 6,
       .a_broadcast = 0b01,
       .b_broadcast = 0b10},
      {.batch = {2, 2, 2}, .rows = 3, .depth = 4, .columns = 2, .b_broadcast = 0b111},
      {.rows = 1, .depth = 131, .columns = 67},
      {.rows = 67, .depth = 131, .columns = 1},
      {.rows = 3, .depth = 0, .columns = 4},
      {.rows = 0, .depth = 3, .columns = 4},
      {.rows = 3, .depth = 3, .columns = 0},
      {.batch = {0}, .rows = 3, .depth = 3, .columns = 2},
  };
}

// Sizes around the block size of blocked kernels, in the type that has them.
std::vector<MatmulCase> f32_cases() {
  return {
      {.rows = 127, .depth = 300, .columns = 65},
      {.rows = 13, .depth = 1031, .columns = 49, .a_form = Form::gaps},
      {.rows = 97, .depth = 64, .columns = 263, .b_form = Form::transposed, .y_form = Form::gaps},
      {.rows = 65,
       .depth = 257,
       .columns = 31,
       .a_form = Form::transposed,
       .b_form = Form::transposed},
      {.batch = {5}, .rows = 33, .depth = 70, .columns = 17, .b_broadcast = 0b1},
      {.batch = {12}, .rows = 64, .depth = 64, .columns = 64, .big = true},
      {.rows = 256, .depth = 512, .columns = 384, .big = true},
      {.rows = 320, .depth = 512, .columns = 320, .b_form = Form::transposed, .big = true},
  };
}

// Layouts that matrix units read directly, and layouts that are copied first: sizes around their
// tiles of 64 and 128 lines, steps of 32 and packs of 8.
std::vector<MatmulCase> tensor_cases() {
  constexpr Form kTurned = Form::transposed;
  return {
      {.rows = 65, .depth = 40, .columns = 70, .b_form = kTurned},
      {.batch = {3}, .rows = 9, .depth = 24, .columns = 17, .b_form = kTurned},
      {.rows = 70, .depth = 30, .columns = 66},
      {.batch = {2}, .rows = 64, .depth = 8, .columns = 64, .a_form = kTurned},
      {.rows = 72, .depth = 33, .columns = 65, .b_form = kTurned, .y_form = kTurned},
      {.rows = 3, .depth = 64, .columns = 5, .b_form = kTurned, .y_form = kTurned},
      {.rows = 66, .depth = 48, .columns = 64, .a_form = Form::gaps, .b_form = Form::gaps},
      {.rows = 65, .depth = 16, .columns = 68, .y_form = Form::gaps},
      {.batch = {2, 3},
       .rows = 10,
       .depth = 32,
       .columns = 12,
       .b_form = kTurned,
       .a_broadcast = 0b01,
       .b_broadcast = 0b10},
      {.batch = {2, 1, 3}, .rows = 64, .depth = 17, .columns = 66, .b_broadcast = 0b101},
      {.batch = {17}, .rows = 129, .depth = 72, .columns = 130, .b_form = kTurned, .big = true},
  };
}

std::vector<HostArray> formula(const MatmulCase& c, const std::vector<HostArray>& inputs) {
  HostArray y = host_zeros(c.y().shape);
  if (c.depth == 0) return {y};
  for (int64_t i = 0; i < y.numel(); ++i) {
    const int64_t row = i / c.columns;  // of all matrices of a, one below the other
    const int64_t matrix = row / c.rows;
    const double* a = inputs[0].values.data() + row * c.depth;
    const double* b = inputs[1].values.data() + matrix * c.depth * c.columns + i % c.columns;
    for (int64_t k = 0; k < c.depth; ++k) y[i] += a[k] * b[k * c.columns];
  }
  return {y};
}

void add(OpTable& table, const MatmulCase& c) {
  table.add<MatmulArgs>(&KernelTable::matmul,
                        {.name = cat(c.dtype, ' ', c.a(), " * ", c.b(),
                                     c.y_form == Form::contiguous ? "" : " to strided"),
                         .family = is_integer(c.dtype) ? Family::exact : Family::product,
                         .build =
                             [c](Scene& scene) {
                               const View a = scene.input(c.a(), c.dtype);
                               const View b = scene.input(c.b(), c.dtype);
                               const View y = scene.output(c.y(), c.dtype);
                               scene.flops = 2.0 * static_cast<double>(y.numel() * c.depth);
                               return MatmulArgs{a, b, y};
                             },
                         .formula = [c](const auto& inputs) { return formula(c, inputs); },
                         .big = c.big});
}

OpTable table() {
  OpTable out("matmul");
  for (MatmulCase c : small_cases()) {
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::f64, DType::f8e4m3,
                              DType::i64, DType::i32, DType::i16}) {
      c.dtype = dtype;
      add(out, c);
    }
  }
  add(out, {.rows = 4, .depth = 3, .columns = 2, .dtype = DType::u8});
  add(out, {.rows = 4, .depth = 3, .columns = 2, .dtype = DType::u32});
  for (MatmulCase c : tensor_cases()) {
    for (const DType dtype : {DType::f16, DType::bf16, DType::f8e4m3}) {
      c.dtype = dtype;
      add(out, c);
    }
  }
  for (const MatmulCase& c : f32_cases()) add(out, c);
  return out;
}

const RegisterOp kRegistered(table);

}  // namespace
}  // namespace rbee::harness
