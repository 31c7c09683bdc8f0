// Every part of the image models against diffusers and transformers;
// tools/goldens/make_image_goldens.py writes the goldens.

#include <gtest/gtest.h>

#include "rbee/models/image/control_net.h"
#include "rbee/models/image/image_model.h"
#include "rbee/ops/trace.h"
#include "tests/checkpoints/checkpoint_files.h"
#include "tests/checkpoints/image_folder.h"
#include "tests/models/image/golden.h"

namespace rbee::test {
namespace {

using models::ImageModel;

class ImageGoldenTest : public testing::TestWithParam<const char*> {};

TEST_P(ImageGoldenTest, EveryPartIsThatOfDiffusers) {
  const ImageFolder folder(GetParam());
  const ImageGolden golden(GetParam());
  for (const bool pack : {true, false}) {
    SCOPED_TRACE(pack ? "packed" : "plain");
    const ImageModel model = load_on_cpu(folder.path(), {.pack_weights = pack});
    expect_text(model, golden);
    expect_denoiser(model, golden);
    expect_vae(*model.vae, golden);
  }
}

// Rounds to 16 bits after each layer: a coarse check that each layer stays in the type's range.
TEST_P(ImageGoldenTest, HalfPrecisionIsClose) {
  const ImageFolder folder(GetParam());
  const ImageGolden golden(GetParam());
  for (const auto& [type, tolerance] : {std::pair{DType::f16, 0.03f}, {DType::bf16, 0.25f}}) {
    SCOPED_TRACE(name(type));
    const ImageModel model =
        load_on_cpu(folder.path(), {.activations = type, .vae_activations = type});
    expect_text(model, golden, tolerance);
    expect_denoiser(model, golden, tolerance);
    expect_vae(*model.vae, golden, tolerance);
  }
}

// 8-bit weights and inputs; text encoders stay unchanged.
TEST_P(ImageGoldenTest, Int8IsClose) {
  const ImageFolder folder(GetParam());
  const ImageGolden golden(GetParam());
  const ImageModel floats = load_on_cpu(folder.path());
  for (const bool pack : {true, false}) {
    SCOPED_TRACE(pack ? "packed" : "plain");
    const ImageModel model = load_on_cpu(folder.path(), {.int8 = true, .pack_weights = pack});
    EXPECT_LT(model.weight_bytes, floats.weight_bytes);
    expect_text(model, golden);
    expect_denoiser(model, golden, 0.1f);
    expect_vae(*model.vae, golden, 0.1f);
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, ImageGoldenTest,
                         testing::Values("sd1", "sd2", "sdxl", "refiner", "inpaint", "lcm", "sd3",
                                         "sd35", "flux", "schnell", "flux_control", "flux_fill",
                                         "z_image"),
                         [](const auto& param) { return std::string(param.param); });

TEST(ImageModelTest, TinyAutoencodersReplaceTheModelsOwn) {
  const ImageFolder folder("sd1"), tiny("taesd");
  const ImageModel model = load_on_cpu(folder.path(), {.vae = tiny.path()});
  expect_vae(*model.vae, ImageGolden("taesd"));
  EXPECT_EQ(model.vae->info().scaling_factor, 1.0f);
}

TEST(ImageModelTest, ControlNetsSteerUnets) {
  const ImageFolder folder("sd1"), control_folder("control");
  const ImageGolden golden("control");
  const ImageModel model = load_on_cpu(folder.path());
  const auto control = load_control_net(control_folder.path(), model);
  const models::TextStates text{.context = golden.tensor("context")};
  const models::ControlCall call{golden.tensor("x"), golden.tensor("steps"), golden.tensor("hint"),
                                 0.75f};
  const models::ControlStates states = (*control)(call, *control->prepare(text));
  expect_close(states.skips.back(), golden.tensor("last_skip"), kImageTolerance, "last skip");
  expect_close(states.middle, golden.tensor("middle"), kImageTolerance, "middle");
  const auto prompt = model.denoiser->prepare(text);
  expect_close((*model.denoiser)(call.x, call.timesteps, *prompt, {&states}), golden.tensor("out"),
               kImageTolerance, "steered");
  models::ControlCall wrong = call;
  wrong.hint = call.x;
  expect_error(Code::invalid_argument, {"hint", "2, 14, 20, 3"},
               [&] { (*control)(wrong, *control->prepare(text)); });
  expect_error(Code::unsupported, {"UNet2DConditionModel", "ControlNetModel"},
               [&] { load_control_net(folder.path() / "unet", model); });
}

TEST(ImageModelTest, Int8ReachesControlNets) {
  const ImageFolder folder("sd1"), control_folder("control");
  const ImageGolden golden("control");
  const ImageModel model = load_on_cpu(folder.path(), {.int8 = true});
  const auto control = load_control_net(control_folder.path(), model);
  const models::TextStates text{.context = golden.tensor("context")};
  const models::ControlCall call{golden.tensor("x"), golden.tensor("steps"), golden.tensor("hint"),
                                 0.75f};
  const models::ControlStates states = (*control)(call, *control->prepare(text));
  expect_close(states.middle, golden.tensor("middle"), 0.1f, "middle");
  EXPECT_NE(states.middle.to_host<float>(), golden.tensor("middle").to_host<float>());
}

// Weight rows that a denoiser multiplies by vectors of the time step, one entry per product.
std::vector<int64_t> rows_of_vectors(const char* name, int64_t width) {
  const ImageFolder folder(name);
  const ImageGolden golden(name);
  const ImageModel model = load_on_cpu(folder.path());
  const int64_t images = golden.tensor("unet.x").dim(0);
  std::vector<int64_t> rows;
  set_op_trace([&](const TracedOp& op) {
    const bool vectors = std::string_view(op.op) == "linear" && op.x->size(0) == images;
    if (vectors && op.x->size(1) == width) rows.push_back(op.weight_rows);
  });
  denoised(model, golden);
  set_op_trace({});
  return rows;
}

// The time step's own second layer, then every resnet's projection of its vector: 2 of 16, 24 and
// 32 channels, 2 of 32, and 3 of 32, 24 and 16.
TEST(ImageModelTest, ResnetsProjectTheTimeStepTogether) {
  EXPECT_EQ(rows_of_vectors("sd1", 64), (std::vector<int64_t>{64, 144 + 64 + 216}));
}

// First the second layers for pooled prompt, guidance and time step. Then the width times 6 for
// each stream of a double block, 2 for a text stream that ends there and for the last layer, 3 for
// a single block.
TEST(ImageModelTest, BlocksAreModulatedTogether) {
  EXPECT_EQ(rows_of_vectors("sd3", 24), (std::vector<int64_t>{24, 24, (12 + 12 + 8 + 2) * 24}));
  EXPECT_EQ(rows_of_vectors("flux", 64),
            (std::vector<int64_t>{64, 64, 64, (12 + 12 + 3 + 3 + 2) * 64}));
}

TEST(ImageModelTest, ArithmeticByName) {
  EXPECT_FALSE(models::image_arithmetic("auto").activations);
  EXPECT_EQ(models::image_arithmetic("bf16").activations, DType::bf16);
  EXPECT_FALSE(models::image_arithmetic("bf16").int8);
  EXPECT_TRUE(models::image_arithmetic("int8").int8);
  for (const char* name : {"int4", "q8_0", "f64", ""}) {
    expect_error(Code::invalid_argument, {"dtype", cat('"', name, '"'), "auto, f32, f16"},
                 [&] { models::image_arithmetic(name); });
  }
}

TEST(ImageModelTest, SettingsComeFromTheFolder) {
  const ImageFolder folder("sdxl");
  int64_t last = -1, total = 0;
  const auto progress = [&](int64_t done, int64_t all) {
    EXPECT_GE(done, last);
    last = done;
    total = all;
  };
  const ImageModel model = load_on_cpu(folder.path(), {.progress = progress});
  EXPECT_EQ(last, total);
  EXPECT_EQ(model.family, models::ImageFamily::sdxl);
  EXPECT_EQ(model.model_name, "sdxl");
  EXPECT_EQ(model.text.size(), 2u);
  EXPECT_EQ(model.join, models::TextJoin::widths);
  EXPECT_TRUE(model.zeros_for_empty_negative);
  const models::DenoiserInfo& info = model.denoiser->info();
  EXPECT_EQ(info.context_width, 72);
  EXPECT_EQ(info.pooled_width, 20);
  EXPECT_EQ(info.size_ids, 6);
  EXPECT_EQ(model.vae->info().scale, 4);
  EXPECT_FLOAT_EQ(model.vae->info().scaling_factor, 0.13025f);
  EXPECT_EQ(model.default_size(), 64);
  EXPECT_GT(model.parameters, 400000);
}

// For an absent negative prompt: true unless SDXL's index says otherwise, as in diffusers.
TEST(ImageModelTest, ZerosForEmptyPromptsAreTheCustomOfSdxl) {
  const std::string said = R"("force_zeros_for_empty_prompt": true)";
  const ImageFolder silent("sdxl");
  silent.edit("model_index.json", said, R"("_comment": "")");
  EXPECT_TRUE(load_on_cpu(silent.path()).zeros_for_empty_negative);
  const ImageFolder refusing("sdxl");
  refusing.edit("model_index.json", said, R"("force_zeros_for_empty_prompt": false)");
  EXPECT_FALSE(load_on_cpu(refusing.path()).zeros_for_empty_negative);
  EXPECT_FALSE(load_on_cpu(ImageFolder("sd1").path()).zeros_for_empty_negative);
}

TEST(ImageModelTest, FamiliesOfOtherFolders) {
  const ImageFolder sd2("sd2"), lcm("lcm"), inpaint("inpaint");
  const ImageModel v = load_on_cpu(sd2.path());
  EXPECT_EQ(v.family, models::ImageFamily::sd1);  // by the prompt's width, which is not 1024 here
  const ImageModel distilled = load_on_cpu(lcm.path());
  EXPECT_TRUE(distilled.denoiser->info().guidance);
  EXPECT_EQ(distilled.vae->info().latent_channels, 16);
  EXPECT_FLOAT_EQ(distilled.vae->info().shift_factor, 0.0609f);
  EXPECT_EQ(load_on_cpu(inpaint.path()).denoiser->info().in_channels, 9);
  const ImageModel refiner = load_on_cpu(ImageFolder("refiner").path());
  EXPECT_EQ(refiner.family, models::ImageFamily::sdxl_refiner);
  EXPECT_EQ(refiner.denoiser->info().size_ids, 5);
  EXPECT_FALSE(refiner.zeros_for_empty_negative);
}

}  // namespace
}  // namespace rbee::test
