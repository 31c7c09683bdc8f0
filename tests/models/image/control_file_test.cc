// ControlNets in their own files, with the original program's names.

#include <gtest/gtest.h>

#include <fstream>

#include "rbee/models/image/control_file.h"
#include "rbee/models/image/control_net.h"
#include "tests/checkpoints/checkpoint_files.h"
#include "tests/checkpoints/image_folder.h"
#include "tests/models/image/golden.h"
#include "tests/models/image/original_layout.h"

namespace rbee::test {
namespace {

namespace fs = std::filesystem;
using models::UnetBlockCounts;

constexpr UnetBlockCounts kCounts{2};
constexpr int kHints = 6;

std::string original(const std::string& name) {
  const size_t dot = name.rfind('.');
  const std::string module = name.substr(0, dot), leaf = name.substr(dot);
  const auto behind = [&](const std::string& prefix) { return module.substr(prefix.size()); };
  const std::string hint = "controlnet_cond_embedding.", down = "controlnet_down_blocks.";
  if (module == hint + "conv_in") return "input_hint_block.0" + leaf;
  if (module == hint + "conv_out") return cat("input_hint_block.", 2 * (kHints - 1), leaf);
  if (module.starts_with(hint)) {
    return cat("input_hint_block.", 2 * (std::stoi(behind(hint + "blocks.")) + 1), leaf);
  }
  if (module.starts_with(down)) return cat("zero_convs.", behind(down), ".0", leaf);
  if (module == "controlnet_mid_block") return "middle_block_out.0" + leaf;
  return models::original_unet_module(module, kCounts) + leaf;
}

class ControlFileTest : public testing::Test {
 protected:
  ImageFolder folder_{"steer"};
  fs::path file_ = folder_.path().parent_path() / "canny.safetensors";
  std::vector<MadeTensor> tensors_ = made_part(image_data("steer") / "model");
};

class ControlFilePrefix : public ControlFileTest,
                          public testing::WithParamInterface<const char*> {};

TEST_P(ControlFilePrefix, HasTheTensorsAndSettingsOfItsFolder) {
  std::vector<MadeTensor> renamed = tensors_;
  for (MadeTensor& tensor : renamed) tensor.name = GetParam() + original(tensor.name);
  write_safetensors(file_, renamed);
  const models::ModelPart part = models::read_control_file(file_);
  EXPECT_EQ(part.class_name, "ControlNetModel");
  EXPECT_EQ(part.weights.tensors().size(), tensors_.size());
  for (const MadeTensor& tensor : tensors_) {
    const io::TensorEntry* found = part.weights.find(tensor.name);
    ASSERT_NE(found, nullptr) << tensor.name;
    EXPECT_EQ(found->shape, tensor.shape) << tensor.name;
  }
  using Widths = std::vector<int64_t>;
  EXPECT_EQ(part.config.integers("conditioning_embedding_out_channels"), (Widths{4, 6, 8}));
  EXPECT_EQ(part.config.integers("block_out_channels"), (Widths{16, 24, 32}));
  EXPECT_EQ(part.config.integer("layers_per_block"), 2);
}

INSTANTIATE_TEST_SUITE_P(Files, ControlFilePrefix, testing::Values("", "control_model."));

TEST_F(ControlFileTest, OfOneByteFloats) {
  for (const Fp8 kind : {Fp8::e4m3, Fp8::e5m2, Fp8::scaled}) {
    std::vector<MadeTensor> renamed = tensors_;
    for (MadeTensor& tensor : renamed) tensor.name = original(tensor.name);
    write_fp8(file_, renamed, kind);
    const models::ModelPart part = models::read_control_file(file_);
    ASSERT_EQ(part.weights.tensors().size(), tensors_.size());
    for (size_t i = 0; i < tensors_.size(); ++i) {
      EXPECT_EQ(io::read_floats(part.weights.require(tensors_[i].name)), renamed[i].values)
          << tensors_[i].name;
    }
  }
  write_fp8(folder_.path() / "diffusion_pytorch_model.safetensors", tensors_, Fp8::e4m3);
  const ImageFolder model_folder("sd1");
  const models::ImageModel model = load_on_cpu(model_folder.path());
  EXPECT_NO_THROW(models::load_control_net(folder_.path(), model));
}

TEST_F(ControlFileTest, OfDiffusersHaveTheirSettingsBeside) {
  const models::ModelPart part =
      models::read_control_file(folder_.path() / "diffusion_pytorch_model.safetensors");
  EXPECT_EQ(part.config.integer("attention_head_dim"), 4);
}

TEST_F(ControlFileTest, OthersAreRefused) {
  write_safetensors(file_, {{"x.weight", {2}, {1, 2}}});
  expect_error(Code::unsupported, {"canny.safetensors", "no ControlNet"},
               [&] { models::read_control_file(file_); });
  std::ofstream(folder_.path().parent_path() / "canny.pth") << "pickled";
  expect_error(Code::unsupported, {"canny.pth", "pickled"},
               [&] { models::read_control_file(folder_.path().parent_path() / "canny.pth"); });
}

}  // namespace
}  // namespace rbee::test
