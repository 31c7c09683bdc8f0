// Operations against results of PyTorch (tests/ops/data, made by tools/goldens/make_op_goldens.py).
// CTest runs this twice: as the machine is, and with RBEE_CPU_ISA=portable, where all must be done
// by `ref`. The other types and layouts are compared with formulas in op_cases_test.
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <map>
#include <set>

#include "rbee/io/safetensors_reader.h"
#include "rbee/ops/attention.h"
#include "rbee/ops/conv.h"
#include "rbee/ops/indexing.h"
#include "rbee/ops/matmul.h"
#include "rbee/ops/pool.h"
#include "rbee/ops/trace.h"
#include "rbee/ops/upsample.h"
#include "tests/support/data_folder.h"
#include "tests/support/op_table.h"

namespace rbee::harness {
namespace {

// The tensors and options of one case; notes which of them were read.
class Golden {
 public:
  void add(const std::string& operand, const io::TensorEntry& entry) {
    Device& cpu = *all_devices().front();
    tensors_[operand] = from_memory(entry.data, entry.shape, entry.dtype, cpu, entry.file);
  }
  bool has(const std::string& operand) const { return tensors_.contains(operand); }
  // Undefined when the case has none.
  Tensor tensor(const std::string& operand) {
    const auto found = tensors_.find(operand);
    if (found == tensors_.end()) return {};
    used_.insert(operand);
    return found->second;
  }
  int64_t integer(const std::string& option, int64_t otherwise) {
    const Tensor x = tensor(option);
    return x.defined() ? x.data<int64_t>()[0] : otherwise;
  }
  float number(const std::string& option, float otherwise) {
    const Tensor x = tensor(option);
    return x.defined() ? x.data<float>()[0] : otherwise;
  }
  Axis axis() { return Axis{static_cast<int>(integer("axis", 0))}; }
  size_t unused() const { return tensors_.size() - used_.size(); }

 private:
  std::map<std::string, Tensor> tensors_;
  std::set<std::string> used_;
};

std::map<std::string, Golden> read_goldens() {
  std::map<std::string, Golden> out;
  const auto file = io::MappedFile::open(test::data_folder() + "/ops/data/ops.safetensors");
  for (const io::TensorEntry& entry : io::read_safetensors(file)) {
    const size_t slash = entry.name.find('/');
    out[entry.name.substr(0, slash)].add(entry.name.substr(slash + 1), entry);
  }
  return out;
}

std::map<std::string, Golden>& goldens() {
  static std::map<std::string, Golden> all = read_goldens();
  return all;
}

using Results = std::map<std::string, Tensor>;

Results run_conv1d(Golden& g) {
  return {{"y", conv1d(g.tensor("x"), g.tensor("weight"), g.tensor("bias"),
                       {.stride = g.integer("stride", 1),
                        .padding = g.integer("padding", 0),
                        .dilation = g.integer("dilation", 1),
                        .groups = g.integer("groups", 1)})}};
}

Results run_conv2d(Golden& g) {
  return {{"y", conv2d(g.tensor("x"), g.tensor("weight"), g.tensor("bias"),
                       {.stride_h = g.integer("stride_h", 1),
                        .stride_w = g.integer("stride_w", 1),
                        .padding_h = g.integer("padding_h", 0),
                        .padding_w = g.integer("padding_w", 0),
                        .dilation_h = g.integer("dilation_h", 1),
                        .dilation_w = g.integer("dilation_w", 1),
                        .groups = g.integer("groups", 1)})}};
}

Results run_conv_transpose1d(Golden& g) {
  return {{"y", conv_transpose1d(g.tensor("x"), g.tensor("weight"), g.tensor("bias"),
                                 {.stride = g.integer("stride", 1),
                                  .padding = g.integer("padding", 0),
                                  .dilation = g.integer("dilation", 1),
                                  .output_padding = g.integer("output_padding", 0),
                                  .groups = g.integer("groups", 1)})}};
}

Results run_conv_transpose2d(Golden& g) {
  return {{"y", conv_transpose2d(g.tensor("x"), g.tensor("weight"), g.tensor("bias"),
                                 {.stride_h = g.integer("stride_h", 1),
                                  .stride_w = g.integer("stride_w", 1),
                                  .padding_h = g.integer("padding_h", 0),
                                  .padding_w = g.integer("padding_w", 0),
                                  .dilation_h = g.integer("dilation_h", 1),
                                  .dilation_w = g.integer("dilation_w", 1),
                                  .output_padding_h = g.integer("output_padding_h", 0),
                                  .output_padding_w = g.integer("output_padding_w", 0),
                                  .groups = g.integer("groups", 1)})}};
}

Results run_pool2d(Golden& g) {
  const Pool2dOptions options = {.kernel_h = g.integer("kernel_h", 1),
                                 .kernel_w = g.integer("kernel_w", 1),
                                 .stride_h = g.integer("stride_h", 1),
                                 .stride_w = g.integer("stride_w", 1)};
  return {{"avg", pool2d(PoolOp::avg, g.tensor("x"), options)},
          {"max", pool2d(PoolOp::max, g.tensor("x"), options)}};
}

Results run_upsample_nearest1d(Golden& g) {
  return {{"y", upsample_nearest1d(g.tensor("x"), g.tensor("y").dim(-1))}};
}

Results run_upsample2d(Golden& g) {
  const Tensor x = g.tensor("x");
  const int64_t height = g.tensor("nearest").dim(-2);
  const int64_t width = g.tensor("nearest").dim(-1);
  return {{"nearest", upsample_nearest2d(x, height, width)},
          {"free", upsample_bilinear2d(x, height, width)},
          {"aligned", upsample_bilinear2d(x, height, width, Corners::aligned)}};
}

Results run_gather(Golden& g) {
  return {{"y", gather(g.tensor("x"), g.axis(), g.tensor("ids"))}};
}

Results run_scatter(Golden& g) {
  return {{"y", scatter(g.tensor("x"), g.axis(), g.tensor("ids"), g.tensor("src"))}};
}

Results run_scatter_add(Golden& g) {
  return {{"y", scatter_add(g.tensor("x"), g.axis(), g.tensor("ids"), g.tensor("src"))}};
}

Results run_index_select(Golden& g) {
  return {{"y", index_select(g.tensor("x"), g.axis(), g.tensor("ids"))}};
}

Results run_index_add(Golden& g) {
  return {{"y", index_add(g.tensor("x"), g.axis(), g.tensor("ids"), g.tensor("src"))}};
}

Results run_matmul(Golden& g) {
  return {{"y", matmul(g.tensor("a"), g.tensor("b"))}};
}

Results run_attention(Golden& g) {
  return {{"y", attention(g.tensor("q"), g.tensor("k"), g.tensor("v"),
                          {.scale = g.number("scale", 0),
                           .softcap = g.number("softcap", 0),
                           .window = g.integer("window", 0),
                           .causal = g.integer("causal", 0) != 0,
                           .mask = g.tensor("mask"),
                           .alibi_slopes = g.tensor("alibi_slopes")})}};
}

struct Runner {
  Results (*run)(Golden&);
  Family family;
};

const std::map<std::string, Runner> kRunners = {
    {"conv1d", {run_conv1d, Family::product}},
    {"conv2d", {run_conv2d, Family::product}},
    {"conv_transpose1d", {run_conv_transpose1d, Family::product}},
    {"conv_transpose2d", {run_conv_transpose2d, Family::product}},
    {"pool2d", {run_pool2d, Family::elementwise}},
    {"upsample_nearest1d", {run_upsample_nearest1d, Family::exact}},
    {"upsample2d", {run_upsample2d, Family::reduction}},
    {"gather", {run_gather, Family::exact}},
    {"scatter", {run_scatter, Family::exact}},
    {"scatter_add", {run_scatter_add, Family::reduction}},
    {"index_select", {run_index_select, Family::exact}},
    {"index_add", {run_index_add, Family::reduction}},
    {"matmul", {run_matmul, Family::product}},
    {"attention", {run_attention, Family::attention}},
};

bool portable_only() {
  const char* isa = std::getenv("RBEE_CPU_ISA");
  return isa != nullptr && std::string_view(isa) == "portable";
}

using GoldenTest = ::testing::TestWithParam<std::string>;

TEST_P(GoldenTest, MatchesPyTorch) {
  Golden golden = goldens().at(GetParam());
  const Runner& runner = kRunners.at(GetParam().substr(0, GetParam().find('.')));
  std::set<std::string> implementations;
  set_op_trace([&](const TracedOp& op) {
    // Copies have no arithmetic that another implementation could do differently.
    if (std::string_view(op.op) != "copy") implementations.insert(op.implementation);
  });
  const Results results = runner.run(golden);
  set_op_trace({});
  for (const auto& [name, got] : results) {
    const Tensor want = golden.tensor(name);
    ASSERT_TRUE(want.defined()) << name;
    const Comparison result =
        compare_values(read_values(got), read_values(want),
                       tolerance(runner.family, want.dtype(), DeviceKind::cpu));
    EXPECT_TRUE(result.ok) << name << ": " << result.first_failure;
  }
  EXPECT_EQ(golden.unused(), 0u) << "an operand or option of the case was ignored";
  if (portable_only()) {
    EXPECT_EQ(implementations, std::set<std::string>{"ref"});
  }
}

std::vector<std::string> case_names() {
  std::vector<std::string> out;
  for (const auto& [name, golden] : goldens()) out.push_back(name);
  return out;
}

std::string test_name(const ::testing::TestParamInfo<std::string>& golden) {
  std::string name = golden.param;
  name[name.find('.')] = '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(Ops, GoldenTest, ::testing::ValuesIn(case_names()), test_name);

// Every operation that has a runner has cases.
TEST(GoldenTest, CoversEveryRunner) {
  std::set<std::string> seen;
  for (const std::string& name : case_names()) seen.insert(name.substr(0, name.find('.')));
  for (const auto& [op, runner] : kRunners) EXPECT_TRUE(seen.contains(op)) << op;
}

}  // namespace
}  // namespace rbee::harness
