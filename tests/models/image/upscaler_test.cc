// Upscaling networks against their formulas in PyTorch (tools/goldens/make_upscaler_goldens.py),
// and their files.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "rbee/core/error.h"
#include "rbee/models/image/upscaler.h"
#include "tests/checkpoints/checkpoint_files.h"
#include "tests/checkpoints/made_upscaler.h"

namespace rbee::test {
namespace {

namespace fs = std::filesystem;
using models::RrdbShape;
using nlohmann::json;

json golden_cases() {
  std::ifstream file(image_data("upscalers.json"));
  return json::parse(file);
}

class UpscalerFiles : public testing::Test {
 protected:
  UpscalerFiles() { fs::create_directories(folder_); }
  ~UpscalerFiles() override { fs::remove_all(folder_); }

  fs::path written(const std::vector<MadeTensor>& tensors, DType dtype = DType::f16) const {
    const fs::path file = folder_ / "made.safetensors";
    write_safetensors(file, tensors, dtype);
    return file;
  }

  // The message with which a file is refused.
  std::string refused(const fs::path& file, Code code) const {
    try {
      models::load_upscaler(file, cpu_device(), DType::f32);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code) << error.what();
      return error.what();
    }
    return "nothing was thrown";
  }

  fs::path folder_ =
      fs::path(testing::TempDir()) / testing::UnitTest::GetInstance()->current_test_info()->name();
};

// The tensors of a case; slopes of activations are the weights with one axis.
std::vector<MadeTensor> tensors_of(const json& wanted) {
  std::vector<MadeTensor> out;
  for (const auto& [name, sizes] : wanted["tensors"].items()) {
    const auto values = sizes.get<std::vector<int64_t>>();
    const Shape shape{std::span<const int64_t>(values)};
    std::string seed = name;
    if (shape.rank() == 1 && name.ends_with("weight")) {
      seed.replace(seed.size() - std::string_view("weight").size(), seed.size(), "slopes");
    }
    out.push_back({name, shape, made_weights(seed, shape)});
  }
  return out;
}

std::vector<MadeTensor> tensors_called(std::string_view name) {
  for (const json& wanted : golden_cases()) {
    if (wanted["name"] == name) return tensors_of(wanted);
  }
  ADD_FAILURE() << "no case is called " << name;
  return {};
}

Tensor picture_of(const json& wanted) {
  const int height = wanted["height"], columns = wanted["columns"];
  std::vector<float> values;
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < columns; ++x) {
      for (int c = 0; c < 3; ++c) {
        values.push_back(static_cast<float>((37 * x + 59 * y + 83 * c) % 256) / 255);
      }
    }
  }
  return from_host<float>(values, {1, height, columns, 3}, cpu_device());
}

// The made weights are f16 numbers, so f32 holds the same.
TEST_F(UpscalerFiles, GiveThePicturesOfTheFormula) {
  DType dtype = DType::f16;
  for (const json& wanted : golden_cases()) {
    SCOPED_TRACE(wanted["name"].get<std::string>());
    dtype = dtype == DType::f16 ? DType::f32 : DType::f16;
    const auto net =
        models::load_upscaler(written(tensors_of(wanted), dtype), cpu_device(), DType::f32);
    EXPECT_EQ(net->scale(), wanted["scale"].get<int64_t>());
    int calls = 0;
    const Tensor y = (*net)(picture_of(wanted), [&] { ++calls; });
    EXPECT_GE(calls, 2);
    ASSERT_EQ(y.shape(), (Shape{1, wanted["height"].get<int64_t>() * net->scale(),
                                wanted["columns"].get<int64_t>() * net->scale(), 3}));
    const auto values = y.to_host<float>();
    const auto result = wanted["result"].get<std::vector<float>>();
    ASSERT_EQ(values.size(), result.size());
    double worst = 0;
    for (size_t i = 0; i < result.size(); ++i) {
      worst = std::max(worst, std::abs(double{values[i]} - double{result[i]}));
    }
    EXPECT_LT(worst, 2e-5);
  }
}

// Layers compute in 16 bits; the picture that is added keeps its own type.
TEST_F(UpscalerFiles, ComputeIn16BitsToo) {
  for (const json& wanted : golden_cases()) {
    SCOPED_TRACE(wanted["name"].get<std::string>());
    const auto net = models::load_upscaler(written(tensors_of(wanted)), cpu_device(), DType::bf16);
    const Tensor y = (*net)(picture_of(wanted));
    ASSERT_EQ(y.dtype(), DType::f32);
    const auto values = y.to_host<float>();
    const auto result = wanted["result"].get<std::vector<float>>();
    double most = 0, worst = 0;
    for (size_t i = 0; i < result.size(); ++i) {
      most = std::max(most, std::abs(double{result[i]}));
      worst = std::max(worst, std::abs(double{values[i]} - double{result[i]}));
    }
    EXPECT_LT(worst, 0.04 * most);
  }
}

TEST_F(UpscalerFiles, RefuseATensorThatIsMissingByTheFilesOwnName) {
  for (const auto& [file, tensor] :
       {std::pair{"old ESRGAN, 4 times", "model.1.sub.0.RDB2.conv3.0.bias"},
        std::pair{"old ESRGAN, 16 times", "model.14.weight"},
        std::pair{"ESRGAN+", "model.1.sub.1.RDB3.conv1x1.weight"},
        std::pair{"Real-ESRGAN, 2 times", "params.conv_hr.weight"},
        std::pair{"compact, 4 times", "params.body.8.bias"}}) {
    std::vector<MadeTensor> tensors = tensors_called(file);
    EXPECT_EQ(std::erase_if(tensors, [&](const auto& t) { return t.name == tensor; }), 1u);
    EXPECT_THAT(refused(written(tensors), Code::not_found), testing::HasSubstr(tensor));
  }
}

TEST_F(UpscalerFiles, RefuseATensorOfAnotherShape) {
  for (const auto& [file, name, wanted] :
       {std::tuple{"Real-ESRGAN, 8 times", "conv_hr.bias", "wanted 8"},
        std::tuple{"compact, 4 times", "params.body.3.weight", "wanted 8"}}) {
    std::vector<MadeTensor> tensors = tensors_called(file);
    for (MadeTensor& tensor : tensors) {
      if (tensor.name == name) tensor = {tensor.name, {4}, {0, 0, 0, 0}};
    }
    EXPECT_THAT(refused(written(tensors), Code::invalid_argument),
                testing::AllOf(testing::HasSubstr(name), testing::HasSubstr(wanted)));
  }
}

// The last convolution's channels do not form a square of pixels.
TEST_F(UpscalerFiles, RefuseCompactOnesOfNoSize) {
  std::vector<MadeTensor> tensors = tensors_called("compact, 2 times");
  for (MadeTensor& tensor : tensors) {
    if (tensor.name != "params_ema.body.8.weight") continue;
    const Shape five{15, 8, 3, 3};
    tensor = {tensor.name, five, std::vector<float>(static_cast<size_t>(numel(five)))};
  }
  EXPECT_THAT(refused(written(tensors), Code::invalid_argument),
              testing::AllOf(testing::HasSubstr("params_ema.body.8.weight"),
                             testing::HasSubstr("15 channels")));
}

TEST_F(UpscalerFiles, RefuseOtherNetworks) {
  const RrdbShape shape{.blocks = 1, .width = 8, .growth = 4};
  std::vector<MadeTensor> tensors = made_upscaler(shape);
  tensors.push_back({"body.0.rdb1.noise.weight", {1}, {0}});
  EXPECT_THAT(refused(written(tensors), Code::unsupported),
              testing::HasSubstr("body.0.rdb1.noise.weight"));
  EXPECT_THAT(refused(written({{"layers.0.weight", {1}, {0}}}), Code::unsupported),
              testing::HasSubstr("body.0.rdb1.conv1.weight"));
  // Only some dense blocks have shortcuts.
  tensors = tensors_called("ESRGAN+");
  std::erase_if(tensors,
                [](const auto& t) { return t.name == "model.1.sub.0.RDB1.conv1x1.weight"; });
  EXPECT_THAT(refused(written(tensors), Code::unsupported), testing::HasSubstr("conv1x1"));
  // Squares of four pixels a side that no layer enlarges again.
  EXPECT_THAT(refused(written(made_upscaler(
                          {.blocks = 1, .width = 8, .growth = 4, .unshuffle = 4, .doublings = 1})),
                      Code::invalid_argument),
              testing::HasSubstr("conv_up2.weight"));
}

TEST_F(UpscalerFiles, RefusePickledOnesWithTheRemedy) {
  const fs::path file = folder_ / "RealESRGAN_x4plus.pth";
  std::ofstream(file) << "PK";
  EXPECT_THAT(refused(file, Code::unsupported), testing::HasSubstr(".safetensors"));
}

}  // namespace
}  // namespace rbee::test
