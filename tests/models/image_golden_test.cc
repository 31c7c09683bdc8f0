// Every part of the image models against diffusers and transformers; goldens come from
// tools/goldens/make_image_goldens.py.

#include <gtest/gtest.h>

#include <cmath>

#include "rbee/models/image/image_model.h"
#include "tests/checkpoints/checkpoint_files.h"
#include "tests/models/image_folder.h"
#include "tests/models/npy.h"

namespace rbee::test {
namespace {

namespace fs = std::filesystem;
using models::ImageModel;

constexpr float kTolerance = 2e-4f;

class Golden {
 public:
  explicit Golden(const std::string& name) : folder_(image_data(name)) {}

  bool has(const std::string& name) const { return fs::exists(folder_ / (name + ".npy")); }
  Tensor tensor(const std::string& name) const {
    const auto array = read_npy<float>(folder_ / (name + ".npy"));
    return from_host<float>(array.values, Shape(std::span(array.shape)), cpu_device());
  }
  std::vector<int32_t> ids() const { return read_npy<int32_t>(folder_ / "ids.npy").values; }

 private:
  fs::path folder_;
};

void expect_close(const Tensor& found, const Tensor& wanted, float tolerance, const char* what) {
  ASSERT_EQ(found.shape(), wanted.shape()) << what;
  ASSERT_EQ(found.dtype(), DType::f32) << what;
  const std::vector<float> a = found.to_host<float>(), b = wanted.to_host<float>();
  float largest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    largest = std::max(largest, std::isfinite(a[i]) ? std::abs(a[i] - b[i]) : INFINITY);
  }
  EXPECT_LE(largest, tolerance) << what;
}

ImageModel load(const fs::path& path, models::ImageLoadOptions options = {}) {
  options.device = &cpu_device();
  return load_image_model(path, options);
}

models::TextEncoding encode(const ImageModel& model, size_t encoder, const Golden& golden,
                            int64_t clip_skip = 0) {
  const std::vector<int32_t> ids = golden.ids();
  return (*model.text[encoder].encoder)({.ids = ids, .batch = 2, .clip_skip = clip_skip});
}

models::TextStates golden_states(const ImageModel& model, const Golden& golden) {
  std::vector<models::TextEncoding> encodings;
  for (size_t i = 0; i < model.text.size(); ++i) {
    const std::string name = i == 0 ? "text_encoder" : "text_encoder_2";
    models::TextEncoding& encoding = encodings.emplace_back();
    encoding.hidden = golden.tensor(name + ".skip0");
    if (golden.has(name + ".pooled")) encoding.pooled = golden.tensor(name + ".pooled");
  }
  models::TextStates states = join_text(model.join, encodings);
  if (golden.has("unet.size_ids")) states.size_ids = golden.tensor("unet.size_ids");
  if (golden.has("unet.guidance")) states.guidance = golden.tensor("unet.guidance");
  return states;
}

void expect_text(const ImageModel& model, const Golden& golden, float tolerance) {
  for (size_t i = 0; i < model.text.size(); ++i) {
    const std::string name = i == 0 ? "text_encoder" : "text_encoder_2";
    for (const int64_t skip : {0, 2, 3}) {
      const std::string file = cat(name, ".skip", skip);
      if (!golden.has(file)) continue;
      const models::TextEncoding found = encode(model, i, golden, skip);
      expect_close(found.hidden, golden.tensor(file), tolerance, file.c_str());
      if (skip != 0 || !golden.has(name + ".pooled")) continue;
      expect_close(found.pooled, golden.tensor(name + ".pooled"), tolerance, "pooled");
    }
  }
}

void expect_denoiser(const ImageModel& model, const Golden& golden, float tolerance) {
  const auto conditioning = model.denoiser->prepare(golden_states(model, golden));
  const Tensor out =
      (*model.denoiser)(golden.tensor("unet.x"), golden.tensor("unet.steps"), *conditioning);
  expect_close(out, golden.tensor("unet.out"), tolerance, "unet.out");
}

void expect_vae(const models::Vae& vae, const Golden& golden, float tolerance) {
  const models::LatentDistribution found = vae.encode(golden.tensor("vae.image"));
  expect_close(found.mean, golden.tensor("vae.mean"), tolerance, "vae.mean");
  ASSERT_EQ(found.log_variance.defined(), golden.has("vae.log_variance"));
  if (found.log_variance.defined()) {
    expect_close(found.log_variance, golden.tensor("vae.log_variance"), tolerance, "log_variance");
  }
  expect_close(vae.decode(golden.tensor("vae.latent")), golden.tensor("vae.decoded"), tolerance,
               "vae.decoded");
}

class ImageGoldenTest : public testing::TestWithParam<const char*> {};

TEST_P(ImageGoldenTest, EveryPartIsThatOfDiffusers) {
  const ImageFolder folder(GetParam());
  const Golden golden(GetParam());
  for (const bool pack : {true, false}) {
    SCOPED_TRACE(pack ? "packed" : "plain");
    const ImageModel model = load(folder.path(), {.pack_weights = pack});
    expect_text(model, golden, kTolerance);
    expect_denoiser(model, golden, kTolerance);
    expect_vae(*model.vae, golden, kTolerance);
  }
}

// Rounding to 16 bits after each layer: a coarse check that no layer leaves the type's range.
TEST_P(ImageGoldenTest, HalfPrecisionIsClose) {
  const ImageFolder folder(GetParam());
  const Golden golden(GetParam());
  for (const auto& [type, tolerance] : {std::pair{DType::f16, 0.03f}, {DType::bf16, 0.25f}}) {
    SCOPED_TRACE(name(type));
    const ImageModel model = load(folder.path(), {.activations = type, .vae_activations = type});
    expect_text(model, golden, tolerance);
    expect_denoiser(model, golden, tolerance);
    expect_vae(*model.vae, golden, tolerance);
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, ImageGoldenTest,
                         testing::Values("sd1", "sd2", "sdxl", "inpaint", "lcm"),
                         [](const auto& info) { return std::string(info.param); });

TEST(ImageModelTest, TinyAutoencodersReplaceTheModelsOwn) {
  const ImageFolder folder("sd1"), tiny("taesd");
  const ImageModel model = load(folder.path(), {.vae = tiny.path()});
  expect_vae(*model.vae, Golden("taesd"), kTolerance);
  EXPECT_EQ(model.vae->info().scaling_factor, 1.0f);
}

TEST(ImageModelTest, SettingsComeFromTheFolder) {
  const ImageFolder folder("sdxl");
  int64_t last = -1, total = 0;
  const auto progress = [&](int64_t done, int64_t all) {
    EXPECT_GE(done, last);
    last = done;
    total = all;
  };
  const ImageModel model = load(folder.path(), {.progress = progress});
  EXPECT_EQ(last, total);
  EXPECT_EQ(model.family, models::ImageFamily::sdxl);
  EXPECT_EQ(model.model_name, "sdxl");
  EXPECT_EQ(model.text.size(), 2u);
  EXPECT_EQ(model.join, models::TextJoin::widths);
  EXPECT_TRUE(model.zeros_for_empty_negative);
  EXPECT_EQ(model.scheduler.class_name, "EulerDiscreteScheduler");
  EXPECT_EQ(model.scheduler.steps_offset, 1);
  const models::DenoiserInfo& info = model.denoiser->info();
  EXPECT_EQ(info.context_width, 72);
  EXPECT_EQ(info.pooled_width, 20);
  EXPECT_EQ(info.size_ids, 6);
  EXPECT_EQ(model.vae->info().scale, 4);
  EXPECT_FLOAT_EQ(model.vae->info().scaling_factor, 0.13025f);
  EXPECT_EQ(model.default_size(), 64);
  EXPECT_GT(model.parameters, 400000);
}

TEST(ImageModelTest, SchedulersAndFamiliesOfOtherFolders) {
  const ImageFolder sd2("sd2"), lcm("lcm"), inpaint("inpaint");
  const ImageModel v = load(sd2.path());
  EXPECT_EQ(v.family, models::ImageFamily::sd1);  // by the prompt's width, which is not 1024 here
  EXPECT_EQ(v.scheduler.prediction_type, "v_prediction");
  EXPECT_TRUE(v.scheduler.rescale_betas_zero_snr);
  EXPECT_EQ(load(sd2.path(), {.prediction_type = "epsilon"}).scheduler.prediction_type, "epsilon");
  const ImageModel distilled = load(lcm.path());
  EXPECT_TRUE(distilled.denoiser->info().guidance);
  EXPECT_EQ(distilled.vae->info().latent_channels, 16);
  EXPECT_FLOAT_EQ(distilled.vae->info().shift_factor, 0.0609f);
  EXPECT_EQ(load(inpaint.path()).denoiser->info().in_channels, 9);
}

}  // namespace
}  // namespace rbee::test
