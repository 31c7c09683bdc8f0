// The whole pipeline with the tiny models of tests/models/image/data, against diffusers' pipelines
// (tools/goldens/make_pipeline_goldens.py).

#include "rbee/engine/image/pipeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <iterator>

#include "backends/api/registry.h"
#include "backends/cpu/cpu_backend.h"
#include "rbee/core/error.h"
#include "rbee/engine/image/noise.h"
#include "rbee/io/image/png.h"
#include "rbee/io/json_parse.h"
#include "rbee/models/image/tiny_autoencoder.h"
#include "rbee/ops/concat.h"
#include "rbee/ops/elementwise.h"
#include "tests/checkpoints/image_folder.h"
#include "tests/support/data_folder.h"

namespace rbee::engine {
namespace {

using nlohmann::json;

constexpr int32_t kWidth = 72;
constexpr int32_t kHeight = 64;

json cases() {
  std::ifstream file(test::data_folder() + "/units/engine/data/pipelines.json");
  const std::string text(std::istreambuf_iterator<char>(file), {});
  return io::parse_json(text, "pipelines.json");
}

template <typename Value>
std::string picture(Value&& value) {
  io::Pixels out{.width = kWidth, .height = kHeight, .channels = 3, .values = {}};
  for (int y = 0; y < kHeight; ++y) {
    for (int x = 0; x < kWidth; ++x) {
      for (int c = 0; c < 3; ++c) out.values.push_back(static_cast<uint8_t>(value(x, y, c)));
    }
  }
  return io::encode_png(out);
}

std::string init_image() {
  return picture([](int x, int y, int c) { return c == 0 ? x * 3 : (c == 1 ? y * 4 : x + y); });
}

std::string mask_image() {
  return picture([](int x, int y, int) { return y >= 8 && y < 40 && x >= 20 && x < 56 ? 255 : 0; });
}

ImageRequest request_of(const json& wanted) {
  const json& asked = wanted["request"];
  ImageRequest out;
  out.prompt = "a tiny golden dragon on a table";
  if (asked.contains("words")) out.prompt += " with an <owl-toy>, inkwash";
  if (wanted["model"] != "lcm") out.negative_prompt = "misty portrait";
  out.prompt_rule = asked.contains("prompt") ? PromptRule::a1111 : PromptRule::none;
  out.prompt = asked.value("prompt", out.prompt);
  out.negative_prompt = asked.value("negative", out.negative_prompt);
  out.width = kWidth;
  out.height = kHeight;
  out.seed = wanted["seed"].get<uint64_t>();
  out.steps = asked["steps"].get<int32_t>();
  out.sampler = asked.value("sampler", "");
  out.count = asked.value("count", 1);
  out.guidance_scale = asked.value("guidance_scale", 7.5f);
  out.guidance_rescale = asked.value("guidance_rescale", 0.0f);
  out.strength = asked.value("strength", 0.8f);
  const std::string tiling = asked.value("tiling", "");
  if (tiling == "both") out.tiling = Tiling::both;
  if (tiling == "x") out.tiling = Tiling::x;
  if (tiling == "y") out.tiling = Tiling::y;
  if (asked.contains("init")) out.init_image = init_image();
  if (asked.contains("mask")) out.mask_image = mask_image();
  for (const json& use : asked.value("control", json::array())) {
    out.controls.push_back({.name = "",
                            .image = init_image(),
                            .scale = use.value("scale", 1.0f),
                            .start = use.value("start", 0.0f),
                            .finish = use.value("finish", 1.0f)});
  }
  return out;
}

void write_vectors(const std::filesystem::path& file,
                   const std::vector<std::pair<const char*, test::MadeTensor>>& named) {
  std::vector<test::MadeTensor> tensors;
  for (const auto& [key, made] : named) {
    const auto values = test::made_weights("token_embedding." + made.name, made.shape);
    tensors.push_back({key, made.shape, values});
  }
  test::write_safetensors(file, tensors);
}

// Textual inversions in two kinds of files, beside two that are skipped.
void write_words(const std::filesystem::path& folder, bool large) {
  std::filesystem::create_directories(folder);
  if (large) {
    write_vectors(folder / "<owl-toy>.safetensors",
                  {{"clip_l", {"owl", {3, 32}, {}}}, {"clip_g", {"large", {3, 40}, {}}}});
  } else {
    write_vectors(folder / "toy.safetensors", {{"<owl-toy>", {"owl", {3, 32}, {}}}});
    write_vectors(folder / "unnamed.safetensors", {{"*", {"owl", {3, 32}, {}}}});
    write_vectors(folder / "InkWash.safetensors", {{"emb_params", {"style", {1, 32}, {}}}});
  }
  write_vectors(folder / "wide.safetensors", {{"emb_params", {"style", {1, 33}, {}}}});
  std::ofstream(folder / "old.pt") << "pickled";
}

void set_scheduler(const test::ImageFolder& folder, const json& scheduler) {
  std::ofstream(folder.path() / "scheduler" / "scheduler_config.json") << scheduler;
  json index = json::parse(std::ifstream(folder.path() / "model_index.json"));
  if (scheduler.contains("_class_name")) index["scheduler"][1] = scheduler["_class_name"];
  std::ofstream(folder.path() / "model_index.json") << index;
}

// `scheduler`: replaces the model's own configuration unless it is null.
ImageSource source_of(const std::string& model, const std::string& control = "", bool int8 = false,
                      const json& scheduler = {}) {
  register_backend(cpu::cpu_backend());
  const test::ImageFolder folder(model);
  if (!scheduler.is_null()) set_scheduler(folder, scheduler);
  for (const char* part : {"tokenizer", "tokenizer_2"}) {
    std::filesystem::copy(test::image_data("tokenizer"), folder.path() / part,
                          std::filesystem::copy_options::recursive);
  }
  ImageSourceOptions options{.device = &get_device({DeviceKind::cpu, 0}), .int8 = int8};
  write_words(folder.path() / "embeddings", model == "sdxl");
  const test::ImageFolder other("sd1");
  if (model == "lcm") options.vae = other.path() / "vae";  // its own has more channels
  if (control.empty()) return load_image_source(folder.path(), options);
  const test::ImageFolder net(control);
  options.control_nets = {{net.path(), {}}};
  return load_image_source(folder.path(), options);
}

std::string control_of(const json& wanted) {
  const json& asked = wanted["request"];
  return asked.contains("control") ? asked["control"][0]["net"].get<std::string>() : "";
}

ImageSource source_for(const json& wanted, bool int8 = false) {
  return source_of(wanted["model"].get<std::string>(), control_of(wanted), int8,
                   wanted.value("scheduler", json()));
}

// Names a case by its index in the file, which keeps failures short.
class PipelineGolden : public testing::TestWithParam<size_t> {};

// The latents of all its images, one after another.
std::vector<float> run_to_latents(const ImageSource& source, const ImageRequest& request) {
  std::vector<float> out;
  int32_t steps = 0, images = 0;
  PipelineHooks hooks;
  hooks.step = [&](int32_t done) { return done == ++steps; };
  hooks.image = [&](const io::Pixels& image, int32_t index) {
    EXPECT_EQ(image.width, kWidth);
    EXPECT_EQ(image.height, kHeight);
    return index == images++;
  };
  hooks.latents = [&](const Tensor& latents, int32_t) {
    const auto values = latents.to_host<float>();
    out.insert(out.end(), values.begin(), values.end());
  };
  PipelineTimes times;
  ImagePipeline pipeline(source);
  const ImageSettings settings = resolve(source, request);
  EXPECT_TRUE(pipeline.run(request, settings, hooks, times));
  EXPECT_EQ(images, request.count);
  EXPECT_EQ(steps, pipeline.total_steps(request, settings));
  return out;
}

TEST_P(PipelineGolden, EndsWithTheLatentsOfDiffusers) {
  const json wanted = cases().at(GetParam());
  const ImageSource source = source_for(wanted);
  ImageRequest request = request_of(wanted);
  const auto expected = wanted["latents"].get<std::vector<float>>();
  // In one batch, and one image after another.
  for (int32_t batch = 1; batch <= request.count; ++batch) {
    request.batch = batch;
    const std::vector<float> got = run_to_latents(source, request);
    ASSERT_EQ(got.size(), expected.size());
    float worst = 0;
    for (size_t i = 0; i < got.size(); ++i) worst = std::max(worst, std::abs(got[i] - expected[i]));
    EXPECT_LT(worst, 2e-3f) << "batch " << batch;
  }
}

// Every seventh pixel of every seventh row.
std::vector<int> sampled(const io::Pixels& picture) {
  std::vector<int> out;
  for (int y = 0; y < picture.height; y += 7) {
    for (int x = 0; x < picture.width; x += 7) {
      for (int c = 0; c < 3; ++c) {
        out.push_back(picture.values[static_cast<size_t>(y * picture.width + x) * 3 +
                                     static_cast<size_t>(c)]);
      }
    }
  }
  return out;
}

io::Pixels drawn(const ImageSource& source, const ImageRequest& request) {
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

// For every feature: init pictures, masks, ControlNets, textual inversions. The largest error is
// 0.063 of the latents with VNNI.
TEST_P(PipelineGolden, Int8EndsNearby) {
  const json wanted = cases().at(GetParam());
  const std::vector<float> got = run_to_latents(source_for(wanted, true), request_of(wanted));
  const auto expected = wanted["latents"].get<std::vector<float>>();
  ASSERT_EQ(got.size(), expected.size());
  double error = 0, size = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    error += std::pow(got[i] - expected[i], 2);
    size += std::pow(expected[i], 2);
  }
  EXPECT_LT(std::sqrt(error / size), 0.1);
}

ImageRequest small_request() {
  ImageRequest out;
  out.prompt = "a tiny dragon";
  out.width = kWidth;
  out.height = kHeight;
  out.steps = 2;
  out.seed = 1;
  return out;
}

// A1111's rule: if the mask covers everything, only gray is left of the picture
// (modules/processing.py, txt2img_image_conditioning). The goldens test that masks are read as in
// diffusers.
TEST(Inpainting, WithoutAMaskIsWithAMaskOfEverything) {
  const ImageSource source = source_of("inpaint");
  ASSERT_TRUE(source.info.inpainting);
  ImageRequest request = small_request();
  request.noise_source = NoiseSource::philox;
  request.sampler = "Euler";
  const std::vector<float> plain = run_to_latents(source, request);
  request.strength = 1;
  request.init_image = init_image();
  request.mask_image = picture([](int, int, int) { return 255; });
  EXPECT_EQ(run_to_latents(source, request), plain);
  // The same for a picture without a mask: the extra channels carry only its own latent.
  request.mask_image = {};
  request.strength_rule = StrengthRule::part;
  request.strength = 0.5f;
  EXPECT_NE(run_to_latents(source, request), plain);
}

// A second pass has its own size.
TEST(Inpainting, WithoutAMaskGoesOnWithASecondPass) {
  const ImageSource source = source_of("inpaint");
  ImageRequest request = small_request();
  request.hires = HiresFix{.width = 2 * kWidth, .height = 2 * kHeight};
  EXPECT_EQ(drawn(source, request).width, 2 * kWidth);
}

// The first preview of a run.
io::Pixels preview_of(const ImageSource& source) {
  ImageRequest request = small_request();
  request.preview_interval = 1;
  io::Pixels out;
  PipelineHooks hooks;
  hooks.step = [](int32_t) { return true; };
  hooks.preview = [&](const io::Pixels& preview, int32_t, int32_t) {
    out = preview;
    return false;
  };
  PipelineTimes times;
  ImagePipeline pipeline(source);
  EXPECT_FALSE(pipeline.run(request, resolve(source, request), hooks, times));
  return out;
}

TEST(Previews, AreDrawnByATinyAutoencoderWhereThereIsOne) {
  ImageSource source = source_of("sd1");
  EXPECT_EQ(preview_of(source).width, kWidth / 4);  // a pixel for each latent
  const test::ImageFolder tiny("taesd"), own("sd1");
  source.preview_vae = models::load_tiny_autoencoder(tiny.path(), source.model);
  EXPECT_EQ(preview_of(source).width, kWidth);
  EXPECT_THROW(models::load_tiny_autoencoder(own.path() / "vae", source.model), Error);
}

// x shifted circularly by this many pixels along axes 1 and 2.
Tensor moved(const Tensor& x, int64_t down, int64_t right) {
  const auto along = [](const Tensor& part, Axis axis, int64_t size, int64_t by) {
    if (by == 0) return part;
    return concat({part.slice(axis, size - by, by), part.slice(axis, 0, size - by)}, axis);
  };
  return contiguous(along(along(x, Axis{1}, x.dim(1), down), Axis{2}, x.dim(2), right));
}

float difference(const Tensor& a, const Tensor& b) {
  const auto x = a.to_host<float>(), y = b.to_host<float>();
  float worst = 0;
  for (size_t i = 0; i < x.size(); ++i) worst = std::max(worst, std::abs(x[i] - y[i]));
  return worst;
}

TEST(Tiling, EndsWithThePicturesOfDiffusers) {
  int checked = 0;
  for (const json& wanted : cases()) {
    if (!wanted.contains("decoded")) continue;
    const auto got = sampled(drawn(source_for(wanted), request_of(wanted)));
    const auto expected = wanted["decoded"].get<std::vector<int>>();
    ASSERT_EQ(got.size(), expected.size());
    for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 1) << i;
    ++checked;
  }
  EXPECT_EQ(checked, 3);
}

// A circular picture has no special place.
TEST(Tiling, OfAMovedLatentIsTheMovedPicture) {
  const ImageSource source = source_of("sd1");
  const models::Vae& vae = *source.model.vae;
  const models::Denoiser& denoiser = *source.model.denoiser;
  const int64_t scale = vae.info().scale;
  diffusion::TorchNormals normals(3);
  const Tensor latent = normal_latent(normals, {1, 8, 12, 4}, *source.device);
  const auto conditioning =
      denoiser.prepare(encode_prompts(source, small_request(), {{"a"}, {}}).positive.front());
  const Tensor times = from_host<float>(std::vector<float>{500}, {1}, *source.device);
  struct Case {
    Circular circular;
    int64_t down, right;
  };
  // The UNet halves twice, so by four.
  for (const auto& [circular, down, right] :
       {Case{{true, true}, 4, 8}, Case{{true, false}, 0, 4}, Case{{false, true}, 4, 0}}) {
    const Tensor picture = vae.decode(latent, {}, circular);
    EXPECT_LT(difference(vae.decode(moved(latent, down, right), {}, circular),
                         moved(picture, down * scale, right * scale)),
              2e-4f);
    EXPECT_GT(difference(vae.decode(moved(latent, down, right)),
                         moved(vae.decode(latent), down * scale, right * scale)),
              0.01f);
    const auto encoded = [&](const Tensor& x) { return vae.encode(x, circular).mean; };
    EXPECT_LT(difference(encoded(moved(picture, down * scale, right * scale)),
                         moved(encoded(picture), down, right)),
              2e-4f);
    const auto said = [&](const Tensor& x) {
      return denoiser(x, times, *conditioning, {.circular = circular});
    };
    EXPECT_LT(difference(said(moved(latent, down, right)), moved(said(latent), down, right)),
              2e-4f);
  }
}

TEST(Decoding, EndsBetweenTheBlocksOfTheVae) {
  const ImageSource source = source_of("sd1");
  const ImageRequest request = small_request();
  ImagePipeline pipeline(source);
  int asked = 0;
  bool made = false;
  PipelineHooks hooks;
  hooks.step = [](int32_t) { return true; };
  hooks.going_on = [&] { return ++asked < 4; };
  hooks.image = [&](const io::Pixels&, int32_t) { return made = true; };
  PipelineTimes times;
  EXPECT_FALSE(pipeline.run(request, resolve(source, request), hooks, times));
  EXPECT_EQ(asked, 4);
  EXPECT_FALSE(made);
}

TEST(ImageSource, NamesWordsThatFitAndThoseThatDoNot) {
  const ImageSource source = source_of("sd1");
  std::vector<std::string> words;
  for (const WordInfo& each : source.info.embeddings) words.push_back(each.word);
  // A diffusers file, by the token inside it and by its file name.
  EXPECT_EQ(words, (std::vector<std::string>{"InkWash", "<owl-toy>", "toy", "unnamed"}));
  EXPECT_EQ(source.info.embeddings[1].vectors, 3);
  EXPECT_EQ(source.info.skipped_embeddings, (std::vector<std::string>{"old", "wide"}));
}

INSTANTIATE_TEST_SUITE_P(Tiny, PipelineGolden, testing::Range<size_t>(0, cases().size()));

// Each part is complete, but they do not match.
TEST(ImageSourceScheduler, IsOfTheClassThatTheIndexNames) {
  using diffusion::Prediction;
  const ImageSource sd2 = source_of("sd2");
  EXPECT_EQ(sd2.scheduler.sampler, diffusion::Sampler::ddim);
  EXPECT_EQ(sd2.scheduler.prediction, Prediction::v_prediction);
  EXPECT_TRUE(sd2.scheduler.zero_terminal_snr);
  const auto ddim = source_of("sd2", "", false, json{{"beta_start", 0.001}});
  EXPECT_EQ(ddim.scheduler.sampler, diffusion::Sampler::ddim);
  EXPECT_EQ(ddim.scheduler.beta_end, 0.02);
  // The pipeline of Stable Diffusion replaces these two.
  EXPECT_EQ(ddim.scheduler.steps_offset, 1);
  EXPECT_TRUE(ddim.scheduler.ignored.empty());

  register_backend(cpu::cpu_backend());
  const test::ImageFolder folder("sd2");
  std::filesystem::copy(test::image_data("tokenizer"), folder.path() / "tokenizer",
                        std::filesystem::copy_options::recursive);
  const ImageSourceOptions options{.device = &get_device({DeviceKind::cpu, 0}),
                                   .prediction_type = "epsilon"};
  EXPECT_EQ(load_image_source(folder.path(), options).scheduler.prediction, Prediction::epsilon);
  std::filesystem::remove(folder.path() / "scheduler" / "scheduler_config.json");
  try {
    load_image_source(folder.path(), options);
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::not_found);
    EXPECT_THAT(error.what(), testing::HasSubstr("scheduler_config.json: there is no such file"));
  }
}

TEST(ImageSourceParts, OfDifferentModelsAreRefused) {
  register_backend(cpu::cpu_backend());
  const test::ImageFolder small("sd1"), large("sdxl"), flow("sd3"), flux("flux"), steer("steer_xl");
  ImageSourceOptions options{.device = &get_device({DeviceKind::cpu, 0})};
  const auto refused = [&](const test::ImageFolder& folder, const ImageSourceOptions& with,
                           const std::vector<std::string>& parts) {
    try {
      load_image_source(folder.path(), with);
      ADD_FAILURE() << parts.front();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::invalid_argument);
      for (const std::string& part : parts) EXPECT_THAT(error.what(), testing::HasSubstr(part));
    }
  };
  const auto with = [&](auto field, const std::filesystem::path& path) {
    ImageSourceOptions out = options;
    out.*field = path;
    return out;
  };
  refused(small, with(&ImageSourceOptions::vae, flow.path() / "vae"),
          {"sd1", "VAE", "width of 8", "reads 4", "different models"});
  refused(flow, with(&ImageSourceOptions::vae, small.path() / "vae"),
          {"sd3", "VAE", "width of 4", "reads 8", "different models"});
  const auto clip = &ImageSourceOptions::clip_l;
  refused(large, with(clip, large.path() / "text_encoder_2"), {"sdxl", "width of 80", "reads 72"});
  refused(flow, with(clip, flow.path() / "text_encoder_2"), {"sd3", "width of 40", "reads 44"});
  refused(flux, with(clip, large.path() / "text_encoder_2"), {"flux", "pooled", "reads 32"});
  std::filesystem::copy(test::image_data("tokenizer"), small.path() / "tokenizer");
  options.control_nets = {{steer.path(), {}}};
  refused(small, options, {"cross_attention_dim is 72", "give 32", "another family"});
}

// Else requests would find no LoRA in it, whatever they name.
TEST(ImageSourceLoras, AFolderThatIsNamedHasToBeThere) {
  register_backend(cpu::cpu_backend());
  const test::ImageFolder folder("sd1");
  const ImageSourceOptions options{.device = &get_device({DeviceKind::cpu, 0}),
                                   .lora_folder = folder.path() / "no_such_folder"};
  try {
    load_image_source(folder.path(), options);
    ADD_FAILURE() << "it loads";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::invalid_argument);
    EXPECT_THAT(error.what(), testing::HasSubstr("no_such_folder is not there"));
  }
}

}  // namespace
}  // namespace rbee::engine
