// NVFP4 files have scales beside their matrices; files of other types do not.

#include <algorithm>
#include <filesystem>

#include "rbee/core/error.h"
#include "tests/checkpoints/checkpoint_files.h"
#include "tools/convert/metadata.h"
#include "tools/convert/write_model.h"

namespace rbee::tools {
namespace {

using test::StoredTensor;
using testing::UnorderedElementsAre;

class MatrixScaleTest : public test::CheckpointFiles {
 protected:
  void SetUp() override {
    test::CheckpointFiles::SetUp();
    const auto matrix = [&](const std::string& name, const Shape& shape) {
      tensors_.push_back({name, shape, {}, DType::nvfp4});
      StoredTensor& made = tensors_.back();
      made.values = test::random_values(static_cast<size_t>(numel(shape)), 7);
      made.values = stored_values(made);
    };
    matrix("output.weight", {4, 256});
    matrix("blk.0.ffn_up.weight", {8, 256});
    matrix("blk.0.ffn_down.weight", {8, 256});
    matrix("blk.0.ffn_up_exps.weight", {2, 8, 256});
    tensors_.push_back({"output.scale", {1}, {0.75f}});
    tensors_.push_back({"blk.0.ffn_up.weight.scale", {1}, {0.5f}});
    tensors_.push_back({"blk.0.ffn_up.input_scale", {1}, {3}});
    tensors_.push_back({"blk.0.ffn_up_exps.scale", {2}, {0.25f, 2}});
  }

  // Converts the checkpoint by a recipe and reads the result.
  io::Checkpoint converted(const char* recipe) {
    const io::Checkpoint from = gguf(tensors_);
    io::GgufWriter writer;
    const std::vector<SourceTensor> tensors = copy_gguf(from, writer);
    const std::filesystem::path folder = from.tensors().front().file->path();
    const auto path = folder.parent_path() / cat(recipe, ".gguf");
    write_model(writer, plan_types(tensors, {.recipe = find_recipe(recipe)}), {.to = path});
    return io::Checkpoint::open(path);
  }

  // A tensor's values in the f32 file, divided by the stored ones.
  void expect_multiplied(const io::Checkpoint& made, const std::string& name,
                         const std::vector<float>& scales) const {
    SCOPED_TRACE(name);
    const auto stored = std::ranges::find(tensors_, name, &StoredTensor::name);
    const std::vector<float> values = io::read_floats(*made.find(name));
    ASSERT_EQ(values.size(), stored->values.size());
    const size_t each = values.size() / scales.size();
    for (size_t i = 0; i < values.size(); ++i) {
      ASSERT_EQ(values[i], stored->values[i] * scales[i / each]) << i;
    }
  }

  std::vector<StoredTensor> tensors_;
};

std::vector<std::string> names_of(const io::Checkpoint& checkpoint) {
  std::vector<std::string> names;
  for (const io::TensorEntry& entry : checkpoint.tensors()) names.push_back(entry.name);
  return names;
}

TEST_F(MatrixScaleTest, MatricesAreMultiplied) {
  const io::Checkpoint made = converted("f32");
  EXPECT_THAT(names_of(made),
              UnorderedElementsAre("output.weight", "blk.0.ffn_up.weight", "blk.0.ffn_down.weight",
                                   "blk.0.ffn_up_exps.weight"));
  expect_multiplied(made, "output.weight", {0.75f});
  expect_multiplied(made, "blk.0.ffn_up.weight", {0.5f});
  expect_multiplied(made, "blk.0.ffn_down.weight", {1});
  expect_multiplied(made, "blk.0.ffn_up_exps.weight", {0.25f, 2});
}

// Otherwise an output matrix of few bits stays unchanged.
TEST_F(MatrixScaleTest, AnOutputWithAScaleIsQuantised) {
  EXPECT_EQ(converted("q4_k_m").find("output.weight")->dtype, DType::q6_k);
  std::erase_if(tensors_, [](const StoredTensor& tensor) { return tensor.name == "output.scale"; });
  EXPECT_EQ(converted("q4_k_m").find("output.weight")->dtype, DType::nvfp4);
}

TEST_F(MatrixScaleTest, AScaleForAnotherNumberOfMatricesIsRefused) {
  *std::ranges::find(tensors_, "blk.0.ffn_up_exps.scale", &StoredTensor::name) = {
      "blk.0.ffn_up_exps.scale", {1}, {2}};
  test::expect_error(Code::invalid_argument, {"blk.0.ffn_up_exps.scale", "wanted f32 (2)"},
                     [&] { converted("f32"); });
}

}  // namespace
}  // namespace rbee::tools
