#include "rbee/ops/decode.h"

#include <algorithm>
#include <initializer_list>

#include "rbee/ops/checks.h"
#include "rbee/ops/run.h"

namespace rbee {
namespace {

struct Operand {
  const char* name;
  const Tensor& tensor;
  DType dtype;
  Shape shape;
};

void check_operands(const char* op, std::initializer_list<Operand> operands) {
  const Operand& first = *operands.begin();
  for (const Operand& each : operands) {
    check_shape(op, each.name, each.tensor, each.shape);
    check(each.tensor.dtype() == each.dtype, op, each.name, " is ", each.tensor, ", wanted ",
          each.dtype);
    check(each.tensor.contiguous(), op, each.name, " is ", each.tensor, " with gaps");
    check_same_device(op, first.name, first.tensor, each.name, each.tensor);
  }
}

}  // namespace

void draw_(const Tensor& drawn, const Tensor& x, const TopK& top_logits, const Draws& draws,
           const Tensor& turn) {
  check_rank("draw", "x", x, 2);
  check_rank("draw", "values", top_logits.values, 2);
  check_rank("draw", "numbers", draws.numbers, 2);
  const auto [rows, k] = top_logits.values.dims<2>();
  const int64_t n = x.dim(1), columns = draws.numbers.dim(1);
  check_operands("draw", {{"values", top_logits.values, DType::f32, {rows, k}},
                          {"ids", top_logits.ids, DType::i32, {rows, k}},
                          {"sum", top_logits.sum, DType::f32, {rows}},
                          {"stages", draws.stages, DType::i32, {rows, kDrawStages}},
                          {"amounts", draws.amounts, DType::f32, {rows, kDrawStages}},
                          {"banned", draws.banned, DType::i32, {rows, kDrawBans}},
                          {"numbers", draws.numbers, DType::f32, {rows, columns}},
                          {"turn", turn, DType::i32, {1}},
                          {"drawn", drawn, DType::i32, {rows}}});
  check(x.dim(0) == rows && x.dtype() == DType::f32 && (n < 2 || x.strides()[1] == 1), "draw",
        "x is ", x, ", wanted f32 of ", rows, " rows without gaps in them");
  check_same_device("draw", "x", x, "values", top_logits.values);
  const int64_t least = std::min(n, kDrawFront + kDrawBans);
  check(k >= std::max<int64_t>(least, 1) && k <= std::min(n, kMaxTopK) && columns >= 1, "draw",
        "values is ", top_logits.values, ", x is ", x, " and numbers is ", draws.numbers,
        "; wanted ", least, " to ", std::min(n, kMaxTopK), " of each row, and at least 1 column");
  const DrawArgs args{.x = x.view(),
                      .values = top_logits.values.view(),
                      .ids = top_logits.ids.view(),
                      .sum = top_logits.sum.view(),
                      .stages = draws.stages.view(),
                      .amounts = draws.amounts.view(),
                      .banned = draws.banned.view(),
                      .numbers = draws.numbers.view(),
                      .turn = turn.view(),
                      .drawn = drawn.view()};
  run("draw", kernels(drawn).draw, args, drawn.stream());
}

void next_step_(const StepIntegers& step, const Tensor& found, const Tensor& shown) {
  check_rank("next_step", "positions", step.positions, 1);
  check_rank("next_step", "block_table", step.block_table, 2);
  check_rank("next_step", "found", found, 1);
  const int64_t rows = step.positions.dim(0), count = found.dim(0);
  const int64_t width = step.block_table.dim(1);
  check_operands("next_step", {{"positions", step.positions, DType::i32, {rows}},
                               {"slots", step.slots, DType::i32, {rows}},
                               {"lengths", step.lengths, DType::i32, {rows}},
                               {"block_table", step.block_table, DType::i32, {rows, width}},
                               {"turn", step.turn, DType::i32, {1}},
                               {"found", found, DType::i32, {count}},
                               {"shown", shown, DType::i32, {2, count}}});
  check(step.block_size > 0, "next_step", "block_size is ", step.block_size, ", wanted 1 or more");
  const NextStepArgs args{.positions = step.positions.view(),
                          .slots = step.slots.view(),
                          .lengths = step.lengths.view(),
                          .block_table = step.block_table.view(),
                          .block_size = step.block_size,
                          .turn = step.turn.view(),
                          .found = found.view(),
                          .shown = shown.view()};
  run("next_step", kernels(found).next_step, args, found.stream());
}

}  // namespace rbee
