// This repository's trained model draws the requested things, as in diffusers
// (tools/goldens/make_tiny_emoji_golden.py).

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <iterator>
#include <vector>

#include "backends/api/registry.h"
#include "backends/cpu/cpu_backend.h"
#include "rbee/engine/image/pipeline.h"
#include "tests/support/data_folder.h"

namespace rbee::engine {
namespace {

// dB
double psnr(const io::Pixels& got, const io::Pixels& wanted) {
  EXPECT_EQ(got.values.size(), wanted.values.size());
  double squares = 0;
  for (size_t i = 0; i < got.values.size(); ++i) {
    squares += std::pow(got.values[i] - wanted.values[i], 2);
  }
  const double mean = squares / static_cast<double>(got.values.size());
  return 10 * std::log10(255 * 255 / std::max(mean, 1e-9));
}

struct Distance {
  double least, median;  // dB
};

// Pictures of one prompt with two seeds are 7 to 21 dB apart; closer ones show the same.
constexpr double kSamePicture = 21;

class TinyEmoji : public testing::Test {
 protected:
  TinyEmoji() {
    register_backend(cpu::cpu_backend());
    const ImageSourceOptions options{.device = &get_device({DeviceKind::cpu, 0})};
    source_ = load_image_source(test::data_folder() + "/../models/tiny-emoji", options);
  }

  io::Pixels draw(const std::string& prompt, int32_t steps) { return draw(source_, prompt, steps); }
  static io::Pixels draw(const ImageSource& source, const std::string& prompt, int32_t steps) {
    ImageRequest request;
    request.prompt = prompt;
    request.steps = steps;
    request.seed = 1;
    io::Pixels out;
    PipelineHooks hooks;
    hooks.step = [](int32_t) { return true; };
    hooks.image = [&](io::Pixels image, int32_t) {
      out = std::move(image);
      return true;
    };
    PipelineTimes times;
    ImagePipeline pipeline(source);
    EXPECT_TRUE(pipeline.run(request, resolve(source, request), hooks, times));
    return out;
  }

  // Draws eight prompts of all kinds in f32 and in a type that rounds more. Each step amplifies
  // earlier rounding, so pictures differ more than layers do, and one of the eight far more if the
  // order of a sum changes (24 to 32 dB between instruction sets).
  Distance distance_from_f32(const ImageSource& rounding) const {
    const char* prompts[] = {
        "a dog face on a blue background",   "a hot beverage",
        "a money bag, pink background",      "a small key at the bottom on a red background",
        "a big red apple on teal",           "a cat face left of a tree on a white background",
        "a rocket in the top left on black", "a bell above a book on a yellow background"};
    std::vector<double> decibels;
    for (const char* prompt : prompts) {
      decibels.push_back(psnr(draw(rounding, prompt, 8), draw(source_, prompt, 8)));
    }
    std::ranges::sort(decibels);
    return {.least = decibels.front(), .median = (decibels[3] + decibels[4]) / 2};
  }

  ImageSource source_;
};

std::array<double, 3> mean_of_top_rows(const io::Pixels& image) {
  std::array<double, 3> sum{};
  const size_t pixels = static_cast<size_t>(image.width) * 8;
  for (size_t i = 0; i < pixels * 3; ++i) sum[i % 3] += image.values[i];
  for (double& value : sum) value /= static_cast<double>(pixels);
  return sum;
}

TEST_F(TinyEmoji, SaysHowItWantsToBeRun) {
  EXPECT_EQ(source_.info.default_guidance, 4);
  EXPECT_EQ(source_.info.default_steps, 20);
  EXPECT_EQ(source_.info.default_width, 128);
  EXPECT_EQ(source_.info.default_sampler, "DPM++ 2M");
}

TEST_F(TinyEmoji, DrawsWhatDiffusersDraws) {
  std::ifstream file(test::data_folder() + "/units/engine/data/tiny_emoji.png", std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(file), {});
  const io::Pixels wanted = io::decode_image(bytes, "tiny_emoji.png");
  const io::Pixels got = draw("a dog face on a blue background", 10);
  EXPECT_GT(psnr(got, wanted), 40);
}

TEST_F(TinyEmoji, Int8DrawsWhatF32Draws) {
  const ImageSourceOptions options{.device = &get_device({DeviceKind::cpu, 0}), .int8 = true};
  const ImageSource int8 =
      load_image_source(test::data_folder() + "/../models/tiny-emoji", options);
  EXPECT_EQ(int8.info.dtype, "int8");
  EXPECT_LT(int8.info.weight_bytes, source_.info.weight_bytes * 2 / 3);
  const Distance distance = distance_from_f32(int8);
  EXPECT_GT(distance.least, kSamePicture);
  EXPECT_GT(distance.median, 34);
}

TEST_F(TinyEmoji, Bf16DrawsWhatF32Draws) {
  const ImageSourceOptions options{.device = &get_device({DeviceKind::cpu, 0}),
                                   .activations = DType::bf16};
  const ImageSource bf16 =
      load_image_source(test::data_folder() + "/../models/tiny-emoji", options);
  EXPECT_EQ(bf16.info.dtype, "bf16");
  const Distance distance = distance_from_f32(bf16);
  EXPECT_GT(distance.least, kSamePicture);
  EXPECT_GT(distance.median, 38);
}

TEST_F(TinyEmoji, PaintsTheBackgroundThatThePromptNames) {
  const auto near = [](double value) { return testing::DoubleNear(value, 30); };
  using testing::ElementsAre;
  EXPECT_THAT(mean_of_top_rows(draw("a small key at the bottom on a red background", 6)),
              ElementsAre(near(220), near(30), near(40)));
  EXPECT_THAT(mean_of_top_rows(draw("a small key at the bottom on a green background", 6)),
              ElementsAre(near(40), near(160), near(60)));
}

}  // namespace
}  // namespace rbee::engine
