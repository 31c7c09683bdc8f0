// RRDBNet against its formula in PyTorch (tools/goldens/make_upscaler_goldens.py), and files of it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "rbee/core/error.h"
#include "rbee/models/image/upscaler.h"
#include "tests/checkpoints/checkpoint_files.h"
#include "tests/models/made_upscaler.h"

namespace rbee::test {
namespace {

namespace fs = std::filesystem;
using models::UpscalerShape;
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

  // The message of what a file is refused with.
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

UpscalerShape shape_of(const json& wanted) {
  return {.blocks = wanted["blocks"],
          .width = wanted["width"],
          .growth = wanted["growth"],
          .unshuffle = wanted["unshuffle"],
          .doublings = wanted["doublings"]};
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
  const json cases = golden_cases();
  for (const json& wanted : cases) {
    const UpscalerShape shape = shape_of(wanted);
    for (const UpscalerNames names :
         {UpscalerNames::current, UpscalerNames::published, UpscalerNames::old}) {
      if (names == UpscalerNames::old && shape.unshuffle > 1) continue;
      const DType dtype = names == UpscalerNames::published ? DType::f32 : DType::f16;
      const auto net = models::load_upscaler(written(made_upscaler(shape, names), dtype),
                                             cpu_device(), DType::f32);
      EXPECT_EQ(net->scale(), shape.scale());
      int calls = 0;
      const Tensor y = (*net)(picture_of(wanted), [&] { ++calls; });
      EXPECT_EQ(calls, shape.blocks + shape.doublings);
      ASSERT_EQ(y.dim(1), wanted["height"].get<int64_t>() * net->scale());
      const auto values = y.to_host<float>();
      const auto result = wanted["result"].get<std::vector<float>>();
      ASSERT_EQ(values.size(), result.size());
      double worst = 0;
      for (size_t i = 0; i < result.size(); ++i) {
        worst = std::max(worst, std::abs(double{values[i]} - double{result[i]}));
      }
      EXPECT_LT(worst, 2e-5) << "unshuffle " << shape.unshuffle << ", names "
                             << static_cast<int>(names);
    }
  }
}

TEST_F(UpscalerFiles, RefuseATensorThatIsMissingByTheFilesOwnName) {
  const UpscalerShape shape{.blocks = 1, .width = 8, .growth = 4};
  std::vector<MadeTensor> tensors = made_upscaler(shape, UpscalerNames::old);
  std::erase_if(tensors, [](const auto& t) { return t.name == "model.1.sub.0.RDB2.conv3.0.bias"; });
  EXPECT_THAT(refused(written(tensors), Code::not_found),
              testing::HasSubstr("model.1.sub.0.RDB2.conv3.0.bias"));
}

TEST_F(UpscalerFiles, RefuseATensorOfAnotherShape) {
  const UpscalerShape shape{.blocks = 1, .width = 8, .growth = 4};
  std::vector<MadeTensor> tensors = made_upscaler(shape);
  for (MadeTensor& tensor : tensors) {
    if (tensor.name == "conv_hr.bias") tensor = {tensor.name, {4}, {0, 0, 0, 0}};
  }
  EXPECT_THAT(refused(written(tensors), Code::invalid_argument),
              testing::AllOf(testing::HasSubstr("conv_hr.bias"), testing::HasSubstr("wanted 8")));
}

TEST_F(UpscalerFiles, RefuseOtherNetworks) {
  const UpscalerShape shape{.blocks = 1, .width = 8, .growth = 4};
  std::vector<MadeTensor> tensors = made_upscaler(shape, UpscalerNames::old);
  tensors.push_back({"model.1.sub.0.RDB1.conv1x1.weight", {1}, {0}});
  EXPECT_THAT(refused(written(tensors), Code::unsupported),
              testing::HasSubstr("model.1.sub.0.RDB1.conv1x1.weight"));
  EXPECT_THAT(refused(written({{"layers.0.weight", {1}, {0}}}), Code::unsupported),
              testing::HasSubstr("body.0.rdb1.conv1.weight"));
  // Squares of four pixels a side that nothing enlarges again.
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
