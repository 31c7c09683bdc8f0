// The type of each tensor in a plan.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "rbee/core/error.h"
#include "tests/support/data_folder.h"
#include "tools/convert/type_plan.h"

namespace rbee::tools {
namespace {

using nlohmann::json;
using testing::HasSubstr;

SourceTensor tensor(std::string name, const Shape& shape, DType dtype = DType::f16) {
  SourceTensor tensor;
  tensor.stored.name = std::move(name);
  tensor.stored.shape = shape;
  tensor.stored.dtype = dtype;
  return tensor;
}

// The plan for a file with this one tensor and its own output matrix.
TensorPlan plan_of(const SourceTensor& each, const char* recipe, bool pure = false) {
  std::vector<SourceTensor> tensors = {each};
  if (each.stored.name != "output.weight") tensors.push_back(tensor("output.weight", {8, 256}));
  TensorPlan plan = plan_types(tensors, {.recipe = find_recipe(recipe), .pure = pure}).at(0);
  EXPECT_EQ(plan.tensor, &tensors[0]);
  plan.tensor = nullptr;
  return plan;
}

TEST(PlanTest, MatricesGetTheBaseType) {
  for (const Recipe& recipe : recipes()) {
    const TensorPlan plan =
        plan_of(tensor("blk.0.ffn_up.weight", {4, 256}), std::string(recipe.name).c_str());
    EXPECT_EQ(plan.to, recipe.base);
    EXPECT_EQ(plan.why, "");
  }
  EXPECT_EQ(plan_of(tensor("blk.0.ffn_up_exps.weight", {2, 4, 256}), "q4_k").to, DType::q4_k);
}

TEST(PlanTest, RowsThatDoNotFit) {
  const std::map<const char*, DType> next = {
      {"q2_k", DType::q4_0},   {"q3_k_s", DType::q4_0},  {"iq4_xs", DType::iq4_nl},
      {"q4_k_s", DType::q5_0}, {"q5_k_s", DType::q5_1},  {"q6_k", DType::q8_0},
      {"q8_k", DType::q8_0},   {"iq2_m", DType::iq4_nl}, {"iq1_s", DType::iq4_nl},
      {"tq1_0", DType::q4_0},
  };
  for (const auto& [recipe, got] : next) {
    const TensorPlan plan = plan_of(tensor("blk.0.ffn_up.weight", {4, 96}), recipe);
    EXPECT_EQ(plan.to, got) << recipe;
    EXPECT_THAT(plan.why, HasSubstr("rows of 96"));
  }
  for (const char* recipe : {"q2_k", "q6_k", "q4_0", "mxfp4"}) {
    EXPECT_EQ(plan_of(tensor("blk.0.ffn_up.weight", {4, 40}), recipe).to, DType::f16) << recipe;
  }
}

TEST(PlanTest, SmallAndSensitiveOnesAreF32) {
  for (const char* recipe : {"q4_0", "f16", "bf16"}) {
    EXPECT_EQ(plan_of(tensor("blk.0.attn_q.bias", {256}), recipe).to, DType::f32);
    EXPECT_EQ(plan_of(tensor("blk.0.attn_norm.weight", {1, 256}), recipe).to, DType::f32);
    EXPECT_EQ(plan_of(tensor("blk.0.ffn_gate_inp.weight", {4, 256}), recipe).to, DType::f32);
  }
  EXPECT_EQ(plan_of(tensor("scalar", {}), "q4_0").to, DType::f32);
}

TEST(PlanTest, IntegersStay) {
  const TensorPlan plan = plan_of(tensor("ids", {4, 256}, DType::i32), "q4_0");
  EXPECT_EQ(plan.to, DType::i32);
  EXPECT_EQ(plan.why, "integers");
}

TEST(PlanTest, TheOutputIsBetterThanTheRest) {
  const TensorPlan plan = plan_of(tensor("output.weight", {8, 256}), "q4_k");
  EXPECT_EQ(plan.to, DType::q6_k);
  EXPECT_THAT(plan.why, HasSubstr("directly"));
  EXPECT_EQ(plan_of(tensor("output.weight", {8, 96}), "q4_0").to, DType::q8_0);
  EXPECT_EQ(plan_of(tensor("output.weight", {8, 40}), "q4_0").to, DType::f16);
  EXPECT_EQ(plan_of(tensor("output.weight", {8, 256}), "q4_k", true).to, DType::q4_k);
  EXPECT_EQ(plan_of(tensor("output.weight", {8, 256}), "q8_0").to, DType::q8_0);
  EXPECT_EQ(plan_of(tensor("output.weight", {8, 256}), "bf16").to, DType::bf16);
  EXPECT_EQ(plan_of(tensor("token_embd.weight", {8, 256}), "q4_k").to, DType::q4_k);
}

// More bits cannot restore what a coarser type lost.
TEST(PlanTest, AnOutputInABlockTypeStaysAsStored) {
  const SourceTensor coarse = tensor("output.weight", {8, 256}, DType::q5_1);
  EXPECT_EQ(plan_of(coarse, "q4_k").to, DType::q5_1);
  EXPECT_EQ(plan_of(coarse, "q4_k", true).to, DType::q4_k);
  const SourceTensor fine = tensor("output.weight", {8, 256}, DType::q8_0);
  EXPECT_EQ(plan_of(fine, "q4_k").to, DType::q6_k);
}

TEST(PlanTest, PureHasNoMixture) {
  for (const char* name : {"blk.0.attn_v.weight", "blk.0.ffn_down.weight"}) {
    EXPECT_EQ(plan_of(tensor(name, {4, 256}), "q4_k_m").to, DType::q6_k);
    EXPECT_EQ(plan_of(tensor(name, {4, 256}), "q4_k_m").why, "the mixture");
    EXPECT_EQ(plan_of(tensor(name, {4, 256}), "q4_k_m", true).to, DType::q4_k);
  }
}

// Hugging Face files keep one type throughout.
TEST(PlanTest, Safetensors) {
  const std::vector<SourceTensor> tensors = {tensor("model.norm.weight", {8}),
                                             tensor("lm_head.weight", {8, 8}),
                                             tensor("ids", {8}, DType::i64)};
  const auto plans = plan_types(tensors, {.recipe = find_recipe("bf16"), .gguf = false});
  EXPECT_EQ(plans[0].to, DType::bf16);
  EXPECT_EQ(plans[1].to, DType::bf16);
  EXPECT_EQ(plans[2].to, DType::i64);
}

TEST(RecipeTest, Names) {
  EXPECT_EQ(find_recipe("Q4_K_M").file_type, 15u);
  EXPECT_EQ(&find_recipe("q4_k"), &find_recipe("q4_k_m"));
  EXPECT_EQ(&find_recipe("Q5_K"), &find_recipe("q5_k_m"));
  EXPECT_EQ(&find_recipe("q3_k"), &find_recipe("q3_k_m"));
  EXPECT_EQ(find_recipe("q8_k").file_type, std::nullopt);
  std::set<std::string_view> names;
  std::set<uint32_t> numbers;
  for (const Recipe& recipe : recipes()) {
    EXPECT_TRUE(names.insert(recipe.name).second) << recipe.name;
    if (recipe.file_type) {
      EXPECT_TRUE(numbers.insert(*recipe.file_type).second) << recipe.name;
    }
  }
  try {
    find_recipe("q4_z");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::invalid_argument);
    EXPECT_THAT(error.what(), HasSubstr("'q4_z' is none of f32, f16"));
  }
}

// llama-quantize's choices without an importance matrix, as recorded by
// tools/goldens/make_mixture_goldens.py, and those of its rules for more types, with and without a
// matrix and for experts, as recorded by tools/goldens/make_mixture_rules.py.
json read_goldens(const char* name) {
  std::ifstream in(test::data_folder() + "/units/quantize/data/" + name);
  return json::parse(in);
}
const json& goldens() {
  static const json all = [] {
    json file = read_goldens("mixtures.json");
    file.update(read_goldens("mixture_rules.json"));
    return file;
  }();
  return all;
}

// The matrices of a shape, as make_mixture_goldens.py makes them.
std::vector<SourceTensor> matrices(const json& shape) {
  const auto size = [&](const char* key) { return shape[key].get<int64_t>(); };
  const int64_t dim = size("dim"), ffn = size("ffn");
  const int64_t kv = size("kv_heads") * dim / size("heads");
  const bool fused = shape["arch"] == "phi3";
  const int64_t experts = shape.value("experts", int64_t{0});
  std::vector<SourceTensor> out = {tensor("token_embd.weight", {32, dim})};
  if (!shape.contains("tied")) out.push_back(tensor("output.weight", {32, dim}));
  for (int64_t layer = 0; layer < size("layers"); ++layer) {
    const auto add = [&](const char* role, int64_t rows, int64_t columns) {
      out.push_back(tensor(cat("blk.", layer, ".", role, ".weight"), {rows, columns}));
    };
    const auto add_ffn = [&](const char* role, int64_t rows, int64_t columns) {
      if (experts == 0) return add(role, rows, columns);
      out.push_back(
          tensor(cat("blk.", layer, ".", role, "_exps.weight"), {experts, rows, columns}));
    };
    if (fused) {
      add("attn_qkv", dim + 2 * kv, dim);
    } else {
      add("attn_q", dim, dim);
      add("attn_k", kv, dim);
      add("attn_v", kv, dim);
      add_ffn("ffn_gate", ffn, dim);
    }
    add_ffn("ffn_up", fused ? 2 * ffn : ffn, dim);
    add("attn_output", dim, dim);
    add_ffn("ffn_down", dim, ffn);
  }
  return out;
}

// "attn_v" of "blk.3.attn_v.weight".
std::string role_of(const std::string& name) {
  const size_t end = name.rfind(".weight");
  const size_t dot = name.rfind('.', end - 1);
  return name.substr(dot == name.npos ? 0 : dot + 1, end - (dot == name.npos ? 0 : dot + 1));
}

class MixtureTest : public testing::TestWithParam<const char*> {};

TEST_P(MixtureTest, IsLikeLlamaQuantize) {
  const json& golden = goldens()[GetParam()];
  const json& shape = golden["shape"];
  const std::vector<SourceTensor> tensors = matrices(shape);
  const int64_t gqa = shape["heads"].get<int64_t>() / shape["kv_heads"].get<int64_t>();
  for (const auto& [recipe, wanted] : golden["mixtures"].items()) {
    std::map<std::string, std::vector<std::string>> got;
    const PlanOptions how{.recipe = find_recipe(recipe),
                          .gqa = gqa,
                          .experts = std::max<int64_t>(shape.value("experts", int64_t{1}), 1),
                          .weighted = shape.value("weighted", false)};
    for (const TensorPlan& plan : plan_types(tensors, how)) {
      got[role_of(plan.tensor->stored.name)].emplace_back(name(plan.to));
    }
    EXPECT_EQ(got.size(), wanted.size());
    for (const auto& [role, types] : wanted.items()) {
      std::istringstream words(types.get<std::string>());
      std::vector<std::string> listed{std::istream_iterator<std::string>(words), {}};
      if (listed.size() == 1) listed.resize(got[role].size(), listed[0]);
      EXPECT_EQ(got[role], listed) << recipe << " " << role;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, MixtureTest,
                         testing::Values("gqa", "mha", "odd", "deep", "deep_gqa", "fused",
                                         "gqa_rules", "gqa_weighted", "mha_rules", "mha_weighted",
                                         "odd_rules", "odd_weighted", "deep_rules", "deep_weighted",
                                         "deep_gqa_rules", "deep_gqa_weighted", "fused_rules",
                                         "fused_weighted", "eight_experts_rules",
                                         "eight_experts_weighted", "five_experts_rules",
                                         "five_experts_weighted"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace rbee::tools
