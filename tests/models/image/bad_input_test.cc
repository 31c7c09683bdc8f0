// Image models whose files lack something or need a missing part, and calls with wrong tensors: the
// error must name the file and field, or the tensor.

#include <gtest/gtest.h>

#include "tests/checkpoints/checkpoint_files.h"
#include "tests/checkpoints/image_folder.h"
#include "tests/models/image/golden.h"

namespace rbee::test {
namespace {

struct Edit {
  const char* case_name;
  const char* file;
  const char* from;
  const char* to;
  Code code;
  std::vector<std::string> parts;  // in the message
};

const Edit kEdits[] = {
    {"sd1", "model_index.json", "\"vae\":", "\"vea\":", Code::not_found, {"sd1", "no vae"}},
    {"sd1",
     "model_index.json",
     "UNet2DConditionModel",
     "UNet3DConditionModel",
     Code::unsupported,
     {"UNet3DConditionModel", "UNet2DConditionModel"}},
    {"sd1",
     "model_index.json",
     "\"AutoencoderKL\"",
     "\"AutoencoderKLWan\"",
     Code::unsupported,
     {"AutoencoderKLWan", "AutoencoderTiny"}},
    {"sd1",
     "unet/config.json",
     "\"attention_head_dim\": 4",
     "\"attention_head_dim\": 5",
     Code::invalid_argument,
     {"unet/config.json", "attention_head_dim", "5 heads", "16 channels"}},
    {"sd1",
     "unet/config.json",
     "\"CrossAttnDownBlock2D\"",
     "\"AttnDownBlock2D\"",
     Code::unsupported,
     {"down_block_types", "\"AttnDownBlock2D\"", "CrossAttnDownBlock2D"}},
    {"sd1",
     "unet/config.json",
     "\"act_fn\": \"silu\"",
     "\"act_fn\": \"mish\"",
     Code::unsupported,
     {"act_fn", "\"mish\""}},
    {"sd1",
     "unet/config.json",
     "\"norm_num_groups\": 4",
     "\"norm_num_groups\": 5",
     Code::invalid_argument,
     {"norm1.weight", "16 channels", "5 equal groups"}},
    {"sd1",
     "unet/config.json",
     "\"in_channels\": 4",
     "\"in_channels\": 9",
     Code::invalid_argument,
     {"conv_in.weight", "16, 4, 3, 3", "16, 9, 3, 3"}},
    {"sd1",
     "unet/config.json",
     "\"sample_size\": 16",
     "\"sample_size\": []",
     Code::invalid_argument,
     {"unet/config.json: sample_size", "[]", "a list of 2"}},
    {"sd1",
     "unet/config.json",
     "\"sample_size\": 16",
     "\"sample_size\": 16.5",
     Code::invalid_argument,
     {"unet/config.json: sample_size", "16.5", "a whole number"}},
    {"sd1",
     "unet/config.json",
     "\"layers_per_block\": 2",
     "\"layers_per_block\": 3",
     Code::not_found,
     {"down_blocks.0.resnets.2.norm1.weight", "missing"}},
    {"sd1",
     "vae/config.json",
     "\"DownEncoderBlock2D\"",
     "\"AttnDownEncoderBlock2D\"",
     Code::unsupported,
     {"down_block_types", "AttnDownEncoderBlock2D"}},
    {"sd1",
     "vae/config.json",
     "\"scaling_factor\": 0.18215",
     "\"scaling_factor\": 0",
     Code::invalid_argument,
     {"scaling_factor", "from 1.1754944e-38"}},
    {"sd1",
     "vae/config.json",
     "\"scaling_factor\": 0.18215",
     "\"scaling_factor\": 1e300",
     Code::invalid_argument,
     {"vae/config.json: scaling_factor", "1e+300"}},
    {"sd1",
     "unet/config.json",
     "\"norm_eps\": 1e-05",
     "\"norm_eps\": -1e-05",
     Code::invalid_argument,
     {"unet/config.json: norm_eps", "from 0 to 1"}},
    {"sd1",
     "unet/config.json",
     "\"in_channels\": 4",
     "\"in_channels\": 4 \"x\": 1",
     Code::invalid_argument,
     {"unet/config.json: no JSON: line ", "expected a comma or }"}},
    {"sd1",
     "text_encoder/config.json",
     "\"quick_gelu\"",
     "\"swish\"",
     Code::unsupported,
     {"hidden_act", "swish", "quick_gelu"}},
    {"sd1",
     "text_encoder/config.json",
     "\"num_attention_heads\": 4",
     "\"num_attention_heads\": 5",
     Code::invalid_argument,
     {"num_attention_heads", "32"}},
    {"sdxl",
     "unet/config.json",
     "\"addition_time_embed_dim\": 6",
     "\"addition_time_embed_dim\": 7",
     Code::invalid_argument,
     {"addition_time_embed_dim", "56", "20"}},
};

TEST(ImageBadFilesTest, ErrorsNameFileAndField) {
  for (const Edit& edit : kEdits) {
    SCOPED_TRACE(cat(edit.file, ": ", edit.to));
    const ImageFolder folder(edit.case_name);
    folder.edit(edit.file, edit.from, edit.to);
    expect_error(edit.code, edit.parts, [&] { load_on_cpu(folder.path()); });
  }
}

// Adapters look for their layers before a part reads its file.
TEST(ImageBadFilesTest, EmptyListsOfLayersAreRefusedBeforeAdapters) {
  const auto load = [](const ImageFolder& folder) {
    load_on_cpu(folder.path(), {.loras = {{"nowhere.safetensors", 1}}});
  };
  const ImageFolder unet("sd1"), text("sd1");
  unet.edit("unet/config.json", "\"layers_per_block\": 2", "\"layers_per_block\": []");
  expect_error(Code::invalid_argument, {"unet/config.json: layers_per_block", "[]", "a list of"},
               [&] { load(unet); });
  // A text encoder has no such field.
  text.edit("text_encoder/config.json", "\"hidden_size\"",
            "\"layers_per_block\": [], \"hidden_size\"");
  expect_error(Code::not_found, {"nowhere.safetensors"}, [&] { load(text); });
}

TEST(ImageBadFilesTest, OptionsAreChecked) {
  const ImageFolder folder("sd1");
  expect_error(Code::not_found, {"nowhere"}, [] { load_on_cpu("nowhere"); });
  expect_error(Code::invalid_argument, {"no device"},
               [&] { models::load_image_model(folder.path(), {}); });
  expect_error(Code::invalid_argument, {"activations are q8_0"},
               [&] { load_on_cpu(folder.path(), {.activations = DType::q8_0}); });
  expect_error(Code::not_found, {"sd1", "no such file"},
               [&] { load_on_cpu(folder.path(), {.vae = folder.path() / "scheduler"}); });
}

TEST(ImageOptionsTest, FamiliesComputeInWhatHoldsTheirStates) {
  using models::customary_activations, models::ImageFamily;
  EXPECT_EQ(customary_activations(ImageFamily::flux, true), DType::f32);
  EXPECT_EQ(customary_activations(ImageFamily::flux, false), DType::bf16);
  EXPECT_EQ(customary_activations(ImageFamily::z_image, false), DType::bf16);
  EXPECT_EQ(customary_activations(ImageFamily::sdxl, false), DType::f16);
}

class ImageBadCallsTest : public testing::Test {
 protected:
  static Tensor picture(const Shape& shape) { return zeros(shape, DType::f32, cpu_device()); }

  ImageFolder folder_{"sd1"};
  models::ImageModel model_ = load_on_cpu(folder_.path());
};

TEST_F(ImageBadCallsTest, TextEncoders) {
  const models::TextEncoder& encoder = *model_.text.front().encoder;
  const auto call = [&](const models::TextInput& input) { return [&, input] { encoder(input); }; };
  const std::vector<int32_t> good(4, 1), outside{1, 1024}, negative{-1}, odd(3, 1), many(78, 1);
  const auto wrong = [&](const std::vector<std::string>& parts, const models::TextInput& input) {
    expect_error(Code::invalid_argument, parts, call(input));
  };
  wrong({"id 1024", "vocabulary of 1024"}, {.ids = outside});
  wrong({"id -1"}, {.ids = negative});
  wrong({"3 ids", "2 prompts"}, {.ids = odd, .batch = 2});
  wrong({"0 ids"}, {.ids = {}});
  wrong({"78 tokens", "77"}, {.ids = many});
  wrong({"clip_skip is 4", "0 to 3"}, {.ids = good, .clip_skip = 4});
  const std::vector<float> row(31);
  const models::TokenVector narrow{0, row}, far{4, row};
  wrong({"31 values", "32 wide"}, {.ids = good, .vectors = {&narrow, 1}});
  wrong({"token 4 of 4"}, {.ids = good, .vectors = {&far, 1}});
}

// A token's vector in its place counts as that token.
TEST_F(ImageBadCallsTest, TokenVectorsReplaceTokens) {
  const models::TextEncoder& encoder = *model_.text.front().encoder;
  const Shape table{1024, 32};
  const std::vector<float> rows = made_weights("embeddings.token_embedding.weight", table);
  const std::vector<int32_t> ids{5, 6, 7}, other{5, 9, 7};
  const models::TokenVector vector{1, std::span(rows).subspan(6 * 32, 32)};
  const Tensor wanted = encoder({.ids = ids}).hidden;
  EXPECT_NE(encoder({.ids = other}).hidden.to_host<float>(), wanted.to_host<float>());
  EXPECT_EQ(encoder({.ids = other, .vectors = {&vector, 1}}).hidden.to_host<float>(),
            wanted.to_host<float>());
}

TEST_F(ImageBadCallsTest, DenoisersAndVaes) {
  const models::Denoiser& denoiser = *model_.denoiser;
  const auto wrong = [](const std::vector<std::string>& parts, const auto& action) {
    expect_error(Code::invalid_argument, parts, action);
  };
  wrong({"UNet", "prompt's states"}, [&] { denoiser.prepare({.context = picture({1, 3, 31})}); });
  wrong({"UNet", "prompt's states"}, [&] { denoiser.prepare({}); });
  const auto prompt = denoiser.prepare({.context = picture({2, 3, 32})});
  wrong({"UNet", "(2, height, width, 4)"},
        [&] { denoiser(picture({1, 8, 8, 4}), picture({2}), *prompt); });
  wrong({"UNet", "time steps"}, [&] { denoiser(picture({2, 8, 8, 4}), picture({1}), *prompt); });
  const models::ControlStates control{{picture({2, 8, 8, 16})}, picture({2, 2, 2, 32})};
  wrong({"UNet", "1 states"},
        [&] { denoiser(picture({2, 8, 8, 4}), picture({2}), *prompt, {&control}); });
  wrong({"VAE", "multiples of 4"}, [&] { model_.vae->encode(picture({1, 8, 10, 3})); });
  wrong({"VAE", "(batch, height, width, 4)"}, [&] { model_.vae->decode(picture({1, 8, 8, 3})); });
}

}  // namespace
}  // namespace rbee::test
