#include "tests/models/image/golden.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/checkpoints/checkpoint_files.h"
#include "tests/checkpoints/image_folder.h"
#include "tests/support/npy.h"

namespace rbee::test {
namespace {

namespace fs = std::filesystem;
using models::ImageModel;

std::string encoder_name(size_t encoder) {
  return encoder == 0 ? "text_encoder" : cat("text_encoder_", encoder + 1);
}

models::TextEncoding encode(const ImageModel& model, size_t encoder, const ImageGolden& golden,
                            int64_t clip_skip) {
  const std::string own = encoder_name(encoder) + ".ids";
  const std::vector<int32_t> ids = golden.ids(golden.has(own) ? own : "ids");
  return (*model.text[encoder].encoder)({.ids = ids, .batch = 2, .clip_skip = clip_skip});
}

models::TextStates golden_states(const ImageModel& model, const ImageGolden& golden) {
  std::vector<models::TextEncoding> encodings;
  for (size_t i = 0; i < model.text.size(); ++i) {
    const std::string name = encoder_name(i);
    models::TextEncoding& encoding = encodings.emplace_back();
    encoding.hidden = golden.tensor(name + ".skip0");
    if (golden.has(name + ".pooled")) encoding.pooled = golden.tensor(name + ".pooled");
  }
  models::TextStates states = join_text(model, encodings);
  if (golden.has("unet.size_ids")) states.size_ids = golden.tensor("unet.size_ids");
  if (golden.has("unet.guidance")) states.guidance = golden.tensor("unet.guidance");
  return states;
}

}  // namespace

ImageGolden::ImageGolden(const std::string& case_name) : folder_(image_data(case_name)) {}

bool ImageGolden::has(const std::string& name) const {
  return fs::exists(folder_ / (name + ".npy"));
}

Tensor ImageGolden::tensor(const std::string& name) const {
  const auto array = read_npy<float>(folder_ / (name + ".npy"));
  return from_host<float>(array.values, Shape(std::span(array.shape)), cpu_device());
}

std::vector<int32_t> ImageGolden::ids(const std::string& name) const {
  return read_npy<int32_t>(folder_ / (name + ".npy")).values;
}

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

ImageModel load_on_cpu(const fs::path& path, models::ImageLoadOptions options) {
  options.device = &cpu_device();
  return load_image_model(path, options);
}

void expect_text(const ImageModel& model, const ImageGolden& golden, float of_model) {
  for (size_t i = 0; i < model.text.size(); ++i) {
    const std::string name = encoder_name(i);
    // T5 computes in bf16, the other parts in f16.
    constexpr float kOfT5 = 0.25f;
    const bool coarse = model.activations == DType::f16 && golden.has(name + ".ids");
    const float tolerance = coarse ? kOfT5 : of_model;
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

Tensor text_states(const ImageModel& model, size_t encoder, const ImageGolden& golden) {
  return encode(model, encoder, golden, 0).hidden;
}

Tensor denoised(const ImageModel& model, const ImageGolden& golden) {
  const auto conditioning = model.denoiser->prepare(golden_states(model, golden));
  return (*model.denoiser)(golden.tensor("unet.x"), golden.tensor("unet.steps"), *conditioning);
}

void expect_denoiser(const ImageModel& model, const ImageGolden& golden, float tolerance) {
  expect_close(denoised(model, golden), golden.tensor("unet.out"), tolerance, "unet.out");
}

void expect_alike(const ImageModel& found, const ImageModel& wanted, const ImageGolden& golden) {
  ASSERT_EQ(found.text.size(), wanted.text.size());
  for (size_t i = 0; i < wanted.text.size(); ++i) {
    expect_close(text_states(found, i, golden), text_states(wanted, i, golden), kImageTolerance,
                 "text");
  }
  expect_close(denoised(found, golden), denoised(wanted, golden), kImageTolerance, "denoised");
  const Tensor latent = golden.tensor("vae.latent");
  expect_close(found.vae->decode(latent), wanted.vae->decode(latent), kImageTolerance, "decoded");
}

void expect_vae(const models::Vae& vae, const ImageGolden& golden, float tolerance) {
  const models::LatentDistribution found = vae.encode(golden.tensor("vae.image"));
  expect_close(found.mean, golden.tensor("vae.mean"), tolerance, "vae.mean");
  ASSERT_EQ(found.log_variance.defined(), golden.has("vae.log_variance"));
  if (found.log_variance.defined()) {
    expect_close(found.log_variance, golden.tensor("vae.log_variance"), tolerance, "log_variance");
  }
  expect_close(vae.decode(golden.tensor("vae.latent")), golden.tensor("vae.decoded"), tolerance,
               "vae.decoded");
}

}  // namespace rbee::test
