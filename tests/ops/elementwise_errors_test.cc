// Every check of the element-wise operations, copies, reductions, softmax, argsort, top_k, draws
// and norms: the code, the operation's name and both values in the message.
#include "rbee/ops/decode.h"
#include "rbee/ops/elementwise.h"
#include "rbee/ops/norm.h"
#include "rbee/ops/reduce.h"
#include "rbee/ops/softmax.h"
#include "rbee/ops/sort.h"
#include "rbee/ops/top_k.h"
#include "tests/support/expect_error.h"
#include "tests/support/op_table.h"

namespace rbee::harness {
namespace {

Tensor tensor(const Shape& shape, DType dtype = DType::f32) {
  return zeros(shape, dtype, *all_devices().front());
}

TEST(ElementwiseErrors, Unary) {
  const Tensor blocks = tensor({2, 32}, DType::q8_0);
  expect_error("affine", "x is undefined", "", [] { affine({}, 1, 0); });
  expect_error("affine", "x is q8_0 (2, 32)", "cast it", [&] { affine(blocks, 1, 0); });
  expect_error("unary", "x is undefined", "", [] { unary(UnaryOp::exp, {}); });
  expect_error("unary", "x is q8_0 (2, 32)", "cast it", [&] { unary(UnaryOp::exp, blocks); });
  expect_error("unary", "exp needs a float type", "x is i32 (3)",
               [] { unary(UnaryOp::exp, tensor({3}, DType::i32)); });
  expect_error("unary", "elu takes a parameter", "x is f32 (3)",
               [] { unary(UnaryOp::elu, tensor({3})); });
  expect_error("unary", "powf takes a parameter", "x is f32 (3)",
               [] { unary(UnaryOp::powf, tensor({3})); });
  expect_error("elu", "x is undefined", "", [] { elu({}, 1); });
  expect_error("elu", "x is u8 (3)", "not a float", [] { elu(tensor({3}, DType::u8), 1); });
  expect_error("powf", "x is i64 (3)", "not a float", [] { powf(tensor({3}, DType::i64), 2); });
}

TEST(ElementwiseErrors, Binary) {
  const Tensor x = tensor({2, 3});
  expect_error("binary", "a is undefined", "", [&] { binary(BinaryOp::add, {}, x); });
  expect_error("binary", "b is undefined", "", [&] { binary(BinaryOp::add, x, {}); });
  expect_error("binary", "a is f32 (2, 3)", "b is f16 (2, 3)",
               [&] { binary(BinaryOp::add, x, tensor({2, 3}, DType::f16)); });
  expect_error("binary", "2, 3", "2, 4", [&] { binary(BinaryOp::add, x, tensor({2, 4})); });
  expect_error("binary", "a is q4_0 (32)", "cast it", [&] {
    binary(BinaryOp::add, tensor({32}, DType::q4_0), tensor({32}, DType::q4_0));
  });
  expect_error("compare", "a is undefined", "", [&] { compare(CompareOp::lt, {}, x); });
  expect_error("compare", "b is q4_0", "cast it",
               [&] { compare(CompareOp::lt, x, tensor({32}, DType::q4_0)); });
  expect_error("compare", "a is f32 (2, 3)", "b is i32 (2, 3)",
               [&] { compare(CompareOp::lt, x, tensor({2, 3}, DType::i32)); });
  expect_error("compare", "2, 3", "5", [&] { compare(CompareOp::lt, x, tensor({5})); });
}

TEST(ElementwiseErrors, Where) {
  const Tensor x = tensor({2, 3}), cond = tensor({2, 3}, DType::u8);
  expect_error("where", "cond is undefined", "", [&] { where({}, x, x); });
  expect_error("where", "cond is f32 (2, 3)", "not an integer", [&] { where(x, x, x); });
  expect_error("where", "a is undefined", "", [&] { where(cond, {}, x); });
  expect_error("where", "b is undefined", "", [&] { where(cond, x, {}); });
  expect_error("where", "a is f32 (2, 3)", "b is f64 (2, 3)",
               [&] { where(cond, x, tensor({2, 3}, DType::f64)); });
  expect_error("where", "2, 3", "4", [&] { where(cond, x, tensor({4})); });
  expect_error("where", "7, 3", "2, 3", [&] { where(tensor({7, 3}, DType::u8), x, x); });
}

TEST(CopyErrors, Cast) {
  const Tensor x = tensor({2, 32});
  expect_error("cast", "x is undefined", "", [] { cast({}, DType::f16); });
  expect_error("cast", "x is f32 (2, 32)", "q8_0 is made by rbee/quant",
               [&] { cast(x, DType::q8_0); });
  expect_error("cast", "x is q8_0 (2, 32)", "not i32",
               [] { cast(tensor({2, 32}, DType::q8_0), DType::i32); });
}

TEST(CopyErrors, CopyAndFill) {
  Tensor y = tensor({2, 3}), undefined;
  Tensor wide = tensor({1, 3}).broadcast_to({2, 3});
  Tensor blocks = tensor({2, 32}, DType::q8_0);
  expect_error("contiguous", "x is undefined", "", [] { contiguous({}); });
  expect_error("copy", "y is undefined", "", [&] { copy_(undefined, y); });
  expect_error("copy", "x is undefined", "", [&] { copy_(y, {}); });
  expect_error("copy", "y is f32 (2, 3)", "x is i32 (2, 3)",
               [&] { copy_(y, tensor({2, 3}, DType::i32)); });
  expect_error("copy", "x is f32 (3, 2)", "wanted (2, 3)", [&] { copy_(y, tensor({3, 2})); });
  expect_error("copy", "y is f32 (2, 3)", "axis 0", [&] { copy_(wide, y); });
  expect_error("copy", "y is q8_0", "cast it", [&] { copy_(blocks, blocks); });
  expect_error("add_", "y is undefined", "", [&] { add_(undefined, y); });
  expect_error("add_", "x is f32 (3, 2)", "wanted (2, 3)", [&] { add_(y, tensor({3, 2})); });
  expect_error("add_", "y is f32 (2, 3)", "axis 0", [&] { add_(wide, y); });
  expect_error("fill", "y is undefined", "", [&] { fill_(undefined, 1); });
  expect_error("fill", "y is q8_0", "cast it", [&] { fill_(blocks, 1); });
}

TEST(CopyErrors, Copy2d) {
  Tensor dst = tensor({12}), undefined;
  const Tensor src = tensor({10});
  expect_error("copy2d", "dst is undefined", "", [&] { copy2d_(undefined, src, 1, 1, 1, 1); });
  expect_error("copy2d", "src is undefined", "", [&] { copy2d_(dst, {}, 1, 1, 1, 1); });
  expect_error("copy2d", "dst is f32 (12)", "src is f16 (10)",
               [&] { copy2d_(dst, tensor({10}, DType::f16), 1, 1, 1, 1); });
  expect_error("copy2d", "rows is -1", "cols is 2", [&] { copy2d_(dst, src, -1, 2, 2, 2); });
  expect_error("copy2d", "dst_stride is 2", "cols is 3", [&] { copy2d_(dst, src, 1, 3, 2, 3); });
  expect_error("copy2d", "src_stride is -1", "cols is 3", [&] { copy2d_(dst, src, 1, 3, 3, -1); });
  expect_error("copy2d", "src is f32 (10)", "3 rows of 4, 4 apart",
               [&] { copy2d_(dst, src, 3, 4, 4, 4); });
  expect_error("copy2d", "dst is f32 (12)", "2 rows of 4, 9 apart",
               [&] { copy2d_(dst, src, 2, 4, 9, 4); });
  expect_error("copy2d", "dst is f32 (12)", "9223372036854775807 apart",
               [&] { copy2d_(dst, src, 3, 4, INT64_MAX, 4); });
  expect_error("copy2d", "src is f32 (5, 2)", "1 axes",
               [&] { copy2d_(dst, tensor({5, 2}), 1, 1, 1, 1); });
  const Tensor gaps = tensor({5, 2}).slice(Axis{1}, 0, 1).squeeze(Axis{1});
  expect_error("copy2d", "src is f32 (5)", "not contiguous",
               [&] { copy2d_(dst, gaps, 1, 1, 1, 1); });
}

TEST(ReduceErrors, Axes) {
  const Tensor x = tensor({2, 3});
  const Axis both[] = {Axis{0}, Axis{1}}, twice[] = {Axis{1}, Axis{-1}};
  expect_error("reduce", "x is undefined", "", [] { reduce(ReduceOp::sum, {}, Axis{0}); });
  expect_error("reduce", "axis 2", "f32 (2, 3)", [&] { reduce(ReduceOp::sum, x, Axis{2}); });
  expect_error("reduce", "axis -3", "f32 (2, 3)", [&] { reduce(ReduceOp::sum, x, Axis{-3}); });
  expect_error("reduce", "axis 1 of f32 (2, 3)", "twice", [&] { reduce(ReduceOp::sum, x, twice); });
  expect_error("reduce", "1 axis, not 2", "f32 (2, 3)", [&] { reduce(ReduceOp::argmax, x, both); });
  expect_error("reduce", "x is f32 (2, 0)", "no elements",
               [] { reduce(ReduceOp::max, tensor({2, 0}), Axis{1}); });
  expect_error("reduce", "x is q8_0", "cast it",
               [] { reduce(ReduceOp::sum, tensor({2, 32}, DType::q8_0), Axis{1}); });
}

TEST(RowErrors, SoftmaxAndArgsort) {
  const Tensor blocks = tensor({2, 32}, DType::q8_0);
  expect_error("softmax", "x is undefined", "", [] { softmax({}); });
  expect_error("softmax", "x is i32 (3)", "not a float", [] { softmax(tensor({3}, DType::i32)); });
  expect_error("softmax", "x is f32 ()", "at least 1 axis", [] { softmax(tensor({})); });
  expect_error("argsort", "x is undefined", "", [] { argsort({}); });
  expect_error("argsort", "x is q8_0", "cast it", [&] { argsort(blocks); });
  expect_error("argsort", "x is f32 ()", "at least 1 axis", [] { argsort(tensor({})); });
  // A view of one element: no memory of this size is allocated.
  const Tensor long_row = tensor({1}).broadcast_to({int64_t{1} << 32});
  expect_error("argsort", "4294967296", "4294967295", [&] { argsort(long_row); });
  expect_error("reduce", "4294967296", "4294967295",
               [&] { reduce(ReduceOp::argmin, long_row, Axis{0}); });
}

TEST(DecodeErrors, Draw) {
  const Tensor x = tensor({2, 4});
  const TopK from = {
      .values = tensor({2, 4}), .ids = tensor({2, 4}, DType::i32), .sum = tensor({2})};
  const Draws draws = {.stages = tensor({2, kDrawStages}, DType::i32),
                       .amounts = tensor({2, kDrawStages}),
                       .banned = tensor({2, kDrawBans}, DType::i32),
                       .numbers = tensor({2, 3})};
  const Tensor drawn = tensor({2}, DType::i32), turn = tensor({1}, DType::i32);
  draw_(drawn, x, from, draws, turn);
  expect_error("draw", "values is undefined", "", [&] { draw_(drawn, x, {}, draws, turn); });
  expect_error("draw", "sum is undefined", "", [&] {
    draw_(drawn, x, {.values = from.values, .ids = from.ids, .sum = {}}, draws, turn);
  });
  expect_error("draw", "ids is f32 (2, 4)", "wanted i32", [&] {
    draw_(drawn, x, {.values = from.values, .ids = from.values, .sum = from.sum}, draws, turn);
  });
  expect_error("draw", "drawn is i32 (3)", "wanted (2)",
               [&] { draw_(tensor({3}, DType::i32), x, from, draws, turn); });
  expect_error("draw", "turn is i32 (2)", "wanted (1)",
               [&] { draw_(drawn, x, from, draws, drawn); });
  expect_error("draw", "x is f32 (3, 4)", "2 rows",
               [&] { draw_(drawn, tensor({3, 4}), from, draws, turn); });
  expect_error("draw", "x is f16 (2, 4)", "wanted f32",
               [&] { draw_(drawn, tensor({2, 4}, DType::f16), from, draws, turn); });
  expect_error("draw", "x is f32 (2, 5)", "5 to 5 of each row",
               [&] { draw_(drawn, tensor({2, 5}), from, draws, turn); });
  Draws other = draws;
  other.stages = tensor({2, 3}, DType::i32);
  expect_error("draw", "stages is i32 (2, 3)", "wanted (2, 4)",
               [&] { draw_(drawn, x, from, other, turn); });
  other.stages = draws.stages;
  other.numbers = tensor({2, 0});
  expect_error("draw", "numbers is f32 (2, 0)", "1 column",
               [&] { draw_(drawn, x, from, other, turn); });
  other.numbers = tensor({2, 6}).slice(Axis{1}, 0, 3);
  expect_error("draw", "numbers is f32 (2, 3)", "gaps",
               [&] { draw_(drawn, x, from, other, turn); });
}

TEST(DecodeErrors, NextStep) {
  const auto integers = [](const Shape& shape) { return tensor(shape, DType::i32); };
  const StepIntegers step{.positions = integers({2}),
                          .slots = integers({2}),
                          .lengths = integers({2}),
                          .block_table = integers({2, 3}),
                          .block_size = 4,
                          .turn = integers({1})};
  const Tensor found = integers({5}), shown = integers({2, 5});
  next_step_(step, found, shown);
  const auto with = [&](auto change) {
    StepIntegers out = step;
    change(out);
    return out;
  };
  expect_error("next_step", "positions is undefined", "", [&] { next_step_({}, found, shown); });
  expect_error("next_step", "slots is i32 (3)", "wanted (2)",
               [&] { next_step_(with([&](auto& s) { s.slots = integers({3}); }), found, shown); });
  expect_error("next_step", "lengths is f32 (2)", "wanted i32",
               [&] { next_step_(with([&](auto& s) { s.lengths = tensor({2}); }), found, shown); });
  expect_error("next_step", "block_table is i32 (3, 3)", "wanted (2, 3)", [&] {
    next_step_(with([&](auto& s) { s.block_table = integers({3, 3}); }), found, shown);
  });
  expect_error("next_step", "block_size is 0", "1 or more",
               [&] { next_step_(with([](auto& s) { s.block_size = 0; }), found, shown); });
  expect_error("next_step", "shown is i32 (2, 4)", "wanted (2, 5)",
               [&] { next_step_(step, found, integers({2, 4})); });
}

TEST(RowErrors, TopK) {
  const Tensor x = tensor({2, 30});
  expect_error("top_k", "x is undefined", "", [] { top_k({}, 1); });
  expect_error("top_k", "x is f32 (3)", "2 axes", [] { top_k(tensor({3}), 1); });
  expect_error("top_k", "k is 31", "x is f32 (2, 30)", [&] { top_k(x, 31); });
  expect_error("top_k", "k is 0", "at least 1", [&] { top_k(x, 0); });
  expect_error("top_k", "k is 1025", "1024", [] { top_k(tensor({1, 2000}), 1025); });
  expect_error("top_k", "scale is f32 (3)", "wanted (2)",
               [&] { top_k(x, 1, RowSum::wanted, tensor({3})); });
  expect_error("top_k", "scale is f16 (2)", "wanted f32",
               [&] { top_k(x, 1, RowSum::wanted, tensor({2}, DType::f16)); });
  const TopK into{.values = tensor({2, 4}), .ids = tensor({2, 4}, DType::i32), .sum = {}};
  expect_error("top_k", "ids is f32 (2, 4)", "wanted f32 and i32",
               [&] { top_k_({.values = into.values, .ids = into.values, .sum = {}}, x); });
  expect_error("top_k", "ids is i32 (1, 4)", "wanted (2, 4)", [&] {
    top_k_({.values = into.values, .ids = tensor({1, 4}, DType::i32), .sum = {}}, x);
  });
  EXPECT_THROW(top_k(tensor({2, 3}, DType::f64), 1), Error);
}

TEST(NormErrors, LayerNorm) {
  const Tensor x = tensor({2, 6});
  expect_error("layer_norm", "x is undefined", "", [] { layer_norm({}, {}, {}, 1e-5f); });
  expect_error("layer_norm", "x is i32 (3)", "not a float",
               [] { layer_norm(tensor({3}, DType::i32), {}, {}, 1e-5f); });
  expect_error("layer_norm", "x is f32 ()", "at least 1 axis",
               [] { layer_norm(tensor({}), {}, {}, 1e-5f); });
  expect_error("layer_norm", "weight is f32 (5)", "wanted (6)",
               [&] { layer_norm(x, tensor({5}), {}, 1e-5f); });
  expect_error("layer_norm", "x is f32 (2, 6)", "weight is f16 (6)",
               [&] { layer_norm(x, tensor({6}, DType::f16), {}, 1e-5f); });
  expect_error("layer_norm", "bias is f32 (1, 6)", "wanted (6)",
               [&] { layer_norm(x, {}, tensor({1, 6}), 1e-5f); });
}

TEST(NormErrors, GroupNorm) {
  const Tensor x = tensor({2, 6, 4});
  expect_error("group_norm", "x is undefined", "", [] { group_norm({}, 1, {}, {}, 1e-5f); });
  expect_error("group_norm", "x is u8 (2, 6)", "not a float",
               [] { group_norm(tensor({2, 6}, DType::u8), 1, {}, {}, 1e-5f); });
  expect_error("group_norm", "x is f32 (6)", "batch, channels",
               [] { group_norm(tensor({6}), 1, {}, {}, 1e-5f); });
  expect_error("group_norm", "x is f32 (2, 6, 4)", "4 equal groups",
               [&] { group_norm(x, 4, {}, {}, 1e-5f); });
  expect_error("group_norm", "x is f32 (2, 6, 4)", "0 equal groups",
               [&] { group_norm(x, 0, {}, {}, 1e-5f); });
  expect_error("group_norm", "weight is f32 (4)", "wanted (6)",
               [&] { group_norm(x, 2, tensor({4}), {}, 1e-5f); });
  expect_error("group_norm", "x is f32", "bias is bf16 (6)",
               [&] { group_norm(x, 2, {}, tensor({6}, DType::bf16), 1e-5f); });
}

}  // namespace
}  // namespace rbee::harness
