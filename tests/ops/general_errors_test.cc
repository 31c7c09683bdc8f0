// Every check of the convolutions, pooling, upsampling, indexing, matmul, attention, random and
// recurrent operations: the code, the operation's name and both values in the message.
#include "rbee/ops/attention.h"
#include "rbee/ops/conv.h"
#include "rbee/ops/indexing.h"
#include "rbee/ops/matmul.h"
#include "rbee/ops/pool.h"
#include "rbee/ops/random.h"
#include "rbee/ops/recurrent.h"
#include "rbee/ops/upsample.h"
#include "tests/support/expect_error.h"
#include "tests/support/op_table.h"

namespace rbee::harness {
namespace {

Device& cpu() {
  return *all_devices().front();
}

Tensor tensor(const Shape& shape, DType dtype = DType::f32) {
  return zeros(shape, dtype, cpu());
}

Tensor ids(std::vector<int64_t> values) {
  const auto count = static_cast<int64_t>(values.size());
  return from_host<int64_t>(values, {count}, cpu());
}

TEST(ConvErrors, Operands) {
  const Tensor x = tensor({1, 4, 9});
  const Tensor weight = tensor({6, 4, 3});
  expect_error("conv1d", "x is undefined", "", [&] { conv1d({}, weight, {}); });
  expect_error("conv1d", "x is f32 (1, 4) on cpu:0", "3 axes",
               [&] { conv1d(tensor({1, 4}), weight, {}); });
  expect_error("conv1d", "x is q8_0", "cast it",
               [&] { conv1d(tensor({1, 4, 32}, DType::q8_0), weight, {}); });
  expect_error("conv1d", "x is f32", "weight is f16",
               [&] { conv1d(x, tensor({6, 4, 3}, DType::f16), {}); });
  expect_error("conv1d", "weight is f32 (6, 4)", "3 axes", [&] { conv1d(x, tensor({6, 4}), {}); });
  expect_error("conv1d", "weight is f32 (6, 3, 3)", "should be 4",
               [&] { conv1d(x, tensor({6, 3, 3}), {}); });
  expect_error("conv1d", "bias is f32 (5)", "wanted (6)", [&] { conv1d(x, weight, tensor({5})); });
  expect_error("conv1d", "x is f32", "bias is f64",
               [&] { conv1d(x, weight, tensor({6}, DType::f64)); });
  expect_error("conv2d", "x is f32 (1, 4, 9)", "4 axes",
               [&] { conv2d(x, tensor({6, 4, 3, 3}), {}); });
  expect_error("conv_transpose1d", "weight is f32 (6, 4, 3)", "should be 4",
               [&] { conv_transpose1d(x, weight, {}); });
  expect_error("conv_transpose2d", "bias is f32 (6)", "wanted (10)", [&] {
    conv_transpose2d(tensor({1, 4, 3, 3}), tensor({4, 5, 2, 2}), tensor({6}), {.groups = 2});
  });
}

TEST(ConvErrors, Options) {
  const Tensor x = tensor({1, 4, 9});
  const Tensor weight = tensor({6, 4, 3});
  expect_error("conv1d", "3 groups", "4 input", [&] { conv1d(x, weight, {}, {.groups = 3}); });
  expect_error("conv1d", "0 groups", "6 output", [&] { conv1d(x, weight, {}, {.groups = 0}); });
  expect_error("conv1d", "stride along length is 0", "1 to",
               [&] { conv1d(x, weight, {}, {.stride = 0}); });
  expect_error("conv1d", "padding along length is -1", "0 to",
               [&] { conv1d(x, weight, {}, {.padding = -1}); });
  expect_error("conv1d", "dilation along length is 0", "1 to",
               [&] { conv1d(x, weight, {}, {.dilation = 0}); });
  expect_error("conv1d", "spans 11", "has 9", [&] { conv1d(x, weight, {}, {.dilation = 5}); });
  expect_error("conv1d", "kernel's length is 0", "1 to", [&] { conv1d(x, tensor({6, 4, 0}), {}); });
  expect_error("conv2d", "stride along width is -2", "1 to",
               [&] { conv2d(tensor({1, 1, 3, 3}), tensor({1, 1, 2, 2}), {}, {.stride_w = -2}); });
  expect_error("conv2d", "spans 4 along height", "has 3",
               [&] { conv2d(tensor({1, 1, 3, 9}), tensor({1, 1, 4, 4}), {}); });
  const Tensor transposed = tensor({4, 6, 3});
  expect_error("conv_transpose1d", "3 groups", "4 input",
               [&] { conv_transpose1d(x, transposed, {}, {.groups = 3}); });
  expect_error("conv_transpose1d", "output padding along length is 2", "stride 2",
               [&] { conv_transpose1d(x, transposed, {}, {.stride = 2, .output_padding = 2}); });
  expect_error("conv_transpose1d", "padding 6", "result of 11",
               [&] { conv_transpose1d(x, transposed, {}, {.padding = 6}); });
}

TEST(Im2colErrors, OperandsAndOptions) {
  const Tensor x = tensor({1, 2, 3, 5});
  expect_error("im2col", "x is f32 (3)", "4 axes", [&] { im2col(tensor({3}), {}); });
  expect_error("im2col", "spans 4 along height", "has 3", [&] { im2col(x, {.kernel_h = 4}); });
  expect_error("im2col", "kernel's width is 0", "1 to", [&] { im2col(x, {.kernel_w = 0}); });
  expect_error("im2col1d", "x is f32 (1, 2, 3, 5)", "3 axes", [&] { im2col1d(x, {}); });
  expect_error("col2im1d", "x is f32 (3)", "4 axes", [&] { col2im1d(tensor({3}), 1); });
  expect_error("col2im1d", "stride along length is 0", "1 to", [&] { col2im1d(x, 0); });
}

TEST(PoolErrors, OperandsAndOptions) {
  const Tensor x = tensor({1, 2, 3, 5});
  expect_error("pool2d", "x is f32 (3)", "4 axes", [&] { pool2d(PoolOp::max, tensor({3}), {}); });
  expect_error("pool2d", "window's height is 4", "x has 3",
               [&] { pool2d(PoolOp::avg, x, {.kernel_h = 4}); });
  expect_error("pool2d", "window's width is 0", "x has 5",
               [&] { pool2d(PoolOp::avg, x, {.kernel_w = 0}); });
  expect_error("pool2d", "stride along width is 0", "at least 1",
               [&] { pool2d(PoolOp::avg, x, {.stride_w = 0}); });
}

TEST(UpsampleErrors, OperandsAndSizes) {
  const Tensor x = tensor({1, 2, 3, 5});
  expect_error("upsample_nearest1d", "x is f32 (1, 2, 3, 5)", "3 axes",
               [&] { upsample_nearest1d(x, 4); });
  expect_error("upsample_nearest2d", "result's height is 0", "1 to",
               [&] { upsample_nearest2d(x, 0, 4); });
  expect_error("upsample_nearest2d", "input's width is 0", "1 to",
               [&] { upsample_nearest2d(tensor({1, 2, 3, 0}), 4, 4); });
  expect_error("upsample_bilinear2d", "x is u8", "not a float",
               [&] { upsample_bilinear2d(tensor({1, 2, 3, 5}, DType::u8), 4, 4); });
  expect_error("upsample_bilinear2d", "result's width is -1", "1 to",
               [&] { upsample_bilinear2d(x, 4, -1); });
}

constexpr Axis kRows{0};
constexpr Axis kColumns{1};

TEST(IndexingErrors, Operands) {
  const Tensor x = tensor({3, 5});
  const Tensor pick = tensor({2, 5}, DType::i32);
  expect_error("gather", "axis 2", "f32 (3, 5)", [&] { gather(x, Axis{2}, pick); });
  expect_error("gather", "ids are f32 (2, 5)", "u8, u32, i16, i32 or i64",
               [&] { gather(x, kRows, tensor({2, 5})); });
  expect_error("gather", "ids is i32 (2)", "2 axes",
               [&] { gather(x, kRows, tensor({2}, DType::i32)); });
  expect_error("gather", "ids are i32 (2, 6)", "f32 (3, 5)",
               [&] { gather(x, kRows, tensor({2, 6}, DType::i32)); });
  expect_error("scatter", "src is f32 (3, 5)", "wanted (2, 5)",
               [&] { scatter(x, kRows, pick, x); });
  expect_error("scatter_add", "x is f32", "src is f16",
               [&] { scatter_add(x, kRows, pick, tensor({2, 5}, DType::f16)); });
  expect_error("index_select", "ids is i32 (2, 5)", "1 axes",
               [&] { index_select(x, kRows, pick); });
  expect_error("index_add", "src is f32 (3, 5)", "wanted (2, 5)",
               [&] { index_add(x, kRows, ids({0, 1}), x); });
}

TEST(IndexingErrors, IdsOutOfRange) {
  const Tensor x = tensor({3, 5});
  expect_error("index_select", "id 3 at element 1", "axis of 3",
               [&] { index_select(x, kRows, ids({2, 3})); });
  expect_error("index_add", "id 5 at element 0", "axis of 5",
               [&] { index_add(x, kColumns, ids({5}), tensor({3, 1})); });
  expect_error("gather", "id 7 at element 1", "axis of 5",
               [&] { gather(x, kColumns, ids({4, 7}).reshape({1, 2})); });
  const Tensor bytes = from_host<uint8_t>(std::vector<uint8_t>{9}, {1, 1}, cpu());
  expect_error("scatter", "id 9 at element 0", "axis of 3",
               [&] { scatter(x, kRows, bytes, tensor({1, 1})); });
}

TEST(IndexingErrors, NoElementIsAllowed) {
  const Tensor x = from_host<float>(std::vector<float>{1, 2, 3}, {3}, cpu());
  const Tensor y = index_select(x, kRows, ids({2, -1, -7, std::numeric_limits<int64_t>::max()}));
  EXPECT_THAT(y.to_host<float>(), ::testing::ElementsAre(3, 0, 0, 0));
  const Tensor none = from_host<uint8_t>(std::vector<uint8_t>{255, 1}, {2}, cpu());
  EXPECT_THAT(index_add(x, kRows, none, tensor({2})).to_host<float>(),
              ::testing::ElementsAre(1, 2, 3));
  EXPECT_THAT(scatter(x, kRows, none, tensor({2})).to_host<float>(),
              ::testing::ElementsAre(1, 0, 3));
  EXPECT_THAT(x.to_host<float>(), ::testing::ElementsAre(1, 2, 3)) << "x is not changed";
}

TEST(MatmulErrors, Operands) {
  expect_error("matmul", "a is f32 (3)", "b is f32 (3, 2)",
               [] { matmul(tensor({3}), tensor({3, 2})); });
  expect_error("matmul", "4 columns", "5 rows", [] { matmul(tensor({2, 4}), tensor({5, 3})); });
  expect_error("matmul", "a is f32", "b is bf16",
               [] { matmul(tensor({2, 4}), tensor({4, 3}, DType::bf16)); });
  expect_error("matmul", "a is q8_0", "cast it",
               [] { matmul(tensor({2, 32}, DType::q8_0), tensor({32, 3})); });
  expect_error("matmul", "2", "3", [] { matmul(tensor({2, 1, 4}), tensor({3, 4, 5})); });
}

TEST(AttentionErrors, Operands) {
  const Tensor q = tensor({2, 6, 3, 8});
  const Tensor k = tensor({2, 3, 5, 8});
  expect_error("attention", "q is i32", "not a float",
               [&] { attention(tensor({2, 6, 3, 8}, DType::i32), k, k, {}); });
  expect_error("attention", "q is f32", "k is f16",
               [&] { attention(q, tensor({2, 3, 5, 8}, DType::f16), k, {}); });
  expect_error("attention", "q is f32 (6, 3, 8)", "4 axes",
               [&] { attention(tensor({6, 3, 8}), k, k, {}); });
  expect_error("attention", "q is f32 (2, 6, 3, 8)", "k is f32 (2, 3, 5, 7)",
               [&] { attention(q, tensor({2, 3, 5, 7}), k, {}); });
  expect_error("attention", "v is f32 (2, 3, 4, 8)", "wanted (2, 3, 5, 8)",
               [&] { attention(q, k, tensor({2, 3, 4, 8}), {}); });
  expect_error("attention", "6 heads", "4 key heads",
               [&] { attention(q, tensor({2, 4, 5, 8}), tensor({2, 4, 5, 8}), {}); });
  expect_error("attention", "q is f32 (2, 6, 3, 0)", "at least one",
               [&] { attention(tensor({2, 6, 3, 0}), tensor({2, 3, 5, 0}), k, {}); });
}

TEST(PagedAttentionErrors, NumbersOfHeads) {
  const Tensor q = tensor({3, 4, 8}), cache = tensor({2, 2, 16, 8});
  const auto integers = [](const std::vector<int32_t>& values, const Shape& shape) {
    return from_host<int32_t>(values, shape, cpu());
  };
  const PagedBatch batch{.seq_starts = integers({0, 3}, {2}),
                         .kv_lens = integers({9}, {1}),
                         .block_table = integers({1}, {1, 1})};
  const auto attend = [&](const PagedAttentionOptions& options) {
    paged_attention(q, cache, cache, batch, options);
  };
  expect_error("paged_attention", "sinks is f32 (3)", "(4)",
               [&] { attend({.sinks = tensor({3})}); });
  expect_error("paged_attention", "alibi_slopes is f32 (3)", "(4)",
               [&] { attend({.alibi_slopes = tensor({3})}); });
  expect_error("paged_attention", "alibi_slopes is f16", "wanted contiguous f32",
               [&] { attend({.alibi_slopes = tensor({4}, DType::f16)}); });
}

TEST(AttentionErrors, Options) {
  const Tensor q = tensor({2, 6, 3, 8});
  const Tensor k = tensor({2, 3, 5, 8});
  expect_error("attention", "mask is f16", "wanted f32",
               [&] { attention(q, k, k, {.mask = tensor({3, 5}, DType::f16)}); });
  expect_error("attention", "mask is f32 (4, 1, 3, 5)", "(2, 6, 3, 5)",
               [&] { attention(q, k, k, {.mask = tensor({4, 1, 3, 5})}); });
  expect_error("attention", "alibi_slopes is f32 (3)", "wanted (6)",
               [&] { attention(q, k, k, {.alibi_slopes = tensor({3})}); });
  expect_error("attention", "window is -1", "0 (off)", [&] { attention(q, k, k, {.window = -1}); });
  expect_error("attention", "softcap is -2", "0 (off)",
               [&] { attention(q, k, k, {.softcap = -2}); });
  expect_error("attention", "scale is inf", "not finite",
               [&] { attention(q, k, k, {.scale = INFINITY}); });
}

TEST(RandomErrors, Options) {
  expect_error("random_uniform", "dtype is i32", "not a float",
               [] { random_uniform({2}, DType::i32, cpu()); });
  expect_error("random_uniform", "[2, 2)", "not a range",
               [] { random_uniform({2}, DType::f32, cpu(), {.low = 2, .high = 2}); });
  expect_error("random_normal", "standard deviation -1", "mean 0",
               [] { random_normal({2}, DType::f32, cpu(), {.stddev = -1}); });
}

Tensor list(std::vector<int32_t> values) {
  const auto count = static_cast<int64_t>(values.size());
  return from_host<int32_t>(values, {count}, cpu());
}

// Two sequences of three tokens.
SequenceStates two_runs() {
  return {.seq_starts = list({0, 1, 3}), .positions = list({4, 0, 1}), .slots = list({1, -1})};
}

TEST(RecurrentErrors, Convolution) {
  const auto refuse = [](const char* first, const char* second, const Tensor& x,
                         const Tensor& weight, Tensor state, const SequenceStates& batch) {
    expect_error("causal_conv", first, second, [&] { causal_conv_(x, weight, state, batch); });
  };
  const Tensor x = tensor({3, 5}), weight = tensor({4, 5}), state = tensor({2, 3, 5});
  refuse("x is i32", "float", tensor({3, 5}, DType::i32), weight, state, two_runs());
  refuse("x is f32 (3)", "2 axes", tensor({3}), weight, state, two_runs());
  refuse("weight is f32 (5)", "2 axes", x, tensor({5}), state, two_runs());
  refuse("weight is f32 (1, 5)", "two rows", x, tensor({1, 5}), state, two_runs());
  refuse("weight is f32 (4, 6)", "(4, 5)", x, tensor({4, 6}), state, two_runs());
  refuse("weight is f16", "contiguous f32", x, tensor({4, 5}, DType::f16), state, two_runs());
  refuse("state is f32 (3, 5)", "3 axes", x, weight, tensor({3, 5}), two_runs());
  refuse("state is f32 (2, 2, 5)", "(2, 3, 5)", x, weight, tensor({2, 2, 5}), two_runs());
  const auto refuse_batch = [&](const char* first, const char* second, auto change) {
    SequenceStates batch = two_runs();
    change(batch);
    refuse(first, second, x, weight, state, batch);
  };
  using Batch = SequenceStates;
  refuse_batch("slots is undefined", "", [](Batch& b) { b.slots = {}; });
  refuse_batch("seq_starts is i32 (2)", "(3)", [](Batch& b) { b.seq_starts = list({0, 3}); });
  refuse_batch("positions is i32 (2)", "(3)", [](Batch& b) { b.positions = list({0, 1}); });
  refuse_batch("positions is f32", "i32", [](Batch& b) { b.positions = tensor({3}); });
  refuse_batch("from 0 to 2", "0 to 3", [](Batch& b) { b.seq_starts = list({0, 1, 2}); });
  refuse_batch("0 to 3", "in order", [](Batch& b) { b.seq_starts = list({0, 4, 3}); });
  refuse_batch("slot 2 is outside", "-1 to 1", [](Batch& b) { b.slots = list({0, 2}); });
  refuse_batch("slot -2 is outside", "-1 to 1", [](Batch& b) { b.slots = list({0, -2}); });
  refuse_batch("two sequences have slot 1", "", [](Batch& b) { b.slots = list({1, 1}); });
}

TEST(RecurrentErrors, DeltaRule) {
  const auto refuse = [](const char* first, const char* second, auto change) {
    DeltaRuleInputs in{.q = tensor({3, 2, 8}),
                       .k = tensor({3, 2, 8}),
                       .v = tensor({3, 4, 6}),
                       .a = tensor({3, 4}),
                       .b = tensor({3, 4}),
                       .decay = tensor({4}),
                       .a_bias = tensor({4})};
    Tensor state = tensor({2, 4, 8, 6});
    change(in, state);
    expect_error("delta_rule", first, second, [&] { delta_rule_(in, state, two_runs()); });
  };
  using In = DeltaRuleInputs;
  refuse("v is i32", "float", [](In& in, Tensor&) { in.v = tensor({3, 4, 6}, DType::i32); });
  refuse("v is f32 (3, 24)", "3 axes", [](In& in, Tensor&) { in.v = tensor({3, 24}); });
  refuse("k is f32 (3, 16)", "3 axes", [](In& in, Tensor&) { in.k = tensor({3, 16}); });
  refuse("v is f32", "k is f16", [](In& in, Tensor&) { in.k = tensor({3, 2, 8}, DType::f16); });
  refuse("k is f32 (2, 2, 8)", "(3, 2, 8)", [](In& in, Tensor&) { in.k = tensor({2, 2, 8}); });
  refuse("v has 4 heads", "k has 3", [](In& in, Tensor&) { in.k = tensor({3, 3, 8}); });
  refuse("q is f32 (3, 1, 8)", "(3, 2, 8)", [](In& in, Tensor&) { in.q = tensor({3, 1, 8}); });
  refuse("a is f32 (3, 2)", "(3, 4)", [](In& in, Tensor&) { in.a = tensor({3, 2}); });
  refuse("b is f32 (3, 2)", "(3, 4)", [](In& in, Tensor&) { in.b = tensor({3, 2}); });
  refuse("decay is f32 (2)", "(4)", [](In& in, Tensor&) { in.decay = tensor({2}); });
  refuse("a_bias is f16", "contiguous f32",
         [](In& in, Tensor&) { in.a_bias = tensor({4}, DType::f16); });
  refuse("state is f32 (2, 4, 6, 8)", "(2, 4, 8, 6)",
         [](In&, Tensor& state) { state = tensor({2, 4, 6, 8}); });
}

}  // namespace
}  // namespace rbee::harness
