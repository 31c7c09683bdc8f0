// The whole pipeline with tiny models of Stable Diffusion 3, FLUX and Z-Image, against diffusers'
// pipelines (tools/goldens/make_flow_pipeline_goldens.py, make_z_image_goldens.py).

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <iterator>

#include "backends/api/registry.h"
#include "backends/cpu/cpu_backend.h"
#include "rbee/engine/image/pipeline.h"
#include "rbee/io/image/png.h"
#include "rbee/io/json_parse.h"
#include "tests/checkpoints/image_folder.h"
#include "tests/support/data_folder.h"

namespace rbee::engine {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr int32_t kWidth = 72;
constexpr int32_t kHeight = 64;

json cases() {
  json all = json::array();
  for (const char* name : {"flow_pipelines.json", "z_image_pipelines.json"}) {
    std::ifstream file(test::data_folder() + "/units/engine/data/" + name);
    const std::string text(std::istreambuf_iterator<char>(file), {});
    for (json& each : io::parse_json(text, name)) all.push_back(std::move(each));
  }
  return all;
}

std::string init_image() {
  io::Pixels out{.width = kWidth, .height = kHeight, .channels = 3, .values = {}};
  for (int y = 0; y < kHeight; ++y) {
    for (int x = 0; x < kWidth; ++x) {
      for (const int value : {x * 3, y * 4, x + y}) {
        out.values.push_back(static_cast<uint8_t>(value));
      }
    }
  }
  return io::encode_png(out);
}

std::string mask_image() {
  io::Pixels out{.width = kWidth, .height = kHeight, .channels = 3, .values = {}};
  for (int y = 0; y < kHeight; ++y) {
    for (int x = 0; x < kWidth; ++x) {
      const bool inside = y >= 8 && y < 40 && x >= 20 && x < 56;
      out.values.insert(out.values.end(), 3, static_cast<uint8_t>(inside ? 255 : 0));
    }
  }
  return io::encode_png(out);
}

ImageRequest request_of(const json& wanted) {
  const json& asked = wanted["request"];
  ImageRequest out;
  out.prompt = asked.value("prompt", "a tiny golden dragon on a table");
  out.negative_prompt = "misty portrait";
  out.prompt_rule = PromptRule::none;
  out.width = kWidth;
  out.height = kHeight;
  out.seed = wanted["seed"].get<uint64_t>();
  out.steps = asked["steps"].get<int32_t>();
  out.count = asked.value("count", 1);
  out.guidance_scale = asked.value("guidance_scale", 3.5f);
  out.strength = asked.value("strength", 0.8f);
  if (asked.contains("init")) out.init_image = init_image();
  if (asked.contains("control")) out.controls = {{.name = "", .image = init_image()}};
  if (asked.contains("mask")) out.mask_image = mask_image();
  return out;
}

// Takes tokenizers from the folders in model_index.json, or all of them beside the model.
ImageSource source_of(const std::string& model, const std::string& id = "") {
  register_backend(cpu::cpu_backend());
  const test::ImageFolder folder(model);
  const bool flux = !model.starts_with("sd3");
  const auto put = [&](const char* from, const char* to) {
    fs::copy(test::image_data(from), folder.path() / to, fs::copy_options::recursive);
  };
  if (model == "z_image") {
    put("qwen_tokenizer", "tokenizer");
    return load_image_source(folder.path(),
                             {.device = &get_device({DeviceKind::cpu, 0}), .model_id = id});
  }
  put("tokenizer", "tokenizer");
  put(flux ? "t5_tokenizer" : "tokenizer", "tokenizer_2");
  if (!flux) put("t5_tokenizer", "tokenizer_3");
  return load_image_source(folder.path(), {.device = &get_device({DeviceKind::cpu, 0})});
}

std::vector<float> latents_of(const ImageSource& source, const ImageRequest& request) {
  std::vector<float> out;
  PipelineHooks hooks;
  hooks.step = [](int32_t) { return true; };
  hooks.image = [](const io::Pixels&, int32_t) { return true; };
  hooks.latents = [&](const Tensor& latents, int32_t) {
    const auto values = latents.to_host<float>();
    out.insert(out.end(), values.begin(), values.end());
  };
  PipelineTimes times;
  EXPECT_TRUE(ImagePipeline(source).run(request, resolve(source, request), hooks, times));
  return out;
}

float worst_of(const std::vector<float>& a, const std::vector<float>& b) {
  EXPECT_EQ(a.size(), b.size());
  float worst = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    worst = std::max(worst, std::abs(a[i] - b[i]));
  }
  return worst;
}

// Names a case by its index in the file, which keeps failures short.
class FlowPipelineGolden : public testing::TestWithParam<size_t> {};

TEST_P(FlowPipelineGolden, EndsWithTheLatentsOfDiffusers) {
  const json wanted = cases().at(GetParam());
  const ImageSource source = source_of(wanted["model"].get<std::string>());
  ImageRequest request = request_of(wanted);
  const auto expected = wanted["latents"].get<std::vector<float>>();
  for (request.batch = 1; request.batch <= request.count; ++request.batch) {
    EXPECT_LT(worst_of(latents_of(source, request), expected), 2e-3f) << "batch " << request.batch;
  }
}

INSTANTIATE_TEST_SUITE_P(Tiny, FlowPipelineGolden, testing::Range<size_t>(0, cases().size()));

TEST(FlowPipelineTest, SettingsAreTheFamilys) {
  const ImageSource sd3 = source_of("sd3"), flux = source_of("flux"),
                    schnell = source_of("schnell"), z_image = source_of("z_image"),
                    turbo = source_of("z_image", "hf:Tongyi-MAI/Z-Image-Turbo");
  EXPECT_EQ(sd3.info.default_sampler, "Euler");
  EXPECT_EQ(sd3.info.default_steps, 28);
  EXPECT_FLOAT_EQ(sd3.info.default_guidance, 5);
  EXPECT_EQ(sd3.side_step, 8);  // pixels of a latent here, times the patch
  EXPECT_FLOAT_EQ(flux.info.default_guidance, 3.5f);
  EXPECT_EQ(flux.info.default_width, 512);
  EXPECT_EQ(schnell.info.default_steps, 4);
  EXPECT_FLOAT_EQ(schnell.info.default_guidance, 1);
  EXPECT_EQ(z_image.info.architecture, "z_image");
  EXPECT_EQ(z_image.info.default_steps, 28);
  EXPECT_FLOAT_EQ(z_image.info.default_guidance, 5);
  EXPECT_EQ(z_image.side_step, 8);
  EXPECT_EQ(turbo.info.default_steps, 8);
  EXPECT_FLOAT_EQ(turbo.info.default_guidance, 1);
}

TEST(FlowPipelineTest, ModelsThatFollowAPictureNeedOne) {
  const ImageSource source = source_of("flux_control");
  try {
    resolve(source, {});
    ADD_FAILURE() << "a request without a control was taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::unsupported);
    EXPECT_NE(std::string(error.what()).find("control"), std::string::npos) << error.what();
  }
  EXPECT_TRUE(source_of("flux_fill").info.inpainting);
}

TEST(FlowPipelineTest, DoesNotTile) {
  ImageRequest request;
  request.tiling = Tiling::x;
  try {
    resolve(source_of("flux"), request);
    ADD_FAILURE() << "tiling was taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::unsupported);
    EXPECT_NE(std::string(error.what()).find("tiling"), std::string::npos) << error.what();
  }
}

TEST(FlowPipelineTest, HasNoChurn) {
  ImageRequest request;
  request.added_noise.churn = 1;
  try {
    resolve(source_of("sd3"), request);
    ADD_FAILURE() << "churn was taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::unsupported);
    EXPECT_NE(std::string(error.what()).find("s_churn"), std::string::npos) << error.what();
  }
}

TEST(FlowPipelineTest, PartsOfPromptsNeedGuidance) {
  ImageRequest request;
  request.prompt = "a cat AND a dog";
  EXPECT_NO_THROW(resolve(source_of("sd3"), request));
  const ImageSource flux = source_of("flux");
  try {
    resolve(flux, request);
    ADD_FAILURE() << "parts of a prompt were taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::unsupported);
    EXPECT_NE(std::string(error.what()).find("prompt_rule none"), std::string::npos);
  }
  request.prompt_rule = PromptRule::none;
  EXPECT_NO_THROW(resolve(flux, request));
}

// A language model reads a turn of a chat without padding. A prompt cannot end that turn, and what
// is too long is cut off.
TEST(FlowPipelineTest, LanguageModelsReadTurns) {
  const ImageSource source = source_of("z_image");
  const auto states = [&](const std::string& prompt, PromptRule rule = PromptRule::none) {
    ImageRequest request;
    request.prompt_rule = rule;
    return encode_prompts(source, request, {{prompt}, {}}).positive.front();
  };
  const auto tokens = [&](const std::string& prompt) { return states(prompt).context.dim(1); };
  EXPECT_GT(tokens("<|im_end|>"), tokens("") + 1);
  EXPECT_EQ(tokens(std::string(4000, 'z')), 512);
  const models::TextStates plain = states("a cat"), longer = states("a cat on a table");
  const auto difference = [&](PromptRule rule) {
    return worst_of(states("(a cat:1.5)", rule).context.to_host<float>(),
                    plain.context.to_host<float>());
  };
  EXPECT_GT(difference(PromptRule::a1111), 0.01f);
  EXPECT_EQ(difference(PromptRule::comfy), 0);
  const int64_t least = plain.context.dim(1), most = longer.context.dim(1);
  ASSERT_LT(least, most);
  const models::TextStates both = joined({plain, longer});
  EXPECT_EQ(both.tokens, (std::vector<int64_t>{least, most}));
  EXPECT_EQ(both.context.shape(), (Shape{2, most, plain.context.dim(2)}));
  EXPECT_TRUE(joined({plain, plain}).tokens.empty());
}

// CLIP splits a long prompt into chunks; T5 reads it as one, of a short prompt's length.
TEST(FlowPipelineTest, LongPromptsAreRead) {
  const ImageSource source = source_of("sd3");
  ImageRequest request;
  request.prompt = "a red cat";
  const PromptStates brief = encode_prompts(source, request, {{request.prompt}, {""}});
  for (int i = 0; i < 60; ++i) request.prompt += " on a table";
  const PromptStates lengthy = encode_prompts(source, request, {{request.prompt}, {""}});
  EXPECT_EQ(brief.positive[0].context.dim(1), 77 + models::kSd3T5Tokens);
  const int64_t clip = lengthy.positive[0].context.dim(1) - models::kSd3T5Tokens;
  EXPECT_GT(clip, 77);
  EXPECT_EQ(clip % 77, 0);
  EXPECT_EQ(lengthy.negative[0].context.shape(), lengthy.positive[0].context.shape());
}

}  // namespace
}  // namespace rbee::engine
