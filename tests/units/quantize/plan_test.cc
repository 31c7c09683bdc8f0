// Which type each tensor gets.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <map>

#include "rbee/core/error.h"
#include "rbee/io/gguf_writer.h"
#include "rbee/io/safetensors_writer.h"
#include "tools/rbee/quantize_plan.h"

namespace rbee::tools {
namespace {

namespace fs = std::filesystem;

struct Wanted {
  const char* name;
  Shape shape;
  DType dtype = DType::f16;
};

class PlanTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "rbee-plan-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
  }
  void TearDown() override { fs::remove_all(folder_); }

  template <typename Writer>
  io::Checkpoint write(const char* name, const std::vector<Wanted>& tensors) const {
    Writer writer;
    for (const Wanted& each : tensors) writer.add_tensor(each.name, each.dtype, each.shape);
    writer.begin(folder_ / name);
    for (const Wanted& each : tensors) {
      const int64_t bytes = io::tensor_bytes(each.dtype, each.shape, each.name);
      writer.write(std::vector<std::byte>(static_cast<size_t>(bytes)));
    }
    writer.finish();
    return io::Checkpoint::open(folder_ / name);
  }

  // The plan of a file with this one tensor.
  TensorPlan plan(const Wanted& tensor, DType wanted, bool pure = false) const {
    const io::Checkpoint checkpoint = write<io::GgufWriter>("m.gguf", {tensor});
    TensorPlan plan = plan_types(checkpoint, wanted, pure).at(0);
    EXPECT_EQ(plan.tensor->name, tensor.name);
    plan.tensor = nullptr;
    return plan;
  }

 private:
  fs::path folder_;
};

TEST_F(PlanTest, MatricesGetTheWantedType) {
  for (const DType dtype : {DType::q4_k, DType::q8_0, DType::bf16, DType::f32, DType::mxfp4}) {
    const TensorPlan plan = this->plan({"blk.0.attn_output.weight", {4, 256}}, dtype);
    EXPECT_EQ(plan.to, dtype);
    EXPECT_EQ(plan.why, "");
  }
  EXPECT_EQ(plan({"blk.0.ffn_up_exps.weight", {2, 4, 256}}, DType::q4_k).to, DType::q4_k);
}

TEST_F(PlanTest, RowsThatDoNotFit) {
  const std::map<DType, DType> next = {
      {DType::q2_k, DType::iq4_nl}, {DType::q3_k, DType::iq4_nl}, {DType::iq4_xs, DType::iq4_nl},
      {DType::q4_k, DType::q5_0},   {DType::q5_k, DType::q5_1},   {DType::q6_k, DType::q8_0},
  };
  for (const auto& [wanted, got] : next) {
    const TensorPlan plan = this->plan({"blk.0.ffn_up.weight", {4, 96}}, wanted);
    EXPECT_EQ(plan.to, got) << name(wanted);
    EXPECT_THAT(plan.why, testing::HasSubstr("rows of 96"));
    EXPECT_GT(row_bytes(got, 256), row_bytes(wanted, 256)) << name(wanted);
  }
  for (const DType wanted : {DType::q2_k, DType::q6_k, DType::q4_0, DType::mxfp4}) {
    EXPECT_EQ(plan({"blk.0.ffn_up.weight", {4, 40}}, wanted).to, DType::f16) << name(wanted);
  }
}

TEST_F(PlanTest, SmallAndSensitiveOnesAreF32) {
  for (const DType wanted : {DType::q4_0, DType::f16, DType::bf16}) {
    EXPECT_EQ(plan({"blk.0.attn_q.bias", {256}}, wanted).to, DType::f32);
    EXPECT_EQ(plan({"blk.0.attn_norm.weight", {1, 256}}, wanted).to, DType::f32);
    EXPECT_EQ(plan({"blk.0.ffn_gate_inp.weight", {4, 256}}, wanted).to, DType::f32);
  }
  EXPECT_EQ(plan({"scalar", {}}, DType::q4_0).to, DType::f32);
}

TEST_F(PlanTest, IntegersStay) {
  const TensorPlan plan = this->plan({"ids", {4, 256}, DType::i32}, DType::q4_0);
  EXPECT_EQ(plan.to, DType::i32);
  EXPECT_EQ(plan.why, "integers");
}

TEST_F(PlanTest, TablesAreBetterThanTheRest) {
  for (const char* name : {"token_embd.weight", "output.weight"}) {
    const TensorPlan plan = this->plan({name, {8, 256}}, DType::q4_k);
    EXPECT_EQ(plan.to, DType::q6_k);
    EXPECT_THAT(plan.why, testing::HasSubstr("directly"));
    EXPECT_EQ(this->plan({name, {8, 96}}, DType::q4_0).to, DType::q8_0);
    EXPECT_EQ(this->plan({name, {8, 40}}, DType::q4_0).to, DType::f16);
    EXPECT_EQ(this->plan({name, {8, 256}}, DType::q4_k, true).to, DType::q4_k);
    EXPECT_EQ(this->plan({name, {8, 256}}, DType::q8_0).to, DType::q8_0);
    EXPECT_EQ(this->plan({name, {8, 256}}, DType::bf16).to, DType::bf16);
  }
}

// More bits do not bring back what a coarser type lost.
TEST_F(PlanTest, TablesInBlockTypesStayAsStored) {
  const Wanted coarse{"token_embd.weight", {8, 256}, DType::q5_1};
  EXPECT_EQ(plan(coarse, DType::q4_k).to, DType::q5_1);
  EXPECT_EQ(plan(coarse, DType::q4_k, true).to, DType::q4_k);
  const Wanted fine{"token_embd.weight", {8, 256}, DType::q8_0};
  EXPECT_EQ(plan(fine, DType::q4_k).to, DType::q6_k);
}

// Hugging Face files keep one type throughout.
TEST_F(PlanTest, Safetensors) {
  const io::Checkpoint checkpoint = write<io::SafetensorsWriter>(
      "m.safetensors",
      {{"model.norm.weight", {8}}, {"lm_head.weight", {8, 8}}, {"ids", {8}, DType::i64}});
  const auto plans = plan_types(checkpoint, DType::bf16, false);
  EXPECT_EQ(plans[0].to, DType::bf16);
  EXPECT_EQ(plans[1].to, DType::bf16);
  EXPECT_EQ(plans[2].to, DType::i64);
}

TEST(FileTypeTest, Numbers) {
  EXPECT_EQ(gguf_file_type(DType::f32), 0u);
  EXPECT_EQ(gguf_file_type(DType::q4_k), 14u);
  EXPECT_EQ(gguf_file_type(DType::bf16), 32u);
  EXPECT_THROW(gguf_file_type(DType::i32), Error);
}

}  // namespace
}  // namespace rbee::tools
