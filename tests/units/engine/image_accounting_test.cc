// The GPU memory that pictures of usual sizes need, without kernels' workspace: real GPUs'
// allocator counts it on a device that computes nothing. With RBEE_PRINT_MEMORY set, the figures of
// docs/reference/image-memory.md are printed.

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "rbee/engine/image/pipeline.h"
#include "tests/checkpoints/true_size_model.h"
#include "tests/support/counting_device.h"
#include "tests/units/engine/fake_image_model.h"

namespace rbee::engine {
namespace {

using models::ImageFamily;
using models::OffloadedParts;
using test::CountingDevice;

constexpr double kGiB = 1 << 30;
constexpr int64_t kGB = 1'000'000'000;  // the goals' unit
constexpr int64_t kPlenty = 80 * kGB;
// For the workspace of kernels.
constexpr int64_t kMargin = kGB / 10;

struct Card {
  int64_t bytes = kPlenty;
  OffloadedParts offload{};
  bool tiled = false;
};

// Peaks in GiB of allocated bytes; `taken`: bytes from the driver, with freed ones.
struct Peaks {
  double load = 0, sampling = 0, decoding = 0, taken = 0;
};

double peak_of(CountingDevice& device) {
  const double peak = static_cast<double>(device.stats().peak_in_use) / kGiB;
  device.reset_peak();
  return peak;
}

ImageSource source_on(CountingDevice& device, ImageFamily family, const Card& card) {
  ImageSource out = fake_source(half_noise), other = fake_source(half_noise);
  out.device = &device;
  models::ImageLoadOptions options;
  options.device = &device;
  options.offload = card.offload;
  out.model = load_image_model(test::true_size_model(family), options);
  if (out.model.text.size() > 1) out.tokenizers.push_back(std::move(other.tokenizers.front()));
  fill_model_info(out, "");
  return out;
}

// One picture with guidance, at the model's training size.
Peaks make_picture(ImageFamily family, const Card& card) {
  CountingDevice device(card.bytes);
  const ImageSource source = source_on(device, family, card);
  Peaks out;
  out.load = peak_of(device);
  ImageRequest request;
  request.prompt = "a tiny dragon";
  request.steps = 2;
  request.seed = 1;
  request.tiled_vae = card.tiled;
  PipelineHooks hooks;
  hooks.step = [&](int32_t done) {
    out.sampling = std::max(out.sampling, peak_of(device));
    return done > 0;
  };
  hooks.latents = [&](const Tensor&, int32_t) { device.reset_peak(); };
  hooks.image = [](const io::Pixels&, int32_t) { return true; };
  ImagePipeline pipeline(source);
  PipelineTimes times;
  const ImageSettings settings = resolve(source, request);
  EXPECT_EQ(settings.width, family == ImageFamily::sd1 ? 512 : 1024);
  EXPECT_TRUE(pipeline.run(request, settings, hooks, times));
  out.decoding = peak_of(device);
  out.taken = static_cast<double>(device.driver().peak()) / kGiB;
  if (std::getenv("RBEE_PRINT_MEMORY") != nullptr) {
    const OffloadedParts& away = card.offload;
    std::printf("| %s | %s%s%s%s | %.2f | %.2f | %.2f | %.2f |\n", models::name(family),
                away.text ? "text " : "", away.denoiser ? "denoiser " : "", away.vae ? "vae " : "",
                card.tiled ? "tiled" : "", out.load, out.sampling, out.decoding, out.taken);
  }
  return out;
}

struct Goal {
  const char* what;
  ImageFamily family;
  int64_t bytes;
  OffloadedParts offload{};
  bool tiled = false;
};

// The project's goals for the tensors' memory.
constexpr Goal kGoals[] = {
    {"SD 1.5 in 3 GB", ImageFamily::sd1, 3 * kGB},
    {"SDXL in 10 GB", ImageFamily::sdxl, 10 * kGB},
    {"SD 1.5 in 2 GB",
     ImageFamily::sd1,
     2 * kGB,
     {.text = true, .denoiser = true, .vae = true},
     true},
    {"SDXL in 6 GB",
     ImageFamily::sdxl,
     6 * kGB,
     {.text = true, .denoiser = true, .vae = true},
     true},
};

TEST(Accounting, PicturesFitTheCardsTheyAreMeantFor) {
  for (const Goal& goal : kGoals) {
    SCOPED_TRACE(goal.what);
    EXPECT_NO_THROW(make_picture(
        goal.family,
        {.bytes = goal.bytes - kMargin, .offload = goal.offload, .tiled = goal.tiled}));
  }
}

TEST(Accounting, TheSmallCardsAreTooSmallWithoutThat) {
  EXPECT_THROW(make_picture(ImageFamily::sd1, {.bytes = 2 * kGB - kMargin}), Error);
  EXPECT_THROW(make_picture(ImageFamily::sdxl, {.bytes = 6 * kGB - kMargin}), Error);
}

TEST(Accounting, WhatIsOffloadedIsNotThere) {
  const Peaks resident = make_picture(ImageFamily::sdxl, {});
  const Peaks without_text = make_picture(ImageFamily::sdxl, {.offload = {.text = true}});
  const Peaks tiled = make_picture(ImageFamily::sdxl, {.offload = {.text = true}, .tiled = true});
  const Peaks least = make_picture(
      ImageFamily::sdxl, {.offload = {.text = true, .denoiser = true, .vae = true}, .tiled = true});
  constexpr double kTextEncoders = 1.5;  // GiB
  EXPECT_LT(without_text.decoding, resident.decoding - kTextEncoders);
  EXPECT_LT(tiled.decoding, without_text.decoding - 1);
  EXPECT_LT(least.sampling, tiled.sampling - 1);
  // The UNet has 2.57e9 parameters of two bytes; the allocator's size classes waste little.
  EXPECT_LT(least.load, 2.57e9 * 2 / kGiB * 1.03);
}

}  // namespace
}  // namespace rbee::engine
