// Pictures in little memory: tiles if a VAE runs out of it, prompts that are encoded once, and
// parts that leave the device while requests come and go.

#include <gmock/gmock.h>

#include <filesystem>
#include <map>

#include "rbee/engine/image/decode.h"
#include "rbee/engine/image/model_memory.h"
#include "rbee/engine/image/noise.h"
#include "rbee/engine/image/pipeline.h"
#include "rbee/engine/image/text_cache.h"
#include "rbee/io/diffusers_folder.h"
#include "tests/checkpoints/checkpoint_files.h"
#include "tests/checkpoints/image_folder.h"
#include "tests/units/engine/fake_image_model.h"
#include "tests/units/engine/far_device.h"

namespace rbee::engine {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;

// Has memory for this many latents, and records the requested sizes.
class NarrowVae final : public models::Vae {
 public:
  explicit NarrowVae(int64_t latents) : latents_(latents) {}

  const models::VaeInfo& info() const override { return inner_.info(); }
  models::LatentDistribution encode(const Tensor& image, Circular circular) const override {
    enter(image.dim(1) / info().scale, image.dim(2) / info().scale);
    models::LatentDistribution out = inner_.encode(image, circular);
    out.log_variance = out.mean;
    return out;
  }
  Tensor decode(const Tensor& latent, const models::Between& between,
                Circular circular) const override {
    enter(latent.dim(1), latent.dim(2));
    return inner_.decode(latent, between, circular);
  }

  mutable std::vector<int64_t> heights;

 private:
  void enter(int64_t height, int64_t width) const {
    heights.push_back(height);
    if (height * width > latents_) fail(Code::out_of_memory, "allocate", "as the test wants");
  }

  FakeVae inner_;
  int64_t latents_;
};

Device& host() {
  return *fake_source(half_noise).device;
}

Tensor some_latent(int64_t height, int64_t width) {
  diffusion::TorchNormals normals(3);
  return normal_latent(normals, {1, height, width, 4}, host());
}

void expect_near(const std::vector<float>& found, const std::vector<float>& wanted) {
  ASSERT_EQ(found.size(), wanted.size());
  for (size_t i = 0; i < found.size(); ++i) ASSERT_NEAR(found[i], wanted[i], 1e-5f) << i;
}

TEST(Tiles, ArePickedWhenMemoryRunsOut) {
  const Tensor latent = some_latent(70, 40);
  const NarrowVae wide(70 * 40), tiles(64 * 40), small(32 * 32), none(31 * 31);
  const std::vector<float> whole = decode_in_tiles(wide, latent);
  EXPECT_THAT(wide.heights, ElementsAre(70));
  expect_near(decode_in_tiles(tiles, latent), whole);
  EXPECT_THAT(tiles.heights, ElementsAre(70, 64, 64));
  expect_near(decode_in_tiles(small, latent), whole);
  EXPECT_EQ(small.heights.size(), 2U + 4 * 2);
  test::expect_error(Code::out_of_memory, {"as the test wants"},
                     [&] { decode_in_tiles(none, latent); });
  EXPECT_THAT(none.heights, ElementsAre(70, 64, 32));
}

TEST(Tiles, OfSmallPicturesAreHalves) {
  const NarrowVae vae(32 * 32);
  const Tensor latent = some_latent(64, 64);
  expect_near(decode_in_tiles(vae, latent), decode_in_tiles(NarrowVae(64 * 64), latent));
  EXPECT_THAT(vae.heights, testing::Each(testing::AnyOf(64, 32)));
}

TEST(Tiles, AlsoReadPictures) {
  const Tensor picture = from_host<float>(decode_in_tiles(NarrowVae(70 * 40), some_latent(70, 40)),
                                          {1, 560, 320, 3}, host());
  const models::LatentDistribution whole = encode_in_tiles(NarrowVae(70 * 40), picture);
  for (const bool asked : {true, false}) {
    const NarrowVae vae(64 * 40);
    const models::LatentDistribution found = encode_in_tiles(vae, picture, {.tiled = asked});
    expect_near(found.mean.to_host<float>(), whole.mean.to_host<float>());
    expect_near(found.log_variance.to_host<float>(), whole.log_variance.to_host<float>());
    EXPECT_EQ(vae.heights.size(), asked ? 2U : 3U);
  }
}

TEST(Tiles, OtherErrorsAreNoReasonForThem) {
  const NarrowVae vae(64 * 64);
  const Tensor latent = some_latent(64, 64);
  int calls = 0;
  TileOptions options;
  options.between = [&] {
    ++calls;
    fail(Code::device, "far", "lost");
  };
  test::expect_error(Code::device, {"lost"}, [&] { decode_in_tiles(vae, latent, options); });
  EXPECT_EQ(calls, 1);
}

ImageRequest request_of(const std::string& prompt) {
  ImageRequest out;
  out.prompt = prompt;
  return out;
}

TEST(PromptCacheTest, KeepsTheLastOnes) {
  PromptCache cache({.requests = 2});
  int encoded = 0;
  const auto get = [&](const ImageRequest& request) {
    cache.get({{request.prompt}, {request.negative_prompt}}, request, [&] {
      ++encoded;
      return PromptStates{};
    });
    return encoded;
  };
  EXPECT_EQ(get(request_of("a")), 1);
  EXPECT_EQ(get(request_of("b")), 2);
  EXPECT_EQ(get(request_of("a")), 2);
  EXPECT_EQ(get(request_of("c")), 3);  // "b" was the least recently used
  EXPECT_EQ(get(request_of("a")), 3);
  EXPECT_EQ(get(request_of("b")), 4);
  ImageRequest other = request_of("b");
  other.clip_skip = 2;
  EXPECT_EQ(get(other), 5);
  other.negative_prompt = "x";
  EXPECT_EQ(get(other), 6);
  other.prompt_rule = PromptRule::comfy;
  EXPECT_EQ(get(other), 7);
  other.emphasis = Emphasis::no_norm;
  EXPECT_EQ(get(other), 8);
  cache.clear();
  EXPECT_EQ(get(other), 9);
}

PromptStates states_of(int64_t values) {
  return {.positive = {{.context = zeros({1, values, 1}, DType::f32, host())}}, .negative = {}};
}

TEST(PromptCacheTest, KeepsNoMoreBytesThanAsked) {
  PromptCache cache({.requests = 8, .bytes = 100});
  int encoded = 0;
  const auto get = [&](const char* prompt, int64_t values) {
    const ImageRequest request = request_of(prompt);
    cache.get({{prompt}, {}}, request, [&] {
      ++encoded;
      return states_of(values);
    });
    return encoded;
  };
  EXPECT_EQ(get("a", 12), 1);  // 48 bytes
  EXPECT_EQ(get("b", 13), 2);
  EXPECT_EQ(get("a", 12), 2);
  EXPECT_EQ(get("c", 1), 3);  // drops "b", the least recently used
  EXPECT_EQ(get("a", 12), 3);
  EXPECT_EQ(get("b", 13), 4);
  EXPECT_EQ(get("big", 26), 5);
  EXPECT_EQ(get("big", 26), 6);
}

// Runs out of memory when the test says so.
class FullDenoiser {
 public:
  FakeDenoiser::Output output() {
    return [this](const Tensor& x) {
      if (full) fail(Code::out_of_memory, "denoiser", "as the test wants");
      return half_noise(x);
    };
  }
  bool full = false;
};

TEST(PromptCacheTest, IsEmptyAfterMemoryRanOut) {
  FullDenoiser denoiser;
  ImageSource source = fake_source(denoiser.output());
  int encoded = 0;
  source.model.text[0].encoder =
      std::make_unique<CallbackTextEncoder>([&](const models::TextInput&) { ++encoded; });
  ImageRequest request = request_of("a");
  request.steps = 1;
  const PipelineHooks hooks{.step = [](int32_t) { return true; },
                            .preview = {},
                            .image = [](const io::Pixels&, int32_t) { return true; },
                            .going_on = {},
                            .hurry = {},
                            .latents = {}};
  ImagePipeline pipeline(source);
  PipelineTimes times;
  const auto run = [&] { pipeline.run(request, resolve(source, request), hooks, times); };
  run();
  run();
  EXPECT_EQ(encoded, 1);
  denoiser.full = true;
  test::expect_error(Code::out_of_memory, {"as the test wants"}, run);
  denoiser.full = false;
  run();
  EXPECT_EQ(encoded, 2);
}

// A denoiser that leaves the device may be captured: then it must stay from the first step to the
// last.
TEST(Previews, DoNotUseTheVaeBetweenSteps) {
  auto vae = std::make_unique<NarrowVae>(64 * 64);
  const NarrowVae& uses = *vae;
  std::vector<size_t> used;
  ImageSource source = fake_source([&](const Tensor& x) {
    used.push_back(uses.heights.size());
    return half_noise(x);
  });
  source.model.vae = std::move(vae);
  ImageRequest request = request_of("a");
  request.steps = 3;
  request.sampler = "euler";
  request.preview_interval = 1;
  int previews = 0;
  PipelineHooks hooks;
  hooks.step = [](int32_t) { return true; };
  hooks.preview = [&](const io::Pixels&, int32_t, int32_t) { return ++previews > 0; };
  hooks.image = [](const io::Pixels&, int32_t) { return true; };
  ImagePipeline pipeline(source);
  PipelineTimes times;
  EXPECT_TRUE(pipeline.run(request, resolve(source, request), hooks, times));
  EXPECT_EQ(previews, 3);
  EXPECT_THAT(used, ElementsAre(1, 1, 1));  // the previews' map was fitted before
}

// A tiny SDXL on its own device, with an engine.
class OffloadedEngine : public testing::Test {
 protected:
  OffloadedEngine() {
    for (const char* part : {"tokenizer", "tokenizer_2"}) {
      fs::copy(test::image_data("tokenizer"), folder_.path() / part, fs::copy_options::recursive);
    }
  }

  std::unique_ptr<ImageEngine> engine(const models::OffloadedParts& offload) {
    ImageSourceOptions options{.device = &far_};
    options.activations = DType::f32;
    options.offload = offload;
    return make_image_engine(load_image_source(folder_.path(), options), {.warm_up = false});
  }

  static std::shared_ptr<ImageRecorder> run(ImageEngine& engine, const std::string& prompt) {
    auto recorder = std::make_shared<ImageRecorder>();
    ImageRequest request = request_of(prompt);
    request.width = request.height = 64;
    request.steps = 2;
    request.seed = 1;
    engine.submit(request, recorder);
    EXPECT_TRUE(recorder->wait());
    return recorder;
  }

  test::ImageFolder folder_{"sdxl"};
  FarDevice far_;
};

TEST_F(OffloadedEngine, MakesTheSamePictures) {
  const auto resident = engine({});
  const auto offloaded = engine({.text = true, .denoiser = true, .vae = true});
  for (const char* prompt : {"a tiny dragon", "an owl", "a tiny dragon"}) {
    const auto wanted = run(*resident, prompt), found = run(*offloaded, prompt);
    ASSERT_EQ(found->images.size(), 1U);
    EXPECT_EQ(found->images[0].file, wanted->images[0].file);
  }
}

TEST_F(OffloadedEngine, ItsMemoryIsEstimatedFromTheHeaders) {
  const auto bytes = [&](const models::OffloadedParts& offload, DType activations) {
    return image_model_memory(folder_.path(), {.activations = activations, .offload = offload});
  };
  std::map<std::string, int64_t> parts;
  int64_t all = 0, all_in_16_bits = 0;
  for (const char* part : {"text_encoder", "text_encoder_2", "unet", "vae"}) {
    const io::Checkpoint weights = io::open_part_weights(folder_.path() / part);
    for (const io::TensorEntry& tensor : weights.tensors()) {
      const auto stored = static_cast<int64_t>(tensor.data.size());
      parts[part] += stored;
      all_in_16_bits += tensor.dtype == DType::f32 ? stored / 2 : stored;
    }
    all += parts[part];
  }
  const int64_t room = int64_t{3} << 30;
  EXPECT_EQ(bytes({}, DType::f32), all + room);
  EXPECT_EQ(bytes({}, DType::f16), all_in_16_bits + room);
  const int64_t first = parts["text_encoder"], second = parts["text_encoder_2"];
  EXPECT_EQ(bytes({.text = true}, DType::f32), all - std::min(first, second) + room);
  int64_t largest = 0;
  for (const auto& [part, size] : parts) largest = std::max(largest, size);
  EXPECT_EQ(bytes({.text = true, .denoiser = true, .vae = true}, DType::f32), largest + room);
}

// Parts that come back are rounded again from their files and give the same weights.
TEST_F(OffloadedEngine, MakesTheSamePicturesInInt8) {
  std::vector<std::string> pictures;
  for (const bool offloaded : {false, true}) {
    ImageSourceOptions options{.device = &host(), .int8 = true};
    if (offloaded) options.offload = {.text = true, .denoiser = true, .vae = true};
    const auto engine =
        make_image_engine(load_image_source(folder_.path(), options), {.warm_up = false});
    for (const char* prompt : {"a tiny dragon", "an owl", "a tiny dragon"}) {
      const auto found = run(*engine, prompt);
      ASSERT_EQ(found->images.size(), 1U);
      pictures.push_back(found->images[0].file);
    }
  }
  EXPECT_EQ(pictures[2], pictures[0]);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(pictures[i + 3], pictures[i]);
}

TEST_F(OffloadedEngine, GoesOnAfterAPartFoundNoRoom) {
  const auto offloaded = engine({.text = true, .denoiser = true, .vae = true});
  const auto before = run(*offloaded, "a tiny dragon");
  far_.fail_allocation(5);
  const auto failed = run(*offloaded, "an owl");
  ASSERT_EQ(failed->failures.size(), 1U);
  EXPECT_EQ(failed->failures[0].code, Code::out_of_memory);
  const auto after = run(*offloaded, "a tiny dragon");
  ASSERT_EQ(after->images.size(), 1U);
  EXPECT_EQ(after->images[0].file, before->images[0].file);
  EXPECT_TRUE(offloaded->stats().healthy);
}

}  // namespace
}  // namespace rbee::engine
