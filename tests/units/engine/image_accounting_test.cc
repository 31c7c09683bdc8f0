// What pictures take of a GPU's memory at the sizes that people use, counted by the allocator of
// real GPUs on one that computes nothing; the workspace of kernels is not in it. With
// RBEE_PRINT_MEMORY set the figures of docs/reference/image-memory.md are printed.

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "rbee/engine/image_pipeline.h"
#include "tests/models/counting_device.h"
#include "tests/models/true_size_model.h"
#include "tests/units/engine/fake_image_model.h"

namespace rbee::engine {
namespace {

using models::ImageFamily;
using models::OffloadedParts;
using test::CountingDevice;

constexpr double kGiB = 1 << 30;
constexpr int64_t kPlenty = int64_t{80} << 30;
// What contexts, kernels and their workspace are left of a card's memory, in bytes.
constexpr double kMargin = 0.5 * kGiB;

struct Card {
  int64_t bytes = kPlenty;
  OffloadedParts offload{};
  bool tiled = false;
};

// Peaks in GiB of what was handed out; `taken`: of what the driver gave, the freed included.
struct Peaks {
  double load = 0, text = 0, sampling = 0, decoding = 0, taken = 0;
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

// One picture with guidance, at the size of the model's training.
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

double most(const Peaks& peaks) {
  return std::max({peaks.load, peaks.sampling, peaks.decoding}) + kMargin / kGiB;
}

TEST(Accounting, PicturesFitWhatTheyAreMeantTo) {
  EXPECT_LT(most(make_picture(ImageFamily::sd1, {})), 3 * 1e9 / kGiB * 1.2);
  EXPECT_LT(most(make_picture(ImageFamily::sdxl, {})), 10 * 1e9 / kGiB);
}

}  // namespace
}  // namespace rbee::engine
